"""Requests that name the person: `id_token_hint`, and `sub` in `claims`. OpenID Connect Core 3.1.2.2, 5.5.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dev.fuzz.jwts import wrong_jwts
from store.refused import Refused
from tests.oauth.openid.test_prompts import sent_to_sign_in, signed_in_for
from tests.oauth.openid.test_sign_in import openid_app, refusal
from tests.support.http.driver import App, Browser, Service, answer_of

BOB = "bob@example.com"


def naming(app: App, member: dict[str, Any], place: str = "id_token", **changes: str) -> str:
    """A request that names the person in its parameter `claims`."""
    return app.authorize_url(scope="openid", claims=json.dumps({place: {"sub": member}}), **changes)


async def ended(service: Service, browser: Browser) -> Browser:
    """The browser, whose cookie is of a session that is over."""
    session = next(filter(None, map(service.store.sessions.open, browser.cookies.values())))
    await service.store.client.delete(session.keys()["session"])
    return browser


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.1 id_token_hint")
@pytest.mark.trap(49)
async def test_a_hint_names_the_person_that_the_app_expects(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    hint = (await service.tokens(app, browser, scope="openid"))["id_token"]
    url = app.authorize_url(scope="openid", id_token_hint=hint)
    assert "code" in answer_of(await browser.get(url))
    await service.add_person(BOB)
    other = await service.signed_in(BOB)
    for quiet in ({}, {"prompt": "none"}):
        asked = app.authorize_url(scope="openid", id_token_hint=hint, **quiet)
        assert refusal(await other.get(asked)) == "login_required"
    # Nobody is signed in where the session is over.
    assert await sent_to_sign_in(await ended(service, other), url)
    # A hint of another app is none.
    stranger = await service.add_app("stranger", scopes=("openid",))
    assert refusal(await browser.get(stranger.authorize_url(scope="openid", id_token_hint=hint))) == "invalid_request"


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.2 sub")
@pytest.mark.openid("core 5.5.1 sub")
async def test_a_request_with_a_sub_is_for_that_person(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    await service.code(app, browser, scope="openid")
    await service.add_person(BOB)
    others: list[dict[str, Any]] = [{"value": "somebody"}, {"values": ["somebody", "0"]}, {"value": ""}, {"values": []}]
    own: list[dict[str, Any]] = [
        {"value": service.ada},
        {"values": ["somebody", service.ada]},
        {"essential": True},
    ]
    for place in ("id_token", "userinfo"):
        for member in own:
            assert "code" in answer_of(await browser.get(naming(app, member, place)))
        for member in (
            {"value": "somebody"},
            {"values": ["somebody", service.ada.upper()]},
            {"value": ""},
            {"values": []},
        ):
            assert refusal(await browser.get(naming(app, member, place, prompt="none"))) == "login_required"
        # The person may sign in as somebody else; only after that the app gets an answer.
        url = naming(app, others[0], place)
        assert refusal(await browser.get(await signed_in_for(browser, url))) == "login_required"
    bob = await service.signed_in(BOB)
    assert "code" in answer_of(await bob.get(await signed_in_for(bob, naming(app, {"value": service.ada}))))


@pytest.mark.gen_test
async def test_an_app_cannot_guess_who_is_signed_in(service: Service) -> None:
    app = await openid_app(service)
    await service.add_person(BOB)
    browsers = (service.browser(), await service.signed_in(), await service.signed_in(BOB))
    for more in ({}, {"acr_values": "2"}):
        url = naming(app, {"value": service.ada}, prompt="none", **more)
        answers = [answer_of(await browser.get(url)) for browser in browsers]
        assert answers[0]["error"] == "login_required"
        assert answers == [answers[0]] * 3
    # Without a sub the app learns that somebody has to consent, but not who.
    assert refusal(await browsers[1].get(app.authorize_url(scope="openid", prompt="none"))) == "consent_required"


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.2 id_token_hint")
async def test_a_hint_that_is_no_id_token_of_ours_is_refused(service: Service) -> None:
    app, browser = await openid_app(service), await service.signed_in()
    tokens = await service.tokens(app, browser, scope="openid")
    head, body, signature = tokens["id_token"].split(".")
    signer = await service.store.id_tokens.signer("RS256")
    claims = {"iss": service.base_url, "aud": app.client_id, "sub": service.ada, "sid": "a-session"}
    wrong = {
        "an access token": tokens["access_token"],
        "no signature": f"{head}.{body}.",
        "another signature": f"{head}.{body}.{signature[:-6]}{signature[-6:][::-1]}",
        "a logout token": signer.sign(claims, "logout+jwt"),
        "an access token of an API": signer.sign(claims, "at+jwt"),
        "another issuer": signer.sign({**claims, "iss": f"{service.base_url}/"}, "JWT"),
        "another audience": signer.sign({**claims, "aud": ["another-app"]}, "JWT"),
        "without a person": signer.sign({**claims, "sub": 7}, "JWT"),
        "without a session": signer.sign({**claims, "sid": None}, "JWT"),
        "too long": head + "." + "b" * 9000 + ".c",
    }
    for name, hint in wrong.items():
        answer = await browser.get(app.authorize_url(scope="openid", id_token_hint=hint))
        assert refusal(answer) == "invalid_request", name
    header = {"typ": "JWT", "alg": "RS256", "kid": signer.kid}
    for hint in wrong_jwts(signer.key, header, claims).values():
        with pytest.raises(Refused, match="invalid_request"):
            await service.store.id_tokens.read_hint(hint, service.base_url, app.client_id)
    expired = signer.sign({**claims, "exp": 1}, "JWT")
    assert "code" in answer_of(await browser.get(app.authorize_url(scope="openid", id_token_hint=expired)))
