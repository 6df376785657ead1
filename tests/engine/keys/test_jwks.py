"""The key set over HTTP, on one server and on two."""

from __future__ import annotations

import asyncio

import pytest

from store.crypto.jose.jwk import parse_keys
from store.crypto.jose.private import OURS
from tests.support.http.driver import Service, json_of, send
from tests.support.processes.processes import opened, pair
from tests.support.store.signing import TYPES, signed

ADDRESS = "/.well-known/jwks.json"


@pytest.mark.fapi("5.4.2-3 kid")
@pytest.mark.gen_test
async def test_the_set_is_for_everybody_and_cached_for_minutes(service: Service) -> None:
    response = await send(service.base_url + ADDRESS, headers={"Origin": "https://app.example"})
    assert response.code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    found = json_of(response)
    assert list(found) == ["keys"]
    assert [key["alg"] for key in found["keys"]] == list(OURS)
    assert all(key["use"] == "sig" for key in found["keys"])
    assert len({key.kid for key in parse_keys(found)}) == len(OURS)
    assert json_of(await send(service.base_url + ADDRESS)) == found


@pytest.mark.slow
@pytest.mark.trap(47)
@pytest.mark.gen_test(timeout=90)
async def test_two_servers_publish_one_set_and_verify_each_other() -> None:
    with pair() as two:
        urls = [server.url + ADDRESS for server in two.servers] * 8
        sets = [json_of(answer) for answer in await asyncio.gather(*map(send, urls))]
        assert all(one == sets[0] for one in sets)
        async with opened(two.engine.url, two.keys) as store:
            text, kid = await signed(store, "RS256")
            assert kid in {key["kid"] for key in sets[0]["keys"]}
            made, _ = await store.signing_store.rotate("RS256", at_once=True)
            text, kid = await signed(store, "RS256")
            assert kid == made.row.kid
            await asyncio.sleep(0.2)  # the announcement is on its way
            for url in urls[:2]:
                assert json_of(await send(url))["keys"][0]["kid"] == kid
            assert (await store.signing_keys.verify(text, types=TYPES)).claims == {"sub": "ada"}
