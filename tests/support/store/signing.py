"""Signing keys in tests: what is published, and the time that passes over them."""

from __future__ import annotations

from collections.abc import Sequence

from store.crypto.signing_rows import Phase
from store.wiring import Store
from tests.support.processes.engines import FakeClock

HOUR, DAY = 3600, 86400
TYPES = ("JWT",)


async def published(store: Store, algorithm: str) -> list[str]:
    """The names of an algorithm's keys in the set."""
    return [key["kid"] for key in (await store.signing_keys.published())["keys"] if key["alg"] == algorithm]


async def signed(store: Store, algorithm: str) -> tuple[str, str]:
    """A token signed now, and the name of its key."""
    signer = await store.signing_keys.for_signing(algorithm)
    return signer.sign({"sub": "ada"}, "JWT"), signer.kid


async def phases(store: Store, algorithm: str) -> dict[str, Phase]:
    """What each key of an algorithm is good for."""
    return {one.row.kid: one.phase for one in await store.signing_store.listed() if one.row.algorithm == algorithm}


def later(clock: FakeClock, seconds: float, *stores: Store) -> None:
    """Moves the time of the store, and lets these processes read the keys again."""
    clock.advance(seconds)
    forget(stores)


def forget(stores: Sequence[Store]) -> None:
    """As five seconds later."""
    for store in stores:
        store.signing_keys.forget()
