// Elements are made from names and strings. A string always becomes a text node: nothing here, or
// anywhere in this script, parses markup, so a document can hold what it likes.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listen] of Object.entries(value)) node.addEventListener(event, listen);
    } else if (name === "vars") {
      for (const [key, given] of Object.entries(value)) node.style.setProperty(`--${key}`, given);
    } else if (name === "value" || name === "checked" || name === "hidden") {
      node[name] = value;
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element: `make("p", {class: "x"}, "text", other)`. */
function make(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element. */
function draw(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function replace(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** The same around one child. If it is there it is not touched: it keeps focus, caret and what an input method composes. */
function replaceAround(node, kept, before, after) {
  if (kept.parentNode !== node) node.replaceChildren(kept);
  for (const child of [...node.childNodes]) if (child !== kept) child.remove();
  kept.before(...before.filter(Boolean));
  kept.after(...after);
}

/** A button that looks like one. */
function button(label, press, properties) {
  return make("button", { type: "button", ...properties, on: { click: press } }, label);
}

/** A labelled choice. `options`: [value, label]. */
function choice(label, options, value, change, properties) {
  const select = make(
    "select",
    { "aria-label": label, ...properties, on: { change: () => change(select.value) } },
    options.map(([key, text]) => make("option", { value: key }, text)),
  );
  select.value = value;
  return select;
}

/** A check box with its label behind it. */
function check(label, checked, change) {
  const box = make("input", { type: "checkbox", checked, on: { change: () => change(box.checked) } });
  return make("label", { class: "check" }, box, make("span", {}, label));
}

/** A text field that reports what is typed. */
function search(label, value, change) {
  const box = make("input", {
    type: "search", placeholder: label, "aria-label": label, autocomplete: "off",
    spellcheck: "false", value, on: { input: () => change(box.value) },
  });
  return box;
}

/** A command to type, as it is typed. */
function command(text) {
  return make("code", { class: "command" }, text);
}

/** A probability on the plain scale, with the number behind it. */
function meter(p) {
  return make("span", { class: "meter" },
    make("span", { class: "track", "aria-hidden": "true" },
      make("span", { class: `bar ${grade(p)}`, vars: { share: Math.max(0.02, p) } })),
    make("span", { class: `grade-word text-${grade(p)}` }, say(grade(p))),
    make("span", { class: "number quiet" }, chance(p)));
}

/** The plain scale, by the number as it is written: what reads 90 % is sure. */
function grade(p) {
  const written = Math.round(p * 100);
  return written >= 90 ? "sure" : written >= 60 ? "likely" : "doubtful";
}

/** Hand over a file to keep. */
function saveFile(parts, type, name) {
  const link = make("a", { href: URL.createObjectURL(new Blob(parts, { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
