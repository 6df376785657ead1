"""Operator keys: what programs of the operator show at the operations port."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.crypto.seal import fingerprint
from store.engine.scripts import Scripts
from store.errors import wrapped
from store.lifetimes import MINUTE
from store.names import check_app_name
from store.operators.roles import OperatorActor, OperatorRole, check_operator_role
from store.refused import Refused

PREFIX = "lk_ok_"
"""What secret scanners look for."""
MOST_KEYS = 1000
USED_EVERY = MINUTE
"""A key's last use is noted at most once in this time, in ms."""
_LENGTH = len(PREFIX) + 43


@dataclass(frozen=True, slots=True)
class OperatorKey:
    """A live key, without its text. `ends_at`, `made_at` and `used_at` are epoch ms, 0 for never; `network`: the only
    one that the key works from, or empty; `used_from`: the address of its last noted use."""

    id: str
    role: OperatorRole
    name: str
    network: str
    made_at: int
    ends_at: int = 0
    used_at: int = 0
    used_from: str = ""

    @property
    def actor(self) -> OperatorActor:
        """Who acts with this key."""
        return OperatorActor("key", self.id, self.role, self.name)


class OperatorKeys:
    """Makes, lists, checks and revokes the keys. A key's row ends with the key, so an expired one is unknown. Every
    method raises StoreUnavailable."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts

    async def create(
        self, role: OperatorRole, *, name: str = "", ends_at: int = 0, network: str = ""
    ) -> tuple[OperatorKey, str]:
        """A new key, whose text is shown only now. Raises Refused("invalid_request") for too many keys, ValueError for
        a wrong name or network."""
        name = check_app_name(name) if name else ""
        network = check_network(network) if network else ""
        await self.list()  # frees the places of keys that have expired
        text = PREFIX + secrets.token_urlsafe(32)
        key_id = fingerprint(text)
        reply = await self._scripts.run(
            "add_operator_key",
            keys.operator_key(key_id),
            id=key_id,
            digest=_digest(text),
            role=role,
            name=name,
            network=network,
            ends=ends_at,
            most=MOST_KEYS,
        )
        if reply.word == "full":
            raise Refused("invalid_request", f"There are {MOST_KEYS} operator keys. Revoke one first.")
        return OperatorKey(key_id, role, name, network, reply.number("made"), ends_at), text

    async def open(self, text: str, address: str) -> OperatorKey | None:
        """The live key with this text, used from this address; None for any other text, or from elsewhere."""
        if len(text) != _LENGTH or not text.startswith(PREFIX) or not text.isascii():
            return None
        key_id = fingerprint(text)
        with wrapped():
            row: Any = await self._client.hgetall(keys.operator_key(key_id)["key"])
        if not row or not hmac.compare_digest(row[b"digest"], _digest(text).encode()):
            return None
        key = _key(key_id, row)
        if key.network and not _within(address, key.network):
            return None
        return key

    async def used(self, key: OperatorKey, address: str, now: int) -> None:
        """Notes a use of the key, at most once a minute. `now` is in epoch ms."""
        if now - key.used_at >= USED_EVERY:
            await self._scripts.run("note_key_use", keys.operator_key(key.id), address=address)

    async def list(self) -> list[OperatorKey]:
        """The live keys, oldest first. Drops ids of keys that have expired."""
        every = keys.operator_key("")["all"]
        with wrapped():
            ids: Any = await self._client.zrange(every, 0, -1)
            async with self._client.pipeline(transaction=False) as batch:
                for one in ids:
                    batch.hgetall(keys.operator_key(one.decode())["key"])
                rows: list[Any] = await batch.execute() if ids else []
            over = [one for one, row in zip(ids, rows, strict=True) if not row]
            if over:
                await self._client.zrem(every, *over)
        found = [_key(one.decode(), row) for one, row in zip(ids, rows, strict=True) if row]
        return sorted(found, key=lambda key: (key.made_at, key.id))

    async def is_live(self, key_id: str) -> bool:
        """Whether the key with this id has neither expired nor been revoked."""
        with wrapped():
            return bool(await self._client.exists(keys.operator_key(key_id)["key"]))

    async def revoke(self, key_id: str) -> OperatorKey:
        """Ends a key at once, and returns it. Raises Refused("not_found")."""
        named = [key for key in await self.list() if key.id == key_id]
        if not named:
            raise Refused("not_found", "There is no such operator key.")
        reply = await self._scripts.run("drop_operator_key", keys.operator_key(key_id), id=key_id)
        if reply.word == "not_found":
            raise Refused("not_found", "There is no such operator key.")
        return named[0]


def check_network(text: str) -> str:
    """An address or network in CIDR notation, in its normal form. Raises ValueError."""
    try:
        return str(ip_network(text.strip()))
    except ValueError:
        raise ValueError("--address takes an address or a network, such as 10.0.0.7 or 10.0.0.0/24.") from None


def _within(address: str, network: str) -> bool:
    try:
        return ip_address(address) in ip_network(network)
    except ValueError:  # no address is known, as on a Unix socket
        return False


def _digest(text: str) -> str:
    """256 random bits need no slow hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def _key(key_id: str, row: dict[bytes, bytes]) -> OperatorKey:
    return OperatorKey(
        key_id,
        check_operator_role(row[b"role"].decode()),
        row[b"name"].decode(),
        row[b"network"].decode(),
        int(row[b"made_at"]),
        int(row[b"ends_at"]),
        int(row.get(b"used_at", 0)),
        row.get(b"used_from", b"").decode(),
    )
