"""The pages of APIs in the portal, over HTTP: as the owner, as somebody else, signed out, and with hostile input."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from handlers.developer.api_boxes import api_boxes
from outbound.mail.message import plain_text
from store.apps.api_record import ApiRegistration
from store.wiring import Store
from tests.support.browser.mailbox import Kept, mailer
from tests.support.browser.own_apps import own_app
from tests.support.browser.second_factors import Person
from tests.support.http.api_shop import BILLS, ORDERS, READ, WRITE, about, at
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of, json_of, text_of
from tests.support.lists.offenders import each

pytestmark = pytest.mark.gen_test(timeout=60)

WHERE = f"/developer/apis/{ORDERS.client_id}"
READS, WRITES = at(ORDERS, "read", "write")


@pytest.fixture
def mails() -> Kept:
    return Kept()


@pytest.fixture
def site(memory_store: Store, base_url: str, mails: Kept) -> Site:
    return Site(memory_store, base_url, mail=mailer(mails))


async def opened(service: Service) -> tuple[Browser, str]:
    """A confirmed owner's browser, and the secret of their API."""
    for api in (BILLS, replace(ORDERS, owner=service.ada)):
        if await service.store.apis.fresh(api.client_id) is None:
            await service.store.apis.create(api)
    _, secret = await service.store.apis.rotate_secret(ORDERS.client_id, drop_old=True)
    return await service.confirmed(), secret


async def fresh(service: Service) -> ApiRegistration:
    api = await service.store.apis.fresh(ORDERS.client_id)
    assert api is not None
    return api


def typed(api: ApiRegistration) -> dict[str, str]:
    """The fields that a browser sends for the unchanged form of an API, without the token."""
    form = {"name": api.name, "token_format": api.token_format, "signing_alg": api.signing_alg}
    form["token_lifetime"] = str(api.token_lifetime)
    for number, scope in enumerate(api.scopes):
        row = f"scope_{number}"
        form |= {f"{row}_name": scope.name, f"{row}_title": scope.title, f"{row}_detail": scope.detail}
        form |= {f"{row}_care": "on"} if scope.care else {}
    number = len(api.scopes)
    return {**form, **{f"scope_{number}_{part}": "" for part in ("name", "title", "detail")}}


async def change(browser: Browser, **fields: str | None) -> HTTPResponse:
    """Saves the form of the API with these fields, leaving out those that are None."""
    xsrf = fields_of(await browser.get(WHERE), WHERE)["_xsrf"]
    form = {"_xsrf": xsrf, **typed(ORDERS), **fields}
    return await browser.send(WHERE, "POST", form={name: text for name, text in form.items() if text is not None})


async def test_the_owner_sees_the_api_in_the_portal(service: Service) -> None:
    browser, _ = await opened(service)
    assert "You manage 1 API" in text_of(await browser.get("/developer/apps"))
    listed = await browser.get("/developer/apis")
    assert f'href="{WHERE}"' in listed.body.decode()
    assert "Bills" not in text_of(listed)
    page = text_of(await browser.get(WHERE))
    for words in (ORDERS.identifier, ORDERS.client_id, READ.title, WRITE.title, "No app has registered any"):
        assert words in page


async def test_what_a_page_shows_can_be_saved_unchanged(service: Service) -> None:
    browser, _ = await opened(service)
    before = await fresh(service)
    page = await browser.get(WHERE)
    shown = fields_of(page, WHERE)
    assert {name for name in shown if name.endswith("_care")} == {"scope_1_care"}
    names = set(re.findall(r'name="(scope_\d_\w+)"', page.body.decode()))
    assert {name for name in typed(ORDERS) if name.startswith("scope_")} <= names
    assert (await change(browser)).code == 303
    assert await fresh(service) == before


