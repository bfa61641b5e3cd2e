// The page of the service: a text or a file goes in, and its values light up.

const asked = { template: "", text: "", key: kept.get("key") || "", answer: null, problem: "", isBusy: false };

function extractView() {
  if (asked.answer) return answerView();
  const area = make("textarea", {
    "aria-label": say("try_text"), placeholder: say("try_text"), rows: "14", spellcheck: "false",
    value: asked.text, on: { input: () => { asked.text = area.value; go.disabled = !area.value.trim(); } },
  });
  const file = make("input", { type: "file", id: "file", class: "file", on: { change: () => file.files.length && extractFile(file.files[0]) } });
  const go = button(say("try_go"), () => extractText(), { class: "primary", disabled: !asked.text.trim() });
  const names = facts.templates.map(({ name }) => [name, name]);
  const root = make("div", { class: "try" },
    make("h2", {}, say("try_title")),
    make("p", { class: "quiet" }, say("try_about")),
    make("div", { class: "tools" },
      names.length ? choice(say("template"), names, asked.template, (name) => { asked.template = name; })
        : make("p", { class: "notice" }, asked.problem || say("try_none")),
      asked.needsKey && make("input", {
        type: "password", "aria-label": say("try_key"), placeholder: say("try_key"), value: asked.key, autocomplete: "off",
        on: { change: (event) => { asked.key = event.target.value; kept.set("key", asked.key); loadTemplates(); } },
      })),
    area,
    make("div", { class: "tools" }, go, file, make("label", { for: "file", class: "button" }, say("try_file"))),
    make("p", { class: "notice", role: "alert", hidden: !asked.problem || !names.length }, asked.problem),
    asked.isBusy && make("p", { class: "busy", role: "status" }, say("try_busy")),
    make("div", { class: "curtain", "aria-hidden": "true" }, say("drop_here")));
  watchDrops(root);
  return root;
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
  const body = JSON.stringify({ text: asked.text, template: asked.template });
  return ask({ method: "POST", body, headers: { "Content-Type": "application/json", ...headers() } }, "");
}

function extractFile(file) {
  const body = new FormData();
  body.append("file", file, file.name);
  body.append("template", asked.template);
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
  const reason = content?.error?.message ?? content?.message ?? content?.detail;
  if (Array.isArray(reason)) return reason.map((one) => one.msg ?? String(one)).join("; ");
  return typeof reason === "string" && reason ? reason : `${answer.status} ${answer.statusText}`;
}

/** The answer of the service as an entry and a block, as a report has them. */
function entryOf(content, name) {
  const template = facts.templates.findIndex((known) => known.name === (content.template ?? asked.template));
  const fields = facts.templates[template].fields;
  const given = Array.isArray(content.values) ? content.values
    : Object.entries(content.fields || {}).flatMap(([field, values]) => values.map((value) => ({ field, ...value })));
  facts.parts = [];
  const values = [[template, -1]], details = [];
  for (const value of given) {
    if (!fields.includes(value.field)) fields.push(value.field);
    values.push([template, fields.indexOf(value.field), value.text, value.value ?? "", value.unit ?? "", value.bound ?? "",
      value.probability, value.start, value.end, value.page ?? null, value.nearest ?? ""]);
    const parts = Object.entries(value.parts || {}).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    details.push([parts.flatMap(([part, weight]) => [facts.parts.push(part) - 1, weight]), value.places || []]);
  }
  const text = content.text ?? asked.text;
  const title = name || content.title || text.trim().split("\n", 1)[0].slice(0, 60);
  return {
    entry: { id: name || title, title, kind: content.media_type ?? "", chars: [...text].length, pages: 0, labels: [], notes: content.notes ?? [], values },
    block: { text, details, entities: [], headings: content.headings ?? [], tables: content.tables ?? [], pages: content.pages ?? [] },
  };
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
    const listed = Array.isArray(content) ? content : content.templates;
    facts.templates = listed.map((template) => ({
      name: template.name, fields: template.fields.map((field) => field.name ?? field),
    }));
    if (!facts.templates.some(({ name }) => name === asked.template)) asked.template = facts.templates[0]?.name ?? "";
  } catch (error) {
    asked.problem = say("failed_request", error instanceof TypeError ? say("no_answer") : error.message);
  }
  drawView();
}
