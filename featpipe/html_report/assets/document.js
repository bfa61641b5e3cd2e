// One document: its text in the middle, its values beside it, and the list it was chosen from.

let drawing = 0;

function documentsView() {
  const list = make("nav", { class: "list", "aria-label": say("documents") });
  const place = make("article", { class: "document", id: "document" });
  if (chosen.document < 0 && facts.docs.length && !isNarrow()) chosen.document = matching()[0] ?? 0;
  drawList(list);
  if (chosen.document >= 0) drawDocument(place);
  else replace(place, make("p", { class: "empty" }, say("choose_document")));
  return make("div", { class: `documents${chosen.document >= 0 ? " has-document" : ""}` }, list, place);
}

function isNarrow() {
  return matchMedia("(max-width: 820px)").matches;
}

/** Numbers of the documents that the filters leave. */
function matching() {
  const asked = chosen.find.trim().toLowerCase();
  const template = chosen.template === "" ? -1 : Number(chosen.template);
  const found = [];
  facts.docs.forEach((entry, number) => {
    if (asked && !`${entry.id}\n${entry.title}`.toLowerCase().includes(asked)) return;
    if (template >= 0 && !entry.values.some((row) => row[0] === template)) return;
    if (chosen.onlyValues && !entry.values.some((row) => row.length > 2)) return;
    if (chosen.onlyDoubtful && !valuesOf(entry).some((value) => isDoubtful(entry, value))) return;
    found.push(number);
  });
  return found;
}

function drawList(list) {
  const items = make("ul", { class: "items" });
  const count = make("p", { class: "count quiet", role: "status" });
  const update = () => {
    chosen.nShown = 200;
    drawItems(items, count);
  };
  replace(list,
    make("div", { class: "filters" },
      search(say("find_document"), chosen.find, (text) => { chosen.find = text; update(); }),
      facts.templates.length > 1 && choice(say("template"),
        [["", say("all_templates")], ...facts.templates.map((t, i) => [String(i), t.name])],
        chosen.template, (value) => { chosen.template = value; update(); }),
      facts.templates.length > 0 && check(say("only_values"), chosen.onlyValues,
        (isOn) => { chosen.onlyValues = isOn; update(); }),
      facts.templates.length > 0 && check(say("only_doubtful"), chosen.onlyDoubtful,
        (isOn) => { chosen.onlyDoubtful = isOn; update(); })),
    count, items);
  drawItems(items, count);
}

function drawItems(items, count) {
  const found = matching();
  count.textContent = facts.docs.length < facts.in_cache && found.length === facts.docs.length
    ? say("shown_of", spell(facts.docs.length), spell(facts.in_cache))
    : say("n_documents", spell(found.length));
  const more = found.length - chosen.nShown;
  replace(items,
    found.slice(0, chosen.nShown).map(listItem),
    more > 0 && make("li", {}, button(say("show_more", spell(Math.min(more, 500))), () => {
      chosen.nShown += 500;
      drawItems(items, count);
    }, { class: "more" })),
    !found.length && make("li", { class: "empty" }, say("no_match")));
}

function listItem(number) {
  const entry = facts.docs[number], values = valuesOf(entry);
  return make("li", {}, make("button", {
    type: "button", class: "item", "data-document": number,
    "aria-current": number === chosen.document ? "true" : null,
    on: { click: () => openDocument(number, -1) },
  },
  make("span", { class: "item-title" }, entry.title || entry.id),
  make("span", { class: "item-id quiet" }, entry.samples.length > 0 && sampleBadge(), entry.contradictions.length > 0 && warningSign(entry.contradictions.map(contradictionText).join("; ")), entry.id),
  values.length > 0 && make("span", { class: "item-count", title: say("n_values", spell(values.length)) }, spell(values.length))));
}

/** Show a document; a value of it, when given, is brought into sight. */
function openDocument(number, value = -1, shallRemember = true) {
  chosen.document = number;
  chosen.value = value;
  chosen.view = "documents";
  if (shallRemember) remember();
  const place = document.getElementById("document");
  if (!place) {
    if (shallRemember) drawView();
    return;
  }
  place.parentNode.classList.add("has-document");
  for (const item of document.querySelectorAll(".item")) {
    const isThis = Number(item.dataset.document) === number;
    if (isThis) item.setAttribute("aria-current", "true");
    else item.removeAttribute("aria-current");
  }
  drawDocument(place);
}

