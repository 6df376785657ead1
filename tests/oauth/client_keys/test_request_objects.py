"""Signed authorization requests, in the address and pushed. RFC 9101, OpenID Connect Core 6.1, RFC 9126 3."""

from __future__ import annotations

import html
from typing import Any
from urllib.parse import urlencode

import pytest
from tornado.httpclient import HTTPResponse

from dev.fuzz.jwts import signed, wrong_jwts
from handlers.oauth import request_objects
from store.clock import wall
from store.lifetimes import REQUEST
from tests.support.browser.second_factors import Person
from tests.support.http.driver import CALLBACK, PASSWORD, Browser, Service, answer_of, fields_of, json_of, send
from tests.support.http.key_app import KeyApp, key_app, key_for, query_pairs
from tests.support.lists.offenders import each

pytestmark = pytest.mark.gen_test(timeout=30)

REFUSED = b"The request object is refused"


class Later:
    """The clock that dates are checked by, some seconds ahead."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def time(self) -> float:
        return wall.time() + self.seconds


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """A clock that a test can put ahead."""
    clock = Later()
    monkeypatch.setattr(request_objects, "wall", clock)
    return clock


async def refused_page(browser: Browser, url: str) -> bool:
    """Whether the browser gets a page that refuses the object, and is sent nowhere."""
    page = await browser.get(url)
    return page.code == 400 and REFUSED in page.body and "Location" not in page.headers


async def ends_with_a_code(browser: Browser, app: KeyApp, url: str) -> None:
    answer = answer_of(await browser.consent(url))
    assert answer["state"] == "a-state"
    assert (await app.exchange(answer["code"])).code == 200


@pytest.mark.rfc("9101 4 type")
@pytest.mark.rfc("9101 6.3 extract")
@each(
    "typ",
    [
        pytest.param("oauth-authz-req+jwt", id="the type of RFC 9101"),
        pytest.param("application/oauth-authz-req+jwt", id="the whole media type"),
        pytest.param("JWT", id="the type of older programs"),
        pytest.param(None, id="no type"),
    ],
)
async def test_a_signed_request_leads_to_a_code(service: Service, typ: str | None) -> None:
    app = await key_app(service)
    url = app.signed_url(app.request_object({"typ": typ}))
    await ends_with_a_code(await service.signed_in(), app, url)


async def test_an_app_with_another_method_may_sign_its_requests(service: Service) -> None:
    keyed = await key_app(service)
    found = await service.store.apps.find(keyed.client_id)
    assert found is not None
    made = await service.add_app("by-secret", jwks=found.jwks)
    app = KeyApp(made.base_url, made.client_id, made.secret, made.redirect_uri)
    answer = answer_of(await (await service.signed_in()).consent(app.signed_url()))
    assert (await made.exchange(answer["code"])).code == 200


@pytest.mark.rfc("9101 5 only")
@pytest.mark.rfc("9101 6.3 only")
@pytest.mark.openid("core 6.1 supersede")
async def test_only_the_parameters_of_the_object_count(service: Service) -> None:
    app = await key_app(service, redirect_uris=(CALLBACK, "https://app.example/other"))
    inside = app.request_object(scope="profile", prompt="consent")
    beside = {"scope": "profile data:write", "state": "another", "redirect_uri": "https://app.example/other"}
    browser = await service.signed_in()
    page = await browser.get(app.signed_url(inside, **beside, response_mode="form_post", code_challenge="x" * 43))
    assert b"scope:profile" in page.body
    assert b"scope:data" not in page.body
    answer = answer_of(await browser.consent(app.signed_url(inside, **beside)))
    assert answer["state"] == "a-state"
    tokens = json_of(await app.exchange(answer["code"]))
    assert tokens["scope"] == "profile"


@pytest.mark.rfc("9101 4 all")
@pytest.mark.rfc("9101 5 only")
@pytest.mark.rfc("9101 6.3 only")
async def test_a_parameter_beside_the_object_replaces_none_that_it_lacks(service: Service) -> None:
    app, browser = await key_app(service), await service.signed_in()
    answer = answer_of(await browser.get(app.signed_url(app.request_object(state=None), state="beside")))
    assert answer["error"] == "invalid_request"
    assert "state" not in answer
    page = await browser.get(app.signed_url(app.request_object(redirect_uri=None), redirect_uri=CALLBACK))
    assert page.code == 400
    assert "Location" not in page.headers


@pytest.mark.rfc("9101 5 only")
@pytest.mark.rfc("9101 6.3 only")
async def test_a_name_outside_the_object_is_not_on_the_sign_in_page(service: Service) -> None:
    app = await key_app(service)
    for inside in ("ada@example.com", None):
        text = app.request_object(prompt="login", login_hint=inside)
        browser = service.browser()
        to_sign_in = await browser.get(app.signed_url(text, login_hint="eve@example.com"))
        page = await browser.get(to_sign_in.headers["Location"])
        assert b"eve@example.com" not in page.body
        assert (b'value="ada@example.com"' in page.body) == (inside is not None)
        await ends_with_a_code(browser, app, await sign_in_there(browser, to_sign_in))


async def test_a_stronger_sign_in_counts_for_a_signed_request(service: Service) -> None:
    """Its page begins with the person's address, which is not in the object."""
    app, browser = await key_app(service, scopes=("openid", "profile")), service.browser()
    text = app.request_object(scope="openid", prompt="login", acr_values="2")
    onward = await sign_in_there(browser, await browser.get(app.signed_url(text)))
    page = await browser.get(onward)
    assert b"needs a stronger sign-in" in page.body
    onward = html.unescape(page.body.decode().split('class="button full" href="')[1].split('"')[0])
    page = await browser.get(onward)
    assert b'value="ada@example.com"' in page.body
    back = await browser.submit(page, "/signin", email="ada@example.com", password=PASSWORD)
    # Somebody without a second step sets one up on the way.
    page, ada = await browser.get(back.headers["Location"]), Person(service, browser)
    ada.secret = service.store.factors.open_secret(service.ada, fields_of(page, "/signin/setup")["secret"])
    codes = await browser.submit(page, "/signin/setup", code=await ada.code(-1))
    onward = html.unescape(codes.body.decode().split('class="button" href="')[1].split('"')[0])
    await ends_with_a_code(browser, app, onward)


