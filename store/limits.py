"""Rate limits outside the shards: of addresses, sign-in names and invented tokens. SPEC 8.1."""

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
    ALL_ADDRESSES,
    CLIENT_DOCUMENT,
    DEVICE_CODE,
    DEVICE_CODE_ADDRESS,
    DEVICE_CODE_ALL,
    FORGOT_ADDRESS,
    INVITE_MEMBER,
    MAIL_TO,
    MAIL_TO_ALL,
    MIDDLE,
    OWN_PASSWORD,
    OWN_PASSWORDS,
    PICTURE,
    PUBLIC_CLIENT,
    REGISTER_CLIENT,
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
from store.names import mailbox_of
from store.rates import Rates
from store.refused import let_in
from store.results import Window


class Networks(NamedTuple):
    """Keys of an address's windows, all in one slot: the widest network, a middle one, and the address. Without a
    middle network two of them are the same."""

    wide: str
    middle: str
    narrow: str


@dataclass(frozen=True, slots=True)
class Taken:
    """Windows that one request was taken from; `by_known`: by a device that the person signed in with before. As a
    context it gives the request back if the password pool is full, because an unchecked request does not count. It
    also holds the person's `turn`, if there is one."""

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
    """Takes requests from windows. Each method takes one and raises Refused("rate_limited") when the window is full. A
    request also counts for the networks around its address, so many addresses do not multiply the limit."""

    def __init__(self, scripts: Scripts, rates: Rates) -> None:
        self._scripts = scripts
        self.rates = rates
        self._people = KeyedSemaphore()
        self.public_clients = PUBLIC_CLIENT
        self.registrations = REGISTER_CLIENT
        self.documents = CLIENT_DOCUMENT

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
        """Gives the taken request back to its windows."""
        for group, networks in taken.windows:
            await self._scripts.run("give_back", networks._asdict(), **_limits(group, networks))

    def of_device(self, user: str, device: str) -> Taken:
        """The request that a known device took when `Devices.credentials` read the credentials."""
        own, theirs = windows_of(user, device)
        return Taken(self, ((SIGN_IN_DEVICE, alone(own)), (SIGN_IN_DEVICES, alone(theirs))), by_known=True)

    async def unknown_user(self, address: str) -> Window:
        """A request to /api/oauth/* whose user cannot be known, or whose app did not authenticate."""
        return await self._take_networks(ADDRESS, address)

    async def public_client(self, client: str, address: str, limit: int = 0) -> Window:
        """A call that a public app makes for itself: anybody may send its client_id. `limit`: for this app, 0 for the
        usual one."""
        group, (wide, middle) = self.public_clients, _around(address)
        group = replace(group, limit=limit) if limit else group
        around = f"{client} {wide}"
        places = (around if what == wide else what for what in (wide, middle, address))
        networks = Networks(*(keys.network(group.name, around, what) for what in places))
        return let_in(group, await self._scripts.run("take_networks", networks._asdict(), **_limits(group, networks)))

    async def register_client(self, address: str) -> Window:
        """An app that registers itself: counted for the address, and for all addresses together."""
        window = await self._take_networks(self.registrations, address)
        group = self.registrations
        await self._take(replace(group, limit=group.limit * ALL_ADDRESSES), "all")
        return window

    async def client_document(self, address: str, host: str, *, again: bool = False) -> None:
        """A fetch of an app's metadata document: counted for the address that asks, for the document's host, and for
        all together, so nobody makes this server call others as often as they like. One that is read `again` counts for
        the address alone: it is seldom enough, and strangers' requests for the same host must not end its app."""
        group = self.documents
        await self._take_networks(group, address)
        if again:
            return
        all_together = keys.window(group.name, "all")
        of_host = keys.network(group.name, "all", fingerprint(host).encode().hex()[:32])
        limits = {"limit": group.limit, "middle_limit": group.limit * ALL_ADDRESSES}
        limits |= {"wide_limit": group.limit * ALL_ADDRESSES, "period": group.period}
        networks = Networks(all_together, all_together, of_host)
        let_in(group, await self._scripts.run("take_networks", networks._asdict(), **limits))

    async def invented_token(self, presented: str) -> Window:
        """A revocation of a string that is no token of ours: the same figures as for a real token."""
        return await self._take(self.rates.oauth, fingerprint(presented))

    async def foreign_token(self, user: str, presented: str) -> Window:
        """A revocation of a real token by an app that the token was not issued to."""
        return await self._take_key(self.rates.oauth, keys.presented(user, fingerprint(presented)))

    async def sign_in(self, address: str, email: str) -> Taken:
        """An attempt to sign in, counted for the address and for the account, existing or not."""
        await self._take_networks(SIGN_IN_ADDRESS, address)
        await self._take(SIGN_IN_ACCOUNT, fingerprint(email))
        account = alone(keys.window(SIGN_IN_ACCOUNT.name, fingerprint(email)))
        return Taken(self, ((SIGN_IN_ADDRESS, _networks(SIGN_IN_ADDRESS, address)), (SIGN_IN_ACCOUNT, account)))

    async def sign_in_elsewhere(self, account: str) -> None:
        """An attempt with a password at a directory, counted for the account there, existing or not."""
        await self._take(SIGN_IN_ACCOUNT, fingerprint(account))

    async def own_password(self, user: str, session_id: str) -> Taken:
        """A password typed in a live session: counted for the session and for the person. Sign-ins are counted apart,
        because any stranger can fail them. As a context it holds the person's turn: the password pool works on one such
        form of a person at a time."""
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
        """The request taken by a password, or by a passkey's answer, in a live session."""
        windows = own_windows(user, session_id)
        own, theirs = alone(windows["window"]), alone(windows["windows"])
        return Taken(self, ((OWN_PASSWORD, own), (OWN_PASSWORDS, theirs)), by_known=True)

    async def passkey(self, address: str) -> None:
        """An attempt with a passkey or at a second step, counted for the address alone, so nobody can lock a person
        out. Nobody guesses a passkey, and wrong codes of the second step are counted with the person."""
        await self._take_networks(SIGN_IN_ADDRESS, address)

    async def device_code(self, user: str, address: str) -> Taken:
        """A code of a device that a person types, counted for the person, the address, and for everybody together. The
        caller gives a right one back."""
        await self._take_key(DEVICE_CODE, own := keys.limit(user, DEVICE_CODE.name))
        await self._take_networks(DEVICE_CODE_ADDRESS, address)
        await self._take_key(DEVICE_CODE_ALL, everybody := keys.window(DEVICE_CODE_ALL.name, "all"))
        around = DEVICE_CODE_ADDRESS, _networks(DEVICE_CODE_ADDRESS, address)
        return Taken(self, ((DEVICE_CODE, alone(own)), around, (DEVICE_CODE_ALL, alone(everybody))))

    async def sign_up(self, address: str) -> Taken:
        """An attempt to sign up."""
        await self._take_networks(SIGN_UP_ADDRESS, address)
        return Taken(self, ((SIGN_UP_ADDRESS, _networks(SIGN_UP_ADDRESS, address)),))

    async def sign_up_mail(self, address: str, email: str) -> None:
        """A mail to an address typed at sign-up, counted whether the address has an account or not."""
        await self._take_mail("signup", address, email)

    async def forgot(self, address: str, email: str) -> None:
        """A forgotten password, counted for the client's address and for the account, existing or not."""
        await self._take_networks(FORGOT_ADDRESS, address)
        await self._take_mail("forgot", address, email)

    async def change_mail(self, address: str, email: str) -> None:
        """A mail to a person's new address, counted whether the address has an account or not."""
        await self._take_mail("change", address, email)

    async def invite_member(self, user: str, address: str, email: str) -> None:
        """A mail that invites somebody to the team of an app, counted for the inviter, and for the address as every
        mail to an address that somebody typed."""
        await self._take_key(INVITE_MEMBER, keys.limit(user, INVITE_MEMBER.name))
        await self._take_mail("team", address, email)

    async def give_back_change_mail(self, address: str, email: str) -> None:
        """Gives the mail back if the change was refused: nobody uses up the limit of an address that gets no mail."""
        await self._scripts.run("give_back", _mail_windows("change", address, email)._asdict(), **_MAIL_LIMITS)

    async def _take_mail(self, purpose: str, address: str, email: str) -> None:
        """Counts a mail for the asking network and for all networks together: a stranger's five requests leave room for
        the owner's."""
        windows = _mail_windows(purpose, address, email)
        let_in(MAIL_TO, await self._scripts.run("take_networks", windows._asdict(), **_MAIL_LIMITS))

    async def picture(self, user: str) -> None:
        """An upload of a picture."""
        await self._take_key(PICTURE, keys.limit(user, PICTURE.name))

    async def verify_domain(self, user: str) -> None:
        """A check of an app's domain, started by a person."""
        await self._take_key(VERIFY_DOMAIN, keys.limit(user, VERIFY_DOMAIN.name))

    async def webhook_sent(self, user: str) -> None:
        """An event that a person sends to their own app by hand: a test or a repeat."""
        await self._take_key(WEBHOOK_SENT, keys.limit(user, WEBHOOK_SENT.name))


