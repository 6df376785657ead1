"""What the store hands out: frozen values, with units in their names or docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from store.crypto.seal import Token
from store.engine.scripts import Reply
from store.lifetimes import Group


def unheard(*done: int) -> None:
    """For what tells how far it has come, where nobody asks."""


class Window(NamedTuple):
    """The figures of a rate-limit window after a request. SPEC 8.2: `reset` is in epoch milliseconds."""

    limit: int
    remaining: int
    reset: int


class Visitor(NamedTuple):
    """Where a person's request comes from, for the audit trail."""

    address: str = ""
    agent: str = ""
    device: str = ""
    """The cookie of a known device, unopened."""

    def fields(self) -> dict[str, str]:
        """As the arguments `address` and `agent` of a script. The agent is shown only, so its end may be cut off."""
        return {"address": self.address, "agent": self.agent[:200]}


class Allowance(NamedTuple):
    """An app may spend more of a person's credits than before, and the person is to be mailed. `growth`: `connected`,
    `raised` or `removed`; `limit` in micro-dollars a month, None where there is none; `last`: the window of such mails
    is full now."""

    growth: str
    warned: tuple[str, ...]
    limit: int | None
    last: bool


def decoded(warned: Sequence[bytes]) -> tuple[str, ...]:
    """Where a warning is mailed to, as scripts answer it: the person's address, and behind it each that they had before
    and that an open link brings back."""
    return tuple(address.decode() for address in warned)


def warned_of(reply: Reply) -> tuple[str, ...]:
    """The field `warned` of a reply, as `decoded`."""
    return decoded(reply.rows("warned"))


def allowance_of(reply: Reply) -> Allowance | None:
    """What the field `told` of a script says; None where there is nothing to mail."""
    told = reply.rows("told")
    if not told:
        return None
    growth, limit, left, warned = told
    return Allowance(growth.decode(), decoded(warned), None if limit == b"none" else int(limit), int(left) == 0)


class Profile(NamedTuple):
    """Who a person is. SPEC 2.3. `warned`: where a warning is mailed to, as `warned_of`; empty where it was not
    asked for."""

    user: str
    email: str
    email_verified: bool
    name: str
    picture: str
    warned: tuple[str, ...] = ()


class Caller(NamedTuple):
    """An app acting for a person, as an access token names them. `registered`: the app's registered scopes, which
    bound what the token carries."""

    user: str
    client: str
    family: str
    generation: int
    registered: tuple[str, ...]
    owner: str = ""
    """Of the app; empty for the operator's."""

    @classmethod
    def of(cls, token: Token, registered: tuple[str, ...], owner: str | None = None) -> Caller:
        """Whom an opened access token acts for."""
        return cls(token.user, token.client, token.id, token.generation, registered, owner or "")

    def may(self, needed: str) -> str:
        """Those of the needed scopes that the app has registered."""
        if needed in self.registered:
            return needed
        return " ".join(scope for scope in needed.split() if scope in self.registered)


def window_of(group: Group, reply: Reply) -> Window:
    """The window's figures in a reply that was admitted."""
    return Window(group.limit, reply.number("remaining"), reply.number("reset"))


def profile_of(user: str, reply: Reply) -> Profile:
    """The profile in a reply that carries one."""
    return Profile(
        user,
        reply.text("email"),
        reply.raw("email_verified") == b"1",
        reply.text("name"),
        reply.text("picture"),
        warned_of(reply) if "warned" in reply.fields else (),
    )
