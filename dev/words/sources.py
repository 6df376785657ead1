"""Extracts the messages of templates and Python files.

Templates call `_` and `_n`. Python files also name messages where nobody speaks yet: `Phrase` and `plural` of
`store/phrases.py`, and the sentences of events.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from babel.messages.extract import extract_python
from tornado.template import Loader

from handlers.core.words.html import AUTOESCAPE

ROOT = Path(__file__).resolve().parent.parent.parent
TEMPLATES = ROOT / "templates"
CODE = ("handlers", "outbound", "store")
OWN = ("store/phrases.py", "handlers/core/person_posts.py")
"""Modules that make messages of what others write."""
EVENT_TABLES = ("store/security_events.py", "store/events/operator_events.py")

Keywords = dict[str, tuple[int, ...]]
"""The positions of the messages among the arguments of each function."""
_CALLS: Keywords = {"_": (1,), "_n": (1, 2)}
_CODE: Keywords = {**_CALLS, "PersonPost": (1,), "factor": (1,), "operators_form": (1,)}
_PHRASES: Keywords = {**_CODE, "Phrase": (1,), "plural": (1, 2)}
_EVENTS: Keywords = dict.fromkeys(
    (
        "_by_stranger",
        "_by_person",
        "_sensitive",
        "_failed_proof",
        "_caught",
        "by_operator",
        "for_people",
        "_ordinary",
    ),
    (2,),
)
# Generated code names its template at the end of each statement.
_PLACE = re.compile(r"  # (\S+\.(?:html|txt)):\d+(?: \(via .*\))?$")


class Found(NamedTuple):
    """A message: its text, the text for several or "", the file, and whether it is HTML."""

    one: str
    many: str
    file: str
    html: bool


class NoMessage(Exception):
    """A call that takes a message has something else; the message says where."""


def from_templates(folder: Path = TEMPLATES) -> Iterator[Found]:
    """The messages of all templates in a folder."""
    loader = Loader(str(folder), autoescape=AUTOESCAPE)
    for path in sorted((*folder.rglob("*.html"), *folder.rglob("*.txt"))):
        code = loader.load(path.relative_to(folder).as_posix()).code
        lines = code.splitlines()
        for line, texts in _texts(code.encode(), _CALLS):
            place = next(match[1] for text in lines[line - 1 :] if (match := _PLACE.search(text)))
            yield Found(*texts, f"templates/{place}", place.endswith(".html"))


def from_code(root: Path = ROOT) -> Iterator[Found]:
    """The messages of the Python files."""
    for path in sorted(path for folder in CODE for path in (root / folder).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name in OWN:
            continue
        source = path.read_bytes()
        # Other modules have messages of other kinds.
        keywords = _PHRASES if b"from store.phrases import" in source else _CODE
        keywords = _EVENTS if name in EVENT_TABLES else keywords
        check_calls(name, source.decode(), keywords)
        for _, texts in _texts(source, keywords):
            yield Found(*texts, name, False)


def everything() -> list[Found]:
    """The messages of the program."""
    return [*from_templates(), *from_code()]


def check_calls(name: str, source: str, keywords: Keywords) -> None:
    """Raises NoMessage for a call whose message is no literal: nobody could extract it."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        word = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        for position in keywords.get(word) or ():
            argument = node.args[position - 1] if len(node.args) >= position else None
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise NoMessage(f"{name}:{node.lineno}: the message of {word}() is no literal")


def _texts(source: bytes, keywords: Keywords) -> Iterator[tuple[int, tuple[str, str]]]:
    """The line and the texts of each message in Python code."""
    for line, function, arguments, _ in extract_python(BytesIO(source), keywords, [], {}):
        given = (arguments,) if isinstance(arguments, str) else arguments
        texts = [given[position - 1] for position in keywords[str(function)]]
        yield line, (texts[0], texts[1] if len(texts) > 1 else "")
