"""The device grant from the device's request to its tokens. RFC 8628."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from store.lifetimes import DEVICE_REQUEST
from store.oauth.device_requests import GRANT_TYPE
from tests.oauth.device.devices import Device, a_console, a_tv, ask, decide, let_in, type_code
from tests.support.http.driver import PASSWORD, Service, json_of
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test(timeout=30)


@pytest.mark.rfc("8628 3.1 authentication")
@pytest.mark.rfc("8628 3.2 answer")
@pytest.mark.rfc("8628 3.3 sequence")
@pytest.mark.rfc("8628 3.5 tokens")
@pytest.mark.rfc("8628 3.5 pending")
@pytest.mark.rfc("8628 5.2 entropy")
async def test_a_device_gets_tokens_once_the_person_allows_it(service: Service) -> None:
    tv = await a_tv(service)
    console = await a_console(service)
    for app in (tv, console):
        response = await ask(app)
        codes = json_of(response)
        assert response.headers["Cache-Control"] == "no-store"
        assert int(response.headers["X-RateLimit-Limit"]) == (60 if app is tv else 600)
        assert re.fullmatch("[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", codes["user_code"])
        assert codes["device_code"].startswith("lk_dc_")
        assert codes["verification_uri"] == f"{service.base_url}/device"
        assert codes["verification_uri_complete"] == f"{service.base_url}/device?user_code={codes['user_code']}"
        assert (codes["expires_in"], codes["interval"]) == (600, 5)

        device, browser = Device(app, codes), await service.signed_in()
        assert await device.hears() == "authorization_pending"
        await let_in(browser, device)
        tokens = json_of(await device.poll())
        assert tokens["scope"] == "profile data:read"
        assert tokens["token_type"] == "Bearer"
        assert (await app.userinfo(tokens["access_token"])).code == 200
        assert (await app.refresh(tokens["refresh_token"])).code == 200


async def test_the_sign_in_on_the_way_keeps_the_code(service: Service) -> None:
    tv = await a_tv(service)
    device, browser = await Device.begun(tv), service.browser()
    to_sign_in = await browser.get(device.codes["verification_uri_complete"].removeprefix(service.base_url))
    page = await browser.get(to_sign_in.headers["Location"])
    assert "to connect a device" in page.body.decode()
    back = await browser.submit(page, "/signin", email="ada@example.com", password=PASSWORD)
    asked = await browser.get(back.headers["Location"])
    assert "Does your device show this code?" in asked.body.decode()
    assert device.user_code in asked.body.decode()


@pytest.mark.rfc("8628 3.3.1 confirmed")
async def test_an_address_with_a_code_decides_and_reads_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    tv = await a_tv(service)
    device, browser = await Device.begun(tv), await service.signed_in()

    async def never(*_: object, **__: object) -> None:
        raise AssertionError("the request was looked up")

    with monkeypatch.context() as patched:
        patched.setattr(service.store.device_requests, "typed", never)
        page = await browser.get(f"/device?user_code={device.user_code}")
    assert "Tv" not in page.body.decode(), "nobody learns whether the code is alive, or whose it is"
    asked = await browser.submit(page, "/device")
    assert 'name="decision"' in asked.body.decode()
    assert await device.hears() == "authorization_pending"


@pytest.mark.rfc("8628 5.4 told")
async def test_the_page_says_what_asks_and_from_where(service: Service, clock: FakeClock) -> None:
    tv = await a_tv(service)
    response = await ask(tv, headers={"User-Agent": "CoolTV/7 <b>", "X-Forwarded-For": "203.0.113.9"})
    clock.advance(180)
    page = (await type_code(await service.signed_in(), json_of(response)["user_code"])).body.decode()
    assert json_of(response)["user_code"] in page
    assert "CoolTV/7 &lt;b&gt;" in page
    assert "3\u00a0minutes ago" in page
    assert "127.0.0.1" in page
    assert "where you are" in page
    assert "You’ll go back to" not in page


@pytest.mark.rfc("8628 3.5 denied")
async def test_a_person_who_denies_ends_it(service: Service) -> None:
    tv = await a_tv(service)
    device, browser = await Device.begun(tv), await service.signed_in()
    await let_in(browser, device, "deny")
    for _ in range(2):
        assert await device.hears() == "access_denied"
    page = await type_code(browser, device.user_code)
    assert page.code == 400
    assert "isn’t right, or it has expired" in page.body.decode()


async def test_unticked_scopes_are_not_granted_and_nothing_ticked_asks_again(service: Service) -> None:
    tv = await a_tv(service)
    device, browser = await Device.begun(tv, scope="profile data:read data:write"), await service.signed_in()
    page = await type_code(browser, device.user_code)
    again = await decide(browser, page, untick=("profile", "data:read", "data:write"))
    assert again.code == 400
    assert device.user_code in again.body.decode()
    assert await device.hears() == "authorization_pending"
    done = await decide(browser, again, tick=("data:read",))
    assert done.code == 303, done.body
    assert json_of(await device.poll())["scope"] == "data:read"


@pytest.mark.rfc("8628 3.5 slow_down")
async def test_early_polls_lengthen_the_interval(service: Service, clock: FakeClock) -> None:
    tv = await a_tv(service)
    device = await Device.begun(tv)
    assert await device.hears() == "authorization_pending"
    clock.advance(5)
    assert await device.hears() == "authorization_pending"
    clock.advance(3)
    assert await device.hears() == "slow_down"
    clock.advance(9)
    assert await device.hears() == "slow_down", "10 seconds from now on"
    clock.advance(15)
    assert await device.hears() == "authorization_pending"


async def test_who_does_not_slow_down_is_refused_by_address(service: Service) -> None:
    tv = await a_tv(service)
    device = await Device.begun(tv)
    heard = [await device.hears()]
    while heard[-1] != "rate_limited" and len(heard) < 300:  # the window slides meanwhile
        heard.append(await device.hears())
    assert heard[0] == "authorization_pending"
    assert set(heard[1:-1]) == {"slow_down"}
    assert 100 <= len(heard) < 300


@pytest.mark.rfc("8628 3.5 expired")
async def test_codes_expire(service: Service, clock: FakeClock) -> None:
    tv = await a_tv(service)
    device, browser = await Device.begun(tv), await service.signed_in()
    clock.advance(DEVICE_REQUEST / 1000 + 1)
    assert await device.hears() == "expired_token"
    assert (await type_code(browser, device.user_code)).code == 400


async def test_tokens_wait_for_a_slow_device(service: Service, clock: FakeClock) -> None:
    tv = await a_tv(service)
    device, browser = await Device.begun(tv), await service.signed_in()
    clock.advance(DEVICE_REQUEST / 1000 - 5)
    await let_in(browser, device)
    clock.advance(50)
    assert await device.hears() == ""


async def test_a_second_exchange_is_a_replay(service: Service) -> None:
    tv = await a_tv(service)
    device, browser = await Device.begun(tv), await service.signed_in()
    await let_in(browser, device)
    tokens = json_of(await device.poll())
    assert await device.hears() == "invalid_grant"
    assert (await tv.userinfo(tokens["access_token"])).code == 401


@pytest.mark.trap(64)
async def test_another_app_gets_nothing_for_a_device_code(service: Service) -> None:
    tv = await a_tv(service)
    console = await a_console(service)
    device, browser = await Device.begun(tv), await service.signed_in()
    thief = Device(console, device.codes)
    assert await thief.hears() == "invalid_grant"
    await let_in(browser, device)
    assert await thief.hears() == "invalid_grant"
    assert await device.hears() == "", "the thief ended nothing"


@pytest.mark.rfc("8628 3.2 error")
async def test_an_app_without_the_grant_gets_no_code(service: Service) -> None:
    tv = await a_tv(service)
    response = await ask(await service.add_app("plain", device_grant=False))
    assert (response.code, json_of(response)["error"]) == (400, "unauthorized_client")
    assert "X-Ratelimit-Limit" in response.headers
    device = await Device.begun(tv)
    await service.store.apps.change("tv", lambda app: replace(app, device_grant=False))
    assert await device.hears() == "unauthorized_client"
    assert (await type_code(await service.signed_in(), device.user_code)).code == 400


@pytest.mark.rfc("8628 4 metadata")
async def test_metadata_names_the_endpoint(service: Service) -> None:
    await a_tv(service)
    metadata = json_of(await service.browser().get("/.well-known/oauth-authorization-server"))
    assert metadata["device_authorization_endpoint"] == f"{service.base_url}/api/oauth/device_authorization"
    assert GRANT_TYPE in metadata["grant_types_supported"]
