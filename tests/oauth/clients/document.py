"""Writes the generated parts of docs/clients.md and docs/programs.md: the table, and the examples as they are run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from tests.oauth.clients.table import ROOT, table

DOCUMENTS = (ROOT / "docs" / "clients.md", ROOT / "docs" / "programs.md")
LANGUAGES = {".py": "python", ".mjs": "js", ".conf": "apache", ".html": "html"}
_SHOWN = re.compile(
    r"^ *(?:#|//|<!--) \[show\](?: -->)?\n(.*?)^ *(?:#|//|<!--) \[/show\](?: -->)?$", re.MULTILINE | re.DOTALL
)
_PART = re.compile(r"^<!-- from (\S+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)


def shown_of(file: Path) -> str:
    """What a file shows of itself: the lines between its marks. Raises ValueError where there is none."""
    pieces = [textwrap.dedent(piece) for piece in _SHOWN.findall(file.read_text("utf-8"))]
    if not pieces:
        raise ValueError(f"{file} shows nothing")
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(pieces)).strip("\n")


def renewed(text: str) -> str:
    """The document with its generated parts as they should be."""

    def part(found: re.Match[str]) -> str:
        name = found[1]
        if name == "table":
            made = table()
        else:
            file = ROOT / name
            made = f"```{LANGUAGES[file.suffix]}\n{shown_of(file)}\n```"
        return f"<!-- from {name} -->\n{made}\n<!-- end -->"

    return _PART.sub(part, text)


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(renewed(document.read_text("utf-8")), "utf-8")
