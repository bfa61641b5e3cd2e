// Who keeps what reviewers say, in the report: the page. Each record has an entry of its own in the
// browser's storage, so that two windows lose nothing of one another; all are saved as one file.

const KEPT_UNDER = `featpipe.corrections.${facts.id}.`;
const MOST_LISTED = 200;

/** `saved`: template -> key of the last of its records that is in a file; each template has a file of its own. */
const pageRecords = { byKey: new Map(), saved: new Map(), isKept: true, block: null };

function readRecords() {
  const found = [];
  try {
    for (let at = 0; at < localStorage.length; at++) {
      const key = localStorage.key(at);
      if (key.startsWith(KEPT_UNDER)) found.push([key, JSON.parse(localStorage.getItem(key))]);
    }
  } catch {
    pageRecords.isKept = false;
  }
  // Keys begin with the time, so that their order is the order in which things were said.
  for (const [key, record] of found) pageRecords.byKey.set(key, record);
}

const recordsOf = (template) => [...pageRecords.byKey].sort(([a], [b]) => (a < b ? -1 : 1))
  .filter(([, record]) => record.template === template);

/** Keep a record; where the browser keeps nothing for a file it lives as long as the page. */
function keepRecord(record) {
  const key = `${KEPT_UNDER}${record.when}.${String(pageRecords.byKey.size).padStart(6, "0")}.${record.id}`;
  if (pageRecords.isKept) {
    try {
      localStorage.setItem(key, JSON.stringify(record));
    } catch (error) {
      if (error.name === "QuotaExceededError") throw new Error(say("page_full"), { cause: error });
      pageRecords.isKept = false;
    }
  }
  pageRecords.byKey.set(key, record);
}

const savedUnder = (template) => `saved.${facts.id}.${template}`;
const isSaved = (template, key) => key <= (kept.get(savedUnder(template)) ?? pageRecords.saved.get(template) ?? "");
const nUnsaved = (template) => recordsOf(template).filter(([key]) => !isSaved(template, key)).length;

const pageKeeper = {
  hasCandidates: (item) => Boolean(alternativesOf(review.template, item.key, item.field)),
  isShared: false,
  queue: async (template, field) => {
    const number = facts.templates.findIndex(({ name }) => name === template);
    const records = recordsOf(template).map(([, record]) => record), said = foldRecords(records);
    const names = facts.templates[number].fields, flat = facts.queue[number], left = [];
    for (let at = 0; at < flat.length; at += 2) {
      const [document, of] = [flat[at], flat[at + 1]];
      if (field && names[of] !== field) continue;
      const own = said.get(JSON.stringify([facts.docs[document].key, names[of]]));
      if (!own || !isSettled(own)) left.push([document, of, own]);
    }
    return {
      fields: names, version: "", n_left: left.length, n_documents: 0, n_done: 0, is_pending: false,
      items: left.slice(0, MOST_LISTED).map(([document, of, own]) => itemOf(document, number, of, own)),
      said: saidRecords(records), problem: pageRecords.isKept ? "" : say("keeps_nothing"),
    };
  },
  document: async (template, key) => {
    const number = facts.docs.findIndex((entry) => entry.key === key), entry = facts.docs[number];
    const block = await readBlock(number);
    pageRecords.block = { ...block, key, document: entry.id, title: entry.title || entry.id, n_characters: entry.chars };
    return pageRecords.block;
  },
  candidates: async (template, key, field) => {
    const characters = [...pageRecords.block.text];
    // Those behind what the page holds of a long text could not be read there.
    const values = (alternativesOf(template, key, field) ?? []).filter(([, end]) => end <= characters.length)
      .map(([start, end, probability]) => ({ start, end, probability, text: characters.slice(start, end).join("") }));
    return { values, is_many: isOfMany(template, field) };
  },
  say: async (body) => {
    const record = { ...body, when: new Date().toISOString() };
    if (body.verdict === "undo") {
      keepRecord({ ...record, id: newId() });
      return {};
    }
    const characters = [...pageRecords.block.text];
    record.values = body.spans.map(([start, end]) => (
      end <= characters.length ? characters.slice(start, end).join("") : valueAt(body, start, end)));
    record.is_many = isOfMany(body.template, body.field) || body.shown.length > 1;
    record.model = modelOf(body.template, body.field);
    keepRecord(record);
    return record;
  },
  stateOf: (one) => say(one.is_saved ? "saved" : "unsaved"),
  act: () => saveAct(),
};

/** The text of a value behind what the page holds of a long text. */
function valueAt({ template, key, field }, start, end) {
  const [number, at] = fieldNumbers(template, field);
  return facts.docs.filter((entry) => entry.key === key).flatMap(valuesOf)
    .find((one) => one.template === number && one.field === at && one.start === start && one.end === end).text;
}

