"""Rate limits that an operator sets, and their figures under the names that SDKs know. SPEC 8.1, 8.2."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from handlers.ai.limit_headers import NAMES, duration
from handlers.core.reading import LONG_BODY
from handlers.core.site import Site
from runtime.wiring import limit_store
from settings.declared import Settings
from tests.support.http.driver import Service, send
from tests.support.http.upstream import Plan, ScriptedUpstream
from tests.support.store.ai_spender import NATIVE, SDK, Spender, mint, question

pytestmark = pytest.mark.gen_test(timeout=20)

COUNT, MODELS = f"{SDK}/count_tokens", "/ai/v1/models"


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


@pytest.mark.spec("8.1.ai")
async def test_an_operator_sets_how_many_calls_a_person_makes(service: Service, upstream: ScriptedUpstream) -> None:
    limit_store(service.store, Settings(ai_calls_per_minute=3))
    first = await Spender.make(service)
    second = await Spender.make(service, app=await service.add_app("other-app"), amount=0)
    answers = [await one.ask(path=path) for one, path in ((first, SDK), (second, NATIVE), (first, NATIVE))]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["2", "1", "0"]
    assert {answer.headers["X-RateLimit-Limit"] for answer in answers} == {"3"}
    assert (await second.ask(path=SDK)).code == 429
    limit_store(service.store, Settings(ai_calls_per_minute=60))
    assert (await second.ask(path=SDK)).code == 200


@pytest.mark.parametrize(
    ("setting", "method", "path", "scope"),
    [
        ("data_reads_per_minute", "GET", "/api/v1/data/_meta/usage", "data:read"),
        ("data_writes_per_minute", "PUT", "/api/v1/data/notes/n1", "data:write"),
        ("data_lists_per_minute", "GET", "/api/v1/data/notes", "data:read"),
        ("oauth_per_minute", "GET", "/api/oauth/userinfo", "profile"),
    ],
)
async def test_an_operator_sets_the_other_windows_of_the_specification(
    service: Service, setting: str, method: str, path: str, scope: str
) -> None:
    two: dict[str, Any] = {setting: 2}
    limit_store(service.store, Settings(**two))
    token = await mint(service, service.web, scope)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = "1" if method == "PUT" else None
    answers = [await send(service.base_url + path, method, body=body, headers=headers) for _ in range(3)]
    assert [answer.code // 100 for answer in answers] == [2, 2, 4]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert answers[-1].code == 429


async def test_the_size_of_a_request_takes_nothing_from_another_window(
    service: Service, upstream: ScriptedUpstream
) -> None:
    spender = await Spender.make(service)
    other = await Spender.make(service, app=await service.add_app("other-app"), amount=0)
    long = question("a " * LONG_BODY)
    assert (await spender.ask(long)).headers["X-RateLimit-Remaining"] == "19"
    assert (await spender.get(MODELS)).headers["X-RateLimit-Remaining"] == "59"
    for one, left in ((spender, "58"), (spender, "57"), (other, "59")):
        answer = await one.ask(long, COUNT)
        assert (answer.code, answer.headers["X-RateLimit-Remaining"]) == (200, left)
    assert (await spender.ask(question(), COUNT)).headers["X-RateLimit-Remaining"] == "56"


async def test_the_figures_have_the_names_that_sdks_know(service: Service, upstream: ScriptedUpstream) -> None:
    upstream.plan = Plan(
        headers={"anthropic-ratelimit-requests-limit": "9999", "anthropic-organization-id": "org_of_the_operator"}
    )
    spender = await Spender.make(service)
    for stream in (False, True):
        for path in (NATIVE, SDK):
            headers = (await spender.ask(question(stream=stream), path)).headers
            for one in ("X-RateLimit-{}-Requests", "Anthropic-RateLimit-Requests-{}"):
                assert headers[one.format("Limit")] == headers["X-RateLimit-Limit"] == "20"
                assert headers[one.format("Remaining")] == headers["X-RateLimit-Remaining"]
            assert headers["X-RateLimit-Reset-Requests"].endswith(("s", "ms"))
            reset = datetime.fromisoformat(headers["Anthropic-RateLimit-Requests-Reset"]).timestamp()
            assert abs(reset - int(headers["X-RateLimit-Reset"]) / 1000) < 1
            assert "org_of_the_operator" not in str(dict(headers.get_all()))
            assert set(NAMES) <= {name.strip() for name in headers["Access-Control-Expose-Headers"].split(",")}
    listed = (await spender.get(MODELS)).headers
    assert listed["Anthropic-RateLimit-Requests-Limit"] == listed["X-RateLimit-Limit"] == "60"
    await spender.fresh_window()
    wrong = await spender.ask(b"[]", SDK)
    assert (wrong.code, wrong.headers["Anthropic-RateLimit-Requests-Remaining"]) == (400, "19")


def test_a_time_is_written_as_the_api_writes_it() -> None:
    assert [duration(ms) for ms in (0, 12, 999, 1000, 7250, 59_999, 60_000, 360_000)] == [
        *("0ms", "12ms", "999ms", "1s", "7.25s", "59.999s", "1m0s", "6m0s"),
    ]
