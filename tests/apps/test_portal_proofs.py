"""How an owner's app proves itself, and what its requests and tokens must be: by the forms of the portal."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from handlers.developer.app_changes import changed_lines
from handlers.developer.app_form import AppForm
from store.apps.profiles import FAPI2, PROFILES
from store.apps.registration import Registration
from tests.support.browser.own_apps import URI, client_id_of, facts, own_app, register, secret_of, site
from tests.support.http.driver import VERIFIER, Browser, Service, fields_of, json_of, text_of
from tests.support.http.key_app import KeyApp, key_for, set_of
from tests.support.lists.offenders import each

__all__ = ["facts", "site"]  # fixtures

JWKS = set_of(key_for("ES256")).decode()
AT = "https://mine.example/jwks.json"
PRIVATE = orjson.dumps({"keys": [{"kty": "oct", "k": "AAAA"}]}).decode()


async def stored(service: Service, client_id: str) -> Registration:
    app, _ = await service.store.apps.fresh(client_id)
    assert app is not None
    return app


async def change(browser: Browser, client_id: str, **fields: str | None) -> Any:
    """Saves the form of an app. The fields that a browser sends of their own accord stay as the page has them."""
    where = f"/developer/apps/{client_id}"
    form = {
        **fields_of(await browser.get(f"{where}/settings"), where),
        "name": "My App",
        "redirect_uris": URI,
        **fields,
    }
    return await browser.send(where, "POST", form={name: text for name, text in form.items() if text is not None})


@pytest.mark.gen_test
async def test_an_app_with_a_key_has_no_secret_and_gets_tokens_by_assertion(service: Service) -> None:
    browser = await service.confirmed()
    page = await register(browser, auth_method="private_key_jwt", jwks=JWKS)
    assert page.code == 200
    assert "lk_cs_" not in page.body.decode()
    assert "Its own key" in text_of(page)
    app = KeyApp(service.base_url, client_id_of(page), None, URI, key_for("ES256"))
    code = await service.code(app, browser, scope="profile")
    answer = await app.token(grant_type="authorization_code", code=code, redirect_uri=URI, code_verifier=VERIFIER)
    assert answer.code == 200, answer.body
    assert json_of(answer)["token_type"] == "Bearer"


@pytest.mark.gen_test
async def test_a_key_ends_the_secrets_and_a_secret_is_made_after_a_key(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    assert (await app.revoke("none", client_id=app.client_id, client_secret=app.secret or "")).code == 200
    assert (await change(browser, app.client_id, auth_method="private_key_jwt", jwks_uri=AT)).code == 303
    assert (await app.revoke("none", client_id=app.client_id, client_secret=app.secret or "")).code == 401
    kept = await stored(service, app.client_id)
    assert (kept.auth_method, kept.jwks_uri, kept.secrets) == ("private_key_jwt", AT, ())
    where = f"/developer/apps/{app.client_id}"
    assert f"{where}/rotate" not in (await browser.get(f"{where}/credentials")).body.decode()
    assert (await change(browser, app.client_id, auth_method="client_secret")).code == 303
    made = await browser.submit(await browser.get(f"{where}/credentials"), f"{where}/rotate")
    app.secret = secret_of(made)
    assert (await app.revoke("none", client_id=app.client_id, client_secret=app.secret)).code == 200


@pytest.mark.gen_test
async def test_a_form_without_these_fields_leaves_the_keys_as_they_are(service: Service) -> None:
    browser = await service.confirmed()
    page = await register(browser, auth_method="private_key_jwt", jwks=JWKS, id_token_alg="ES256")
    before = await stored(service, client_id_of(page))
    assert (await change(browser, before.client_id, homepage="https://mine.example/")).code == 303
    after = await stored(service, before.client_id)
    assert (after.jwks, after.auth_method, after.id_token_alg) == (before.jwks, "private_key_jwt", "ES256")


@pytest.mark.gen_test
async def test_saving_what_the_page_shows_changes_no_key(service: Service) -> None:
    browser = await service.confirmed()
    page = await register(browser, auth_method="private_key_jwt", jwks=JWKS)
    before = await stored(service, client_id_of(page))
    shown = orjson.dumps(orjson.loads(before.jwks), option=orjson.OPT_INDENT_2).decode()
    assert (await change(browser, before.client_id, auth_method="private_key_jwt", jwks=shown, jwks_uri="")).code == 303
    assert await stored(service, before.client_id) == before


@pytest.mark.gen_test
@each(
    ("fields", "words"),
    [
        pytest.param({"auth_method": "private_key_jwt"}, "Paste your app’s public keys", id="a key, and none is named"),
        pytest.param(
            {"kind": "public", "auth_method": "private_key_jwt", "jwks": JWKS}, "its own server", id="a key in public"
        ),
        pytest.param({"auth_method": "odd"}, "Choose one of these", id="an unknown way"),
        pytest.param({"auth_method": "none"}, "Choose one of these", id="nothing, for an app with a server"),
        pytest.param({"jwks": '{"keys": []}'}, "no usable signing key", id="no keys"),
        pytest.param({"jwks": "nonsense"}, "isn't a valid JSON Web Key Set", id="no JSON"),
        pytest.param({"jwks": PRIVATE}, "Publish only public keys", id="a symmetric key"),
        pytest.param({"jwks": JWKS, "jwks_uri": AT}, "not both", id="both"),
        pytest.param({"jwks_uri": "http://mine.example/jwks"}, "Start with https", id="an address in the clear"),
        pytest.param({"jwks_uri": "https://ada@mine.example/"}, "Start with https", id="a user name"),
        pytest.param({"id_token_alg": "none"}, "Choose one of these", id="no signature"),
        pytest.param({"id_token_alg": "HS256"}, "Choose one of these", id="a signature with a shared secret"),
    ],
)
async def test_a_mistake_registers_nothing_and_is_named_at_its_field(
    service: Service, fields: dict[str, str], words: str
) -> None:
    browser = await service.signed_in()
    page = await register(browser, **fields)
    assert page.code == 400
    assert words in text_of(page)
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    assert (await service.store.owned.list(session)).apps == ()


@pytest.mark.gen_test
async def test_a_public_app_has_no_proof_whatever_the_hidden_choice_says(service: Service) -> None:
    page = await register(await service.signed_in(), kind="public", auth_method="client_secret")
    assert (await stored(service, client_id_of(page))).auth_method == "none"


@pytest.mark.gen_test
async def test_pushed_requests_and_dpop_are_demanded_once_ticked(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    assert (await browser.get(app.authorize_url(scope="profile"))).code == 200
    assert (await change(browser, app.client_id, require_pushed="on", dpop_required="on")).code == 303
    kept = await stored(service, app.client_id)
    assert (kept.require_pushed, kept.dpop_required) == (True, True)
    refused = await browser.get(app.authorize_url(scope="profile"))
    assert refused.code == 303
    assert "error=invalid_request" in refused.headers["Location"]
    refused = await app.token(grant_type="refresh_token", refresh_token="none")
    assert json_of(refused)["error"] == "invalid_dpop_proof"
    assert (await change(browser, app.client_id, require_pushed=None, dpop_required=None)).code == 303
    assert (await browser.get(app.authorize_url(scope="profile"))).code == 200


@pytest.mark.gen_test
@pytest.mark.parametrize("fields", [{"auth_method": "private_key_jwt", "jwks": JWKS}, {"jwks": JWKS}])
async def test_a_change_of_keys_is_a_sensitive_event_and_mailed(service: Service, fields: dict[str, str]) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    assert (await change(browser, app.client_id, **fields)).code == 303
    assert "Your app’s public keys or authentication method changed" in text_of(await browser.get("/account/security"))


def test_the_mail_names_each_change_of_how_the_app_proves_itself() -> None:
    app = Registration("mine", "My App", (URI,), ("profile",), api_scopes=("api_0123456789abcde/read",))
    fields = AppForm.of(app).fields()
    assert changed_lines(app, fields) == []
    fields |= {"private_key_jwt": True, "jwks": JWKS, "require_pushed": True, "dpop_required": True}
    fields |= {"id_token_alg": "ES256", "api_scopes": ("api_0123456789abcde/write",)}
    assert changed_lines(app, fields) == [
        "API scope added: write",
        "API scope removed: read",
        "Signs in with its own key; its client secrets no longer work",
        "Public keys changed",
        "Pushed authorization requests (PAR) required: yes",
        "DPoP required: yes",
        "ID token signature: ES256",
    ]


@pytest.mark.gen_test
async def test_an_owner_sees_the_profile_and_saves_nothing_weaker(service: Service) -> None:
    browser = await service.confirmed()
    page = await register(browser, auth_method="private_key_jwt", jwks=JWKS, scope_openid="on")
    client_id = client_id_of(page)
    rules = PROFILES[FAPI2].switched_on("ES256")
    await service.store.apps.update(client_id, profile=FAPI2, id_token_alg="ES256", **rules)
    before = await stored(service, client_id)
    shown = text_of(await browser.get(f"/developer/apps/{client_id}"))
    assert "Profile fapi2" in shown
    assert (await change(browser, client_id, name="Renamed", refresh_retry_seconds="60")).code == 303
    weaker: list[dict[str, str | None]] = [
        {"dpop_required": None},
        {"require_pushed": None},
        {"auth_method": "client_secret"},
    ]
    for fields in weaker:
        refused = await change(browser, client_id, refresh_retry_seconds="60", **fields)
        assert refused.code == 400
        assert "Nothing was changed. This isn’t allowed: the profile fapi2 demands" in text_of(refused)
    after = await stored(service, client_id)
    assert (after.name, after.profile) == ("Renamed", FAPI2)
    assert (after.dpop_required, after.require_pushed, after.auth_method) == (True, True, before.auth_method)
