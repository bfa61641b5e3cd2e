// The space as a plane: one point per document, or per sentence in which a value stands.

const WIDTH = 1400;
const MARGIN = 60;

function mapView() {
  const map = facts.maps.find(({ kind }) => kind === chosen.map.kind) || facts.maps[0];
  if (!map) return make("p", { class: "empty" }, say("no_map"));
  const groups = groupsOf(map);
  const root = make("div", { class: "map" },
    make("div", { class: "tools" },
      facts.maps.length > 1 && choice(say("map"), facts.maps.map(({ kind }) => [kind, say(`map_${kind}`)]), map.kind,
        (kind) => { chosen.map.kind = kind; drawView(); }),
      map.kind === "documents" && choice(say("colour_by"),
        [["template", `${say("colour_by")}: ${say("template")}`], ["kind", `${say("colour_by")}: ${say("kind")}`]],
        chosen.map.colour, (value) => { chosen.map.colour = value; drawView(); })),
    make("p", { class: "quiet about" }, say("map_about", facts.space, percent(map.shares[0]), percent(map.shares[1])),
      say(`map_${map.kind}_about`)),
    make("div", { class: "plane" }, drawPlane(map, groups), legendOf(groups)),
    make("p", { class: "quiet about" }, say("map_keys")));
  return root;
}

/** Which colour each point has, and what the colours mean, the most frequent first. */
function groupsOf(map) {
  const nameOf = ({ 2: number, 3: template, 4: field }) => {
    if (map.kind === "sentences") return facts.templates[template].fields[field];
    const entry = facts.docs[number];
    if (chosen.map.colour === "kind") return entry.kind || say("none");
    const [first] = templatesOf(entry);
    return first === undefined ? say("none") : facts.templates[first].name;
  };
  const names = map.points.map(nameOf), counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  const listed = [...counts].sort((a, b) => b[1] - a[1]);
  const hues = new Map(listed.map(([name], i) => [name, hueOf(i)]));
  return { names, listed, hues, hidden: new Set() };
}

function drawPlane(map, groups) {
  const { height, x, y } = fit(map.points);
  const radius = map.points.length > 400 ? 7 : 10;
  const points = map.points.map((point, i) => {
    const node = draw("circle", {
      class: "point", cx: x(point[0]).toFixed(1), cy: y(point[1]).toFixed(1), r: radius,
      tabindex: "-1", role: "img", "aria-label": labelOf(map, point, groups.names[i]),
      vars: { hue: groups.hues.get(groups.names[i]) }, "data-group": groups.names[i],
    });
    node.open = () => openDocument(point[2], map.kind === "sentences" ? valueAt(point) : -1);
    node.show = () => showPoint(node, map, point, groups.names[i]);
    return node;
  });
  if (points.length) points[0].setAttribute("tabindex", "0");
  const svg = draw("svg", { class: "scatter", viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": say("map") },
    draw("line", { class: "axis", x1: MARGIN / 2, x2: WIDTH - MARGIN / 2, y1: y(0), y2: y(0) }),
    draw("line", { class: "axis", y1: MARGIN / 2, y2: height - MARGIN / 2, x1: x(0), x2: x(0) }),
    draw("text", { class: "axis-name", x: WIDTH - MARGIN / 2, y: y(0) - 12, "text-anchor": "end" }, percent(map.shares[0])),
    draw("text", { class: "axis-name", x: x(0) + 12, y: MARGIN / 2 + 16 }, percent(map.shares[1])),
    points);
  watchPoints(svg, points);
  groups.points = points;
  return svg;
}

/** Scales that use the room there is; both axes alike, so that distances are what they seem. */
function fit(points) {
  const range = (at) => {
    const all = points.map((point) => point[at]), low = Math.min(0, ...all), high = Math.max(0, ...all);
    return [low, Math.max(high - low, 0.01)];
  };
  const [[left, wide], [low, tall]] = [range(0), range(1)];
  const scale = Math.min((WIDTH - 2 * MARGIN) / wide, (0.72 * WIDTH - 2 * MARGIN) / tall);
  const height = Math.max(0.45 * WIDTH, tall * scale + 2 * MARGIN);
  const [dx, dy] = [(WIDTH - wide * scale) / 2, (height - tall * scale) / 2];
  return { height, x: (v) => dx + (v - left) * scale, y: (v) => height - dy - (v - low) * scale };
}

function watchPoints(svg, points) {
  svg.addEventListener("mouseover", (event) => (event.target.show ? event.target.show() : hideCard()));
  svg.addEventListener("mouseleave", hideCard);
  svg.addEventListener("click", (event) => event.target.open?.());
  svg.addEventListener("focusin", (event) => event.target.show?.());
  svg.addEventListener("focusout", hideCard);
  svg.addEventListener("keydown", (event) => {
    const at = points.indexOf(document.activeElement);
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      points[at].open();
    }
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    const next = way && nearestPoint(points, points[at], way);
    if (way) event.preventDefault();
    if (next) {
      points[at].setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    }
  });
}

/** The nearest point that lies in that direction; sideways counts double. */
function nearestPoint(points, from, [dx, dy]) {
  const place = (node) => [Number(node.getAttribute("cx")), Number(node.getAttribute("cy"))];
  const [x, y] = place(from);
  let best = null, least = Infinity;
  for (const node of points) {
    if (node === from || node.hasAttribute("hidden")) continue;
    const [a, b] = place(node), along = (a - x) * dx + (b - y) * dy;
    const across = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
    if (along > 0.05 && along + 2 * across < least) [best, least] = [node, along + 2 * across];
  }
  return best;
}

function labelOf(map, point, group) {
  const entry = facts.docs[point[2]];
  return map.kind === "sentences" ? `${point[5]} · ${group} · ${entry.id}` : `${entry.title || entry.id} · ${group}`;
}

function showPoint(node, map, point, group) {
  const entry = facts.docs[point[2]];
  if (cardOwner) cardOwner.removeAttribute("aria-describedby");
  replace(card, make("section", { vars: { hue: node.style.getPropertyValue("--hue") } },
    make("p", { class: "card-name" }, make("span", { class: "dot" }), group),
    make("p", {}, map.kind === "sentences" ? point[5] : entry.title || entry.id),
    make("p", { class: "quiet" }, entry.id)));
  card.hidden = false;
  cardOwner = node;
  placeCard(node);
}

function valueAt([, , number, template, field, , start]) {
  const found = valuesOf(facts.docs[number]).find((value) => value.template === template && value.field === field && value.start === start);
  return found ? found.at : -1;
}

/** Names of the colours; pressing one hides its points. */
function legendOf(groups) {
  return make("ul", { class: "plain map-legend" }, groups.listed.map(([name, n]) => {
    const chip = button("", () => {
      const isHidden = !groups.hidden.delete(name);
      if (isHidden) groups.hidden.add(name);
      chip.setAttribute("aria-pressed", String(!isHidden));
      for (const point of groups.points) if (point.dataset.group === name) point.toggleAttribute("hidden", isHidden);
    }, { class: "chip", "aria-pressed": "true", vars: { hue: groups.hues.get(name) } });
    chip.append(make("span", { class: "dot" }), name, make("span", { class: "number" }, spell(n)));
    return make("li", {}, chip);
  }));
}
