"""Webhooks reach only the public internet, whatever a name resolves to."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from ipaddress import ip_network
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from outbound.address_policy import AddressPolicy, Resolver, Unreachable, asking
from outbound.guarded_http import NO_ADDRESS
from outbound.webhooks.posting import Poster
from tests.support.http.receiver import Receiver
from tests.support.lists.offenders import each

PUBLIC: tuple[str, ...] = (
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.0.1",
    "172.32.0.1",
    "223.255.255.255",
)
PUBLIC += ("2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8")
REFUSED = {
    "this host": ("0.0.0.0", "0.1.2.3", "::"),
    "loopback": ("127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"),
    "private": ("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "::ffff:10.0.0.1", "fc00::1", "fd00::1"),
    "link-local": ("169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.0.1"),
    "metadata": ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    "carrier-grade NAT": ("100.64.0.1", "100.127.255.255"),
    "multicast": ("224.0.0.1", "239.255.255.255", "233.252.0.1", "ff02::1", "ff0e::1"),
    "broadcast and reserved": ("255.255.255.255", "240.0.0.1"),
    "documentation and tests": ("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "2001:db8::1", "3fff::1"),
    "translation": ("64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "::7f00:1"),
    "site-local": ("fec0::1",),
    "no address": ("localhost", "", "999.1.1.1"),
}


@each("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert AddressPolicy().allows(address)


@each("address", [pytest.param(one, id=f"{kind} {one}") for kind, some in REFUSED.items() for one in some])
def test_other_addresses_are_refused(address: str) -> None:
    assert not AddressPolicy().allows(address)


def test_the_operator_can_allow_networks_and_only_those() -> None:
    policy = AddressPolicy((ip_network("10.1.0.0/16"), ip_network("fd00:1::/32"), ip_network("64:ff9b::/96")))
    for allowed in ("10.1.2.3", "::ffff:10.1.2.3", "fd00:1::5", "64:ff9b::808:808", "64:ff9b::a01:203", "1.1.1.1"):
        assert policy.allows(allowed), allowed
    for refused in ("10.2.0.1", "::ffff:10.2.0.1", "fd00:2::5", "64:ff9b::7f00:1", "127.0.0.1", "169.254.169.254"):
        assert not policy.allows(refused), refused


def test_loopback_is_allowed_on_a_developers_server() -> None:
    policy = AddressPolicy(loopback=True)
    assert all(map(policy.allows, ("127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1")))
    assert not any(map(policy.allows, ("10.0.0.1", "0.0.0.0", "169.254.169.254", "::")))


def test_no_socket_is_made_for_a_refused_address() -> None:
    info = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 80))
    with pytest.raises(Unreachable) as refused:
        AddressPolicy().socket(info)
    assert "127" not in str(refused.value)
    with AddressPolicy(loopback=True).socket(info) as made:
        assert made.family == socket.AF_INET


class Names(AbstractResolver):
    """Answers a lookup with the next of these; the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.lookups = 0

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
        self.lookups += 1
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        families = [socket.AF_INET6 if ":" in one else socket.AF_INET for one in addresses]
        return [
            ResolveResult(hostname=host, host=one, port=port, family=of, proto=0, flags=socket.AI_NUMERICHOST)
            for one, of in zip(addresses, families, strict=True)
        ]

    async def close(self) -> None: ...


async def come_of(url: str, policy: AddressPolicy | None = None, names: Names | None = None) -> str:
    poster = Poster(policy or AddressPolicy(), 4, connect=2, whole=4, resolver=names)
    try:
        return (await poster.post(url, {}, b"{}")).error
    finally:
        await poster.close()


