"""Webhooks in an app's tests: each event arrives once before the clock moves, and none in the next test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from latchkey.testing import App, Latchkey, LatchkeyError, Person
from outbound.webhooks.poster import EACH_APP, LINE
from tests.support.http.receiver import Receiver, answering
from tests.support.processes.processes import QUICK, Server

pytestmark = pytest.mark.slow

HOOKED = {"client_id": "notes", "scopes": "profile data:read data:write", "hosted_storage": True}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that tests drive."""
    with Server("--redis-url=memory", *QUICK) as running:
        yield running.ready()


@pytest.fixture
def latchkey(server: Server) -> Latchkey:
    """The client that drives it; its store is empty."""
    made = Latchkey(server.url)
    made.reset()
    return made


class Hook:
    """An app's receiver in its own thread, as apps' tests have it."""

    def __init__(self) -> None:
        self.receiver = Receiver()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._run(self.receiver.start())

    def count(self, number: int) -> None:
        """Waits until `number` events have come."""
        self._run(self.receiver.count(number))

    def heard(self, start: int = 0) -> list[str]:
        """The types of what came."""
        return [event["type"] for event in self.receiver.events()[start:]]

    def close(self) -> None:
        self._run(self.receiver.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, step: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(step, self._loop).result()


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


def app_on(latchkey: Latchkey, hook: Hook) -> App:
    return latchkey.app(webhook_url=hook.receiver.url, **HOOKED)  # type: ignore[arg-type]  # by name


def connected(latchkey: Latchkey, app: App) -> Person:
    """A person whose document the app stores here."""
    person = latchkey.person()
    headers = latchkey.token(person, app).headers
    httpx.put(f"{latchkey.url}/api/v1/data/notes/n1", json=1, headers=headers).raise_for_status()
    return person


async def takes_its_time(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.2)
    await answering(204)(writer)


async def hangs(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize("reply", [pytest.param(answering(204), id="at_once"), takes_its_time])
@pytest.mark.parametrize(("days", "types"), [(29, ["grant.revoked"]), (31, ["grant.revoked", "data.deleted"])])
def test_events_before_a_time_travel_are_posted_once_before_it(
    latchkey: Latchkey, hook: Hook, days: int, types: list[str], reply: Any
) -> None:
    hook.receiver.reply = reply
    app = app_on(latchkey, hook)
    ada = connected(latchkey, app)
    latchkey.revoke(ada, app)
    latchkey.travel(days=days)
    assert hook.heard()[:1] == ["grant.revoked"]
    latchkey.travel(seconds=1)
    assert hook.heard() == types


def test_a_post_in_progress_during_a_time_travel_is_not_repeated(latchkey: Latchkey, hook: Hook) -> None:
    hook.receiver.reply = takes_its_time
    app = app_on(latchkey, hook)
    ada, bob = connected(latchkey, app), connected(latchkey, app)
    latchkey.deletes_account(ada)
    hook.count(1)
    latchkey.travel(days=29)
    latchkey.deletes_account(bob)
    hook.count(2)
    assert [event["data"]["sub"] for event in hook.receiver.events()] == [ada.sub, bob.sub]


def test_the_only_accounts_deletion_is_posted_before_a_time_travel(latchkey: Latchkey, hook: Hook) -> None:
    latchkey.deletes_account(connected(latchkey, app_on(latchkey, hook)))
    latchkey.travel(days=31)
    assert hook.heard() == ["user.deleted"]


@pytest.mark.parametrize(
    ("count", "reply"), [(3 * EACH_APP, takes_its_time), (LINE + 6, answering(204))], ids=["slowly", "beyond a line"]
)
def test_many_events_are_posted_before_a_time_travel(latchkey: Latchkey, hook: Hook, count: int, reply: Any) -> None:
    hook.receiver.reply = reply
    app = app_on(latchkey, hook)
    people = [connected(latchkey, app) for _ in range(count)]
    for person in people:
        latchkey.revoke(person, app)
    latchkey.travel(days=31)
    assert hook.heard()[: len(people)] == ["grant.revoked"] * len(people)
    latchkey.travel(seconds=1)
    assert hook.heard(len(people)) == ["data.deleted"] * len(people)


def test_a_failed_post_is_not_awaited_and_is_retried_when_due(latchkey: Latchkey, hook: Hook) -> None:
    hook.receiver.script = [answering(500)]
    app = app_on(latchkey, hook)
    latchkey.revoke(connected(latchkey, app), app)
    latchkey.travel(seconds=1)
    assert hook.heard() == ["grant.revoked"]
    latchkey.travel(minutes=1)
    latchkey.travel(seconds=1)
    first, second = hook.receiver.posted
    assert first.id == second.id


@pytest.mark.parametrize("reply", [takes_its_time, hangs])
def test_the_next_test_gets_no_events_of_the_previous_one(latchkey: Latchkey, hook: Hook, reply: Any) -> None:
    hook.receiver.reply = reply
    app = app_on(latchkey, hook)
    for person in [connected(latchkey, app) for _ in range(6 * EACH_APP)]:
        latchkey.deletes_account(person)
    hook.count(EACH_APP)
    latchkey.reset()
    before = len(hook.receiver.posted)
    hook.receiver.reply = answering(204)
    app = app_on(latchkey, hook)
    ada = connected(latchkey, app)
    latchkey.deletes_account(ada)
    hook.count(before + 1)
    assert [event["data"]["sub"] for event in hook.receiver.events()[before:]] == [ada.sub]


def test_time_travel_fails_during_a_store_outage(latchkey: Latchkey) -> None:
    before = latchkey.travel(seconds=1)
    with latchkey.unavailable(), pytest.raises(LatchkeyError, match="503"):
        latchkey.travel(days=1)
    assert (latchkey.travel(seconds=1) - before).days == 0


def test_time_travel_works_without_webhooks(hook: Hook) -> None:
    with Server("--redis-url=memory", "--no-webhooks", *QUICK) as server:
        latchkey = Latchkey(server.ready().url)
        for _ in range(2):
            app = app_on(latchkey, hook)
            latchkey.revoke(connected(latchkey, app), app)
            latchkey.travel(days=31)
            latchkey.reset()
        assert hook.heard() == []


def test_an_app_hears_that_a_person_signed_out(latchkey: Latchkey, hook: Hook) -> None:
    hears = latchkey.app(scopes="openid", backchannel_logout_uri=hook.receiver.url, id_token_alg="ES256")
    ada, bob = latchkey.person(), latchkey.person()
    for person in (ada, bob):
        token = latchkey.token(person, hears)
    latchkey.token(ada, latchkey.app(scopes="openid"))
    latchkey.signs_out(ada)
    hook.count(1)
    latchkey.deletes_account(bob)
    hook.count(2)
    keys = KeySet.import_key_set(latchkey.jwks())
    told = [dict(parse_qsl(posted.body.decode()))["logout_token"] for posted in hook.receiver.posted]
    found = [jwt.decode(text, keys, algorithms=["ES256"]) for text in told]
    assert [(one.header["typ"], one.claims["sub"]) for one in found] == [
        ("logout+jwt", ada.sub),
        ("logout+jwt", bob.sub),
    ]
    assert found[1].claims["sid"] == jwt.decode(token.id_token or "", keys, algorithms=["ES256"]).claims["sid"]
