"""Apps that people register themselves: what registers, what is refused, and the secret that is shown once."""

from __future__ import annotations

import html
from typing import Any

import pytest

from tests.support.browser.own_apps import URI, client_id_of, facts, own_app, register, secret_of, site
from tests.support.http.driver import App, Browser, Service, fields_of, text_of
from tests.support.lists.offenders import each

__all__ = ["facts", "site"]  # fixtures


@pytest.mark.gen_test
async def test_a_developers_new_app_works_for_people(service: Service) -> None:
    browser = await service.signed_in()
    page = await register(browser, **{"scope:data:read": "on", "homepage": "https://mine.example/"})
    assert page.code == 200
    assert page.headers["Cache-Control"] == "no-store"
    app = App(service.base_url, client_id_of(page), secret_of(page), URI)
    tokens = await service.tokens(app, scope="profile data:read")
    assert (await app.userinfo(tokens["access_token"])).code == 200
    listed = await browser.get("/developer/apps")
    assert f'href="/developer/apps/{app.client_id}"' in listed.body.decode()
    assert "1 of 20" in text_of(listed)


@pytest.mark.gen_test
async def test_the_secret_is_shown_once_and_reloading_makes_no_other(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get("/developer/register")
    form = {**fields_of(page, "/developer/register"), "name": "My App", "redirect_uris": URI}
    made = await browser.send("/developer/register", "POST", form=form)
    secret, client_id = secret_of(made), client_id_of(made)
    again = await browser.send("/developer/register", "POST", form=form)
    assert again.code == 303
    shown = await browser.get(again.headers["Location"])
    assert client_id_of(shown) == client_id
    assert "We showed its secret then" in text_of(shown)
    for other in (again, shown, await browser.get(f"/developer/apps/{client_id}")):
        assert secret not in other.body.decode()
        assert "lk_cs_" not in other.body.decode()
    assert len((await service.store.owned.list(session_of(service, browser))).apps) == 1


def session_of(service: Service, browser: Browser) -> Any:
    return service.store.sessions.open(browser.cookies["latchkey_session"])


@pytest.mark.gen_test
async def test_refused_redirect_uris_are_listed_with_line_and_reason(service: Service) -> None:
    browser = await service.signed_in()
    lines = ["https://fine.example/cb", "http://far.example/cb", "", "javascript:alert(1)", "https://a.example/#x"]
    page = await register(browser, redirect_uris="\r\n".join(lines), name="", homepage="ftp://x")
    assert page.code == 400
    text = text_of(page)
    for words in (
        "Line 2: http is for loopback",
        "Line 4: ",
        "Line 5: A redirect URI can't have a fragment",
        "A name must have 1",
    ):
        assert words in text
    assert "Line 1" not in text
    assert "https://fine.example/cb\r\nhttp://far.example/cb" in html.unescape(page.body.decode())
    assert (await service.store.owned.list(session_of(service, browser))).apps == ()


@pytest.mark.gen_test
@each(
    "fields",
    [
        pytest.param({"redirect_uris": ""}, id="no redirect URI"),
        pytest.param({"redirect_uris": "\n".join(f"https://a.example/{n}" for n in range(21))}, id="too many"),
        pytest.param({"redirect_uris": "https://a.example/" + "x" * 3000}, id="an endless one"),
        pytest.param({"redirect_uris": "com.example.app:/cb"}, id="a custom scheme with a secret"),
        pytest.param({"redirect_uris": "\n" * 3200 + "javascript:x"}, id="one that may not be, far down"),
        pytest.param(
            {"redirect_uris": "\n".join(["https://a.example/"] * 1600 + ["javascript:x"])},
            id="one address 1,600 times, and a bad one",
        ),
        pytest.param({"refresh_retry_seconds": "0" * 9 + "59"}, id="a refresh whose end would be cut off"),
        pytest.param({"name": "\u202eppA"}, id="a name that turns writing around"),
        pytest.param({"name": "x" * 101}, id="an endless name"),
        pytest.param({"name": "Latchkey Support"}, id="the product's name"),
        pytest.param({"name": "P\u0430yments"}, id="a name that mixes scripts"),
        pytest.param({"homepage": "javascript:alert(1)"}, id="a script for a home page"),
        pytest.param({"kind": "odd"}, id="an unknown kind"),
        pytest.param({"hosted_storage": "on"}, id="documents, and no scope for them"),
        pytest.param({"refresh_retry_seconds": "61"}, id="a refresh for too long"),
        pytest.param({"refresh_retry_seconds": "-1"}, id="a refresh in the past"),
        pytest.param({"refresh_retry_seconds": "\u0663"}, id="a number in other digits"),
        pytest.param({"nonce": "short"}, id="a form that is not ours"),
        pytest.param({"nonce": "x" * 65}, id="an endless nonce"),
    ],
)
async def test_forbidden_registrations_are_refused(service: Service, fields: dict[str, str]) -> None:
    browser = await service.signed_in()
    page = await register(browser, **fields)
    assert page.code == 400
    assert b"lk_cs_" not in page.body
    assert (await service.store.owned.list(session_of(service, browser))).apps == ()


@pytest.mark.gen_test
async def test_an_app_keeps_an_old_misleading_name_but_gets_no_new_one(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    await service.store.apps.update(app.client_id, name="Latchkey Diary")
    where = f"/developer/apps/{app.client_id}"
    form = {**fields_of(await browser.get(f"{where}/settings"), where), "redirect_uris": URI}
    for name, code in (("Latchkey Diary", 303), ("Latchkey Notes", 400)):
        assert (await browser.send(where, "POST", form={**form, "name": name})).code == code


@pytest.mark.gen_test
async def test_redirect_uris_are_never_truncated(service: Service) -> None:
    browser = await service.signed_in()
    typed = "https://bank.example.evil.example/cb"
    # Every place at which the text could be cut behind the first 20 characters of the address.
    for before in (2000, 2002, 20 * 2000, 20 * 2001, 20 * 2002):
        await register(browser, redirect_uris=" " * (before - 20) + typed)
    apps = (await service.store.owned.list(session_of(service, browser))).apps
    assert {app.redirect_uris for app in apps} == {(typed,)}


@pytest.mark.gen_test
async def test_a_refused_form_keeps_the_input(service: Service) -> None:
    browser = await service.signed_in()
    lines = [f"https://a.example/{number}" for number in range(1500)]
    page = await register(browser, redirect_uris="\n".join(lines), homepage="x" * 3000)
    assert "You entered 1,500 addresses; an app can have at most 20." in text_of(page)
    shown = page.body.decode()
    assert "\n".join(lines) in shown
    assert 'value="' + "x" * 3000 + '"' in shown


@pytest.mark.gen_test
@pytest.mark.trap(21)
async def test_broken_text_is_refused(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get("/developer/register")
    xsrf = fields_of(page, "/developer/register")["_xsrf"]
    for name in (b"%00", b"%ff", b"x&name=y"):
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        body = (
            b"_xsrf="
            + xsrf.encode()
            + b"&nonce=aaaaaaaaaaaaaaaaaaaa&redirect_uris=https%3A%2F%2Fa.example%2F&name="
            + name
        )
        answer = await browser.send("/developer/register", "POST", body=body, headers=headers)
        assert answer.code == 400


@pytest.mark.gen_test
async def test_a_public_app_shows_no_secret(service: Service) -> None:
    browser = await service.confirmed()
    page = await register(browser, kind="public", redirect_uris="com.example.app:/cb\nhttp://127.0.0.1/cb")
    assert page.code == 200
    assert b"lk_cs_" not in page.body
    registration, _ = await service.store.apps.fresh(client_id_of(page))
    assert registration is not None
    assert (registration.public, registration.secrets, registration.pkce_required) == (True, (), True)
    assert b"/rotate" not in page.body


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"app_registration": "operator"}])
async def test_self_registration_can_be_turned_off(service: Service) -> None:
    browser = await service.confirmed()
    assert (await browser.get("/developer/register")).code == 403
    listed = await browser.get("/developer/apps")
    assert "Only the operator of this server can register apps" in text_of(listed)
    assert b'href="/developer/register"' not in listed.body
    xsrf = fields_of(listed, "/signout")["_xsrf"]
    form = {"_xsrf": xsrf, "nonce": "a" * 20, "name": "X", "redirect_uris": URI, "scope:profile": "on"}
    assert (await browser.send("/developer/register", "POST", form=form)).code == 403


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"apps_per_person": 2}])
async def test_the_setting_limits_a_persons_apps(service: Service) -> None:
    browser = await service.confirmed()
    for _ in range(2):
        assert (await register(browser)).code == 200
    assert (await register(browser)).code == 403
    assert "A person can have " in text_of(await browser.get("/developer/apps"))
