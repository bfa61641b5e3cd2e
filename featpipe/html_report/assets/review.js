// The review: a queue of values to look at, the most useful first. Who keeps what is said is behind
// `keeper`: the service, asked over HTTP, or the page of a report. Everything else is the same.

const keeper = isService ? serviceKeeper : pageKeeper;

const review = {
  template: "", field: "", who: kept.get("who") || "",
  queue: null, problem: "", note: "",
  item: null, block: null, candidates: null, hasCandidates: false, value: 0, picked: null, find: "", match: 0,
  mine: [], skipped: new Set(), timer: 0, turn: 0, isBusy: false, isSaidOpen: false,
};

function reviewView() {
  if (!facts.templates.length) {
    return make("div", { class: "try" }, make("h2", {}, say("review")),
      asked.needsKey && make("div", { class: "tools" }, keyField()),
      make("p", { class: "notice", role: "alert" }, asked.problem || say("try_none")));
  }
  if (!facts.templates.some(({ name }) => name === review.template)) review.template = facts.templates[0].name;
  const root = make("div", { class: "documents review" },
    make("nav", { class: "list", "aria-label": say("review") }, queueFilters(), make("div", { id: "queue", class: "queue" })),
    make("article", { class: "document", id: "review-document" }));
  root.addEventListener("keydown", (event) => { if (event.key === "Escape") dropPick(); });
  setTimeout(() => { drawQueue(); drawReviewed(); loadQueue(); });
  return root;
}

function queueFilters() {
  const fields = facts.templates.find(({ name }) => name === review.template)?.fields ?? [];
  const again = () => { Object.assign(review, { queue: null, item: null, block: null }); drawView(); };
  return make("div", { class: "filters" },
    facts.templates.length > 1 && choice(say("template"), facts.templates.map(({ name }) => [name, name]), review.template,
      (name) => { review.template = name; review.field = ""; again(); }),
    choice(say("fields"), [["", say("all_fields")], ...fields.map((name) => [name, name])], review.field,
      (name) => { review.field = name; again(); }),
    make("input", {
      type: "text", class: "who", maxlength: 100, value: review.who, "aria-label": say("your_name"), placeholder: say("your_name"), autocomplete: "name",
      on: { input: (event) => { review.who = event.target.value; kept.set("who", review.who); } },
    }));
}

/** Ask for the queue now, and again later: it grows while values are found, and others review, too. */
async function loadQueue() {
  clearTimeout(review.timer);
  const { template, field } = review, turn = ++review.turn;
  try {
    const answer = await keeper.queue(template, field);
    if (turn !== review.turn) return;
    review.queue = answer;
    review.problem = answer.problem;
  } catch (error) {
    if (turn !== review.turn) return;
    review.problem = say("failed_request", error.message);
  }
  if (chosen.view !== "review") return;
  const isNew = !review.item;
  if (isNew && !isNarrow()) review.item = nextItem();
  drawQueue();
  if (isNew && review.item) openItem(review.item, false);
  else if (!review.item) drawReviewed();
  if (!keeper.isShared) return;
  const isGrowing = !review.queue || review.queue.n_done < review.queue.n_documents;
  review.timer = setTimeout(loadQueue, isGrowing ? 800 : 15000);
}

const subjectOf = (item) => JSON.stringify([item.key, item.field]);

/** The first item behind those that were put off. */
function nextItem(but) {
  const items = review.queue?.items ?? [];
  return items.find((item) => subjectOf(item) !== but && !review.skipped.has(subjectOf(item)))
    ?? items.find((item) => subjectOf(item) !== but) ?? null;
}

function drawQueue() {
  const place = document.getElementById("queue");
  if (!place) return;
  const held = document.activeElement?.closest?.("#queue [data-subject]")?.dataset.subject;
  const { queue } = review;
  const isReading = queue && queue.n_done < queue.n_documents;
  replace(place,
    review.problem && make("p", { class: "notice", role: "alert" }, review.problem),
    make("p", { class: "count quiet", role: "status" }, queue
      ? [say("n_left", spell(queue.n_left)), isReading && say("n_read", spell(queue.n_done), spell(queue.n_documents)), queue.version && say("version", queue.version)].filter(Boolean).join(" · ")
      : say("review_reading")),
    keeper.act(queue),
    queue?.said.length > 0 && saidList(queue.said),
    make("ul", { class: "items" }, (queue?.items ?? []).map(queueEntry),
      queue && !queue.items.length && !isReading && make("li", { class: "empty" }, say("review_none"))));
  if (held) [...place.querySelectorAll("[data-subject]")].find((node) => node.dataset.subject === held)?.focus();
}

function queueEntry(item) {
  const [first] = item.values, isThis = review.item && subjectOf(item) === subjectOf(review.item);
  return make("li", {}, make("button", {
    type: "button", class: "item", "data-subject": subjectOf(item), "aria-current": isThis ? "true" : null,
    on: { click: () => openItem(item) },
  },
  make("span", { class: "item-title" }, item.field, make("span", { class: first ? "item-value" : "item-value quiet" }, first ? first.text : say("gap"))),
  make("span", { class: "item-id quiet", title: item.document }, shorten(item.document)),
  first && make("span", { class: `item-grade ${grade(first.probability)}`, title: say("probability") }, `${say(grade(first.probability))} ${chance(first.probability)}`)));
}

