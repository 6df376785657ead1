"""Documents cannot fill a store so far that apps stop working: two servers on a limited store."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tornado.httpclient import HTTPResponse

from outbound.ai.echo import ECHO
from store.engine.memory import room_of
from tests.support.http.driver import ALL_SCOPES, PASSWORD, App, Service, json_of, send
from tests.support.processes import two_servers
from tests.support.processes.processes import Pair, pair
from tests.support.store.ai_spender import NATIVE

pytestmark = pytest.mark.slow

LIMIT = 40 * 2**20
LARGEST = b'"%b"' % (b"x" * (256 * 2**10 - 2))
PEOPLE = 16
"""Each person may store 4 MiB: together more than the store has."""


@pytest.fixture(scope="module")
def two() -> Iterator[Pair]:
    limits = ("--maxmemory", str(LIMIT), "--maxmemory-policy", "noeviction")
    with pair("--ai-calls-per-person", "1", store=limits) as servers:
        yield servers


service = two_servers.service


async def put(app: App, token: str, name: str, content: bytes) -> HTTPResponse:
    """Writes a document."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return await send(f"{app.base_url}/api/v1/data/{name}", "PUT", body=content, headers=headers)


async def fill(service: Service, two: Pair) -> list[tuple[str, str]]:
    """Lets people store documents through both servers until refused. Returns tokens and answers."""
    registration = await service.store.apps.find(service.web.client_id)
    assert registration is not None
    said = []
    for number in range(PEOPLE):
        user = await service.add_person(f"keeper-{number}@example.com")
        token = (await service.store.tokens.mint(user, registration, ("data:write",))).access_token
        for place in range(40):
            app = two.split(service.web)[place % 2]
            answer = await put(app, token, f"notes/{place}", LARGEST)
            if answer.code != 201:
                said.append((token, str(json_of(answer).get("error_description"))))
                assert (answer.code, json_of(answer)["error"]) == (507, "quota_exceeded"), answer.body
                break
    return said


@pytest.mark.gen_test(timeout=60)
async def test_filling_the_store_with_documents_blocks_no_sign_in_to_apps(service: Service, two: Pair) -> None:
    said = await fill(service, two)
    assert len(said) == PEOPLE
    assert said[0][1] == "All apps together keep as many bytes for this person as they may."
    assert said[-1][1] == "All apps of this server together keep as much as they may."
    room = await room_of(service.store.client)
    assert room is not None
    assert 0.75 < room.part < 0.9
    assert (await put(service.web, said[0][0], "notes/0", LARGEST)).code == 200, "as large as before"

    two.forget_addresses()
    await service.store.credits.grant(await service.add_person("new@example.com"), 1_000_000)
    browser = await service.signed_in("new@example.com", PASSWORD)
    tokens = await service.tokens(browser=browser, scope=" ".join(ALL_SCOPES))
    refreshed = json_of(await service.web.refresh(tokens["refresh_token"]))
    assert (await service.web.userinfo(refreshed["access_token"])).code == 200
    call = {"model": ECHO, "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
    headers = {"Authorization": f"Bearer {refreshed['access_token']}", "Content-Type": "application/json"}
    answer = await send(service.base_url + NATIVE, "POST", body=json.dumps(call), headers=headers)
    assert answer.code == 200, answer.body
