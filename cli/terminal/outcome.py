"""The result of a command."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, repr=False)
class CommandResult:
    """The JSON object, the columns of its table for people (those that the rows have), a note for people, replacements
    for values of the object, and the exit status."""

    record: dict[str, Any]
    columns: tuple[str, ...] = ()
    note: str = ""
    words: dict[str, Any] = field(default_factory=dict)
    status: int = 0
