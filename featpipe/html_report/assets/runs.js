// What each run did: how much came from the cache, how long it took, and what was left out and why.

function runsView() {
  const builds = [...facts.runs].reverse(), extractions = [...facts.results_runs].reverse();
  return make("div", { class: "runs" },
    overview(),
    make("h2", {}, say("builds")),
    builds.length ? builds.map((run, i) => runCard(run, i === 0)) : make("p", { class: "empty" }, say("no_runs")),
    extractions.length > 0 && make("h2", {}, say("extractions")),
    extractions.length > 0 && make("ul", { class: "plain" }, extractions.map((run) => make("li", {},
      make("code", {}, run.run), make("span", {}, ` ${say("n_documents", spell(run.n_documents))}`),
      make("span", { class: "quiet" }, ` · ${run.templates.join(" · ")}`)))));
}

/** The whole report in five numbers; what samples give was not found, and does not count as filled. */
function overview() {
  let all = 0, n = 0, sum = 0, asked = 0, filled = 0;
  for (const entry of facts.docs) {
    const values = valuesOf(entry);
    all += values.length;
    const found = values.filter((value) => !isSample(entry, value.template, value.field));
    n += found.length;
    for (const value of found) sum += value.p;
    for (const number of templatesOf(entry)) {
      asked += facts.templates[number].fields.filter((_, field) => !isSample(entry, number, field)).length;
      filled += new Set(found.filter((v) => v.template === number).map((v) => v.field)).size;
    }
  }
  const last = facts.runs[facts.runs.length - 1];
  return make("div", { class: "tiles" },
    tile(say("documents"), spell(facts.in_cache)),
    tile(say("values"), spell(all)),
    asked > 0 && tile(say("coverage"), percent(filled / asked)),
    n > 0 && tile(say("mean_probability"), percent(sum / n)),
    last && tile(say("quarantined"), spell(last.n_quarantined), last.n_quarantined ? "bad" : ""));
}

function tile(name, number, kind = "") {
  return make("div", { class: `tile ${kind}` }, make("span", { class: "tile-number" }, number), make("span", { class: "quiet" }, name));
}

function runCard(run, isOpen) {
  const nFailed = run.failed.reduce((sum, failed) => sum + failed.n_units, 0);
  const total = Math.max(1, run.n_unique), rate = run.n_hits / total;
  const speed = run.seconds > 0 ? run.n_encoded / run.seconds : 0;
  return make("details", { class: "run", open: isOpen },
    make("summary", {},
      make("span", { class: "run-id" }, whenOf(run.run_id)),
      make("span", { class: "quiet" }, [
        say("n_documents", spell(run.n_documents)), say("seconds", spell(run.seconds, 1)),
        run.was_interrupted && say("interrupted"),
      ].filter(Boolean).join(" · ")),
      run.n_quarantined > 0 && make("span", { class: "badge removed" }, `${spell(run.n_quarantined)} ${say("quarantined")}`)),
    make("div", { class: "run-body" },
      make("div", { class: "stack", role: "img", "aria-label": `${say("hit_rate")} ${percent(rate)}` },
        make("span", { class: "hits", vars: { share: run.n_hits / total } }),
        make("span", { class: "encoded", vars: { share: run.n_encoded / total } }),
        make("span", { class: "failed", vars: { share: nFailed / total } })),
      make("dl", { class: "numbers" },
        figure(say("hit_rate"), percent(rate)),
        figure(say("hits"), spell(run.n_hits), "hits"),
        figure(say("encoded"), spell(run.n_encoded), "encoded"),
        nFailed > 0 && figure(say("failed"), spell(nFailed), "failed"),
        figure(say("unique"), spell(run.n_unique)),
        Object.entries(run.units_by_level).map(([level, n]) => figure(say(level) ?? level, spell(n))),
        figure(say("entities"), spell(run.n_entities)),
        figure(say("loaded"), spell(run.n_loaded)),
        figure(say("unchanged"), spell(run.n_unchanged)),
        figure(say("time"), say("seconds", spell(run.seconds, 1))),
        speed > 0 && figure(say("encoded"), say("per_second", spell(speed)))),
      quarantine(run), failures(run), notesOf(run)));
}

function figure(name, value, kind) {
  return make("div", {}, make("dt", { class: "quiet" }, kind && make("span", { class: `key ${kind}` }), name), make("dd", {}, value));
}

/** `20261120T142410.273056Z-1409` as a date and a time. */
function whenOf(id) {
  const found = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)/.exec(id);
  return found ? `${found[1]}-${found[2]}-${found[3]} ${found[4]}:${found[5]}:${found[6]} UTC` : id;
}

function quarantine(run) {
  if (!run.quarantined.length) return null;
  const more = run.n_quarantined - run.quarantined.length;
  return make("section", { class: "sheet" }, make("h3", {}, `${say("quarantined")} (${spell(run.n_quarantined)})`),
    make("table", { class: "lost" },
      make("thead", {}, make("tr", {}, [say("document"), say("reason"), say("error")].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, run.quarantined.map((lost) => make("tr", {},
        make("td", {}, lost.source), make("td", {}, lost.reason), make("td", {}, make("code", {}, lost.error)))))),
    more > 0 && make("p", { class: "quiet" }, say("and_more", spell(more))));
}

function failures(run) {
  return run.failed.length > 0 && make("section", {}, make("h3", {}, say("failed")),
    make("ul", { class: "plain" }, run.failed.map((failed) =>
      make("li", {}, `${spell(failed.n_units)} · ${failed.reason} · ${failed.table}`))));
}

function notesOf(run) {
  return run.notes.length > 0 && make("section", {}, make("h3", {}, say("notes")),
    make("ul", { class: "plain" }, run.notes.map((note) => make("li", {}, note))));
}
