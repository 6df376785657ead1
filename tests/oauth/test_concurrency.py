"""A hundred concurrent requests, spread over two server processes: no race gives anything away."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from store import keys
from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import TokenKind
from store.lifetimes import OAUTH
from tests.support.http.driver import App, Browser, Service, answer_of, fields_of, json_of
from tests.support.processes import two_servers
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, Pair, at_once, opened, pair, shared

CROWD = 100
within_a_minute = pytest.mark.gen_test(timeout=60)


@pytest.fixture(scope="module")
def two() -> Iterator[Pair]:
    """The two servers of this module."""
    with pair("--trusted-proxies", "127.0.0.1") as made:
        yield made


service = two_servers.service


def answers(responses: Sequence[HTTPResponse]) -> Counter[tuple[int, str]]:
    """The number of each answer: status and error code."""
    return Counter((one.code, "" if one.code < 400 else json_of(one)["error"]) for one in responses)


async def minted(service: Service) -> dict[str, Any]:
    """Tokens for the service's person and app, without a page and outside of any window."""
    app = await service.store.apps.find(service.web.client_id)
    assert app
    issued = await service.store.tokens.mint(service.ada, app, ("profile", "data:read"))
    return {"access_token": issued.access_token, "refresh_token": issued.refresh_token}


async def is_dead(app: App, tokens: dict[str, Any]) -> bool:
    """Whether both tokens of an answer are dead."""
    read, refreshed = await app.userinfo(tokens["access_token"]), await app.refresh(tokens["refresh_token"])
    return (read.code, refreshed.code, json_of(refreshed)["error"]) == (401, 400, "invalid_grant")


@within_a_minute
@pytest.mark.trap(1)
@pytest.mark.spec("3.2")
async def test_one_of_100_exchanges_of_a_code_succeeds_and_its_tokens_are_dead(service: Service, two: Pair) -> None:
    other = await minted(service)
    browser = await service.signed_in(two.email)
    code = await service.code(service.web, browser)
    apps = two.split(service.web)
    responses = await at_once(apps[n % 2].exchange(code) for n in range(CROWD))
    assert answers(responses) == {(200, ""): 1, (400, "invalid_grant"): CROWD - 1}
    won = json_of(next(one for one in responses if one.code == 200))
    # The 99 are replays of a used code: its family is dead on both servers, and no other tokens of the pair are.
    for app in apps:
        assert (await app.userinfo(won["access_token"])).code == 401
        assert (await app.userinfo(other["access_token"])).code == 200
    assert await is_dead(apps[1], won)


@within_a_minute
@pytest.mark.trap(1)
@pytest.mark.spec("3.1")
async def test_one_of_100_refreshes_of_a_token_succeeds_and_the_pair_is_dead(service: Service, two: Pair) -> None:
    other, tokens = await minted(service), await minted(service)
    apps = two.split(service.web)
    responses = await at_once(apps[n % 2].refresh(tokens["refresh_token"]) for n in range(CROWD))
    assert answers(responses) == {(200, ""): 1, (400, "invalid_grant"): CROWD - 1}
    two.forget_addresses()
    won = json_of(next(one for one in responses if one.code == 200))
    for app in apps:
        for given in (won, tokens, other):
            assert await is_dead(app, given)


@within_a_minute
@pytest.mark.trap(1)
async def test_within_the_retry_time_100_refreshes_are_one_rotation(service: Service, two: Pair) -> None:
    await service.store.apps.update(service.web.client_id, refresh_retry_seconds=30)
    tokens = await minted(service)
    apps = two.split(service.web)
    responses = await at_once(apps[n % 2].refresh(tokens["refresh_token"]) for n in range(CROWD))
    assert answers(responses) == {(200, ""): CROWD}
    pairs = {(json_of(one)["access_token"], json_of(one)["refresh_token"]) for one in responses}
    assert len(pairs) == 1
    [(access, successor)] = pairs
    latest = service.store.sealer.open(TokenKind.REFRESH, successor)
    assert latest
    assert latest.generation == 1
    assert service.store.tokens.open_access(access)
    remaining = sorted(int(one.headers["X-RateLimit-Remaining"]) for one in responses)
    assert remaining[0] < CROWD // 2, "every one of them counts"


