"""Logout tokens on their way to an app: OpenID Connect Back-Channel Logout 1.0, read by another library."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest
from joserfc import jws, jwt
from joserfc.jwk import KeySet
from tornado.ioloop import IOLoop

from outbound.address_policy import AddressPolicy
from outbound.guarded_http import NO_ADDRESS
from outbound.webhooks.errors import NO_TARGET
from outbound.webhooks.poster import WebhookSender
from outbound.webhooks.posting import Poster
from store.apps.registration import Registration
from store.refused import Refused
from store.webhooks.deliveries import SESSION_ENDED, Delivery, WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.http.receiver import Posted, Receiver, answering
from tests.support.processes.engines import FakeClock
from tests.support.store.hooked_app import engine
from tests.support.store.webhook_app import ISSUER, USER, Hooked, signs_logouts

__all__ = ["engine"]  # a fixture

pytestmark = pytest.mark.gen_test(timeout=60)

SID = "s" * 22
EVENT = "http://schemas.openid.net/event/backchannel-logout"


class Heard(Hooked):
    """An app with a back-channel logout URL and no webhook, and its receiver."""

    @classmethod
    async def at(cls, store: Store, **fields: Any) -> Heard:
        self = cls()
        self.store, self.client_id, self.receiver, self.secret = store, "rp", Receiver(answering(200)), ""
        await self.receiver.start()
        facts = {"backchannel_logout_uri": f"{self.receiver.url}?of=rp", **fields}
        await store.apps.create(Registration("rp", "An RP", ("https://rp.example/cb",), ("openid",), **facts))
        return self

    async def end(self, sid: str = SID) -> str:
        """A session ends: returns the id of the delivery."""
        event = WebhookEvent(new_event_id(), SESSION_ENDED, "rp", USER, await self.store.apps.now(), {"sid": sid})
        assert await self.store.deliveries.enqueue(event)
        return event.id

    async def claims(self, posted: Posted, algorithm: str = "RS256") -> dict[str, Any]:
        """The claims of a posted token, verified with the published keys."""
        published: Any = await self.store.signing_keys.published()
        keys = KeySet.import_key_set(published)
        token = jwt.decode(token_in(posted), keys, algorithms=[algorithm])
        assert token.header["typ"] == "logout+jwt"
        assert token.header["alg"] == algorithm
        return dict(token.claims)


def token_in(posted: Posted) -> str:
    """The token of a request, which holds nothing else."""
    assert posted.headers["content-type"] == "application/x-www-form-urlencoded"
    ((name, token),) = parse_qsl(posted.body.decode(), strict_parsing=True)
    assert name == "logout_token"
    return token


@pytest.fixture
def heard(io_loop: IOLoop, memory_store: Store) -> Iterator[Heard]:
    made = io_loop.run_sync(lambda: Heard.at(memory_store))
    yield made
    io_loop.run_sync(made.receiver.close)


@pytest.mark.openid("backchannel 2.2 query")
@pytest.mark.openid("backchannel 2.4 claims")
@pytest.mark.openid("backchannel 2.4 sub")
@pytest.mark.openid("backchannel 2.4 events")
@pytest.mark.openid("backchannel 2.4 nonce")
@pytest.mark.openid("backchannel 2.4 signed")
@pytest.mark.openid("backchannel 2.5 form")
async def test_a_token_says_whose_session_ended_and_nothing_else(heard: Heard, engine: WebhookSender) -> None:
    done = await heard.settled(await heard.end(), 1, engine)
    assert (done.state, done.attempts, done.last_status) == ("delivered", 1, 200)
    (posted,) = heard.receiver.posted
    assert posted.line == "POST /hook?of=rp HTTP/1.1"
    claims = await heard.claims(posted)
    assert len(claims.pop("jti")) == 22
    assert claims.pop("exp") - claims["iat"] == 120
    assert abs(claims.pop("iat") - time.time()) < 30
    assert claims == {"iss": ISSUER, "aud": "rp", "sub": USER, "sid": SID, "events": {EVENT: {}}}
    # It has nothing of a webhook.
    assert not [name for name in posted.headers if name.startswith("webhook")]


async def test_it_is_signed_as_the_apps_id_tokens_are(heard: Heard, engine: WebhookSender) -> None:
    await heard.store.apps.update("rp", id_token_alg="ES256")
    await heard.settled(await heard.end(), 1, engine)
    assert (await heard.claims(heard.receiver.posted[0], "ES256"))["aud"] == "rp"


@pytest.mark.trap(45)
async def test_a_logout_token_is_no_hint(heard: Heard, engine: WebhookSender) -> None:
    await heard.settled(await heard.end(), 1, engine)
    with pytest.raises(Refused, match="invalid_request"):
        await heard.store.id_tokens.read_hint(token_in(heard.receiver.posted[0]), ISSUER, "rp")


@pytest.mark.openid("backchannel 2.8 success")
@pytest.mark.parametrize("status", [200, 204])
async def test_success_is_posted_once(heard: Heard, engine: WebhookSender, clock: FakeClock, status: int) -> None:
    heard.receiver.reply = answering(status, body=b"x" * (status == 200))
    done = await heard.settled(await heard.end(), 1, engine)
    assert (done.state, done.last_status, done.last_error) == ("delivered", status, "")
    clock.advance(90_000)
    assert await heard.store.deliveries.claim(9, 60) == []


@pytest.mark.openid("backchannel 2.5 retries")
async def test_400_is_final(heard: Heard, engine: WebhookSender) -> None:
    error = json.dumps({"error": "invalid_request"}).encode()
    heard.receiver.reply = answering(400, "Content-Type: application/json", body=error)
    done = await heard.settled(await heard.end(), 1, engine)
    assert (done.state, done.attempts, done.last_status) == ("failed", 1, 400)
    assert "refused the token" in done.last_error


@pytest.mark.parametrize("status", [201, 202, 206, 301, 303, 401, 403, 404, 410, 429, 500, 501, 503])
async def test_anything_else_is_retried(heard: Heard, engine: WebhookSender, status: int) -> None:
    heard.receiver.reply = answering(status, "Location: http://127.0.0.1:9/")
    found = await heard.settled(await heard.end(), 1, engine)
    assert (found.state, found.last_status) == ("pending", status)
    assert str(status) in found.last_error
    assert found.next_attempt_at


async def test_attempts_are_signed_anew_for_a_day(heard: Heard, engine: WebhookSender, clock: FakeClock) -> None:
    clock.stop()
    heard.receiver.reply = answering(503)
    told, began = await heard.end(), clock.time()
    found: Delivery | None = None
    for attempt in range(1, 50):
        found = await heard.settled(told, attempt, engine)
        if found.next_attempt_at is None:
            break
        pause = found.next_attempt_at / 1000 - clock.time()
        assert pause > 0
        clock.advance(pause + 0.01)
    assert found
    assert found.state == "failed"
    assert found.attempts > 9
    assert 86_400 <= clock.time() - began < 86_402
    tokens = [await heard.claims(posted) for posted in heard.receiver.posted]
    assert len(tokens) == len({claims["jti"] for claims in tokens}) == found.attempts
    # By hand it is posted once more.
    assert await heard.store.deliveries.replay("rp", told)
    assert (await heard.settled(told, found.attempts + 1, engine)).state == "failed"


async def test_a_retry_is_signed_with_the_key_of_its_time(
    heard: Heard, engine: WebhookSender, clock: FakeClock
) -> None:
    heard.receiver.script = [answering(503)]
    told = await heard.end()
    await heard.settled(told, 1, engine)
    await heard.store.signing_store.rotate("RS256", at_once=True)
    heard.store.signing_keys.forget()
    clock.advance(10)
    assert (await heard.settled(told, 2, engine)).state == "delivered"
    kids = [jws.extract_compact(token_in(one).encode()).headers()["kid"] for one in heard.receiver.posted]
    assert len({*kids}) == 2


async def test_retry_after_is_heeded_up_to_the_end_of_the_day(
    heard: Heard, engine: WebhookSender, clock: FakeClock
) -> None:
    clock.stop()
    heard.receiver.reply = answering(503, "Retry-After: 999999")
    told = await heard.end()
    found = await heard.settled(told, 1, engine)
    assert 86_300 < (found.next_attempt_at or 0) / 1000 - clock.time() <= 86_400
    clock.advance(86_401)
    assert (await heard.settled(told, 2, engine)).state == "failed"


@pytest.mark.parametrize("change", [{"status": "disabled"}, {"status": "off"}, {"backchannel_logout_uri": ""}])
async def test_an_app_that_is_off_gets_nothing(heard: Heard, engine: WebhookSender, change: dict[str, Any]) -> None:
    await heard.store.apps.update("rp", **change)
    done = await heard.settled(await heard.end(), 1, engine)
    assert (done.state, done.last_error) == ("failed", NO_TARGET)
    assert heard.receiver.posted == []


async def test_a_deleted_app_gets_nothing(heard: Heard) -> None:
    assert await heard.store.webhooks.wants("rp", SESSION_ENDED)
    await heard.store.apps.begin_deletion("rp")
    assert not await heard.store.webhooks.wants("rp", SESSION_ENDED)
    assert await heard.store.webhooks.target("rp", SESSION_ENDED) is None


async def test_a_webhook_gets_no_tokens_and_a_logout_url_no_events(heard: Heard, engine: WebhookSender) -> None:
    hook = Receiver()
    await hook.start()
    await heard.store.webhooks.set_url("rp", hook.url)
    ended, told = await heard.end(), await heard.tell()
    for one in (ended, told):
        assert (await heard.settled(one, 1, engine)).state == "delivered"
    assert [one.id for one in hook.posted] == [told]
    assert [(await heard.claims(one))["sid"] for one in heard.receiver.posted] == [SID]
    await hook.close()


async def test_no_token_is_posted_into_the_servers_own_networks(heard: Heard) -> None:
    sender = WebhookSender(
        heard.store.deliveries, heard.store.webhooks.target, Poster(AddressPolicy(), 4), 4, signs_logouts(heard.store)
    )
    sender.start()
    found = await heard.settled(await heard.end(), 1, sender)
    await sender.close(1)
    assert (found.state, found.last_error) == ("pending", NO_ADDRESS)
    assert heard.receiver.posted == []


async def test_a_slow_app_delays_no_other(heard: Heard, engine: WebhookSender) -> None:
    release = asyncio.Event()

    async def slow(writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await answering(200)(writer)

    heard.receiver.reply = slow
    for number in range(40):
        await heard.end(f"{number:022}")
    other = await Hooked.make(heard.store, "quick")
    assert (await other.settled(await other.tell(), 1, engine)).state == "delivered"
    assert heard.receiver.most_at_once <= 4
    release.set()
    await heard.receiver.count(40)
    await other.receiver.close()
