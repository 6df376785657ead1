"""Revocation and disconnection by the person, over HTTP, also while the store is away. SPEC 3.1, 4.5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop
from tornado.testing import bind_unused_port

from handlers.core.site import Site
from handlers.routes import make_application
from tests.conftest import OpenStore
from tests.support.http import http_servers
from tests.support.http.driver import App, Service, json_of, send
from tests.support.processes.engines import DroppingProxy, Engine


@pytest.mark.gen_test
@pytest.mark.spec("3.1")
@pytest.mark.spec("4.5")
async def test_revoking_an_access_token_over_http_ends_only_that_one(service: Service) -> None:
    tokens = await service.tokens()
    assert (await service.web.revoke(tokens["access_token"])).code == 200
    dead = await service.web.userinfo(tokens["access_token"])
    assert dead.code == 401
    assert json_of(dead)["error"] == "invalid_token"
    refreshed = await service.web.refresh(tokens["refresh_token"])
    assert (await service.web.userinfo(json_of(refreshed)["access_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.spec("3.1")
@pytest.mark.spec("4.5")
async def test_revoking_a_refresh_token_ends_its_family_and_a_replay_the_pair(service: Service) -> None:
    browser = await service.signed_in()
    other = await service.tokens(browser=browser)
    tokens = await service.tokens(browser=browser)
    assert (await service.web.revoke(tokens["refresh_token"])).code == 200
    assert (await service.web.userinfo(tokens["access_token"])).code == 401
    assert (await service.web.userinfo(other["access_token"])).code == 200
    # SPEC 3.1: a revoked refresh token presented again revokes all tokens of the pair.
    response = await service.web.refresh(tokens["refresh_token"])
    assert (response.code, json_of(response)["error"]) == (400, "invalid_grant")
    assert (await service.web.userinfo(other["access_token"])).code == 401
    assert (await service.web.refresh(other["refresh_token"])).code == 400


@pytest.mark.gen_test
@pytest.mark.spec("4.5")
@pytest.mark.parametrize("hint", ["access_token", "refresh_token", "something_else", ""])
async def test_the_hint_is_only_a_hint(service: Service, hint: str) -> None:
    tokens = await service.tokens()
    assert (await service.web.revoke(tokens["refresh_token"], token_type_hint=hint)).code == 200
    assert (await service.web.userinfo(tokens["access_token"])).code == 401


@pytest.mark.gen_test
@pytest.mark.trap(7)
@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
async def test_app_b_cannot_revoke_a_token_of_app_a(service: Service, kind: str) -> None:
    tokens = await service.tokens()
    other = await service.add_app("other")
    for credentials in (
        {"client_id": "other", "client_secret": other.secret or ""},
        {"client_id": "other"},
        {"client_id": "native-app"},
    ):
        response = await service.web.revoke(tokens[kind], **credentials)
        assert response.code == 200
        assert json_of(response) == {}
    assert (await service.web.userinfo(tokens["access_token"])).code == 200
    own = {"client_id": "web-app", "client_secret": service.web.secret or ""}
    assert (await service.web.revoke(tokens[kind], **own)).code == 200
    assert (await service.web.userinfo(tokens["access_token"])).code == 401


@pytest.mark.gen_test
@pytest.mark.spec("4.5")
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({}, (400, "invalid_request"), id="no token"),
        pytest.param({"token": ""}, (400, "invalid_request"), id="an empty token"),
        pytest.param(
            {"token": "TOKEN", "client_id": "web-app", "client_secret": "x"}, (401, "invalid_client"), id="wrong"
        ),
        pytest.param({"token": "TOKEN", "client_id": "nobody"}, (401, "invalid_client"), id="an unknown app"),
        pytest.param({"token": "TOKEN", "client_secret": "x"}, (400, "invalid_request"), id="a secret without an id"),
        pytest.param(
            {"token": "TOKEN", "client_id": "native-app", "client_secret": "x"}, (401, "invalid_client"), id="public"
        ),
    ],
)
async def test_malformed_or_unauthenticated_revocations_revoke_nothing(
    service: Service, fields: dict[str, str], error: tuple[int, str]
) -> None:
    tokens = await service.tokens()
    form = {name: value.replace("TOKEN", tokens["access_token"]) for name, value in fields.items()}
    response = await send(f"{service.base_url}/api/oauth/revoke", "POST", form=form)
    assert (response.code, json_of(response)["error"]) == error
    assert (await service.web.userinfo(tokens["access_token"])).code == 200


@pytest.mark.gen_test
@pytest.mark.trap(9)
@pytest.mark.parametrize(
    ("name", "credentials", "survives"),
    [
        pytest.param("web", {}, True, id="nobody says who they are"),
        pytest.param("web", {"client_id": "web-app"}, True, id="only the client_id, which is public"),
        pytest.param("native", {}, True, id="nobody says who they are, of a public app"),
        pytest.param("native", {"client_id": "native-app"}, False, id="the public app, which has no secret"),
        pytest.param("web", {"client_id": "web-app", "client_secret": "SECRET"}, False, id="the app with its secret"),
    ],
)
async def test_a_superseded_refresh_token_ends_nothing_without_client_authentication(
    service: Service, name: str, credentials: dict[str, str], survives: bool
) -> None:
    app: App = getattr(service, name)
    used = await service.tokens(app)
    live = json_of(await app.refresh(used["refresh_token"]))
    fields = {field: value.replace("SECRET", app.secret or "") for field, value in credentials.items()}
    answer = await app.revoke(used["refresh_token"], **fields)
    assert (answer.code, json_of(answer)) == (200, {})
    assert ((await app.userinfo(live["access_token"])).code == 200) is survives
    # The newest token ends its family, whoever presents it.
    assert (await app.revoke(live["refresh_token"])).code == 200
    assert (await app.userinfo(live["access_token"])).code == 401


@pytest.mark.gen_test
@pytest.mark.trap(8)
@pytest.mark.parametrize("seconds", [0, 60])
async def test_no_retry_window_covers_a_revoked_token_or_one_two_generations_old(
    service: Service, seconds: int
) -> None:
    app = await service.add_app("retrying", refresh_retry_seconds=seconds)
    browser = await service.signed_in()
    first = await service.tokens(app, browser)
    second = json_of(await app.refresh(first["refresh_token"]))
    await app.revoke(second["refresh_token"])
    assert (await app.refresh(first["refresh_token"])).code == 400
    first = await service.tokens(app, browser)
    second = json_of(await app.refresh(first["refresh_token"]))
    third = json_of(await app.refresh(second["refresh_token"]))
    assert (await app.refresh(first["refresh_token"])).code == 400
    assert (await app.userinfo(third["access_token"])).code == 401


@pytest.mark.gen_test
@pytest.mark.spec("1")
@pytest.mark.spec("3.1")
@pytest.mark.spec("7")
async def test_disconnecting_an_app_ends_all_its_tokens_at_once(service: Service) -> None:
    browser = await service.signed_in()
    families = [await service.tokens(browser=browser) for _ in range(3)]
    pending = await service.code(browser=browser)
    native = await service.tokens(service.native, browser)
    await service.add_person("bob@example.com")
    bob = await service.tokens(browser=await service.signed_in("bob@example.com"))
    page = await browser.get("/account/apps")
    response = await browser.submit(page, "/account/apps/web-app/revoke")
    assert response.code == 303
    assert response.headers["Location"] == "/account/apps?disconnected"
    for tokens in families:
        dead = await service.web.userinfo(tokens["access_token"])
        assert (dead.code, json_of(dead)["error"]) == (401, "invalid_token")
        assert json_of(await service.web.refresh(tokens["refresh_token"]))["error"] == "invalid_grant"
    assert (await service.web.exchange(pending)).code == 400
    # Other apps of the person, and other people of the app, keep theirs.
    assert (await service.native.userinfo(native["access_token"])).code == 200
    assert (await service.web.userinfo(bob["access_token"])).code == 200
    again = await browser.submit(page, "/account/apps/web-app/revoke")
    assert again.code == 404
    after = (await browser.get("/account/apps")).body.decode()
    assert "Recently disconnected" in after
    assert "Data kept until" in after
    # A new consent connects it again; what was dead stays dead.
    fresh = await service.tokens(browser=browser)
    assert (await service.web.userinfo(fresh["access_token"])).code == 200
    assert (await service.web.userinfo(families[0]["access_token"])).code == 401
    assert b"Recently disconnected" not in (await browser.get("/account/apps")).body


@pytest.fixture
def failing(io_loop: IOLoop, open_store: OpenStore, valkey_engine: Engine) -> Iterator[tuple[Service, DroppingProxy]]:
    """The service on a real engine behind a proxy that can lose requests and answers."""
    with valkey_engine.client() as client:
        client.flushall()
    with DroppingProxy(valkey_engine) as proxy:
        socket, port = bind_unused_port()
        site = Site(open_store(proxy.url), f"http://localhost:{port}")
        server = http_servers.chosen(make_application(site))
        server.add_socket(socket)
        made = Service(site.base_url, site.store)
        io_loop.run_sync(made.populate)
        yield made, proxy
        server.stop()
        io_loop.run_sync(server.close_all_connections)


def is_unavailable(response: HTTPResponse) -> bool:
    """Whether this is the 503 of the interface: JSON, Retry-After, CORS, never a limit figure."""
    body: Any = json_of(response)
    return (
        response.code == 503
        and body["error"] == "temporarily_unavailable"
        and int(response.headers["Retry-After"]) >= 1
        and response.headers["Access-Control-Allow-Origin"] == "*"
        and "X-RateLimit-Limit" not in response.headers
    )


@pytest.mark.gen_test
@pytest.mark.trap(12)
@pytest.mark.parametrize("lost", ["request", "reply"])
@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
async def test_a_revocation_without_a_store_answer_is_503(
    failing: tuple[Service, DroppingProxy], lost: str, kind: str
) -> None:
    service, proxy = failing
    tokens = await service.tokens()
    await service.web.revoke("warm up: the script is loaded")
    await service.web.revoke((await service.tokens(service.native))["access_token"])
    sent = proxy.seen["EVALSHA"]
    (proxy.drop_request if lost == "request" else proxy.drop_reply)("EVALSHA")
    assert is_unavailable(await service.web.revoke(tokens[kind]))
    assert proxy.dropped == 1
    assert proxy.seen["EVALSHA"] - sent == (0 if lost == "request" else 1)  # a writing script is never sent twice
    # Nothing is lost by asking again.
    assert (await service.web.revoke(tokens[kind])).code == 200
    assert (await service.web.userinfo(tokens["access_token"])).code == 401


@pytest.mark.gen_test
@pytest.mark.trap(12)
async def test_everything_is_503_during_an_outage_and_works_afterwards(
    failing: tuple[Service, DroppingProxy],
) -> None:
    service, proxy = failing
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    apps = await browser.get("/account/apps")
    for command in ("EVALSHA", "EVAL", "GET", "PING"):
        proxy.drop_request(command, 50)
    assert is_unavailable(await service.web.revoke(tokens["access_token"]))
    assert is_unavailable(await service.web.revoke("invented"))
    assert is_unavailable(await service.web.refresh(tokens["refresh_token"]))
    assert is_unavailable(await service.web.userinfo(tokens["access_token"]))
    page = await browser.submit(apps, "/account/apps/web-app/revoke")
    assert page.code == 503
    assert b"Not available right now" in page.body
    assert page.headers["Retry-After"] == "1"
    assert "Location" not in page.headers
    for path in ("/account", service.web.authorize_url(prompt="consent")):
        response = await browser.get(path)
        assert response.code == 503
        assert "Location" not in response.headers
    ready = await send(service.base_url + "/readyz")
    assert ready.code == 503
    assert (await send(service.base_url + "/healthz")).code == 200
    proxy.pass_all()
    assert (await service.web.userinfo(tokens["access_token"])).code == 200
    assert (await browser.submit(apps, "/account/apps/web-app/revoke")).code == 303
    assert (await service.web.userinfo(tokens["access_token"])).code == 401
