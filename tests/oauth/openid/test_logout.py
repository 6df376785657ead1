"""An app asks to sign a person out: OpenID Connect RP-Initiated Logout 1.0."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from tornado.httpclient import HTTPResponse

from store.crypto.signing_keys import Signer
from tests.oauth.openid.test_sign_in import SCOPES
from tests.support.http.driver import App, Browser, Service, fields_of, json_of
from tests.support.lists.offenders import Offenders
from tests.support.processes.engines import FakeClock
from tests.support.store.signing import DAY, later, published, signed

BACK = "https://app.example/bye"
EVIL = "https://evil.example/bye"
LOGOUT = "/oauth/logout"

WRONG: list[dict[str, str]] = [
    {"client_id": "openid-app", "post_logout_redirect_uri": EVIL},
    {"client_id": "openid-app", "post_logout_redirect_uri": BACK + "/"},
    {"client_id": "openid-app", "post_logout_redirect_uri": BACK + "?x=1"},
    {"client_id": "openid-app", "post_logout_redirect_uri": BACK.upper()},
    {"client_id": "openid-app", "post_logout_redirect_uri": "https://app.example/callback"},
    {"post_logout_redirect_uri": BACK},
    {"client_id": "other-app", "post_logout_redirect_uri": BACK},
    {"client_id": "nobody", "post_logout_redirect_uri": EVIL},
    {"client_id": "openid-app", "post_logout_redirect_uri": BACK, "state": "x" * 2001},
    {"client_id": "other-app", "id_token_hint": "HINT"},
    {"client_id": "other-app", "id_token_hint": "HINT", "post_logout_redirect_uri": EVIL},
    {"id_token_hint": "HINT", "post_logout_redirect_uri": EVIL},
    {"id_token_hint": "FLIPPED", "post_logout_redirect_uri": BACK},
    {"id_token_hint": "ACCESS", "post_logout_redirect_uri": BACK},
    {"id_token_hint": "x.y.z", "client_id": "openid-app", "post_logout_redirect_uri": BACK},
]
"""Requests that are refused. HINT is the app's ID token, FLIPPED has another signature, ACCESS is its access token."""

pytestmark = pytest.mark.gen_test


class SignedIn:
    """Ada, signed in to an app in her browser, and the app's ID token."""

    def __init__(self, service: Service, app: App, browser: Browser, tokens: dict[str, Any]) -> None:
        self.service, self.app, self.browser, self.tokens = service, app, browser, tokens
        self.hint: str = tokens["id_token"]

    @classmethod
    async def make(cls, service: Service, **fields: Any) -> SignedIn:
        facts = {"scopes": SCOPES, "post_logout_redirect_uris": (BACK,), **fields}
        app = await service.add_app("openid-app", **facts)
        browser = await service.signed_in()
        return cls(service, app, browser, await service.tokens(app, browser, scope="openid profile"))

    async def ask(self, browser: Browser | None = None, **params: str) -> HTTPResponse:
        """The app's request, as a redirect of the browser."""
        return await (browser or self.browser).get(f"{LOGOUT}?{urlencode(params)}")

    async def is_in(self, browser: Browser | None = None) -> bool:
        """Whether the browser is signed in."""
        return (await (browser or self.browser).get("/account")).code == 200


def leads_nowhere(page: HTTPResponse, code: int) -> None:
    """The answer is a page that redirects to nobody and links to nothing of the request."""
    assert page.code == code, page.body
    assert "Location" not in page.headers
    assert b"evil.example" not in page.body


@pytest.mark.openid("rp-logout 2 hint")
@pytest.mark.openid("rp-logout 2 state")
async def test_the_apps_own_session_ends_without_a_page(service: Service) -> None:
    ada = await SignedIn.make(service)
    gone = await ada.ask(id_token_hint=ada.hint, post_logout_redirect_uri=BACK, state="s&t", client_id="openid-app")
    assert gone.code == 303
    assert gone.headers["Location"] == f"{BACK}?state=s%26t"
    assert "latchkey_session" not in ada.browser.cookies
    assert not await ada.is_in()
    # The activity names the app.
    again = await service.signed_in()
    page = (await again.get("/account/security")).body.decode()
    assert re.search(r"Signed out&nbsp;·\s*<strong><bdi>Openid App", page)


async def test_a_log_out_ends_no_token_of_the_app(service: Service) -> None:
    ada = await SignedIn.make(service)
    await ada.ask(id_token_hint=ada.hint)
    assert (await ada.app.userinfo(ada.tokens["access_token"])).code == 200
    assert (await ada.app.refresh(ada.tokens["refresh_token"])).code == 200


async def test_without_an_address_a_page_says_that_the_person_is_signed_out(service: Service) -> None:
    ada = await SignedIn.make(service)
    page = await ada.ask(id_token_hint=ada.hint)
    leads_nowhere(page, 200)
    assert "You’re signed out" in page.body.decode()
    assert not await ada.is_in()


