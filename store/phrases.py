"""Texts for people that pages show in the language of their reader.

The store raises them and knows no language: it keeps the English text with its values apart, and a page looks the text
up in its catalogue. Everywhere else (JSON, logs, the command line, the audit trail) a message is its English text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self


class Phrase(str):
    """An English text for people, which a page can translate.

    `text`: the catalogue's key, with named placeholders such as `%(name)s`; it is plain text without markup. `values`:
    the placeholders' values; a value may be a message, and pages write whole numbers in their language. `many` and
    `number`: the text for several and the number, for a text that depends on one.
    """

    text: str
    values: Mapping[str, Any]
    many: str
    number: int

    def __new__(cls, text: str, /, **values: Any) -> Self:
        made = super().__new__(cls, text % values if values else text)
        made.text, made.values, made.many, made.number = text, values, "", 0
        return made

    def filled(self, **values: Any) -> Self:
        """The message with these values, for one that was written down without any."""
        return type(self)(self.text, **values)

    @classmethod
    def known(cls, text: str) -> Self:
        """A message whose text another call brought into the catalogue: from a table, for example."""
        return cls(text)


def plural(one: str, many: str, count: int, /, **values: Any) -> Phrase:
    """A message that depends on a number: `one` for exactly one in English. Both name the number `%(count)s`."""
    message = Phrase(one if count == 1 else many, count=count, **values)
    message.text, message.many, message.number = one, many, count
    return message


_MOST = 2**63
"""Beyond it, a whole number has no form in JSON: orjson refuses it."""


def packed(text: str) -> Any:
    """A text for people as JSON, from which `unpacked` makes it again: a message keeps its key and its values. Values
    that JSON does not have, and lists, make a plain text of it."""
    if type(text) is not Phrase:
        return text
    if not all(isinstance(one, str) or (isinstance(one, int) and abs(one) < _MOST) for one in text.values.values()):
        return str(text)
    values = {name: packed(value) if isinstance(value, str) else value for name, value in text.values.items()}
    return [text.text, text.many, text.number, values]


def unpacked(kept: Any) -> str:
    """The text for people that `packed` kept."""
    if isinstance(kept, str):
        return kept
    text, many, number, values = kept
    values = {name: value if isinstance(value, int) else unpacked(value) for name, value in values.items()}
    if not many:
        return Phrase(text, **values)
    values.pop("count", None)
    return plural(text, many, number, **values)


class StoredMessages:
    """Messages that the store keeps in English, found again by their text so that a page can say them in its
    language. `value`: a pattern of their values."""

    def __init__(self, messages: Iterable[Phrase], value: str) -> None:
        self._patterns = [
            (message, re.compile(_VALUE.sub(rf"(?P<\1>{value})", re.escape(message.text)))) for message in messages
        ]

    def find(self, text: str) -> str:
        """The message of a text. A text of another release stays unchanged."""
        for message, pattern in self._patterns:
            if found := pattern.fullmatch(text):
                return message.filled(**found.groupdict())
        return text


_VALUE = re.compile(r"%\\\((\w+)\\\)s")
