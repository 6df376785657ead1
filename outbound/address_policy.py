"""Which addresses may receive posts: public ones, and those that the operator allows.

A name may lead to any address, and to another one a moment later. So the check applies to neither the name nor the
result of a look-up. It applies to the address itself, in the call that creates the socket for the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from store.keyed_semaphore import FairSemaphore

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# IANA's registries of special-purpose addresses, and public addresses that clouds keep for themselves. Listed here
# because `is_global` has changed between releases of Python.
_NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        "168.63.129.16/32",  # Azure's host
        # Within 2000::/3. Nothing outside it is public.
        *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")


class Unreachable(OSError):
    """The address may not be called. The message omits it: the owner of the app sees the message, and would learn where
    names lead within the operator's network."""

    def __init__(self) -> None:
        super().__init__("not an address that may be posted to")


class AddressPolicy:
    """The allowed addresses: public ones, `networks`, and with `loopback` this machine."""

    def __init__(self, networks: tuple[Network, ...] = (), *, loopback: bool = False) -> None:
        self._networks = (*networks, *(_LOOPBACK if loopback else ()))

    def allows(self, text: str) -> bool:
        """Whether connections to this address, in the socket's notation, are allowed."""
        try:
            address = ip_address(text)
        except ValueError:  # for example, with a zone
            return False
        return self._allows(address)

    def is_internet(self, text: str) -> bool:
        """Whether this address, in the socket's notation, is public and in none of the allowed networks: what answers
        there may be shown to whoever named the host."""
        try:
            address = ip_address(text)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address in _MAPPED:
            address = address.ipv4_mapped or address
        return _is_public(address) and not self._names(address)

    def socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Creates the socket for an address; aiohttp calls this for each address it tries. Raises Unreachable."""
        family, kind, protocol, _, address = info
        if not self.allows(address[0]):
            raise Unreachable
        if (called := calling.get()) is not None:
            called.append(str(address[0]))
        return socket.socket(family=family, type=kind, proto=protocol)

    def _allows(self, address: Address) -> bool:
        if isinstance(address, IPv6Address) and (inner := _within(address)) is not None:
            # A mapped address counts as the IPv4 address within it. A translator's prefix must be in `networks`.
            named = address in _MAPPED or self._names(address)
            return named and self._allows(inner)
        return self._names(address) or _is_public(address)

    def _names(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _PUBLIC_V6:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def _within(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that finally receives a packet to this address."""
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


calling: ContextVar[list[str] | None] = ContextVar("calling", default=None)
"""The addresses that the current call has tried. A task that connects for the call inherits the list."""
asking: ContextVar[str] = ContextVar("asking", default="")
"""The owner of the current look-up, who gets a share of the threads. aiohttp looks names up in a task of its own, which
inherits this from the task that posts."""


class Resolver(AbstractResolver):
    """Looks names up in its own threads, shared fairly among owners: a name server that doesn't answer delays only its
    own owner's look-ups. The process doesn't wait for these threads when it exits.

    A look-up continues after its post has given up, because aiohttp shields it. A look-up that gets no thread within
    `waits` seconds is dropped: by then its post has given up."""

    def __init__(self, threads: int = 64, *, waits: float = 5.0) -> None:
        self._semaphore = FairSemaphore(threads)
        self._waits = waits

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a name. Raises OSError."""
        try:
            found = await self._in_a_thread(
                partial(socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM)
            )
        except UnicodeError:
            raise OSError("no name") from None
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        return [
            ResolveResult(hostname=host, host=str(to[0]), port=int(to[1]), family=of, proto=protocol, flags=flags)
            for of, _, protocol, _, to in found
        ]

    async def _in_a_thread(self, look_up: Callable[[], list[Any]]) -> list[Any]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Any]] = loop.create_future()
        payer = asking.get()

        def end(found: list[Any] | None, error: Exception | None) -> None:
            self._semaphore.release(payer)
            if answer.cancelled():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found or [])

        def run() -> None:
            found, error = None, None
            try:
                found = look_up()
            except Exception as trouble:
                error = trouble
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(end, found, error)

        try:
            async with asyncio.timeout(self._waits):
                await self._semaphore.acquire(payer)
        except TimeoutError:
            raise OSError("no thread in time") from None
        # Not an executor: the process would wait for its threads at exit.
        threading.Thread(target=run, name="latchkey-webhook-names", daemon=True).start()
        return await answer

    async def close(self) -> None:
        """Does nothing: there is nothing to free."""
