"""Jobs of the helper process that reads long AI requests."""

from __future__ import annotations

from dataclasses import dataclass

from handlers.ai.asked import Sent
from outbound.ai.models import Model

MOST_VALUES = 200_000
"""The approximate limit of values in a long body."""


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A request whose body is in the file, without the body, and the models that may be asked."""

    sent: Sent
    models: tuple[Model, ...]
    dialect: str = ""
    """For the digest of a request with an idempotency key."""
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class CountJob:
    """A request for a server, of `size` bytes in the file, whose tokens are counted up to some number above
    `enough`."""

    size: int
    enough: int
