"""The context of every check, and the state of the walk."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from store import keys
from store.accounts.addresses import Addresses
from store.accounts.identities import Identities
from store.accounts.signin.totp import TotpSecrets
from store.apps.registration import Registration
from store.apps.tombstones import Tombstone
from store.crypto.cipher import Cipher
from store.crypto.keyring import Keys
from store.directory.relay import DirectoryRelay
from store.fsck.reading import Reader


@dataclass(slots=True)
class FsckContext:
    """The context of a check. `deep`: also opens encrypted data. `last`: the final look at data in several slots."""

    reader: Reader
    cipher: Cipher
    secrets: TotpSecrets
    ring: Keys
    addresses: Addresses
    identities: Identities
    directory: DirectoryRelay
    deep: bool = False
    last: bool = False
    unsure: dict[str, None] = field(default_factory=dict)
    """Keys to check again at the end: a change in several steps may have been between two of them."""
    connected: Counter[str] = field(default_factory=Counter)
    """How many people have connected each app."""
    expected: dict[tuple[str, bytes], list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """Entries that the index of people must have and that have yet to be looked up, by section."""
    expecting: int = 0
    """The number of people they belong to."""
    documents: int = 0
    people: int = 0
    apps: int = 0
    busy: int = 0
    """How many pairs or keys kept changing during every look."""

    def is_sure(self, key: str) -> bool:
        """Whether a contradiction between two slots is final; if not, notes the key for another look."""
        if not self.last:
            self.unsure[key] = None
        return self.last

    async def registration(self, client: str) -> tuple[Registration | None, str | None, bool]:
        """The registration of an app; the former owner of a deleted one; and whether the key exists. An unreadable
        registration counts as existing."""
        packed: Any = await self.reader.command("GET", keys.app(client))
        if not isinstance(packed, bytes):
            return None, None, False
        try:
            stone = Tombstone.unpack(packed)
            return (None, stone.owner, True) if stone else (Registration.unpack(packed), None, True)
        except Exception:  # any error that msgpack or the registration's rules raise for other bytes
            return None, None, True

    async def is_registered(self, client: str) -> bool:
        """Whether the key of an app's registration exists, also of an unreadable or deleted one."""
        return bool(await self.reader.command("EXISTS", keys.app(client)))

    async def is_person(self, user: str) -> bool:
        """Whether the person exists."""
        return bool(await self.reader.command("EXISTS", keys.person(user)["user"]))
