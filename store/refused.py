"""The one exception by which a store call says no; its code stands in the catalogue of `handlers/errors.py`."""

from __future__ import annotations

from typing import NoReturn

from store.lifetimes import Group
from store.results import Window
from store.scripts import Reply


class Refused(Exception):
    """A request was refused and nothing of it done.

    `code`: the error code of the catalogue; `description`: for people, never a secret; `window`: the figures of the
    rate-limit window that was consulted; `retry_after`: whole seconds, with `rate_limited` only.
    """

    def __init__(
        self, code: str, description: str = "", *, window: Window | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(code)
        self.code = code
        self.description = description
        self.window = window
        self.retry_after = retry_after


class SignedOut(Exception):
    """The browser session is over: the person has to sign in."""


def refuse_rate(group: Group, reply: Reply) -> NoReturn:
    """Raises the refusal of a closed window. SPEC 8: 429 with `retryAfter`."""
    raise Refused(
        "rate_limited",
        "Too many requests. Try again later.",
        window=Window(group.limit, 0, reply.number("reset")),
        retry_after=reply.number("retry"),
    )
