"""The server as a process: how it starts, drains, ends, is killed, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import select
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tornado.httpclient import HTTPResponse

from store.connect import unix_url
from store.datadir import Files, is_store
from store.embedded import running_socket
from store.keyring import KeyFile, KeyRing, Keys
from store.seal import Kind, Sealer
from tests.driver import CALLBACK, PASSWORD, App, Browser, Service, fields_of, json_of, send
from tests.engines import Engine, valkey
from tests.processes import QUICK, Server, at_once, children, opened, processes, refused, shared, wait_until

within_a_minute = pytest.mark.gen_test(timeout=60)
# One hash takes some tenths of a second, so that a sign-in can be caught in flight.
SLOW = ("--password-memory", "131072", "--password-iterations", "4")
EMAIL = "ada@example.com"
SECRET = "s" * 43
SEED = {
    "apps": [
        {"client_id": "web", "client_secret": SECRET, "name": "Web", "redirect_uris": [CALLBACK], "scopes": "profile"}
    ],
    "users": [{"email": EMAIL, "name": "Ada", "password": PASSWORD}],
}


@pytest.fixture
def seed(tmp_path: Path) -> str:
    """A seed file with a person and an app."""
    path = tmp_path / "seed.json"
    path.write_text(json.dumps(SEED))
    return str(path)


def status_of(port: int, path: str = "/healthz", host: str = "127.0.0.1") -> int:
    """The status of one GET."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def listens(port: int) -> bool:
    """Whether a new connection is taken."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def has_ipv6() -> bool:
    """Whether this host has an IPv6 loopback address."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


class SignIn:
    """A sign-in that was sent and whose answer was not read yet."""

    def __init__(self, port: int) -> None:
        page = self._page(port)
        form = urlencode({**self.fields, "email": EMAIL, "password": PASSWORD})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": page.headers["Set-Cookie"] or ""}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.request("POST", "/signin", form, headers)
        # Two rounds of the server's loop, and it has begun with what it was sent before.
        assert [status_of(port), status_of(port)] == [200, 200]

    def _page(self, port: int) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/signin")
        page = connection.getresponse()
        text = page.read().decode()
        connection.close()
        name, _, rest = text.partition('name="_xsrf" value="')[2].partition('"')
        assert rest
        self.fields = {"_xsrf": name}
        return page

    def in_flight(self) -> bool:
        """Whether the answer has not come yet."""
        return not select.select([self.connection.sock], [], [], 0)[0]

    def cookie(self) -> str:
        """The session cookie of the answer, which says that the person is signed in."""
        response = self.connection.getresponse()
        assert response.status == 303, response.read()
        cookies = response.headers.get_all("Set-Cookie") or []
        self.connection.close()
        return next(cookie.partition(";")[0] for cookie in cookies if cookie.startswith("latchkey_session="))


