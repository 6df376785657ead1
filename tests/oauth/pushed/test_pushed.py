"""Pushed authorization requests. RFC 9126."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from tornado.httpclient import HTTPResponse

from store import keys
from store.crypto.seal import new_id
from store.oauth import pushed
from store.refused import Refused
from store.results import Window
from tests.support.http.driver import PASSWORD, App, Browser, Service, answer_of, fields_of, json_of, send
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test(timeout=30)

PAR = "/api/oauth/par"


def parameters(app: App, **changes: str | None) -> dict[str, str]:
    """The parameters of an authorization request."""
    return dict(parse_qsl(urlsplit(app.authorize_url(**changes)).query))


async def push(app: App, **changes: str | None) -> HTTPResponse:
    """Pushes a request with the app's credentials; a change to None leaves a parameter out."""
    form: dict[str, str | None] = {**parameters(app), "client_secret": app.secret, **changes}
    kept = {name: value for name, value in form.items() if value is not None}
    return await send(f"{app.base_url}{PAR}", "POST", form=kept)


async def address(app: App, **changes: str | None) -> str:
    """The address of a pushed request."""
    response = await push(app, **changes)
    assert response.code == 201, response.body
    return at(app, json_of(response)["request_uri"])


def at(app: App, request_uri: str, **more: str) -> str:
    """The address that the browser is sent to."""
    return f"/oauth/authorize?{urlencode({'client_id': app.client_id, 'request_uri': request_uri, **more})}"


async def ends_with_a_code(browser: Browser, app: App, url: str) -> None:
    answer = answer_of(await browser.consent(url))
    assert answer["state"] == "a-state"
    assert (await app.exchange(answer["code"])).code == 200


async def is_over(browser: Browser, url: str) -> bool:
    """Whether the browser gets a page that says so, and is sent nowhere."""
    page = await browser.get(url)
    return page.code == 400 and b"Go back to the app and start again" in page.body and "Location" not in page.headers


@pytest.mark.rfc("9126 2.2 created")
@pytest.mark.rfc("9126 2.2 expires_in")
@pytest.mark.rfc("9101 5.2 URN")
async def test_a_pushed_request_leads_to_a_code(service: Service) -> None:
    for app in (service.web, service.native):
        response = await push(app)
        assert response.code == 201
        assert response.headers["Cache-Control"] == "no-store"
        body = json_of(response)
        assert body["expires_in"] == 90
        assert body["request_uri"].startswith("urn:ietf:params:oauth:request_uri:")
        assert int(response.headers["X-RateLimit-Limit"]) == (60 if app is service.native else 600)
        await ends_with_a_code(await service.signed_in(), app, at(app, body["request_uri"]))


async def test_it_waits_for_the_sign_in_in_one_browser(service: Service) -> None:
    url, browser = await address(service.web, prompt="login", login_hint="ada@example.com"), service.browser()
    to_sign_in = await browser.get(url)
    assert to_sign_in.code == 303
    page = await browser.get(to_sign_in.headers["Location"])
    assert 'value="ada@example.com"' in page.body.decode()
    back = await browser.submit(page, "/signin", email="ada@example.com", password=PASSWORD)
    assert "progress=" in back.headers["Location"], "the sign-in that the pushed request demands leaves a mark"
    assert (await browser.get(back.headers["Location"])).code == 200
    await ends_with_a_code(browser, service.web, back.headers["Location"])


async def test_another_browser_gets_nothing(service: Service) -> None:
    url, first, second = await address(service.web), await service.signed_in(), await service.signed_in()
    assert (await first.get(url)).code == 200
    assert await is_over(second, url)
    await ends_with_a_code(first, service.web, url)


async def test_a_browser_is_known_by_a_sealed_cookie_alone(service: Service) -> None:
    url, browser = await address(service.web), await service.signed_in()
    browser.cookies["latchkey_browser"] = invented = "b" * 22
    assert (await browser.get(url)).code == 200
    cookie = browser.cookies["latchkey_browser"]
    assert cookie.startswith("lk_br_")
    for wrong in (invented, cookie[:-1], cookie.replace("lk_br_", "lk_pu_"), ""):
        browser.cookies["latchkey_browser"] = wrong
        assert await is_over(browser, url)
    browser.cookies["latchkey_browser"] = cookie
    await ends_with_a_code(browser, service.web, url)


