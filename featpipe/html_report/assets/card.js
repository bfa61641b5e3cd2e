// The card beside a highlight: what it is, how sure, like which sample, and why.

const card = make("div", { id: "card", class: "card", role: "tooltip", hidden: true });
let cardOwner = null;

/** Show the card of some spans beside a node, until `hideCard`. */
function showCard(node, spans) {
  if (cardOwner) cardOwner.removeAttribute("aria-describedby");
  replace(card, spans.map(describe));
  card.hidden = false;
  cardOwner = node;
  node.setAttribute("aria-describedby", "card");
  placeCard(node);
}

function hideCard() {
  if (cardOwner) cardOwner.removeAttribute("aria-describedby");
  cardOwner = null;
  card.hidden = true;
}

/** Below the node where there is room, else above; never outside the window. */
function placeCard(node) {
  const lines = node.getClientRects();
  const at = lines.length ? lines[0] : node.getBoundingClientRect();
  const last = lines.length ? lines[lines.length - 1] : at;
  const { offsetWidth: width, offsetHeight: height } = card;
  const room = document.documentElement.clientHeight;
  const isBelow = last.bottom + height + 12 < room || at.top < height + 12;
  const top = isBelow ? last.bottom + 8 : at.top - height - 8;
  const left = isBelow ? last.left : at.left;
  card.style.top = `${Math.max(8, Math.min(top, room - height - 8))}px`;
  card.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - width - 8))}px`;
}

function describe(span) {
  if (span.kind === "entity") {
    return make("section", { vars: { hue: span.hue } },
      make("p", { class: "card-name" }, make("span", { class: "dot" }), span.label,
        make("span", { class: "quiet" }, say("entity"))),
      fact(say("score"), meter(span.score)));
  }
  const { value } = span;
  const isOther = value.value && value.value !== value.text;
  return make("section", { vars: { hue: span.hue } },
    make("p", { class: "card-name" }, make("span", { class: "dot" }), span.label,
      facts.templates.length > 1 && make("span", { class: "quiet" }, facts.templates[value.template].name)),
    span.reason && make("p", { class: "reason" }, span.reason),
    fact(say("probability"), meter(value.p)),
    isOther && fact(say("meaning"), `${value.bound}${value.bound ? " " : ""}${value.value}${value.unit ? " " : ""}${value.unit}`),
    value.remark && fact(say("remark"), remarkText(value.remark), "wrapped"),
    // That two parties are the same stands in the remark.
    (span.against ?? []).filter(([, kind]) => kind !== "same").map((one) => make("p", {}, warningSign(""), contradictionText(one))),
    value.nearest && fact(say("nearest"), shorten(value.nearest), "whole"),
    span.nPlaces > 0 && make("p", { class: "quiet" }, say("places", spell(span.nPlaces))),
    span.parts.length > 0 && why(span.parts));
}

function fact(name, value, kind = "") {
  return make("p", { class: `fact ${kind}` }, make("span", { class: "quiet" }, name), make("span", {}, value));
}

/** The weightiest parts of a score, for it to the right and against it to the left. */
function why(parts) {
  const listed = parts.filter((part) => part.name !== "bias").slice(0, 6);
  const largest = Math.max(0.001, ...listed.map((part) => Math.abs(part.weight)));
  return make("div", { class: "why" }, make("p", { class: "quiet" }, say("why")),
    listed.map(({ name, weight }) => make("p", { class: "part" },
      make("span", {}, partName(name)),
      make("span", { class: "balance", "aria-hidden": "true" },
        make("span", { class: weight < 0 ? "against" : "for", vars: { share: Math.abs(weight) / largest } })),
      make("span", { class: "number" }, `${weight < 0 ? "\u2212" : "+"}${spell(Math.abs(weight), 1)}`))));
}

/** The last two steps of a path: what tells documents apart. */
function shorten(path) {
  return path.split("/").slice(-2).join("/");
}
