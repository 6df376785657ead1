"""Sign-in by password, and the limits of mails for a forgotten one."""

from __future__ import annotations

from store.accounts.people import People
from store.accounts.signin.devices import Devices
from store.accounts.signin.sessions import Sessions, SignedIn
from store.limits import RateLimits
from store.refused import SignedOut
from store.results import Visitor


class SignIn:
    """Sign-in by password, with places reserved for known devices."""

    def __init__(self, limits: RateLimits, people: People, sessions: Sessions, devices: Devices) -> None:
        self._limits = limits
        self._people = people
        self._sessions = sessions
        self._devices = devices

    async def with_password(
        self,
        email: str,
        password: str,
        address: str,
        cookie: str | None,
        visitor: Visitor,
        *,
        kept: bool = True,
        must: bool = False,
    ) -> SignedIn:
        """Starts a session, which is `kept` when the browser closes. `must` as in `Sessions.start`. The attempt counts
        for the address and the account, existing or not, or only for the known device of `cookie`. Raises SignedOut for
        a wrong password or a missing account, Suspended, SecondStepNeeded, Refused("rate_limited"), and HasherBusy,
        which costs no attempt."""
        device = self._devices.open(cookie)
        credentials = await self._devices.credentials(device, email) if device else None
        if device and credentials:
            taken = self._limits.of_device(device.user, device.id)
        else:
            taken = await self._limits.sign_in(address, email)
            credentials = await self._people.credentials(email)
        async with taken:
            found = await self._people.judge(
                credentials, email, password, known=taken.by_known, refused="sign_in_refused"
            )
        if found is None:
            raise SignedOut
        return await self._sessions.start(found, visitor, device, kept=kept, must=must)

    async def forgot(self, email: str, address: str, cookie: str | None) -> None:
        """Counts a mail for a forgotten password: for the address and the account, existing or not, or only for the
        known device of `cookie`. Raises Refused("rate_limited")."""
        device = self._devices.open(cookie)
        if not (device and await self._devices.take_mail(device, email)):
            await self._limits.forgot(address, email)
