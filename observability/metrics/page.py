"""The table of metrics in Markdown, for docs/metrics.md."""

from __future__ import annotations

from observability.metrics.declared import BUILD, BUILD_HELP, BUILD_LABELS, METRICS


def table() -> str:
    """A line for each metric, in order: name, kind, labels, description."""
    rows = [(one.name, one.kind, one.labels, one.help) for one in METRICS]
    rows.append((f"{BUILD}_info", "gauge", BUILD_LABELS, BUILD_HELP))
    lines = ["| metric | kind | labels | what it says |", "|---|---|---|---|"]
    for name, kind, labels, says in rows:
        lines.append(f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {says} |")
    return "\n".join(lines)
