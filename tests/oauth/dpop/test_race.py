"""A hundred concurrent requests with one proof, on two server processes: one counts. On one store and on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from dev.lab.ports import free_port
from store.crypto.keyring import KeyRing
from tests.support.http.dpop_app import BoundApp, Device, error_of
from tests.support.http.driver import Service, json_of
from tests.support.processes.clusters import Cluster
from tests.support.processes.processes import QUICK, Pair, at_once, driven, pair, shared

CROWD = 100
PORT = free_port()
BASE = f"http://localhost:{PORT}"
OPTIONS = ("--port", str(PORT), "--reuse-port")
"""Proofs name an address, so both servers have the same. The kernel spreads connections over them."""
USERINFO = "/api/oauth/userinfo"
within_a_minute = pytest.mark.gen_test(timeout=60)


class OnCluster(Pair):
    """The two servers on a cluster."""

    def forget_addresses(self) -> None:
        """Nothing here counts an address."""


@pytest.fixture(scope="module", params=["valkey", "cluster"])
def two(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The two servers of this module."""
    if request.param == "valkey":
        with pair(*OPTIONS) as made:
            yield made
        return
    ring, engine = KeyRing.generate(1), request.getfixturevalue("cluster_engine")
    assert isinstance(engine, Cluster)
    engine.empty()
    words = ("--redis-url", engine.url, *QUICK, *OPTIONS)
    with shared(ring, *words) as first, shared(ring, *words) as second:
        both: Any = engine
        yield OnCluster(both, ring, (first.ready(), second.ready()))


@pytest.fixture
def service(io_loop: IOLoop, two: Pair) -> Iterator[Service]:
    """A new person and a new app on both servers."""
    with driven(io_loop, two) as made:
        yield made


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
    for n, app in enumerate(apps):
        proof = app.device.proof("GET", BASE + USERINFO, token, jti=f"alone-{n}")
        assert (await app.call(token, proof=proof)).code == 200
    proof = apps[0].device.proof("GET", BASE + USERINFO, token)
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
