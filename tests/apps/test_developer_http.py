"""The developer portal over HTTP: as the owner, as somebody else, signed out, and with hostile input."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from store.wiring import Store
from tests.support.http.driver import App, Browser, Service, fields_of, json_of, send
from tests.support.lists.offenders import each

URI = "https://mine.example/callback"


@pytest.fixture
def facts() -> dict[str, Any]:
    """What a test wants the server to be; parametrised where it matters."""
    return {}


@pytest.fixture
def site(memory_store: Store, base_url: str, facts: dict[str, Any]) -> Site:
    return Site(memory_store, base_url, **facts)


async def register(browser: Browser, **fields: str) -> HTTPResponse:
    """Through the page."""
    page = await browser.get("/developer/register")
    assert page.code == 200
    filled = {"name": "My App", "redirect_uris": URI, "kind": "confidential", **fields}
    return await browser.submit(page, "/developer/register", **filled)


def text_of(page: HTTPResponse) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.body.decode())).split())


def client_id_of(page: HTTPResponse) -> str:
    found = re.search(r"<dt>Client id</dt><dd><code>(\w+)</code>", page.body.decode())
    assert found, text_of(page)
    return found[1]


def secret_of(page: HTTPResponse) -> str:
    found = re.search(r'aria-labelledby="secret">(lk_cs_[\w-]{43})</pre>', page.body.decode())
    assert found, text_of(page)
    return found[1]


async def own_app(service: Service, browser: Browser, **fields: str) -> App:
    """A registered app, as its back end knows it."""
    page = await register(browser, **fields)
    return App(service.base_url, client_id_of(page), secret_of(page), URI)


@pytest.mark.gen_test
async def test_a_developer_registers_an_app_and_people_use_it(service: Service) -> None:
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
async def test_the_secret_stands_on_one_page_and_loading_it_anew_shows_no_other(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get("/developer/register")
    form = {**fields_of(page, "/developer/register"), "name": "My App", "redirect_uris": URI}
    made = await browser.send("/developer/register", "POST", form=form)
    secret, client_id = secret_of(made), client_id_of(made)
    again = await browser.send("/developer/register", "POST", form=form)
    assert again.code == 303
    shown = await browser.get(again.headers["Location"])
    assert client_id_of(shown) == client_id
    assert "was shown then" in text_of(shown)
    for other in (again, shown, await browser.get(f"/developer/apps/{client_id}")):
        assert secret not in other.body.decode()
        assert "lk_cs_" not in other.body.decode()
    assert len((await service.store.owned.list(session_of(service, browser))).apps) == 1


def session_of(service: Service, browser: Browser) -> Any:
    return service.store.sessions.open(browser.cookies["latchkey_session"])


@pytest.mark.gen_test
async def test_each_redirect_uri_that_is_refused_is_named_by_its_line_and_reason(service: Service) -> None:
    browser = await service.signed_in()
    lines = ["https://fine.example/cb", "http://far.example/cb", "", "javascript:alert(1)", "https://a.example/#x"]
    page = await register(browser, redirect_uris="\r\n".join(lines), name="", homepage="ftp://x")
    assert page.code == 400
    text = text_of(page)
    for words in ("Line 2: http is for loopback", "Line 4: ", "Line 5: A redirect URI has no fragment", "A name has 1"):
        assert words.replace("A name", "An app's name") in text or words in text
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
async def test_what_may_not_register_does_not(service: Service, fields: dict[str, str]) -> None:
    browser = await service.signed_in()
    page = await register(browser, **fields)
    assert page.code == 400
    assert b"lk_cs_" not in page.body
    assert (await service.store.owned.list(session_of(service, browser))).apps == ()


@pytest.mark.gen_test
async def test_an_app_keeps_a_name_of_before_and_takes_no_new_one_that_misleads(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    await service.store.apps.update(app.client_id, name="Latchkey Diary")
    where = f"/developer/apps/{app.client_id}"
    form = {**fields_of(await browser.get(where), where), "redirect_uris": URI}
    for name, code in (("Latchkey Diary", 303), ("Latchkey Notes", 400)):
        assert (await browser.send(where, "POST", form={**form, "name": name})).code == code


@pytest.mark.gen_test
async def test_no_address_registers_that_is_the_beginning_of_a_longer_one(service: Service) -> None:
    browser = await service.signed_in()
    typed = "https://bank.example.evil.example/cb"
    # Every place at which the text could be cut behind the first 20 characters of the address.
    for before in (2000, 2002, 20 * 2000, 20 * 2001, 20 * 2002):
        await register(browser, redirect_uris=" " * (before - 20) + typed)
    apps = (await service.store.owned.list(session_of(service, browser))).apps
    assert {app.redirect_uris for app in apps} == {(typed,)}


@pytest.mark.gen_test
async def test_a_refused_form_shows_all_that_was_typed(service: Service) -> None:
    browser = await service.signed_in()
    lines = [f"https://a.example/{number}" for number in range(1500)]
    page = await register(browser, redirect_uris="\n".join(lines), homepage="x" * 3000)
    assert "These are 1500 addresses; an app has at most 20." in text_of(page)
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
async def test_an_app_without_a_secret_has_none(service: Service) -> None:
    browser = await service.confirmed()
    page = await register(browser, kind="public", redirect_uris="com.example.app:/cb\nhttp://127.0.0.1/cb")
    assert page.code == 200
    assert b"lk_cs_" not in page.body
    registration, _ = await service.store.apps.fresh(client_id_of(page))
    assert registration is not None
    assert (registration.public, registration.secrets, registration.pkce_required) == (True, (), True)
    assert b"/rotate" not in page.body


@pytest.mark.gen_test
async def test_an_app_is_changed_and_it_shows_at_once(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}"
    page = await browser.get(where)
    form = fields_of(page, where)
    assert form["scope:profile"] == "on"
    new = "https://mine.example/other"
    changed = await browser.send(where, "POST", form={**form, "name": "Other", "redirect_uris": new})
    assert (changed.code, changed.headers["Location"]) == (303, f"{where}?saved")
    assert "It counts from now on" in text_of(await browser.get(f"{where}?saved"))
    assert (await browser.get(app.authorize_url(scope="profile"))).code == 400
    app.redirect_uri = new
    assert (await browser.get(app.authorize_url(scope="profile"))).code == 200
    wrong = await browser.send(where, "POST", form={**form, "name": "Third", "redirect_uris": "nonsense"})
    assert wrong.code == 400
    assert "Line 1: " in text_of(wrong)
    registration, _ = await service.store.apps.fresh(app.client_id)
    assert registration is not None
    assert registration.name == "Other"
    del form["scope:profile"]
    assert "at least one thing" in text_of(await browser.send(where, "POST", form={**form, "redirect_uris": new}))


@pytest.mark.gen_test
async def test_what_concerns_documents_refreshes_and_libraries_is_the_owners_to_set(service: Service) -> None:
    browser = await service.confirmed()
    page = await register(browser, **{"scope:data:read": "on"}, hosted_storage="on", refresh_retry_seconds=" 30 ")
    where = f"/developer/apps/{client_id_of(page)}"

    async def facts() -> tuple[bool, bool, int]:
        app, _ = await service.store.apps.fresh(client_id_of(page))
        assert app is not None
        return app.hosted_storage, app.iss_in_response, app.refresh_retry_seconds

    assert await facts() == (True, True, 30)
    shown = await browser.get(where)
    assert 'name="refresh_retry_seconds" type="text" inputmode="numeric" value="30"' in shown.body.decode()
    assert "Only the operator of this server can change what kind of app it is" in text_of(shown)
    form = {**fields_of(shown, where), "name": "Mine", "redirect_uris": URI, "refresh_retry_seconds": "30"}
    assert form["hosted_storage"] == "on"
    assert "omit_iss" not in form
    assert (await browser.send(where, "POST", form={**form, "omit_iss": "on"})).code == 303
    assert await facts() == (True, False, 30)
    assert fields_of(await browser.get(where), where)["omit_iss"] == "on"
    del form["scope:data:read"]
    wrong = await browser.send(where, "POST", form=form)
    assert (wrong.code, "storage-error" in wrong.body.decode()) == (400, True)
    del form["hosted_storage"], form["refresh_retry_seconds"]
    assert (await browser.send(where, "POST", form=form)).code == 303
    assert await facts() == (False, True, 0)


@pytest.mark.gen_test
@pytest.mark.trap(35)
async def test_two_secrets_are_valid_until_the_old_one_is_ended(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}"
    page = await browser.submit(await browser.get(where), f"{where}/rotate")
    assert page.code == 200
    newer = App(app.base_url, app.client_id, secret_of(page), URI)

    async def valid() -> list[int]:
        return [
            (await one.revoke("none", client_id=one.client_id, client_secret=one.secret or "")).code
            for one in (app, newer)
        ]

    assert await valid() == [200, 200]
    # The person reloads the page: the secret in use must stay.
    form = {"_xsrf": fields_of(page, f"{where}/end-secret")["_xsrf"]}
    again = await browser.send(f"{where}/rotate", "POST", form=form)
    assert again.code == 400
    assert b"lk_cs_" not in again.body
    assert await valid() == [200, 200]
    marks = re.findall(r'name="mark" value="(\w+)"', page.body.decode())
    ended = await browser.send(f"{where}/end-secret", "POST", form={**form, "mark": marks[1]})
    assert ended.code == 303
    assert await valid() == [401, 200]
    assert (await browser.send(f"{where}/end-secret", "POST", form={**form, "mark": marks[1]})).code == 404
    assert (await browser.send(f"{where}/end-secret", "POST", form={**form, "mark": marks[0]})).code == 400


@pytest.mark.gen_test
async def test_switched_off_its_tokens_are_refused_until_it_is_on_again(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    tokens = await service.tokens(app, browser, scope="profile")
    where = f"/developer/apps/{app.client_id}"
    assert (await browser.submit(await browser.get(where), f"{where}/status")).code == 303
    assert (await app.userinfo(tokens["access_token"])).code == 401
    assert "Switched off" in text_of(await browser.get("/developer/apps"))
    assert (await browser.submit(await browser.get(where), f"{where}/status")).code == 303
    assert (await app.userinfo(tokens["access_token"])).code == 200
    xsrf = fields_of(await browser.get(where), f"{where}/status")["_xsrf"]
    assert (await browser.send(f"{where}/status", "POST", form={"_xsrf": xsrf, "status": "disabled"})).code == 400


@pytest.mark.gen_test
async def test_apps_of_others_are_not_there_and_who_is_signed_out_is_sent_to_sign_in(service: Service) -> None:
    await service.add_person("eve@example.com")
    owner, eve = await service.signed_in(), await service.confirmed("eve@example.com")
    app = await own_app(service, owner)
    where = f"/developer/apps/{app.client_id}"
    stranger = service.browser()
    for path in ("/developer/apps", "/developer/register", where, f"{where}/try"):
        answer = await stranger.get(path)
        assert answer.code == 303
        assert answer.headers["Location"].startswith("/signin?next=%2Fdeveloper")
    xsrf = fields_of(await eve.get("/developer/register"), "/developer/register")["_xsrf"]
    other = await own_app(service, eve)
    for path in (where, f"{where}/try", f"/developer/apps/{service.web.client_id}"):
        assert (await eve.get(path)).code == 404
    form = {"_xsrf": xsrf, "name": "Mine", "redirect_uris": "https://evil.example/", "scope:profile": "on"}
    for action in ("", "/rotate", "/end-secret", "/status", "/delete", "/try"):
        extra = {"mark": "00000000", "status": "off", "confirm": "My App"}
        assert (await eve.send(where + action, "POST", form={**form, **extra})).code == 404, action
    registration, _ = await service.store.apps.fresh(app.client_id)
    assert registration is not None
    assert (registration.name, registration.redirect_uris, registration.active) == ("My App", (URI,), True)
    assert other.client_id not in text_of(await owner.get("/developer/apps"))


@pytest.mark.gen_test
@pytest.mark.trap(22)
async def test_every_form_asks_for_its_token_and_for_this_origin(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}"
    xsrf = fields_of(await browser.get(where), where)["_xsrf"]
    paths = [where, *(f"{where}/{action}" for action in ("rotate", "end-secret", "status", "delete", "try"))]
    for path in ["/developer/register", *paths]:
        form = {"mark": "x", "status": "off", "confirm": "My App", "name": "X", "redirect_uris": URI}
        assert (await browser.send(path, "POST", form=form)).code == 403
        headers = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "same-origin"}
        assert (await browser.send(path, "POST", form=form, headers=headers)).code == 403
        evil = {"Origin": "https://evil.example"}
        assert (await browser.send(path, "POST", form={**form, "_xsrf": xsrf}, headers=evil)).code == 403
    assert await service.store.apps.active(app.client_id)


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"app_registration": "operator"}])
async def test_where_the_operator_registers_apps_nobody_else_does(service: Service) -> None:
    browser = await service.confirmed()
    assert (await browser.get("/developer/register")).code == 403
    listed = await browser.get("/developer/apps")
    assert "registered by the operator" in text_of(listed)
    assert b'href="/developer/register"' not in listed.body
    xsrf = fields_of(listed, "/signout")["_xsrf"]
    form = {"_xsrf": xsrf, "nonce": "a" * 20, "name": "X", "redirect_uris": URI, "scope:profile": "on"}
    assert (await browser.send("/developer/register", "POST", form=form)).code == 403


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"apps_per_person": 2}])
async def test_a_person_has_as_many_apps_as_the_setting_says(service: Service) -> None:
    browser = await service.confirmed()
    for _ in range(2):
        assert (await register(browser)).code == 200
    assert (await register(browser)).code == 403
    assert "the most one person may have" in text_of(await browser.get("/developer/apps"))


@pytest.mark.gen_test
async def test_what_was_done_stands_in_the_activity_of_the_owner(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}"
    await browser.submit(await browser.get(where), f"{where}/status")
    text = text_of(await browser.get("/account/security"))
    assert "App registered by you · My App" in text
    assert "Your app switched off · My App" in text


@pytest.mark.gen_test
async def test_a_page_shows_the_numbers_of_its_app(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    await service.tokens(app, browser, scope="profile")
    service.store.app_stats.spent(app.client_id, 1500)
    await service.store.app_stats.flush()
    page = await browser.get(f"/developer/apps/{app.client_id}")
    text = text_of(page)
    assert "About 1 person connected" in text
    assert "Calls 1 Refused as too many 0 Spent by people $0.0015" in text
    assert "Spent by day, $0.0015 in all" in text
    assert len(re.findall(r"<rect ", page.body.decode())) == 60


@pytest.mark.gen_test
async def test_a_program_is_refused_in_json(service: Service) -> None:
    answer = await send(f"{service.base_url}/developer/apps", headers={"Accept": "application/json"})
    assert (answer.code, json_of(answer)["error"]) == (401, "login_required")


@pytest.mark.gen_test(timeout=60)
async def test_the_list_says_until_when_a_deleted_app_counts(service: Service, site: Site) -> None:
    browser = await service.signed_in()
    app = await own_app(service, browser)
    registration, _ = await service.store.apps.fresh(app.client_id)
    assert registration is not None
    await service.store.tokens.mint(service.ada, registration, ("profile",))
    await service.store.apps.begin_deletion(app.client_id)
    await service.store.apps.finish_deletion(app.client_id)
    text = text_of(await browser.get("/developer/apps"))
    assert re.search(rf"1 of 20 apps .*Deleted {app.client_id} Counts until [^:]+: until then people can", text)


@pytest.mark.gen_test(timeout=60)
async def test_a_deletion_whose_server_died_goes_on_from_the_list(service: Service, site: Site) -> None:
    await service.add_person("eve@example.com")
    browser, eve = await service.signed_in(), await service.signed_in("eve@example.com")
    app = await own_app(service, browser)
    await service.store.apps.begin_deletion(app.client_id)
    listed = await browser.get("/developer/apps")
    assert "Go on, if it takes too long" in text_of(listed)
    action = f"/developer/apps/{app.client_id}/delete"
    xsrf = fields_of(await eve.get("/developer/register"), "/developer/register")["_xsrf"]
    assert (await eve.send(action, "POST", form={"_xsrf": xsrf})).code == 404
    assert (await browser.submit(listed, action)).code == 303
    for task in list(site.tasks):
        await task
    assert "You have no app yet" in text_of(await browser.get("/developer/apps"))
    assert (await browser.submit(listed, action)).code == 404


@pytest.mark.gen_test
async def test_hostile_words_of_an_app_stay_words(service: Service) -> None:
    """What a stranger may have written stays words, on the page that shows it and in the code to begin with."""
    browser = await service.confirmed()
    name = "</pre><script>alert(1)</script>"
    uri = "https://mine.example/cb?a='&b=$(id)"
    page = await register(browser, name=name, redirect_uris=uri)
    assert page.code == 200
    assert b"<script" not in page.body
    assert name in text_of_raw(page)


def text_of_raw(page: HTTPResponse) -> str:
    return html.unescape(page.body.decode())
