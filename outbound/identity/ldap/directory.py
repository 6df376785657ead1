"""Signing people in with a directory: find the entry of a name, and bind as it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
import unicodedata
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from observability.spans import outgoing
from outbound.identity.calling import ProviderAway, ProviderRefused
from outbound.identity.ldap.connection import SUCCESS, DirectoryConnection, DirectoryEntry
from outbound.identity.ldap.filters import FilterOf
from store.keyed_semaphore import FairSemaphore

log = logging.getLogger("latchkey.identity")

AT_ONCE = 16
"""Sign-ins with one directory at once, in a process."""
LONGEST_LOGIN = 254
LONGEST_PASSWORD = 1024
FAILURES, PAUSE_SECONDS = 3, 10.0
"""The number of failures in a row after which the directory is left alone, and for how long. One sign-in tries it."""
_WRONG = (10, 19, 32, 34, 48, 49, 50, 53)
"""Results of a bind that are about the person: an entry elsewhere, a locked account, no entry, an entry without a
password, a wrong password, no right to sign in."""
_LOCKS = ("useraccountcontrol", "nsaccountlock", "pwdaccountlockedtime")
_AD_DISABLED = 2

Counting = Callable[[str], Awaitable[None]]
"""Counts an attempt for an account, existing or not. Raises Refused("rate_limited")."""


@dataclass(frozen=True, slots=True)
class DirectorySettings:
    """A directory as the operator configured it. `context`: of TLS, None without; `start_tls`: TLS begins after the
    connection. `groups`: the group here for each value of the attribute of groups, in lower case. `timeout` in
    seconds, for a whole sign-in."""

    host: str
    port: int
    base_dn: str
    wanted: FilterOf = field(compare=False)
    filter_text: str = ""
    bind_dn: str = ""
    password: str = field(default="", repr=False)
    context: ssl.SSLContext | None = field(default=None, compare=False)
    ca: str = field(default="", repr=False)
    start_tls: bool = False
    id_attribute: str = "entryUUID"
    mail_attribute: str = "mail"
    name_attribute: str = "cn"
    groups_attribute: str = "memberOf"
    groups: tuple[tuple[str, str], ...] = ()
    timeout: float = 5.0

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes to read."""
        own = (self.id_attribute, self.mail_attribute, self.name_attribute, *_LOCKS)
        return (*own, self.groups_attribute) if self.groups else own

    @property
    def managed(self) -> tuple[str, ...]:
        """The groups here that the directory decides about."""
        return tuple(dict.fromkeys(name for _, name in self.groups))


@dataclass(frozen=True, slots=True)
class DirectoryPerson:
    """A person whom the directory let in. `groups`: those here that they are in."""

    subject: str
    email: str
    name: str
    groups: tuple[str, ...]


class WrongPassword(Exception):
    """No entry has this name and password, or it may not sign in. The text is a word for the log; people read the same
    for each."""


