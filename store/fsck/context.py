"""What every check works with, and the state of the walk."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from store import keys
from store.accounts.addresses import Addresses
from store.accounts.signin.totp import TotpSecrets
from store.apps.registration import Registration
from store.apps.tombstones import Tombstone
from store.crypto.cipher import Cipher
from store.crypto.keyring import Keys
from store.fsck.reading import Reader


@dataclass(slots=True)
class FsckContext:
    """`deep`: what is encrypted is opened. `last`: what lies in several slots is looked at for the last time."""

    reader: Reader
    cipher: Cipher
    secrets: TotpSecrets
    ring: Keys
    addresses: Addresses
    deep: bool = False
    last: bool = False
    unsure: dict[str, None] = field(default_factory=dict)
    """Keys that are looked at again at the end: what is changed in several steps may have been between two of them."""
    connected: Counter[str] = field(default_factory=Counter)
    """How many people have connected an app."""
    documents: int = 0
    people: int = 0
    apps: int = 0
    busy: int = 0
    """What kept changing, however often it was looked at."""

    def is_sure(self, key: str) -> bool:
        """Whether what two slots seem to say can be told now; else the key is looked at again."""
        if not self.last:
            self.unsure[key] = None
        return self.last

    async def registration(self, client: str) -> tuple[Registration | None, str | None, bool]:
        """The registration of an app; who owned one that was deleted; whether there is anything at all. What cannot be
        read counts as there."""
        packed: Any = await self.reader.command("GET", keys.app(client))
        if not isinstance(packed, bytes):
            return None, None, False
        try:
            stone = Tombstone.unpack(packed)
            return (None, stone.owner, True) if stone else (Registration.unpack(packed), None, True)
        except Exception:  # whatever msgpack and the rules of a registration make of other bytes
            return None, None, True

    async def is_person(self, user: str) -> bool:
        """Whether there is such a person."""
        return bool(await self.reader.command("EXISTS", keys.person(user)["user"]))
