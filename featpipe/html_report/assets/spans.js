// Spans over a text, that may overlap in any way, become disjoint pieces, each with all the spans
// that cover it. Offsets come as code points and leave as the UTF-16 units JavaScript counts in.

/** A function from code points to UTF-16 units; the identity where the two agree. */
function unitsOf(text) {
  if (!/[\ud800-\udbff][\udc00-\udfff]/.test(text)) return (offset) => offset;
  const units = [];
  let at = 0;
  for (const character of text) {
    units.push(at);
    at += character.length;
  }
  units.push(at);
  return (offset) => units[Math.min(Math.max(offset, 0), units.length - 1)];
}

/**
 * Pieces {start, end, spans}, in order, without those that no span covers.
 * A span outside the text is cut to it; one that is empty then is left out.
 */
function cutPieces(spans, length) {
  const events = [];
  for (const span of spans) {
    const start = Math.max(0, span.start), end = Math.min(length, span.end);
    if (start < end) events.push([start, 1, span], [end, 0, span]);
  }
  // Ends before starts, so that spans that touch do not share an empty piece.
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const pieces = [], open = new Set();
  let last = 0;
  for (const [at, isStart, span] of events) {
    if (at > last && open.size) pieces.push({ start: last, end: at, spans: [...open] });
    last = at;
    if (isStart) open.add(span);
    else open.delete(span);
  }
  return pieces;
}

/** Number of the first piece that ends behind `offset`. */
function firstPiece(pieces, offset) {
  let low = 0, high = pieces.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pieces[middle].end <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
