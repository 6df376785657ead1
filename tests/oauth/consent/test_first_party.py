"""The operator's own apps sign people in without a page, and get nothing else without one."""

from __future__ import annotations

import pytest

from store import keys
from store.oauth.authorizations import AuthorizationRequest, Pending
from store.refused import Refused
from store.results import Visitor
from tests.support.http.driver import CALLBACK, EMAIL, Service, answer_of, json_of

pytestmark = pytest.mark.gen_test
SIGN_IN = "openid profile email groups"


async def test_a_person_is_signed_in_to_the_operators_own_app_without_a_page(service: Service) -> None:
    app = await service.add_app("intranet", scopes=(*SIGN_IN.split(), "data:read"), first_party=True)
    browser = await service.signed_in()
    for more in ({}, {"prompt": "none"}):
        answer = answer_of(await browser.get(app.authorize_url(scope=SIGN_IN, **more)))
        tokens = json_of(await app.exchange(answer["code"]))
        assert tokens["scope"] == SIGN_IN
    assert (await service.store.operator.find(EMAIL)).apps == ("intranet",), "the person sees it, and can end it"
    events = [entry.event for entry in (await service.store.operator.find(EMAIL)).activity]
    assert "consent_given" in events


@pytest.mark.parametrize("asked", [{"scope": "profile data:read"}, {"scope": "profile", "prompt": "consent"}])
async def test_it_asks_for_everything_else(service: Service, asked: dict[str, str]) -> None:
    app = await service.add_app("intranet", scopes=("profile", "data:read"), first_party=True)
    page = await (await service.signed_in()).get(app.authorize_url(**asked))
    assert page.code == 200
    assert (await service.store.operator.find(EMAIL)).apps == ()


async def test_an_app_with_an_owner_or_at_an_address_that_others_may_take_asks(service: Service) -> None:
    browser = await service.signed_in()
    owned = await service.add_app("owned", scopes=("profile",), first_party=True, owner=service.ada)
    assert (await browser.get(owned.authorize_url(scope="profile"))).code == 200
    fields = {"public": True, "redirect_uris": ("http://127.0.0.1/cb",), "scopes": ("profile",)}
    native = await service.add_app("native", first_party=True, **fields)
    url = native.authorize_url(scope="profile", redirect_uri="http://127.0.0.1:5000/cb")
    assert (await browser.get(url)).code == 200
    assert (await service.store.operator.find(EMAIL)).apps == ()


@pytest.mark.parametrize("kept_out", [True, False])
async def test_an_app_that_the_person_disconnected_asks_again(service: Service, kept_out: bool) -> None:
    """Any link leads to a silent sign-in. It must not undo what the person did."""
    app = await service.add_app("intranet", scopes=("profile",), first_party=True)
    browser = await service.signed_in()
    answer_of(await browser.get(app.authorize_url(scope="profile")))
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    await service.store.grants.revoke(session, "intranet", Visitor(), keeps_out=kept_out)
    if kept_out:  # for longer than its documents
        await service.store.client.delete(keys.grant(service.ada, "intranet"))
    quiet = answer_of(await browser.get(app.authorize_url(scope="profile", prompt="none")))
    assert quiet["error"] == "consent_required"
    assert "code" in answer_of(await browser.consent(app.authorize_url(scope="profile")))
    assert "code" in answer_of(await browser.get(app.authorize_url(scope="profile", prompt="none")))


@pytest.mark.parametrize("act", ["pause", "revoke"])
async def test_what_the_person_ends_at_this_moment_stays_ended(service: Service, act: str) -> None:
    app = await service.add_app("intranet", scopes=("profile",), first_party=True)
    browser, store = await service.signed_in(), service.store
    answer_of(await browser.get(app.authorize_url(scope="profile")))
    session, known = store.sessions.open(browser.cookies["latchkey_session"]), await store.apps.find("intranet")
    assert session is not None
    assert known is not None
    request = AuthorizationRequest("intranet", CALLBACK, ("profile",), "", "", known.terms, known.place(CALLBACK))
    begun = await store.authorizations.begin(session, request, always_ask=True)
    assert isinstance(begun, Pending)
    await getattr(store.grants, act)(session, "intranet", Visitor())
    with pytest.raises(Refused, match="invalid_request"):
        await store.authorizations.decide(
            session, known, begun.request_id, allow=True, scopes=None, visitor=Visitor(), unseen=True
        )


async def test_a_paused_app_asks_again(service: Service) -> None:
    app = await service.add_app("intranet", scopes=("profile",), first_party=True)
    browser = await service.confirmed()
    answer_of(await browser.get(app.authorize_url(scope="profile")))
    page = await browser.get("/account/apps")
    assert (await browser.submit(page, "/account/apps/intranet/pause")).code == 303
    assert (await browser.get(app.authorize_url(scope="profile"))).code == 200
