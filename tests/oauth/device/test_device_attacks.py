"""Guessed codes, two people, two answers, and what happens between the decision and the poll."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from store.crypto.keyring import KeyRing, SecretKey
from store.crypto.seal import TokenKind
from store.lifetimes import DEVICE_CLAIM, DEVICE_CODE, DEVICE_CODE_ADDRESS
from store.oauth.device_requests import GRANT_TYPE, LETTERS, device_key, shown_code, typed_code
from store.results import Visitor
from tests.oauth.device.devices import DECISION, Device, a_console, a_tv, ask, decide, let_in, type_code
from tests.support.http.driver import Browser, Service, fields_of, json_of
from tests.support.processes.engines import FakeClock
from tests.support.store.checked_store import checked, findings

pytestmark = pytest.mark.gen_test(timeout=60)
WRONG = (shown_code("".join(letters)) for letters in itertools.product(LETTERS, repeat=8))


def id_of(service: Service, device: Device) -> str:
    opened = service.store.sealer.open(TokenKind.DEVICE_CODE, device.codes["device_code"])
    assert opened
    return opened.id


@pytest.mark.trap(64)
async def test_guesses_are_limited_per_person_and_right_codes_are_free(service: Service, clock: FakeClock) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    for _ in range(DEVICE_CODE.limit + 2):
        assert (await type_code(browser, (await Device.begun(tv)).user_code)).code == 200
    for _ in range(DEVICE_CODE.limit):
        assert (await type_code(browser, next(WRONG))).code == 400
    device = await Device.begun(tv)
    assert (await type_code(browser, device.user_code)).code == 429, "a right code looks no better"
    clock.advance(DEVICE_CODE.period / 1000)
    device = await Device.begun(tv)
    assert (await type_code(browser, device.user_code)).code == 200


@pytest.mark.rfc("8628 5.1 guesses")
@pytest.mark.trap(64)
async def test_a_thousand_guesses_an_hour_find_nothing(service: Service) -> None:
    requests, heard = service.store.device_requests, []
    for n in range(1000):
        user = f"{n % 100:032x}"
        try:
            await requests.typed(user, "192.0.2.1", typed_code(next(WRONG)) or "")
        except Exception as error:
            heard.append(str(error))
    assert heard.count("invalid_grant") == DEVICE_CODE_ADDRESS.limit
    assert heard.count("rate_limited") == 1000 - DEVICE_CODE_ADDRESS.limit


async def test_guesses_of_everybody_together_are_limited(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.limits.DEVICE_CODE_ALL", replace(DEVICE_CODE, name="device-code-all", limit=5))
    requests, heard = service.store.device_requests, []
    for n in range(8):
        try:
            await requests.typed(f"{n:032x}", f"192.0.{n}.1", typed_code(next(WRONG)) or "")
        except Exception as error:
            heard.append(str(error))
    assert heard == ["invalid_grant"] * 5 + ["rate_limited"] * 3


async def test_what_is_no_code_is_no_guess(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    for text in (
        "",
        "WDJB",
        "WDJB-MJH1",
        "WDJBMJHTX",
        "AEIO-UAEI",
        "\uff37DJB-MJHT",
        "W" * 70,
        "\u0344" * 64,
    ):
        assert (await type_code(browser, text)).code == 400
    device = await Device.begun(tv)
    code = device.user_code
    for text in (code.lower(), code.replace("-", ""), f" {code} ", code.replace("-", "\u2011"), " ".join(code)):
        assert (await type_code(browser, text)).code == 200, text


async def test_requests_of_a_public_app_are_limited_from_all_addresses(service: Service) -> None:
    tv = await a_tv(service)
    service.store.device_windows.group = replace(service.store.device_windows.group, limit=3)
    heard = [(await ask(tv)).code for _ in range(5)]
    assert heard[0] == 200
    assert heard[-1] == 429


@pytest.mark.trap(64)
async def test_two_people_decide_at_once_and_one_counts(service: Service) -> None:
    tv = await a_tv(service)
    await service.add_person("bea@example.com", "Bea")
    device = await Device.begun(tv)
    browsers = [await service.signed_in(email) for email in ("ada@example.com", "bea@example.com")]
    pages = [await type_code(browser, device.user_code) for browser in browsers]
    answers = await asyncio.gather(*(decide(*one) for one in zip(browsers, pages, strict=True)))
    assert sorted(answer.code for answer in answers) == [303, 400]
    winner = [answer.code for answer in answers].index(303)
    info = json_of(await tv.userinfo(json_of(await device.poll())["access_token"]))
    assert info["email"] == ("ada@example.com", "bea@example.com")[winner]


@pytest.mark.trap(64)
async def test_a_decision_cannot_be_repeated_or_changed(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    device = await Device.begun(tv)
    page = await type_code(browser, device.user_code)
    assert (await decide(browser, page, "deny")).code == 303
    assert (await decide(browser, page)).code == 400
    assert await device.hears() == "access_denied"


async def test_a_claim_without_an_answer_is_open_again_after_a_minute(service: Service, clock: FakeClock) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    device = await Device.begun(tv)
    page = await type_code(browser, device.user_code)
    claim = await service.store.device_requests.claim(id_of(service, device))
    assert (await decide(browser, page)).code == 400
    assert await device.hears() == "authorization_pending"
    clock.advance(DEVICE_CLAIM / 1000)
    await let_in(browser, device)
    with pytest.raises(Exception, match="invalid_request"):
        await service.store.device_requests.answer(claim, service.ada, "")
    assert await device.hears() == "", "who came back late has overwritten nothing"


async def test_another_site_decides_nothing(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    device = await Device.begun(tv)
    page = await type_code(browser, device.user_code)
    form = {**fields_of(page, DECISION), "decision": "allow"}
    for action, fields in (("/device", {"user_code": device.user_code, "_xsrf": form["_xsrf"]}), (DECISION, form)):
        without = {name: value for name, value in fields.items() if name != "_xsrf"}
        assert (await browser.send(action, "POST", form=without)).code == 403
        assert (await browser.send(action, "POST", form=fields, headers={"Origin": "https://evil.example"})).code == 403
    assert await device.hears() == "authorization_pending"


async def test_a_page_of_somebody_else_decides_nothing(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    await service.add_person("bea@example.com", "Bea")
    device = await Device.begun(tv)
    stolen = fields_of(await type_code(browser, device.user_code), DECISION)["request_id"]
    other = await service.signed_in("bea@example.com")
    own = fields_of(await type_code(other, device.user_code), DECISION)
    assert (await other.send(DECISION, "POST", form={**own, "request_id": stolen, "decision": "allow"})).code == 400
    assert await device.hears() == "authorization_pending"


async def test_between_decision_and_poll_access_may_end(service: Service) -> None:
    tv = await a_tv(service)

    async def disconnected(browser: Browser) -> None:
        session = service.store.sessions.open(browser.cookies["latchkey_session"])
        assert session
        await service.store.grants.revoke(session, "tv", Visitor())

    async def suspended(_: Browser) -> None:
        await service.store.operator.set_status("ada@example.com", "disabled")

    for end in (disconnected, suspended):
        browser = await service.signed_in()
        device = await Device.begun(tv)
        await let_in(browser, device)
        await end(browser)
        assert await device.hears() == "invalid_grant"


def told_by(id_token: str) -> dict[str, Any]:
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(id_token.split(".")[1] + "=="))
    return claims


async def test_signing_out_of_the_browser_leaves_the_device_signed_in(service: Service) -> None:
    tv, browser = await a_tv(service, scopes=("openid", "profile")), await service.signed_in()
    device = await Device.begun(tv, scope="openid profile")
    await let_in(browser, device)
    await browser.submit(await browser.get("/account"), "/signout")
    tokens = json_of(await device.poll())
    claims = json_of(await tv.userinfo(tokens["access_token"]))
    assert claims["sub"] == service.ada
    told = told_by(tokens["id_token"])
    assert "sid" not in told
    assert told["sub"] == service.ada
    hint = await browser.get(f"/oauth/logout?id_token_hint={tokens['id_token']}")
    assert hint.code == 200


async def test_the_code_is_found_after_a_rotation_of_keys(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    device = await Device.begun(tv)
    ring = service.store.keys.ring
    service.store.keys.replace(KeyRing((SecretKey(9, b"9" * 32), *ring.keys)))
    try:
        await let_in(browser, device)
        assert await device.hears() == ""
    finally:
        service.store.keys.replace(ring)


async def test_an_old_device_code_opens_no_later_request_with_its_user_code(service: Service) -> None:
    tv = await a_tv(service)
    old, new = await Device.begun(tv), await Device.begun(tv)
    client: Any = service.store.client
    # Written, not renamed: in a cluster they are in different slots.
    await client.hset(device_key(id_of(service, old)), mapping=await client.hgetall(device_key(id_of(service, new))))
    assert await old.hears() == "expired_token"


async def test_nothing_of_a_code_is_in_the_store(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    device = await Device.begun(tv)
    plain = device.user_code.replace("-", "")
    await let_in(browser, device)
    client = service.store.client
    key = device_key(id_of(service, device))
    row = await client.hgetall(key)
    assert plain not in key
    assert all(plain.encode() not in value and b"lk_" not in value for value in row.values())
    assert set(row) == {b"id", b"client", b"interval", b"created_at", b"answer", b"user", b"code"}
    assert not findings(await checked(service.store))


async def test_consent_for_a_device_is_not_remembered(service: Service) -> None:
    console, browser = await a_console(service), await service.signed_in()
    await let_in(browser, await Device.begun(console, scope="profile"))
    page = await browser.get(console.authorize_url(scope="profile"))
    assert page.code == 200, "a device proves nothing about a redirect URI"
    await browser.consent(console.authorize_url(scope="profile"))
    page = await type_code(browser, (await Device.begun(console, scope="profile")).user_code)
    assert b'name="decision"' in page.body, "and a device always asks"
    assert b"Already allowed" in page.body


async def test_the_device_code_is_no_authorization_code(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    device = await Device.begun(tv)
    await let_in(browser, device)
    code = await service.store.device_requests.poll("tv", device.codes["device_code"])
    for text in (code, device.codes["device_code"]):
        for redirect_uri in ("https://tv.example/cb", GRANT_TYPE):
            response = await tv.exchange(text, redirect_uri=redirect_uri, code_verifier="v" * 43)
            assert json_of(response)["error"] == "invalid_grant"
    assert await device.hears() == ""
