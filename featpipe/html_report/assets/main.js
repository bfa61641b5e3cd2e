// The frame of the page: its views, its language, its theme, and the address that remembers them.

const VIEWS = {
  extract: extractView, documents: documentsView, fields: fieldsView, changes: changesView, runs: runsView, map: mapView,
  review: reviewView, proposal: proposalView, quality: qualityView,
};
const names = facts.has_review ? ["review", "proposal", "extract"] : isService ? ["extract"]
  : ["documents", "fields", facts.queue.some((listed) => listed.length) && "review", facts.evaluations.length > 0 && "quality", "changes", "runs", "map"].filter(Boolean);

function drawPage() {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  document.title = [facts.cache, say("product"), "featpipe"].filter(Boolean).join(" \u2013 ");
  const tabs = names.map((name) => button(
    say(name),
    () => openView(name), {
      role: "tab", id: `tab-${name}`, class: "tab", "aria-controls": "view",
      "aria-selected": String(name === chosen.view), tabindex: name === chosen.view ? "0" : "-1",
    }));
  if (facts.changes) {
    const tab = tabs[names.indexOf("changes")];
    tab.append(make("span", { class: "tab-count" }, spell(facts.changes.items.length)));
  }
  replace(document.getElementById("app"),
    make("a", { class: "skip", href: "#view" }, say("skip")),
    make("header", { class: "top" },
      make("div", { class: "brand" }, mark(), make("h1", {}, say("product")), facts.cache && make("span", { class: "quiet" }, facts.cache)),
      tabs.length > 1 && make("div", { class: "tabs", role: "tablist", on: { keydown: moveTab } }, tabs),
      make("div", { class: "switches" }, themeButton(),
        button(say("other_language"), switchLanguage, { class: "switch", id: "language", title: say("other_language_title"), lang: language === "zh" ? "en" : "zh-Hans" }))),
    make("main", { id: "view", role: tabs.length > 1 ? "tabpanel" : null, "aria-labelledby": tabs.length > 1 ? `tab-${chosen.view}` : null, tabindex: "-1" }),
    facts.made && make("footer", { class: "foot quiet" }, say("made", facts.made)),
    card);
  drawView();
}

/** Three lines, one of them marked. */
function mark() {
  return draw("svg", { class: "mark", viewBox: "0 0 24 24", "aria-hidden": "true" },
    draw("rect", { class: "mark-lit", x: 3, y: 9, width: 13, height: 6, rx: 1.5 }),
    draw("path", { class: "mark-line", d: "M3 5h18M5.5 12h8M3 19h12" }));
}

function drawView() {
  hideCard();
  for (const tab of document.querySelectorAll(".tab")) {
    const isThis = tab.id === `tab-${chosen.view}`;
    tab.setAttribute("aria-selected", String(isThis));
    tab.tabIndex = isThis ? 0 : -1;
  }
  const view = document.getElementById("view");
  view.className = `view-${chosen.view}`;
  if (names.length > 1) view.setAttribute("aria-labelledby", `tab-${chosen.view}`);
  replace(view, VIEWS[chosen.view]());
}

function openView(name) {
  chosen.view = name;
  remember();
  drawView();
}

function moveTab(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  openView(names[(names.indexOf(chosen.view) + step + names.length) % names.length]);
  document.getElementById(`tab-${chosen.view}`).focus();
}

// ---- language and theme

function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  kept.set("language", language);
  drawPage();
  document.getElementById("language").focus();
}

const THEMES = ["auto", "light", "dark"];
let theme = THEMES.includes(kept.get("theme")) ? kept.get("theme") : "auto";

function themeButton() {
  const label = () => `${say("theme")}: ${say(`theme_${theme}`)}`;
  const control = button(themeSign(), () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    kept.set("theme", theme);
    applyTheme();
    replace(control, themeSign());
    control.title = label();
    control.setAttribute("aria-label", label());
  }, { class: "switch", id: "theme", title: label(), "aria-label": label() });
  return control;
}

function themeSign() {
  const half = draw("path", { d: "M12 4a8 8 0 0 1 0 16z", class: "sign-fill" });
  const disc = draw("circle", { cx: 12, cy: 12, r: 8, class: theme === "dark" ? "sign-fill" : "sign-line" });
  return draw("svg", { class: "sign", viewBox: "0 0 24 24", "aria-hidden": "true" }, disc, theme === "auto" ? half : null);
}

function applyTheme() {
  document.documentElement.dataset.theme = theme;
}

// ---- the address: #view, or #documents/7/2 for the seventh document and its second value

function remember() {
  const parts = [chosen.view];
  if (chosen.view === "documents" && chosen.document >= 0) {
    parts.push(chosen.document);
    if (chosen.value >= 0) parts.push(chosen.value);
  }
  const address = `#${parts.join("/")}`;
  if (location.hash !== address) history.pushState(null, "", address);
}

function recall() {
  const [view, number, value] = location.hash.slice(1).split("/");
  if (!names.includes(view)) return;
  chosen.view = view;
  const within = (n, most) => (/^\d+$/.test(n ?? "") && Number(n) < most ? Number(n) : -1);
  chosen.document = within(number, facts.docs?.length ?? 0);
  chosen.value = within(value, 1e9);
}

addEventListener("popstate", () => { recall(); drawView(); });
addEventListener("keydown", (event) => { if (event.key === "Escape") hideCard(); });
addEventListener("scroll", hideCard, { passive: true });

const wanted = new URLSearchParams(location.search).get("lang") || kept.get("language") || navigator.language || "en";
language = wanted.toLowerCase().startsWith("zh") ? "zh" : "en";
applyTheme();
recall();
drawPage();
if (isService) loadTemplates();
