"""Proofs that don't fit their requests, and nonces. RFC 9449 4.3, 8, 9."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tornado.httputil import HTTPHeaders

from dev.fuzz.jwts import wrong_proofs
from handlers.core.application import Latchkey
from store.clock import wall
from store.crypto.dpop import token_hash
from store.crypto.seal import TokenKind
from tests.support.http.dpop_app import DOCUMENT, USERINFO, BoundApp, bound, error_of, spa
from tests.support.http.driver import Service, bearer_challenge, json_of, send

# Proofs that don't fit


@pytest.mark.rfc("9449 4.2 claims")
@pytest.mark.rfc("9449 4.3-2 single")
@pytest.mark.rfc("9449 4.3-3 claims")
@pytest.mark.rfc("9449 4.3-8 htm")
@pytest.mark.rfc("9449 4.3-9 htu")
@pytest.mark.rfc("9449 4.3-11 time")
@pytest.mark.rfc("9449 4.3-12 ath")
@pytest.mark.rfc("9449 5 error")
@pytest.mark.rfc("9449 7.1 checks")
@pytest.mark.gen_test
@pytest.mark.trap(44)
@pytest.mark.trap(54)
async def test_no_wrong_proof_is_accepted_anywhere(service: Service) -> None:
    app, tokens = await bound(service, await spa(service))
    token, refresh = tokens["access_token"], tokens["refresh_token"]
    at_token, at_call = app.url("/api/oauth/token"), app.url(USERINFO)
    claims = {"jti": "one", "iat": int(wall.time())}
    calls = wrong_proofs(app.device.key, {**claims, "htm": "GET", "htu": at_call, "ath": token_hash(token)})
    for what, proof in calls.items():
        refused = await app.call(token, proof=proof)
        assert error_of(refused) == (401, "invalid_dpop_proof"), what
        assert refused.headers["DPoP-Nonce"]
    for what, proof in wrong_proofs(app.device.key, {**claims, "htm": "POST", "htu": at_token}).items():
        assert error_of(await app.refresh(refresh, proof=proof)) == (400, "invalid_dpop_proof"), what
    for changes in _misfits(at_call):
        refused = await app.call(token, proof=app.device.proof("GET", at_call, token, **changes))
        assert error_of(refused) == (401, "invalid_dpop_proof"), changes
    for changes in ({"htm": "GET"}, {"htu": at_call}, {"iat": int(wall.time()) - 62}):
        proof = app.device.proof("POST", at_token, **changes)
        assert error_of(await app.refresh(refresh, proof=proof)) == (400, "invalid_dpop_proof"), changes
    assert (await app.call(token)).code == 200
    assert (await app.refresh(refresh)).code == 200, "none of them did anything"


def _misfits(url: str) -> list[dict[str, Any]]:
    return [
        {"htm": "POST"},
        {"htu": url.replace("userinfo", "token")},
        {"htu": url.replace("http://", "https://")},
        {"htu": "https://evil.example/api/oauth/userinfo"},
        {"ath": None},
        {"ath": "A" * 43},
        {"iat": int(wall.time()) - 62},
        {"iat": int(wall.time()) + 62},
        {"jti": None},
    ]


@pytest.mark.rfc("9449 4.3-1 one")
@pytest.mark.rfc("9449 7 both")
@pytest.mark.gen_test
async def test_a_request_has_one_proof(service: Service) -> None:
    app, tokens = await bound(service)
    token, url = tokens["access_token"], app.url(USERINFO)
    none = await send(url, headers={"Authorization": f"DPoP {token}"})
    assert error_of(none) == (401, "invalid_dpop_proof")
    headers = HTTPHeaders({"Authorization": f"DPoP {token}", "DPoP": app.device.proof("GET", url, token)})
    headers.add("DPoP", app.device.proof("GET", url, token))
    two = await send(url, headers=headers)
    assert error_of(two) == (401, "invalid_dpop_proof")


@pytest.mark.rfc("9449 4.3-9 htu")
@pytest.mark.gen_test
@pytest.mark.trap(54)
async def test_the_address_in_a_proof_is_that_of_the_base_url(service: Service, server: Latchkey) -> None:
    app, tokens = await bound(service)
    token = tokens["access_token"]
    behind = "https://id.example"
    server.site = replace(server.site, base_url=behind)
    own = app.device.proof("GET", app.url(USERINFO), token)
    assert error_of(await app.call(token, proof=own)) == (401, "invalid_dpop_proof")
    theirs = app.device.proof("GET", f"{behind}:443{USERINFO}", token)
    assert (await app.call(token, proof=theirs)).code == 200
    with_query = app.device.proof("GET", f"{behind}/api/v1/data/notes", token)
    assert (await app.call(token, "/api/v1/data/notes?limit=1", proof=with_query)).code == 200


@pytest.mark.gen_test
async def test_forged_tokens_are_refused_before_their_proofs_are_read(service: Service) -> None:
    for token in ("lk_at_invented", "invented"):
        refused = await BoundApp(service.web).call(token, proof="no proof")
        assert error_of(refused) == (401, "invalid_token")
        assert refused.headers["DPoP-Nonce"]


# Nonces


@pytest.mark.rfc("9449 8 one header")
@pytest.mark.rfc("9449 8.1 syntax")
@pytest.mark.rfc("9449 8.2 uncacheable")
@pytest.mark.gen_test
async def test_every_answer_to_a_proof_has_a_nonce_and_no_other(service: Service) -> None:
    app, tokens = await bound(service)
    for answer in (
        await app.call(tokens["access_token"]),
        await app.call(tokens["access_token"], "/api/v1/data/notes/none"),
        await app.call(tokens["access_token"], "/api/v1/data/-"),
        await app.refresh("lk_rt_invented"),
        await app.token(grant_type="refresh_token", refresh_token="x", client_secret="wrong"),
    ):
        assert len(answer.headers.get_list("DPoP-Nonce")) == 1, answer.code
        assert service.store.proofs.is_recent(answer.headers["DPoP-Nonce"])
        assert re.fullmatch(r"[!#-\[\]-~]+", answer.headers["DPoP-Nonce"]), "RFC 9449 8.1"
        assert answer.headers["Cache-Control"] in ("no-store", "private, no-cache")
    plain = await service.tokens()
    for answer in (
        await service.web.userinfo(plain["access_token"]),
        await send(app.url(USERINFO)),
        await service.web.refresh(plain["refresh_token"]),
    ):
        assert "DPoP-Nonce" not in answer.headers


@pytest.mark.rfc("9449 4.3-10 nonce")
@pytest.mark.rfc("9449 8 match")
@pytest.mark.rfc("9449 8 unpredictable")
@pytest.mark.gen_test
@pytest.mark.trap(54)
async def test_a_nonce_is_ours_and_five_minutes_old_at_most(later: Callable[[float], None], service: Service) -> None:
    app, tokens = await bound(service)
    token, proofs = tokens["access_token"], service.store.proofs
    app.device.nonce = first = proofs.nonce()
    assert (await app.call(token)).code == 200
    later(240)
    assert (await app.call(token)).code == 200
    later(61)
    assert proofs.nonce() != first
    stale = await app.call(token)
    assert error_of(stale) == (401, "use_dpop_nonce")
    assert 'DPoP realm="latchkey", error="use_dpop_nonce"' in stale.headers["WWW-Authenticate"]
    app.device.nonce = stale.headers["DPoP-Nonce"]
    assert (await app.call(token)).code == 200
    sealed = service.store.sealer.open(TokenKind.ACCESS, token)
    assert sealed
    for invented in ("x", "lk_dn_invented", token, service.store.progress.mark("sign-in", "web-app", service.ada)):
        app.device.nonce = invented
        assert error_of(await app.call(token)) == (401, "use_dpop_nonce"), invented
        assert error_of(await app.refresh(tokens["refresh_token"])) == (400, "use_dpop_nonce"), invented


@pytest.mark.rfc("9449 8 demanded")
@pytest.mark.rfc("9449 9 resource")
@pytest.mark.rfc("9449 11.3 downgrade")
@pytest.mark.gen_test
async def test_a_server_may_demand_nonces(service: Service, server: Latchkey) -> None:
    server.site = replace(server.site, dpop_nonce_required=True)
    app = BoundApp(await spa(service))
    code = await service.code(app.app)
    refused = await app.exchange(code)
    assert error_of(refused) == (400, "use_dpop_nonce")
    app.device.nonce = refused.headers["DPoP-Nonce"]
    tokens = json_of(await app.exchange(code))
    assert (await app.call(tokens["access_token"])).code == 200
    app.device.nonce = None
    assert error_of(await app.call(tokens["access_token"])) == (401, "use_dpop_nonce")
    assert (await service.web.userinfo((await service.tokens())["access_token"])).code == 200, "others need none"


# Browsers, and metadata


@pytest.mark.rfc("9449 7.1 exposed")
@pytest.mark.rfc("9449 8 exposed")
@pytest.mark.gen_test
async def test_scripts_of_other_origins_may_send_proofs_and_read_nonces(service: Service) -> None:
    for path in ("/api/oauth/token", USERINFO, DOCUMENT, "/api/v1/ai/v1/messages"):
        headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        preflight = await send(f"{service.base_url}{path}", "OPTIONS", headers=headers)
        assert "DPoP" in preflight.headers["Access-Control-Allow-Headers"].split(", ")
        assert {"DPoP-Nonce", "WWW-Authenticate"} <= {*preflight.headers["Access-Control-Expose-Headers"].split(", ")}


@pytest.mark.rfc("9449 5.1 metadata")
@pytest.mark.gen_test
async def test_the_metadata_name_the_algorithms(service: Service) -> None:
    for name in ("oauth-authorization-server", "openid-configuration", "oauth-protected-resource"):
        metadata = json_of(await send(f"{service.base_url}/.well-known/{name}"))
        assert metadata["dpop_signing_alg_values_supported"] == ["ES256", "RS256", "PS256", "EdDSA", "Ed25519"]


@pytest.mark.rfc("9449 7.1 algs")
@pytest.mark.rfc("9449 7.2 no error")
@pytest.mark.gen_test
async def test_a_call_without_a_token_learns_of_both_schemes(service: Service) -> None:
    refused = await send(f"{service.base_url}{USERINFO}")
    assert refused.headers["WWW-Authenticate"] == bearer_challenge(service.base_url)
    assert refused.headers["WWW-Authenticate"].endswith(', DPoP algs="ES256 RS256 PS256 EdDSA Ed25519"')
