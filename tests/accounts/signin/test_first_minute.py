"""The first minute: why people are asked to sign in, whose address the form has, and where they end."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from store.accounts.links import Link
from store.results import Visitor
from tests.support.browser.pages import Page
from tests.support.browser.second_factors import Person
from tests.support.http.driver import EMAIL, PASSWORD, Service
from tests.support.lists.offenders import each

pytestmark = pytest.mark.gen_test


def reason_on(body: bytes) -> str:
    """The line below the heading of a sign-in page; empty without one."""
    found = re.search(r'</h1>\s*<p class="lead">(.*?)</p>', body.decode(), re.DOTALL)
    return Page(f"<p>{found[1]}</p>").all("p")[0].text if found else ""


def email_on(body: bytes) -> str:
    """The value of the field for the address."""
    return next(field.get("value") for field in Page(body.decode()).all("input") if field.get("name") == "email")


async def signed_in_path(service: Service, target: str) -> str:
    """Where the sign-in page leads to with this target."""
    response = await service.browser().sign_in(next=target)
    return str(response.headers["Location"])


async def test_a_sign_in_without_a_target_ends_on_the_account_page(service: Service) -> None:
    assert await signed_in_path(service, "/") == "/account"
    assert await signed_in_path(service, "/account/apps") == "/account/apps"


async def test_signed_in_people_go_on_from_sign_in_and_sign_up(service: Service) -> None:
    browser = await service.signed_in()
    authorize = service.web.authorize_url()
    for path in ("/signin", "/signup"):
        for target, expected in (("", "/account"), ("/account/apps", "/account/apps"), ("//evil.test", "/account")):
            answer = await browser.get(f"{path}?next={quote(target, safe='')}")
            assert (answer.code, answer.headers["Location"]) == (303, expected)
        answer = await browser.get(f"{path}?next={quote(authorize, safe='')}")
        assert (answer.code, answer.headers["Location"]) == (303, authorize)
    await service.store.operator.set_status(EMAIL, "disabled")
    assert (await browser.get("/signin")).code == 200, "the cookie alone is no session"


@each("changes", [{"prompt": "login"}, {"max_age": "0"}, {"acr_values": "2"}, {"claims": "{}"}, {"id_token_hint": "x"}])
async def test_a_request_that_may_demand_a_sign_in_still_shows_the_page(
    service: Service, changes: dict[str, str]
) -> None:
    browser = await service.signed_in()
    target = quote(service.web.authorize_url(scope="openid profile", **changes), safe="")
    assert (await browser.get(f"/signin?next={target}")).code == 200


async def test_an_invitation_opens_for_a_person_who_is_signed_in(service: Service) -> None:
    invite = await service.store.people.invite("grace@example.com")
    browser = await service.signed_in()
    assert (await browser.get(f"/signup?invite={invite}")).code == 200
    assert (await browser.get("/signup?invite=over")).headers["Location"] == "/account"


async def test_the_page_says_for_which_app_to_sign_in(service: Service) -> None:
    app = await service.add_app("leaf", name="The <b>Daily</b> Leaf")
    for path in ("/signin", "/signup"):
        page = await service.browser().get(f"{path}?next={quote(app.authorize_url(), safe='')}")
        assert reason_on(page.body) == "to continue to The <b>Daily</b> Leaf"


@each(
    ("target", "words"),
    [
        ("/confirm?link=x", "to confirm your address"),
        ("/account/email/change?link=x", "to change your address"),
        ("/developer/apps", "to manage your apps"),
        ("/", ""),
        ("/account?to=your+bank", ""),
        ("/oauth/authorize?client_id=your+bank", ""),
        ("/oauth/authorize?client_id=web-app&redirect_uri=https%3A%2F%2Fevil.test", ""),
        ("/oauth/authorize?client_id=web-app&client_id=native-app", ""),
    ],
)
async def test_the_reason_is_never_text_of_the_link(service: Service, target: str, words: str) -> None:
    page = await service.browser().get(f"/signin?next={quote(target, safe='')}")
    assert reason_on(page.body) == words


async def test_an_app_with_a_borrowed_name_is_called_by_its_host(service: Service) -> None:
    app = await service.add_app("trap", name="Google", owner=service.ada)
    page = await service.browser().get(f"/signin?next={quote(app.authorize_url(), safe='')}")
    assert reason_on(page.body) == "to continue to app.example"


async def test_the_reason_stays_on_the_second_step_and_after_an_error(service: Service) -> None:
    target = service.web.authorize_url()
    browser = service.browser()
    page = await browser.get(f"/signin?next={quote(target, safe='')}")
    wrong = await browser.submit(page, "/signin", email=EMAIL, password="wrong password")
    assert reason_on(wrong.body) == "to continue to Web App"


async def test_a_mailed_link_fills_in_the_address(service: Service) -> None:
    grace = await service.store.people.create(
        "grace@example.com", "Grace", PASSWORD, verified=False, event="signed_up", visitor=Visitor()
    )
    link = await service.store.links.to_confirm(grace, "grace@example.com")
    assert isinstance(link, Link)
    away = await service.browser().get(f"/confirm?link={link.text}")
    page = await service.browser().get(away.headers["Location"])
    assert email_on(page.body) == "grace@example.com"
    for forged in (link.text[:-1] + "_", "x", ""):
        page = await service.browser().get(f"/signin?next={quote('/confirm?link=' + forged, safe='')}")
        assert email_on(page.body) == ""


async def test_a_reset_password_leads_to_a_sign_in_with_the_address(service: Service) -> None:
    link = await service.store.links.to_reset(service.ada, EMAIL)
    assert isinstance(link, Link)
    browser = service.browser()
    page = await browser.get(f"/reset?link={link.text}")
    done = await browser.submit(page, "/reset", new_password="another horse battery")
    (onward,) = [found.get("href") for found in Page(done.body.decode()).all("a") if "/signin?" in found.get("href")]
    assert EMAIL not in onward
    page = await browser.get(onward)
    assert email_on(page.body) == EMAIL
    answer = await browser.submit(page, "/signin", email=EMAIL, password="another horse battery")
    assert answer.headers["Location"] == "/account"


async def test_a_login_hint_fills_in_every_form(service: Service) -> None:
    target = quote(service.web.authorize_url(login_hint="grace@example.com"), safe="")
    for path in ("/signin", "/signup", "/forgot"):
        page = await service.browser().get(f"{path}?next={target}")
        assert email_on(page.body) == "grace@example.com"


OFFER = "Sign in without a password"


async def test_a_passkey_is_offered_until_the_person_hides_the_offer_for_good(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get("/account")
    assert OFFER in page.body.decode()
    done = await browser.submit(page, "/account/passkey-offer")
    assert (done.code, done.headers["Location"]) == (303, "/account?passkey-offer")
    assert OFFER not in (await browser.get("/account?passkey-offer")).body.decode()
    assert OFFER not in (await (await service.signed_in()).get("/account")).body.decode(), "kept with the person"
    await service.add_person("grace@example.com")
    grace = await service.signed_in("grace@example.com")
    assert OFFER in (await grace.get("/account")).body.decode()


async def test_a_person_with_a_passkey_gets_no_offer(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_passkey("Phone")
    assert OFFER not in (await ada.browser.get("/account")).body.decode()
