"""A hundred concurrent requests with one assertion, or with one pushed request, spread over two server processes: one
counts. On one store and on a cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tornado.httpclient import HTTPResponse

from tests.oauth.pushed.test_pushed import address
from tests.support.http.driver import Service, answer_of, json_of
from tests.support.http.key_app import KeyApp, key_app
from tests.support.processes import two_servers
from tests.support.processes.processes import Pair, at_once

CROWD = 100
within_a_minute = pytest.mark.gen_test(timeout=60)
two, service = two_servers.two_on_each, two_servers.service


def answers(responses: list[HTTPResponse]) -> Counter[tuple[int, str]]:
    """The number of each answer: status and error code."""
    return Counter((one.code, "" if one.code < 400 else json_of(one)["error"]) for one in responses)


async def both(service: Service, two: Pair) -> tuple[tuple[KeyApp, KeyApp], list[dict[str, str]]]:
    """An app with a key, calling each of the two servers, and a proof for each with the same `jti`. The servers differ
    in their issuers, since each has a port of its own."""
    app = await key_app(service)
    first, second = two.split(app)
    assert isinstance(first, KeyApp)
    assert isinstance(second, KeyApp)
    proofs = [app.proof(app.assertion(aud=server.url, jti="once")) for server in two.servers]
    return (first, second), proofs


@pytest.mark.rfc("7523 3-7 jti")
@within_a_minute
@pytest.mark.trap(55)
async def test_one_of_100_requests_with_an_assertion_counts(service: Service, two: Pair) -> None:
    apps, proofs = await both(service, two)
    responses = await at_once(apps[n % 2].post("introspect", token="any", **proofs[n % 2]) for n in range(CROWD))
    assert answers(responses) == {(200, ""): 1, (401, "invalid_client"): CROWD - 1}


@within_a_minute
@pytest.mark.trap(55)
async def test_one_of_100_exchanges_with_an_assertion_succeeds_and_its_tokens_live(service: Service, two: Pair) -> None:
    apps, proofs = await both(service, two)
    code = await service.code(apps[0], await service.signed_in(two.email))
    responses = await at_once(apps[n % 2].exchange(code, **proofs[n % 2]) for n in range(CROWD))
    assert answers(responses) == {(200, ""): 1, (401, "invalid_client"): CROWD - 1}
    # The 99 are no replays of the code: none of them came so far.
    won = json_of(next(one for one in responses if one.code == 200))
    two.forget_addresses()
    assert (await apps[1].userinfo(won["access_token"])).code == 200


@within_a_minute
@pytest.mark.trap(53)
async def test_one_of_100_arrivals_of_a_pushed_request_gets_its_code(service: Service, two: Pair) -> None:
    first = await service.signed_in(two.email)
    assert "code" in answer_of(await first.consent(await address(service.web)))
    url = await address(service.web)
    second = replace(first, base_url=two.servers[1].here, cookies=dict(first.cookies))
    responses = await at_once((first, second)[n % 2].get(url) for n in range(CROWD))
    codes = Counter(one.code for one in responses)
    assert (codes[303], codes.keys() - {303, 400, 429}) == (1, set()), "refused pages count for their address"
    answer = answer_of(next(one for one in responses if one.code == 303))
    assert (await service.web.exchange(answer["code"])).code == 200
