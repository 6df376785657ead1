"""The secret keys and the layout that a store was written with: a server with others refuses to start."""

from __future__ import annotations

import json

from store import keys
from store.crypto.keyring import KeyRing
from store.engine.scripts import Scripts
from store.errors import StartupError
from store.lifetimes import DAY, LONGEST_SEALED, MINUTE
from store.refused import Refused

LAYOUT = 4
"""The number of the store's layout. `store/upgrade.py` explains older numbers and upgrades from them."""

NOTES_LOST = 3 * 60 * MINUTE
"""In ms. Servers note hourly which key they seal with; two of these notes may fail."""


class KeyState:
    """Which keys sealed the store's data, and until when."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self.missing: tuple[int, ...] = ()
        """Ids of keys that the last checked ring lacked, and that sealed something which can still live."""

    async def check(self, ring: KeyRing) -> int:
        """Checks the ring against the check values in the store and returns the store's layout. Adds check values for
        new keys, notes that the front key seals now, and sets `missing`. A server does this at its start and hourly.
        Raises StartupError for keys of another store, and for a store in the layout of a later release."""
        reply = await self._scripts.run(
            "check_keys",
            {"keyring": keys.KEYRING},
            checks=json.dumps({str(key.id): key.check_value for key in ring.keys}),
            front=str(ring.front.id),
            layout=LAYOUT,
            longest=LONGEST_SEALED,
        )
        if reply.word == "newer":
            raise StartupError(
                f"a later release has written this store: its layout is {reply.number('layout')}, and this one "
                f"knows none after {LAYOUT}. Run that release, or restore the backup that was made before the upgrade."
            )
        if reply.word == "foreign":
            raise StartupError(
                "none of the configured secret keys opens what this store holds. Give this server the same "
                "LATCHKEY_SECRET_KEYS as the others, or another store."
            )
        if reply.word == "conflict":
            raise StartupError(
                f"the secret key with id {reply.text('id')} is not the one this store was written with. "
                "Key ids are never used twice: give the new key another id."
            )
        self.missing = tuple(sorted(map(int, reply.rows("missing"))))
        return reply.number("layout")

    async def note_layout(self) -> None:
        """Notes that everything in the store is in the layout of this release."""
        await self._scripts.run("note_layout", {"keyring": keys.KEYRING}, layout=LAYOUT)

    async def known(self) -> frozenset[int]:
        """The key ids that this store has known. Data sealed under them may still live, so none of them may name a new
        key."""
        return frozenset(await self.sealed())

    async def sealed(self) -> dict[int, int]:
        """When each of these keys sealed last (epoch ms), 0 for one that never did."""
        return await self._times("sealed")

    async def since(self) -> dict[int, int]:
        """When a server first had each of these keys (epoch ms), 0 for one that is older than these notes."""
        return await self._times("since")

    async def _times(self, name: str) -> dict[int, int]:
        reply = await self._scripts.run("list_keys", {"keyring": keys.KEYRING})
        times = zip(reply.rows("ids"), reply.rows(name), strict=True)
        return {int(key_id): int(at or 0) for key_id, at in times}

    async def note_sealing(self, key_id: int) -> int:
        """Notes that a key seals from now on; returns the present time in epoch ms."""
        return (await self._scripts.run("note_sealing", {"keyring": keys.KEYRING}, id=str(key_id))).number("at")

    async def record_reencryption(self, front: int, since: int) -> None:
        """Notes that every document sealed before `since` (epoch ms) is under the key `front` now."""
        await self._scripts.run("record_reencryption", {"keyring": keys.KEYRING}, front=str(front), since=since)

    async def retire(self, key_id: int) -> None:
        """Forgets a key. Raises Refused("invalid_request") while anything sealed under it can live: until 31 days after
        a server last sealed with the key, and until the documents of that time are re-encrypted under another key."""
        reply = await self._scripts.run("retire_key", {"keyring": keys.KEYRING}, id=str(key_id), longest=LONGEST_SEALED)
        if reply.word == "in_use":
            days = LONGEST_SEALED // DAY
            raise Refused(
                "invalid_request", f"Key {key_id} sealed something less than {days} days ago that may still be alive."
            )
        if reply.word == "documents":
            raise Refused(
                "invalid_request",
                f"Documents may still be sealed under key {key_id}: run `manage.py keys reencrypt` to the end, then "
                "try again.",
            )
