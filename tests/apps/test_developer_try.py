"""Trying out an app in the browser: only its owner can, and the redirect URI is nobody else's."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from tornado.httpclient import HTTPResponse

from handlers.oauth.authorize import try_page
from store.accounts.signin.sessions import Activity
from store.apps.registration import Registration
from tests.support.http.driver import CALLBACK, VERIFIER, App, Browser, Service, answer_of, challenge, fields_of

pytestmark = pytest.mark.gen_test(timeout=60)

SCOPES = ("profile", "data:read")


async def own_app(service: Service, public: bool = False) -> Registration:
    """An app of Ada's."""
    app, _ = await service.store.apps.create(
        Registration("my-app", "My App", (CALLBACK,), SCOPES, owner=service.ada, public=public)
    )
    return app


async def begin(browser: Browser) -> str:
    """Presses the button: the authorization request that the browser is sent to."""
    where = "/developer/apps/my-app/try"
    sent = await browser.submit(await browser.get(where), where)
    assert sent.code == 303
    return sent.headers["Location"]


async def walk(browser: Browser, decision: str = "allow") -> HTTPResponse:
    """The whole flow, up to the page with the steps."""
    back = await browser.consent(await begin(browser), decision)
    assert back.code == 303
    return await browser.get(back.headers["Location"])


def text_of(page: HTTPResponse) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.body.decode())).split())


@pytest.mark.parametrize("public", [False, True], ids=["confidential", "public"])
async def test_the_owner_sees_each_step_and_only_shortened_tokens(service: Service, public: bool) -> None:
    await own_app(service, public)
    browser = await service.signed_in()
    page = await walk(browser)
    assert page.code == 200
    text = text_of(page)
    for words in ("1. The response", "2. The tokens", "3. The person", "4. The end", '"scope": "profile data:read"'):
        assert words in text
    assert service.ada in text
    assert not re.findall(r"lk_(?:at|rt|ac)_[\w-]{20,}", page.body.decode())
    assert re.findall(r"lk_at_[\w-]+…", page.body.decode())
    (overview,) = re.findall(r'href="([^"]+)#code"', page.body.decode())
    assert 'id="code"' in (await browser.get(overview)).body.decode()


async def test_issued_tokens_are_revoked_after_the_page(service: Service) -> None:
    await own_app(service)
    await walk(await service.signed_in())
    store = service.store
    families = [key async for key in store.client.scan_iter("*:family:*")]
    assert families
    assert all([await store.client.hget(key, "revoked") for key in families])


async def test_reloading_the_page_presents_no_used_code(service: Service) -> None:
    await own_app(service)
    browser = await service.signed_in()
    back = (await browser.consent(await begin(browser))).headers["Location"]
    assert (await browser.get(back)).code == 200
    again = await browser.get(back)
    assert again.code == 400
    assert "This test has expired" in text_of(again)
    events = [entry.event for entry in (await store_activity(service, browser))]
    assert "code_replayed" not in events


async def store_activity(service: Service, browser: Browser) -> list[Activity]:
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    return (await service.store.sessions.activity(session))[1]


async def test_a_refusal_shows_the_apps_error(service: Service) -> None:
    await own_app(service)
    page = await walk(await service.signed_in(), "deny")
    assert page.code == 400
    assert "error=access_denied" in text_of(page)


async def test_an_answer_without_a_code_shows_the_reason(service: Service) -> None:
    await own_app(service)
    browser = await service.signed_in()
    url = await begin(browser)
    await service.store.apps.update("my-app", scopes=("profile",))
    page = await browser.get((await browser.get(url)).headers["Location"])
    assert page.code == 400
    assert "There is no code. The app did not register these scopes: data:read." in text_of(page)
    assert "Access was denied" not in text_of(page)


async def test_an_unrequested_answer_is_refused(service: Service) -> None:
    await own_app(service)
    browser = await service.signed_in()
    await begin(browser)
    cookie = browser.cookies["latchkey_try"]
    other = dict(parse_qsl(urlsplit(await begin(browser)).query))
    browser.cookies["latchkey_try"] = cookie
    for query in (
        urlencode({"code": "lk_ac_x", "state": other["state"]}),
        urlencode({"code": "lk_ac_x", "state": "é"}),
        "state=x",
    ):
        page = await browser.get(f"/developer/apps/my-app/try?{query}")
        assert page.code == 400
        assert "2. The tokens" not in text_of(page)
        browser.cookies["latchkey_try"] = cookie
    for broken in ("", "x", "my-app.a.b", f"other-app.{'a' * 43}.{'b' * 43}"):
        browser.cookies["latchkey_try"] = broken
        assert (await browser.get(f"/developer/apps/my-app/try?code=x&state={'a' * 43}")).code == 400


async def test_an_invalid_code_shows_the_apps_error(service: Service) -> None:
    await own_app(service)
    browser = await service.signed_in()
    state = dict(parse_qsl(urlsplit(await begin(browser)).query))["state"]
    page = await browser.get(f"/developer/apps/my-app/try?{urlencode({'code': 'lk_ac_invented', 'state': state})}")
    assert page.code == 400
    assert '"error": "invalid_grant"' in text_of(page)


