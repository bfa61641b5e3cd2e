// The text of a document with everything that was found in it.

const LINES_PER_CHUNK = 40;

/**
 * The text as an element. `block` holds text, headings, tables and pages; `spans` are
 * {start, end, kind: "value" | "place" | "entity", hue, label, ...} in code points.
 * `pieces` of the result are the highlighted elements, in order.
 */
function renderText(block, spans) {
  const text = block.text, units = unitsOf(text);
  const placed = spans.map((span) => ({ ...span, start: units(span.start), end: units(span.end) }));
  const painter = { text, pieces: cutPieces(placed, text.length), nodes: [] };
  const root = make("div", { class: "text", lang: "zh" });
  const structure = structureOf(block, units);
  let chunk = null, nLines = LINES_PER_CHUNK;
  for (const part of partsOf(text, structure)) {
    if (nLines >= LINES_PER_CHUNK) {
      chunk = make("div", { class: "chunk" });
      root.append(chunk);
      nLines = 0;
    }
    chunk.append(renderPart(painter, part));
    nLines += part.rows ? part.rows.length : 1;
  }
  if (painter.nodes.length) painter.nodes[0].tabIndex = 0;
  return { root, pieces: painter.nodes };
}

/** Headings, tables and pages by where they start, in UTF-16 units. */
function structureOf(block, units) {
  const headings = new Map((block.headings || []).map(([start, , level]) => [units(start), level]));
  const pages = (block.pages || []).map(([number, start]) => [units(start), number]);
  const tables = new Map();
  for (const [start, end, cells] of block.tables || []) {
    tables.set(units(start), {
      end: units(end),
      cells: cells.map(([row, column, a, b, tall, wide]) => ({ row, column, start: units(a), end: units(b), tall, wide })),
    });
  }
  return { headings, pages, tables };
}

/** The text as lines, tables and page marks, in order. */
function* partsOf(text, { headings, pages, tables }) {
  let at = 0, page = 0;
  while (at <= text.length) {
    for (; page < pages.length && pages[page][0] <= at; page++) yield { page: pages[page][1] };
    const table = tables.get(at);
    if (table && table.end > at && table.end <= text.length) {
      yield { rows: rowsOf(table.cells) };
      at = table.end + 1;
      continue;
    }
    let end = text.indexOf("\n", at);
    if (end < 0) end = text.length;
    if (end > at) yield { start: at, end, level: headings.get(at) };
    at = end + 1;
  }
}

function rowsOf(cells) {
  const rows = new Map();
  for (const cell of cells) {
    if (!rows.has(cell.row)) rows.set(cell.row, []);
    rows.get(cell.row).push(cell);
  }
  return [...rows.values()];
}

function renderPart(painter, part) {
  if (part.page !== undefined) return make("p", { class: "page-mark" }, say("page", spell(part.page)));
  if (part.rows) return renderTable(painter, part.rows);
  if (part.level) {
    return make("p", { class: `line heading level-${Math.min(part.level, 4)}`, role: "heading", "aria-level": Math.min(part.level + 2, 6), "data-start": part.start },
      paint(painter, part.start, part.end));
  }
  return make("p", { class: "line", "data-start": part.start }, paint(painter, part.start, part.end));
}

function renderTable(painter, rows) {
  const cap = (span) => (span > 1 && span <= 1000 ? span : null);
  return make("div", { class: "sheet", role: "region", tabindex: "0", "aria-label": "table" }, make("table", {},
    make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map((cell) =>
      make("td", { rowspan: cap(cell.tall), colspan: cap(cell.wide), "data-start": cell.start }, paint(painter, cell.start, cell.end))))))));
}

/** Text nodes and highlights of one stretch of the text. */
function paint(painter, start, end) {
  const { text, pieces, nodes } = painter, made = [];
  let at = start;
  for (let i = firstPiece(pieces, start); i < pieces.length && pieces[i].start < end; i++) {
    const a = Math.max(pieces[i].start, start), b = Math.min(pieces[i].end, end);
    if (a > at) made.push(text.slice(at, a));
    const node = highlight(text.slice(a, b), pieces[i].spans, a, b);
    nodes.push(node);
    made.push(node);
    at = b;
  }
  if (at < end) made.push(text.slice(at, end));
  return made;
}

/** One piece. Values are tinted and underlined once each; entities get a dotted line. */
function highlight(text, spans, start, end) {
  const values = spans.filter((span) => span.kind !== "entity").sort(byKind);
  const entity = spans.find((span) => span.kind === "entity");
  const first = values[0] || entity;
  const node = make(values.length ? "mark" : "span", {
    class: [
      "piece", values.length && (first.kind === "place" ? "place" : "value"), entity && "entity",
      first.start === start && "first", first.end === end && "last",
    ].filter(Boolean).join(" "),
    tabindex: "-1", role: "note", "aria-label": `${text}: ${spans.map((span) => span.label).join(", ")}`,
    vars: { hue: first.hue, tag: entity ? entity.hue : 0 },
  }, text);
  const lines = values.filter((span) => span.kind === "value");
  if (lines.length > 1) {
    node.style.boxShadow = lines
      .map((span, i) => `inset 0 -${2 + 3 * i}px 0 oklch(var(--line) 0.13 ${span.hue})${i < lines.length - 1 ? `, inset 0 -${3 + 3 * i}px 0 var(--paper)` : ""}`)
      .join(", ");
  }
  const named = lines.filter((span) => span.end === end).map((span) => span.label);
  if (named.length) node.dataset.names = named.join(" · ");
  node.spans = [...values, ...spans.filter((span) => span.kind === "entity")];
  return node;
}

function byKind(a, b) {
  return (a.kind === "place") - (b.kind === "place") || a.end - a.start - (b.end - b.start);
}

/** Hover and focus show the card; arrow keys go from highlight to highlight. */
function watchPieces(root, pieces) {
  const pieceAt = (event) => event.target.closest?.(".piece");
  root.addEventListener("mouseover", (event) => {
    const piece = pieceAt(event);
    if (piece) showCard(piece, piece.spans);
    else hideCard();
  });
  root.addEventListener("mouseleave", hideCard);
  root.addEventListener("focusin", (event) => {
    const piece = pieceAt(event);
    if (!piece) return;
    for (const other of root.querySelectorAll('.piece[tabindex="0"]')) other.tabIndex = -1;
    piece.tabIndex = 0;
    showCard(piece, piece.spans);
  });
  root.addEventListener("focusout", hideCard);
  root.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = pieces.indexOf(document.activeElement);
    if (!step || at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const next = pieces[at + step];
    if (next) {
      event.preventDefault();
      next.focus({ preventScroll: true });
      next.scrollIntoView({ block: "nearest" });
      showCard(next, next.spans);
    }
  });
}