@pytest.mark.trap(48)
@pytest.mark.openid("rp-logout 2 ask")
@pytest.mark.openid("rp-logout 2 yes")
async def test_without_a_hint_the_person_decides(service: Service) -> None:
    ada = await SignedIn.make(service)
    named = {"client_id": "openid-app"}
    for params, leads in (
        ({}, LOGOUT),
        (named, f"{LOGOUT}?client_id=openid-app"),
        ({**named, "post_logout_redirect_uri": BACK}, BACK),
    ):
        browser = await service.signed_in()
        page = await ada.ask(browser, **params)
        assert page.code == 200
        assert await ada.is_in(browser)
        assert "Ada Lovelace" in page.body.decode()
        gone = await browser.submit(page, LOGOUT)
        assert gone.code == 303
        assert gone.headers["Location"] == leads
        assert not await ada.is_in(browser)


async def test_the_state_survives_the_page(service: Service) -> None:
    ada = await SignedIn.make(service)
    page = await ada.ask(client_id="openid-app", post_logout_redirect_uri=BACK, state="here & back")
    assert b"app.example" in page.body
    gone = await ada.browser.submit(page, LOGOUT)
    assert gone.headers["Location"] == f"{BACK}?state=here+%26+back"


@pytest.mark.trap(48)
@pytest.mark.openid("rp-logout 2 ask")
async def test_a_hint_of_another_session_asks_first(service: Service) -> None:
    ada = await SignedIn.make(service)
    other = await service.signed_in()
    await service.tokens(ada.app, other, scope="openid")  # the app knows this session by another sid
    page = await ada.ask(other, id_token_hint=ada.hint, post_logout_redirect_uri=BACK)
    assert page.code == 200
    assert await ada.is_in(other)
    # The decision is about this browser, and the other session stays.
    assert (await other.submit(page, LOGOUT)).headers["Location"] == BACK
    assert not await ada.is_in(other)
    assert await ada.is_in()


async def test_a_hint_of_another_person_asks_and_shows_who_is_signed_in(service: Service) -> None:
    ada = await SignedIn.make(service)
    await service.add_person("bob@example.com", "Bob")
    bob = await service.signed_in("bob@example.com")
    page = await ada.ask(bob, id_token_hint=ada.hint)
    assert "bob@example.com" in page.body.decode()
    assert "Ada" not in page.body.decode()
    assert await ada.is_in(bob)
    assert await ada.is_in()


@pytest.mark.openid("rp-logout 3 legitimate")
@pytest.mark.openid("rp-logout 4 idempotent")
async def test_a_browser_that_is_signed_out_is_sent_nowhere_without_a_click(service: Service) -> None:
    ada = await SignedIn.make(service)
    for params in ({"id_token_hint": ada.hint}, {"client_id": "openid-app"}):
        page = await ada.ask(service.browser(), **params, post_logout_redirect_uri=BACK, state="x")
        leads_nowhere(page, 200)
        assert f'href="{BACK}?state=x"' in page.body.decode()
    await ada.ask(id_token_hint=ada.hint)
    again = await ada.ask(id_token_hint=ada.hint, post_logout_redirect_uri=BACK)
    leads_nowhere(again, 200)


def flipped(token: str) -> str:
    """The token with another signature."""
    head, claims, signature = token.split(".")
    raw = bytearray(base64.urlsafe_b64decode(signature + "=="))
    raw[9] ^= 1
    return f"{head}.{claims}.{base64.urlsafe_b64encode(raw).decode().rstrip('=')}"


@pytest.mark.trap(48)
@pytest.mark.openid("rp-logout 2 client_id")
@pytest.mark.openid("rp-logout 3 exact")
@pytest.mark.openid("rp-logout 4 aborted")
@pytest.mark.openid("rp-logout 4 redirect")
async def test_what_is_wrong_with_a_request_is_a_page_and_ends_nothing(service: Service) -> None:
    ada = await SignedIn.make(service)
    await service.add_app("other-app", scopes=SCOPES, post_logout_redirect_uris=(EVIL,))
    hints = {"HINT": ada.hint, "FLIPPED": flipped(ada.hint), "ACCESS": ada.tokens["access_token"]}
    form, wrong = fields_of(await ada.ask(), LOGOUT), Offenders()
    for params in WRONG:
        given = {name: hints.get(value, value) for name, value in params.items()}
        with wrong.of(str(params)):
            leads_nowhere(await ada.ask(**given), 400)
            leads_nowhere(await ada.browser.send(LOGOUT, "POST", form={**form, **given}), 400)
            assert await ada.is_in()
    wrong.check()


async def test_repeated_parameters_are_refused(service: Service) -> None:
    ada = await SignedIn.make(service)
    url = f"{LOGOUT}?client_id=openid-app&post_logout_redirect_uri={BACK}&post_logout_redirect_uri={EVIL}"
    leads_nowhere(await ada.browser.get(url), 400)


