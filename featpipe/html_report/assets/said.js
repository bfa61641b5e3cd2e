// What corrections amount to, for the report, which has no service to ask. The same rules as in
// `featpipe.extraction.corrections_fold`, which decides in the end.

/** Subject -> {right, wrong: places, isNone, last: the latest correction}, of records in order. */
function foldRecords(records) {
  const undone = new Set(records.filter(({ verdict }) => verdict === "undo").map(({ of }) => of));
  const found = new Map();
  for (const record of records) {
    if (record.verdict === "undo" || undone.has(record.id)) continue;
    const subject = subjectOf(record);
    found.set(subject, afterRecord(found.get(subject), record));
  }
  return found;
}

const placeOfSpan = ([start, end]) => `${start}:${end}`;

function afterRecord(before, record) {
  const shown = record.shown.map(placeOfSpan), wrong = new Set(before?.wrong);
  if (record.verdict === "none") {
    return { right: new Set(), wrong: new Set([...wrong, ...shown]), isNone: true, last: record };
  }
  const right = new Set(record.is_many ? before?.right : []);
  if (record.about) {
    right.delete(placeOfSpan(record.about));
    wrong.add(placeOfSpan(record.about));
  }
  for (const span of record.spans) right.add(placeOfSpan(span));
  if (!record.is_many && record.spans.length) for (const place of shown) wrong.add(place);
  for (const place of right) wrong.delete(place);
  return { right, wrong, isNone: false, last: record };
}

/** Whether there is nothing more to ask about what was shown. */
function isSettled({ right, wrong, isNone, last }) {
  return isNone || last.shown.map(placeOfSpan).every((place) => right.has(place) || wrong.has(place));
}

/** true, false, or null for nothing said, of the value at a place. */
function verdictOn(said, value) {
  const place = placeOfSpan([value.start, value.end]);
  return said?.right.has(place) ? true : said?.wrong.has(place) ? false : null;
}
