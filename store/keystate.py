"""The secret keys a store was written with, and in which layout: a server with others refuses to start."""

from __future__ import annotations

import json

from store import keys
from store.crypto.keyring import KeyRing
from store.engine.scripts import Scripts
from store.errors import StartupError
from store.lifetimes import DAY, LONGEST_SEALED, MINUTE
from store.refused import Refused

LAYOUT = 3
"""How the store is laid out, as a number. What an older number means, and how it is left behind: `store/upgrade.py`."""

NOTES_LOST = 3 * 60 * MINUTE
"""Servers note hourly which key they seal with; two of these notes may fail. In ms."""


class KeyState:
    """Which keys sealed what the store holds, and until when."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def check(self, ring: KeyRing) -> int:
        """Holds the ring against the check values in the store, adds what is new, and notes that the front key seals
        now; returns the layout of what the store holds. A server does this at its start and hourly. Raises StartupError
        for keys of another store, and for a store that a later release has laid out."""
        reply = await self._scripts.run(
            "check_keys",
            {"keyring": keys.KEYRING},
            checks=json.dumps({str(key.id): key.check_value for key in ring.keys}),
            front=str(ring.front.id),
            layout=LAYOUT,
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
        return reply.number("layout")

    async def note_layout(self) -> None:
        """Notes that everything in the store is in the layout of this release."""
        await self._scripts.run("note_layout", {"keyring": keys.KEYRING}, layout=LAYOUT)

    async def known(self) -> frozenset[int]:
        """The ids this store knows a key by: what was sealed under one of them may still live, so none of them names
        a new key."""
        reply = await self._scripts.run("list_keys", {"keyring": keys.KEYRING})
        return frozenset(int(key_id) for key_id in reply.rows("ids"))

    async def note_sealing(self, key_id: int) -> int:
        """Notes that something is sealed with a key from now on; returns now, in epoch ms."""
        return (await self._scripts.run("note_sealing", {"keyring": keys.KEYRING}, id=str(key_id))).number("at")

    async def record_reencryption(self, front: int, since: int) -> None:
        """Notes that of all that was sealed before `since` (epoch ms) every document is under the key `front` now."""
        await self._scripts.run("record_reencryption", {"keyring": keys.KEYRING}, front=str(front), since=since)

    async def retire(self, key_id: int) -> None:
        """Forgets a key. Raises Refused("invalid_request") while anything sealed under it can live: 31 days after a
        server last sealed with it, and until the documents of that time were re-encrypted under another one."""
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