async def refresh_until_refused(app: App, given: list[dict[str, Any]]) -> bool:
    """Rotates up to four times, adding each answer to `given`; whether one was refused."""
    for _ in range(4):
        response = await app.refresh(given[-1]["refresh_token"])
        if response.code != 200:
            return True
        given.append(json_of(response))
    return False


async def read_with_all(apps: Sequence[App], given: list[dict[str, Any]]) -> set[int]:
    """The statuses of every access token on every server."""
    return {one.code for one in await at_once(app.userinfo(each["access_token"]) for each in given for app in apps)}


@within_a_minute
@pytest.mark.trap(3)
@pytest.mark.spec("3.1")
async def test_a_refresh_racing_a_revocation_leaves_no_live_token(service: Service, two: Pair) -> None:
    browser = await service.signed_in(two.email)
    await minted(service)
    action = f"/account/apps/{service.web.client_id}/revoke"
    form = fields_of(await browser.get("/account/apps"), action)
    apps = two.split(service.web)
    cut_short = 0
    for _ in range(20):
        given = [await minted(service)]
        refreshing = asyncio.ensure_future(refresh_until_refused(apps[1], given))
        await asyncio.sleep(random.uniform(0, 0.015))
        gone = await browser.send(action, "POST", form=form)
        assert (gone.code, gone.headers["Location"]) == (303, "/account/apps?disconnected")
        # What was given before the answer is dead, and so is what a refresh under way still gives.
        assert await read_with_all(apps, given) == {401}
        cut_short += await refreshing
        assert await read_with_all(apps, given) == {401}
        assert (await apps[0].refresh(given[-1]["refresh_token"])).code == 400
    assert cut_short, "no revocation came between two refreshes"


async def later(seconds: float, app: App, token: str) -> HTTPResponse:
    """A refresh sent after a delay."""
    await asyncio.sleep(seconds)
    return await app.refresh(token)


@within_a_minute
@pytest.mark.trap(2)
@pytest.mark.spec("3.1")
async def test_a_replay_racing_a_slow_winner_leaves_no_live_token(service: Service, two: Pair) -> None:
    near, far = two.split(service.web)
    seen = set()
    for lead in (0.1, -0.1, *(number / 2000 for number in range(-8, 9))):  # seconds by which the replay comes first
        two.forget_addresses()
        first = await minted(service)
        second = json_of(await near.refresh(first["refresh_token"]))
        replay, winner = await at_once(
            (
                later(max(0.0, -lead), far, first["refresh_token"]),
                later(max(0.0, lead), near, second["refresh_token"]),
            )
        )
        assert replay.code == 400
        seen.add(winner.code)
        for given in (first, second, *([json_of(winner)] if winner.code == 200 else [])):
            assert await is_dead(far, given)
    assert seen == {200, 400}, "only one of the two orders happened"


@within_a_minute
@pytest.mark.trap(4)
async def test_the_first_token_after_three_quick_rotations_is_a_replay(service: Service, two: Pair) -> None:
    near, far = two.split(service.web)
    for _ in range(5):
        given = [await minted(service)]
        began = time.monotonic()
        for app in (near, far, near):
            given.append(json_of(await app.refresh(given[-1]["refresh_token"])))
        replay = await far.refresh(given[0]["refresh_token"])
        took = time.monotonic() - began
        assert (replay.code, json_of(replay)["error"]) == (400, "invalid_grant")
        assert await is_dead(near, given[-1])
        if took < 1:
            return
    pytest.fail("this machine is too slow to rotate three times within a second")


