"""The index of e-mail addresses: the user id for each address.

An entry is in another slot than the person's row, so it counts only if the row names the same address. An entry is
first a reservation for a minute, and then permanent. A permanent entry that the row contradicts is the rest of an
interrupted operation, and gives way to anybody who wants the address.
"""

from __future__ import annotations

from collections.abc import Iterable

from redis.asyncio import Redis

from store import keys
from store.engine.scripts import Scripts
from store.errors import StoreFull, wrapped
from store.lifetimes import EMAIL_RESERVATION


class Addresses:
    """Finds, reserves and frees addresses. Every method raises StoreUnavailable; addresses are normalised."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts

    async def find(self, email: str) -> str | None:
        """The user id in the index for an address; the person's row decides whether the entry counts."""
        with wrapped():
            user = await self._client.get(keys.email(email))
        return user.decode() if isinstance(user, bytes) else None

    async def reserve(self, email: str, user: str) -> bool:
        """Reserves the address for 60 s, unless the entry is permanent; returns whether it is this person's now."""
        try:
            taken = await self._take(email, user)
        except StoreFull:  # no room for a new entry, but the entry may exist already
            if await self.find(email) == user:
                return True
            raise
        if taken or await self.find(email) == user:
            return True
        return await self.free_stale(email) and await self._take(email, user)

    async def _take(self, email: str, user: str) -> bool:
        with wrapped():
            return bool(await self._client.set(keys.email(email), user, nx=True, px=EMAIL_RESERVATION))

    async def keep(self, email: str, user: str) -> bool:
        """Makes a reservation permanent; returns whether it was still this person's."""
        known = {"email": keys.email(email), "invite": keys.invite(email)}
        return (await self._scripts.run("confirm_email", known, user_id=user)).word == "ok"

    async def keep_all(self, reserved: Iterable[tuple[str, str]]) -> list[bool]:
        """As `keep`, for many addresses and their people at once."""
        calls = [
            ({"email": keys.email(email), "invite": keys.invite(email)}, {"user_id": user}) for email, user in reserved
        ]
        return [reply.word == "ok" for reply in await self._scripts.run_many("confirm_email", calls)]

    async def claim(self, email: str, user: str) -> bool:
        """Reserves the address and makes the reservation permanent; returns whether it is this person's now."""
        return await self.reserve(email, user) and await self.keep(email, user)

    async def release(self, email: str, user: str) -> None:
        """Frees the address, if it is this person's."""
        await self._scripts.run("release_email", {"email": keys.email(email)}, user_id=user)

    async def hold(self, email: str, user: str, ends: int) -> None:
        """Keeps the address for this person until a time (epoch ms), so that a link can bring it back; 0 frees it."""
        if not ends:
            return await self.release(email, user)
        await self._scripts.run("hold_email", {"email": keys.email(email)}, user_id=user, ends=ends)

    async def free_stale(self, email: str) -> bool:
        """Frees the address if its permanent entry matches nobody's row; this ends a change to that address in
        progress. Returns whether there was such an entry."""
        with wrapped():
            lasts = await self._client.pttl(keys.email(email)) == -1
        user = await self.find(email) if lasts else None
        if user is None:
            return False
        known = {**keys.person(user), "link": keys.link(user, "change")}
        if (await self._scripts.run("disown_address", known, email=email)).word == "owned":
            return False
        await self.release(email, user)
        return True
