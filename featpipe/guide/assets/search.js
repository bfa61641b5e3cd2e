// The search of the guide. What a term is worth in a section stands in index.js (GUIDE);
// termsOf does what terms_of in search.py does.
"use strict";

const stop = new Set(GUIDE.stop);
const terms = Object.keys(GUIDE.worths).sort((a, b) => a.length - b.length);

function stem(word) {
  if (word.length > 4 && word.endsWith("ies")) return word.slice(0, -3) + "y";
  for (const ending of ["ing", "ed", "es", "s"]) {
    if (word.length > ending.length + 2 && word.endsWith(ending) && !word.endsWith("ss")) {
      word = word.slice(0, -ending.length);
      break;
    }
  }
  const last = word.at(-1);
  if (word.length > 3 && last === word.at(-2) && "bgmnpt".includes(last)) word = word.slice(0, -1);
  return word.length > 3 && word.endsWith("e") ? word.slice(0, -1) : word;
}

function termsOf(text) {
  const found = [];
  for (const word of text.normalize("NFKC").toLowerCase().match(/[a-z0-9]+|[\u3400-\u9fff]+/g) ?? []) {
    if (word[0] > "z") {
      if (word.length === 1) found.push(word);
      for (let n = 0; n + 1 < word.length; n++) found.push(word.slice(n, n + 2));
    } else if (!stop.has(word)) {
      found.push(stem(word));
    }
  }
  return found;
}

// Of a word that is still being typed: those of the shortest term that begins with it.
function worthsOf(term) {
  const known = GUIDE.worths[term];
  if (known) return known;
  const longer = terms.find((one) => one.startsWith(term));
  return longer ? GUIDE.worths[longer] : [];
}

function find(words) {
  const scores = new Map();
  for (const term of new Set(termsOf(words))) {
    for (const [number, worth] of worthsOf(term)) {
      scores.set(number, (scores.get(number) ?? 0) + worth);
    }
  }
  const order = [...scores].sort(([a, x], [b, y]) => y - x || a - b);
  return order.slice(0, 10).map(([number]) => GUIDE.entries[number]);
}

const field = document.getElementById("words");
const list = document.getElementById("hits");
let chosen = -1;

function show() {
  const words = field.value.trim();
  const hits = words ? find(words) : [];
  list.replaceChildren(...hits.map(([href, page, section]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = href;
    link.append(section || page);
    if (section) link.append(Object.assign(document.createElement("small"), { textContent: page }));
    link.addEventListener("click", () => { list.hidden = true; });
    item.append(link);
    return item;
  }));
  if (words && !hits.length) {
    list.append(Object.assign(document.createElement("p"), { textContent: GUIDE.nothing }));
  }
  list.hidden = !words;
  field.setAttribute("aria-expanded", String(!list.hidden));
  chosen = -1;
}

function choose(step) {
  const links = [...list.querySelectorAll("a")];
  if (!links.length) return;
  chosen = Math.min(Math.max(chosen + step, 0), links.length - 1);
  links.forEach((link, number) => link.setAttribute("aria-selected", String(number === chosen)));
  links[chosen].scrollIntoView({ block: "nearest" });
}

field.addEventListener("input", show);
field.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") choose(1);
  else if (event.key === "ArrowUp") choose(-1);
  else if (event.key === "Enter") list.querySelectorAll("a")[Math.max(chosen, 0)]?.click();
  else if (event.key === "Escape") { field.value = ""; show(); }
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  }
});
document.addEventListener("click", (event) => {
  if (!event.target.closest(".search")) list.hidden = true;
});
// On a phone the contents would fill the first screen.
if (matchMedia("(max-width: 56rem)").matches) {
  document.querySelector(".contents").open = false;
}
