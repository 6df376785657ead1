"""The result of a command for people: plain in a pipe or file, fitted and in colours at a terminal.

The plain form is for grep, cut and awk: one line a row, nothing cut off, no borders.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, TextIO

from cli.terminal.outcome import CommandResult

if TYPE_CHECKING:
    from rich.console import Console

GAP = 2
LEAST_PROSE = 16
"""The narrowest column for prose. Below that, rows are shown as blocks."""

PROSE = frozenset(("name", "scopes", "reason", "what", "says", "agent", "event"))
"""Columns that may wrap. All others have ids, numbers or times, which people copy."""

STYLES = {"active": "green", "disabled": "yellow", "error": "red"}


def show(outcome: CommandResult, stream: TextIO) -> None:
    """Prints the result: one field a line, rows as a table, and the note."""
    if not stream.isatty():
        print(in_words(outcome), file=stream, flush=True)
        return
    from rich.console import Console

    _at_terminal(outcome, Console(file=stream, highlight=False, markup=False, emoji=False))
    stream.flush()


def coloured(text: str, stream: TextIO) -> str:
    """The text in bold red, if the stream is a terminal with colours and NO_COLOR is not set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    return text if plain or not stream.isatty() else f"\x1b[1;31m{text}\x1b[0m"


def in_words(outcome: CommandResult) -> str:
    """The result without colours, in its full width."""
    fields, tables = _parts(outcome)
    width = max(map(len, fields), default=0)
    lines = [f"{name:{width}}  {text}" for name, text in fields.items() if text is not None]
    for name, rows in tables.items():
        cells = _cells(rows, outcome.columns)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += [""] if lines else []
        lines += ["  ".join(f"{cell:{size}}" for cell, size in zip(row, widths, strict=True)).rstrip() for row in cells]
        lines += [] if rows else [f"no {name}"]
    return "\n".join([*lines, *(["", outcome.note] if outcome.note else [])])


def word(value: object) -> str:
    """A value in words, without characters that could control a terminal."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    # A User-Agent could contain control characters.
    return "".join(char if char.isprintable() else "?" for char in text)


def _parts(outcome: CommandResult) -> tuple[dict[str, str | None], dict[str, list[dict[str, Any]]]]:
    """The fields, None if one is not shown, and the tables."""
    record = {name: outcome.words.get(name, value) for name, value in outcome.record.items()}
    rows = {name: value for name, value in record.items() if _is_rows(value)}
    return {n: None if v in ("", [], None) else word(v) for n, v in record.items() if n not in rows}, rows


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and (not value or isinstance(value[0], dict))


def _cells(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The names of the columns that the rows have, and the rows; empty if there are none."""
    if not rows:
        return []
    columns = tuple(column for column in columns if column in rows[0])
    return [columns, *(tuple(word(row[column]) for column in columns) for row in rows)]


def _at_terminal(outcome: CommandResult, console: Console) -> None:
    from rich.text import Text

    fields, tables = _parts(outcome)
    width = max(map(len, fields), default=0)
    for name, text in fields.items():
        if text is not None:
            # Let the terminal wrap long values, so that they can be copied in one piece.
            line = Text.assemble((f"{name:{width}}", "cyan"), " " * GAP, (text, STYLES.get(text, "")))
            console.print(line, soft_wrap=True)
    begun = any(text is not None for text in fields.values())
    for name, rows in tables.items():
        if begun:
            console.print()
        begun = True
        if rows:
            _print_rows(_cells(rows, outcome.columns), console)
        else:
            console.print(f"no {name}", style="dim")
    if outcome.note:
        console.print()
        console.print(outcome.note, style="yellow", soft_wrap=True)


def _print_rows(cells: list[tuple[str, ...]], console: Console) -> None:
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    # Leave out empty columns, to give the others more room.
    columns = [column for column in zip(*cells, strict=True) if any(column[1:])]
    head, *rows = list(zip(*columns, strict=True))
    widest = [max(map(cell_len, column)) for column in columns]
    least = [min(size, LEAST_PROSE) if name in PROSE else size for name, size in zip(head, widest, strict=True)]
    if sum(least) + GAP * (len(head) - 1) > console.width:
        _print_one_below_the_other(head, rows, console)
        return
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold cyan")
    for name, size, column in zip(head, least, columns, strict=True):
        number = all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) for text in column[1:])
        table.add_column(
            name, min_width=size, no_wrap=name not in PROSE, overflow="fold", justify="right" if number else "left"
        )
    for row in rows:
        table.add_row(*(Text(text, STYLES.get(text, "")) for text in row))
    console.print(table)


def _print_one_below_the_other(head: tuple[str, ...], rows: list[tuple[str, ...]], console: Console) -> None:
    """Shows each row as a block of lines, if a line is too short for the ids of a row."""
    from rich.text import Text

    width = max(map(len, head))
    for number, row in enumerate(rows):
        if number:
            console.print()
        for name, text in zip(head, row, strict=True):
            if text:
                line = Text.assemble((f"{name:{width}}", "cyan"), " " * GAP, (text, STYLES.get(text, "")))
                console.print(line, soft_wrap=True)
