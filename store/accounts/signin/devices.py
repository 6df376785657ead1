"""Known devices: browsers a person signed in with before. Each has a sealed cookie; the store has only windows.

A stranger can fill the window of an account, and all places of the password pool. A known device has its own window and
its own places, so nobody can keep the person from signing in there. The cookie alone signs nobody in: a thief gets a
few more guesses, in a window that is also bounded.
"""

from __future__ import annotations

from typing import NamedTuple

from store import keys
from store.accounts.people import Credentials, credentials_of
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.engine.scripts import Reply, Scripts
from store.lifetimes import DEVICE, MAIL_DEVICE, MAIL_DEVICES, SIGN_IN_DEVICE, SIGN_IN_DEVICES, Group
from store.refused import SignedOut


class Device(NamedTuple):
    """A browser named by its cookie: person, device id, the session epoch at that time, and the time (epoch ms)."""

    user: str
    id: str
    session_epoch: str
    known_at: str

    def fields(self) -> dict[str, str | int]:
        """The arguments of a script."""
        return {"session_epoch": self.session_epoch, "known_at": self.known_at, "lasts": DEVICE}


class Devices:
    """Opens and seals the cookies. A forged one costs no I/O."""

    def __init__(self, scripts: Scripts, sealer: Sealer) -> None:
        self._scripts = scripts
        self._sealer = sealer

    def open(self, cookie: str | None) -> Device | None:
        """The device of a cookie, or None for a forged or foreign one."""
        token = self._sealer.open(TokenKind.DEVICE, cookie) if cookie else None
        return Device(token.user, token.id, *token.client.split(" ")) if token else None

    def seal(self, before: Device | None, user: str, session_epoch: str, now: int) -> str:
        """The cookie of a browser in which this person has just signed in. If `before` is a device of theirs, it keeps
        its id and its windows."""
        same = before is not None and before.user == user
        device = before.id if before is not None and same else new_id()
        return self._sealer.seal(Token(TokenKind.DEVICE, user, f"{session_epoch} {now}", device, 0))

    async def renew(self, before: Device | None, user: str) -> str:
        """As `seal`, in the person's present epoch: for the browser that has just changed the epoch. Raises SignedOut
        if the person is gone."""
        reply = await self._scripts.run("read_epoch", keys.person(user))
        if reply.word == "not_found":
            raise SignedOut
        return self.seal(before, user, reply.text("session_epoch"), reply.number("now"))

    async def credentials(self, device: Device, email: str) -> Credentials | None:
        """Takes a try from the windows of the device, and returns the credentials to verify a password against. None
        if the browser counts as a stranger's: another address, another epoch, or no try left."""
        reply = await self._take(device, email, SIGN_IN_DEVICE, SIGN_IN_DEVICES)
        return credentials_of(device.user, reply) if reply.word == "ok" else None

    async def take_mail(self, device: Device, email: str) -> bool:
        """Takes a mail for a forgotten password from the windows of the device; False if the device counts as a
        stranger's."""
        return (await self._take(device, email, MAIL_DEVICE, MAIL_DEVICES)).word == "ok"

    async def _take(self, device: Device, email: str, one: Group, every: Group) -> Reply:
        return await self._scripts.run(
            "try_device",
            {
                **keys.person(device.user),
                "device": keys.limit(device.user, one.name, device.id),
                "devices": keys.limit(device.user, every.name),
            },
            email=email,
            limit=one.limit,
            all=every.limit,
            period=one.period,
            **device.fields(),
        )