def account(port: int, cookie: str) -> int:
    """The status of the account page with this cookie: 200 for a session that lives."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/account", headers={"Cookie": cookie})
        return connection.getresponse().status
    finally:
        connection.close()


def store_pid(data_dir: Path) -> int:
    """The process id of the embedded store."""
    return int(Files(data_dir).pid.read_text())


def store_runs(data_dir: Path, pid: int) -> bool:
    return is_store(pid, Files(data_dir.resolve()))


@pytest.mark.parametrize("url", ["memory", "embedded"])
def test_it_prints_one_line_and_answers_on_both_loopback_addresses(url: str) -> None:
    with Server("--redis-url", url, *QUICK) as server:
        server.ready()
        assert server.out == f"Latchkey listening on http://localhost:{server.port}\n"
        assert server.port > 0
        assert status_of(server.port, "/readyz") == 200
        if has_ipv6():
            assert status_of(server.port, "/readyz", "::1") == 200
        assert server.stop() == 0
        assert "Traceback" not in server.log


def test_a_key_file_is_private() -> None:
    with Server("--redis-url", "memory") as server:
        server.ready()
        assert stat.S_IMODE((server.data_dir / "keys").stat().st_mode) == 0o600
        assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
        ring = (server.data_dir / "keys").read_text().strip().partition(":")[2]
        shown = "".join(line for _, line in processes().values())
        assert len(ring) > 40
        assert ring not in shown
        assert ring not in server.out + server.log


@pytest.mark.parametrize(
    ("workers", "whole_group", "number"),
    [
        pytest.param("1", False, signal.SIGTERM, id="one process, SIGTERM"),
        pytest.param("1", True, signal.SIGINT, id="one process, Ctrl-C in its terminal"),
        pytest.param("2", False, signal.SIGTERM, id="two workers, SIGTERM to the supervisor"),
        pytest.param("2", True, signal.SIGINT, id="two workers, Ctrl-C in their terminal"),
    ],
)
def test_what_is_in_flight_is_answered_and_then_the_store_stops(
    seed: str, tmp_path: Path, workers: str, whole_group: bool, number: signal.Signals
) -> None:
    with Server("--seed", seed, "--workers", workers, *SLOW) as server:
        port, store = server.ready().port, store_pid(server.data_dir)
        sign_in = SignIn(port)
        if whole_group:
            os.killpg(server.process.pid, number)
        else:
            server.process.send_signal(number)
        wait_until(lambda: not listens(port))
        assert sign_in.in_flight(), "the drain came too late to prove anything"
        assert store_runs(server.data_dir, store)
        cookie = sign_in.cookie()
        assert server.wait() == 0
        assert not store_runs(server.data_dir, store)
        assert "Traceback" not in server.log
        # The answer was no empty promise: the session is in the store.
        with Server(*QUICK, data_dir=server.data_dir) as again:
            assert account(again.ready().port, cookie) == 200


def test_a_drain_has_an_end(seed: str) -> None:
    with Server("--redis-url", "memory", "--seed", seed, *SLOW, "--drain-timeout", "0.05") as server:
        sign_in = SignIn(server.ready().port)
        assert server.stop() == 0
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            sign_in.cookie()


def test_a_start_that_is_ended_leaves_no_store_behind() -> None:
    with Server(*QUICK) as server:
        wait_until(Files(server.data_dir).pid.exists)
        store = store_pid(server.data_dir)
        status = server.stop()
        assert status in (0, 130), server.log
        assert not store_runs(server.data_dir, store)
        assert "Traceback" not in server.log


def test_workers_that_are_being_started_are_ended_too() -> None:
    with Server("--workers", "16", *QUICK) as server:
        wait_until(lambda: len(children(server.process.pid)) > 1)  # the store and a worker
        family = {*children(server.process.pid), server.process.pid}
        assert server.stop() == 0
        assert not family & set(processes())
        assert "Traceback" not in server.log


def test_after_kill_9_the_next_start_takes_the_store_over(seed: str) -> None:
    with Server("--seed", seed, *QUICK) as server:
        cookie = SignIn(server.ready().port).cookie()
        store = store_pid(server.data_dir)
        server.kill()
        assert store_runs(server.data_dir, store)
        with Server("--seed", seed, *QUICK, data_dir=server.data_dir) as again:
            assert store_pid(again.ready().data_dir) == store
            assert account(again.port, cookie) == 200
            assert again.stop() == 0
        assert not store_runs(server.data_dir, store)


def test_a_second_server_on_the_directory_is_refused() -> None:
    with Server(*QUICK) as server:
        server.ready()
        status, log = refused(data_dir=server.data_dir)
        assert status == 1
        assert f"A server (process {server.process.pid}) runs on the data directory" in log
        assert "Traceback" not in log
        assert status_of(server.port, "/readyz") == 200


def test_a_port_in_use_is_refused() -> None:
    with Server("--redis-url", "memory") as server:
        port = server.ready().port
        status, log = refused("--redis-url", "memory", port=port)
    assert (status, log) == (1, f"latchkey: cannot listen on localhost:{port}: Address already in use\n")


@pytest.mark.skipif(not has_ipv6(), reason="this host has no IPv6 loopback address")
def test_a_port_in_use_on_the_other_loopback_address_is_refused() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        status, log = refused("--redis-url", "memory", port=port)
    assert (status, log) == (1, f"latchkey: cannot listen on localhost:{port}: Address already in use\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("--workers", "none"), "workers must be a whole number from 1 to 256", id="a word for a number"),
        pytest.param(("--redis-url", "http://localhost"), "redis_url must be embedded, memory", id="another scheme"),
        pytest.param(("--config", "/nonexistent"), "config cannot be read", id="no configuration file"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_line(options: tuple[str, ...], said: str) -> None:
    status, log = refused(*options)
    assert status == 2
    assert log.startswith(f"latchkey: {said}")
    assert log.count("\n") == 1


def test_a_store_that_cannot_be_reached_is_one_line() -> None:
    environment = {
        "LATCHKEY_SECRET_KEYS": KeyRing.generate(1),
        "LATCHKEY_REDIS_URL": "redis://:a-store-password@127.0.0.1:1",
    }
    status, log = refused(environment=environment)
    assert status == 1
    assert log.startswith("latchkey: The store at redis://127.0.0.1:1 cannot be reached")
    assert log.count("\n") == 1
    assert "a-store-password" not in log


def test_a_seed_file_may_be_given_at_every_start(seed: str) -> None:
    with Server("--seed", seed, *QUICK) as server:
        cookie = SignIn(server.ready().port).cookie()
        assert server.stop() == 0
        with Server("--seed", seed, *QUICK, data_dir=server.data_dir) as again:
            assert account(again.ready().port, cookie) == 200
            SignIn(again.port).cookie()

            async def revoke() -> int:
                app = App(again.here, "web", SECRET)
                return (await app.revoke("invented", client_id="web", client_secret=SECRET)).code

            assert asyncio.run(revoke()) == 200


def test_secrets_stand_in_no_command_line() -> None:
    ring = KeyRing.generate(1)
    with valkey() as engine, engine.client() as client:
        client.config_set("requirepass", "a-store-password")
        url = engine.url.replace("unix://", "unix://:a-store-password@")
        environment = {"LATCHKEY_SECRET_KEYS": ring, "LATCHKEY_REDIS_URL": url}
        with Server(environment=environment) as server:
            server.ready()
            shown = {pid: line for pid, (_, line) in processes().items()}
            assert server.process.pid in shown
            for secret in (ring.partition(":")[2], "a-store-password"):
                assert secret not in "\n".join(shown.values())
                assert secret not in server.out + server.log
    # The embedded store is a child that could inherit them.
    with Server(environment={"LATCHKEY_SECRET_KEYS": ring}) as server:
        server.ready()
        environ = Path(f"/proc/{store_pid(server.data_dir)}/environ")
        if environ.exists():
            assert ring.partition(":")[2].encode() not in environ.read_bytes()
        assert not (server.data_dir / "keys").exists()


def test_two_workers_both_serve_and_one_that_dies_is_replaced() -> None:
    with Server("--workers", "2", *QUICK) as server:
        port = server.ready().port
        store = store_pid(server.data_dir)

        def workers() -> list[int]:
            return [pid for pid in children(server.process.pid) if pid != store]

        one, other = workers()
        for stopped in (one, other):  # while one is frozen, the other answers
            os.kill(stopped, signal.SIGSTOP)
            assert {status_of(port, "/readyz") for _ in range(5)} == {200}
            os.kill(stopped, signal.SIGCONT)
        os.kill(one, signal.SIGKILL)
        wait_until(lambda: len(set(workers()) - {one}) == 2)
        [new] = set(workers()) - {one, other}
        os.kill(other, signal.SIGSTOP)
        assert status_of(port, "/readyz") == 200, "the new one serves"
        os.kill(other, signal.SIGCONT)
        assert f"worker {one} ended with status -9" in server.log
        assert server.stop() == 0
        assert not {one, other, new, store} & set(processes())


def test_without_their_supervisor_workers_end(seed: str) -> None:
    with Server("--workers", "2", "--seed", seed, *QUICK) as server:
        cookie = SignIn(server.ready().port).cookie()
        store = store_pid(server.data_dir)
        workers = set(children(server.process.pid)) - {store}
        assert len(workers) == 2
        server.kill()
        wait_until(lambda: not workers & set(processes()), 10)
        assert not listens(server.port)
        with Server(*QUICK, data_dir=server.data_dir) as again:
            assert account(again.ready().port, cookie) == 200
            assert store_pid(again.data_dir) == store


@pytest.mark.parametrize("workers", ["1", "2"])
def test_without_its_embedded_store_the_server_ends_and_says_so(workers: str) -> None:
    with Server("--workers", workers, *QUICK) as server:
        store = store_pid(server.ready().data_dir)
        family = {*children(server.process.pid), server.process.pid}
        os.kill(store, signal.SIGKILL)
        assert server.wait() == 1
        assert "the embedded store ended" in server.log
        assert "Traceback" not in server.log
        assert not family & set(processes())


Ask = Callable[[], Any]


async def every_call(service: Service, browser: Browser, tokens: dict[str, str]) -> list[tuple[str, Ask]]:
    """A call of every endpoint that needs the store, all of which would succeed."""
    web, page = service.web, await browser.get(service.web.authorize_url(prompt="consent"))
    decision = {**fields_of(page, "/api/oauth/authorize"), "decision": "allow"}
    password = {"current_password": PASSWORD, "new_password": "another good password"}
    security = fields_of(await browser.get("/account/security"), "/account/security/password")
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
        ("POST /signin", post("/signin", {"email": service_email(service), "password": PASSWORD})),
        ("POST /signup", post("/signup", person)),
        ("GET /account", get("/account")),
        ("GET /account/apps", get("/account/apps")),
        ("GET /account/security", get("/account/security")),
        ("POST /account/security/password", post("/account/security/password", password)),
        ("POST " + revoke, post(revoke, {})),
        ("POST /signout", post("/signout", {})),
        ("GET /readyz", get("/readyz")),
    ]


def service_email(service: Service) -> str:
    return EMAIL


def stopped(engine: Engine) -> Callable[[], None]:
    engine.stop()
    return engine.start


def frozen(engine: Engine) -> Callable[[], None]:
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
    assert answer.code == 503, name
    assert int(answer.headers["Retry-After"]) >= 1, name
    if name.startswith("POST /api/oauth/") or "userinfo" in name:
        if "authorize" not in name:
            assert json_of(answer)["error"] == "temporarily_unavailable", name


@pytest.fixture
def rotating() -> Iterator[Server]:
    """A server with the embedded store and the key file that came with it."""
    with Server(*QUICK) as server:
        yield server.ready()


@within_a_minute
async def test_a_new_secret_key_is_taken_up_while_the_server_runs(rotating: Server) -> None:
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
        while sealed_before.open(Kind.REFRESH, latest["refresh_token"]) is not None:
            # Tokens of before go on working until the new key is taken up, and after that.
            latest = json_of(await service.web.refresh(latest["refresh_token"]))
            assert asyncio.get_running_loop().time() - began < 10
            await asyncio.sleep(0.1)
        assert sealed_now.open(Kind.REFRESH, latest["refresh_token"])
        assert (await service.web.userinfo(tokens["access_token"])).code == 200
        assert (await service.web.userinfo(latest["access_token"])).code == 200
        assert (await browser.get("/account")).code == 200
        assert (await service.web.refresh(latest["refresh_token"])).code == 200
        known = await store.key_state.known()
        assert known == {old.front.id, 7}
    assert rotating.stop() == 0
