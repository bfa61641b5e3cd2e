// Why a value was found, and what speaks against it, in words that a reader of documents knows.

/** `Amount, directly behind "合同总价", written as in 3 samples`; "" where nothing is known. */
function reasonText(kind, [place, words, n] = []) {
  const parts = [
    KIND_WORDS[language][kind],
    place && say(`reason_${place}`, words),
    place && n > 0 && say("reason_alike", spell(n)),
    place && n === 0 && say("reason_unlike"),
  ].filter(Boolean);
  const text = parts.join(language === "zh" ? "，" : ", ");
  return text && text[0].toUpperCase() + text.slice(1);
}

/** A part of a score as people call it. */
const partName = (name) => PART_WORDS[language][name] ?? name;

/** What the extraction remarks on a value, in the chosen language. */
function remarkText(remark) {
  if (remark === "no day of the calendar") return say("remark_no_day");
  const same = /^the same as (.+)$/s.exec(remark);
  if (same) return say("remark_same", same[1]);
  const second = /^second choice: the likelier (.+) is (.+)$/s.exec(remark);
  return second ? say("remark_second", second[1], second[2]) : remark;
}

/** Values that cannot all be right, as a sentence. */
function contradictionText([template, kind, numbers, expected]) {
  const [first, ...others] = numbers.map((number) => facts.templates[template].fields[number]);
  const number = expected && spell(Number(expected), Number.isInteger(Number(expected)) ? 0 : 2);
  return say(`against_${kind}`, first, others.join(language === "zh" ? "、" : " + "), number);
}

/** The contradictions of a document that concern a field. */
function contradictionsOf(entry, template, field) {
  return (entry.contradictions ?? []).filter(([of, , numbers]) => of === template && numbers.includes(field));
}

const isSample = (entry, template, field) =>
  (entry.samples ?? []).some(([of, at]) => of === template && (field === undefined || at === field));

/** Whether somebody should look at a value; those of samples were given, not found. */
function isDoubtful(entry, value) {
  return !isSample(entry, value.template, value.field) &&
    (grade(value.p) === "doubtful" || contradictionsOf(entry, value.template, value.field).length > 0);
}

const sampleBadge = () => make("span", { class: "badge sample", title: say("sample_about") }, say("sample"));
/** With a text of its own, or before one that is written out. */
const warningSign = (text) => make("span", text ? { class: "warning", role: "img", title: text, "aria-label": text } : { class: "warning", "aria-hidden": "true" }, "\u26a0\ufe0e");

/** The address of the original file, at a page of it where it has pages. */
function originalLink(entry, page) {
  if (!entry.file) return null;
  const isPdf = /pdf/.test(entry.kind), hasPage = page !== undefined && page !== null;
  const label = hasPage && isPdf ? say("open_page", spell(page)) : say("open_file");
  return make("a", { class: "link original", href: `./${entry.file}${hasPage && isPdf ? `#page=${page}` : ""}`, target: "_blank", rel: "noopener" }, label);
}

// ---- records: values that belong together, as rows

/** A table of the records of a document under one template; each cell leads to its value. */
function recordTable(entry, [template, numbers, rows], values, reveal) {
  const { name, fields } = facts.templates[template], rest = outsideRecords(values, [template, numbers, rows]);
  const cell = (at) => make("td", {}, at >= 0 ? recordCell(entry, values[at], reveal) : make("span", { class: "quiet" }, "\u2013"));
  return make("section", { class: "records" },
    make("h3", {}, `${name} \u00b7 ${say("n_records", spell(rows.length))}`),
    make("div", { class: "sheet", role: "region", tabindex: "0", "aria-label": say("records") }, make("table", {},
      make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "number" }, "#"), numbers.map((field) =>
        make("th", { scope: "col", vars: { hue: hueOf(field) } }, make("span", { class: "dot" }), fields[field], reviewLink(entry, template, field))))),
      make("tbody", {}, rows.map((row, at) => make("tr", {}, make("th", { scope: "row", class: "number quiet" }, spell(at + 1)), row.map(cell))),
        rest.some((found) => found.length) && make("tr", {}, make("th", { scope: "row", class: "number quiet" }, "\u2013"),
          rest.map((found) => make("td", {}, found.map((value) => recordCell(entry, value, reveal)))))))));
}

/** Per field of the records, its values that are in none of them. */
function outsideRecords(values, [template, numbers, rows]) {
  const inside = new Set(rows.flat());
  return numbers.map((field) => values.filter((value) => value.template === template && value.field === field && !inside.has(value.at)));
}

function recordCell(entry, value, reveal) {
  const title = `${say(grade(value.p))} ${chance(value.p)}`;
  return make("button", { type: "button", class: "record-value", title, on: { click: () => reveal(value.at) } },
    make("span", { class: `level ${grade(value.p)}`, "aria-hidden": "true" }), make("span", {}, value.text));
}

/** Fields of a template whose values a document shows as records. */
const recordFields = (entry, template) =>
  new Set((entry.records ?? []).filter(([of]) => of === template).flatMap(([, numbers]) => numbers));
