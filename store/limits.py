"""Windows that stand alone: of addresses, sign-in names and invented tokens. SPEC 8.1."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import IPv4Network, ip_network
from types import TracebackType
from typing import NamedTuple

from store import keys
from store.crypto.passwords import HasherBusy
from store.crypto.seal import fingerprint
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.keyed_semaphore import KeyedSemaphore
from store.lifetimes import (
    ADDRESS,
    FORGOT_ADDRESS,
    MAIL_TO,
    MAIL_TO_ALL,
    MIDDLE,
    OAUTH,
    OWN_PASSWORD,
    OWN_PASSWORDS,
    PICTURE,
    SIGN_IN_ACCOUNT,
    SIGN_IN_ADDRESS,
    SIGN_IN_DEVICE,
    SIGN_IN_DEVICES,
    SIGN_UP_ADDRESS,
    VERIFY_DOMAIN,
    WEBHOOK_SENT,
    WIDE,
    Group,
)
from store.refused import let_in
from store.results import Window


class Networks(NamedTuple):
    """The keys of the windows of an address, all in one slot: of the widest network around it, of one between, and of
    the address. Two are the same where there is no network between."""

    wide: str
    middle: str
    narrow: str


@dataclass(frozen=True, slots=True)
class Taken:
    """Windows from which one request was taken, `by_known`: a device that the person signed in with. As a context
    it gives the request back where the password pool is full: what was not looked at counts for nothing. It holds the
    `turn` of the person, where there is one."""

    limits: RateLimits
    windows: tuple[tuple[Group, Networks], ...]
    by_known: bool = False
    turn: AbstractAsyncContextManager[None] = field(default_factory=nullcontext)

    async def __aenter__(self) -> None:
        await self.turn.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.turn.__aexit__(kind, error, traceback)
        if kind is not None and issubclass(kind, HasherBusy):
            with suppress(StoreError):
                await self.limits.give_back(self)


class RateLimits:
    """Each method takes one request from a window and raises Refused("rate_limited") when it is full. An address counts
    for the networks around it too: nobody who has many addresses has as many times the limit."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._people = KeyedSemaphore()

    async def _take(self, group: Group, what: str) -> Window:
        return await self._take_key(group, keys.window(group.name, what))

    async def _take_key(self, group: Group, key: str) -> Window:
        reply = await self._scripts.run("take_window", {"window": key}, limit=group.limit, period=group.period)
        return let_in(group, reply)

    async def _take_networks(self, group: Group, address: str) -> Window:
        networks = _networks(group, address)
        reply = await self._scripts.run("take_networks", networks._asdict(), **_limits(group, networks))
        return let_in(group, reply)

    async def give_back(self, taken: Taken) -> None:
        """Gives back what was taken."""
        for group, networks in taken.windows:
            await self._scripts.run("give_back", networks._asdict(), **_limits(group, networks))

    def of_device(self, user: str, device: str) -> Taken:
        """What a known device took, when `Devices.credentials` read what its password is verified against."""
        own, theirs = windows_of(user, device)
        return Taken(self, ((SIGN_IN_DEVICE, alone(own)), (SIGN_IN_DEVICES, alone(theirs))), by_known=True)

    async def unknown_user(self, address: str) -> Window:
        """A request to /api/oauth/* whose user cannot be known, or whose app did not authenticate."""
        return await self._take_networks(ADDRESS, address)

    async def invented_token(self, presented: str) -> Window:
        """A string presented for revocation that is no token of ours: the same figures as for one that is."""
        return await self._take(OAUTH, fingerprint(presented))

    async def foreign_token(self, user: str, presented: str) -> Window:
        """A token of ours, presented for revocation by an app it was not issued to."""
        return await self._take_key(OAUTH, keys.presented(user, fingerprint(presented)))

    async def sign_in(self, address: str, email: str) -> Taken:
        """An attempt to sign in, counted for the address and for the account, existing or not."""
        await self._take_networks(SIGN_IN_ADDRESS, address)
        await self._take(SIGN_IN_ACCOUNT, fingerprint(email))
        account = alone(keys.window(SIGN_IN_ACCOUNT.name, fingerprint(email)))
        return Taken(self, ((SIGN_IN_ADDRESS, _networks(SIGN_IN_ADDRESS, address)), (SIGN_IN_ACCOUNT, account)))

    async def own_password(self, user: str, session_id: str) -> Taken:
        """A password that is typed in a live session: counted for the session and for the person, and apart from
        sign-ins, which any stranger can fail. As a context it holds the person's turn: the password pool has one of
        these forms of a person at a time."""
        windows = own_windows(user, session_id)
        own, theirs = windows["window"], windows["windows"]
        reply = await self._scripts.run(
            "take_networks",
            Networks(theirs, theirs, own)._asdict(),
            limit=OWN_PASSWORD.limit,
            middle_limit=OWN_PASSWORDS.limit,
            wide_limit=OWN_PASSWORDS.limit,
            period=OWN_PASSWORD.period,
        )
        let_in(OWN_PASSWORD, reply)
        return replace(self.of_session(user, session_id), turn=self._people.place(user))

    def of_session(self, user: str, session_id: str) -> Taken:
        """What a password that is typed in a live session took, or the answer of a passkey there."""
        windows = own_windows(user, session_id)
        own, theirs = alone(windows["window"]), alone(windows["windows"])
        return Taken(self, ((OWN_PASSWORD, own), (OWN_PASSWORDS, theirs)), by_known=True)

    async def passkey(self, address: str) -> None:
        """An attempt with a passkey, which nobody guesses, or at a second step, whose wrong codes are counted with the
        person: counted for the address alone, so that nobody locks a person out."""
        await self._take_networks(SIGN_IN_ADDRESS, address)

    async def sign_up(self, address: str) -> Taken:
        """An attempt to sign up."""
        await self._take_networks(SIGN_UP_ADDRESS, address)
        return Taken(self, ((SIGN_UP_ADDRESS, _networks(SIGN_UP_ADDRESS, address)),))

    async def sign_up_mail(self, address: str, email: str) -> None:
        """A mail to whoever wants to sign up with this address, counted whether it has an account or not."""
        await self._take_mail("signup", address, email)

    async def forgot(self, address: str, email: str) -> None:
        """A forgotten password, counted for the address it comes from and for the account, existing or not."""
        await self._take_networks(FORGOT_ADDRESS, address)
        await self._take_mail("forgot", address, email)

    async def change_mail(self, address: str, email: str) -> None:
        """A mail to the address that a person wants to have, counted whether it has an account or not."""
        await self._take_mail("change", address, email)

    async def _take_mail(self, purpose: str, address: str, email: str) -> None:
        """Counts for the network that asks, and for all networks together: five requests of a stranger's leave room for
        the owner's."""
        to, (network, _) = f"{purpose}:{fingerprint(email)}", _around(address)
        everybody = keys.window(MAIL_TO.name, to)
        reply = await self._scripts.run(
            "take_networks",
            Networks(everybody, everybody, keys.network(MAIL_TO.name, to, network))._asdict(),
            limit=MAIL_TO.limit,
            middle_limit=MAIL_TO_ALL.limit,
            wide_limit=MAIL_TO_ALL.limit,
            period=MAIL_TO.period,
        )
        let_in(MAIL_TO, reply)

    async def picture(self, user: str) -> None:
        """A picture that a person uploads."""
        await self._take_key(PICTURE, keys.limit(user, PICTURE.name))

    async def verify_domain(self, user: str) -> None:
        """A domain of an app that a person has checked."""
        await self._take_key(VERIFY_DOMAIN, keys.limit(user, VERIFY_DOMAIN.name))

    async def webhook_sent(self, user: str) -> None:
        """An event that a person has sent to an app of theirs by hand: a test, or one once more."""
        await self._take_key(WEBHOOK_SENT, keys.limit(user, WEBHOOK_SENT.name))


