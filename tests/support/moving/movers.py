"""Lines of imports, and imports of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import BytesIO
from typing import Any

import bcrypt

from store.accounts.import_state import ImportResult
from store.moving.import_lines import lines_of
from store.moving.importing import Import
from store.wiring import Store

PASSWORD = "a fairly long password"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
GOOGLE = "https://accounts.google.com"


def line(email: str, **members: Any) -> bytes:
    """A line for a person with a name."""
    return json.dumps({"email": email, "name": "Ada Lovelace", **members}).encode()


def lines(count: int, start: int = 0, **members: Any) -> list[bytes]:
    """Lines for people whose addresses differ."""
    return [line(f"mover{number}@example.com", **members) for number in range(start, start + count)]


async def bring(
    store: Store, given: Iterable[bytes], *, update: bool = False, dry: bool = False, batches: int | None = None
) -> ImportResult:
    """Imports lines, and stops after so many batches, if given."""
    text = b"".join(one + b"\n" for one in given)
    result = ImportResult()
    found = Import(store, lambda: lines_of(BytesIO(text)), update=update, dry=dry).run()
    async for result in found:  # noqa: B007  # the last one is the result
        if batches is not None:
            batches -= 1
            if batches < 0:
                break
    await found.aclose()
    return result