/** What was said, the latest first; each can be taken back. */
function saidList(said) {
  return make("details", { class: "said", open: review.isSaidOpen, on: { toggle: (event) => { review.isSaidOpen = event.target.open; } } }, make("summary", {}, say("said_before", spell(said.length))),
    make("ul", {}, said.map((one) => make("li", {},
      make("span", {},
        make("strong", {}, one.field ? `${one.field}: ` : ""), say(`said_${one.verdict}`), one.values.length ? ` \u201c${one.values.join("\u201d, \u201c")}\u201d` : "", one.verdict === "accept" ? ` ${one.version}` : "",
        make("span", { class: "quiet said-foot" }, [one.who, new Date(one.when).toLocaleString(language === "zh" ? "zh-CN" : "en-GB"), shorten(one.document),
          keeper.stateOf(one)].filter(Boolean).join(" · "))),
      button(say("v_undo"), () => takeBack(one.id), { class: "link", "aria-label": `${say("v_undo")}: ${one.field} ${say(`said_${one.verdict}`)}` })))));
}

/** Show an item: its document, with its value in sight. */
async function openItem(item, shallFocus = true) {
  const isSame = review.block?.key === item.key;
  Object.assign(review, { item, candidates: null, hasCandidates: false, picked: null, find: "", match: 0 });
  review.value = Math.max(0, item.values.findIndex((value) => value.is_right === null));
  if (!isSame) review.block = null;
  for (const node of document.querySelectorAll("#queue [data-subject]")) {
    if (node.dataset.subject === subjectOf(item)) node.setAttribute("aria-current", "true");
    else node.removeAttribute("aria-current");
  }
  drawReviewed();
  const turn = subjectOf(item);
  try {
    if (!isSame) {
      const block = await keeper.document(review.template, item.key);
      if (turn !== subjectOf(review.item ?? item)) return;
      review.block = block;
    }
    drawReviewed();
    if (shallFocus) document.getElementById("verdict")?.focus({ preventScroll: true });
    review.candidates = await keeper.candidates(review.template, item.key, item.field);
    if (turn !== subjectOf(review.item ?? item)) return;
    drawVerdict();
    if (review.hasCandidates) drawReviewedText(true);
  } catch (error) {
    if (turn !== subjectOf(review.item ?? item)) return;
    review.note = say("failed_request", error.message);
    drawVerdict();
  }
}

const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Keep a verdict on the value in question, then go on to the next. */
async function tell(verdict, spans = [], isFurther = false) {
  const { item } = review, value = item?.values[review.value];
  if (!item || review.isBusy) return;
  const about = value && verdict !== "none" && !isFurther ? [value.start, value.end] : null;
  const places = verdict === "confirm" ? [about] : spans;
  const body = {
    id: newId(),
    template: review.template, verdict, who: review.who, document: item.document, key: item.key, field: item.field,
    spans: places, about, shown: item.values.map(({ start, end }) => [start, end]),
  };
  const kept = await send(body);
  if (!kept) return;
  review.mine.push(kept.id);
  review.note = say("kept_note", `${item.field}: ${kept.values.join(", ") || say(`said_${verdict}`)}`);
  if (value && about) value.is_right = verdict === "confirm";
  const isOpen = verdict !== "none" && item.values.some((one) => one.is_right === null);
  const following = isOpen ? null : nextItem(subjectOf(item));
  if (!isOpen && review.queue) {
    review.queue.items = review.queue.items.filter((one) => subjectOf(one) !== subjectOf(item));
    review.queue.n_left -= 1;
    review.queue.is_pending = true;
  }
  if (isOpen) openItem(item);
  else moveTo(following);
  loadQueue();
}

function moveTo(item) {
  if (item) openItem(item);
  else {
    Object.assign(review, { item: null, block: null });
    drawQueue();
    drawReviewed();
  }
}

async function takeBack(id) {
  const of = id ?? review.mine.at(-1);
  if (!of || !(await send({ template: review.template, verdict: "undo", who: review.who, of }))) return;
  review.mine = review.mine.filter((one) => one !== of);
  review.note = say("undone_note");
  await loadQueue();
  drawVerdict();
}

/** The answer to what was sent; null where it was not kept, and then the page says so. */
async function send(body) {
  review.isBusy = true;
  try {
    return await keeper.say(body);
  } catch (error) {
    review.note = say("not_kept", error.message);
    drawVerdict();
    return null;
  } finally {
    review.isBusy = false;
  }
}

function putOff() {
  if (!review.item) return;
  review.skipped.add(subjectOf(review.item));
  moveTo(nextItem(subjectOf(review.item)));
}

const KEYS = {
  y: () => tellRight(), n: () => tell("none"), x: () => review.item?.values.length && tell("reject"),
  a: () => review.item && keeper.hasCandidates(review.item) && toggleCandidates(), u: () => takeBack(), s: () => putOff(), v: () => turnValue(),
  "/": () => document.getElementById("find-text")?.focus(),
  Enter: () => review.picked && tell("correct", [[review.picked.start, review.picked.end]]),
  "+": () => review.picked && review.candidates?.is_many && tell("correct", [[review.picked.start, review.picked.end]], true),
};

addEventListener("keydown", (event) => {
  if (chosen.view !== "review" || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.("input, select, textarea, summary")) return;
  if (event.key === "Enter" && event.target.closest?.("button")) return;
  const press = /^[1-9]$/.test(event.key) ? () => takeCandidate(Number(event.key) - 1) : KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!press || !review.item && event.key !== "u") return;
  event.preventDefault();
  press();
});