/** The likeliest values of a field of a document; nothing where the report has none of it. */
function alternativesOf(template, key, field) {
  const [number, at] = fieldNumbers(template, field);
  return facts.alternatives[number]?.[`${facts.docs.findIndex((entry) => entry.key === key)}:${at}`];
}

/** A field of a document as the queue has it. */
function itemOf(document, template, field, said) {
  const entry = facts.docs[document];
  const values = valuesOf(entry).filter((value) => value.template === template && value.field === field);
  return {
    document: entry.id, key: entry.key, field: facts.templates[template].fields[field],
    values: values.map((value) => ({ ...value, probability: value.p, is_right: verdictOn(said, value) })),
  };
}

function fieldNumbers(template, field) {
  const number = facts.templates.findIndex(({ name }) => name === template);
  return [number, facts.templates[number].fields.indexOf(field)];
}

/** As the template says; else whether any document has several values. */
function isOfMany(template, field) {
  const [number, at] = fieldNumbers(template, field), told = facts.templates[number].is_many[at];
  const n = (entry) => entry.values.filter((row) => row.length > 2 && row[0] === number && row[1] === at).length;
  return told ?? facts.docs.some((entry) => n(entry) > 1);
}

function modelOf(template, field) {
  const [number, at] = fieldNumbers(template, field);
  return facts.templates[number].models[at];
}

/** What stands, the latest first, as the list of what was said has it. */
function saidRecords(records) {
  const undone = new Set(records.filter(({ verdict }) => verdict === "undo").map(({ of }) => of));
  const saved = new Set(recordsOf(review.template).filter(([key]) => isSaved(review.template, key)).map(([, { id }]) => id));
  return records.filter(({ id, verdict }) => verdict !== "undo" && !undone.has(id))
    .map((record) => ({ ...record, is_saved: saved.has(record.id) })).reverse();
}

/** What was last said of a field of a document, as words; "" for nothing. */
function saidOf(entry, template, field) {
  const records = recordsOf(facts.templates[template].name).map(([, record]) => record);
  const name = facts.templates[template].fields[field];
  const said = foldRecords(records).get(JSON.stringify([entry.key, name]))?.last;
  return said ? [say(`said_${said.verdict}`), said.verdict === "correct" && `\u201c${said.values.join("\u201d, \u201c")}\u201d`].filter(Boolean).join(": ") : "";
}

/** The button that saves all that was said of a template as a file, and what to do with the file. */
function saveAct() {
  const n = recordsOf(review.template).length, name = correctionsName();
  if (!n) return null;
  const unsaved = nUnsaved(review.template);
  return make("div", { class: "queue-act" },
    button(say("save_corrections", name), saveCorrections, { class: "primary", id: "save-corrections" }),
    make("p", { class: "quiet", role: "status" }, unsaved ? say("n_unsaved", spell(unsaved)) : say("all_saved")),
    !unsaved && command(`featpipe template learn TEMPLATE ${quoted(name)} --cache ${quoted(facts.cache)}`));
}

/** As a shell reads one word, whatever the name of a template holds. */
const quoted = (word) => (/^[\p{L}\p{N}_./-]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// Never NAME.corrections.jsonl: so is the file called that lies beside a template, and in its
// folder this one must not take its place. Browsers put "_" for what no name of a file may hold.
const correctionsName = () => (facts.templates.length > 1 ? `corrections-${review.template.replace(/[/\\:*?"<>|~]/g, "_")}.jsonl` : "corrections.jsonl");

function saveCorrections() {
  const records = recordsOf(review.template);
  const lines = records.map(([, record]) => `${JSON.stringify(record)}\n`);
  saveFile(lines, "application/jsonl", correctionsName());
  const [last] = records.at(-1);
  pageRecords.saved.set(review.template, last);
  kept.set(savedUnder(review.template), last);
  loadQueue();
}

/** Reopened for one field of a document, from wherever it is shown. */
function reviewField(document, template, field) {
  const entry = facts.docs[document], { name, fields } = facts.templates[template];
  const said = foldRecords(recordsOf(name).map(([, record]) => record)).get(JSON.stringify([entry.key, fields[field]]));
  Object.assign(review, { template: name, field: "", queue: null, item: itemOf(document, template, field, said) });
  openView("review");
  openItem(review.item);
}

if (!isService) {
  readRecords();
  addEventListener("storage", (event) => {
    if (!event.key?.startsWith("featpipe.")) return;
    readRecords();
    if (chosen.view === "review") loadQueue();
  });
  addEventListener("beforeunload", (event) => {
    if (!pageRecords.isKept && pageRecords.byKey.size) event.preventDefault();
  });
}
