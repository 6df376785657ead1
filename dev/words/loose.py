"""Finds text in templates that is not in the catalogue: nobody could translate it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from dev.words.sources import TEMPLATES

ENGLISH = ("base/docs.html",)
"""Templates in English always: they say so in an attribute `lang`."""
READ = {"alt", "aria-description", "aria-label", "label", "placeholder", "title"}
"""Attributes that people see or hear."""
_CODE = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}|\{#.*?#\}", re.DOTALL)
_HOLE = "\N{OBJECT REPLACEMENT CHARACTER}"
_STATEMENT = re.compile(r"\s*(?:(?:if|elif|for|raw|module|while)\b|set [\w, ]+=)(.*)", re.DOTALL)
_WORDS = re.compile(r"[^\W\d_]{2,} [^\W\d_]{2,}|^[A-Z][a-z]+$")
_LETTER = re.compile(r"[^\W\d_]")
CALLS = {"_", "_n"}


def texts(folder: Path = TEMPLATES) -> Iterator[str]:
    """A complaint for each text of a template that is not in the catalogue."""
    for path in sorted((*folder.rglob("*.html"), *folder.rglob("*.txt"))):
        name = path.relative_to(folder)
        if name.as_posix() not in ENGLISH:
            for text in loose(path.read_text("utf-8"), html=path.suffix == ".html"):
                yield f"templates/{name.as_posix()}: not in the catalogue: {text!r}"


def loose(source: str, *, html: bool) -> Iterator[str]:
    """The texts of a template that no message has: between its elements, in their attributes, and in expressions."""
    rest = _CODE.sub(_HOLE, source)
    found = _Reader.texts(rest) if html else rest.splitlines()
    for text in found:
        if _LETTER.search(text):
            yield " ".join(text.replace(_HOLE, "…").split())
    for match in _CODE.finditer(source):
        expression = match[1] if match[1] is not None else (_STATEMENT.match(match[2] or "") or ["", ""])[1]
        yield from _spoken(expression)


class _Reader(HTMLParser):
    """Collects the texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._silent = 0

    @classmethod
    def texts(cls, page: str) -> list[str]:
        """The texts between elements and in attributes that people read."""
        reader = cls()
        reader.feed(page)
        reader.close()
        return reader.found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects attributes."""
        self._silent += tag in ("script", "style")
        self.found += [value for name, value in attrs if name in READ and value]

    def handle_endtag(self, tag: str) -> None:
        """Ends a script or style."""
        self._silent -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        """Collects text."""
        if not self._silent:
            self.found.append(data)


def _spoken(expression: str) -> Iterator[str]:
    """Literals in an expression that read like words for people, outside the calls that translate: several words, or a
    capital and more letters."""
    try:
        tree = ast.parse(expression.strip().rstrip(":") or "0", mode="eval")
    except SyntaxError:
        return
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in inside else None
        if isinstance(text, str) and _WORDS.search(text):
            yield text
