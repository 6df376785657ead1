"""Which addresses are posted to: those of the public internet, and what the operator allows beside.

A name may lead anywhere, and elsewhere a moment later. So it is not the name that is judged, nor what a look-up said:
the address is, in the call that makes the socket which is then connected to it.
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

# IANA's registries of special-purpose addresses, and what clouds keep for themselves among public ones. Written out:
# what `is_global` says has changed from one Python to the next.
_NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        "168.63.129.16/32",  # Azure's host
        # Within 2000::/3. Outside of it nothing is public.
        *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")


class Unreachable(OSError):
    """Nothing is posted to this address. The message names none: it is shown to the owner of the app, who would learn
    what names lead to within the operator's network."""

    def __init__(self) -> None:
        super().__init__("not an address that may be posted to")


class AddressPolicy:
    """What may be posted to: public addresses, `networks`, and with `loopback` this machine."""

    def __init__(self, networks: tuple[Network, ...] = (), *, loopback: bool = False) -> None:
        self._networks = (*networks, *(_LOOPBACK if loopback else ()))

    def allows(self, text: str) -> bool:
        """Whether an address, as the socket has it, may be connected to."""
        try:
            address = ip_address(text)
        except ValueError:  # one with a zone, say
            return False
        return self._allows(address)

    def socket(self, info: tuple[Any, ...]) -> socket.socket:
        """The socket for an address of a look-up, as aiohttp has it made for each it tries. Raises Unreachable."""
        family, kind, protocol, _, address = info
        if not self.allows(address[0]):
            raise Unreachable
        return socket.socket(family=family, type=kind, proto=protocol)

    def _allows(self, address: Address) -> bool:
        if isinstance(address, IPv6Address) and (inner := _within(address)) is not None:
            # A mapped address is the one within it. A translator is the operator's, who names its prefix.
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
    """The IPv4 address that a packet to this one ends at."""
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


asking: ContextVar[str] = ContextVar("asking", default="")
"""For whom a name is looked up: whose share of the threads it takes. aiohttp looks names up in a task of its own, which
inherits this from the task that posts."""


class Resolver(AbstractResolver):
    """Looks names up in threads of its own, shared fairly by those who ask: name servers that do not answer hold up
    nobody else's look-ups. The end of the process waits for none of these threads.

    A look-up goes on when its post has given up, since aiohttp shields it. One that gets no thread within `waits`
    seconds is dropped: by then its post has given up."""

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
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(end, found, error)

        try:
            async with asyncio.timeout(self._waits):
                await self._semaphore.acquire(payer)
        except TimeoutError:
            raise OSError("no thread in time") from None
        # An executor's threads are waited for when the process ends.
        threading.Thread(target=run, name="latchkey-webhook-names", daemon=True).start()
        return await answer

    async def close(self) -> None:
        """There is nothing to give back."""