@pytest.mark.rfc("9101 4 iss and aud")
@pytest.mark.rfc("9101 4 nested")
@pytest.mark.rfc("9101 5 client_id")
@pytest.mark.rfc("9101 6.3 client_id")
@pytest.mark.openid("core 6.1 nested")
@pytest.mark.trap(13)
@each(
    "changes",
    [
        pytest.param({"iss": "web-app"}, id="another issuer"),
        pytest.param({"iss": None}, id="no issuer"),
        pytest.param({"aud": None}, id="no audience"),
        pytest.param({"aud": "https://other.example"}, id="another server"),
        pytest.param({"aud": "BASE/"}, id="the issuer with a slash"),
        pytest.param({"aud": "BASE/api/oauth/token"}, id="the token endpoint"),
        pytest.param({"client_id": "web-app"}, id="another app"),
        pytest.param({"client_id": None}, id="no app"),
        pytest.param({"sub": "APP"}, id="the subject of a client assertion"),
        pytest.param({"exp": -60}, id="an end in the past"),
        pytest.param({"nbf": 120}, id="a beginning in the future"),
        pytest.param({"request": "x"}, id="an object inside"),
        pytest.param({"request_uri": "https://app.example/r"}, id="an address inside"),
        pytest.param({"state": "a\0b"}, id="a NUL"),
    ],
)
async def test_a_wrong_object_is_refused_without_a_redirect(service: Service, changes: dict[str, Any]) -> None:
    app, now = await key_app(service), int(wall.time())
    made: dict[str, Any] = {
        name: now + value
        if isinstance(value, int)
        else value and value.replace("BASE", app.base_url).replace("APP", app.client_id)
        for name, value in changes.items()
    }
    url = app.signed_url(app.request_object(**made), redirect_uri=CALLBACK, state="beside")
    assert await refused_page(await service.signed_in(), url)
    assert await refused_page(service.browser(), url)