def alone(key: str) -> Networks:
    """A window that is no network's."""
    return Networks(key, key, key)


OWN_LIMITS = {"limit": OWN_PASSWORD.limit, "all": OWN_PASSWORDS.limit, "period": OWN_PASSWORD.period}
"""The figures of `own_windows`, as arguments of a script."""


def own_windows(user: str, session_id: str) -> dict[str, str]:
    """The windows of what is typed in a live session: of the session, and of all of the person's sessions together."""
    return {
        "window": keys.limit(user, OWN_PASSWORD.name, session_id),
        "windows": keys.limit(user, OWN_PASSWORDS.name),
    }


def windows_of(user: str, device: str) -> tuple[str, str]:
    """The windows of a known device, and of all devices of the person."""
    return keys.limit(user, SIGN_IN_DEVICE.name, device), keys.limit(user, SIGN_IN_DEVICES.name)


def _networks(group: Group, address: str) -> Networks:
    """The windows that count an address, which is one of IPv4, a /64 of IPv6, or a word where it is not known."""
    wide, middle = _around(address)
    return Networks(*(keys.network(group.name, wide, what) for what in (wide, middle, address)))


def network_of(address: str) -> str:
    """The widest network that windows count an address in: a /24 of IPv4, a /48 of IPv6; a word is itself."""
    return _around(address)[0]


@lru_cache(maxsize=4096)
def _around(address: str) -> tuple[str, str]:
    try:
        network = ip_network(address, strict=False)
    except ValueError:
        return address, address
    if isinstance(network, IPv4Network):
        wide = str(network.supernet(new_prefix=24))
        return wide, wide
    # A site has a /48 of IPv6, with 65,536 /64s.
    return str(network.supernet(new_prefix=48)), str(network.supernet(new_prefix=56))


def _limits(group: Group, networks: Networks) -> dict[str, int]:
    middle = WIDE if networks.middle == networks.wide else MIDDLE
    return {
        "limit": group.limit,
        "middle_limit": group.limit * middle,
        "wide_limit": group.limit * WIDE,
        "period": group.period,
    }
