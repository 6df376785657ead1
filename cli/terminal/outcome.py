"""What a command answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, repr=False)
class CommandResult:
    """The JSON object, which columns a table of its rows shows to people (of those a row has),
    a note for them, what they are shown in place of values of the object, and the exit status."""

    record: dict[str, Any]
    columns: tuple[str, ...] = ()
    note: str = ""
    words: dict[str, Any] = field(default_factory=dict)
    status: int = 0
