"""Sign-in at an identity provider over HTTP: links, new accounts, second steps, pages."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from handlers.core.site import Site
from outbound.mail.message import plain_text
from store import keys
from tests.support.browser.mailbox import Kept
from tests.support.elsewhere import journeys
from tests.support.elsewhere.double import ProviderDouble
from tests.support.elsewhere.journeys import goes_and_comes, leaves
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service
from tests.support.store.second_factors import App
from tests.support.store.world import World

pytestmark = pytest.mark.gen_test(timeout=60)

idp, mails, options, site = journeys.idp, journeys.mails, journeys.options, journeys.site

TRUSTED: dict[str, Any] = {"by_address": True, "create": True}
trusted = pytest.mark.parametrize("options", [TRUSTED])
SECURITY = "/account/security"


async def confirmed(service: Service) -> Browser:
    """Ada, signed in, who has just entered her password again."""
    browser = await service.signed_in()
    page = await browser.get(SECURITY)
    await browser.submit(page, f"{SECURITY}/confirm", password=PASSWORD)
    return browser


async def connect_link(browser: Browser) -> str:
    page = (await browser.get(SECURITY)).body.decode()
    found = re.search(rf'href="({SECURITY}/accounts/add/idp\?key=[^"]+)"', page)
    assert found, page
    return found[1]


async def test_the_request_has_all_that_binds_the_answer(service: Service, idp: ProviderDouble) -> None:
    page = (await service.browser().get("/signin")).body.decode()
    assert "Continue with Elsewhere" in page
    sent = dict(parse_qsl(urlsplit(await leaves(service.browser())).query))
    assert sent["response_type"] == "code"
    assert sent["redirect_uri"] == f"{service.base_url}/signin/with/idp/callback"
    assert sent["code_challenge_method"] == "S256"
    assert {len(sent[name]) for name in ("state", "nonce", "code_challenge")} == {43}
    again = dict(parse_qsl(urlsplit(await leaves(service.browser())).query))
    assert all(sent[name] != again[name] for name in ("state", "nonce", "code_challenge"))


async def test_a_person_connects_an_account_and_signs_in_with_it(
    service: Service, idp: ProviderDouble, mails: Kept, site: Site
) -> None:
    stranger = await goes_and_comes(service.browser(), idp)
    assert stranger.code == 403
    assert "No account here is connected" in stranger.body.decode()
    ada = await confirmed(service)
    page = await goes_and_comes(ada, idp, await connect_link(ada))
    assert (page.code, page.headers["Location"]) == (303, f"{SECURITY}?linked")
    shown = (await ada.get(f"{SECURITY}?linked")).body.decode()
    assert "The account was connected" in shown
    assert "ada@elsewhere.example" in shown
    mail = plain_text(await mails.newest(EMAIL, "Your Elsewhere account was connected"))
    assert "/account/email/undo?link=" in mail
    elsewhere = service.browser()
    page = await goes_and_comes(elsewhere, idp, f"/signin/with/idp?next={quote('/account/apps', safe='')}")
    assert (page.code, page.headers["Location"]) == (303, "/account/apps")
    assert EMAIL in (await elsewhere.get("/account")).body.decode()
    page = await goes_and_comes(ada, idp, f"/signin/with/idp?next={quote('/oauth/authorize?prompt=login', safe='')}")
    assert page.code == 400, "a new sign-in was asked for, and the provider does not say when it was"


@trusted
@pytest.mark.parametrize("kept", [True, False])
async def test_a_person_stays_signed_in_who_asks_for_it(
    service: Service, idp: ProviderDouble, options: Any, kept: bool
) -> None:
    browser = service.browser()
    page = (await browser.get("/signin")).body.decode()
    links = [link for link in re.findall(r'href="(/signin/with/idp[^"]*)"', page) if ("keep" in link) is kept]
    done = await goes_and_comes(browser, idp, *links)
    [cookie] = [one for one in done.headers.get_list("Set-Cookie") if one.startswith("latchkey_session=")]
    assert ("max-age" in cookie.lower() or "expires" in cookie.lower()) is kept


@trusted
async def test_a_trusted_provider_makes_one_account_for_first_sign_ins_at_once(
    service: Service, idp: ProviderDouble, options: Any
) -> None:
    browsers = [service.browser() for _ in range(4)]
    backs = [idp.allows(await leaves(one)) for one in browsers]
    answers = await asyncio.gather(*(one.get(back) for one, back in zip(browsers, backs, strict=True)))
    assert [one.code for one in answers] == [303] * 4
    user = await service.store.people.find("ada@elsewhere.example")
    assert user
    found = await service.store.operator.find(user, 50)
    assert (found.name, found.email_verified) == ("Ada L", True)
    assert [one.event for one in found.activity].count("signed_up") == 1
    page = (await browsers[0].get(SECURITY)).body.decode()
    assert "ada@elsewhere.example" in page


@trusted
@pytest.mark.parametrize("why", ["unverified", "as text", "missing", "another"])
async def test_an_address_that_the_provider_did_not_verify_does_nothing(
    service: Service, idp: ProviderDouble, why: str, options: Any
) -> None:
    said: dict[str, Any] = {"unverified": False, "as text": "true", "missing": None, "another": 1}
    idp.claims = {"email": EMAIL, "email_verified": said[why]}
    page = await goes_and_comes(service.browser(), idp)
    assert page.code == 403
    idp.claims["email"] = "new@elsewhere.example"
    assert (await goes_and_comes(service.browser(), idp)).code == 403
    assert await service.store.people.find("new@elsewhere.example") is None


@trusted
async def test_an_address_that_both_verified_links_the_account(
    service: Service, idp: ProviderDouble, mails: Kept, options: Any
) -> None:
    idp.claims["email"] = EMAIL.upper()
    browser = service.browser()
    assert (await goes_and_comes(browser, idp)).code == 303
    assert EMAIL in (await browser.get("/account")).body.decode()
    assert "undo" in plain_text(await mails.newest(EMAIL, "Your Elsewhere account was connected"))
    idp.claims = {"email": "changed@elsewhere.example", "email_verified": True}
    assert (await goes_and_comes(service.browser(), idp)).code == 303, "the subject counts, not the address"
    idp.subject = "somebody else"
    idp.claims = {"email": EMAIL, "email_verified": True}
    found = service.browser()
    assert (await goes_and_comes(found, idp)).code == 303, "both are trusted"


@pytest.mark.parametrize("options", [{**TRUSTED, "domains": ("example.org",)}])
async def test_a_foreign_domain_makes_and_links_nothing(service: Service, idp: ProviderDouble, options: Any) -> None:
    for email in (EMAIL, "new@elsewhere.example", "new@example.org.evil.example"):
        idp.claims = {"email": email, "email_verified": True}
        assert (await goes_and_comes(service.browser(), idp)).code == 403, email
    idp.claims["email"] = "new@example.org"
    assert (await goes_and_comes(service.browser(), idp)).code == 303


async def test_the_second_step_here_follows(service: Service, idp: ProviderDouble) -> None:
    ada = await confirmed(service)
    await goes_and_comes(ada, idp, await connect_link(ada))
    session = service.store.sessions.open(ada.cookies["latchkey_session"])
    assert session is not None
    world = SimpleNamespace(store=service.store, user=service.ada, session=session, codes=[], undo=None)
    app = await App.add(cast(World, world))
    other = service.browser()
    page = await goes_and_comes(other, idp, "/signin/with/idp?next=%2Faccount%2Fapps")
    assert page.headers["Location"].startswith("/signin/second?next=%2Faccount%2Fapps")
    form = await other.get(page.headers["Location"])
    done = await other.submit(form, "/signin/second", code=app.codes[0])
    assert done.headers["Location"] == "/account/apps"


COUNTS = {**TRUSTED, "own_step": False, "mfa_acr": ("gold",)}


@pytest.mark.parametrize(
    ("options", "said", "method"),
    [
        (COUNTS, {"amr": ["pwd", "mfa"]}, b"up+mfa"),
        (COUNTS, {"acr": "gold"}, b"up+mfa"),
        (COUNTS, {"acr": "silver", "amr": "mfa"}, b"up"),
        (COUNTS, {}, b"up"),
        ({**COUNTS, "own_step": True}, {"amr": ["mfa"], "acr": "gold"}, b"up"),
    ],
)
async def test_a_second_step_there_counts_where_the_operator_says_so(
    service: Service, idp: ProviderDouble, options: Any, said: dict[str, Any], method: bytes
) -> None:
    idp.claims |= said
    browser = service.browser()
    assert (await goes_and_comes(browser, idp)).code == 303
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    assert await service.store.client.hget(session.keys()["session"], "method") == method


async def test_a_suspended_person_reads_why(service: Service, idp: ProviderDouble) -> None:
    ada = await confirmed(service)
    await goes_and_comes(ada, idp, await connect_link(ada))
    await service.store.operator.set_status(EMAIL, "disabled")
    page = await goes_and_comes(service.browser(), idp)
    assert page.code == 403
    assert "Your account is suspended" in page.body.decode()


@trusted
async def test_the_only_way_to_sign_in_stays(service: Service, idp: ProviderDouble, options: Any) -> None:
    browser = service.browser()
    await goes_and_comes(browser, idp)
    user = await service.store.people.find("ada@elsewhere.example")
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert user
    assert session
    await service.store.client.hset(session.keys()["session"], "proved_at", await service.store.apps.now())
    page = await browser.get(SECURITY)
    refused = await browser.submit(page, f"{SECURITY}/accounts/remove")
    assert refused.code == 400
    assert "This is your only way to sign in" in refused.body.decode()
    assert await service.store.client.hlen(keys.person(user)["identities"]) == 1


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        ("access_denied", 400, "You didn’t finish"),
        ("temporarily_unavailable", 503, "isn’t answering"),
        ("<script>", 400, "couldn’t sign you in"),
    ],
)
async def test_an_error_of_the_provider_is_a_page_with_a_way_on(
    service: Service, idp: ProviderDouble, error: str, code: int, said: str
) -> None:
    browser = service.browser()
    state = dict(parse_qsl(urlsplit(await leaves(browser)).query))["state"]
    page = await browser.get(f"/signin/with/idp/callback?error={quote(error)}&state={state}&error_description=%3Cb%3E")
    text = page.body.decode().replace("&#x27;", "’").replace("&#39;", "’").replace("'", "’")
    assert page.code == code
    assert said in text
    assert "<b>" not in text
    assert 'href="/signin/with/idp"' in text


async def test_a_provider_that_is_away_is_said_to_be(service: Service, idp: ProviderDouble) -> None:
    idp.answers["/.well-known/openid-configuration"] = (503, b"{}")
    page = await service.browser().get("/signin/with/idp")
    assert page.code == 503
    assert "answering right now" in page.body.decode()
    assert page.headers.get("Location") is None
    again = await service.browser().get("/signin/with/idp")
    assert again.code == 503
    assert idp.seen("/.well-known/openid-configuration") == 1, "not asked again at once"


@trusted
async def test_the_sign_in_page_marks_the_provider_that_was_used_last(
    service: Service, idp: ProviderDouble, options: Any
) -> None:
    browser = service.browser()

    async def marked() -> bool:
        page = await browser.get("/account")
        if page.code == 200:
            await browser.submit(page, "/signout")
        return "Last used" in (await browser.get("/signin")).body.decode()

    assert not await marked()
    await goes_and_comes(browser, idp)
    assert await marked()
    await browser.sign_in()
    assert not await marked(), "that was a password"
    await goes_and_comes(browser, idp)
    assert await marked()
    await browser.submit(await browser.get("/signin/choose"), "/signin/choose/remove")
    assert not await marked(), "who leaves the list of this browser leaves no trace"