async def test_a_change_is_saved_noted_and_mailed(service: Service, mails: Kept) -> None:
    browser, _ = await opened(service)
    fields = {"name": "Purchases", "token_format": "jwt", "signing_alg": "RS256", "token_lifetime": " 120 "}
    fields |= {"scope_0_title": "See what you bought", "scope_1_remove": "on"}
    fields |= {"scope_2_name": "cancel", "scope_2_title": "", "scope_2_care": "on"}
    saved = await change(browser, **fields)
    assert (saved.code, saved.headers["Location"]) == (303, f"{WHERE}?saved")
    api = await fresh(service)
    assert (api.name, api.token_format, api.signing_alg, api.token_lifetime) == ("Purchases", "jwt", "RS256", 120)
    assert [(scope.name, scope.title, scope.care) for scope in api.scopes] == [
        ("read", "See what you bought", False),
        ("cancel", "cancel", True),
    ]
    assert "Purchases" in text_of(await browser.get("/account/security"))
    assert "Your API changed" in text_of(await browser.get("/account/security"))
    mail = plain_text(await mails.newest(EMAIL, "Your API Orders was changed"))
    for words in (
        "- Name: Purchases (was Orders)",
        "- Access token format: jwt (was opaque)",
        "- Scope added: cancel (cancel)",
        "- Scope removed: write",
        "- Scope changed: read (See what you bought)",
        WHERE,
    ):
        assert words in mail


@each(
    ("fields", "words"),
    [
        pytest.param({"name": ""}, "name", id="no name"),
        pytest.param({"name": "Latchkey Support"}, "name", id="the product's name"),
        pytest.param({"token_format": "odd"}, "Choose one of these", id="an unknown format"),
        pytest.param({"signing_alg": "none"}, "Choose one of these", id="no signature"),
        pytest.param({"token_lifetime": "59"}, "from 60 to 3600", id="a token that ends at once"),
        pytest.param({"token_lifetime": "3601"}, "from 60 to 3600", id="a token that lives too long"),
        pytest.param({"token_lifetime": "\u0666\u0660\u0660"}, "from 60 to 3600", id="a number in other digits"),
        pytest.param({"token_lifetime": None}, "from 60 to 3600", id="no lifetime"),
        pytest.param({"scope_2_name": "profile"}, "belongs to Latchkey or OpenID", id="a reserved scope"),
        pytest.param({"scope_2_name": "a b"}, "without spaces", id="a space in a name"),
        pytest.param({"scope_2_name": "read"}, "each scope only once", id="a scope twice"),
        pytest.param({"scope_2_title": "Only a title"}, "The name of a scope", id="a title without a name"),
        pytest.param({"scope_0_title": "x" * 101}, "The title of a scope", id="an endless title"),
        pytest.param(
            {"scope_0_detail": "a\u202eb"}, "The description (detail) of a scope", id="a detail that reorders text"
        ),
        pytest.param({"scope_0_remove": "on", "scope_1_remove": "on"}, "at least one scope", id="no scope left"),
        pytest.param({"scope_0_name": None}, "The name of a scope", id="a row without its name"),
    ],
)
async def test_a_mistake_changes_nothing_and_is_named(
    service: Service, fields: dict[str, str | None], words: str
) -> None:
    browser, _ = await opened(service)
    before = await fresh(service)
    refused = await change(browser, **fields)
    assert refused.code == 400
    assert words in text_of(refused)
    assert "Nothing was changed" in text_of(refused)
    assert await fresh(service) == before


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"scope_0_title": "x" * 101}, "scope_0-title"),
        ({"scope_0_detail": "a\u202eb"}, "scope_0-detail"),
        ({"scope_2_name": "a b"}, "scope_2-name"),
    ],
)
async def test_only_the_wrong_field_of_a_scope_is_marked(
    service: Service, fields: dict[str, str | None], wrong: str
) -> None:
    browser, _ = await opened(service)
    inputs = re.findall(r'<input id="(scope_[^"]+)"([^>]*)>', (await change(browser, **fields)).body.decode())
    for mark in ('aria-invalid="true"', "-error"):
        assert [name for name, rest in inputs if mark in rest] == [wrong]


async def test_a_scope_may_be_typed_into_any_of_the_empty_rows(service: Service) -> None:
    browser, _ = await opened(service)
    assert (await change(browser, scope_3_name="cancel", scope_3_title="Cancel orders", scope_3_detail="")).code == 303
    assert [scope.name for scope in (await fresh(service)).scopes] == ["read", "write", "cancel"]


