"""Attacks on sign-in from elsewhere: forged answers, foreign browsers, mixed-up providers, forged ID tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest

from handlers.core.site import Site
from outbound.identity.providers import Providers
from outbound.identity.sign_in import SignInElsewhere
from store import keys
from store.crypto.seal import fingerprint
from store.wiring import Store
from tests.support.browser.mailbox import Kept, mailer
from tests.support.elsewhere import journeys
from tests.support.elsewhere.double import CLIENT_ID, ProviderDouble
from tests.support.elsewhere.journeys import goes_and_comes, leaves, provider_of
from tests.support.http.driver import PASSWORD, Browser, Service
from tests.support.http.key_app import key_for

pytestmark = pytest.mark.gen_test(timeout=60)

idp, mails = journeys.idp, journeys.mails
EMAIL = "ada@elsewhere.example"
CONNECT = "/account/security/accounts/add/idp"


@pytest.fixture
def site(memory_store: Store, base_url: str, idp: ProviderDouble, mails: Kept) -> Site:
    trusted = provider_of(idp, by_address=True, create=True)
    # A second provider whose operator is hostile, with the same endpoints.
    other = provider_of(idp, "other", issuer=f"{idp.issuer}/other", by_address=True, create=True)
    elsewhere = SignInElsewhere(loopback=True)
    return Site(
        memory_store,
        base_url,
        providers=Providers((trusted, other)),
        elsewhere=elsewhere,
        mail=mailer(mails, confirms=True),
    )


async def nobody(service: Service) -> bool:
    """Whether no account was made."""
    return await service.store.people.find(EMAIL) is None


def state_of(url: str) -> str:
    return dict(parse_qsl(urlsplit(url).query))["state"]


async def test_the_answer_of_another_browser_signs_nobody_in(service: Service, idp: ProviderDouble) -> None:
    """Login CSRF: the attacker signs in and leads the victim's browser to the callback."""
    attacker, victim = service.browser(), service.browser()
    back = idp.allows(await leaves(attacker))
    page = await victim.get(back)
    assert page.code == 403
    await leaves(victim)
    assert (await victim.get(back)).code == 403, "a request of its own changes nothing"
    assert "latchkey_session" not in victim.cookies
    assert idp.seen("/token") == 0, "the code stays unused"
    assert (await attacker.get(back)).code == 303


async def test_a_code_of_another_request_is_refused(service: Service, idp: ProviderDouble) -> None:
    """Code injection: a stolen code with the attacker's own state. The verifier does not fit."""
    attacker, victim = service.browser(), service.browser()
    stolen = dict(parse_qsl(urlsplit(idp.allows(await leaves(victim))).query))["code"]
    state = state_of(await leaves(attacker))
    page = await attacker.get(f"/signin/with/idp/callback?{urlencode({'code': stolen, 'state': state})}")
    assert page.code == 400
    assert await nobody(service)
    assert "text of a stranger" not in page.body.decode()


async def test_an_answer_counts_once(service: Service, idp: ProviderDouble) -> None:
    browser = service.browser()
    back = idp.allows(await leaves(browser))
    assert (await browser.get(back)).code == 303
    assert (await browser.get(back)).code == 403


async def test_the_answer_of_one_provider_is_refused_at_another(service: Service, idp: ProviderDouble) -> None:
    """Mix-up (RFC 9700 4.4): the callback, `iss` in the answer, and the issuer of the token."""
    browser = service.browser()
    back = idp.allows(await leaves(browser))
    assert (await browser.get(back.replace("/with/idp/", "/with/other/"))).code == 403
    idp.metadata["authorization_response_iss_parameter_supported"] = True
    fresh = SignInElsewhere(loopback=True)
    object.__setattr__(service_site(service), "elsewhere", fresh)
    for more, code in (({}, 400), ({"iss": f"{idp.issuer}/other"}, 400), ({"iss": idp.issuer}, 303)):
        page = await goes_and_comes(service.browser(), idp, **more)
        assert page.code == code, more


def service_site(service: Service) -> Site:
    return cast(Site, vars(service)["site"])


@pytest.fixture(autouse=True)
def known_site(service: Service, site: Site) -> None:
    vars(service)["site"] = site


