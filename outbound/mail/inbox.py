"""Reads the folder in which mails are kept in place of a mail server."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email import message_from_bytes, policy
from pathlib import Path
from typing import NamedTuple

from outbound.mail.message import plain_text

MOST = 50
MOST_BYTES = 64 * 1024
_NAME = re.compile(r"([0-9]{20})-[0-9a-f]{8}")


class SpooledMail(NamedTuple):
    """A mail in the folder. `name` is its file's, without the suffix."""

    name: str
    at: datetime
    to: str
    subject: str
    text: str


class Inbox:
    """The newest 50 mails of all processes that write to this folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest(self) -> list[SpooledMail]:
        """The mails, newest first. Reads files, so it belongs in a thread. Raises OSError."""
        names = sorted((path.stem for path in self._folder.glob("*.eml")), reverse=True)
        found = map(self.find, names[:MOST])
        return [mail for mail in found if mail]

    def find(self, name: str) -> SpooledMail | None:
        """The mail with this name; None for any other text, and for a mail that a newer one has replaced. Raises
        OSError."""
        made = _NAME.fullmatch(name)
        if made is None:
            return None
        try:
            with (self._folder / f"{name}.eml").open("rb") as file:
                content = file.read(MOST_BYTES)
        except FileNotFoundError:
            return None
        message = message_from_bytes(content, policy=policy.default)
        at = datetime.fromtimestamp(int(made[1]) // 1_000_000_000, UTC)
        return SpooledMail(name, at, str(message["To"] or ""), str(message["Subject"] or ""), plain_text(message))