@within_a_minute
@pytest.mark.trap(4)
async def test_a_replay_is_detected_after_both_server_and_store_were_killed() -> None:
    with valkey(append_only=True) as engine:
        ring = Keys(KeyRing.parse(KeyRing.generate(1)))
        options = ("--redis-url", engine.url, *QUICK)
        async with opened(engine.url, ring) as store:
            with shared(ring.ring.render(), *options) as server:
                service = Service(server.ready().here, store)
                await service.populate()
                first = await service.tokens()
                second = json_of(await service.web.refresh(first["refresh_token"]))
                server.kill()
            engine.kill()
            engine.start()
            with shared(ring.ring.render(), *options) as server:
                app = App(server.ready().here, service.web.client_id, service.web.secret)
                assert (await app.userinfo(second["access_token"])).code == 200
                replay = await app.refresh(first["refresh_token"])
                assert (replay.code, json_of(replay)["error"]) == (400, "invalid_grant")
                assert await is_dead(app, second)


@within_a_minute
@pytest.mark.spec("8.1")
async def test_40_of_100_requests_pass_a_window_with_40_left(service: Service, two: Pair) -> None:
    tokens = await minted(service)
    apps = two.split(service.web)
    await at_once(app.userinfo(tokens["access_token"]) for app in apps)  # both know the app from here on
    # 60 requests, counted now. The window slides in steps of 3 s, and each makes room for five.
    began = time.monotonic()
    now, micros = await service.store.client.time()
    at = now * 1000 + micros // 1000
    await service.store.client.set(keys.limit(service.ada, OAUTH.name), f"{at} {CROWD - 40} {at}")
    responses = await at_once(apps[n % 2].userinfo(tokens["access_token"]) for n in range(CROWD))
    slid = 5 * int((time.monotonic() - began) / 3)
    passed = [int(one.headers["X-RateLimit-Remaining"]) for one in responses if one.code == 200]
    assert answers(responses) == {(200, ""): len(passed), (429, "rate_limited"): CROWD - len(passed)}
    assert 40 <= len(passed) <= 40 + slid
    if not slid:
        assert sorted(passed) == list(range(40))


@within_a_minute
async def test_one_of_100_sign_ups_with_an_address_makes_an_account(service: Service, two: Pair) -> None:
    browsers = [Browser(server.here) for server in two.servers]
    pages = [await browser.get("/signup") for browser in browsers]
    form = {"email": "grace@example.com", "name": "Grace", "password": "a long enough password"}

    async def sign_up(number: int) -> HTTPResponse:
        at = number % 2
        own = Browser(browsers[at].base_url, dict(browsers[at].cookies))
        fields = {**fields_of(pages[at], "/signup"), **form}
        # A hundred people: one address may try no more than 20 times an hour.
        return await own.send("/signup", "POST", form=fields, headers={"X-Forwarded-For": f"192.0.2.{number}"})

    responses = await at_once(sign_up(number) for number in range(CROWD))
    assert Counter(one.code for one in responses) == {303: 1, 400: CROWD - 1}
    assert [one.email async for one in service.store.operator.people()].count(form["email"]) == 1
    assert (await service.signed_in(form["email"], form["password"])).cookies


@within_a_minute
async def test_one_of_100_decisions_on_a_request_gives_a_code(service: Service, two: Pair) -> None:
    browser = await service.signed_in(two.email)
    page = await browser.get(service.web.authorize_url())
    form = {**fields_of(page, "/api/oauth/authorize"), "decision": "allow"}
    own = [Browser(server.here, dict(browser.cookies)) for server in two.servers]
    responses = await at_once(own[n % 2].send("/api/oauth/authorize", "POST", form=form) for n in range(CROWD))
    assert Counter(one.code for one in responses) == {303: 1, 400: CROWD - 1}
    [redirect] = [one for one in responses if one.code == 303]
    with two.engine.client() as client:
        client.delete(keys.limit(service.ada, OAUTH.name))  # the hundred used it up
    assert (await service.web.exchange(answer_of(redirect)["code"])).code == 200
