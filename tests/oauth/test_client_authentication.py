"""Client authentication at the token endpoint: in the body or by HTTP Basic, never both. SPEC 5.1."""

from __future__ import annotations

import base64
from urllib.parse import quote, quote_plus

import pytest
from tornado.httpclient import HTTPResponse

from store.apps.registration import Registration
from tests.support.http.driver import CALLBACK, VERIFIER, App, Service, json_of, send
from tests.support.lists.offenders import each


def error_of(response: HTTPResponse) -> tuple[int, str]:
    """Status and error code."""
    return response.code, json_of(response)["error"]


async def basic(app: App, credentials: str, **fields: str) -> HTTPResponse:
    """A token request with the given credentials in the header."""
    encoded = base64.b64encode(credentials.encode()).decode()
    headers = {"Authorization": f"Basic {encoded}"}
    return await send(f"{app.base_url}/api/oauth/token", "POST", form=fields, headers=headers)


def code_fields(code: str, **changes: str) -> dict[str, str]:
    """The fields of an exchange without credentials."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        **changes,
    }


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.3.1 client")
@pytest.mark.spec("5.1")
@pytest.mark.spec("7")
@pytest.mark.trap(11)
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"client_secret": "wrong"}, id="a wrong secret"),
        pytest.param({"client_secret": None}, id="no secret"),
        pytest.param({"client_secret": ""}, id="an empty secret"),
        pytest.param({"client_id": "nobody"}, id="an unknown app"),
        pytest.param({"client_id": "native-app"}, id="a public app with a secret"),
        pytest.param({"client_id": "WEB-APP"}, id="the id in another case"),
    ],
)
async def test_failed_client_authentication_is_401_and_uses_up_nothing(
    service: Service, changes: dict[str, str | None]
) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    code = await service.code(browser=browser)
    for response in (
        await service.web.exchange(code, **changes),
        await service.web.refresh(tokens["refresh_token"], **changes),
    ):
        assert error_of(response) == (401, "invalid_client")
        assert "WWW-Authenticate" not in response.headers  # no Basic was tried
    assert (await service.web.exchange(code)).code == 200
    assert (await service.web.refresh(tokens["refresh_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.trap(11)
async def test_basic_then_body_with_the_same_code_works(service: Service) -> None:
    code = await service.code()
    tried = await basic(service.web, "web-app:wrong", **code_fields(code))
    assert error_of(tried) == (401, "invalid_client")
    assert tried.headers["WWW-Authenticate"].startswith("Basic realm=")
    assert (await service.web.exchange(code)).code == 200


@pytest.mark.gen_test
@pytest.mark.spec("5.1")
async def test_a_public_app_sends_its_id_and_verifier_and_no_secret(service: Service) -> None:
    code = await service.code(service.native)
    assert error_of(await service.native.exchange(code, client_secret="x")) == (401, "invalid_client")
    tokens = json_of(await service.native.exchange(code))
    refreshed = await service.native.refresh(tokens["refresh_token"])
    assert refreshed.code == 200
    # Basic with an empty secret is the same.
    again = await basic(
        service.native, "native-app:", grant_type="refresh_token", refresh_token=json_of(refreshed)["refresh_token"]
    )
    assert again.code == 200


ODD_SECRETS = ["per%cent", "pl+us", "col:on", "sp ace", "%2B", "a&b=c", "\u00e4\u20ac\U0001f511", "100%", ":", "%"]


@pytest.mark.gen_test
@pytest.mark.trap(19)
@pytest.mark.parametrize("secret", ODD_SECRETS)
async def test_basic_credentials_are_form_decoded(service: Service, secret: str) -> None:
    registration = Registration("odd_app-1", "Odd", (CALLBACK,), ("profile", "data:read", "data:write"))
    await service.store.apps.create(registration, secret)
    app = App(service.base_url, "odd_app-1", secret)
    browser = await service.signed_in()
    for encode in (quote_plus, lambda text: quote(text, safe="")):
        code = await service.code(app, browser)
        # The id is encoded too: %5F is its underscore.
        credentials = f"{encode('odd_app-1').replace('_', '%5F')}:{encode(secret)}"
        assert (await basic(app, credentials, **code_fields(code))).code == 200
    assert (await app.exchange(await service.code(app, browser))).code == 200


@pytest.mark.gen_test
@pytest.mark.trap(19)
async def test_issued_ids_and_secrets_need_no_encoding(service: Service) -> None:
    assert service.web.secret
    assert set(service.web.secret) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
    raw = await basic(service.web, f"web-app:{service.web.secret}", **code_fields(await service.code()))
    assert raw.code == 200


@pytest.mark.gen_test
@pytest.mark.trap(20)
@pytest.mark.parametrize(
    ("extra", "error"),
    [
        pytest.param({"client_secret": "RIGHT"}, "invalid_request", id="the right secret in both places"),
        pytest.param({"client_secret": "wrong"}, "invalid_request", id="a wrong one in the body"),
        pytest.param({"client_id": "web-app", "client_secret": "RIGHT"}, "invalid_request", id="all of it twice"),
        pytest.param({"client_id": "other"}, "invalid_request", id="another id in the body"),
        pytest.param({"client_id": "web-app"}, None, id="the id in both places, the secret in one"),
    ],
)
async def test_credentials_in_header_and_body_must_agree(
    service: Service, extra: dict[str, str], error: str | None
) -> None:
    code = await service.code()
    secret = service.web.secret or ""
    extra = {name: secret if value == "RIGHT" else value for name, value in extra.items()}
    response = await basic(service.web, f"web-app:{secret}", **code_fields(code, **extra))
    assert response.code == (400 if error else 200)
    assert json_of(response).get("error") == error


@pytest.mark.gen_test
@pytest.mark.trap(20)
@pytest.mark.trap(21)
@each(
    ("header", "error"),
    [
        pytest.param("Basic", (400, "invalid_request"), id="nothing after the scheme"),
        pytest.param("Basic !!!", (400, "invalid_request"), id="no base64"),
        pytest.param("Basic " + base64.b64encode(b"web-app").decode(), (400, "invalid_request"), id="no colon"),
        pytest.param(
            "Basic " + base64.b64encode(b"web-app:\xff\xfe").decode(), (400, "invalid_request"), id="no UTF-8"
        ),
        pytest.param(
            "Basic " + base64.b64encode(b"web-app:%ff").decode(), (400, "invalid_request"), id="encoded, no UTF-8"
        ),
        pytest.param("Basic " + base64.b64encode(b"web-app:a%00").decode(), (400, "invalid_request"), id="a NUL"),
        pytest.param("Basic " + base64.b64encode(b"web-app:a\0").decode(), (400, "invalid_request"), id="a bare NUL"),
        pytest.param("Basic " + base64.b64encode(b":x").decode(), (401, "invalid_client"), id="an empty id"),
        pytest.param("Basic " + base64.b64encode(b"a b:x").decode(), (401, "invalid_client"), id="an id that is none"),
        pytest.param("Basic \u00e9\u00e9", (400, "invalid_request"), id="letters beyond ASCII"),
        pytest.param("Bearer lk_at_x", (400, "invalid_request"), id="a bearer token"),
        pytest.param("Digest a=b", (400, "invalid_request"), id="another scheme"),
    ],
)
async def test_malformed_authorization_headers_are_refused(
    service: Service, header: str, error: tuple[int, str]
) -> None:
    code = await service.code()
    url = service.base_url + "/api/oauth/token"
    for path in (url, service.base_url + "/api/oauth/revoke"):
        form = {**code_fields(code), "token": "x"}
        response = await send(path, "POST", form=form, headers={"Authorization": header})
        assert error_of(response) == error
        assert ("WWW-Authenticate" in response.headers) == (error[0] == 401)
    assert (await service.web.exchange(code)).code == 200
