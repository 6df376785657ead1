"""The server during a store outage, and during a change of its secret keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from store.crypto.keyring import KeyFile, KeyRing, Keys
from store.crypto.seal import Sealer, TokenKind
from store.engine.connect import unix_url
from store.engine.embedded import running_socket
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of, json_of, send
from tests.support.processes.engines import Engine, valkey
from tests.support.processes.processes import QUICK, Server, at_once, opened, shared

pytestmark = pytest.mark.slow

within_a_minute = pytest.mark.gen_test(timeout=60)
Ask = Callable[[], Any]


async def every_call(service: Service, browser: Browser, tokens: dict[str, str]) -> list[tuple[str, Ask]]:
    """A call of every endpoint that needs the store; all would succeed."""
    web, page = service.web, await browser.get(service.web.authorize_url(prompt="consent"))
    decision = {**fields_of(page, "/api/oauth/authorize"), "decision": "allow"}
    password = {"current_password": PASSWORD, "new_password": "another good password"}
    security = fields_of(await browser.get("/account/security"), "/account/security")
    revoke = f"/account/apps/{web.client_id}/revoke"
    xsrf = {"_xsrf": security["_xsrf"]}
    person = {"email": "grace@example.com", "name": "Grace", "password": PASSWORD}

    def post(path: str, form: dict[str, str]) -> Ask:
        return lambda: browser.send(path, "POST", form={**xsrf, **form})

    def get(path: str) -> Ask:
        return lambda: browser.get(path)

    return [
        ("GET /oauth/authorize", get(web.authorize_url())),
        ("POST /api/oauth/authorize", post("/api/oauth/authorize", decision)),
        ("POST /api/oauth/token, code", lambda: web.exchange(tokens["code"])),
        ("POST /api/oauth/token, refresh", lambda: web.refresh(tokens["refresh_token"])),
        ("GET /api/oauth/userinfo", lambda: web.userinfo(tokens["access_token"])),
        ("POST /api/oauth/revoke", lambda: web.revoke(tokens["access_token"])),
        ("POST /api/oauth/revoke, invented", lambda: web.revoke("invented")),
        ("GET /", get("/")),
        ("POST /signin", post("/signin", {"email": EMAIL, "password": PASSWORD})),
        ("POST /signup", post("/signup", person)),
        ("GET /account", get("/account")),
        ("GET /account/apps", get("/account/apps")),
        ("GET /account/security", get("/account/security")),
        ("POST /account/security", post("/account/security", password)),
        ("POST " + revoke, post(revoke, {})),
        ("POST /signout", post("/signout", {})),
        ("GET /readyz", get("/readyz")),
    ]


def stopped(engine: Engine) -> Callable[[], None]:
    """Stops the store; returns the function that restarts it."""
    engine.stop()
    return engine.start


def frozen(engine: Engine) -> Callable[[], None]:
    """Freezes the store; returns the function that resumes it."""
    engine.pause()
    return engine.resume


@within_a_minute
@pytest.mark.trap(12)
@pytest.mark.parametrize(
    "away", [pytest.param(stopped, id="the store was stopped"), pytest.param(frozen, id="the store hangs")]
)
async def test_without_its_store_every_call_is_503_until_it_is_back(
    away: Callable[[Engine], Callable[[], None]],
) -> None:
    with valkey(append_only=True) as engine:
        ring = Keys(KeyRing.parse(KeyRing.generate(1)))
        options = ("--redis-url", engine.url, "--redis-timeout", "1", *QUICK)
        async with opened(engine.url, ring) as store:
            with shared(ring.ring.render(), *options) as server:
                service = Service(server.ready().here, store)
                await service.populate()
                browser = await service.signed_in()
                tokens = await service.tokens(service.web, browser)
                tokens["code"] = await service.code(service.web, browser)
                calls = await every_call(service, browser, tokens)
                cookies = dict(browser.cookies)
                back = away(engine)
                answers = await at_once(call() for _, call in calls)
                for (name, _), answer in zip(calls, answers, strict=True):
                    assert_unavailable(name, answer)
                assert (await send(server.here + "/healthz")).code == 200
                assert (await send(server.here + "/.well-known/oauth-authorization-server")).code == 200
                assert (await browser.get("/signin")).code == 200
                back()
                while (await send(server.here + "/readyz")).code != 200:
                    await asyncio.sleep(0.02)
                browser.cookies = cookies
                if away is stopped:  # a store that hung may have carried out what it was told before
                    assert (await browser.get("/account")).code == 200
                    assert (await service.web.userinfo(tokens["access_token"])).code == 200
                    assert (await service.web.exchange(tokens["code"])).code == 200
                    assert (await service.web.refresh(tokens["refresh_token"])).code == 200
                assert (await service.signed_in()).cookies
                assert "Traceback" not in server.log
                assert server.stop() == 0


def assert_unavailable(name: str, answer: HTTPResponse) -> None:
    """503 with Retry-After, in JSON with the code; never a false success."""
    assert answer.code == 503, name
    assert int(answer.headers["Retry-After"]) >= 1, name
    if answer.headers["Content-Type"] == "application/json":
        assert json_of(answer)["error"] == "temporarily_unavailable", name
    else:
        assert b'action="/signout"' in answer.body, f"{name}: whoever is signed in may want to be signed out"


@pytest.fixture
def rotating() -> Iterator[Server]:
    """A server with the embedded store and the key file that came with it."""
    with Server(*QUICK) as server:
        yield server.ready()


@within_a_minute
async def test_a_running_server_loads_a_new_secret_key(rotating: Server) -> None:
    file = KeyFile(rotating.data_dir / "keys")
    old = file.ring
    socket_path = running_socket(rotating.data_dir)
    assert socket_path
    async with opened(unix_url(socket_path), Keys(old)) as store:
        service = Service(rotating.here, store)
        await service.populate()
        browser = await service.signed_in()
        tokens = await service.tokens(service.web, browser)
        file.write(KeyRing.parse(f"{KeyRing.generate(7)},{old.render()}"))
        sealed_before, sealed_now = Sealer(Keys(old)), Sealer(Keys(file.ring))
        latest, began = tokens, asyncio.get_running_loop().time()
        while sealed_before.open(TokenKind.REFRESH, latest["refresh_token"]) is not None:
            # Tokens of before go on working until the new key is taken up, and after that.
            latest = json_of(await service.web.refresh(latest["refresh_token"]))
            assert asyncio.get_running_loop().time() - began < 10
            await asyncio.sleep(0.1)
        assert sealed_now.open(TokenKind.REFRESH, latest["refresh_token"])
        assert (await service.web.userinfo(tokens["access_token"])).code == 200
        assert (await service.web.userinfo(latest["access_token"])).code == 200
        assert (await browser.get("/account")).code == 200
        assert (await service.web.refresh(latest["refresh_token"])).code == 200
        known = await store.key_state.known()
        assert known == {old.front.id, 7}
    assert rotating.stop() == 0