def alone(key: str) -> Networks:
    """A window that belongs to no network."""
    return Networks(key, key, key)


OWN_LIMITS = {"limit": OWN_PASSWORD.limit, "all": OWN_PASSWORDS.limit, "period": OWN_PASSWORD.period}
"""The figures of `own_windows`, as arguments of a script."""


def own_windows(user: str, session_id: str) -> dict[str, str]:
    """The windows of passwords typed in a live session: of the session, and of all the person's sessions together."""
    return {
        "window": keys.limit(user, OWN_PASSWORD.name, session_id),
        "windows": keys.limit(user, OWN_PASSWORDS.name),
    }


def windows_of(user: str, device: str) -> tuple[str, str]:
    """The windows of a known device, and of all devices of the person."""
    return keys.limit(user, SIGN_IN_DEVICE.name, device), keys.limit(user, SIGN_IN_DEVICES.name)


def _networks(group: Group, address: str) -> Networks:
    """The windows that count an address: an IPv4 address, a /64 of IPv6, or a word if the address is unknown."""
    wide, middle = _around(address)
    return Networks(*(keys.network(group.name, wide, what) for what in (wide, middle, address)))


_MAIL_LIMITS = {
    "limit": MAIL_TO.limit,
    "middle_limit": MAIL_TO_ALL.limit,
    "wide_limit": MAIL_TO_ALL.limit,
    "period": MAIL_TO.period,
}


def _mail_windows(purpose: str, address: str, email: str) -> Networks:
    """The windows that count a mail to an address that somebody typed. All tags of a mailbox share them, because
    anybody can invent tags."""
    to = f"{purpose}:{fingerprint(mailbox_of(email))}"
    everybody = keys.window(MAIL_TO.name, to)
    return Networks(everybody, everybody, keys.network(MAIL_TO.name, to, network_of(address)))


def network_of(address: str) -> str:
    """The widest network whose window counts an address: a /24 of IPv4, a /48 of IPv6; a word is itself."""
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
