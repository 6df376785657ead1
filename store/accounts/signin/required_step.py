"""Who must have a second step to sign in, as the operator decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

Who = Literal["off", "owners", "all"]


async def _nobody(user: str) -> bool:
    return False


class RequiredStep:
    """`who`: nobody (`off`), people who own an app or an API or are in the team of an app (`owners`), or everybody
    (`all`); a reload changes it. `owns_api`: whether a person owns an API."""

    def __init__(self) -> None:
        self.who: Who = "off"
        self.owns_api: Callable[[str], Awaitable[bool]] = _nobody

    async def of(self, user: str, *, must: bool = False) -> str:
        """The argument of scripts that sign a person in: `all`, `owners`, or empty. `must`: everybody. The script sees
        the person's apps itself. Raises StoreUnavailable."""
        if must:
            return "all"
        if self.who == "owners" and await self.owns_api(user):
            return "all"
        return "" if self.who == "off" else self.who