async def test_a_disabled_app_cannot_be_tried(service: Service) -> None:
    await own_app(service)
    browser = await service.signed_in()
    where = "/developer/apps/my-app/try"
    page = await browser.get(where)
    await service.store.apps.update("my-app", status="disabled")
    assert (await browser.submit(page, where)).code == 400
    assert "Switch it on to try it" in text_of(await browser.get(where))


def request_to(page: str, client: str = "my-app") -> str:
    """An authorization request that returns to `page`."""
    app = App("", client, None, page)
    return app.authorize_url(scope="profile")


@pytest.mark.trap(13)
@pytest.mark.trap(14)
async def test_the_pages_redirect_uri_is_reserved(service: Service) -> None:
    await own_app(service)
    await service.store.apps.create(Registration("free-app", "Free", (CALLBACK,), SCOPES))
    await service.add_person("eve@example.com")
    ada, eve, nobody = await service.signed_in(), await service.signed_in("eve@example.com"), service.browser()
    page = try_page(service.base_url, "my-app")
    for browser in (eve, nobody):
        answer = await browser.get(request_to(page))
        assert answer.code == 400
        assert "Location" not in answer.headers
    # Nor for the owner with another app, an app that nobody owns, or an address that is nearly this one.
    for client, address in (
        ("web-app", try_page(service.base_url, "web-app")),
        ("web-app", page),
        ("free-app", try_page(service.base_url, "free-app")),
        ("my-app", try_page(service.base_url, "web-app")),
        ("my-app", page + "/"),
        ("my-app", page + "?x=1"),
        ("my-app", page.upper()),
        ("my-app", page.replace("/try", "/../my-app/try")),
        ("my-app", "/developer/apps/my-app/try"),
    ):
        answer = await ada.get(request_to(address, client))
        assert answer.code == 400, address
        assert "Location" not in answer.headers
    twice = f"{request_to(page)}&{urlencode({'redirect_uri': CALLBACK})}"
    assert (await ada.get(twice)).code == 400
    assert (await ada.get(request_to(page))).code == 200
    # A cookie that was forged, or whose session has ended, opens nothing.
    nobody.cookies["latchkey_session"] = "lk_ss_forged"
    assert (await nobody.get(request_to(page))).code == 400
    kept = dict(ada.cookies)
    await ada.submit(await ada.get("/account"), "/signout")
    ada.cookies = kept
    answer = await ada.get(request_to(page))
    assert answer.code == 303
    assert answer.headers["Location"].startswith("/signin?")


async def test_the_pages_code_needs_the_secret_and_the_verifier(service: Service) -> None:
    """Ada is led to allow a request that a stranger made: the code comes back to her own page, and goes no further."""
    await own_app(service)
    browser = await service.signed_in()
    page = try_page(service.base_url, "my-app")
    stranger = App(service.base_url, "my-app", "lk_cs_guessed", page)
    back = await browser.consent(stranger.authorize_url(scope="profile", code_challenge=challenge()))
    assert back.headers["Location"].startswith(page + "?")
    code = answer_of(back)["code"]
    assert "This test has expired" in text_of(await browser.get(back.headers["Location"]))
    assert (await stranger.exchange(code, code_verifier=VERIFIER)).code == 401
    assert fields_of(await browser.get("/developer/apps/my-app/try"), "/developer/apps/my-app/try")


@pytest.mark.trap(24)
async def test_no_log_contains_a_tries_codes_or_tokens(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    await own_app(service)
    browser = await service.signed_in()
    address = await begin(browser)
    _, state, verifier = browser.cookies["latchkey_try"].split(".")
    back = (await browser.consent(address)).headers["Location"]
    assert (await browser.get(back)).code == 200
    logged = "\n".join(f"{record.getMessage()} {record.exc_text}" for record in caplog.records)
    assert "/developer/apps/my-app/try" in logged
    for secret in (state, verifier, answer_of_url(back)["code"]):
        assert secret not in logged


def answer_of_url(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


async def test_a_code_of_a_device_is_shown_with_a_picture(service: Service) -> None:
    await own_app(service)
    browser, where = await service.signed_in(), "/developer/apps/my-app/try"
    assert b"What a device shows" not in (await browser.get(where)).body, "off until the owner ticks the box"
    refused = await browser.submit(await browser.get(where), where, device="1")
    assert refused.code == 400
    await service.store.apps.update("my-app", device_grant=True)
    page = await browser.submit(await browser.get(where), where, device="1")
    assert page.code == 200, page.body
    code = re.search(r'class="user-code"[^>]*>([A-Z-]{9})<', page.body.decode())
    assert code
    assert b"<svg" in page.body
    asked = await browser.submit(await browser.get("/device"), "/device", user_code=code[1])
    assert "My App" in asked.body.decode()
