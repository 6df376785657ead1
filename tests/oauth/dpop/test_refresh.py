"""Refresh tokens and codes that are bound to a key: what a thief without it can't. RFC 9449 5, 10."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from tornado.httpclient import HTTPResponse

from store.oauth import pushed as pushed_requests
from tests.support.http.dpop_app import BoundApp, Device, bound, error_of, spa
from tests.support.http.driver import Service, answer_of, json_of, send
from tests.support.http.fapi_app import FapiApp

RETRY = 30
PAR = "/api/oauth/par"


# Refresh tokens


@pytest.mark.rfc("9449 5 bound")
@pytest.mark.rfc("9449 5 validated")
@pytest.mark.gen_test
@pytest.mark.trap(56)
async def test_a_public_apps_refresh_token_works_with_its_key_alone(service: Service) -> None:
    app, tokens = await bound(service, await spa(service))
    other = BoundApp(app.app)
    for _ in range(3):
        refresh = tokens["refresh_token"]
        assert error_of(await other.refresh(refresh)) == (400, "invalid_grant")
        assert error_of(await app.refresh(refresh, proof="")) == (400, "invalid_grant")
        tokens = json_of(await app.refresh(refresh))
        assert (await app.call(tokens["access_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.trap(9)
@pytest.mark.parametrize("retry", [0, RETRY])
async def test_a_replay_without_the_key_ends_nothing_and_one_with_it_does(service: Service, retry: int) -> None:
    app, tokens = await bound(service, await spa(service, refresh_retry_seconds=retry))
    used, other = tokens["refresh_token"], BoundApp(app.app)
    tokens = json_of(await app.refresh(used))
    assert error_of(await other.refresh(used)) == (400, "invalid_grant")
    assert error_of(await app.refresh(used, proof="")) == (400, "invalid_grant")
    assert (await app.call(tokens["access_token"])).code == 200
    latest = json_of(await app.refresh(tokens["refresh_token"]))
    assert error_of(await app.refresh(used)) == (400, "invalid_grant")
    assert error_of(await app.call(latest["access_token"])) == (401, "invalid_token")


@pytest.mark.gen_test
async def test_a_replayed_code_without_the_key_ends_nothing_and_one_with_it_does(service: Service) -> None:
    app = BoundApp(await spa(service))
    code = await service.code(app.app)
    tokens = json_of(await app.exchange(code))
    assert error_of(await BoundApp(app.app).exchange(code)) == (400, "invalid_grant")
    assert error_of(await app.exchange(code, proof="")) == (400, "invalid_grant")
    assert (await app.call(tokens["access_token"])).code == 200
    assert error_of(await app.exchange(code)) == (400, "invalid_grant")
    assert error_of(await app.call(tokens["access_token"])) == (401, "invalid_token")


@pytest.mark.gen_test
@pytest.mark.trap(56)
@pytest.mark.parametrize("retry", [0, RETRY])
async def test_a_thief_who_binds_a_stolen_token_is_noticed(service: Service, retry: int) -> None:
    # The family began unbound. Its rightful app has no key, and its next refresh must still end everything.
    app = await spa(service, refresh_retry_seconds=retry)
    stolen = (await service.tokens(app))["refresh_token"]
    thief = BoundApp(app)
    taken = json_of(await thief.refresh(stolen))
    assert taken["token_type"] == "DPoP"
    assert error_of(await app.refresh(stolen)) == (400, "invalid_grant")
    assert error_of(await thief.call(taken["access_token"])) == (401, "invalid_token")
    assert error_of(await thief.refresh(taken["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.gen_test
async def test_a_public_app_may_begin_with_proofs_at_a_refresh(service: Service) -> None:
    app = BoundApp(await spa(service))
    tokens = await service.tokens(app.app)
    tokens = json_of(await app.refresh(tokens["refresh_token"]))
    assert tokens["token_type"] == "DPoP"
    assert error_of(await app.refresh(tokens["refresh_token"], proof="")) == (400, "invalid_grant")
    assert (await app.refresh(tokens["refresh_token"])).code == 200


@pytest.mark.rfc("9449 5 confidential")
@pytest.mark.gen_test
async def test_an_app_with_a_secret_may_change_its_key(service: Service) -> None:
    # RFC 9449 5: its secret binds its refresh tokens.
    app, tokens = await bound(service)
    other = BoundApp(app.app)
    second = json_of(await other.refresh(tokens["refresh_token"]))
    assert (await other.call(second["access_token"])).code == 200
    assert error_of(await app.call(second["access_token"])) == (401, "invalid_token")
    third = json_of(await service.web.refresh(second["refresh_token"]))
    assert third["token_type"] == "Bearer"
    assert (await service.web.userinfo(third["access_token"])).code == 200


@pytest.mark.gen_test
async def test_a_repeated_refresh_gives_the_same_tokens_to_the_same_key_alone(service: Service) -> None:
    app = BoundApp(await service.add_app("retrying", refresh_retry_seconds=RETRY))
    tokens = json_of(await app.exchange(await service.code(app.app)))
    first = json_of(await app.refresh(tokens["refresh_token"]))
    assert json_of(await app.refresh(tokens["refresh_token"]))["access_token"] == first["access_token"]
    other = BoundApp(app.app)
    assert error_of(await other.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error_of(await app.refresh(tokens["refresh_token"], proof="")) == (400, "invalid_grant")
    assert (await app.call(first["access_token"])).code == 200, "an app with a secret may have several keys"


@pytest.mark.gen_test
async def test_narrower_scopes_are_kept_beside_the_key(service: Service) -> None:
    app, tokens = await bound(service)
    response = await app.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"], scope="data:read")
    token = json_of(response)["access_token"]
    assert json_of(response)["scope"] == "data:read"
    assert error_of(await app.call(token)) == (403, "insufficient_scope")
    assert (await app.call(token, "/api/v1/data/notes")).code == 200
    assert json_of(await app.refresh(json_of(response)["refresh_token"]))["scope"] == "profile data:read data:write"


# Codes


@pytest.mark.rfc("9449 10 dpop_jkt")
@pytest.mark.gen_test
@pytest.mark.parametrize("public", [False, True])
async def test_a_code_bound_by_dpop_jkt_needs_the_key(service: Service, public: bool) -> None:
    app = BoundApp(await spa(service) if public else service.web)
    browser = await service.signed_in()
    for _ in ("asked", "remembered"):
        code = await service.code(app.app, browser, dpop_jkt=app.device.jkt)
        assert error_of(await BoundApp(app.app).exchange(code)) == (400, "invalid_grant")
        assert error_of(await app.exchange(code, proof="")) == (400, "invalid_grant")
        assert (await app.exchange(code)).code == 200, "a failed check uses up no code"


@pytest.mark.gen_test
@pytest.mark.parametrize("jkt", ["A" * 42, "A" * 44, "A" * 42 + "B", "A" * 42 + "="])
async def test_dpop_jkt_is_a_thumbprint(service: Service, jkt: str) -> None:
    browser = await service.signed_in()
    answer = answer_of(await browser.get(service.web.authorize_url(dpop_jkt=jkt)))
    assert answer["error"] == "invalid_request"


@pytest.mark.rfc("9449 10.1 parameter")
@pytest.mark.rfc("9449 10.1 header")
@pytest.mark.gen_test
@pytest.mark.parametrize("way", ["header", "parameter", "both"])
async def test_a_pushed_request_binds_the_code(service: Service, way: str) -> None:
    app = BoundApp(service.web)
    proof = app.device.proof("POST", app.url(PAR)) if way != "parameter" else ""
    response = await pushed(app, proof, app.device.jkt if way != "header" else None)
    assert response.code == 201, response.body
    assert ("DPoP-Nonce" in response.headers) == bool(proof)
    url = {"client_id": app.app.client_id, "request_uri": json_of(response)["request_uri"]}
    code = answer_of(await (await service.signed_in()).consent(f"/oauth/authorize?{urlencode(url)}"))["code"]
    assert error_of(await BoundApp(app.app).exchange(code)) == (400, "invalid_grant")
    assert error_of(await app.exchange(code, proof="")) == (400, "invalid_grant")
    assert (await app.exchange(code)).code == 200


@pytest.mark.rfc("9449 10.1 header")
@pytest.mark.rfc("9449 10.1 mismatch")
@pytest.mark.gen_test
async def test_a_pushed_request_with_a_wrong_proof_is_refused(service: Service) -> None:
    app = BoundApp(service.web)
    proof = app.device.proof("POST", app.url(PAR))
    other = await pushed(app, proof, Device().jkt)
    assert error_of(other) == (400, "invalid_dpop_proof")
    assert (await pushed(app, proof, app.device.jkt)).code == 201, "the refused request did not use the proof up"
    assert error_of(await pushed(app, proof)) == (400, "invalid_dpop_proof")
    elsewhere = app.device.proof("POST", app.url("/api/oauth/token"))
    assert error_of(await pushed(app, elsewhere)) == (400, "invalid_dpop_proof")
    careful = BoundApp(await service.add_app("careful-pusher", dpop_required=True))
    assert (await pushed(careful, "")).code == 201, "only tokens need a proof"


async def pushed(app: BoundApp, proof: str, jkt: str | None = None) -> HTTPResponse:
    """The answer to a pushed request. An empty `proof`: without one."""
    form = dict(parse_qsl(urlsplit(app.app.authorize_url(dpop_jkt=jkt)).query))
    form["client_secret"] = app.app.secret or ""
    return await send(app.url(PAR), "POST", form=form, headers={"DPoP": proof} if proof else {})


# Apps that must use proofs


@pytest.mark.rfc("9449 5.2 always")
@pytest.mark.gen_test
async def test_an_app_registered_with_dpop_required_gets_no_other_tokens(service: Service) -> None:
    app = BoundApp(await service.add_app("careful", dpop_required=True))
    code = await service.code(app.app)
    refused = await app.exchange(code, proof="")
    assert error_of(refused) == (400, "invalid_dpop_proof")
    assert refused.headers["DPoP-Nonce"]
    tokens = json_of(await app.exchange(code))
    assert tokens["token_type"] == "DPoP"
    assert error_of(await app.refresh(tokens["refresh_token"], proof="")) == (400, "invalid_dpop_proof")
    assert (await app.refresh(tokens["refresh_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.trap(54)
async def test_refused_requests_leave_no_marks_of_proofs_in_the_store(service: Service) -> None:
    app = BoundApp(await spa(service))
    code = await service.code(app.app)
    stranger = BoundApp(app.app)
    tokens = json_of(await app.exchange(code))
    marks = await service.store.client.keys("{dpop:*")
    assert len(marks) == 1
    refused = app.device.proof("POST", app.url("/api/oauth/token"))
    for _ in range(2):
        answer = await app.token(
            proof=refused, grant_type="refresh_token", refresh_token=tokens["refresh_token"], scope="x"
        )
        assert error_of(answer) == (400, "invalid_scope")
    assert error_of(await stranger.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error_of(await app.refresh(tokens["refresh_token"], proof=refused)) == (200, "")
    assert error_of(await app.refresh(tokens["refresh_token"], proof=refused)) == (400, "invalid_dpop_proof")
    for answer in (await app.exchange(code), await app.refresh(tokens["refresh_token"]), await stranger.exchange(code)):
        assert error_of(answer) == (400, "invalid_grant")
    assert len(await service.store.client.keys("{dpop:*")) == 2, "those of the exchange and of the refresh"


@pytest.mark.gen_test
async def test_a_pushed_request_without_room_takes_the_mark_of_its_proof_back(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await FapiApp.of(service)
    monkeypatch.setattr(pushed_requests, "MOST_PUSHED", 1)
    assert (await app.push()).code == 201
    proof = app.dpop("par")
    for _ in range(2):
        assert error_of(await app.push(dpop=proof)) == (429, "rate_limited")
    monkeypatch.undo()
    assert (await app.push(dpop=proof)).code == 201
    assert error_of(await app.push(dpop=proof)) == (400, "invalid_dpop_proof")
