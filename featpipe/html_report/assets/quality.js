// How good the templates are: scores by field, and every value on which template and person differ.

function qualityView() {
  return make("div", { class: "changes quality" }, facts.evaluations.map(evaluationSection));
}

const score = (share) => spell(share, 3);

function evaluationSection(one) {
  const { whole } = one, judged = say(`judged_${one.source}`, spell(whole.n_documents));
  const more = one.n_disagreements - one.disagreements.length;
  return make("section", { "aria-label": one.template },
    make("header", { class: "section-head" },
      make("p", { class: "quiet" }, one.template),
      make("h2", {}, say("quality_line", score(whole.f1), score(whole.f1_low), score(whole.f1_high))),
      make("p", { class: "quiet" }, judged),
      make("p", { class: "quiet" }, say("quality_sure", spell(whole.n_sure), spell(whole.n_sure_right)))),
    scoreTable(one),
    one.unjudged.length > 0 && make("p", { class: "notice" }, say("unjudged", one.unjudged.join(", "))),
    one.left_out.length > 0 && make("div", { class: "notice" }, say("not_judged"),
      make("ul", { class: "plain" }, one.left_out.map((reason) => make("li", {}, reason)))),
    make("h3", {}, one.n_disagreements ? say("disagreements", spell(one.n_disagreements)) : say("none_disagree")),
    make("ul", { class: "change-list" }, one.disagreements.map((item) => disagreementItem(one.template, item)),
      more > 0 && make("li", { class: "quiet" }, say("further", spell(more)))));
}

function scoreTable(one) {
  const heads = ["field_name", "n_judged", "stated", "found", "right", "precision", "recall", null, "n_sure", "sure_right", "ece"];
  const row = (name, of, properties) => make("tr", properties, make("th", { scope: "row" }, name),
    [of.n_documents, of.n_stated, of.n_found, of.n_right].map((n) => make("td", { class: "number" }, spell(n))),
    [of.precision, of.recall].map((share) => make("td", { class: "number" }, score(share))),
    make("td", { class: "number" }, make("strong", {}, score(of.f1))),
    [of.n_sure, of.n_sure_right].map((n) => make("td", { class: "number" }, spell(n))),
    make("td", { class: "number" }, score(of.ece)));
  return make("div", { class: "sheet scores", tabindex: "0", role: "region", "aria-label": say("quality") },
    make("table", {},
      make("thead", {}, make("tr", {}, heads.map((name) => make("th", { scope: "col" }, name ? say(name) : "F1")))),
      make("tbody", {}, one.fields.map((field) => row(field.field, field)),
        one.fields.length !== 1 && row(say("all_together"), one.whole, { class: "total" }))));
}

function disagreementItem(template, { document: name, key, field, missed, wrong }) {
  const number = key ? facts.docs.findIndex((entry) => entry.key === key) : -1;
  const list = (label, texts) => make("div", { class: "side" }, make("span", { class: "quiet side-name" }, label),
    texts.length ? texts : make("p", { class: "quiet" }, say("nothing")));
  return make("li", { class: "change" },
    make("div", { class: "change-head" }, make("strong", {}, field),
      number >= 0
        ? button(name, () => openDocument(number, placeOf(number, template, field)), { class: "link" })
        : make("span", { class: "quiet" }, name)),
    make("div", { class: "sides" },
      list(say("stated"), missed.map((text) => make("p", {}, text))),
      list(say("found"), wrong.map(([text, p]) => make("p", {}, text, make("span", { class: "quiet number" }, ` ${chance(p)}`))))));
}
