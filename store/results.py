"""Frozen results of the store, with units in their names or docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from store.crypto.seal import Token
from store.engine.scripts import Reply
from store.lifetimes import Group


def unheard(*done: int) -> None:
    """A progress callback that ignores its calls."""


class Window(NamedTuple):
    """The figures of a rate-limit window after a request. SPEC 8.2: `reset` is in epoch milliseconds."""

    limit: int
    remaining: int
    reset: int


class Visitor(NamedTuple):
    """The origin of a person's request, for the audit trail."""

    address: str = ""
    agent: str = ""
    device: str = ""
    """The cookie of a known device, unopened."""

    def fields(self) -> dict[str, str]:
        """The arguments `address` and `agent` of a script. The agent is only displayed, so it may be truncated."""
        return {"address": self.address, "agent": self.agent[:200]}


class Preferences(NamedTuple):
    """What a person chose of how pages and mails read: the code of a language and the name of a time zone, empty for no
    choice."""

    language: str = ""
    zone: str = ""

    @classmethod
    def of(cls, text: str) -> Preferences:
        """From a script's answer: the language, a space, and the zone."""
        language, _, zone = text.partition(" ")
        return cls(language, zone)


NO_CHOICE = Preferences()


class Warned(NamedTuple):
    """Whom a warning goes to: the person's address first, and each earlier address that an open link can bring back;
    and how the person reads."""

    addresses: tuple[str, ...] = ()
    preferences: Preferences = NO_CHOICE


NO_WARNING = Warned()


class Allowance(NamedTuple):
    """A notice that an app may spend more of a person's credits than before. `growth`: `connected`, `raised` or
    `removed`; `limit` in micro-dollars a month, None without a limit; `last`: the window of such mails is full now."""

    growth: str
    warned: Warned
    limit: int | None
    last: bool


def decoded(warned: Sequence[bytes]) -> Warned:
    """Whom a warning goes to, from a script's answer."""
    preferences, *addresses = (part.decode() for part in warned)
    return Warned(tuple(addresses), Preferences.of(preferences))


def warned_of(reply: Reply) -> Warned:
    """The field `warned` of a reply, in the form of `decoded`."""
    return decoded(reply.rows("warned"))


def allowance_of(reply: Reply) -> Allowance | None:
    """The notice in the field `told` of a script's answer; None if there is nothing to mail."""
    row = reply.rows("told")
    if not row:
        return None
    growth, limit, left, warned = row
    return Allowance(growth.decode(), decoded(warned), None if limit == b"none" else int(limit), int(left) == 0)


class Profile(NamedTuple):
    """A person's profile (SPEC 2.3). `warned`: whom a warning goes to; `groups`: names in one order; `preferences`: how
    the person reads; `passkey_offer`: the person has no passkey and did not hide the offer of one. All four are empty
    if not requested."""

    user: str
    email: str
    email_verified: bool
    name: str
    picture: str
    warned: Warned = NO_WARNING
    groups: tuple[str, ...] = ()
    preferences: Preferences = NO_CHOICE
    passkey_offer: bool = False


class Caller(NamedTuple):
    """An app that acts for a person, as an access token names them. `registered`: the app's registered scopes, which
    bound the token's scopes."""

    user: str
    client: str
    family: str
    generation: int
    registered: tuple[str, ...]
    owner: str = ""
    """The app's owner; empty for an app of the operator's."""
    sector: str = ""
    """The app's sector; empty for the subject type `public`."""
    proof: str = ""
    """The DPoP proof of the call, as the guard takes it (`store/oauth/proofs.py`); empty for a bearer token."""
    resource: str = ""
    """The resource that is called, as in `store/oauth/resources.py`; empty for Latchkey's own API."""

    @classmethod
    def of(
        cls, token: Token, registered: tuple[str, ...], owner: str | None = None, sector: str = "", proof: str = ""
    ) -> Caller:
        """The caller that an opened access token names."""
        return cls(token.user, token.client, token.id, token.generation, registered, owner or "", sector, proof)

    def may(self, needed: str) -> str:
        """The needed scopes that the app has registered."""
        if needed in self.registered:
            return needed
        return " ".join(scope for scope in needed.split() if scope in self.registered)

    def demands(self, needed: str) -> str:
        """What the guard demands of the token: the resource that it must be for, unless that is Latchkey's own API, and
        the scopes of `may`."""
        return f"@{self.resource} {self.may(needed)}" if self.resource else self.may(needed)

    def sees(self, scopes: frozenset[str]) -> frozenset[str]:
        """The scopes for identity among these that the app still has registered: the registration may have shrunk since
        the person allowed them. `profile` includes `email`."""
        also = {"email"} if "profile" in self.registered else set()
        return scopes & {*self.registered, *also}


def window_of(group: Group, reply: Reply) -> Window:
    """The window's figures in the reply to an admitted request."""
    return Window(group.limit, reply.number("remaining"), reply.number("reset"))


def profile_of(user: str, reply: Reply) -> Profile:
    """The profile in a reply that carries one."""
    return Profile(
        user,
        reply.text("email"),
        reply.raw("email_verified") == b"1",
        reply.text("name"),
        reply.text("picture"),
        warned_of(reply) if "warned" in reply.fields else NO_WARNING,
        groups_in(reply.text("groups")) if "groups" in reply.fields else (),
        Preferences.of(reply.text("preferences")) if "preferences" in reply.fields else NO_CHOICE,
        "passkey_offer" in reply.fields and reply.raw("passkey_offer") == b"1",
    )


def groups_in(text: str) -> tuple[str, ...]:
    """The groups in the field of a person's row, which has one in each line."""
    return tuple(text.split("\n")) if text else ()
