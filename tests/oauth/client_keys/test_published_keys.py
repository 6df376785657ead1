"""Keys that an app publishes at a URL: fetched seldom, from public addresses alone, and never once a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outbound.address_policy import AddressPolicy
from outbound.client_keys import ClientKeys
from outbound.published_keys import FRESH_SECONDS, PAUSE_SECONDS, STALE_SECONDS
from store.apps.registration import Registration
from store.crypto.jose import jws
from store.crypto.jose.jwk import LONGEST_SET, PublicKey
from store.crypto.jose.private import PrivateKey
from store.crypto.jose.refusal import JoseError
from tests.support.http.driver import CALLBACK
from tests.support.http.key_app import key_for, set_of
from tests.support.http.receiver import Reply, answering
from tests.support.lists.offenders import each
from tests.support.processes.proven_domain import DOMAIN, Domain

pytestmark = pytest.mark.gen_test(timeout=30)

URL = f"https://{DOMAIN}/jwks.json"
JSON = "Content-Type: application/json"
APP = Registration("an-app", "An App", (CALLBACK,), ("profile",), private_key_jwt=True, jwks_uri=URL)
OLD, NEW = key_for("ES256"), key_for("ES256", 1)


def publishing(*keys: PrivateKey) -> Reply:
    return answering(200, JSON, body=set_of(*keys))


class Publisher:
    """An app's server, and keys that are read from it with a clock of their own."""

    domain: Domain
    keys: ClientKeys
    now = 1000.0

    @classmethod
    async def make(cls, folder: Path, **options: Any) -> Publisher:
        self = cls()
        self.domain = await Domain.make(folder, **options)
        self.keys = ClientKeys(self.domain.fetcher, lambda: self.now)
        return self

    @property
    def fetched(self) -> int:
        """How often the set was fetched."""
        return len(self.domain.receiver.posted)

    async def takes(self, key: PrivateKey, app: Registration = APP) -> bool:
        """Whether a token of this key is verified."""
        text = jws.sign({"a": 1}, key, "JWT")

        def verify(known: Any) -> PublicKey:
            return jws.verify(text, known, algorithms=["ES256"], types=["JWT"]).key

        try:
            return (await self.keys.verified(app, verify)).thumbprint == key.kid
        except JoseError:
            return False


@pytest.fixture
def publisher(tmp_path: Path, io_loop: Any) -> Callable[..., Any]:
    """Makes a publisher."""
    return lambda **options: Publisher.make(tmp_path, **options)


async def test_a_set_is_fetched_once_for_many_requests(publisher: Any) -> None:
    it = await publisher()
    it.domain.answers(publishing(OLD))
    assert await asyncio.gather(*(it.takes(OLD) for _ in range(50))) == [True] * 50
    it.now += FRESH_SECONDS - 1
    assert await it.takes(OLD)
    assert it.fetched == 1
    [fetched] = it.domain.receiver.posted
    assert (fetched.line, fetched.headers["accept"]) == (
        "GET /jwks.json HTTP/1.1",
        "application/json, application/jwk-set+json",
    )
    await it.domain.receiver.close()


async def test_a_new_key_is_found_when_it_is_first_used(publisher: Any) -> None:
    it = await publisher()
    it.domain.answers(publishing(OLD))
    assert await it.takes(OLD)
    it.domain.answers(publishing(OLD, NEW))
    it.now += PAUSE_SECONDS
    assert await it.takes(NEW)
    assert await it.takes(OLD)
    assert it.fetched == 2
    await it.domain.receiver.close()


async def test_unknown_keys_cause_one_fetch_in_ten_seconds(publisher: Any) -> None:
    it = await publisher()
    it.domain.answers(publishing(OLD))
    for _ in range(20):
        assert await asyncio.gather(*(it.takes(NEW) for _ in range(5))) == [False] * 5
    assert it.fetched == 1
    it.now += PAUSE_SECONDS
    assert await asyncio.gather(*(it.takes(NEW) for _ in range(5))) == [False] * 5
    assert it.fetched == 2
    await it.domain.receiver.close()


async def test_a_withdrawn_key_ends_with_the_next_fetch(publisher: Any) -> None:
    it = await publisher()
    it.domain.answers(publishing(OLD, NEW))
    assert await it.takes(OLD)
    it.domain.answers(publishing(NEW))
    it.now += FRESH_SECONDS
    assert not await it.takes(OLD)
    assert await it.takes(NEW)
    await it.domain.receiver.close()


async def test_keys_survive_an_outage_for_an_hour(publisher: Any) -> None:
    it = await publisher()
    it.domain.answers(publishing(OLD))
    assert await it.takes(OLD)
    it.domain.answers(answering(500))
    it.now += STALE_SECONDS - 1
    assert await it.takes(OLD)
    it.now += 1
    assert not await it.takes(OLD)
    it.domain.answers(publishing(OLD))
    assert not await it.takes(OLD), "the last fetch was a moment ago"
    it.now += PAUSE_SECONDS
    assert await it.takes(OLD)
    assert it.fetched == 3
    await it.domain.receiver.close()


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(f"HTTP/1.1 200 OK\r\n{JSON}\r\n\r\n".encode())
    while True:
        writer.write(b" " * 65536)
        await writer.drain()


