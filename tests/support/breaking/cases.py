"""A case: damage done by hand, the findings of a check, and the proof that the store is well again."""

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
    """Nothing more to prove."""


def case(does: Break, found: str, left: str = "", proof: Proof = nothing, **options: bool) -> Any:
    """The damage, its findings, the findings left after a repair, and the proof that the store is well."""
    name = f"{does.__name__} {found}".replace("_", " ").replace("<lambda>", "").strip()
    return pytest.param(does, set(found.split()), set(left.split()), proof, options, id=name)


async def then(key: Awaitable[str], does: Callable[[str], Awaitable[object]]) -> None:
    await does(await key)
