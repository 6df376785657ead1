"""The numbers of a chart as a CSV file that a spreadsheet can open safely. RFC 4180."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

MEDIA_TYPE = "text/csv; charset=utf-8; header=present"
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """The file. Owners choose the names of their apps, so an apostrophe goes before what a spreadsheet would read as a
    formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue().encode()


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else cell
