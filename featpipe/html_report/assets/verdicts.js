// One value under review: the document with the value marked, and what can be said of it.

const PICK_HUE = 150, OTHER_HUE = 250;

function tellRight() {
  if (review.item) tell(review.item.values.length ? "confirm" : "none");
}

/** The document of the item in question, under the bar with the verdicts. */
function drawReviewed() {
  const place = document.getElementById("review-document");
  if (!place) return;
  place.parentNode.classList.toggle("has-document", Boolean(review.item));
  if (!review.item) {
    const isReading = !review.queue || review.queue.n_done < review.queue.n_documents;
    replace(place, make("p", { class: "empty" }, say(isReading ? "review_reading" : review.queue.items.length ? "choose_document" : "review_none")), undoAtRest());
    return;
  }
  replace(place,
    make("section", { id: "verdict", class: "verdict", tabindex: "-1", "aria-label": review.item.field }),
    make("div", { class: "reviewed", id: "reviewed" }));
  drawVerdict();
  drawReviewedText(true);
}

/** Undo stays at hand when the queue has been worked off. */
function undoAtRest() {
  return review.mine.length > 0 && make("p", { class: "empty" }, act("v_undo", "u", () => takeBack()));
}

function act(word, key, press, properties) {
  const made = button(say(word), press, { class: "act", "aria-keyshortcuts": key, ...properties });
  made.append(make("kbd", { "aria-hidden": "true" }, key === "Enter" ? "\u21b5" : key.toUpperCase()));
  return made;
}

function drawVerdict() {
  const place = document.getElementById("verdict"), { item } = review;
  if (!place || !item) return;
  const value = item.values[review.value], n = item.values.length;
  const hasFocus = place.contains(document.activeElement) && document.activeElement.dataset.act;
  const isOther = value && value.value && value.value !== value.text;
  // Who types there goes on typing: what is drawn may come late, as candidates do.
  const finding = place.contains(document.activeElement) ? document.activeElement.closest(".find") : null;
  if (finding && finding.querySelector("input").value !== review.find) finding.querySelector("input").value = review.find;
  replaceAround(place, finding ?? findRow(), [
    make("div", { class: "verdict-head" },
      button(`\u2039 ${say("review")}`, () => moveTo(null), { class: "back" }),
      make("h2", { vars: { hue: fieldHue() } }, make("span", { class: "dot" }), item.field),
      n > 1 && make("span", { class: "quiet" }, say("value_of", spell(review.value + 1), spell(n))),
      make("span", { class: "quiet verdict-document", title: item.document }, shorten(item.document))),
    value
      ? make("p", { class: "verdict-value" }, make("strong", {}, value.text),
        isOther && make("span", { class: "quiet" }, `${value.bound}${value.value} ${value.unit}`.trim()), meter(value.probability),
        value.remark && make("span", { class: "quiet" }, remarkText(value.remark)))
      : make("p", { class: "verdict-value" }, make("strong", {}, say("gap")), make("span", { class: "quiet" }, say("gap_about"))),
    make("div", { class: "acts", role: "group", "aria-label": item.field },
      act(n ? "v_confirm" : "v_no_value", "y", tellRight, { class: "act good", "data-act": "y" }),
      n > 0 && act("v_reject", "x", () => tell("reject"), { "data-act": "x" }),
      n > 0 && act("v_none", "n", () => tell("none"), { "data-act": "n" }),
      keeper.hasCandidates(item) && act("v_alternatives", "a", toggleCandidates, { "aria-expanded": String(review.hasCandidates), "data-act": "a" }),
      n > 1 && act("other_value", "v", turnValue, { "data-act": "v" }),
      act("v_skip", "s", putOff, { "data-act": "s" }),
      act("v_undo", "u", () => takeBack(), { "data-act": "u", disabled: !review.mine.length })),
    review.hasCandidates && candidateList(),
  ], [pickRow()]);
  if (hasFocus) place.querySelector(`[data-act="${hasFocus}"]`)?.focus();
}

function fieldHue() {
  return hueOf(Math.max(0, review.queue?.fields.indexOf(review.item.field) ?? 0));
}

/** Other candidates than the values that are shown, numbered as the keys choose them. */
function others() {
  const shown = new Set(review.item.values.map(({ start, end }) => `${start}:${end}`));
  return (review.candidates?.values ?? []).filter(({ start, end }) => !shown.has(`${start}:${end}`)).slice(0, 9);
}

function candidateList() {
  const listed = others();
  if (!review.candidates) return make("p", { class: "busy", role: "status" }, say("loading"));
  if (!listed.length) return make("p", { class: "quiet" }, say("no_alternatives"));
  return make("ol", { class: "candidates", "aria-label": say("v_alternatives") }, listed.map((value, at) => make("li", {},
    make("button", { type: "button", class: "found", "aria-keyshortcuts": String(at + 1), on: { click: () => takeCandidate(at) } },
      make("kbd", { "aria-hidden": "true" }, String(at + 1)), make("span", { class: "found-text" }, value.text), meter(value.probability)))));
}

function toggleCandidates() {
  review.hasCandidates = !review.hasCandidates;
  drawVerdict();
  drawReviewedText(true);
}

function takeCandidate(at) {
  const value = others()[at];
  if (value && review.hasCandidates) tell("correct", [[value.start, value.end]]);
}

function turnValue() {
  if (!review.item || review.item.values.length < 2) return;
  review.value = (review.value + 1) % review.item.values.length;
  drawVerdict();
  drawReviewedText(true);
}

