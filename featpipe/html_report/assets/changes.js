// What differs between two sets of results: field by field, the old beside the new.

function changesView() {
  const { changes } = facts;
  if (!changes) {
    return make("div", { class: "empty" }, make("p", {}, say("no_comparison")),
      command(`featpipe report ${facts.cache} -o report.html --compare previous`));
  }
  const list = make("ul", { class: "change-list" }), count = make("p", { class: "count quiet", role: "status" });
  const update = () => drawChanges(list, count);
  const fields = [...new Set(changes.items.map((item) => JSON.stringify([item[0], item[1]])))];
  const root = make("div", { class: "changes" },
    make("header", { class: "section-head" },
      make("h2", {}, say("changes_between")),
      make("p", { class: "quiet" }, `${changes.before || "\u2013"} \u2192 ${changes.now || "\u2013"}`),
      make("p", { class: "quiet" }, [
        say("compared", spell(changes.compared)),
        changes.only_before > 0 && say("only_before", spell(changes.only_before)),
        changes.only_now > 0 && say("only_now", spell(changes.only_now)),
      ].filter(Boolean).join(" · "))),
    changes.items.length > 0 && make("div", { class: "tools" },
      choice(say("fields"), [["", say("all_fields")], ...fields.map((key) => [key, JSON.parse(key).join(" · ")])],
        chosen.change.field, (value) => { chosen.change.field = value; update(); }),
      search(say("filter_rows"), chosen.change.find, (text) => { chosen.change.find = text; update(); }),
      count),
    list);
  update();
  return root;
}

const MOST_CHANGES = 300;

function drawChanges(list, count, most = MOST_CHANGES) {
  const text = chosen.change.find.trim().toLowerCase();
  const found = facts.changes.items.filter((item) =>
    (!chosen.change.field || chosen.change.field === JSON.stringify([item[0], item[1]])) &&
    (!text || JSON.stringify(item.slice(0, 6)).toLowerCase().includes(text)));
  count.textContent = say("n_changes", spell(found.length));
  replace(list, found.slice(0, most).map(changeItem),
    found.length > most && make("li", {}, button(say("show_more", spell(found.length - most)),
      () => drawChanges(list, count, most + 1000), { class: "more" })),
    !found.length && make("li", { class: "empty" }, say("no_changes")));
}

function changeItem([template, field, number, name, old, now]) {
  const kind = !old.length ? "added" : !now.length ? "removed" : shiftOf(old, now) || "changed";
  const title = make("span", {}, make("strong", {}, field), make("span", { class: "quiet" }, ` · ${template}`));
  return make("li", { class: `change ${kind}` },
    make("div", { class: "change-head" },
      make("span", { class: `badge ${kind}` }, say(kind)), title,
      number >= 0
        ? button(name, () => openDocument(number, placeOf(number, template, field)), { class: "link" })
        : make("span", { class: "quiet" }, name)),
    make("div", { class: "sides" }, side(say("before"), "old", old, now), side(say("after"), "new", now, old)));
}

/** The same values that are surer or less sure than before, "" for others. */
function shiftOf(old, now) {
  if (old.length !== now.length || old.some(([text], at) => text !== now[at][0])) return "";
  const largest = old.map(([, p], at) => now[at][1] - p).reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);
  return largest < 0 ? "fell" : largest > 0 ? "rose" : "";
}

/** Number of the document's first value of that field. */
function placeOf(number, template, field) {
  const found = valuesOf(facts.docs[number]).find((value) => {
    const of = facts.templates[value.template];
    return of.name === template && of.fields[value.field] === field;
  });
  return found ? found.at : -1;
}

function side(label, kind, values, others) {
  const shared = new Set(others.map(([text]) => text));
  return make("div", { class: `side ${kind}` }, make("span", { class: "quiet side-name" }, label),
    values.length
      ? values.map(([text, p]) => make("p", { class: shared.has(text) ? "same" : "differs" },
        make(shared.has(text) ? "span" : kind === "old" ? "del" : "ins", {}, text), make("span", { class: "quiet number" }, chance(p))))
      : make("p", { class: "quiet" }, say("nothing")));
}
