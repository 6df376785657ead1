"""Windows that stand alone: of addresses, sign-in names and invented tokens. SPEC 8.1."""

from __future__ import annotations

from store import keys
from store.lifetimes import (
    ADDRESS,
    FORGOT_ADDRESS,
    MAIL_TO,
    OAUTH,
    OWN_PASSWORD,
    PICTURE,
    SIGN_IN_ACCOUNT,
    SIGN_IN_ADDRESS,
    SIGN_UP_ADDRESS,
    WEBHOOK_SENT,
    Group,
)
from store.refused import let_in
from store.results import Window
from store.scripts import Scripts
from store.seal import fingerprint


class Limits:
    """Each method takes one request from a window and raises Refused("rate_limited") when it is full."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def _take(self, group: Group, what: str) -> Window:
        return await self._take_key(group, keys.window(group.name, what))

    async def _take_key(self, group: Group, key: str) -> Window:
        reply = await self._scripts.run("take_window", {"window": key}, limit=group.limit, period=group.period)
        return let_in(group, reply)

    async def unknown_user(self, address: str) -> Window:
        """A request to /api/oauth/* whose user cannot be known, or whose app did not authenticate."""
        return await self._take(ADDRESS, address)

    async def invented_token(self, presented: str) -> Window:
        """A string presented for revocation that is no token of ours: the same figures as for one that is."""
        return await self._take(OAUTH, fingerprint(presented))

    async def foreign_token(self, user: str, presented: str) -> Window:
        """A token of ours, presented for revocation by an app it was not issued to."""
        return await self._take_key(OAUTH, keys.presented(user, fingerprint(presented)))

    async def sign_in(self, address: str, email: str) -> None:
        """An attempt to sign in, counted for the address and for the account, existing or not."""
        await self._take(SIGN_IN_ADDRESS, address)
        await self._take(SIGN_IN_ACCOUNT, fingerprint(email))

    async def own_password(self, user: str) -> None:
        """A password that is typed in a live session: counted apart from sign-ins, which any stranger can fail."""
        await self._take_key(OWN_PASSWORD, keys.limit(user, OWN_PASSWORD.name))

    async def passkey(self, address: str) -> None:
        """An attempt to sign in with a passkey, which nobody guesses: counted for the address alone, so that nobody
        locks a person out."""
        await self._take(SIGN_IN_ADDRESS, address)

    async def sign_up(self, address: str) -> None:
        """An attempt to sign up."""
        await self._take(SIGN_UP_ADDRESS, address)

    async def sign_up_mail(self, email: str) -> None:
        """A mail to whoever wants to sign up with this address, counted whether it has an account or not."""
        await self._take(MAIL_TO, "signup:" + fingerprint(email))

    async def forgot(self, address: str, email: str) -> None:
        """A forgotten password, counted for the address it comes from and for the account, existing or not."""
        await self._take(FORGOT_ADDRESS, address)
        await self._take(MAIL_TO, "forgot:" + fingerprint(email))

    async def change_mail(self, email: str) -> None:
        """A mail to the address that a person wants to have, counted whether it has an account or not."""
        await self._take(MAIL_TO, "change:" + fingerprint(email))

    async def picture(self, user: str) -> None:
        """A picture that a person uploads."""
        await self._take_key(PICTURE, keys.limit(user, PICTURE.name))

    async def webhook_sent(self, user: str) -> None:
        """An event that a person has sent to an app of theirs by hand: a test, or one once more."""
        await self._take_key(WEBHOOK_SENT, keys.limit(user, WEBHOOK_SENT.name))
