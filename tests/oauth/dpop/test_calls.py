"""Tokens bound to a key (RFC 9449), over HTTP: every call needs the key, and others learn of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from handlers.core.auth.challenges import ALGS
from store import keys, parsed_keys
from store.apps.api_record import ApiRegistration, ApiScope
from store.clock import wall
from store.crypto.jose.private import PrivateKey
from store.crypto.seal import TokenKind
from store.lifetimes import OAUTH
from tests.support.http.dpop_app import DOCUMENT, USERINFO, BoundApp, Device, bound, error_of, spa
from tests.support.http.driver import Service, bearer_challenge, json_of, send
from tests.support.store.checked_store import checked, findings

# Tokens that are bound


@pytest.mark.rfc("9449 5 all grants")
@pytest.mark.rfc("9449 5 token_type")
@pytest.mark.rfc("9449 11.2 short")
@pytest.mark.gen_test
async def test_a_proof_binds_the_tokens_of_a_code_to_its_key(service: Service) -> None:
    app, tokens = await bound(service)
    assert (tokens["token_type"], tokens["expires_in"]) == ("DPoP", 3600)
    answer = await app.call(tokens["access_token"])
    assert (answer.code, json_of(answer)["sub"]) == (200, service.ada)
    refreshed = json_of(await app.refresh(tokens["refresh_token"]))
    assert refreshed["token_type"] == "DPoP"
    assert (await app.call(refreshed["access_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.parametrize("algorithm", ["RS256", "EdDSA"])
async def test_other_kinds_of_keys_work_too(service: Service, algorithm: str) -> None:
    app = BoundApp(service.web, Device(PrivateKey.generate(algorithm)))
    tokens = json_of(await app.exchange(await service.code()))
    assert (await app.call(tokens["access_token"])).code == 200


@pytest.mark.rfc("9449 7.1 error")
@pytest.mark.rfc("9449 7.1 algs")
@pytest.mark.rfc("9449 7.2 bearer")
@pytest.mark.rfc("9449 7.2 scheme")
@pytest.mark.gen_test
@pytest.mark.trap(54)
async def test_a_bound_token_is_no_bearer_token_and_an_unbound_one_is_no_dpop_token(service: Service) -> None:
    app, tokens = await bound(service)
    refused = await service.web.userinfo(tokens["access_token"])
    assert error_of(refused) == (401, "invalid_token")
    assert refused.headers["WWW-Authenticate"] == bearer_challenge(service.base_url, 'error="invalid_token"')
    plain = await service.tokens()
    assert plain["token_type"] == "Bearer"
    refused = await app.call(plain["access_token"])
    assert error_of(refused) == (401, "invalid_token")
    assert refused.headers["WWW-Authenticate"].startswith(f'DPoP realm="latchkey", error="invalid_token", {ALGS}')


@pytest.mark.rfc("9449 4.3-12 key")
@pytest.mark.rfc("9449 7.1 checks")
@pytest.mark.gen_test
@pytest.mark.trap(54)
async def test_a_call_needs_the_key_of_its_token(service: Service) -> None:
    _, tokens = await bound(service)
    other = BoundApp(service.web)
    assert error_of(await other.call(tokens["access_token"])) == (401, "invalid_token")


@pytest.mark.rfc("9449 11.1 once")
@pytest.mark.gen_test
@pytest.mark.trap(54)
async def test_a_proof_counts_once_at_a_call(service: Service) -> None:
    app, tokens = await bound(service)
    token = tokens["access_token"]
    proof = app.device.proof("GET", app.url(USERINFO), token)
    first = await app.call(token, proof=proof)
    again = await app.call(token, proof=proof)
    assert (first.code, error_of(again)) == (200, (401, "invalid_dpop_proof"))
    assert 'error="invalid_dpop_proof"' in again.headers["WWW-Authenticate"]
    # A replay takes nothing from the window of the person.
    figures = [int(one.headers["X-RateLimit-Remaining"]) for one in (first, await app.call(token))]
    assert figures[0] - figures[1] == 1
    # The same id is another proof at another address, and from another key.
    put = app.device.proof("PUT", app.url(DOCUMENT), token, jti="one")
    get = app.device.proof("GET", app.url(DOCUMENT), token, jti="one")
    assert (await app.call(token, DOCUMENT, "PUT", body="{}", proof=put)).code == 201
    assert (await app.call(token, DOCUMENT, proof=get)).code == 200


@pytest.mark.gen_test
@pytest.mark.trap(54)
async def test_a_proof_counts_once_at_the_token_endpoint(service: Service) -> None:
    app, tokens = await bound(service, await spa(service))
    proof = app.device.proof("POST", app.url("/api/oauth/token"))
    first = await app.refresh(tokens["refresh_token"], proof=proof)
    second = await app.refresh(json_of(first)["refresh_token"], proof=proof)
    assert (first.code, error_of(second)) == (200, (400, "invalid_dpop_proof"))
    assert (await app.refresh(json_of(first)["refresh_token"])).code == 200, "the refused request rotated nothing"


@pytest.mark.rfc("9449 11.1 limited")
@pytest.mark.rfc("9449 11.1 once")
@pytest.mark.gen_test
async def test_marks_of_proofs_outlive_the_proofs(later: Callable[[float], None], service: Service) -> None:
    app, tokens = await bound(service)
    token = tokens["access_token"]
    early = app.device.proof("GET", app.url(USERINFO), token, iat=int(wall.time()) + 59)
    assert (await app.call(token, proof=early)).code == 200
    later(118)
    assert error_of(await app.call(token, proof=early)) == (401, "invalid_dpop_proof")
    later(3)
    refused = await app.call(token, proof=early)
    assert "60 seconds" in json_of(refused)["error_description"]
    later(120)
    assert [key async for key in service.store.client.scan_iter("*dpop:*")] == []


@pytest.mark.gen_test
async def test_a_refused_call_leaves_its_proof_unused(service: Service) -> None:
    app, tokens = await bound(service, scope="profile")
    token = tokens["access_token"]
    proof = app.device.proof("GET", app.url(DOCUMENT), token)
    assert error_of(await app.call(token, DOCUMENT, proof=proof)) == (403, "insufficient_scope")
    challenge = (await app.call(token, DOCUMENT)).headers["WWW-Authenticate"]
    assert challenge.startswith(f'DPoP realm="latchkey", error="insufficient_scope", scope="data:read", {ALGS}')
    assert [key async for key in service.store.client.scan_iter("*:dpop:*")] == []


@pytest.mark.gen_test
async def test_a_call_beyond_the_limit_leaves_its_proof_unused(service: Service) -> None:
    app, tokens = await bound(service)
    token, client = tokens["access_token"], service.store.client
    window, now = keys.limit(service.ada, OAUTH.name), int(wall.time() * 1000)
    await client.set(window, f"{now} {OAUTH.limit} {now}", px=OAUTH.period)
    proof = app.device.proof("GET", app.url(USERINFO), token)
    assert error_of(await app.call(token, proof=proof)) == (429, "rate_limited")
    assert [key async for key in client.scan_iter("*:dpop:*")] == []
    await client.delete(window)
    assert (await app.call(token, proof=proof)).code == 200
    assert error_of(await app.call(token, proof=proof)) == (401, "invalid_dpop_proof")


@pytest.mark.gen_test
async def test_a_call_in_two_steps_counts_its_proof_once(service: Service) -> None:
    # A long body is read after the window has counted the request, so two scripts look at the proof.
    app, tokens = await bound(service)
    token, body = tokens["access_token"], '{"text": "' + "a" * 200_000 + '"}'
    proof = app.device.proof("PUT", app.url(DOCUMENT), token)
    assert (await app.call(token, DOCUMENT, "PUT", body=body, proof=proof)).code == 201
    assert error_of(await app.call(token, DOCUMENT, "PUT", body=body, proof=proof)) == (401, "invalid_dpop_proof")
    # A refused body counts as well: its proof is used up.
    proof = app.device.proof("PUT", app.url(DOCUMENT), token)
    assert error_of(await app.call(token, DOCUMENT, "PUT", body="{", proof=proof)) == (400, "invalid_request")
    assert error_of(await app.call(token, DOCUMENT, "PUT", body="{}", proof=proof)) == (401, "invalid_dpop_proof")


@pytest.mark.gen_test
async def test_every_call_of_the_api_takes_bound_tokens(service: Service) -> None:
    app, tokens = await bound(service, scope="profile credits:read credits:spend apps:read data:read data:write")
    token = tokens["access_token"]
    asked = '{"model": "latchkey-echo", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}'
    for method, path, body in (
        ("GET", USERINFO, None),
        ("POST", USERINFO, ""),
        ("GET", "/api/v1/credits/balance", None),
        ("GET", "/api/v1/apps", None),
        ("PUT", DOCUMENT, "{}"),
        ("GET", DOCUMENT, None),
        ("GET", "/api/v1/data/notes?limit=5", None),
        ("GET", "/api/v1/data/_meta/usage", None),
        ("DELETE", DOCUMENT, None),
        ("GET", "/api/v1/ai/models", None),
        ("POST", "/api/v1/ai/messages", asked),
        ("GET", "/api/v1/ai/v1/models", None),
        ("POST", "/api/v1/ai/v1/messages", asked),
    ):
        headers = {"Content-Type": "application/json"}
        proof = app.device.proof(method, app.url(path), token)
        answer = await app.call(token, path, method, body=body, headers=headers, proof=proof)
        assert answer.code in (200, 201, 204, 402), (path, answer.body)
        assert answer.headers["DPoP-Nonce"].startswith("lk_dn_")
        replayed = await app.call(token, path, method, body=body, headers=headers, proof=proof)
        assert (replayed.code, b"used before" in replayed.body) == (401, True), path
        assert replayed.headers["DPoP-Nonce"].startswith("lk_dn_")
        bearer = {"Authorization": f"Bearer {token}", **headers}
        assert (await send(app.url(path), method, body=body, headers=bearer)).code == 401, path


# Rows


@pytest.mark.gen_test
async def test_unbound_rows_are_as_before_and_bound_ones_name_the_key_once(service: Service) -> None:
    async def rows(tokens: Mapping[str, Any]) -> tuple[bytes, dict[bytes, bytes]]:
        token = service.store.sealer.open(TokenKind.REFRESH, tokens["refresh_token"])
        assert token
        names = keys.token(token.user, token.client, token.id, token.generation)
        client: Any = service.store.client
        return await client.get(names["access"]), await client.hgetall(names["family"])

    access, family = await rows(await service.tokens())
    assert (access, set(family)) == (b"1", {b"generation", b"scope", b"epoch"})
    app, tokens = await bound(service)
    access, family = await rows(tokens)
    assert (access, set(family)) == (f"*{app.device.jkt}".encode(), {b"generation", b"scope", b"epoch"})
    app, tokens = await bound(service, await spa(service))
    access, family = await rows(tokens)
    assert (access, family[b"jkt"]) == (f"*{app.device.jkt}".encode(), app.device.jkt.encode())


@pytest.mark.gen_test
async def test_a_check_of_the_store_knows_all_of_it(service: Service) -> None:
    app, tokens = await bound(service, await spa(service))
    browser = await service.signed_in()
    await service.code(app.app, browser, dpop_jkt=app.device.jkt)
    assert (await browser.get(app.app.authorize_url(dpop_jkt=app.device.jkt, prompt="consent"))).code == 200
    narrower = await app.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"], scope="data:read")
    assert (await app.call(json_of(narrower)["access_token"], "/api/v1/data/notes")).code == 200
    late = BoundApp(app.app)
    assert (await late.refresh((await service.tokens(app.app))["refresh_token"])).code == 200
    kinds = [parsed_keys.read(key.decode()) for key in [one async for one in service.store.client.scan_iter()]]
    assert {"request", "code", "family", "access", "dpop", "dpop-token"} <= {one.kind for one in kinds if one}
    report = await checked(service.store, deep=True)
    assert findings(report) == []


# What others learn


@pytest.mark.rfc("9449 6 identify")
@pytest.mark.rfc("9449 6.2 cnf")
@pytest.mark.rfc("9449 6.2 token_type")
@pytest.mark.gen_test
async def test_introspection_tells_the_key_of_an_access_token(service: Service) -> None:
    app, tokens = await bound(service)
    form = {"client_id": "web-app", "client_secret": service.web.secret or ""}
    url = app.url("/api/oauth/introspect")
    facts = json_of(await send(url, "POST", form={**form, "token": tokens["access_token"]}))
    assert (facts["active"], facts["token_type"], facts["cnf"]) == (True, "DPoP", {"jkt": app.device.jkt})
    assert facts["scope"] == "profile data:read data:write"
    facts = json_of(await send(url, "POST", form={**form, "token": tokens["refresh_token"]}))
    assert (facts["active"], "cnf" in facts) == (True, False), "its secret binds the refresh token"
    facts = json_of(await send(url, "POST", form={**form, "token": (await service.tokens())["access_token"]}))
    assert (facts["token_type"], "cnf" in facts) == ("Bearer", False)


@pytest.mark.rfc("9449 5 all grants")
@pytest.mark.rfc("9449 6 identify")
@pytest.mark.rfc("9449 6.1 jkt")
@pytest.mark.rfc("9449 6.2 cnf")
@pytest.mark.rfc("9449 6.2 token_type")
@pytest.mark.gen_test
@pytest.mark.parametrize("token_format", ["opaque", "jwt"])
async def test_an_apps_own_token_is_bound_too(service: Service, token_format: str) -> None:
    store = service.store
    api = ApiRegistration("https://orders.example", "Orders", (ApiScope("read", "Read"),), token_format=token_format)
    made, secret = await store.apis.create(api)
    app = BoundApp(await service.add_app("machine", scopes=(), api_scopes=(f"{api.client_id}/read",)))
    proof = app.device.proof("POST", app.url("/api/oauth/token"))
    answer = json_of(await app.token(grant_type="client_credentials", proof=proof))
    assert answer["token_type"] == "DPoP"
    assert error_of(await app.token(grant_type="client_credentials", proof=proof)) == (400, "invalid_dpop_proof")
    if token_format == "jwt":
        claims = (await store.signing_keys.verify(answer["access_token"], types=("at+jwt",))).claims
        assert claims["cnf"] == {"jkt": app.device.jkt}
    form = {"client_id": made.client_id, "client_secret": secret, "token": answer["access_token"]}
    facts = json_of(await send(app.url("/api/oauth/introspect"), "POST", form=form))
    assert (facts["scope"], facts["token_type"], facts["cnf"]) == ("read", "DPoP", {"jkt": app.device.jkt})
    assert findings(await checked(store)) == []
    plain = json_of(await app.token(grant_type="client_credentials", proof=""))
    assert plain["token_type"] == "Bearer"
