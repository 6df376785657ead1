"""The exception of a refused store call; its code is in the catalogue of `handlers/core/errors.py`."""

from __future__ import annotations

from store.engine.scripts import Reply
from store.lifetimes import Group
from store.phrases import Phrase
from store.results import Window, window_of


class Refused(Exception):
    """A request was refused; it changed nothing.

    `code`: the error code of the catalogue; `description`: for people, never a secret; `window`: the figures of the
    rate-limit window that was consulted; `retry_after`: whole seconds; `value`: what the app sent in place of something
    else, for its owner's log, never a secret; `param`: the path of the field that is wrong.
    """

    def __init__(
        self,
        code: str,
        description: str = "",
        *,
        window: Window | None = None,
        retry_after: int | None = None,
        value: str = "",
        param: str | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.description = description
        self.window = window
        self.retry_after = retry_after
        self.value = value
        self.param = param


DEPROVISIONED = Phrase("Your organization has disabled this account.")
"""The reason of a suspension that the directory of an organization made."""


class Suspended(Refused):
    """The operator has suspended the account. Raised only for somebody with its password or passkey."""

    def __init__(self, reason: str) -> None:
        reason = DEPROVISIONED if reason == DEPROVISIONED else reason
        known = Phrase("Your account is suspended: %(reason)s", reason=reason)
        super().__init__("access_denied", known if reason else Phrase("Your account is suspended."))


class UnknownUser(Exception):
    """The presented code or token names no live grant, so the request counts for its address, not for a person."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


def reason_of(error: Exception) -> str:
    """The text for people in a refusal, or in the ValueError of a check. `str` would make plain text of a phrase."""
    if isinstance(error, Refused):
        return error.description
    said = error.args[0] if error.args else ""
    return said if isinstance(said, str) else str(said)


class SignedOut(Exception):
    """The browser session is over: the person has to sign in."""


class Unproved(Exception):
    """The person has to re-authenticate before this change, as in `store/accounts/signin/reauth.py`."""


def let_in(group: Group, reply: Reply) -> Window:
    """The window's figures of an admitted request. Otherwise raises Refused("rate_limited"): 429 with `retryAfter`
    (SPEC 8)."""
    if reply.word != "rate_limited":
        return window_of(group, reply)
    raise Refused(
        "rate_limited",
        Phrase("Too many requests. Try again later."),
        window=Window(group.limit, 0, reply.number("reset")),
        retry_after=reply.number("retry"),
    )


def refuse_signed_out(reply: Reply) -> None:
    """Raises SignedOut if a script found no live session."""
    if reply.word == "signed_out":
        raise SignedOut


def refuse_unproved(reply: Reply) -> None:
    """Raises Unproved if a script found no recent confirmation in the session."""
    if reply.word == "unproved":
        raise Unproved