async function drawDocument(place) {
  const turn = ++drawing, number = chosen.document, entry = facts.docs[number];
  hideCard();
  replace(place, make("p", { class: "empty" }, say("loading")));
  const block = await readBlock(number);
  // Another document may have been asked for while the file was still being read.
  if (turn !== drawing) return;
  const pane = documentPane(entry, block);
  replace(place, neighbours(number), pane.root);
  place.scrollTop = 0;
  if (isNarrow()) place.scrollIntoView({ block: "start" });
  if (chosen.value >= 0) pane.reveal(chosen.value);
}

/** Steps to the documents before and after, among those that the filters leave. */
function neighbours(number) {
  const found = matching(), at = found.indexOf(number);
  const step = (to, label, sign) => button(sign, () => openDocument(found[to]), {
    class: "step", title: label, "aria-label": label, disabled: at < 0 || found[to] === undefined,
  });
  return make("div", { class: "neighbours" },
    button(`\u2039 ${say("all_documents")}`, backToList, { class: "back" }),
    step(at - 1, say("previous_document"), "\u2191"), step(at + 1, say("next_document"), "\u2193"));
}

function backToList() {
  chosen.document = -1;
  remember();
  drawView();
}

/** A document as an element; `reveal(n)` brings its n-th value into sight. */
function documentPane(entry, block) {
  const values = valuesOf(entry);
  const middle = make("div", { class: "reading" });
  const state = { pieces: [] };
  const drawText = () => {
    if (block.text === null || block.text === undefined) {
      replace(middle, make("p", { class: "notice" }, say("text_absent")));
      return;
    }
    const drawn = renderText(block, spansOf(entry, values, block));
    state.pieces = drawn.pieces;
    drawn.root.classList.toggle("has-names", chosen.hasNames);
    watchPieces(drawn.root, drawn.pieces);
    const shownLength = [...block.text].length;
    replace(middle, entry.chars > shownLength && make("p", { class: "notice" }, say("text_cut", spell(shownLength), spell(entry.chars))), drawn.root);
  };
  const reveal = (at) => revealValue(state.pieces, at);
  drawText();
  const root = make("div", { class: "pane" },
    make("header", { class: "document-head" },
      make("h2", {}, entry.title || entry.id),
      make("p", { class: "quiet" }, [
        entry.id !== entry.title && entry.id, entry.kind, entry.chars && say("n_characters", spell(entry.chars)),
        entry.pages && say("n_pages", spell(entry.pages)),
      ].filter(Boolean).join(" · "), entry.file && " · ", originalLink(entry)),
      entry.samples?.length > 0 && make("p", { class: "sample-note" }, sampleBadge(), make("span", { class: "quiet" }, say("sample_about"))),
      (entry.contradictions ?? []).map((one) => make("p", { class: "notice contradiction" }, warningSign(""), contradictionText(one))),
      entry.notes.map((note) => make("p", { class: "notice" }, note)),
      legend(entry, block, drawText)),
    (entry.records ?? []).map((one) => recordTable(entry, one, values, reveal)),
    valueList(entry, values, reveal),
    middle);
  return { root, reveal };
}

/** Everything to highlight: the values, their further places, and the entities that are shown. */
function spansOf(entry, values, block) {
  const spans = [];
  for (const value of values) {
    const [parts, places, ...reason] = block.details[value.at] || [[], []];
    const label = facts.templates[value.template].fields[value.field];
    const common = {
      label, hue: hueOf(value.field), value, reason: reasonText(facts.templates[value.template].kinds?.[value.field], reason),
      against: contradictionsOf(entry, value.template, value.field),
      nPlaces: (places || []).length, parts: partsOfScore(parts || []),
    };
    spans.push({ ...common, kind: "value", start: value.start, end: value.end });
    for (const [start, end] of places || []) spans.push({ ...common, kind: "place", start, end });
  }
  const flat = block.entities || [];
  for (let at = 0; at < flat.length; at += 4) {
    const label = facts.labels[flat[at + 2]];
    if (chosen.hiddenLabels.has(label)) continue;
    spans.push({ kind: "entity", start: flat[at], end: flat[at + 1], label, hue: labelHue(label, flat[at + 2]), score: flat[at + 3] });
  }
  return spans;
}