class Directories:
    """All directories of a process."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._known: dict[DirectorySettings, _Directory] = {}

    async def check(
        self, settings: DirectorySettings, login: str, password: str, whose: str, count: Counting
    ) -> DirectoryPerson:
        """The person with this name and password. `whose`: the address that the request came from; places are shared
        fairly among those. Raises WrongPassword, ProviderAway, ProviderRefused, and what `count` raises."""
        known = self._known.setdefault(settings, _Directory(self._clock))
        wanted = normal_login(login)
        if not wanted or not _is_password(password):
            await count(wanted.casefold())
            raise WrongPassword("password" if wanted else "unknown")
        with known.watched():
            try:
                async with asyncio.timeout(settings.timeout):
                    await known.places.acquire(whose)
            except TimeoutError:
                raise _OneAway("too many sign-ins at once") from None
            try:
                async with asyncio.timeout(settings.timeout):
                    with outgoing(f"ldap://{settings.host}"):
                        return await _check(settings, wanted, password, count)
            except TimeoutError:
                raise ProviderAway(f"no answer within {settings.timeout:g} seconds") from None
            finally:
                known.places.release(whose)


class _OneAway(ProviderAway):
    """This sign-in fails: the process has no place left, or the directory answered about one entry alone. The directory
    may be well, so it is not left alone: whoever knows such an entry would keep everybody out."""


class _Directory:
    """What a process knows of a directory: its places, and whether it fails."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.places = FairSemaphore(AT_ONCE)
        self._clock = clock
        self._failures = 0
        self._resumes = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Around a sign-in. Raises ProviderAway at once while the directory fails."""
        if self._failures >= FAILURES:
            if self._clock() < self._resumes:
                raise ProviderAway("it failed a moment ago")
            self._resumes = self._clock() + PAUSE_SECONDS  # this one tries; others wait for what it finds
        try:
            yield
        except _OneAway:
            raise
        except ProviderAway:
            self._failures += 1
            self._resumes = self._clock() + PAUSE_SECONDS
            raise
        except (WrongPassword, ProviderRefused):
            self._failures = 0
            raise
        self._failures = 0


def normal_login(login: str) -> str:
    """A typed name without what directories ignore in names (RFC 4518): so one account has one counter. Empty for a
    name that is none."""
    if len(login) > LONGEST_LOGIN or not login.isprintable():
        return ""
    return " ".join(unicodedata.normalize("NFKC", login).split())


def _is_password(password: str) -> bool:
    """Whether a password may be sent. An empty one never is: directories take it for an anonymous bind, which succeeds
    (RFC 4513 5.1.2)."""
    try:
        return 0 < len(password.encode()) <= LONGEST_PASSWORD and "\0" not in password
    except UnicodeEncodeError:
        return False


async def _check(settings: DirectorySettings, login: str, password: str, count: Counting) -> DirectoryPerson:
    connection = await DirectoryConnection.open(
        settings.host, settings.port, settings.context, start_tls=settings.start_tls
    )
    try:
        if settings.bind_dn and (result := await connection.bind(settings.bind_dn, settings.password)) != SUCCESS:
            raise ProviderAway(f"the bind of bind_dn has result {result}")
        seconds = max(1, int(settings.timeout))
        found = await connection.search(settings.base_dn, settings.wanted(login), settings.attributes, 2, seconds)
        entry = found[0] if len(found) == 1 else None
        subject = "" if entry is None else _subject(settings, entry)
        await count(subject or login.casefold())
        # A name that nobody has gets the same calls: the time must reveal nothing.
        dn = entry.dn if entry else f"cn={secrets.token_hex(8)},{settings.base_dn}"
        result = await connection.bind(dn, password if entry else secrets.token_hex(16))
        if entry is None:
            if found:
                log.warning("the user_filter of a directory finds several entries for one name")
            raise WrongPassword("several entries" if found else "unknown")
        if result != SUCCESS:
            if result in _WRONG:
                raise WrongPassword("password")
            raise _OneAway(f"a bind has result {result}")
        if _locked(entry):
            raise WrongPassword("disabled")
        await connection.close()
        email, name = _text(entry, settings.mail_attribute), _text(entry, settings.name_attribute)
        return DirectoryPerson(subject, email, name, _groups(settings, entry))
    finally:
        connection.cut()


def _subject(settings: DirectorySettings, entry: DirectoryEntry) -> str:
    """The id of an entry, which outlives its name."""
    values = entry.attributes.get(settings.id_attribute.lower(), ())
    if len(values) != 1:
        raise ProviderRefused("id")
    if settings.id_attribute.lower() == "objectguid" and len(values[0]) == 16:
        return str(uuid.UUID(bytes_le=values[0]))
    try:
        return values[0].decode("ascii")
    except UnicodeDecodeError:
        raise ProviderRefused("id") from None


def _text(entry: DirectoryEntry, name: str) -> str:
    """The first value of an attribute."""
    values = entry.attributes.get(name.lower(), ())
    return values[0].decode("utf-8", "replace") if values else ""


def _groups(settings: DirectorySettings, entry: DirectoryEntry) -> tuple[str, ...]:
    """The groups here of an entry."""
    values = entry.attributes.get(settings.groups_attribute.lower(), ())
    own = {one.decode("utf-8", "replace").lower() for one in values}
    return tuple(dict.fromkeys(name for there, name in settings.groups if there in own))


def _locked(entry: DirectoryEntry) -> bool:
    """Whether the entry may not sign in: as Active Directory, 389 Directory Server and OpenLDAP's ppolicy say it."""
    control, lock, locked = (_text(entry, name) for name in _LOCKS)
    disabled = len(control) < 12 and control.lstrip("-").isdecimal() and bool(int(control) & _AD_DISABLED)
    return disabled or lock.lower() == "true" or locked.startswith("000001010000")
