// The page of the service: a text or a file goes in, and its values light up.

const asked = { template: "", text: "", key: kept.get("key") || "", answer: null, problem: "", isBusy: false, needsKey: false };

function extractView() {
  if (asked.answer) return answerView();
  const area = make("textarea", {
    "aria-label": say("try_text"), placeholder: say("try_text"), rows: "14", spellcheck: "false",
    value: asked.text, on: { input: () => { asked.text = area.value; go.disabled = !area.value.trim(); } },
  });
  const file = make("input", { type: "file", id: "file", class: "file", on: { change: () => file.files.length && extractFile(file.files[0]) } });
  const go = button(say("try_go"), () => extractText(), { class: "primary", disabled: !asked.text.trim() });
  const names = facts.templates.map(({ name }) => [name, name]);
  if (names.length > 1) names.unshift(["auto", say("try_auto")], ["*", say("try_all")]);
  const root = make("div", { class: "try" },
    make("h2", {}, say("try_title")),
    make("p", { class: "quiet" }, say("try_about")),
    make("div", { class: "tools" },
      names.length ? choice(say("template"), names, asked.template, (name) => { asked.template = name; })
        : make("p", { class: "notice" }, asked.problem || say("try_none")),
      asked.needsKey && keyField()),
    area,
    make("div", { class: "tools" }, go, file, make("label", { for: "file", class: "button" }, say("try_file"))),
    make("p", { class: "notice", role: "alert", hidden: !asked.problem || !names.length }, asked.problem),
    asked.isBusy && make("p", { class: "busy", role: "status" }, say("try_busy")),
    make("div", { class: "curtain", "aria-hidden": "true" }, say("drop_here")));
  watchDrops(root);
  return root;
}

/** Where the key is typed; the templates are asked for again with it. */
function keyField() {
  return make("input", {
    type: "password", "aria-label": say("try_key"), placeholder: say("try_key"), value: asked.key, autocomplete: "off",
    on: { change: (event) => { asked.key = event.target.value; kept.set("key", asked.key); loadTemplates(); } },
  });
}

function watchDrops(root) {
  const cover = (isOver) => root.classList.toggle("is-over", isOver);
  root.addEventListener("dragover", (event) => { event.preventDefault(); cover(true); });
  root.addEventListener("dragleave", (event) => { if (!root.contains(event.relatedTarget)) cover(false); });
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    cover(false);
    const [file] = event.dataTransfer.files;
    if (file) extractFile(file);
    else {
      asked.text = event.dataTransfer.getData("text/plain");
      drawView();
    }
  });
}

function headers() {
  return asked.key ? { Authorization: `Bearer ${asked.key}` } : {};
}

function extractText() {
  const body = JSON.stringify({ text: asked.text, template: asked.template, with_text: true });
  return ask({ method: "POST", body, headers: { "Content-Type": "application/json", ...headers() } }, "");
}

function extractFile(file) {
  const body = new FormData();
  body.append("file", file, file.name);
  body.append("template", asked.template);
  body.append("with_text", "true");
  return ask({ method: "POST", body, headers: headers() }, file.name);
}

/** One extraction; while it runs nothing else is asked, and a refusal is shown in its own words. */
async function ask(request, name) {
  if (asked.isBusy) return;
  Object.assign(asked, { isBusy: true, problem: "" });
  drawView();
  try {
    const answer = await fetch("extract", request);
    const content = await answer.json().catch(() => null);
    if (!answer.ok) throw new Error(reasonOf(content, answer));
    asked.answer = entryOf(content, name);
  } catch (error) {
    asked.problem = say("failed_request", error instanceof TypeError ? say("no_answer") : error.message);
  }
  asked.isBusy = false;
  drawView();
}

function reasonOf(content, answer) {
  const { message, hint } = content?.error ?? {};
  return message ? [message, hint].filter(Boolean).join(" \u2013 ") : `${answer.status} ${answer.statusText}`;
}

/**
 * The answer of the service as an entry and a block, as a report has them. It holds one extraction
 * per template that was asked for: {template, fields: {name: [value, ...]}}.
 */
function entryOf(content, name) {
  facts.parts = [];
  const values = [], details = [];
  for (const { template, fields } of content.extractions) {
    const number = templateNumber(template);
    values.push([number, -1]);
    for (const [field, found] of Object.entries(fields)) {
      for (const value of found) {
        values.push([number, fieldNumber(number, field), value.text, value.value, value.unit, value.bound,
          value.probability, value.start, value.end, value.page, value.nearest, value.remark]);
        const parts = Object.entries(value.parts).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
        details.push([parts.flatMap(([part, weight]) => [facts.parts.push(part) - 1, weight]), value.places]);
      }
    }
  }
  const text = content.text ?? asked.text;
  const title = name || text.trim().split("\n", 1)[0].replace(/^#+ /, "").slice(0, 60);
  return {
    entry: { id: name || title, title, kind: "", chars: [...text].length, pages: 0, labels: [], notes: [], values },
    block: { text, details },
  };
}

/** A template or field that appeared since the list was read is taken in. */
function templateNumber(name) {
  const at = facts.templates.findIndex((known) => known.name === name);
  return at >= 0 ? at : facts.templates.push({ name, fields: [] }) - 1;
}

function fieldNumber(template, name) {
  const { fields } = facts.templates[template];
  return fields.includes(name) ? fields.indexOf(name) : fields.push(name) - 1;
}

function answerView() {
  const { entry, block } = asked.answer;
  const pane = documentPane(entry, block);
  const again = button(`\u2039 ${say("try_again")}`, () => { asked.answer = null; drawView(); }, { class: "back always" });
  return make("div", { class: "documents has-document single" },
    make("article", { class: "document", id: "document" }, make("div", { class: "neighbours" }, again), pane.root));
}

async function loadTemplates() {
  asked.problem = "";
  try {
    const answer = await fetch("templates", { headers: headers() });
    const content = await answer.json().catch(() => null);
    asked.needsKey = asked.needsKey || answer.status === 401 || answer.status === 403;
    if (!answer.ok) throw new Error(reasonOf(content, answer));
    facts.templates = content.templates.map(({ name, fields }) => ({ name, fields: fields.map((field) => field.name) }));
    asked.problem = content.problem;
    const offered = ["auto", "*", ...facts.templates.map(({ name }) => name)];
    if (facts.templates.length < 2) asked.template = facts.templates[0]?.name ?? "";
    else if (!offered.includes(asked.template)) asked.template = "auto";
  } catch (error) {
    asked.problem = say("failed_request", error instanceof TypeError ? say("no_answer") : error.message);
  }
  drawView();
}