async def test_what_was_typed_survives_the_page_that_asks_for_the_password(service: Service) -> None:
    await opened(service)
    browser = await service.signed_in()
    asked = await change(browser, name="Purchases", scope_1_remove="on")
    assert asked.code == 403
    assert "You asked to change your API" in text_of(asked)
    saved = await browser.submit(asked, WHERE, confirm_password=PASSWORD)
    assert saved.code == 303
    api = await fresh(service)
    assert (api.name, [scope.name for scope in api.scopes]) == ("Purchases", ["read"])
    assert api.scopes == (READ,)


async def test_secrets_change_without_a_break(service: Service, mails: Kept) -> None:
    browser, first = await opened(service)
    made = await browser.submit(await browser.get(WHERE), f"{WHERE}/rotate")
    found = re.search(r'aria-labelledby="secret"[^>]*>(lk_cs_[\w-]{43})</pre>', made.body.decode())
    assert found
    for secret in (first, found[1]):
        assert await about(service, "none", ORDERS.client_id, secret) == {"active": False}
    again = await browser.send(f"{WHERE}/rotate", "POST", form={"_xsrf": fields_of(made, WHERE)["_xsrf"]})
    assert again.code == 400
    assert b"lk_cs_" not in again.body
    assert b"lk_cs_" not in (await browser.get(WHERE)).body
    marks = re.findall(r'name="mark" value="(\w+)"', made.body.decode())
    form = {"_xsrf": fields_of(made, WHERE)["_xsrf"], "mark": marks[1]}
    assert (await browser.send(f"{WHERE}/end-secret", "POST", form=form)).code == 303
    assert await about(service, "none", ORDERS.client_id, found[1]) == {"active": False}
    page = text_of(await browser.get(WHERE))
    assert f"…{found[1][-4:]} Created just now" in page
    assert f"…{first[-4:]}" not in page
    with pytest.raises(AssertionError, match="invalid_client"):
        await about(service, "none", ORDERS.client_id, first)
    assert "A client secret was revoked" in plain_text(await mails.newest(EMAIL, "Your API Orders was changed"))


async def test_switched_off_it_gives_no_tokens_until_it_is_on_again(service: Service) -> None:
    browser, secret = await opened(service)
    app = await own_app(service, browser, **{f"scope:{READS}": "on"})
    asks = app.authorize_url(scope="read", resource=ORDERS.identifier)
    assert (await browser.get(asks)).code == 200
    assert (await browser.submit(await browser.get(WHERE), f"{WHERE}/status")).code == 303
    assert "Switched off" in text_of(await browser.get("/developer/apis"))
    assert "error=invalid_target" in (await browser.get(asks)).headers["Location"]
    with pytest.raises(AssertionError, match="invalid_client"):
        await about(service, "none", ORDERS.client_id, secret)
    assert (await browser.submit(await browser.get(WHERE), f"{WHERE}/status")).code == 303
    assert (await browser.get(asks)).code == 200
    xsrf = fields_of(await browser.get(WHERE), WHERE)["_xsrf"]
    assert (await browser.send(f"{WHERE}/status", "POST", form={"_xsrf": xsrf, "status": "disabled"})).code == 400


async def test_the_page_names_the_apps_that_use_it(service: Service) -> None:
    browser, _ = await opened(service)
    app = await own_app(service, browser, **{f"scope:{READS}": "on"})
    page = text_of(await browser.get(WHERE))
    assert f"My App {app.client_id} read" in page


async def test_an_owner_s_apps_may_have_all_scopes_of_the_api_and_tokens_for_themselves(service: Service) -> None:
    browser, secret = await opened(service)
    await service.add_person("eve@example.com")
    for one, whose, status in ((await service.confirmed("eve@example.com"), "eve", 400), (browser, "ada", 200)):
        boxes = {f"scope:{READS}": "on", f"scope:{WRITES}": "on"}
        app = await own_app(service, one, **boxes)
        registration, _ = await service.store.apps.fresh(app.client_id)
        assert registration is not None
        assert registration.api_scopes == ((READS, WRITES) if whose == "ada" else (READS,))
        answer = await app.token(grant_type="client_credentials", resource=ORDERS.identifier)
        assert answer.code == status, whose
        if status == 200:
            told = await about(service, json_of(answer)["access_token"], ORDERS.client_id, secret)
            assert told["scope"] == "read write"
    assert api_boxes([ORDERS])[0].boxes != api_boxes([replace(ORDERS, owner="x")], owner="x")[0].boxes
    # With another owner of the API, the app's own tokens end, and people's stay.
    await service.store.apis.update(ORDERS.client_id, owner="")
    assert (await app.token(grant_type="client_credentials", resource=ORDERS.identifier)).code == 400


