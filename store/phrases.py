"""Texts for people that pages show in the language of their reader.

The store raises them and knows no language: it keeps the English text with its values apart, and a page looks the text
up in its catalogue. Everywhere else (JSON, logs, the command line, the audit trail) a message is its English text.
"""

from __future__ import annotations

from collections.abc import Mapping
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
