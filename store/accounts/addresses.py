"""The index of e-mail addresses: to each the user id of whoever has it.

An entry lies in another slot than the person's row, so it counts only if the row names the same address. It is reserved
for a minute, then made to last; one that lasts and that the row does not bear out is left of something that broke off,
and gives way to whoever wants the address.
"""

from __future__ import annotations

from redis.asyncio import Redis

from store import keys
from store.engine.scripts import Scripts
from store.errors import StoreFull, wrapped
from store.lifetimes import EMAIL_RESERVATION


class Addresses:
    """Every method raises StoreUnavailable; addresses are normalised."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts

    async def find(self, email: str) -> str | None:
        """The user id the index names for an address; whether it counts, the person's row says."""
        with wrapped():
            user = await self._client.get(keys.email(email))
        return user.decode() if isinstance(user, bytes) else None

    async def reserve(self, email: str, user: str) -> bool:
        """Whether the address is this person's now: for 60 s, or to last where it was so before."""
        try:
            taken = await self._take(email, user)
        except StoreFull:  # there is no room for an entry, and it may be there already
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
        """Makes a reservation last, and says whether it was still this person's."""
        known = {"email": keys.email(email), "invite": keys.invite(email)}
        return (await self._scripts.run("confirm_email", known, user_id=user)).word == "ok"

    async def release(self, email: str, user: str) -> None:
        """Frees the address, if it is this person's."""
        await self._scripts.run("release_email", {"email": keys.email(email)}, user_id=user)

    async def hold(self, email: str, user: str, ends: int) -> None:
        """Keeps the address this person's until a time (epoch ms), for a link that brings it back; 0 frees it."""
        if not ends:
            return await self.release(email, user)
        await self._scripts.run("hold_email", {"email": keys.email(email)}, user_id=user, ends=ends)

    async def free_stale(self, email: str) -> bool:
        """Frees the address where it has an entry that lasts and that nobody's row bears out; a change of address on
        its way to that is over. Says whether there was one."""
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