@pytest.mark.trap(45)
@pytest.mark.trap(49)
@pytest.mark.openid("rp-logout 2 issuer")
async def test_tokens_of_other_kinds_and_issuers_are_no_hints(service: Service) -> None:
    ada = await SignedIn.make(service)
    signer: Signer = await service.store.signing_keys.for_signing("RS256")
    right = {"iss": service.base_url, "aud": "openid-app", "sub": service.ada, "sid": "s" * 22}
    assert (await ada.ask(id_token_hint=signer.sign(right, "JWT"))).code == 200
    wrong = [
        signer.sign(right, "at+jwt"),
        signer.sign(right, "logout+jwt"),
        signer.sign({**right, "iss": "https://other.example"}, "JWT"),
        signer.sign({**right, "aud": ["openid-app", "other-app"]}, "JWT"),
        signer.sign({**right, "sub": 5}, "JWT"),
        signer.sign({**right, "sid": None}, "JWT"),
    ]
    for hint in wrong:
        leads_nowhere(await ada.ask(id_token_hint=hint, post_logout_redirect_uri=BACK), 400)
    assert await ada.is_in()


@pytest.mark.trap(49)
async def test_a_hint_counts_after_its_end_and_after_its_key_signs_no_more(service: Service, clock: FakeClock) -> None:
    ada = await SignedIn.make(service)
    _, kid = await signed(service.store, "RS256")
    await service.store.signing_store.rotate("RS256", at_once=True)
    for _ in range(2):
        later(clock, 5 * DAY, service.store)
        assert await ada.is_in()
    assert kid not in await published(service.store, "RS256")
    assert (await ada.ask(id_token_hint=ada.hint, post_logout_redirect_uri=BACK)).headers["Location"] == BACK
    assert not await ada.is_in()


async def test_a_revoked_key_verifies_no_hint(service: Service) -> None:
    ada = await SignedIn.make(service)
    _, kid = await signed(service.store, "RS256")
    await service.store.signing_store.revoke(kid)
    service.store.signing_keys.forget()
    leads_nowhere(await ada.ask(id_token_hint=ada.hint, post_logout_redirect_uri=BACK), 400)
    assert await ada.is_in()


@pytest.mark.openid("rp-logout 2 methods")
async def test_a_posted_request_becomes_one_by_get(service: Service) -> None:
    ada = await SignedIn.make(service)
    asked = {"id_token_hint": ada.hint, "post_logout_redirect_uri": BACK, "state": "s", "ui_locales": "de"}
    # Another site's form comes without cookies and from its own origin.
    sent = await service.browser().send(LOGOUT, "POST", form=asked, headers={"Origin": "https://app.example"})
    assert sent.code == 303
    assert sent.headers["Location"].startswith("/oauth/logout?id_token_hint=")
    assert (await ada.browser.get(sent.headers["Location"])).headers["Location"] == f"{BACK}?state=s"
    assert not await ada.is_in()


async def test_no_other_site_can_post_the_decision(service: Service) -> None:
    ada = await SignedIn.make(service)
    page = await ada.ask()
    form = fields_of(page, LOGOUT)
    evil = {"Origin": "https://evil.example"}
    for answer in (
        await ada.browser.send(LOGOUT, "POST", form={"_xsrf": "wrong"}),
        await ada.browser.send(LOGOUT, "POST", form={"_xsrf": ""}),
        await ada.browser.send(LOGOUT, "POST", form=form, headers=evil),
    ):
        leads_nowhere(answer, 403)
    # Without a token it decides nothing, even with the cookie.
    assert (await ada.browser.send(LOGOUT, "POST", form={})).headers["Location"] == LOGOUT
    assert await ada.is_in()


async def test_a_request_too_long_for_an_address_is_refused(service: Service) -> None:
    answer = await service.browser().send(LOGOUT, "POST", form={"id_token_hint": "x" * 15_000})
    leads_nowhere(answer, 400)


async def test_looking_ahead_ends_nothing(service: Service) -> None:
    ada = await SignedIn.make(service)
    answer = await ada.browser.send(f"{LOGOUT}?{urlencode({'id_token_hint': ada.hint})}", "HEAD")
    assert answer.code == 200
    assert await ada.is_in()


async def test_the_page_cannot_be_framed(service: Service) -> None:
    ada = await SignedIn.make(service)
    page = await ada.ask()
    assert page.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]


@pytest.mark.openid("rp-logout 2.1 endpoint")
async def test_discovery_names_the_endpoint(service: Service) -> None:
    for name in ("openid-configuration", "oauth-authorization-server"):
        document = json_of(await service.browser().get(f"/.well-known/{name}"))
        assert document["end_session_endpoint"] == f"{service.base_url}/oauth/logout"
        assert document["backchannel_logout_supported"] is True
        assert document["backchannel_logout_session_supported"] is True
