"""The API for credits, other connected apps and models. SPEC 2.4."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from handlers.core.site import Site
from store import keys
from tests.support.http.driver import Service, json_of, send
from tests.support.http.upstream import VENDOR_MODEL, Plan, ScriptedUpstream, failing
from tests.support.processes.engines import FakeClock
from tests.support.store.ai_spender import MODEL, PLENTY, PRICE, Spender, assert_error, mint, question, session_of
from tests.support.store.second_factors import shown
from tests.support.store.world import VISITOR

pytestmark = pytest.mark.gen_test(timeout=20)

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SDK = "/ai/v1/models"


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


@pytest.mark.spec("2.4.credits-read")
@pytest.mark.spec("8.2")
async def test_the_balance_endpoint(service: Service) -> None:
    spender = await Spender.make(service, "credits:read", amount=0)
    answer = await spender.get("/credits/balance")
    empty = {"spendable": 0, "held": 0, "paid": 0, "currency": "USD", "scale": 6, "appLimit": None}
    assert (answer.code, json_of(answer)) == (200, empty)
    assert answer.headers["X-RateLimit-Limit"] == "300"
    assert answer.headers["X-RateLimit-Remaining"] == "299"
    await service.store.credits.grant(spender.user, 10**12)
    answer = await spender.get("/credits/balance")
    assert b'"paid":1000000000000,' in answer.body, "no float, no exponent"
    assert json_of(answer)["spendable"] == 10**12


@pytest.mark.spec("2.4.credits-read")
async def test_the_balance_reports_the_apps_limit(clock: FakeClock, service: Service) -> None:
    spender = await Spender.make(service)
    session = await session_of(service)
    await shown(service.store, session)
    await service.store.credits.set_spend_limit(session, spender.app.client_id, 5_000, VISITOR)
    limit = json_of(await spender.get("/credits/balance"))["appLimit"]
    assert set(limit) == {"limit", "period", "used", "resetsAt"}
    assert (limit["limit"], limit["period"], limit["used"]) == (5_000, "month", 0)
    resets = datetime.fromisoformat(limit["resetsAt"])
    now = datetime.fromtimestamp(clock.time(), UTC)
    assert (resets.day, resets.hour, resets.minute, resets.microsecond) == (1, 0, 0, 0)
    assert resets.month == now.month % 12 + 1
    assert TIME.fullmatch(limit["resetsAt"])


@pytest.mark.spec("2.4.apps-read")
async def test_the_other_apps_are_listed(clock: FakeClock, service: Service) -> None:
    clock.stop()
    reader = await Spender.make(service, "apps:read", amount=0)
    answer = await reader.get("/apps")
    assert (answer.code, json_of(answer)) == (200, {"apps": []})
    assert answer.headers["X-RateLimit-Limit"] == "300"

    plain = await service.add_app("plain-app")
    shop = await service.add_app("shop-app", name="The Shop", homepage="https://shop.example/")
    clock.advance(10)
    await mint(service, plain, "profile")
    clock.advance(10)
    token = await mint(service, shop, "credits:spend", "profile")
    first = json_of(await reader.get("/apps"))["apps"]
    assert [app["client_id"] for app in first] == ["shop-app", "plain-app"], "the newest first"
    connected = first[0].pop("connectedAt")
    assert first[0] == {
        "client_id": "shop-app",
        "name": "The Shop",
        "homepage": "https://shop.example/",
        "scopes": ["profile", "credits:spend"],
        "lastUsedAt": first[0]["lastUsedAt"],
    }
    assert TIME.fullmatch(connected)
    clock.advance(1800)
    await replace(reader, token=token).get("/ai/models")
    used = json_of(await reader.get("/apps"))["apps"]
    assert used[0]["connectedAt"] == connected
    at = datetime.fromisoformat(used[0]["lastUsedAt"])
    assert at.timestamp() == pytest.approx(clock.time(), abs=1)

    await service.store.grants.revoke(await session_of(service), "shop-app", VISITOR)
    assert [app["client_id"] for app in json_of(await reader.get("/apps"))["apps"]] == ["plain-app"]
    await service.store.apps.delete("plain-app")
    assert json_of(await reader.get("/apps"))["apps"] == []


@pytest.mark.spec("5.4")
async def test_each_endpoint_needs_its_scope_and_a_live_token(service: Service, upstream: ScriptedUpstream) -> None:
    for path, scope in (("/credits/balance", "credits:read"), ("/apps", "apps:read"), ("/ai/models", "credits:spend")):
        others = tuple({"profile", "credits:read", "credits:spend", "apps:read", "data:read"} - {scope})
        spender = await Spender.make(service, *others, amount=0)
        refused = await spender.get(path)
        assert_error(refused, 403, "insufficient_scope")
        assert f'scope="{scope}"' in refused.headers["WWW-Authenticate"]
        spender.token = await mint(service, spender.app, scope)
        for method in ("GET", "HEAD"):
            url = f"{service.base_url}/api/v1{path}"
            answer = await send(url, method, headers={"Authorization": f"Bearer {spender.token}"})
            assert answer.code == 200
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            assert answer.headers["Cache-Control"] == "no-store"
        posted = await send(url, "POST", body="{}", headers={"Authorization": f"Bearer {spender.token}"})
        assert_error(posted, 405, "method_not_allowed")
        await service.store.client.delete(keys.limit(spender.user, "ai-models", spender.app.client_id))
        await service.store.grants.revoke(await session_of(service), spender.app.client_id, VISITOR)
        assert_error(await spender.get(path), 401, "invalid_token")


async def test_the_models_are_listed_with_prices(service: Service) -> None:
    spender = await Spender.make(service)
    answer = await spender.get("/ai/models")
    assert json_of(answer) == {
        "models": [
            {
                "id": MODEL,
                "displayName": "Scripted",
                "maxInputTokens": 200_000,
                "maxOutputTokens": 4096,
                "pricePerMillionTokens": {
                    "version": PRICE.version,
                    "input": PRICE.input,
                    "output": PRICE.output,
                    **dict.fromkeys(("cacheRead", "cacheWrite", "cacheWrite1h"), PRICE.input),
                    "currency": "USD",
                    "scale": 6,
                },
            }
        ]
    }
    assert answer.headers["X-RateLimit-Limit"] == "60"
    assert VENDOR_MODEL not in answer.body.decode()


async def test_the_sdks_can_list_the_models(service: Service) -> None:
    spender = await Spender.make(service)
    model: dict[str, Any] = {
        "type": "model",
        "id": MODEL,
        "display_name": "Scripted",
        "created_at": "2026-01-01T00:00:00.000Z",
    }
    model |= {"object": "model", "owned_by": "latchkey", "created": 1_767_225_600}
    model |= dict.fromkeys(("input", "cacheRead", "cacheWrite", "cacheWrite1h"), PRICE.input)
    model["output"] = PRICE.output
    page = {"object": "list", "data": [model], "first_id": MODEL, "last_id": MODEL, "has_more": False}
    for query in ("", "?limit=1", "?after_id=x&beta=true"):
        assert json_of(await spender.get(SDK + query)) == page
    assert json_of(await spender.get(f"{SDK}/{MODEL}")) == model
    for name in ("nothing", VENDOR_MODEL, "%00", "a%2Fb", "x" * 4000):
        missing = await spender.get(f"{SDK}/{name}")
        assert missing.code == 404
        assert missing.headers["Content-Type"] == "application/json"
    broken = await spender.get(f"{SDK}/%ff")
    assert broken.code == 400
    assert json_of(broken)["error"]["type"] == "invalid_request_error"


async def test_tokens_are_counted(service: Service, site: Site, upstream: ScriptedUpstream) -> None:
    spender = await Spender.make(service)
    path = "/api/v1/ai/v1/messages/count_tokens"
    request = question(max_tokens=None, system="Be brief.", tools=[{"name": "t"}])
    counted = await spender.ask(request, path)
    assert json_of(counted) == {"input_tokens": 7}
    assert counted.headers["X-RateLimit-Limit"] == "60"
    assert upstream.calls[0].request.path == "/v1/messages/count_tokens"
    assert upstream.calls[0].question == {**request, "model": VENDOR_MODEL}
    for plan, status, kind in (
        (failing(529, "overloaded_error"), 529, "overloaded_error"),
        (failing(400, "invalid_request_error"), 400, "invalid_request_error"),
        (Plan(body=b'{"input_tokens": "7"}'), 502, "api_error"),
        (Plan(body=b'{"input_tokens": -7}'), 502, "api_error"),
        (Plan(body=b"[]"), 502, "api_error"),
    ):
        upstream.plan = plan
        failed = await spender.ask(request, path)
        assert (failed.code, json_of(failed)["error"]["type"]) == (status, kind)
        assert failed.headers["X-RateLimit-Limit"] == "60"
    assert await spender.charged() == []
    assert (await spender.account()).paid == PLENTY


async def test_browsers_of_any_origin_may_call_without_credentials(service: Service) -> None:
    for path in ("/ai/messages", "/ai/v1/messages", "/ai/v1/messages/count_tokens", "/ai/models", "/apps"):
        answer = await send(f"{service.base_url}/api/v1{path}", "OPTIONS", headers={"Origin": "https://app.example"})
        assert answer.code == 204
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers
        allowed = answer.headers["Access-Control-Allow-Headers"].lower()
        assert {"authorization", "content-type", "idempotency-key"} <= set(allowed.split(", "))
        assert ("anthropic-version" in allowed) == path.startswith("/ai/")
