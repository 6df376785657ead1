"""Sessions over HTTP: how they end, password changes, account pages and the audit trail."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.support.browser.signup import cookies_of, signed_in_as
from tests.support.http.driver import EMAIL, NAME, PASSWORD, Service, json_of
from tests.support.processes.engines import FakeClock

NEW_PASSWORD = "another horse battery"
DAY = 86400


@pytest.mark.gen_test
async def test_signing_in_replaces_the_earlier_session(service: Service) -> None:
    await service.add_person("bob@example.com")
    browser = await service.signed_in()
    planted = browser.cookies["latchkey_session"]
    await browser.sign_in("bob@example.com")
    assert browser.cookies["latchkey_session"] != planted
    assert await signed_in_as(browser) == "bob@example.com"
    # An earlier session, planted or stolen, is worthless.
    other = service.browser()
    other.cookies["latchkey_session"] = planted
    assert await signed_in_as(other) is None
    # A failed sign-in leaves things as they were.
    assert (await browser.sign_in("bob@example.com", "wrong password")).code == 400
    assert await signed_in_as(browser) == "bob@example.com"


@pytest.mark.gen_test
async def test_signing_out_ends_this_session_and_no_other(service: Service) -> None:
    browser, other = await service.signed_in(), await service.signed_in()
    kept = browser.cookies["latchkey_session"]
    response = await browser.submit(await browser.get("/account"), "/signout")
    assert response.code == 303
    assert "latchkey_session" not in browser.cookies
    browser.cookies["latchkey_session"] = kept
    assert await signed_in_as(browser) is None
    assert await signed_in_as(other) == EMAIL


@pytest.mark.gen_test
async def test_sessions_idle_out_and_end(service: Service, clock: FakeClock) -> None:
    browser, idle = await service.signed_in(), await service.signed_in()
    for _ in range(2):
        clock.advance(13 * DAY)
        assert await signed_in_as(browser) == EMAIL
    assert await signed_in_as(idle) is None
    clock.advance(4 * DAY + 60)
    assert await signed_in_as(browser) is None


@pytest.mark.gen_test
@pytest.mark.parametrize("keep", ["1", None])
async def test_a_session_is_kept_on_request_and_else_ends_with_the_browser_or_a_day(
    service: Service, clock: FakeClock, keep: str | None
) -> None:
    browser = service.browser()
    answers = [await browser.submit(await browser.get("/signin"), "/signin", email=EMAIL, password=PASSWORD, keep=keep)]
    page = await browser.get("/account/security")
    # A new cookie of the same session, and the session that follows a change of the password.
    answers.append(await browser.submit(page, "/account/security/confirm", password=PASSWORD))
    passwords = {"current_password": PASSWORD, "new_password": NEW_PASSWORD}
    answers.append(await browser.submit(await browser.get("/account/security"), "/account/security", **passwords))
    for answer in answers:
        assert answer.code == 303
        assert ("expires" in cookies_of(answer)["latchkey_session"]) is bool(keep)
    clock.advance(DAY - 60)
    assert await signed_in_as(browser) == EMAIL, "use does not extend it"
    clock.advance(61)
    assert await signed_in_as(browser) == (EMAIL if keep else None)


@pytest.mark.gen_test
@pytest.mark.parametrize("act", ["disable", "delete"])
async def test_sessions_of_a_disabled_or_deleted_person_are_dead(service: Service, act: str) -> None:
    browser = await service.signed_in()
    if act == "delete":
        await service.store.operator.delete(EMAIL)
        assert await signed_in_as(browser) is None
        return
    await service.store.operator.set_status(EMAIL, "disabled")
    assert await signed_in_as(browser) is None
    assert (await browser.sign_in()).code == 403
    await service.store.operator.set_status(EMAIL, "active")
    assert await signed_in_as(browser) is None  # earlier sessions stay dead
    assert (await browser.sign_in()).code == 303


@pytest.mark.gen_test
async def test_changing_the_password_ends_every_other_session(service: Service) -> None:
    browser, other = await service.signed_in(), await service.signed_in()
    before = browser.cookies["latchkey_session"]
    page = await browser.get("/account/security")
    response = await browser.submit(page, "/account/security", current_password=PASSWORD, new_password=NEW_PASSWORD)
    assert response.code == 303
    assert b"Your password was changed" in (await browser.get(response.headers["Location"])).body
    assert await signed_in_as(browser) == EMAIL
    assert await signed_in_as(other) is None
    other.cookies["latchkey_session"] = before
    assert await signed_in_as(other) is None
    assert (await service.browser().sign_in(EMAIL, PASSWORD)).code == 400
    assert (await service.browser().sign_in(EMAIL, NEW_PASSWORD)).code == 303


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("current", "new", "words"),
    [
        pytest.param("wrong password", NEW_PASSWORD, "current password is incorrect", id="the current one is wrong"),
        pytest.param("", NEW_PASSWORD, "current password is incorrect", id="the current one is missing"),
        pytest.param(PASSWORD, "short", "at least 10", id="the new one is short"),
        pytest.param(PASSWORD, EMAIL, "e-mail address", id="the new one is the address"),
        pytest.param(PASSWORD, "", "at least 10", id="the new one is missing"),
    ],
)
async def test_a_password_change_that_fails_changes_nothing(
    service: Service, current: str, new: str, words: str
) -> None:
    browser, other = await service.signed_in(), await service.signed_in()
    page = await browser.get("/account/security")
    response = await browser.submit(page, "/account/security", current_password=current, new_password=new)
    assert response.code == 400
    assert words in response.body.decode()
    assert await signed_in_as(browser) == await signed_in_as(other) == EMAIL
    assert (await service.browser().sign_in()).code == 303


@pytest.mark.gen_test
@pytest.mark.parametrize("path", ["/account", "/account/apps", "/account/security"])
async def test_account_pages_need_a_session(service: Service, path: str) -> None:
    response = await service.browser().get(path)
    assert response.code == 303
    assert response.headers["Location"] == f"/signin?next={quote(path, safe='')}"
    as_json = await service.browser().get(path, Accept="application/json")
    assert as_json.code == 401
    assert json_of(as_json)["error"] == "login_required"
    page = await (await service.signed_in()).get(path)
    assert page.code == 200
    assert NAME in page.body.decode()
    assert page.headers["Cache-Control"] == "no-store"


@pytest.mark.gen_test
async def test_the_audit_trail_shows_events_and_their_origin(service: Service) -> None:
    browser = service.browser()
    browser.agent = "Evil/1.0 <script>alert(1)</script> " + "x" * 5000
    await browser.sign_in()
    denied = await browser.get(service.web.authorize_url())
    await browser.submit(denied, "/api/oauth/authorize", decision="deny")
    tokens = await service.tokens(browser=browser)
    await service.web.refresh(tokens["refresh_token"])
    await service.web.refresh(tokens["refresh_token"])
    code = await service.code(browser=browser)
    await service.web.exchange(code)
    await service.web.exchange(code)
    given_back = await service.tokens(browser=browser)
    await service.web.revoke(given_back["refresh_token"])
    await browser.submit(await browser.get("/account/apps"), "/account/apps/web-app/revoke")
    other = await service.signed_in()
    await other.submit(await other.get("/account"), "/signout")
    page = await browser.get("/account/security")
    await browser.submit(page, "/account/security", current_password=PASSWORD, new_password=NEW_PASSWORD)
    text = (await browser.get("/account/security/activity")).body.decode()
    for words in (
        "Account created by the operator",
        "Signed in",
        "Signed out",
        "App denied",
        "App connected",
        "A token was used twice",
        "A code was used twice",
        "App ended its own access",
        "App disconnected",
        "Password changed; all other devices signed out",
    ):
        assert words in text, words
    assert "Web App" in text
    assert "127.0.0.1" in text
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "x" * 61 not in text
