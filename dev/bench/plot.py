"""Bar charts as an SVG file: each group of bars has its own scale."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH = 790
LABEL = 260
"""Pixels to the left of the bars."""
VALUE = 90
"""Pixels for the figure after the longest bar."""
BAR, STEP, GAP, HEAD = 14, 20, 18, 24
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #222 }
.title { font-weight: 600 }
.value { font-variant-numeric: tabular-nums }
.ours { fill: #2563eb }
.ceiling { fill: #cbd5e1 }
.peer { fill: #94a3b8 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb }
  .ours { fill: #60a5fa }
  .ceiling { fill: #475569 }
  .peer { fill: #64748b }
}
"""


class Bar(NamedTuple):
    """A figure; `kind` is ours, ceiling or peer."""

    label: str
    value: float
    kind: str


class Group(NamedTuple):
    """Bars to compare with each other."""

    title: str
    bars: Sequence[Bar]


def draw(title: str, groups: Sequence[Group]) -> str:
    """The SVG file."""
    parts, top = [], 4
    for group in groups:
        most = max(bar.value for bar in group.bars)
        parts.append(_text(0, top + 14, group.title, "title"))
        top += HEAD
        for bar in group.bars:
            length = round(bar.value / most * (WIDTH - LABEL - VALUE), 1)
            parts.append(_text(LABEL - 8, top + 11, bar.label, "", ' text-anchor="end"'))
            parts.append(f'<rect class="{bar.kind}" x="{LABEL}" y="{top}" width="{length}" height="{BAR}" rx="2"/>')
            parts.append(_text(LABEL + length + 6, top + 11, f"{bar.value:,.0f}", "value"))
            top += STEP
        top += GAP
    view = f'viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img" aria-label="{escape(title)}">'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{_STYLE}</style>", *parts, "</svg>", ""])


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{round(x, 1)}" y="{y}"{more}>{escape(text)}</text>'