function partsOfScore(flat) {
  const parts = [];
  for (let at = 0; at < flat.length; at += 2) parts.push({ name: facts.parts[flat[at]], weight: flat[at + 1] });
  return parts;
}

/** Switches for the kinds of entities and for the names of fields in the text. */
function legend(entry, block, redraw) {
  const counts = entry.labels.map((n, number) => [facts.labels[number], n, number]).filter(([, n]) => n);
  const toggle = ([label, n, number]) => {
    const chip = button("", () => {
      const isHidden = chosen.hiddenLabels.delete(label);
      if (!isHidden) chosen.hiddenLabels.add(label);
      chip.setAttribute("aria-pressed", String(isHidden));
      redraw();
    }, { class: "chip", "aria-pressed": String(!chosen.hiddenLabels.has(label)), vars: { hue: labelHue(label, number) } });
    chip.append(make("span", { class: "dot" }), label, make("span", { class: "number" }, spell(n)));
    return chip;
  };
  return make("div", { class: "legend", role: "group", "aria-label": say("entities") },
    counts.map(toggle),
    valuesOf(entry).length > 0 && check(say("names_in_text"), chosen.hasNames, (isOn) => {
      chosen.hasNames = isOn;
      document.querySelector(".text")?.classList.toggle("has-names", isOn);
    }));
}

/** The fields of each template with what was found, in the template's order. */
function valueList(entry, values, reveal) {
  const asked = templatesOf(entry);
  if (!asked.length) return make("aside", { class: "values" }, make("p", { class: "empty" }, say("no_values")));
  return make("aside", { class: "values", "aria-label": say("values") }, asked.map((number) => {
    const template = facts.templates[number], inRecords = recordFields(entry, number);
    if (inRecords.size === template.fields.length) return null;
    return make("section", {},
      make("h3", {}, template.name),
      make("dl", {}, template.fields.map((name, field) => {
        if (inRecords.has(field)) return [];
        const found = values.filter((value) => value.template === number && value.field === field);
        return [
          make("dt", { vars: { hue: hueOf(field) } }, make("span", { class: "dot" }), name,
            contradictionsOf(entry, number, field).map((one) => warningSign(contradictionText(one))), reviewLink(entry, number, field)),
          found.length
            ? found.map((value) => make("dd", {}, valueButton(value, reveal)))
            : make("dd", { class: "quiet absent" }, say("nothing_found")),
          saidMark(entry, number, field),
        ];
      }).flat(2)));
  }));
}

/** The way to say something of a field, where the report has the text. */
function reviewLink(entry, template, field) {
  if (isService || !entry.key) return null;
  const label = `${say("review")}: ${facts.templates[template].fields[field]}`;
  return button(say("review"), () => reviewField(facts.docs.indexOf(entry), template, field), { class: "link review-link", "aria-label": label });
}

/** What was said of a field: its value is the old one until that is learnt. */
function saidMark(entry, template, field) {
  const said = !isService && entry.key && saidOf(entry, template, field);
  return said ? make("dd", { class: "said-mark" }, `\u2713 ${said}`) : null;
}

function valueButton(value, reveal) {
  const isOther = value.value && value.value !== value.text;
  return make("button", { type: "button", class: "found", on: { click: () => reveal(value.at) } },
    make("span", { class: "found-text" }, value.text),
    isOther && make("span", { class: "quiet found-value" }, `${value.bound}${value.value} ${value.unit}`),
    value.remark && make("span", { class: "quiet found-value" }, remarkText(value.remark)),
    make("span", { class: "found-foot" }, meter(value.p),
      value.page !== null && value.page !== undefined && make("span", { class: "quiet" }, say("page", spell(value.page)))));
}

/** Scroll to a value, and let it glow for a moment. */
function revealValue(pieces, at) {
  const piece = pieces.find((node) => node.spans.some((span) => span.kind === "value" && span.value.at === at));
  if (!piece) return;
  // First to its place, then the card: a card is put where the highlight is at that moment.
  piece.scrollIntoView({ block: "center" });
  piece.focus({ preventScroll: true });
  for (const node of pieces) {
    node.classList.toggle("glow", node.spans.some((span) => span.kind === "value" && span.value.at === at));
  }
}
