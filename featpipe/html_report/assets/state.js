// What the page knows (read-only) and what the person has chosen.

const facts = JSON.parse(document.getElementById("contents").textContent);
const isService = facts.mode === "service";

const chosen = {
  view: facts.has_review ? "review" : isService ? "extract" : "documents",
  document: -1,
  value: -1,
  find: "", template: "", onlyValues: false, onlyDoubtful: false, nShown: 200,
  hiddenLabels: new Set(), hasNames: true,
  table: { template: 0, find: "", onlyDoubtful: false, onlyMissing: false, byRecord: true, sort: -1, isDown: false },
  change: { field: "", find: "" },
  map: { kind: "documents", colour: "template" },
};

/** Settings that outlive the page, where the browser lets a page keep some. */
const kept = {
  get(name) {
    try { return localStorage.getItem(`featpipe.${name}`); } catch { return null; }
  },
  set(name, value) {
    try { localStorage.setItem(`featpipe.${name}`, value); } catch { /* a file may not: no harm */ }
  },
};

/** The value rows of the table of contents as objects. */
function valuesOf(entry) {
  return entry.values.filter((row) => row.length > 2).map((row, at) => ({
    at, template: row[0], field: row[1], text: row[2], value: row[3], unit: row[4], bound: row[5],
    p: row[6], start: row[7], end: row[8], page: row[9], nearest: row[10], remark: row[11],
  }));
}

/** Which templates were asked of a document, also where nothing was found. */
function templatesOf(entry) {
  return [...new Set(entry.values.map((row) => row[0]))];
}

/** A hue of its own for the n-th field: turning by the golden angle, neighbours differ most. */
function hueOf(number) {
  return (28 + number * 137.508) % 360;
}

const LABEL_HUES = { ORG: 250, PER: 330, LOC: 150, DATE: 60, MONEY: 95, PERCENT: 120, LAW: 20 };

/** The hue of an entity label; known labels keep theirs in every report. */
function labelHue(name, number) {
  return LABEL_HUES[name] ?? (200 + number * 137.508) % 360;
}

/** Ready when the browser has read the whole file, or `id` to its end: until something follows it, half of it may be there. */
function whenRead(id) {
  return new Promise((done) => {
    const found = document.getElementById(id);
    if (found?.nextSibling || document.readyState !== "loading") done(found);
    else document.addEventListener("DOMContentLoaded", () => done(document.getElementById(id)), { once: true });
  });
}

/** The text of a document and all that is drawn over it; read when it is opened. */
async function readBlock(number) {
  const node = await whenRead(`d${number}`);
  return node ? JSON.parse(node.textContent) : { text: null, details: [] };
}
