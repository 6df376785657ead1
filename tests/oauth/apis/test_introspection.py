"""POST /api/oauth/introspect: who may ask, what is told, and that dead tokens all look alike. RFC 7662."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from store import keys
from store.apps.api_record import ApiRegistration, ApiScope
from store.crypto.seal import Token, TokenKind, new_id
from store.lifetimes import ADDRESS, INTROSPECT
from tests.support.http.driver import App, Service, json_of, send
from tests.support.lists.offenders import each

API = ApiRegistration("https://orders.example", "Orders", (ApiScope("orders:read", "See your orders"),))


async def ask(service: Service, token: str, client_id: str, secret: str | None, **more: str) -> HTTPResponse:
    """Asks about a token, with credentials in the body."""
    form = {"token": token, "client_id": client_id, **({"client_secret": secret} if secret else {}), **more}
    return await send(f"{service.base_url}/api/oauth/introspect", "POST", form=form)


async def own(service: Service, token: str, app: App | None = None) -> Any:
    """What an app learns about a token."""
    app = app or service.web
    response = await ask(service, token, app.client_id, app.secret)
    assert response.code == 200, response.body
    return json_of(response)


async def api_of(service: Service) -> tuple[str, str]:
    """The credentials of a registered API."""
    api, secret = await service.store.apis.create(API)
    return api.client_id, secret


@pytest.mark.rfc("7662 2.2 scope")
@pytest.mark.rfc("7662 2.2 times")
@pytest.mark.rfc("7662 2.2 registered")
@pytest.mark.gen_test
async def test_an_app_learns_what_its_own_live_tokens_are(service: Service) -> None:
    tokens = await service.tokens()
    now = (await service.store.client.time())[0]
    facts = await own(service, tokens["access_token"])
    issued = facts.pop("iat")
    assert abs(issued - now) <= 2
    assert type(issued) is type(facts["exp"]) is int
    shared = {
        "active": True,
        "client_id": "web-app",
        "sub": service.ada,
        "scope": tokens["scope"],
        "iss": service.base_url,
        "aud": service.base_url,
    }
    assert facts == {**shared, "exp": issued + 3600, "token_type": "Bearer"}
    facts = await own(service, tokens["refresh_token"])
    assert abs(facts.pop("exp") - now - 30 * 86400) <= 2
    assert facts == shared


@pytest.mark.gen_test
async def test_a_token_with_the_address_alone_is_live(service: Service) -> None:
    app = await service.add_app("mail-app", scopes=("openid", "profile"))
    for scope in ("email", "openid email"):
        token = (await service.tokens(app, scope=scope, prompt="consent"))["access_token"]
        facts = await own(service, token, app)
        assert (facts["active"], facts.get("scope")) == (True, scope)


@pytest.mark.rfc("7662 2.1 form")
@pytest.mark.rfc("7662 2.1 hint")
@pytest.mark.gen_test
async def test_both_ways_of_credentials_and_both_kinds_of_body_work(service: Service) -> None:
    access = (await service.tokens())["access_token"]
    url = f"{service.base_url}/api/oauth/introspect"
    encoded = base64.b64encode(f"web-app:{service.web.secret}".encode()).decode()
    basic = {"Authorization": f"Basic {encoded}"}
    by_basic = await send(url, "POST", form={"token": access, "token_type_hint": "refresh_token"}, headers=basic)
    assert json_of(by_basic)["active"] is True, "a hint is a hint"
    body = f'{{"token": "{access}", "client_id": "web-app", "client_secret": "{service.web.secret}"}}'
    assert json_of(await send(url, "POST", body=body, headers={"Content-Type": "application/json"}))["active"] is True
    assert (await send(url, "POST", form={"token": access, "client_secret": "x"}, headers=basic)).code == 400


@pytest.mark.rfc("7662 5 privacy")
@pytest.mark.gen_test
async def test_a_person_who_never_showed_a_profile_has_the_app_s_own_id(service: Service) -> None:
    tokens = await service.tokens(scope="data:read")
    sub = (await own(service, tokens["access_token"]))["sub"]
    assert sub.startswith("pw_")
    assert (await own(service, tokens["refresh_token"]))["sub"] == sub


@pytest.mark.gen_test
async def test_the_scope_is_what_counts_now(service: Service) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    narrow = json_of(await service.web.refresh(tokens["refresh_token"], scope="data:read"))
    assert (await own(service, narrow["access_token"]))["scope"] == "data:read"
    assert (await own(service, narrow["refresh_token"]))["scope"] == "profile data:read data:write"
    url = service.web.authorize_url(prompt="consent")
    await browser.consent(url, untick=("profile",))
    assert (await own(service, narrow["refresh_token"]))["scope"] == "data:read data:write", "the person took one away"
    await browser.consent(url)
    await service.store.apps.update("web-app", scopes=("profile", "data:write"))
    assert (await own(service, narrow["refresh_token"]))["scope"] == "profile data:write"
    assert await own(service, narrow["access_token"]) == {"active": False}, "nothing is left of it"


@pytest.mark.rfc("7662 2.2 inactive")
@pytest.mark.rfc("7662 2.2 no more")
@pytest.mark.rfc("7662 2.3 no error")
@pytest.mark.rfc("7662 4 expired")
@pytest.mark.rfc("7662 4 revoked")
@pytest.mark.gen_test
@each(
    "way",
    [
        "access token revoked",
        "family revoked",
        "app disconnected",
        "grant marked revoked",
        "person disabled",
        "refresh token used",
        "access token expired",
        "never issued",
        "forged",
        "another kind",
        "no token",
        "endless",
        "surrogates and NUL",
    ],
)
async def test_a_dead_token_is_inactive_and_no_more_is_said(service: Service, way: str) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    store, token = service.store, tokens["access_token"]
    opened = store.sealer.open(TokenKind.ACCESS, token)
    assert opened is not None
    if way == "access token revoked":
        await service.web.revoke(token)
    elif way == "family revoked":
        await service.web.revoke(tokens["refresh_token"])
    elif way == "app disconnected":
        page = await browser.get("/account/apps")
        await browser.submit(page, "/account/apps/web-app/revoke")
    elif way == "grant marked revoked":
        await store.client.hset(keys.grant(service.ada, "web-app"), "revoked_at", 1)
    elif way == "person disabled":
        await store.operator.set_status(service.ada, "disabled")
    elif way == "refresh token used":
        token = tokens["refresh_token"]
        assert (await service.web.refresh(token)).code == 200
    elif way == "access token expired":
        await store.client.delete(keys.token(opened.user, opened.client, opened.id, 0)["access"])
    elif way == "never issued":
        token = store.sealer.seal(Token(TokenKind.ACCESS, service.ada, "web-app", new_id(), 0))
    elif way == "forged":
        token = token[:-1] + ("A" if token[-1] != "A" else "Q")
    elif way == "another kind":
        token = await service.code(browser=browser)
    else:
        token = {"no token": "x", "endless": "lk_at_" + "A" * 60_000, "surrogates and NUL": "\u00e9" * 50}[way]
    assert await own(service, token) == {"active": False}
    if way == "person disabled":
        await store.operator.set_status(service.ada, "active")
    if way == "grant marked revoked":
        await store.client.hdel(keys.grant(service.ada, "web-app"), "revoked_at")
    if way == "refresh token used":
        assert (await own(service, tokens["access_token"]))["active"] is True, "asking about an old token ends nothing"


@pytest.mark.gen_test
async def test_asking_changes_nothing(service: Service) -> None:
    tokens = await service.tokens()
    newer = json_of(await service.web.refresh(tokens["refresh_token"]))

    async def everything() -> dict[bytes, Any]:
        client: Any = service.store.client
        found = [key async for key in client.scan_iter() if key.startswith(b"{" + service.ada[:3].encode())]
        return {key: await client.dump(key) for key in sorted(found)}

    before = await everything()
    for token in (tokens["access_token"], tokens["refresh_token"], newer["access_token"], newer["refresh_token"], "x"):
        await own(service, token)
    assert await everything() == before


@pytest.mark.rfc("7662 2.2 inactive")
@pytest.mark.rfc("7662 2.2 no more")
@pytest.mark.gen_test
async def test_an_app_whose_client_id_begins_like_that_of_an_api_asks_about_its_tokens(service: Service) -> None:
    app = await service.add_app("api_gateway")
    tokens = await service.tokens(app)
    assert json_of(await ask(service, tokens["access_token"], app.client_id, app.secret))["active"] is True


@pytest.mark.rfc("7662 4 authorized")
@pytest.mark.gen_test
@pytest.mark.trap(52)
async def test_a_stranger_learns_no_more_than_about_an_invented_token(service: Service) -> None:
    tokens = await service.tokens()
    other = await service.add_app("other-app")
    client_id, secret = await api_of(service)
    dead = service.store.sealer.seal(Token(TokenKind.ACCESS, service.ada, "other-app", new_id(), 0))
    answers = []
    for asker, key in ((other.client_id, other.secret), (client_id, secret)):
        for token in (tokens["access_token"], tokens["refresh_token"], dead, "lk_at_" + "A" * 100, "x"):
            answers.append(await ask(service, token, asker, key))
    assert {answer.code for answer in answers} == {200}
    assert {answer.body for answer in answers} == {b'{"active":false}'}
    moving = {"X-Request-Id", "Date", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
    same = {tuple((n, v) for n, v in sorted(answer.headers.get_all()) if n not in moving) for answer in answers}
    assert len(same) == 1
    assert (await own(service, tokens["access_token"]))["active"] is True


@pytest.mark.gen_test
@pytest.mark.trap(52)
async def test_every_question_is_the_same_one_script(service: Service) -> None:
    tokens = await service.tokens()
    other = await service.add_app("other-app")
    client_id, secret = await api_of(service)
    await own(service, "x", other)
    await ask(service, "x", client_id, secret)
    ran: list[str] = []
    service.store.scripts.observer = lambda name, *_: ran.append(name)
    before = {(name, word): count for name, word, count in service.store.answers()}
    for asker, key in ((other.client_id, other.secret), (client_id, secret), ("web-app", service.web.secret)):
        for token in (tokens["access_token"], tokens["refresh_token"], "lk_at_" + "A" * 100, "x"):
            await ask(service, token, asker, key)
    service.store.scripts.observer = None
    after = {(name, word): count for name, word, count in service.store.answers()}
    changed = {key: count - before.get(key, 0) for key, count in after.items() if count != before.get(key, 0)}
    portions = changed.pop(("take_portion", "ok"), 0)
    assert changed == {("introspect_token", "dead"): 10, ("introspect_token", "live"): 2}
    assert portions <= 3


@pytest.mark.rfc("7662 2.2 json")
@pytest.mark.rfc("7662 4 cached")
@pytest.mark.gen_test
async def test_answers_are_never_cached_and_carry_the_window(service: Service) -> None:
    tokens = await service.tokens()
    for token in (tokens["access_token"], "x"):
        response = await ask(service, token, "web-app", service.web.secret)
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["X-Ratelimit-Limit"] == str(INTROSPECT.limit)
        assert {"X-Ratelimit-Remaining", "X-Ratelimit-Reset"} <= set(response.headers)
        assert response.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.rfc("7662 4 throttled")
@pytest.mark.gen_test
async def test_a_full_window_is_429_for_its_caller_alone(service: Service) -> None:
    windows = service.store.introspection_windows
    windows.group = type(windows.group)(windows.group.name, 3)
    client_id, secret = await api_of(service)
    codes = [(await ask(service, "x", client_id, secret)).code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]
    refused = await ask(service, "x", client_id, secret)
    assert json_of(refused)["error"] == "rate_limited"
    assert int(refused.headers["Retry-After"]) == json_of(refused)["retryAfter"] >= 1
    assert refused.headers["X-Ratelimit-Remaining"] == "0"
    assert await own(service, "x") == {"active": False}
    assert (await service.web.userinfo((await service.tokens())["access_token"])).code == 200


@pytest.mark.gen_test
async def test_one_app_may_have_limits_of_its_own(service: Service) -> None:
    await service.store.apps.update("web-app", introspections_per_minute=3, calls_per_minute=2)
    codes = [(await ask(service, "x", "web-app", service.web.secret)).code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]
    await service.store.apps.update("web-app", introspections_per_minute=5)
    answer = await ask(service, "x", "web-app", service.web.secret)
    assert (answer.code, answer.headers["X-Ratelimit-Limit"]) == (200, "5"), "a change counts at once"
    device = {"client_id": "web-app", "client_secret": service.web.secret or "", "scope": "profile"}
    url = f"{service.base_url}/api/oauth/device_authorization"
    assert [(await send(url, "POST", form=device)).code for _ in range(4)] == [200, 200, 429, 429]
    await service.store.apps.update("native-app", calls_per_minute=1)
    device = {"client_id": "native-app", "scope": "profile"}
    assert [(await send(url, "POST", form=device)).code for _ in range(2)] == [200, 429]


@pytest.mark.rfc("7662 2.1 authorization")
@pytest.mark.rfc("7662 2.3 credentials")
@pytest.mark.gen_test
@each(
    ("client_id", "secret"),
    [
        pytest.param("web-app", "wrong", id="a wrong secret"),
        pytest.param("web-app", None, id="no secret"),
        pytest.param("nobody", "wrong", id="an unknown app"),
        pytest.param("native-app", None, id="a public app, which proves nothing"),
        pytest.param("native-app", "x", id="a public app with a secret"),
        pytest.param("api_" + "0" * 15, "wrong", id="an unknown API"),
        pytest.param(API.client_id, "wrong", id="an API with a wrong secret"),
        pytest.param(API.client_id, None, id="an API without a secret"),
    ],
)
async def test_who_does_not_prove_itself_is_refused(service: Service, client_id: str, secret: str | None) -> None:
    if await service.store.apis.fresh(API.client_id) is None:
        await service.store.apis.create(API)
    access = (await service.tokens())["access_token"]
    response = await ask(service, access, client_id, secret)
    assert (response.code, json_of(response)["error"]) == (401, "invalid_client")
    assert response.headers["WWW-Authenticate"].startswith("Basic ")


@pytest.mark.rfc("7662 2.1 token")
@pytest.mark.rfc("7662 2.1 authorization")
@pytest.mark.gen_test
async def test_without_credentials_it_is_401_and_without_a_token_400(service: Service) -> None:
    url = f"{service.base_url}/api/oauth/introspect"
    response = await send(url, "POST", form={"token": "x"})
    assert (response.code, json_of(response)["error"]) == (401, "invalid_client")
    bearer = {"Authorization": f"Bearer {(await service.tokens())['access_token']}"}
    assert (await send(url, "POST", form={"token": "x"}, headers=bearer)).code == 400
    response = await ask(service, "", "web-app", service.web.secret)
    assert (response.code, json_of(response)["error"]) == (400, "invalid_request")


@pytest.mark.gen_test
@pytest.mark.trap(35)
async def test_a_disabled_or_deleted_api_is_nobody(service: Service) -> None:
    client_id, secret = await api_of(service)
    assert (await ask(service, "x", client_id, secret)).code == 200
    await service.store.apis.update(client_id, status="disabled")
    assert (await ask(service, "x", client_id, secret)).code == 401
    await service.store.apis.update(client_id, status="active")
    assert (await ask(service, "x", client_id, secret)).code == 200
    await service.store.apis.delete(client_id)
    assert (await ask(service, "x", client_id, secret)).code == 401


@pytest.mark.gen_test
async def test_wrong_credentials_count_for_the_address(service: Service) -> None:
    codes = [(await ask(service, "x", "web-app", "wrong")).code for _ in range(ADDRESS.limit + 1)]
    assert codes == [401] * ADDRESS.limit + [429]
    token = await service.web.token(grant_type="refresh_token", refresh_token="x", client_secret="wrong")
    assert token.code == 429, "the token endpoint counts in the same window"
    assert await own(service, "x") == {"active": False}, "right credentials still count apart"


@pytest.mark.gen_test
async def test_a_refresh_token_ends_with_the_lifetime_of_its_sign_in(service: Service) -> None:
    await service.store.apps.update("web-app", refresh_lifetime_days=1)
    tokens = await service.tokens()
    now = (await service.store.client.time())[0]
    assert abs((await own(service, tokens["refresh_token"]))["exp"] - now - 86400) <= 2
    family = keys.token(*_ids(service, tokens["access_token"]))["family"]
    await service.store.client.hset(family, "born", (now - 86400) * 1000)
    assert await own(service, tokens["refresh_token"]) == {"active": False}
    assert (await own(service, tokens["access_token"]))["active"] is True, "an access token lives its hour"


def _ids(service: Service, access_token: str) -> tuple[str, str, str, int]:
    token = service.store.sealer.open(TokenKind.ACCESS, access_token)
    assert token is not None
    return token.user, token.client, token.id, token.generation


@pytest.mark.gen_test
async def test_a_minted_token_of_a_person_is_live(service: Service) -> None:
    app = await service.store.apps.find("web-app")
    assert app is not None
    minted = await service.store.tokens.mint(service.ada, app, ("data:read",))
    facts = await own(service, minted.access_token)
    assert (facts["scope"], facts["sub"].startswith("pw_")) == ("data:read", True)
    await service.store.people.delete(service.ada, lambda _: None)
    assert await own(service, minted.access_token) == {"active": False}
