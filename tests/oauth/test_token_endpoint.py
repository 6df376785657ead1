"""POST /api/oauth/token over HTTP. SPEC 2.2, 3.1, 3.2, 4.3, 5.1, 5.2, 8.3."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from store.crypto.seal import Token, TokenKind
from tests.oauth.test_client_authentication import code_fields, error_of
from tests.support.http.driver import CALLBACK, EMAIL, VERIFIER, Service, answer_of, challenge, json_of, send
from tests.support.processes.engines import FakeClock

DAY = 86400


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.3.3 token_type")
@pytest.mark.openid("core 3.1.3.3 no-store")
@pytest.mark.spec("2.2")
@pytest.mark.spec("4.3")
@pytest.mark.spec("8.2")
@pytest.mark.spec("8.3")
@pytest.mark.parametrize("kind", ["form", "json"])
@pytest.mark.spec("1")
async def test_exchange_and_refresh_return_the_token_response(service: Service, kind: str) -> None:
    async def post(fields: dict[str, str]) -> HTTPResponse:
        fields = {**fields, "client_id": "web-app", "client_secret": service.web.secret or ""}
        url = service.base_url + "/api/oauth/token"
        if kind == "form":
            return await send(url, "POST", form=fields)
        headers = {"Content-Type": "application/json; charset=utf-8"}
        return await send(url, "POST", body=json.dumps(fields), headers=headers)

    scope = "profile data:read"
    first = await post(code_fields(await service.code(scope=scope)))
    refresh = json_of(first)["refresh_token"]
    second = await post({"grant_type": "refresh_token", "refresh_token": refresh})
    for response in (first, second):
        assert response.code == 200
        tokens = json_of(response)
        assert set(tokens) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
        assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, scope)
        assert tokens["access_token"].startswith("lk_at_")
        assert tokens["refresh_token"].startswith("lk_rt_")
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Pragma"] == "no-cache"
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["X-RateLimit-Limit"] == "100"
        assert (await service.web.userinfo(tokens["access_token"])).code == 200
    assert json_of(first)["access_token"] != json_of(second)["access_token"]
    assert json_of(second)["refresh_token"] != refresh


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.3.2 redirect_uri")
@pytest.mark.spec("3.2")
@pytest.mark.spec("7")
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"redirect_uri": CALLBACK + "/"}, id="another redirect_uri"),
        pytest.param({"redirect_uri": "https://app.example/second"}, id="another one that is registered"),
        pytest.param({"code_verifier": "w" * 43}, id="another verifier"),
        pytest.param({"code_verifier": None}, id="no verifier"),
        pytest.param({"code": "lk_ac_invented"}, id="an invented code"),
        pytest.param({"code": "x" * 20_000}, id="an endless code"),
        pytest.param({"code": "lk_ac_\u20ac"}, id="a code in another alphabet"),
    ],
)
async def test_a_mismatch_is_invalid_grant_and_uses_nothing_up(
    service: Service, changes: dict[str, str | None]
) -> None:
    app = await service.add_app("two", redirect_uris=(CALLBACK, "https://app.example/second"))
    code = await service.code(app)
    assert error_of(await app.token(**{**code_fields(code), **changes})) == (400, "invalid_grant")
    assert (await app.exchange(code)).code == 200


@pytest.mark.gen_test
@pytest.mark.spec("3.2")
async def test_a_code_lives_sixty_seconds(service: Service, clock: FakeClock) -> None:
    browser = await service.signed_in()
    code = await service.code(browser=browser)
    clock.advance(59)
    assert (await service.web.exchange(code)).code == 200
    for scope in ("profile", "profile data:read data:write"):  # remembered and asked again
        code = await service.code(browser=browser, scope=scope, prompt="consent" if scope != "profile" else None)
        clock.advance(60)
        assert error_of(await service.web.exchange(code)) == (400, "invalid_grant")


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.3.2 code")
@pytest.mark.spec("3.2")
async def test_a_replayed_code_is_refused_and_ends_its_tokens(service: Service) -> None:
    browser = await service.signed_in()
    before = await service.tokens(browser=browser)
    code = await service.code(browser=browser)
    tokens = json_of(await service.web.exchange(code))
    rotated = json_of(await service.web.refresh(tokens["refresh_token"]))
    for _ in range(2):
        assert error_of(await service.web.exchange(code)) == (400, "invalid_grant")
    for access in (tokens["access_token"], rotated["access_token"]):
        assert error_of(await service.web.userinfo(access)) == (401, "invalid_token")
    assert (await service.web.userinfo(before["access_token"])).code == 200  # another family
    assert error_of(await service.web.refresh(rotated["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.gen_test
@pytest.mark.trap(6)
@pytest.mark.spec("5.2")
@pytest.mark.parametrize(
    ("given", "sent", "fits"),
    [
        pytest.param(challenge(), VERIFIER, True, id="challenge and its verifier"),
        pytest.param(challenge(), None, False, id="challenge given, no verifier"),
        pytest.param(challenge(), challenge(), False, id="the challenge as verifier"),
        pytest.param(challenge(), VERIFIER + "v", False, id="a longer verifier"),
        pytest.param(None, VERIFIER, False, id="verifier sent, no challenge given"),
        pytest.param(None, None, True, id="neither"),
    ],
)
async def test_challenge_and_verifier_must_match(
    service: Service, given: str | None, sent: str | None, fits: bool
) -> None:
    code = await service.code(code_challenge=given)
    response = await service.web.exchange(code, code_verifier=sent)
    assert response.code == (200 if fits else 400)
    if not fits:
        assert json_of(response)["error"] == "invalid_grant"


@pytest.mark.gen_test
@pytest.mark.spec("4.3")
@pytest.mark.spec("5.2")
@pytest.mark.spec("8.3")
@pytest.mark.parametrize(
    ("verifier", "status"),
    [
        pytest.param("a" * 42, 400, id="42 characters"),
        pytest.param("a" * 43, 200, id="43 characters"),
        pytest.param("-._~" * 32, 200, id="128 characters"),
        pytest.param("a" * 129, 400, id="129 characters"),
        pytest.param("a" * 42 + "+", 400, id="a character that is not unreserved"),
        pytest.param("a" * 42 + "\n", 400, id="a line feed"),
        pytest.param("a" * 42 + "\u00e9", 400, id="a letter beyond ASCII"),
    ],
)
async def test_verifier_has_43_to_128_unreserved_characters(service: Service, verifier: str, status: int) -> None:
    code = await service.code(code_challenge=challenge(verifier))
    response = await service.web.exchange(code, code_verifier=verifier)
    assert response.code == status
    if status == 400:
        assert json_of(response)["error"] == "invalid_request"


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.3.4 error")
@pytest.mark.spec("4.3")
@pytest.mark.spec("7")
@pytest.mark.parametrize("left_out", ["grant_type", "code", "redirect_uri", "client_id", "refresh_token"])
async def test_missing_parameters_are_invalid_request(service: Service, left_out: str) -> None:
    code = await service.code()
    for value in (None, ""):
        if left_out == "refresh_token":
            response = await service.web.token(grant_type="refresh_token", refresh_token=value)
        else:
            response = await service.web.token(**{**code_fields(code), left_out: value})
        assert error_of(response) == (400, "invalid_request")
        assert left_out in json_of(response)["error_description"]


@pytest.mark.gen_test
@pytest.mark.parametrize("grant_type", ["password", "Client_Credentials", "Authorization_Code", "implicit"])
async def test_other_grant_types_are_unsupported(service: Service, grant_type: str) -> None:
    assert error_of(await service.web.token(grant_type=grant_type)) == (400, "unsupported_grant_type")


@pytest.mark.gen_test
@pytest.mark.spec("3.1")
@pytest.mark.spec("5.5")
async def test_a_reused_refresh_token_ends_every_token_of_the_pair(service: Service) -> None:
    browser = await service.signed_in()
    other_family = await service.tokens(browser=browser)
    first = await service.tokens(browser=browser)
    other_app = await service.tokens(service.native, browser)
    second = json_of(await service.web.refresh(first["refresh_token"]))
    assert error_of(await service.web.refresh(first["refresh_token"])) == (400, "invalid_grant")
    for dead in (first, second, other_family):
        assert error_of(await service.web.userinfo(dead["access_token"])) == (401, "invalid_token")
        assert error_of(await service.web.refresh(dead["refresh_token"])) == (400, "invalid_grant")
    assert (await service.native.userinfo(other_app["access_token"])).code == 200
    # The person can go on: a new authorization gives tokens that live.
    assert (await service.web.userinfo((await service.tokens(browser=browser))["access_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.trap(9)
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"client_secret": "wrong"}, id="a wrong secret"),
        pytest.param({"client_secret": None}, id="no secret"),
        pytest.param({"client_id": "native-app", "client_secret": None}, id="another app, which is public"),
    ],
)
async def test_a_replay_without_valid_client_authentication_ends_nothing(
    service: Service, changes: dict[str, str | None]
) -> None:
    used = await service.tokens()
    live = json_of(await service.web.refresh(used["refresh_token"]))
    assert (await service.web.refresh(used["refresh_token"], **changes)).code in (400, 401)
    assert (await service.web.userinfo(live["access_token"])).code == 200
    assert (await service.web.refresh(live["refresh_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.trap(10)
@pytest.mark.parametrize("act", ["disabled", "deleted"])
async def test_no_grant_works_for_a_disabled_or_deleted_person(service: Service, act: str) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    code = await service.code(browser=browser)
    if act == "disabled":
        await service.store.operator.set_status(EMAIL, "disabled")
    else:
        await service.store.operator.delete(EMAIL)
    assert error_of(await service.web.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error_of(await service.web.exchange(code)) == (400, "invalid_grant")
    assert error_of(await service.web.userinfo(tokens["access_token"])) == (401, "invalid_token")
    if act == "disabled":  # the try to use it was no replay: enabled again, the token is as it was
        await service.store.operator.set_status(EMAIL, "active")
        assert (await service.web.refresh(tokens["refresh_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.spec("3.1")
@pytest.mark.spec("8.3")
@pytest.mark.spec("5.5")
async def test_token_lifetimes(service: Service, clock: FakeClock) -> None:
    tokens = await service.tokens()
    clock.advance(3599)
    assert (await service.web.userinfo(tokens["access_token"])).code == 200
    clock.advance(2)
    assert error_of(await service.web.userinfo(tokens["access_token"])) == (401, "invalid_token")
    clock.advance(30 * DAY - 3700)
    tokens = json_of(await service.web.refresh(tokens["refresh_token"]))
    clock.advance(30 * DAY - 100)  # each new one lives 30 days itself
    tokens = json_of(await service.web.refresh(tokens["refresh_token"]))
    clock.advance(30 * DAY + 1)
    assert error_of(await service.web.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("scope", "granted", "error"),
    [
        pytest.param("profile", "profile", None, id="narrower"),
        pytest.param("data:read profile", "profile data:read", None, id="the same in another order"),
        pytest.param("profile data:write", None, "invalid_scope", id="wider"),
        pytest.param("everything", None, "invalid_scope", id="unknown"),
        pytest.param("profile\tdata:read", None, "invalid_scope", id="malformed"),
    ],
)
async def test_a_refresh_may_narrow_the_scope_for_one_access_token(
    service: Service, scope: str, granted: str | None, error: str | None
) -> None:
    tokens = await service.tokens(scope="profile data:read")
    response = await service.web.refresh(tokens["refresh_token"], scope=scope)
    assert (json_of(response).get("scope"), json_of(response).get("error")) == (granted, error)
    refresh = json_of(response)["refresh_token"] if granted else tokens["refresh_token"]
    assert json_of(await service.web.refresh(refresh))["scope"] == "profile data:read"


@pytest.mark.gen_test
@pytest.mark.trap(5)
async def test_tokens_of_other_kinds_are_refused(service: Service) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    code = await service.code(browser=browser)
    session = browser.cookies["latchkey_session"]
    access, refresh = tokens["access_token"], tokens["refresh_token"]

    def renamed(text: str, prefix: str) -> str:
        return prefix + text[len(prefix) :]

    for wrong in (access, refresh, session, renamed(refresh, "lk_ac_"), renamed(session, "lk_ac_")):
        assert error_of(await service.web.exchange(wrong)) == (400, "invalid_grant")
    for wrong in (access, code, session, renamed(code, "lk_rt_"), renamed(access, "lk_rt_")):
        assert error_of(await service.web.refresh(wrong)) == (400, "invalid_grant")
    for wrong in (refresh, code, session, renamed(refresh, "lk_at_"), renamed(code, "lk_at_")):
        assert error_of(await service.web.userinfo(wrong)) == (401, "invalid_token")
    for wrong in (access, refresh, code, renamed(access, "lk_ss_"), renamed(code, "lk_ss_")):
        other = service.browser()
        other.cookies["latchkey_session"] = wrong
        assert (await other.get("/account")).headers["Location"].startswith("/signin")
    assert (await service.web.exchange(code)).code == 200  # none of it did any harm


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.3.2 client")
@pytest.mark.openid("core 12.1 token")
async def test_codes_and_tokens_of_another_app_are_refused(service: Service) -> None:
    browser = await service.signed_in()
    other = await service.add_app("other")
    tokens = await service.tokens(browser=browser)
    code = await service.code(browser=browser)
    assert error_of(await other.exchange(code)) == (400, "invalid_grant")
    assert error_of(await other.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert (await service.web.exchange(code)).code == 200
    assert (await service.web.refresh(tokens["refresh_token"])).code == 200


@pytest.mark.gen_test
async def test_a_token_of_a_future_generation_is_refused(service: Service) -> None:
    tokens = await service.tokens()
    sealer = service.store.sealer
    opened = sealer.open(TokenKind.ACCESS, tokens["access_token"])
    assert opened
    ahead = sealer.seal(Token(TokenKind.ACCESS, opened.user, opened.client, opened.id, opened.generation + 1))
    assert error_of(await service.web.userinfo(ahead)) == (401, "invalid_token")


@pytest.mark.gen_test
async def test_both_secrets_work_while_one_is_rotated_out(service: Service) -> None:
    tokens = await service.tokens()
    old = service.web.secret
    _, new = await service.store.apps.rotate_secret("web-app")
    for secret in (old, new):
        response = await service.web.refresh(tokens["refresh_token"], client_secret=secret)
        assert response.code == 200
        tokens = json_of(response)
    await service.store.apps.rotate_secret("web-app", drop_old=True)
    for secret in (old, new):
        response = await service.web.refresh(tokens["refresh_token"], client_secret=secret)
        assert error_of(response) == (401, "invalid_client")


@pytest.mark.gen_test
async def test_a_disabled_app_cannot_authenticate_and_its_tokens_are_dead(service: Service) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    await service.store.apps.update("web-app", status="disabled")
    assert error_of(await service.web.refresh(tokens["refresh_token"])) == (401, "invalid_client")
    assert error_of(await service.web.userinfo(tokens["access_token"])) == (401, "invalid_token")
    await service.store.apps.update("web-app", status="active")
    assert (await service.web.userinfo(tokens["access_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.parametrize("seconds", [0, 10])
async def test_a_lost_answer_can_be_repeated_if_the_registration_allows(
    service: Service, clock: FakeClock, seconds: int
) -> None:
    app = await service.add_app("retrying", refresh_retry_seconds=seconds)
    tokens: Any = await service.tokens(app)
    first = await app.refresh(tokens["refresh_token"])
    again = await app.refresh(tokens["refresh_token"])
    if not seconds:
        assert error_of(again) == (400, "invalid_grant")
        return
    assert json_of(again)["refresh_token"] == json_of(first)["refresh_token"]
    clock.advance(seconds + 1)
    assert error_of(await app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error_of(await app.userinfo(json_of(first)["access_token"])) == (401, "invalid_token")


@pytest.mark.gen_test
async def test_a_code_without_scopes_left_is_refused(service: Service) -> None:
    browser = await service.signed_in()
    redirect = await browser.consent(service.web.authorize_url(scope="profile"))
    code = answer_of(redirect)["code"]
    await browser.consent(service.web.authorize_url(scope="profile data:read"), untick=("profile",))
    assert error_of(await service.web.exchange(code)) == (400, "invalid_grant")