async def test_others_and_strangers_reach_no_page(service: Service) -> None:
    await opened(service)
    await service.add_person("eve@example.com")
    eve, stranger = await service.confirmed("eve@example.com"), service.browser()
    assert "You have no APIs" in text_of(await eve.get("/developer/apis"))
    assert "tokens of Latchkey" not in text_of(await eve.get("/developer/apps"))
    xsrf = fields_of(await eve.get("/developer/register"), "/developer/register")["_xsrf"]
    form = {"_xsrf": xsrf, **typed(ORDERS), "mark": "00000000", "status": "off", "confirm": "Orders"}
    before = await fresh(service)
    for action in ("", "/rotate", "/end-secret", "/status", "/delete", "/delete/options"):
        assert (await eve.send(WHERE + action, "POST", form=form)).code == 404, action
    for path in (WHERE, f"{WHERE}/delete", f"/developer/apis/{BILLS.client_id}", "/developer/apis/unknown"):
        assert (await eve.get(path)).code == 404, path
        assert (await stranger.get(path)).headers["Location"].startswith("/signin?next=%2Fdeveloper"), path
    assert await fresh(service) == before


@pytest.mark.trap(22)
async def test_each_form_needs_its_xsrf_token_and_the_same_origin(service: Service) -> None:
    browser, _ = await opened(service)
    before = await fresh(service)
    xsrf = fields_of(await browser.get(WHERE), WHERE)["_xsrf"]
    form = {**typed(ORDERS), "name": "Other", "mark": "00000000", "status": "off", "confirm": "Orders"}
    form["password"] = PASSWORD
    for action in ("", "/rotate", "/end-secret", "/status", "/delete", "/delete/options"):
        assert (await browser.send(WHERE + action, "POST", form=form)).code == 403, action
        elsewhere: dict[str, Any] = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        sent = await browser.send(WHERE + action, "POST", form={**form, "_xsrf": xsrf}, headers=elsewhere)
        assert sent.code == 403, action
    assert await fresh(service) == before


async def test_deletion_asks_for_name_and_password_and_is_mailed(service: Service, mails: Kept) -> None:
    browser, _ = await opened(service)
    delete = f"{WHERE}/delete"
    wrong = await browser.submit(await browser.get(delete), delete, confirm="Orders", password="wrong")
    assert (wrong.code, 'id="password-error"' in wrong.body.decode()) == (400, True)
    wrong = await browser.submit(wrong, delete, confirm="Bills", password=PASSWORD)
    assert "That’s not its name" in text_of(wrong)
    old = browser.cookies["latchkey_session"]
    done = await browser.submit(wrong, delete, confirm="orders", password=PASSWORD)
    assert (done.code, done.headers["Location"]) == (303, "/developer/apis?deleted")
    assert browser.cookies["latchkey_session"] != old
    assert "The API was deleted" in text_of(await browser.get("/developer/apis?deleted"))
    assert await service.store.apis.fresh(ORDERS.client_id) is None
    assert ORDERS.identifier in plain_text(await mails.newest(EMAIL, "Your API was deleted"))


async def test_with_a_second_step_the_password_alone_deletes_nothing(service: Service) -> None:
    await opened(service)
    ada = await Person.arrive(service)
    await ada.add_app()
    delete = f"{WHERE}/delete"
    page = await ada.browser.get(delete)
    refused = await ada.browser.submit(page, delete, confirm="Orders", password=PASSWORD, code="000000")
    assert 'id="code-error"' in refused.body.decode()
    assert await service.store.apis.fresh(ORDERS.client_id)
    done = await ada.browser.submit(page, delete, confirm="Orders", password=PASSWORD, code=await ada.code())
    assert done.code == 303
