"""ID token hints of every wrong kind, at both endpoints that read them; and each kind of signed token where another is
read. RFC 8725, OpenID Connect Core 3.1.2.2."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tornado.httpclient import HTTPResponse

from dev.fuzz.jwts import wrong_jwts
from store import lifetimes, limits
from tests.oauth.openid.test_logout import BACK, SignedIn
from tests.support.http.api_shop import ORDERS, Shop, called
from tests.support.http.dpop_app import Device
from tests.support.http.driver import Service, answer_of, json_of, send
from tests.support.http.key_app import key_app
from tests.support.processes.engines import FakeClock
from tests.support.store.signing import DAY, HOUR, later

pytestmark = pytest.mark.gen_test(timeout=60)

LONGEST = 12_000
"""Characters of a token that fits into an address."""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed clients count for their address, and these tests make more than a hundred from one."""
    monkeypatch.setattr(limits, "ADDRESS", replace(lifetimes.ADDRESS, limit=100_000))


@pytest.mark.trap(39)
@pytest.mark.trap(44)
@pytest.mark.trap(49)
@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
async def test_no_wrong_hint_names_anybody_or_ends_a_session(service: Service, algorithm: str) -> None:
    ada = await SignedIn.make(service, id_token_alg=algorithm)
    keys = service.store.signing_keys
    claims, signer = (await keys.verify(ada.hint, types=("JWT",))).claims, await keys.for_signing(algorithm)
    header = {"typ": "JWT", "alg": algorithm, "kid": signer.kid}
    for what, text in wrong_jwts(signer.key, header, claims).items():
        if not text or len(text) > LONGEST:
            continue
        back = await ada.browser.get(ada.app.authorize_url(scope="openid profile", id_token_hint=text))
        assert answer_of(back)["error"] == "invalid_request", what
        page = await ada.ask(id_token_hint=text, post_logout_redirect_uri=BACK)
        assert (page.code, "Location" in page.headers) == (400, False), what
    long = {"id_token_hint": "a." + "b" * 60_000 + ".c", "post_logout_redirect_uri": BACK}
    assert (await ada.browser.send("/oauth/logout", "POST", form=long)).code == 400
    assert await ada.is_in()
    assert (await ada.ask(id_token_hint=ada.hint, post_logout_redirect_uri=BACK)).headers["Location"] == BACK


@pytest.mark.trap(49)
async def test_a_hint_counts_as_long_as_a_session_can_live_after_its_key(service: Service, clock: FakeClock) -> None:
    ada = await SignedIn.make(service)
    await service.store.signing_store.rotate("RS256", at_once=True)

    async def answers() -> tuple[str | None, int]:
        browser = await service.signed_in()
        asked = ada.app.authorize_url(scope="openid profile", id_token_hint=ada.hint)
        back = answer_of(await browser.get(asked)).get("error")
        return back, (await ada.ask(browser, id_token_hint=ada.hint, post_logout_redirect_uri=BACK)).code

    later(clock, 30 * DAY, service.store)
    assert await answers() == (None, 200), "of another session, so the person is asked"
    later(clock, HOUR + 602, service.store)
    assert await answers() == ("invalid_request", 400)


@pytest.mark.trap(45)
async def test_each_kind_of_token_is_refused_where_another_is_read(service: Service) -> None:
    shop = await Shop.open(service)
    await service.store.apis.update(ORDERS.client_id, token_format="jwt")
    app, ada, device = await key_app(service), await SignedIn.make(service), Device()
    keys, at_token = service.store.signing_keys, f"{service.base_url}/api/oauth/token"
    claims, signer = (await keys.verify(ada.hint, types=("JWT",))).claims, await keys.for_signing("RS256")
    kinds = {
        "ID token": ada.hint,
        "access token": (await shop.tokens("openid write"))["access_token"],
        "logout token": signer.sign(claims, "logout+jwt"),
        "assertion": app.assertion(),
        "request object": app.request_object(),
        "proof": device.proof("POST", at_token),
    }

    async def is_hint(token: str) -> bool:
        back = await ada.browser.get(ada.app.authorize_url(scope="openid profile", id_token_hint=token))
        named = "code" in answer_of(back)
        page = await ada.ask(id_token_hint=token, post_logout_redirect_uri=BACK)
        assert named == (page.code != 400)
        return named

    async def is_live(token: str) -> bool:
        assert (await called(service, token)).code == 401, "no JWT is a token for ours"
        return bool((await shop.at(ORDERS, token))["active"])

    async def proves(token: str) -> bool:
        return (await app.post("revoke", token="any", **app.proof(token))).code == 200

    async def asks(token: str) -> bool:
        return (await service.browser().get(app.signed_url(token))).code == 303

    async def is_proof(token: str) -> bool:
        form = {"grant_type": "refresh_token", "refresh_token": "lk_rt_x", "client_id": "native-app"}
        refused: HTTPResponse = await send(at_token, "POST", form=form, headers={"DPoP": token})
        return bool(json_of(refused)["error"] != "invalid_dpop_proof")

    readers: dict[str, Callable[[str], Awaitable[bool]]] = {
        "access token": is_live,
        "assertion": proves,
        "request object": asks,
        "proof": is_proof,
        "ID token": is_hint,
    }
    for read, accepts in readers.items():
        taken = {kind for kind, token in kinds.items() if await accepts(token)}
        assert taken == {read}, read


async def test_a_form_that_is_not_text_gets_an_error_page(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    for body in (b"_xsrf=%ff", b"_xsrf=a&id_token_hint=%ff", b"id_token_hint=a&_xsrf=%ff"):
        answer = await send(service.base_url + "/oauth/logout", "POST", body=body, headers=headers, described=False)
        assert (answer.code, b"<h1>" in answer.body) == (400, True), body
    assert not caplog.records
