"""A picture of learning curves: one panel per set, the median of each arm and its draws, as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from label_order import COUNTS, Curve, arms_of, medians

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLOURS = {
    "queue": "#1f6feb",
    "layout": "#2da44e",
    "far": "#bf8700",
    "vectors": "#bf3989",
    "doubt": "#8250df",
    "random": "#57606a",
}
_WORDS = {
    "queue": "layouts not labelled yet, by doubt",
    "layout": "layouts not labelled yet",
    "far": "farthest layout first",
    "vectors": "farthest vector first (k-center)",
    "doubt": "most doubtful first",
    "random": "random",
}
_WIDTH, _HEIGHT, _LEFT, _TOP = 240, 200, 46, 40
#: Panels beside each other, from one left edge to the next.
_STEP = _WIDTH + 60
#: Of the legend: arms beside each other, a place for each.
_PER_LINE = 3
_FOOT = 130


def draw_curves(curves: Sequence[Curve]) -> str:
    """SVG of F1 against the number of labelled documents."""
    names = sorted({curve.name for curve in curves})
    values = [value for curve in curves for value in curve.f1]
    low, high = _tenth(min(values) - 0.05), _tenth(max(values) + 0.05)
    width = _LEFT + _STEP * max(len(names), min(_PER_LINE, len(arms_of(curves))))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT + _FOOT}">',
        '<g font-family="sans-serif" font-size="12" fill="#57606a">',
        "<title>F1 on other documents against the number of labelled documents</title>",
        f'<rect width="{width}" height="{_HEIGHT + _FOOT}" fill="#ffffff"/>',
    ]
    for place, name in enumerate(names):
        own = [curve for curve in curves if curve.name == name]
        parts += _panel(name, own, _LEFT + place * _STEP, (low, high))
    for place, arm in enumerate(arms_of(curves)):
        line, column = divmod(place, _PER_LINE)
        x, y = _LEFT + column * _STEP, _TOP + _HEIGHT + 48 + line * 22
        parts.append(f'<path d="M{x} {y - 4}h28" stroke="{_COLOURS[arm]}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 36}" y="{y}">{_WORDS[arm]} </text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _panel(
    name: str, curves: Sequence[Curve], left: float, bounds: tuple[float, float]
) -> list[str]:
    low, high = bounds

    def point(at: int, value: float) -> str:
        x = left + _WIDTH * COUNTS[at] / COUNTS[-1]
        return f"{x:.1f} {_TOP + _HEIGHT * (high - value) / (high - low):.1f}"

    def line(f1: Sequence[float]) -> str:
        return "M" + "L".join(point(at, value) for at, value in enumerate(f1))

    parts = [f'<text x="{left}" y="{_TOP - 14}" font-weight="bold">{name}</text>']
    for step in range(round(low * 10), round(high * 10) + 1):
        y = _TOP + _HEIGHT * (high - step / 10) / (high - low)
        parts.append(f'<path d="M{left} {y:.1f}h{_WIDTH}" stroke="#d0d7de"/>')
        parts.append(
            f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{step / 10:.1f}</text>'
        )
    for at, n in enumerate(COUNTS):
        x = point(at, low).partition(" ")[0]
        parts.append(f'<text x="{x}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{n}</text>')
    parts.append(f'<text x="{left}" y="{_TOP + _HEIGHT + 18}">labels</text>')
    for arm in reversed(arms_of(curves)):
        drawn = f'fill="none" stroke="{_COLOURS[arm]}"'
        parts += [
            f'<path d="{line(curve.f1)}" {drawn} stroke-opacity="0.18"/>'
            for curve in curves
            if curve.arm == arm
        ]
        whole = line(medians(curves, arm, name))
        parts.append(f'<path d="{whole}" {drawn} stroke-width="3"/>')
    return parts


def _tenth(value: float) -> float:
    return min(max(round(value, 1), 0.0), 1.0)
