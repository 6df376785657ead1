"""What a message and its translation may look like. A page shows messages as they are, so a broken one breaks pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

TAGS = {"a", "abbr", "bdi", "br", "code", "em", "span", "strong", "time"}
TAG = re.compile(r"</?([a-z]+)((?: [a-z-]+=\"[^\"<>]*\")*)>")
PLACEHOLDER = re.compile(r"%\([a-z_]+\)s")


def complaints(text: str, *, html: bool) -> Iterator[str]:
    """What is wrong with one text of a catalogue. `html`: it is for a page's HTML, and may have tags."""
    bare = PLACEHOLDER.sub("", text)
    if "%" in bare:
        yield "a % that is no named placeholder"
    if "&" in text:
        yield "an &: write the character itself"
    if text != text.strip() or "\n" in text:
        yield "blanks around the text, or several lines"
    plain = TAG.sub("", text)
    if set(plain) & set('<>"'):
        yield 'a <, > or " outside a tag: quotes are “ ”'
    tags = TAG.findall(text)
    if tags and not html:
        yield "tags in a text that is not HTML"
    if unknown := {name for name, _ in tags} - TAGS:
        yield f"the tags {', '.join(sorted(unknown))}"
    if not _balanced(text):
        yield "tags that do not match"


def differences(text: str, translation: str, *, counted: bool) -> Iterator[str]:
    """What a translation lacks or adds. `counted`: a form of a plural, which may leave its number out."""
    ours, theirs = Counter(PLACEHOLDER.findall(text)), Counter(PLACEHOLDER.findall(translation))
    if counted and "%(count)s" not in theirs:
        ours.pop("%(count)s", None)
    if ours != theirs:
        yield f"other placeholders: {', '.join(sorted((ours - theirs) + (theirs - ours)))}"
    if Counter(TAG.findall(text)) != Counter(TAG.findall(translation)):
        yield "other tags"


def _balanced(text: str) -> bool:
    opened: list[str] = []
    for match in TAG.finditer(text):
        if match[1] == "br":
            continue
        if not match[0].startswith("</"):
            opened.append(match[1])
        elif not opened or opened.pop() != match[1]:
            return False
    return not opened