@pytest.mark.rfc("9101 4 JSON")
@pytest.mark.rfc("9101 5 signed")
@pytest.mark.rfc("9101 6.2 signature")
@pytest.mark.rfc("9101 6.2 algorithm")
@pytest.mark.rfc("9101 10.1 signed")
@pytest.mark.trap(39)
@pytest.mark.trap(44)
@each("algorithm", ["ES256", "RS256", "EdDSA"])
async def test_every_wrong_kind_of_token_is_refused(service: Service, algorithm: str) -> None:
    app = await key_app(service, algorithm=algorithm)
    header = {"typ": "oauth-authz-req+jwt", "alg": app.key.algorithm, "kid": app.key.kid}
    claims = {"iss": app.client_id, "aud": app.base_url, **query_pairs(app.authorize_url())}
    browser = service.browser()
    for what, text in wrong_jwts(app.key, header, claims).items():
        if text:
            page = await browser.get(app.signed_url(text))
            assert (400 <= page.code < 500, "Location" in page.headers) == (True, False), what
    assert (await browser.get(app.signed_url())).code == 303


@pytest.mark.rfc("9101 10.8 assertion")
@pytest.mark.trap(45)
async def test_an_assertion_is_no_request_and_a_request_no_assertion(service: Service) -> None:
    app, browser = await key_app(service), service.browser()
    assert await refused_page(browser, app.signed_url(app.assertion()))
    asked: dict[str, Any] = {**query_pairs(app.authorize_url())}
    whole = app.assertion(**asked)
    assert await refused_page(browser, app.signed_url(whole)), "its subject is the app"
    typed = app.assertion({"typ": "client-authentication+jwt"}, sub=None, **asked)
    assert await refused_page(browser, app.signed_url(typed))
    for text in (app.request_object(), app.request_object(sub=app.client_id, jti="j")):
        response = await app.post("revoke", token="any", **app.proof(text))
        assert (response.code, json_of(response)["error"]) == (401, "invalid_client")


@pytest.mark.rfc("9101 6.2 kid")
@pytest.mark.rfc("9101 5 client_id")
@pytest.mark.rfc("9101 6.3 client_id")
@pytest.mark.rfc("9101 10.2 source")
async def test_another_app_s_key_signs_nothing(service: Service) -> None:
    app, other = await key_app(service), await key_app(service, key=key_for("ES256", 1))
    claims = {"iss": app.client_id, "aud": app.base_url, **query_pairs(app.authorize_url())}
    for kid in (app.key.kid, other.key.kid):
        forged = signed(other.key, {"alg": "ES256", "kid": kid}, claims)
        assert await refused_page(service.browser(), app.signed_url(forged))
    # An address that names another app than its object.
    crossed = f"/oauth/authorize?{urlencode({'client_id': other.client_id, 'request': app.request_object()})}"
    assert await refused_page(service.browser(), crossed)


@pytest.mark.rfc("9101 7 request_not_supported")
async def test_an_app_without_keys_may_not_sign(service: Service) -> None:
    answer = answer_of(await service.browser().get(service.web.authorize_url(request="a.b.c")))
    assert answer["error"] == "request_not_supported"


@pytest.mark.rfc("9101 5 both")
async def test_an_object_and_an_address_are_refused_together(service: Service) -> None:
    app = await key_app(service)
    page = await service.browser().get(app.signed_url(request_uri="https://app.example/r"))
    assert (page.code, "Location" in page.headers) == (400, False)
    twice = app.signed_url() + "&" + urlencode({"request": app.request_object()})
    page = await service.browser().get(twice)
    assert (page.code, "Location" in page.headers) == (400, False)