@pytest.mark.gen_test
@each(
    "host",
    [
        *("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "localhost", "0.0.0.0", "[::]"),
        *("2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "LOCALHOST"),
    ],
)
async def test_no_spelling_of_this_machine_is_allowed(host: str) -> None:
    """A real receiver listens there and gets nothing."""
    receiver = Receiver()
    await receiver.start("::" if ":" in host else "127.0.0.1")
    # The library refuses numbers that are no address, and the others lead to one that is not connected to.
    assert await come_of(f"http://{host}:{receiver.port}/") in (NO_ADDRESS, "The URL cannot be used.")
    assert await come_of(f"http://app.example:{receiver.port}/", names=Names(["127.0.0.1"])) == NO_ADDRESS
    assert receiver.posted == []
    await receiver.close()


@pytest.mark.gen_test
async def test_a_private_name_is_refused_like_an_unknown_one() -> None:
    for addresses in (["10.0.0.1"], ["169.254.169.254"], ["fd00::1", "192.168.0.1"], ["::ffff:10.0.0.1"]):
        assert await come_of("http://app.example/", names=Names(addresses)) == NO_ADDRESS
    assert await come_of("http://no-such-name.invalid/") == NO_ADDRESS


@pytest.mark.gen_test
async def test_dns_rebinding_is_caught_at_the_connected_address() -> None:
    """DNS rebinding: earlier lookups do not count."""
    receiver = Receiver()
    await receiver.start()
    names = Names(["192.0.2.1", "127.0.0.1"], ["127.0.0.1"])
    poster = Poster(AddressPolicy(), 4, connect=2, whole=4, resolver=names)
    for _ in range(2):
        assert (await poster.post(f"http://app.example:{receiver.port}/", {}, b"{}")).status is None
    assert receiver.posted == []
    await poster.close()
    await receiver.close()


@pytest.mark.gen_test
async def test_only_allowed_addresses_of_a_name_are_tried() -> None:
    receiver = Receiver()
    await receiver.start()
    names = Names(["10.0.0.1", "127.0.0.1"])
    poster = Poster(AddressPolicy(loopback=True), 4, connect=2, whole=4, resolver=names)
    answer = await poster.post(f"http://app.example:{receiver.port}/", {}, b"{}")
    assert answer.delivered
    assert receiver.posted[0].headers["host"] == f"app.example:{receiver.port}"
    await poster.close()
    await receiver.close()


@pytest.mark.gen_test
async def test_proxy_environment_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would connect in our place, to whatever it can reach."""
    proxy = Receiver()
    await proxy.start()
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert await come_of("http://app.example/", AddressPolicy(loopback=True), Names(["10.0.0.1"])) == NO_ADDRESS
    assert proxy.posted == []
    await proxy.close()


def test_a_hanging_name_server_does_not_delay_shutdown() -> None:
    program = """
import asyncio, socket, time
from outbound.webhooks.posting import Poster
from outbound.address_policy import AddressPolicy

socket.getaddrinfo = lambda *what, **how: time.sleep(60)

async def main():
    poster = Poster(AddressPolicy(), 4, connect=0.2)
    print((await poster.post("https://app.example.com/", {}, b"")).error)
    await poster.close()

asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True)
    assert ended.stdout == "No connection within 0.2 seconds.\n"


@pytest.mark.gen_test
async def test_concurrent_name_lookups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = most = 0
    lock = threading.Lock()

    def looked_up(host: str, port: int, **how: Any) -> list[Any]:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.05)
        with lock:
            at_once -= 1
        if host == "nobody":
            raise socket.gaierror("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    names = Resolver(3)

    async def look_up(payer: int) -> Any:
        asking.set(str(payer))
        return await names.resolve("somebody", 443)

    found = await asyncio.gather(*(look_up(payer) for payer in range(9)))
    assert {one["host"] for answer in found for one in answer} == {"192.0.2.1"}
    assert most == 3
    with pytest.raises(OSError, match="no such name"):
        await names.resolve("nobody", 443)
    given_up = [asyncio.ensure_future(names.resolve("somebody", 443)) for _ in range(6)]
    await asyncio.sleep(0.01)
    for one in given_up:
        one.cancel()
    await asyncio.wait(given_up)
    assert (await names.resolve("somebody", 443))[0]["port"] == 443
