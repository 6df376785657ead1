"""How a person signed in, as apps learn it: levels (`acr`), methods (`amr`), time. OpenID Connect Core 2, RFC 8176."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from store.engine.scripts import Reply
from store.results import Profile, groups_in

METHODS = {
    "pwd": ("pwd",),
    "otp": ("pwd", "otp", "mfa"),
    "pwd+passkey": ("pwd", "pop", "user", "mfa"),
    "passkey": ("pop", "user", "mfa"),
    "up": (),
    "up+mfa": ("mfa",),
    "up+otp": ("otp", "mfa"),
    "up+passkey": ("pop", "user", "mfa"),
}
"""The ways to sign in, as sessions record them, with their values of `amr`. A code of the authenticator app and a
recovery code are both `otp`. Every passkey verifies its user. `up`: at another server, with `mfa` where the operator
counts its second step; RFC 8176 has no value for that alone."""

LEVELS = {
    "phr": frozenset(("pwd+passkey", "passkey", "up+passkey")),
    "2": frozenset(("otp", "pwd+passkey", "passkey", "up+mfa", "up+otp", "up+passkey")),
    "1": frozenset(METHODS),
}
"""The values of `acr`, strongest first, with the ways to sign in that satisfy them: a passkey; a second step; any."""


STRONGEST = {method: next(level for level in LEVELS if method in LEVELS[level]) for method in METHODS}
"""The strongest level of each way to sign in."""


class SignInFacts(NamedTuple):
    """The sign-in behind an ID token. `sid`: the session's public id, empty if the app learns none; `auth_time`: epoch
    seconds; `method`: one of METHODS; `wanted`: the levels that the app requested, best first; `nonce`: empty if there
    was none, and at a refresh; `scopes`: those of Latchkey itself, which give the claims."""

    sid: str
    auth_time: int
    method: str
    wanted: tuple[str, ...]
    nonce: str
    scopes: tuple[str, ...]
    profile: Profile

    @property
    def acr(self) -> str:
        """The level: the best of the requested ones that this sign-in satisfies, otherwise the strongest."""
        return _level(self.method, self.wanted)

    @property
    def amr(self) -> Sequence[str]:
        """The methods, as registered by RFC 8176."""
        return METHODS[self.method]


def known_levels(text: str) -> tuple[str, ...]:
    """The levels in a list of `acr` values with spaces between, in its order, without those unknown here."""
    return tuple(dict.fromkeys(level for level in text.split(" ") if level in LEVELS)) if text else ()


def methods_for(levels: Sequence[str], *, second_step: bool = False) -> str:
    """The ways to sign in that satisfy at least one of these levels, as the scripts take them; empty for any. With
    `second_step`, only those with a second step."""
    found = {method for level in levels for method in LEVELS[level]} if levels else {*METHODS}
    if second_step:
        found &= LEVELS["2"]
    return "" if found == METHODS.keys() else " ".join(sorted(found))


STEPPED = methods_for((), second_step=True)
"""The ways to sign in that have a second step, as the scripts take them."""


def sign_in_of(user: str, reply: Reply) -> SignInFacts | None:
    """The sign-in in a script's answer, from the field `person` (`lua/include/signed_in.lua`)."""
    person = reply.rows("person")
    if not person:
        return None
    signed, nonce, scope, email, verified, name, picture, groups = [value.decode() for value in person]
    sid, auth_time, method, wanted = _parts(signed)
    profile = Profile(user, email, verified == "1", name, picture, groups=groups_in(groups))
    return SignInFacts(sid, auth_time, method, wanted, nonce, tuple(scope.split()), profile)


def level_and_time(signed: str) -> tuple[str, int | None]:
    """The level (`acr`) and the time (epoch seconds) of the sign-in in the text that the store keeps of it; without
    one, empty and None."""
    if not signed:
        return "", None
    _, auth_time, method, wanted = _parts(signed)
    return _level(method, wanted), auth_time


def _parts(signed: str) -> tuple[str, int, str, tuple[str, ...]]:
    sid, auth_time, method, wanted = signed.split(" ")
    return "" if sid == "-" else sid, int(auth_time), method, tuple(filter(None, wanted.split(","))) if wanted else ()


def _level(method: str, wanted: Sequence[str]) -> str:
    for level in wanted:
        if method in LEVELS[level]:
            return level
    return STRONGEST[method]