@pytest.mark.rfc("9101 6.3 error")
async def test_a_refusal_of_what_is_in_the_object_goes_back_to_the_app(service: Service) -> None:
    app, browser = await key_app(service), service.browser()
    answer = answer_of(await browser.get(app.signed_url(app.request_object(scope="nonsense"))))
    assert (answer["error"], answer["state"]) == ("invalid_scope", "a-state")
    answer = answer_of(await browser.get(app.signed_url(app.request_object(prompt="none"))))
    assert answer["error"] == "login_required"


@pytest.mark.rfc("9101 4 JSON")
async def test_numbers_and_objects_are_read_as_json(service: Service) -> None:
    app = await key_app(service, scopes=("openid", "profile", "email"))
    text = app.request_object(
        scope="openid", nonce="n", max_age=86400, claims={"id_token": {"email": None}}, prompt="consent"
    )
    browser = await service.signed_in()
    page = await browser.get(app.signed_url(text))
    assert b"scope:email" in page.body, "the claim adds its scope"
    wrongs: list[dict[str, Any]] = [{"max_age": True}, {"max_age": [1]}, {"max_age": 1.5}, {"claims": [1]}]
    for wrong in (*wrongs, {"prompt": ["none"]}):
        text = app.request_object(scope="openid", **wrong)
        answer = answer_of(await browser.get(app.signed_url(text)))
        assert answer["error"] == "invalid_request", wrong


async def sign_in_there(browser: Browser, answer: HTTPResponse) -> str:
    """Signs in on the page that the answer leads to. Returns where the browser goes on."""
    page = await browser.get(answer.headers["Location"])
    back = await browser.submit(page, "/signin", email="ada@example.com", password=PASSWORD)
    assert back.code == 303
    return back.headers["Location"]


async def test_an_object_may_end_while_the_person_signs_in(service: Service, later: Later) -> None:
    app, browser = await key_app(service), service.browser()
    text = app.request_object(exp=int(wall.time()) + 60, prompt="login", login_hint="ada@example.com")
    to_sign_in = await browser.get(app.signed_url(text))
    page = await browser.get(to_sign_in.headers["Location"])
    assert 'value="ada@example.com"' in page.body.decode()
    later.seconds = 300
    onward = await sign_in_there(browser, to_sign_in)
    assert "progress=" in onward, "the sign-in that the signed request demands leaves a mark"
    await ends_with_a_code(browser, app, onward)
    assert await refused_page(browser, app.signed_url(text)), "a new arrival is too late"


async def test_the_mark_of_an_arrival_is_for_one_object_and_ends(service: Service, later: Later) -> None:
    app, browser = await key_app(service), service.browser()
    ends = int(wall.time()) + 60
    first, second = (app.request_object(exp=ends, state=state) for state in ("one", "two"))
    arrived = query_pairs(query_pairs((await browser.get(app.signed_url(first))).headers["Location"])["next"])
    mark = arrived["arrived"]
    later.seconds = 200
    assert (await browser.get(app.signed_url(first, arrived=mark))).code == 303
    assert await refused_page(browser, app.signed_url(second, arrived=mark))
    for wrong in (mark[:-1], "x", service.store.progress.mark("sign-in", "a" * 64, service.ada)):
        assert await refused_page(browser, app.signed_url(first, arrived=wrong))
    later.seconds = REQUEST / 1000 + 1
    assert await refused_page(browser, app.signed_url(first, arrived=mark))


async def test_a_mark_does_not_spare_the_signature(service: Service) -> None:
    app, browser = await key_app(service), service.browser()
    arrived = query_pairs(query_pairs((await browser.get(app.signed_url())).headers["Location"])["next"])
    head, body, _ = arrived["request"].split(".")
    forged = f"{head}.{body}.{app.request_object(state='x').rpartition('.')[2]}"
    assert await refused_page(browser, app.signed_url(forged, arrived=arrived["arrived"]))