/** Where the right text is typed to be found. */
function findRow() {
  const box = make("input", {
    type: "search", id: "find-text", value: review.find, "aria-label": say("find_text"), placeholder: say("find_text"), autocomplete: "off", spellcheck: "false",
    on: { input: () => findText(box.value), keydown: steerFind },
  });
  return make("div", { class: "find" }, make("label", { class: "quiet", for: "find-text" }, say("select_about")), box);
}

/** What is selected or found, and the way to take it; else what was kept last. Always one line high. */
function pickRow() {
  const { picked, block } = review;
  const text = picked && block ? [...block.text].slice(picked.start, picked.end).join("") : "";
  const take = (isFurther) => () => tell("correct", [[picked.start, picked.end]], isFurther);
  const status = pickStatus(text);
  return make("div", { class: "pick" },
    status ? make("span", { class: "pick-text", role: "status" }, status) : make("p", { class: "verdict-note quiet", role: "status" }, review.note),
    picked && act("v_use", "Enter", take(false), { class: "act good", "data-act": "Enter" }),
    picked && review.candidates?.is_many && act("v_add", "+", take(true), { "data-act": "+" }));
}

function pickStatus(text) {
  if (review.find.trim() && review.block) {
    const n = placesOf(review.find, review.block.text).length;
    return n ? [make("strong", {}, text), ` ${say("n_matches", spell(review.match + 1), spell(n))}`] : say("no_place");
  }
  return text ? [`${say("selected")}: `, make("strong", {}, text.length > 120 ? `${text.slice(0, 120)} …` : text)] : null;
}

function findText(words, step = 0) {
  const places = review.block ? placesOf(words, review.block.text) : [];
  review.find = words;
  review.match = places.length ? (review.match * Math.abs(step) + step + places.length) % places.length : 0;
  review.picked = places[review.match] ?? null;
  drawVerdict();
  drawReviewedText(true);
  const box = document.getElementById("find-text");
  if (box === document.activeElement) return;
  box.focus({ preventScroll: true });
  box.setSelectionRange(words.length, words.length);
}

/** Enter takes the match, the arrows go to the next one, Escape gives up. */
function steerFind(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) findText(review.find, step);
  else if (event.key === "Enter" && review.picked && !event.isComposing) KEYS.Enter();
  else return;
  event.preventDefault();
}

function dropPick() {
  if (!review.picked && !review.find) return;
  Object.assign(review, { picked: null, find: "", match: 0 });
  getSelection().removeAllRanges();
  drawVerdict();
  drawReviewedText(false);
  document.getElementById("verdict")?.focus({ preventScroll: true });
}

/** What is marked in the text: the values, what is picked, and the candidates while they are listed. */
function reviewSpans() {
  const { item } = review, label = item.field;
  const spans = item.values.map((value, at) => ({ start: value.start, end: value.end, kind: at === review.value ? "value" : "place", hue: fieldHue(), label, isActive: at === review.value }));
  if (review.hasCandidates) others().forEach(({ start, end }, at) => spans.push({ start, end, kind: "value", hue: OTHER_HUE, label: String(at + 1), candidate: at }));
  if (review.picked && review.find) spans.push({ ...review.picked, kind: "value", hue: PICK_HUE, label: say("selected"), isActive: true, isPick: true });
  return spans;
}

function drawReviewedText(shallReveal) {
  const place = document.getElementById("reviewed"), { block } = review;
  if (!place) return;
  if (!block) {
    replace(place, make("p", { class: "empty" }, say("loading")));
    return;
  }
  const drawn = renderText(block, reviewSpans());
  drawn.root.classList.add("has-names");
  drawn.root.addEventListener("click", (event) => {
    const span = event.target.closest?.(".piece")?.spans.find((one) => one.candidate !== undefined);
    if (span && getSelection().isCollapsed) takeCandidate(span.candidate);
  });
  replace(place,
    make("h3", { class: "reviewed-title" }, block.title),
    block.n_characters > [...block.text].length && make("p", { class: "notice" }, say("text_cut", spell([...block.text].length), spell(block.n_characters))),
    drawn.root);
  if (!shallReveal) return;
  const active = drawn.pieces.filter((piece) => piece.spans.some((span) => span.isActive));
  const piece = active.find((one) => one.spans.some((span) => span.isPick)) ?? active[0];
  // Not by scrollIntoView, which would scroll the bar with the verdicts out of sight as well.
  const reveal = () => {
    const at = piece?.getBoundingClientRect();
    place.scrollTop = at ? place.scrollTop + at.top - place.getBoundingClientRect().top - (place.clientHeight - at.height) / 2 : 0;
  };
  reveal();
  requestAnimationFrame(reveal); // lines that were never drawn have taken their true height by now
}

/** What is selected in the text becomes what is picked, once the pointer rests. */
function takeSelection() {
  const root = document.querySelector("#reviewed .text");
  if (chosen.view !== "review" || !root || !review.block) return;
  const span = selectedSpan(root, review.block.text);
  if (!span || span.start === review.picked?.start && span.end === review.picked?.end) return;
  Object.assign(review, { picked: span, find: "" });
  drawVerdict();
}

let isPressed = false;
document.addEventListener("pointerdown", () => { isPressed = true; });
for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => { isPressed = false; takeSelection(); });
}
document.addEventListener("selectionchange", () => { if (!isPressed) takeSelection(); });
