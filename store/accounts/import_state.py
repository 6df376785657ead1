"""How far an import has come, in the store: so that an interrupted one continues behind its last batch."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio import Redis

from store import keys
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.lifetimes import IMPORT

MOST_LISTED: Final = 1000
"""Refused lines that are listed; the others are counted."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """People created, accounts changed, and lines refused: how many, and the first of them with their reasons."""

    created: int = 0
    updated: int = 0
    refused: int = 0
    listed: tuple[tuple[int, str], ...] = ()

    def plus(self, created: int, updated: int, refused: Sequence[tuple[int, str]]) -> ImportResult:
        """This and what came after it."""
        listed = (*self.listed, *refused[: MOST_LISTED - len(self.listed)]) if refused else self.listed
        return ImportResult(self.created + created, self.updated + updated, self.refused + len(refused), listed)


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """The progress of an import. `seed`: of its user ids; `line`: the last line that is done; `digest`: of all lines up
    to that."""

    seed: str
    digest: str
    line: int = 0
    result: ImportResult = ImportResult()


class ImportState:
    """Reads and writes the progress of imports, each under a `name` of 16 bytes. Every method raises
    StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts

    async def read(self, name: bytes) -> ImportProgress | None:
        """The progress of an import that was interrupted, or None."""
        with wrapped():
            row: Any = await self._client.hgetall(_key(name))
        if not row:
            return None
        text = {field.decode(): value.decode() for field, value in row.items()}
        listed = tuple((int(line), str(why)) for line, why in json.loads(text["listed"]))
        result = ImportResult(int(text["created"]), int(text["updated"]), int(text["refused"]), listed)
        return ImportProgress(text["seed"], text["digest"], int(text["line"]), result)

    async def note(self, name: bytes, progress: ImportProgress) -> None:
        """Notes the progress."""
        result = progress.result
        row: dict[str, Any] = {
            "seed": progress.seed,
            "line": progress.line,
            "digest": progress.digest,
            "created": result.created,
            "updated": result.updated,
            "refused": result.refused,
            "listed": json.dumps(result.listed),
        }
        fields = json.dumps([str(one) for pair in row.items() for one in pair])
        await self._scripts.run("note_import", {"import": _key(name)}, fields=fields, lasts=IMPORT)

    async def forget(self, name: bytes) -> None:
        """Forgets an import that has ended."""
        with wrapped():
            await self._client.delete(_key(name))


def _key(name: bytes) -> str:
    return keys.importing(base64.urlsafe_b64encode(name).rstrip(b"=").decode())
