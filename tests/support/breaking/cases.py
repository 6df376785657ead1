"""A case: what is broken by hand in a store, what a check finds then, and what proves that it is well again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.store.checked_store import Furnished

GHOST = "0f" * 16
OLD = 1_500_000_000
Break = Callable[[Furnished], Awaitable[object]]
Proof = Callable[[Furnished], Awaitable[object]]


async def nothing(f: Furnished) -> None:
    """There is nothing more to see."""


def case(does: Break, found: str, left: str = "", proof: Proof = nothing, **options: bool) -> Any:
    """What is done by hand, what is found then, what is left of it behind a repair, and what proves that it is well."""
    name = f"{does.__name__} {found}".replace("_", " ").replace("<lambda>", "").strip()
    return pytest.param(does, set(found.split()), set(left.split()), proof, options, id=name)


async def then(key: Awaitable[str], does: Callable[[str], Awaitable[object]]) -> None:
    await does(await key)
