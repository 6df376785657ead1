"""Signing keys as the store has them, and what each may do at a moment. No I/O.

A key waits, published, until its first use. Of the keys after their first use the newest signs. The others stay
published until the last token that they may have signed is over. After that the public half alone is kept, for
`id_token_hint`, as long as the longest session lives.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from store.lifetimes import SIGNED_TOKEN, SIGNING_MARGIN

_STATE = re.compile(
    r"(?P<algorithm>RS256|ES256|EdDSA) (?P<created>\d{1,15}) (?P<first_use>\d{1,15}) (?P<revoked>\d{1,15})"
)
KID = re.compile(r"[A-Za-z0-9_-]{43}")
"""A thumbprint (RFC 7638)."""


class Phase(enum.Enum):
    """What a key is good for. The values are words of the operator's list."""

    WAITING = "waiting"
    SIGNING = "signing"
    PUBLISHED = "published"
    HINTS = "hints"
    REVOKED = "revoked"
    OVER = "over"


IN_JWKS = frozenset({Phase.WAITING, Phase.SIGNING, Phase.PUBLISHED})
VERIFIES = IN_JWKS | {Phase.HINTS}


@dataclass(frozen=True, slots=True)
class SigningRow:
    """A signing key in the store; times in epoch ms, `revoked` 0 if it is not. `state` is the row's own text, for
    changes that must not overtake another."""

    kid: str
    algorithm: str
    created: int
    first_use: int
    revoked: int
    state: str
    public: bytes
    private: bytes
    """Sealed; empty if it was dropped."""

    @property
    def order(self) -> tuple[int, int, str]:
        """Newer keys have a higher one."""
        return self.first_use, self.created, self.kid


def rows_of(fields: Mapping[str, bytes]) -> list[SigningRow]:
    """The keys in the fields of the store's hash, oldest first; leaves out those without a sound state."""
    found = []
    for name, value in fields.items():
        kid, _, what = name.rpartition(":")
        match = _STATE.fullmatch(value.decode("utf-8", "replace")) if what == "state" else None
        if match is None:
            continue
        created, first_use, revoked = (int(match[part]) for part in ("created", "first_use", "revoked"))
        public, private = (fields.get(f"{kid}:{half}", b"") for half in ("public", "private"))
        row = SigningRow(kid, match["algorithm"], created, first_use, revoked, match[0], public, private)
        found.append(row)
    return sorted(found, key=lambda row: row.order)


def current(rows: Iterable[SigningRow], algorithm: str, now: int) -> SigningRow | None:
    """The key that signs: the newest after its first use."""
    fit = [row for row in live(rows, algorithm) if row.first_use <= now]
    return max(fit, key=lambda row: row.order, default=None)


def waiting(rows: Iterable[SigningRow], algorithm: str, now: int) -> SigningRow | None:
    """The successor before its first use; the next of several."""
    fit = [row for row in live(rows, algorithm) if row.first_use > now]
    return min(fit, key=lambda row: row.order, default=None)


def live(rows: Iterable[SigningRow], algorithm: str) -> list[SigningRow]:
    """The keys of an algorithm that can sign or will."""
    return [row for row in rows if row.algorithm == algorithm and row.private and not row.revoked]


def phase(row: SigningRow, rows: Iterable[SigningRow], now: int, hints: int) -> Phase:
    """What a key is good for at this moment. `hints`: how long hints are verified after the last token, in ms."""
    if row.revoked:
        return Phase.OVER if now > row.revoked + SIGNED_TOKEN + SIGNING_MARGIN + hints else Phase.REVOKED
    if row.first_use > now:
        return Phase.WAITING
    until = published_until(row, rows, now)
    if until is None:
        return Phase.SIGNING if row.private else Phase.OVER
    if now <= until:
        return Phase.PUBLISHED
    return Phase.HINTS if now <= until + hints else Phase.OVER


def published_until(row: SigningRow, rows: Iterable[SigningRow], now: int) -> int | None:
    """When the last token of a key is over; None for a key without a successor in use."""
    later = [one for one in rows if one.algorithm == row.algorithm and row.order < one.order and one.first_use <= now]
    # A successor that was revoked replaces nothing, unless this key has nothing left to sign with.
    replaced = [one for one in later if not one.revoked] or ([] if row.private else later)
    first = min((one.first_use for one in replaced), default=None)
    return None if first is None else first + SIGNED_TOKEN + SIGNING_MARGIN
