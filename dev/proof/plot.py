"""A run as an SVG file: the answers of each second, and the faults above them."""

from __future__ import annotations

from collections import Counter
from html import escape
from math import ceil

from dev.proof.faults import KINDS
from dev.proof.history import OUTCOMES, History

WIDTH, LABEL, HEIGHT = 960, 84, 200
ROW, HEAD, FOOT, EDGE = 16, 62, 34, 24
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #222 }
.title { font-weight: 600 }
.small { font-size: 11px }
.acknowledged { fill: #2563eb }
.refused { fill: #cbd5e1 }
.unknown { fill: #dc2626 }
.fault { fill: #f59e0b }
.moved { fill: #9333ea }
.during { fill: #f59e0b; opacity: .12 }
.axis { stroke: #94a3b8; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb }
  .acknowledged { fill: #60a5fa }
  .refused { fill: #475569 }
  .unknown { fill: #f87171 }
  .moved { fill: #c084fc }
}
"""


def draw(history: History) -> str:
    """The SVG file: a column for each second, by the time of the answer; a row for each kind of fault."""
    loaded = float(history.run["seconds"])
    lasts = max(1, ceil(max((op.end for op in history.ops if op.start <= loaded), default=loaded)))
    rows = [name for name in KINDS if any(fault.name == name for fault in history.faults)]
    top = HEAD + ROW * len(rows)
    scale = (WIDTH - LABEL - EDGE) / lasts
    waits = f", wait for {history.run['wait_replicas']}" if history.run["wait_replicas"] else ""
    parts = [
        _text(0, 14, f"{history.run['title']}{waits}: answers a second", "title"),
        *_legend(),
        *_faults(history, rows, top, scale),
        *_columns(history, lasts, top, scale),
        f'<line class="axis" x1="{LABEL}" y1="{top + HEIGHT}" x2="{WIDTH - EDGE}" y2="{top + HEIGHT}"/>',
    ]
    step = next(step for step in (5, 10, 20, 30, 60, 120, 300, 600, 3600) if lasts / step <= 14)
    parts += [
        _text(LABEL + second * scale, top + HEIGHT + 16, f"{second} s", "small", ' text-anchor="middle"')
        for second in range(0, lasts + 1, step)
    ]
    height = top + HEIGHT + FOOT
    title = escape(f"{history.run['title']}, while things break")
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">'
    return "\n".join([head, f"<title>{title}</title>", f"<style>{_STYLE}</style>", *parts, "</svg>", ""])


def _legend() -> list[str]:
    parts, x = [], float(LABEL)
    for kind, said in (*((one, one) for one in OUTCOMES), ("fault", "fault"), ("moved", "a replica took over")):
        parts.append(f'<rect class="{kind}" x="{x}" y="26" width="11" height="11" rx="2"/>')
        parts.append(_text(x + 16, 36, said, "small"))
        x += 34 + 6.2 * len(said)
    return parts


def _faults(history: History, rows: list[str], top: int, scale: float) -> list[str]:
    parts = []
    for row, name in enumerate(rows):
        parts.append(_text(LABEL - 6, HEAD + ROW * row + 2, name, "small", ' text-anchor="end"'))
    for fault in history.faults:
        y = HEAD + ROW * rows.index(fault.name) - 7
        width = max(2.0, (fault.end - fault.begin) * scale)
        place = f'x="{LABEL + fault.begin * scale:.1f}" y="{y}" width="{width:.1f}"'
        said = escape(f"{fault.begin:.1f} to {fault.end:.1f} s: {KINDS[fault.name].title}. {fault.what}")
        kind = "moved" if fault.moved else "fault"
        parts.append(f'<rect class="during" {place} height="{top + HEIGHT - y}"/>')
        parts.append(f'<rect class="{kind}" {place} height="10" rx="2"><title>{said}</title></rect>')
    return parts


def _columns(history: History, lasts: int, top: int, scale: float) -> list[str]:
    counts = Counter((min(lasts - 1, int(op.end)), op.outcome) for op in history.ops if op.end <= lasts)
    most = max((sum(counts[second, one] for one in OUTCOMES) for second in range(lasts)), default=0) or 1
    parts = [_text(LABEL - 6, top + 10, str(most), "small", ' text-anchor="end"')]
    for second in range(lasts):
        y = float(top + HEIGHT)
        for outcome in OUTCOMES:
            tall = counts[second, outcome] / most * HEIGHT
            y -= tall
            if tall:
                x, width = LABEL + second * scale, max(1.0, scale - 1)
                parts.append(
                    f'<rect class="{outcome}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{tall:.1f}"/>'
                )
    return parts


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{round(x, 1)}" y="{y}"{more}>{escape(text)}</text>'