async def slow(writer: asyncio.StreamWriter) -> None:
    writer.write(f"HTTP/1.1 200 OK\r\n{JSON}\r\nContent-Length: 100\r\n\r\n{{".encode())
    await writer.drain()
    await asyncio.get_running_loop().create_future()


@each(
    "reply",
    [
        pytest.param(answering(302, f"Location: {URL}2", JSON, body=set_of(OLD)), id="a redirect"),
        pytest.param(answering(404, JSON, body=set_of(OLD)), id="not found"),
        pytest.param(answering(200, "Content-Type: text/html", body=set_of(OLD)), id="a page"),
        pytest.param(answering(200, body=set_of(OLD)), id="of no type"),
        pytest.param(answering(200, JSON, "Content-Encoding: gzip", body=set_of(OLD)), id="packed"),
        pytest.param(answering(200, JSON, body=set_of(OLD).ljust(LONGEST_SET + 1)), id="one byte too many"),
        pytest.param(answering(200, JSON, body=b"[" * LONGEST_SET), id="nested deep"),
        pytest.param(answering(200, JSON, body=set_of(*[OLD] * 21)), id="21 keys"),
        pytest.param(answering(200, JSON, body=b'{"keys":[{"kty":"oct","k":"AA"}]}'), id="a shared secret"),
        pytest.param(answering(200, JSON, body=b""), id="nothing"),
        pytest.param(endless, id="without end"),
        pytest.param(slow, id="by the byte"),
    ],
)
async def test_a_hostile_server_gives_no_keys(publisher: Any, reply: Reply) -> None:
    it = await publisher(whole=0.3 if reply is slow else 5.0)
    it.domain.answers(reply)
    assert not await it.takes(OLD)
    assert it.fetched == 1
    await it.domain.receiver.close()


async def test_a_whole_set_of_64_kib_is_read(publisher: Any) -> None:
    it = await publisher()
    it.domain.answers(answering(200, JSON, body=set_of(OLD).ljust(LONGEST_SET)))
    assert await it.takes(OLD)
    await it.domain.receiver.close()


async def test_a_private_address_is_never_called(publisher: Any) -> None:
    it = await publisher(policy=AddressPolicy())
    it.domain.answers(publishing(OLD))
    assert not await it.takes(OLD)
    assert it.fetched == 0
    await it.domain.receiver.close()


async def test_apps_share_no_keys_and_a_new_url_has_its_own(publisher: Any) -> None:
    it = await publisher()
    it.domain.answers(publishing(OLD))
    assert await it.takes(OLD)
    other = replace(APP, client_id="other-app", jwks_uri=f"{URL}?other")
    it.domain.answers(publishing(NEW))
    assert not await it.takes(OLD, other)
    assert await it.takes(NEW, other)
    moved = replace(APP, jwks_uri=f"{URL}?moved")
    assert not await it.takes(OLD, moved)
    assert await it.takes(NEW, moved)
    await it.domain.receiver.close()


async def test_a_request_that_gives_up_leaves_the_fetch_to_the_others(publisher: Any) -> None:
    it = await publisher()
    goes = asyncio.Event()

    async def waiting(writer: asyncio.StreamWriter) -> None:
        await goes.wait()
        await publishing(OLD)(writer)

    it.domain.answers(waiting)
    first, second = asyncio.ensure_future(it.takes(OLD)), asyncio.ensure_future(it.takes(OLD))
    await it.domain.receiver.count(1)
    first.cancel()
    goes.set()
    assert await second
    assert it.fetched == 1
    await it.domain.receiver.close()


async def test_a_server_that_hangs_keeps_few_requests_waiting(publisher: Any) -> None:
    it = await publisher()
    owners = ("a" * 32, "a" * 32, "b" * 32, "", "")
    apps = [replace(APP, client_id=f"app-{n}", jwks_uri=f"{URL}?{n}", owner=owner) for n, owner in enumerate(owners)]
    it.domain.answers(publishing(OLD))
    for app in apps:
        assert await it.takes(OLD, app)
    goes, it.now = asyncio.Event(), it.now + FRESH_SECONDS

    async def waiting(writer: asyncio.StreamWriter) -> None:
        await goes.wait()
        await publishing(OLD)(writer)

    it.domain.answers(waiting)
    # A quarter of what the others leave, for all apps of an owner together.
    for app, most in zip(apps, (64, 0, 48, 36, 27), strict=True):
        asked = [asyncio.ensure_future(it.takes(OLD, app)) for _ in range(70)]
        done = asked[most:]
        assert await asyncio.gather(*done) == [True] * len(done), "with the keys that are known"
        assert not any(one.done() for one in asked[:most])
    goes.set()
    while it.keys._waiting:
        await asyncio.sleep(0.01)
    it.now += FRESH_SECONDS
    assert await asyncio.gather(*(it.takes(OLD, apps[0]) for _ in range(64))) == [True] * 64
    await it.domain.receiver.close()