@pytest.mark.rfc("9126 2.2 random")
@pytest.mark.rfc("9126 2.2 bound")
@pytest.mark.rfc("9126 7.1 entropy")
@pytest.mark.rfc("9101 5.2.1 entropy")
@pytest.mark.rfc("9101 10.2 short")
async def test_a_forged_request_uri_costs_no_call(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    url, browser = await address(service.web), service.browser()
    mistyped = url[:-1] + ("A" if url[-1] != "A" else "B")
    forged = [mistyped, *(at(service.web, pushed.URN + text) for text in ("x" * 22, "lk_pu_", ""))]
    elsewhere = url.replace("client_id=web-app", "client_id=native-app")

    async def never(*_: object, **__: object) -> None:
        raise AssertionError("the store was asked")

    assert (await browser.get(at(service.native, "urn:x"))).code == 400
    monkeypatch.setattr(service.store.scripts, "run", never)
    for one in (*forged, elsewhere):
        assert await is_over(browser, one)


async def test_a_network_of_strangers_has_a_bound_for_each_public_app(service: Service) -> None:
    other = await service.add_app("other-native", public=True, redirect_uris=("http://127.0.0.1/cb",))
    limits = service.store.limits
    group = limits.public_clients = replace(limits.public_clients, limit=5)
    for last in range(16):
        for _ in range(group.limit):
            await limits.public_client(service.native.client_id, f"192.0.2.{last}")
    with pytest.raises(Refused):
        await limits.public_client(service.native.client_id, "192.0.2.99")
    await limits.public_client(service.native.client_id, "198.51.100.1")
    await limits.public_client(other.client_id, "192.0.2.99")


@pytest.mark.parametrize("remembered", [True, False])
async def test_looking_ahead_changes_nothing(service: Service, remembered: bool) -> None:
    """With HEAD. A GET would be the arrival of a pushed request, and write a code or a request that waits."""
    browser, client = await service.signed_in(), service.store.client
    if remembered:
        await ends_with_a_code(browser, service.web, await address(service.web))

    async def everything() -> dict[bytes, Any]:
        found = [key async for key in client.scan_iter() if b"session:" not in key]
        return {key: await client.dump(key) for key in found}

    pushed_url = await address(service.web)
    before, known = await everything(), browser.cookies.get("latchkey_browser")
    for url in (pushed_url, service.web.authorize_url(), service.web.authorize_url(scope="nonsense")):
        answer = await browser.send(url, "HEAD")
        assert (answer.code, answer.headers.get("Location")) == (200, None)
    assert (await browser.send("/oauth/authorize?client_id=nobody", "HEAD")).code == 400
    assert await everything() == before
    assert browser.cookies.get("latchkey_browser") == known
    await ends_with_a_code(await service.signed_in(), service.web, pushed_url)


@pytest.mark.rfc("9126 4 once")
@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_an_answer_ends_it(service: Service, decision: str) -> None:
    url, browser = await address(service.web, prompt="consent"), await service.signed_in()
    page, again = await browser.get(url), await browser.get(url)
    assert page.code == again.code == 200, "a reload shows the page again"
    form = fields_of(page, "/api/oauth/authorize")
    answer = await browser.send("/api/oauth/authorize", "POST", form={**form, "decision": decision})
    assert ("code" if decision == "allow" else "error") in answer_of(answer)
    assert await is_over(browser, url)
    form = fields_of(again, "/api/oauth/authorize")
    late = await browser.send("/api/oauth/authorize", "POST", form={**form, "decision": decision})
    assert late.code == 400, "nor does a page that was open before give a second answer"


async def test_remembered_consent_and_errors_end_it(service: Service) -> None:
    browser = await service.signed_in()
    await ends_with_a_code(browser, service.web, await address(service.web))
    for changes, name in (({}, "code"), ({"prompt": "none", "acr_values": "phr", "scope": "data:read"}, "error")):
        url = await address(service.web, **changes)
        assert name in answer_of(await browser.get(url))
        assert await is_over(browser, url)


@pytest.mark.rfc("9126 4 once")
@pytest.mark.rfc("9126 7.3 replay")
@pytest.mark.trap(53)
async def test_one_of_many_arrivals_at_once_gets_the_code(service: Service) -> None:
    browser = await service.signed_in()
    await ends_with_a_code(browser, service.web, await address(service.web))
    url = await address(service.web)
    assert await is_over(await service.signed_in(), at(service.web, "urn:ietf:params:oauth:request_uri:" + "x" * 22))
    answers = await asyncio.gather(*(browser.get(url) for _ in range(20)))
    assert sorted(answer.code for answer in answers) == [303] + [400] * 19


@pytest.mark.rfc("9126 2.2 bound")
@pytest.mark.trap(53)
async def test_it_is_for_its_app_alone_and_parameters_beside_it_count_for_nothing(service: Service) -> None:
    browser, other = await service.signed_in(), await service.add_app("other-app")
    url = await address(service.web)
    assert await is_over(browser, url.replace("client_id=web-app", "client_id=other-app"))
    more = {"redirect_uri": other.redirect_uri + "/x", "state": "mine", "scope": "credits:spend", "prompt": "none"}
    to_sign_in = await (new := service.browser()).get(f"{await address(service.web)}&login_hint=eve%40example.com")
    assert b"eve@example.com" not in (await new.get(to_sign_in.headers["Location"])).body
    await ends_with_a_code(browser, service.web, f"{url}&{urlencode(more)}")


@pytest.mark.rfc("9126 4 expired")
@pytest.mark.rfc("9101 10.2 short")
@pytest.mark.trap(53)
async def test_it_lasts_90_seconds_and_ten_minutes_from_the_arrival(service: Service, clock: FakeClock) -> None:
    late, url = await address(service.web), await address(service.web)
    browser = await service.signed_in()
    clock.advance(89)
    assert (await browser.get(url)).code == 200
    clock.advance(2)
    assert await is_over(browser, late)
    clock.advance(595)
    assert (await browser.get(url)).code == 200
    clock.advance(4)
    assert await is_over(browser, url)


@pytest.mark.rfc("9126 2 authentication")
@pytest.mark.rfc("9126 2.1 authenticate")
@pytest.mark.rfc("9126 2.1 request_uri")
@pytest.mark.rfc("9126 2.1 validate")
@pytest.mark.rfc("9126 2.3 error")
@pytest.mark.rfc("9126 7.2 redirect")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"redirect_uri": "https://elsewhere.example/cb"}, "invalid_request", id="redirect URI"),
        pytest.param({"scope": "nonsense"}, "invalid_scope", id="scope"),
        pytest.param({"response_type": "token"}, "unsupported_response_type", id="response type"),
        pytest.param({"response_mode": "fragment"}, "invalid_request", id="response mode"),
        pytest.param({"state": None}, "invalid_request", id="state"),
        pytest.param({"code_challenge": "short"}, "invalid_request", id="challenge"),
        pytest.param({"request_uri": f"{pushed.URN}{'x' * 22}"}, "invalid_request", id="a pushed request"),
        pytest.param({"client_secret": "w" * 43}, "invalid_client", id="secret"),
        pytest.param({"client_secret": None}, "invalid_client", id="no secret"),
        pytest.param({"login_hint": "x" * 15_000}, "invalid_request", id="length"),
    ],
)
async def test_a_wrong_request_gets_its_error_at_once(
    service: Service, changes: dict[str, str | None], error: str
) -> None:
    response = await push(service.web, **changes)
    assert json_of(response)["error"] == error
    assert response.code == (401 if error == "invalid_client" else 400)


