// What all that was said changes: seen before it is accepted, document by document.

const proposed = { answer: null, problem: "", note: "", timer: 0, isBusy: false };
const CHANGE_KINDS = ["up", "down", "new", "other", "gone"];
const KIND_CLASS = { up: "rose", down: "fell", new: "added", other: "changed", gone: "removed" };

function proposalView() {
  const root = make("div", { class: "changes", id: "proposal" });
  proposed.answer = null;
  setTimeout(() => { drawProposal(); loadProposal(); });
  return root;
}

/** Ask until all values are found. */
async function loadProposal() {
  clearTimeout(proposed.timer);
  if (!review.template) review.template = facts.templates[0]?.name ?? "";
  if (!review.template) return;
  try {
    proposed.answer = await keeper.changes(review.template);
    proposed.problem = proposed.answer.problem;
  } catch (error) {
    proposed.problem = say("failed_request", error.message);
  }
  if (chosen.view !== "proposal") return;
  drawProposal();
  if (!proposed.answer?.is_complete) proposed.timer = setTimeout(loadProposal, 400);
}

/** `12 values change in 9 documents: 10 up, 1 down, 1 new`. */
function changeLine(summary) {
  if (!summary.n_values) return say("no_change_line");
  const parts = CHANGE_KINDS.filter((kind) => summary[kind]).map((kind) => say(`c_${kind}`, spell(summary[kind])));
  return say("change_line", spell(summary.n_values), spell(summary.n_documents), parts.join(language === "zh" ? "，" : ", "));
}

function drawProposal() {
  const place = document.getElementById("proposal"), { answer } = proposed;
  if (!place) return;
  const isReady = answer?.is_complete;
  replace(place,
    make("header", { class: "section-head" },
      make("p", { class: "quiet" }, review.template),
      make("h2", { id: "change-line", role: "status" }, !answer ? say("loading")
        : !answer.is_pending ? say("nothing_new")
          : isReady ? changeLine(answer.summary) : say("working", spell(answer.n_done), spell(answer.n_documents))),
      isReady && answer.is_pending && make("p", { class: "quiet" }, `${say("not_accepted")} ${say("took", spell(answer.seconds, 1), spell(answer.n_encoded))}`),
      answer?.lost.length > 0 && make("p", { class: "notice" }, say("lost", spell(answer.lost.length)), answer.lost.slice(0, 20).join(", "))),
    proposed.problem && make("p", { class: "notice", role: "alert" }, proposed.problem),
    make("div", { class: "tools" },
      isReady && answer.is_pending && button(say("accept", answer.version), acceptProposal, { class: "primary", id: "accept", disabled: proposed.isBusy }),
      button(say("back_to_review"), () => openView("review"), { class: "button" }),
      make("span", { class: "quiet", role: "status", id: "accept-note" }, proposed.note)),
    isReady && answer.is_pending && make("ul", { class: "change-list" }, answer.changes.map(proposedChange)));
}

function proposedChange(change) {
  const kind = KIND_CLASS[change.kind];
  const pairs = (values) => values.map(({ text, probability }) => [text, probability]);
  return make("li", { class: `change ${kind}` },
    make("div", { class: "change-head" },
      make("span", { class: `badge ${kind}` }, say(`k_${change.kind}`)), make("strong", {}, change.field),
      button(change.document, () => openChanged(change), { class: "link" }),
      change.is_said && make("span", { class: "quiet" }, say("told"))),
    make("div", { class: "sides" }, side(say("before"), "old", pairs(change.old), pairs(change.new)), side(say("once_accepted"), "new", pairs(change.new), pairs(change.old))));
}

/** Look at a changed value in its document, as it would be, and say something of it. */
function openChanged(change) {
  review.item = { document: change.document, key: change.key, field: change.field, doubt: 0, values: change.new.map((value) => ({ ...value, is_right: null })) };
  openView("review");
  openItem(review.item);
}

async function acceptProposal() {
  const { answer } = proposed;
  proposed.isBusy = true;
  drawProposal();
  try {
    const done = await keeper.accept({ template: review.template, through: answer.through, who: review.who });
    proposed.note = say("accepted_as", done.version);
    review.queue = null;
  } catch (error) {
    proposed.problem = say("failed_request", error.message);
  }
  proposed.isBusy = false;
  await loadProposal();
}