async def test_a_posted_object_is_the_same_request(service: Service) -> None:
    app, browser = await key_app(service), await service.signed_in()
    form = query_pairs(app.signed_url())
    answer = await browser.send("/oauth/authorize", "POST", form=form)
    assert answer.code == 303
    await ends_with_a_code(browser, app, answer.headers["Location"])


async def push(app: KeyApp, text: str, **beside: str) -> HTTPResponse:
    """Pushes a signed request."""
    return await app.post("par", request=text, **{**app.proof(), **beside})


@pytest.mark.rfc("9126 3 claims")
async def test_a_signed_request_can_be_pushed(service: Service, later: Later) -> None:
    app, browser = await key_app(service), await service.signed_in()
    text = app.request_object(exp=int(wall.time()) + 60, scope="profile")
    response = await push(app, text, scope="profile data:write", redirect_uri="https://evil.example", state="beside")
    assert response.code == 201
    later.seconds = 85
    asked = {"client_id": app.client_id, "request_uri": json_of(response)["request_uri"]}
    answer = answer_of(await browser.consent(f"/oauth/authorize?{urlencode(asked)}"))
    assert answer["state"] == "a-state"
    assert json_of(await app.exchange(answer["code"]))["scope"] == "profile"


@pytest.mark.rfc("9126 3 signature")
@pytest.mark.rfc("9126 3 client_id")
@pytest.mark.rfc("9101 6.2 error")
@pytest.mark.rfc("9101 10.2 given out")
async def test_a_wrong_object_cannot_be_pushed(service: Service) -> None:
    app, other = await key_app(service), await key_app(service, key=key_for("ES256", 1))
    for text in (other.request_object(), app.request_object(aud="https://other.example"), "x", app.assertion()):
        response = await push(app, text)
        assert (response.code, json_of(response)["error"]) == (400, "invalid_request_object")
    # RFC 9126 3: the app that proves itself is the one in the object.
    response = await push(other, app.request_object())
    assert (response.code, json_of(response)["error"]) == (400, "invalid_request_object")
    response = await push(app, app.request_object(redirect_uri="https://evil.example"), redirect_uri=CALLBACK)
    assert (response.code, json_of(response)["error"]) == (400, "invalid_request")


async def test_every_error_of_a_pushed_request_is_400(service: Service) -> None:
    app = await key_app(service, scopes=("openid", "profile"))
    level = {"id_token": {"acr": {"essential": True, "values": ["unknown"]}}}
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"claims": level}, "unmet_authentication_requirements"),
        ({"registration": "{}"}, "registration_not_supported"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "x"}, "invalid_scope"),
    ]
    browser = await service.signed_in()
    for changes, error in wrongs:
        text = app.request_object(**{"scope": "openid", **changes})
        response = await push(app, text)
        assert (response.code, json_of(response)["error"]) == (400, error)
        assert answer_of(await browser.get(app.signed_url(text)))["error"] == error, "as at the authorization endpoint"


async def test_an_app_that_must_push_may_push_signed_requests_only_there(service: Service) -> None:
    app, browser = await key_app(service, require_pushed=True), service.browser()
    assert answer_of(await browser.get(app.signed_url()))["error"] == "invalid_request"
    assert (await push(app, app.request_object())).code == 201


@pytest.mark.rfc("9101 4 metadata")
async def test_metadata_says_what_may_be_signed(service: Service) -> None:
    found = json_of(await send(f"{service.base_url}/.well-known/openid-configuration"))
    assert found["request_parameter_supported"] is True
    assert found["request_uri_parameter_supported"] is False
    assert found["require_signed_request_object"] is False
    assert found["request_object_signing_alg_values_supported"] == ["RS256", "PS256", "ES256", "EdDSA", "Ed25519"]
