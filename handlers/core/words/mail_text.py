"""The words of a mail: the only source of its text, in whatever form it is sent.

A template of `templates/mail` has the subject in its first line, then paragraphs with blank lines between them. A
paragraph is one line, several short lines, a list with "- " in front of each item, or an address to open.
"""

from __future__ import annotations

from textwrap import wrap
from typing import Any, NamedTuple

from handlers.core.brand.overrides import Templates
from handlers.core.words.wording import Wording

WIDTH = 76
"""Characters of a line in a text mail, where it has blanks to break it at."""
BULLET = "- "


class MailText(NamedTuple):
    """A subject and paragraphs, whose lines are as long as they are."""

    subject: str
    paragraphs: tuple[str, ...]

    @property
    def plain(self) -> str:
        """The paragraphs as a text mail has them."""
        return "\n\n".join("\n".join(map(_broken, text.split("\n"))) for text in self.paragraphs) + "\n"


def mail_text(templates: Templates, what: str, wording: Wording, **values: Any) -> MailText:
    """The text of `templates/mail/<what>.txt` with these values, in the language and zone of its reader."""
    made = templates.mails.load(f"mail/{what}.txt").generate(**wording.plain_names(), **values).decode()
    subject, _, body = made.partition("\n")
    return MailText(subject, tuple(text for part in body.split("\n\n") if (text := part.strip("\n"))))


def _broken(line: str) -> str:
    """A line in lines of a mail. An address stays whole, and so does an item of a list."""
    if len(line) <= WIDTH or line.startswith(BULLET):
        return line
    return "\n".join(wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False))
