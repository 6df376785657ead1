"""A hundred concurrent requests with one proof, on two server processes: one counts. On one store and on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from dev.lab.ports import free_port
from tests.oauth.pushed.test_pushed import parameters
from tests.support.http.dpop_app import BoundApp, Device, error_of
from tests.support.http.driver import Service, json_of
from tests.support.processes import two_servers
from tests.support.processes.processes import Pair, at_once
from tests.support.processes.two_servers import STORES, pair_on

CROWD = 100
PORT = free_port()
BASE = f"http://localhost:{PORT}"
OPTIONS = ("--port", str(PORT), "--reuse-port")
"""Proofs name an address, so both servers have the same. The kernel spreads connections over them."""
USERINFO = "/api/oauth/userinfo"
within_a_minute = pytest.mark.gen_test(timeout=60)


@pytest.fixture(scope="module", params=STORES)
def two(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The two servers of this module."""
    with pair_on(request, *OPTIONS) as made:
        yield made


service = two_servers.service


async def bound(service: Service, two: Pair, **fields: Any) -> tuple[tuple[BoundApp, BoundApp], dict[str, Any]]:
    """An app with a key, calling each of the two servers, and its tokens."""
    app = await service.add_app(f"{service.web.client_id}-bound", **fields)
    device = Device()
    apps = [BoundApp(one, device) for one in two.split(app)]
    code = await service.code(apps[0].app, await service.signed_in(two.email))
    response = await apps[0].exchange(code, proof=device.proof("POST", f"{BASE}/api/oauth/token"))
    assert response.code == 200, response.body
    return (apps[0], apps[1]), json_of(response)


def answers(responses: Sequence[HTTPResponse]) -> Counter[tuple[int, str]]:
    """The number of each answer: status and error code."""
    return Counter(map(error_of, responses))


@pytest.mark.rfc("9449 11.1 once")
@within_a_minute
@pytest.mark.trap(54)
async def test_one_of_100_calls_with_a_proof_counts(service: Service, two: Pair) -> None:
    apps, tokens = await bound(service, two)
    token = tokens["access_token"]
    nonce = None
    for n, app in enumerate((*apps, *apps)):
        proof = app.device.proof("GET", BASE + USERINFO, token, jti=f"alone-{n}", nonce=nonce)
        answer = await app.call(token, proof=proof)
        assert answer.code == 200, "the nonce of one server counts at the other"
        nonce = answer.headers["DPoP-Nonce"]
    proof = apps[0].device.proof("GET", BASE + USERINFO, token, nonce=nonce)
    responses = await at_once(apps[n % 2].call(token, proof=proof) for n in range(CROWD))
    assert answers(responses) == {(200, ""): 1, (401, "invalid_dpop_proof"): CROWD - 1}
    assert all(USERINFO in server.log for server in two.servers), "both processes were asked"


@within_a_minute
@pytest.mark.trap(54)
async def test_one_of_100_refreshes_with_a_proof_counts_and_the_rest_are_no_replays(
    service: Service, two: Pair
) -> None:
    apps, tokens = await bound(service, two, public=True)
    device = apps[0].device
    proof = device.proof("POST", f"{BASE}/api/oauth/token")
    refresh = tokens["refresh_token"]
    responses = await at_once(apps[n % 2].refresh(refresh, proof=proof) for n in range(CROWD))
    assert answers(responses) == {(200, ""): 1, (400, "invalid_dpop_proof"): CROWD - 1}
    won = json_of(next(one for one in responses if one.code == 200))
    token = won["access_token"]
    again = apps[1].device.proof("GET", BASE + USERINFO, token)
    assert (await apps[1].call(token, proof=again)).code == 200
    # A proof of its own for each: one rotation, and 99 replays by the holder of the key, which end everything.
    refresh = won["refresh_token"]
    responses = await at_once(
        apps[n % 2].refresh(refresh, proof=device.proof("POST", f"{BASE}/api/oauth/token")) for n in range(CROWD)
    )
    assert answers(responses) == {(200, ""): 1, (400, "invalid_grant"): CROWD - 1}
    token = json_of(next(one for one in responses if one.code == 200))["access_token"]
    last = device.proof("GET", BASE + USERINFO, token)
    assert error_of(await apps[0].call(token, proof=last)) == (401, "invalid_token")


@within_a_minute
@pytest.mark.trap(54)
async def test_one_of_100_pushed_requests_with_a_proof_counts(service: Service, two: Pair) -> None:
    device, path = Device(), "/api/oauth/par"
    form = {**parameters(service.web), "client_secret": service.web.secret or ""}
    proof = device.proof("POST", BASE + path)
    responses = await at_once(device.send(BASE + path, "POST", form=form, proof=proof) for _ in range(CROWD))
    assert answers(responses) == {(201, ""): 1, (400, "invalid_dpop_proof"): CROWD - 1}


@within_a_minute
@pytest.mark.trap(56)
async def test_100_thieves_without_the_key_end_nothing(service: Service, two: Pair) -> None:
    apps, tokens = await bound(service, two, public=True)
    refresh = tokens["refresh_token"]
    thieves = [Device() for _ in range(4)]

    async def steal(n: int) -> HTTPResponse:
        proof = thieves[n % 4].proof("POST", f"{BASE}/api/oauth/token")
        return await apps[n % 2].refresh(refresh, proof=proof)

    responses = await at_once(steal(n) for n in range(CROWD))
    assert {error for _, error in answers(responses)} <= {"invalid_grant", "rate_limited"}
    proof = apps[0].device.proof("GET", BASE + USERINFO, tokens["access_token"])
    assert (await apps[0].call(tokens["access_token"], proof=proof)).code == 200
    rotated = await apps[0].refresh(refresh, proof=apps[0].device.proof("POST", f"{BASE}/api/oauth/token"))
    assert rotated.code == 200
