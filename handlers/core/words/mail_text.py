"""The words of a mail: the only source of its text, in whatever form it is sent.

A template of `templates/mail` has the subject in its first line, then paragraphs with blank lines between them. A
paragraph is one line, several short lines, a list with "- " in front of each item, or an address to open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from handlers.core.brand.overrides import Templates
from handlers.core.words.wording import Wording


class MailText(NamedTuple):
    """A subject and paragraphs, whose lines are as long as they are."""

    subject: str
    paragraphs: tuple[str, ...]

    @property
    def whole(self) -> str:
        """The paragraphs as one text."""
        return "\n\n".join(self.paragraphs) + "\n"


def mail_text(templates: Templates, what: str, wording: Wording, **values: Any) -> MailText:
    """The text of `templates/mail/<what>.txt` with these values, in the language and zone of its reader."""
    made = templates.mails.load(f"mail/{what}.txt").generate(**wording.plain_names(), **values).decode()
    subject, _, body = made.partition("\n")
    return MailText(subject, tuple(text for part in body.split("\n\n") if (text := part.strip("\n"))))