Change = Callable[[dict[str, Any]], dict[str, Any]]
WRONG: dict[str, Change] = {
    "another issuer": lambda c: {**c, "iss": "https://evil.example"},
    "the other provider's issuer": lambda c: {**c, "iss": f"{c['iss']}/other"},
    "another audience": lambda c: {**c, "aud": "another"},
    "one audience too many": lambda c: {**c, "aud": [CLIENT_ID, "another"]},
    "another authorized party": lambda c: {**c, "azp": "another"},
    "expired": lambda c: {**c, "exp": c["iat"] - 61},
    "no end": lambda c: {n: v for n, v in c.items() if n != "exp"},
    "issued long ago": lambda c: {**c, "iat": c["iat"] - 700},
    "issued in the future": lambda c: {**c, "iat": c["iat"] + 120},
    "another nonce": lambda c: {**c, "nonce": "n" * 43},
    "no nonce": lambda c: {n: v for n, v in c.items() if n != "nonce"},
    "a number as nonce": lambda c: {**c, "nonce": 7},
    "another access token": lambda c: {**c, "at_hash": "A" * 22},
    "no subject": lambda c: {n: v for n, v in c.items() if n != "sub"},
    "a long subject": lambda c: {**c, "sub": "s" * 256},
    "a subject on two lines": lambda c: {**c, "sub": "a\nb"},
    "64 KB": lambda c: {**c, "padding": "x" * 65_536},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
async def test_a_wrong_id_token_signs_nobody_in(service: Service, idp: ProviderDouble, change: Change) -> None:
    idp.change = change
    page = await goes_and_comes(service.browser(), idp)
    assert page.code == 400
    assert await nobody(service)


async def test_clocks_may_differ_a_little(service: Service, idp: ProviderDouble) -> None:
    idp.change = lambda c: {**c, "iat": c["iat"] + 40, "exp": c["iat"] + 100}
    assert (await goes_and_comes(service.browser(), idp)).code == 303
    idp.change = lambda c: {**c, "iat": c["iat"] - 300, "exp": c["iat"] - 40}
    assert (await goes_and_comes(service.browser(), idp)).code == 303


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(claims: dict[str, Any]) -> str:
    return f"{part({'alg': 'none'})}.{part(claims)}."


def hmac_with_public_key(claims: dict[str, Any]) -> str:
    jwk = json.dumps(key_for("ES256").public.to_jwk()).encode()
    signed = f"{part({'alg': 'HS256'})}.{part(claims)}"
    digest = hmac.new(jwk, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


@pytest.mark.parametrize("sign", [unsigned, hmac_with_public_key])
async def test_an_unsigned_id_token_signs_nobody_in(
    service: Service, idp: ProviderDouble, sign: Callable[[dict[str, Any]], str]
) -> None:
    idp.sign = sign
    assert (await goes_and_comes(service.browser(), idp)).code == 400
    assert await nobody(service)


async def test_a_new_key_is_found_and_a_foreign_one_is_not(service: Service, idp: ProviderDouble) -> None:
    assert (await goes_and_comes(service.browser(), idp)).code == 303
    idp.keys, idp.published = [key_for("ES256", 1)], [key_for("ES256")]
    assert (await goes_and_comes(service.browser(), idp)).code == 400, "nobody published this key"
    idp.published = idp.keys
    service_site(service).elsewhere.age_keys(11)
    assert (await goes_and_comes(service.browser(), idp)).code == 303
    idp.keys = [key_for("ES256")]
    service_site(service).elsewhere.age_keys(301)
    assert (await goes_and_comes(service.browser(), idp)).code == 400, "the withdrawn key is dead"


@pytest.mark.parametrize(
    "target", ["//evil.example", "/\\evil.example", "https://evil.example/", "/%0d%0aSet-Cookie:x"]
)
async def test_no_sign_in_leads_to_another_site(service: Service, idp: ProviderDouble, target: str) -> None:
    page = await goes_and_comes(service.browser(), idp, f"/signin/with/idp?next={quote(target, safe='')}")
    assert page.code == 303
    place = page.headers["Location"]
    assert urlsplit(place).netloc == ""
    assert "evil" not in place
    assert "\n" not in place


async def test_a_target_that_another_put_into_the_browser_is_not_followed(
    service: Service, idp: ProviderDouble
) -> None:
    """A neighbour's site can set cookies for this host over plain http."""
    browser = service.browser()
    back = idp.allows(await leaves(browser, "/signin/with/idp?next=%2Faccount%2Fapps"))
    other = service.browser()
    await leaves(other, "/signin/with/idp?next=%2Faccount%2Fdelete")
    browser.cookies["latchkey_elsewhere-next"] = other.cookies["latchkey_elsewhere-next"]
    assert (await browser.get(back)).headers["Location"] == "/account"


async def test_a_link_on_another_site_begins_nothing(service: Service, idp: ProviderDouble) -> None:
    browser = service.browser()
    for where in ("cross-site", "same-site"):
        page = await browser.send("/signin/with/idp", headers={"Sec-Fetch-Site": where})
        assert page.headers["Location"].startswith("/signin?next=")
        assert "latchkey_elsewhere" not in browser.cookies


async def signed_in(service: Service) -> Browser:
    browser = await service.signed_in()
    page = await browser.get("/account/security")
    await browser.submit(page, "/account/security/confirm", password=PASSWORD)
    return browser


def link_of(page: bytes) -> str:
    return page.decode().partition(f'href="{CONNECT}')[2].partition('"')[0]


async def test_nobody_else_connects_an_account(service: Service, idp: ProviderDouble) -> None:
    """Link CSRF: a link without the session's key, the answer of a sign-in, and of another session's link."""
    ada = await signed_in(service)
    session = service.store.sessions.open(ada.cookies["latchkey_session"])
    assert session is not None
    # Operators see the ids of sessions.
    of_ids = fingerprint(f"connect {session.user} {session.session_id}")
    for query in ("", "?key=", "?key=" + "A" * 22, f"?key={of_ids}"):
        page = await ada.get(CONNECT + query)
        assert page.headers["Location"] == "/account/security"
    query = link_of((await ada.get("/account/security")).body)
    assert (await service.browser().get(CONNECT + query)).headers["Location"].startswith("/signin")
    attacker = service.browser()
    back = idp.allows(await leaves(attacker))
    ada.cookies["latchkey_elsewhere"] = attacker.cookies["latchkey_elsewhere"]
    await ada.get(back)
    assert await service.store.client.hlen(keys.person(service.ada)["identities"]) == 0
    idp.subject = "an identity that nobody has"
    ada = await signed_in(service)
    back = idp.allows(await leaves(ada, CONNECT + link_of((await ada.get("/account/security")).body)))
    again = await signed_in(service)
    again.cookies["latchkey_elsewhere"] = ada.cookies["latchkey_elsewhere"]
    assert (await again.get(back)).code == 403, "another session of the same person"
    assert await service.store.client.hlen(keys.person(service.ada)["identities"]) == 0


async def test_a_link_needs_a_recent_confirmation(service: Service, idp: ProviderDouble) -> None:
    ada = await signed_in(service)
    query = link_of((await ada.get("/account/security")).body)
    session = service.store.sessions.open(ada.cookies["latchkey_session"])
    assert session is not None
    back = idp.allows(await leaves(ada, CONNECT + query))
    await service.store.client.hdel(session.keys()["session"], "proved_at")
    assert (await ada.get(CONNECT + query)).code == 403
    assert (await ada.get(back)).code == 403
    assert await service.store.client.hlen(keys.person(service.ada)["identities"]) == 0


async def test_userinfo_of_somebody_else_is_refused(service: Service, idp: ProviderDouble) -> None:
    idp.userinfo = {"sub": "somebody else", "email": EMAIL, "email_verified": True}
    idp.claims = {}
    assert (await goes_and_comes(service.browser(), idp)).code == 400
    idp.userinfo["sub"] = idp.subject
    idp.userinfo["iss"] = "https://evil.example"
    assert (await goes_and_comes(service.browser(), idp)).code == 303
    assert not await nobody(service)


@pytest.mark.parametrize("body", [b"[]", b"{", b"x" * 70_000, b'{"access_token":7}', b"[" * 5000])
async def test_a_strange_answer_of_the_token_endpoint_is_refused(
    service: Service, idp: ProviderDouble, body: bytes
) -> None:
    browser = service.browser()
    back = idp.allows(await leaves(browser))
    idp.answers["/token"] = (200, body)
    assert (await browser.get(back)).code == 400


async def test_redirects_of_the_provider_are_not_followed(service: Service, idp: ProviderDouble) -> None:
    browser = service.browser()
    back = idp.allows(await leaves(browser))
    idp.answers["/token"] = (307, b"{}")
    page = await browser.get(back)
    assert page.code == 400
    assert "Location" not in page.headers


async def test_an_old_request_is_over(service: Service, idp: ProviderDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    from store.clock import wall

    browser = service.browser()
    back = idp.allows(await leaves(browser))
    monkeypatch.setattr(wall, "ahead", 601.0)
    assert (await browser.get(back)).code == 403
    assert idp.seen("/token") == 0
