"""Notices to people about spending limits that are reached, and about a low balance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from store.engine.scripts import Reply
from store.results import Warned, decoded

About = Literal["app", "day", "balance"]


@dataclass(frozen=True, slots=True)
class Notice:
    """What a mail says: `share` percent of a limit is used, of an app's for a month or of the person's for a day; or
    the balance fell below `limit`. `limit` in micro-dollars; `client`: the app that made the call."""

    user: str
    client: str
    about: About
    share: int
    limit: int
    warned: Warned


@dataclass(slots=True)
class Notices:
    """Passes notices on. `low`: a balance below this many micro-dollars is low; 0: none is. `reach`: whether mails
    reach people; if not, scripts look for no notices."""

    low: int = 0
    reach: Callable[[], bool] = lambda: False
    tell: Callable[[Notice], None] = lambda notice: None

    @property
    def wanted(self) -> str:
        """The argument of a script that may return notices."""
        return "1" if self.reach() else ""

    def send(self, user: str, client: str, reply: Reply) -> None:
        """Passes on the notices of a script's answer, if there are any."""
        if parts := reply.rows("notices"):
            warned = decoded(reply.rows("to"))
            for about, share, limit in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
                self.tell(Notice(user, client, cast(About, about.decode()), int(share), int(limit), warned))