@pytest.mark.rfc("9126 4 only")
async def test_an_app_that_must_push_is_refused_otherwise(service: Service) -> None:
    app, browser = await service.add_app("careful-app", require_pushed=True), await service.signed_in()
    refused = answer_of(await browser.get(app.authorize_url()))
    assert (refused["error"], refused["error_description"]) == (
        "invalid_request",
        "This app must push its authorization requests (PAR).",
    )
    await ends_with_a_code(browser, app, await address(app))


async def test_an_app_has_room_for_so_many(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed, "MOST_PUSHED", 3)
    browser, urls = await service.signed_in(), [await address(service.web) for _ in range(3)]
    full = await push(service.web)
    assert full.code == 429
    assert 80 <= int(full.headers["Retry-After"]) <= 90
    assert (await push(service.native)).code == 201, "another app has room of its own"
    await ends_with_a_code(browser, service.web, urls[0])
    assert (await push(service.web)).code == 201


@pytest.mark.rfc("9126 2.3 429")
async def test_strangers_of_few_networks_lock_nobody_out_of_a_public_app(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their requests make room for those of other networks, whether a browser has arrived with them or not."""
    monkeypatch.setattr(pushed, "MOST_PUSHED", 40)
    client, store = service.native.client_id, service.store
    listed = keys.pushed(client, "")["all_pushed"]

    async def strangers(number: int) -> None:
        for one in range(number):
            request_uri = await store.pushed.push(client, "scope=profile", Window(60, 59, 0), f"192.0.{one % 2}.{one}")
            await store.pushed.open(client, store.pushed.id_of(client, request_uri), new_id())

    await strangers(60)
    assert await store.client.zcard(listed) == 40
    browser, url = await service.signed_in(), await address(service.native)
    await strangers(60)
    assert (await browser.get(url)).code == 200
    await strangers(60)
    await ends_with_a_code(browser, service.native, url)
    assert await store.client.zcard(listed) == 39
    rows = [key async for key in store.client.scan_iter(match=f"{keys.pushed(client, '')['pushed']}*")]
    assert len(rows) == 40, "what made room is gone; the answered one goes in a minute"


async def test_a_public_app_has_a_window_for_each_address(service: Service) -> None:
    answers = [await push(service.native) for _ in range(61)]
    assert [answer.code for answer in answers] == [201] * 60 + [429]
    assert answers[-1].headers["X-RateLimit-Remaining"] == "0"
    assert (await push(service.web)).code == 201


@pytest.mark.rfc("9126 2 metadata")
@pytest.mark.rfc("9126 5 required")
async def test_metadata_names_the_endpoint(service: Service) -> None:
    document: dict[str, Any] = json_of(await send(f"{service.base_url}/.well-known/openid-configuration"))
    assert document["pushed_authorization_request_endpoint"] == f"{service.base_url}{PAR}"
    assert document["require_pushed_authorization_requests"] is False
