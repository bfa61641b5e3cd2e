// From what a person selects on the screen to places in the text of a document, and by keyboard:
// from words that are typed to the places where they stand.

/** The number of code points before a UTF-16 offset; the inverse of `unitsOf`. */
function pointsOf(text) {
  if (!/[\ud800-\udbff][\udc00-\udfff]/.test(text)) return (offset) => offset;
  return (offset) => [...text.slice(0, offset)].length;
}

/** The UTF-16 offset of a point of the page in the text it shows, -1 for a point elsewhere. */
function offsetAt(node, offset) {
  const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
  const part = element?.closest("[data-start]");
  if (!part) return -1;
  const range = document.createRange();
  range.setStart(part, 0);
  range.setEnd(node, offset);
  return Number(part.dataset.start) + range.toString().length;
}

/** What is selected within `root` as {start, end} in code points, without blanks around it; or null. */
function selectedSpan(root, text) {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  if (!root.contains(range.startContainer) || !root.contains(range.endContainer)) return null;
  let start = offsetAt(range.startContainer, range.startOffset), end = offsetAt(range.endContainer, range.endOffset);
  if (start < 0 || end <= start) return null;
  while (start < end && /\s/.test(text[start])) start++;
  while (end > start && /\s/.test(text[end - 1])) end--;
  const points = pointsOf(text);
  return start < end ? { start: points(start), end: points(end) } : null;
}

/** The places of `words` in a text as {start, end} in code points; in any case, however they are spaced. */
function placesOf(words, text, most = 500) {
  const parts = [...words.replace(/\s+/g, "")].map((c) => c.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!parts.length) return [];
  const points = pointsOf(text), found = [];
  for (const match of text.matchAll(new RegExp(parts.join("\\s*"), "giu"))) {
    found.push({ start: points(match.index), end: points(match.index + match[0].length) });
    if (found.length >= most) break;
  }
  return found;
}
