"""SIGHUP: what changes at once, what needs a new start, and that a mistake changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import http.client
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from tornado.httpserver import HTTPServer

import logs
import server
from bench.engines import wait_until
from front import FrontServer
from handlers.ops import make_ops_application
from handlers.site import Site
from outbound.config import ConfigError
from outbound.mail import SmtpServer
from outbound.models import Models
from serving.listening import Listening
from serving.reloading import Reloads, read_anew
from settings import SETTINGS, Settings, SettingsError
from store.errors import StartupError
from store.keyring import KeyRing, KeyRingError, Keys
from store.opened import Store
from tests import fronts
from tests.driver import Service, send
from tests.engines import valkey
from tests.mailbox import LETTER, Mailbox, mailer, until
from tests.processes import QUICK, ROOT, Server, children
from tests.raw_http import all_serve, status_of
from tests.spender import MODEL, OpenStream, Spender, text_of
from tests.steady import Steady
from tests.test_ai_processes import CONFIG
from tests.test_workers import freeze, workers
from tests.upstream import TEXT, Plan, ScriptedUpstream

LIVE = {item.name for item in SETTINGS if item.live}
PUBLIC = Settings(base_url="https://id.example.com")
"""Of a server that others reach."""
OLD_RING, NEW_RING = KeyRing.generate(1), KeyRing.generate(2)
OPERATOR_KEY = "k" * 40


@pytest.fixture
def logging_kept(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """How the log was set up, instead of doing so."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(logs, "configure", lambda *form: found.append(form))
    return found


class Reloading:
    """A service that takes up settings. `wanted` is what is read anew."""

    def __init__(self, site: Site, app: Any, http_server: HTTPServer, ring: Keys) -> None:
        self.wanted = PUBLIC
        self.runtime = server.Runtime(PUBLIC, "memory", ring, [], "", site.base_url, None, Models(()))
        self.runtime.reread = lambda: self.wanted
        self.store: Store = site.store
        self.main = Listening(app, http_server, [])
        operations = make_ops_application(site, ())
        self.ops = Listening(operations, fronts.chosen(operations), [])
        self.ops.server.add_sockets([])
        self.reloads = Reloads(self.runtime, site.store, [self.main, self.ops], alone=True)

    @property
    def site(self) -> Site:
        """What handlers know now."""
        found: Site = self.main.application.site
        return found

    async def take(self, **changed: Any) -> None:
        """Reloads with these settings changed."""
        self.wanted = replace(self.wanted, **changed)
        await self.reloads.reload()


@pytest.fixture
def reloading(
    io_loop: Any, site: Site, app: Any, http_server: HTTPServer, keys: Keys, logging_kept: list[Any]
) -> Iterator[Reloading]:
    """The service of the other tests."""

    async def make() -> Reloading:
        return Reloading(site, app, http_server, keys)

    made = io_loop.run_sync(make)
    yield made
    io_loop.run_sync(made.reloads.close)


def front_limits(found: Reloading) -> Any:
    """Of the fast server."""
    return found.main.server.limits if isinstance(found.main.server, FrontServer) else None


PROBES: dict[str, tuple[Any, Callable[[Reloading], Any]]] = {
    "trusted_proxies": ((ip_network("10.0.0.0/8"),), lambda r: r.site.trusted_proxies),
    "connections": (77, lambda r: vars(r.main.server)["_most"] if front_limits(r) else 77),
    "drain_timeout": (3.0, lambda r: r.runtime.settings.drain_timeout),
    "drain_delay": (3.0, lambda r: r.runtime.settings.drain_delay),
    "max_head": (5000, lambda r: r.main.server.conn_params.max_header_size),
    "max_body": (2**21, lambda r: r.site.max_body),
    "idle_timeout": (33.0, lambda r: front_limits(r).idle_seconds if front_limits(r) else 33.0),
    "head_timeout": (3.5, lambda r: front_limits(r).head_seconds if front_limits(r) else 3.5),
    "body_timeout": (4.5, lambda r: r.main.server.conn_params.body_timeout),
    "write_timeout": (5.5, lambda r: front_limits(r).stall_seconds if front_limits(r) else 5.5),
    "slow_memory": (2**21, lambda r: r.main.server.slow.most if front_limits(r) else 2**21),  # type: ignore[attr-defined]  # of the fast one
    "requests": (9, lambda r: r.main.application.bound),
    "ai_calls": (8, lambda r: vars(r.site.ai_calls)["_most"]),
    "downloads": (7, lambda r: vars(r.site.downloads)["_most"]),
    "operator_keys": ((OPERATOR_KEY,), lambda r: (OPERATOR_KEY,) * len(vars(r.ops.application)["keys"])),
    "signup": ("off", lambda r: r.site.signup),
    "app_registration": ("operator", lambda r: r.site.app_registration),
    "apps_per_person": (6, lambda r: r.site.apps_per_person),
    "smtp_url": ("smtp://127.0.0.1:1", lambda r: sends_to(r)),
    "mail_from": ("me@example.org", lambda r: vars(r.site.mail)["_sender"]),
    "smtp_timeout": (2.5, lambda r: r.runtime.settings.smtp_timeout),
    "document_size": (4096, lambda r: r.store.documents.quotas.document_bytes),
    "document_limit": (5, lambda r: r.store.documents.quotas.documents),
    "collection_limit": (4, lambda r: r.store.documents.quotas.collections),
    "storage_limit": (4096, lambda r: r.store.documents.quotas.bytes),
    "ai_request_size": (2048, lambda r: r.site.max_ai_request),
}
"""Another value, and what has it then."""
ELSEWHERE = {"log_level", "log_format", "secret_keys", "ai_config"}
"""Settings with tests of their own."""


def sends_to(found: Reloading) -> str:
    """Where mails go."""
    transport = vars(found.site.mail)["_transport"]
    return "smtp://127.0.0.1:1" if isinstance(transport, SmtpServer) else "nowhere"


def test_every_setting_that_says_so_is_tried() -> None:
    assert PROBES.keys() | ELSEWHERE == LIVE


@pytest.mark.gen_test
@pytest.mark.parametrize("name", PROBES)
async def test_a_setting_is_taken_up(reloading: Reloading, name: str, caplog: pytest.LogCaptureFixture) -> None:
    value, probe = PROBES[name]
    caplog.set_level("INFO")
    before = probe(reloading)
    assert before == value or not (name == "operator_keys" and before)
    await reloading.take(**{name: value})
    assert probe(reloading) == value
    assert f"others now: {name}" in caplog.text
    assert "need a new start" not in caplog.text
    assert (await send(reloading.site.base_url + "/healthz")).code == 200


@pytest.mark.gen_test
async def test_what_is_the_same_stays_the_same(reloading: Reloading, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    mail, models = reloading.site.mail, reloading.site.models
    await reloading.take()
    assert (reloading.site.mail, reloading.site.models) == (mail, models)
    assert "others now: none" in caplog.text


@pytest.mark.gen_test(timeout=20)
async def test_a_mail_that_waits_for_a_server_that_is_away_goes_to_the_one_that_takes_its_place(
    reloading: Reloading,
) -> None:
    mailbox = await Mailbox.open()
    away = mailer(SmtpServer("smtp://127.0.0.1:1"), retries=(1.0,))
    reloading.main.application.site = replace(reloading.site, mail=away)
    away.post(LETTER)
    await until(lambda: away.queue == 1)
    await asyncio.sleep(0.2)  # it was tried once
    await reloading.take(smtp_url=mailbox.url, mail_from="me@example.org")
    assert (await mailbox.mail())["Subject"] == LETTER.subject
    reloading.site.mail.post(LETTER)
    assert (await mailbox.mail(1))["From"].addresses[0].addr_spec == "me@example.org"
    await reloading.site.mail.close(5)
    await mailbox.close()


@pytest.mark.gen_test
async def test_the_log_is_set_up_anew(reloading: Reloading, logging_kept: list[tuple[str, str]]) -> None:
    await reloading.take(log_level="warning", log_format="json")
    assert logging_kept == [("warning", "json")]


@pytest.mark.gen_test
async def test_what_needs_a_new_start_is_named_and_left(reloading: Reloading, caplog: pytest.LogCaptureFixture) -> None:
    await reloading.take(port=9, workers=3, redis_url="redis://h", secret_keys=OLD_RING, signup="off")
    assert "need a new start: port, workers, redis_url, secret_keys" in caplog.text
    assert (reloading.runtime.settings.port, reloading.runtime.settings.workers) == (8080, 1)
    assert (reloading.runtime.settings.redis_url, reloading.runtime.settings.secret_keys) == ("embedded", "")
    assert reloading.site.signup == "off"
    assert OLD_RING not in caplog.text


BEFORE = Settings(ops_port=1, operator_keys=(OPERATOR_KEY,))


def fails(error: Exception) -> Callable[[], Settings]:
    """Settings that cannot be read."""

    def read() -> Settings:
        raise error

    return read


@pytest.mark.parametrize(
    ("reread", "error"),
    [
        pytest.param(fails(SettingsError("no")), SettingsError, id="a file that is wrong"),
        pytest.param(lambda: replace(BEFORE, ai_config=Path("/nowhere")), ConfigError, id="no file of models"),
        pytest.param(lambda: Settings(redis_url="redis://h"), SettingsError, id="a store for which keys are missing"),
        pytest.param(lambda: Settings(ops_port=1, operator_keys=()), SettingsError, id="settings that exclude others"),
    ],
)
def test_what_is_wrong_is_refused(reread: Callable[[], Settings], error: type[Exception]) -> None:
    with pytest.raises(error):
        read_anew(BEFORE, reread)


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        pytest.param(Settings(redis_url="memory"), ("trusted_proxies",), id="in the hands of tests"),
        pytest.param(Settings(), ("trusted_proxies",), id="that posts events to its own machine"),
        pytest.param(Settings(host="0.0.0.0"), (), id="that others reach"),
        pytest.param(Settings(trusted_proxies=(ip_network("10.0.0.1"),)), (), id="behind another proxy"),
    ],
)
def test_only_a_server_that_others_reach_comes_behind_a_proxy(before: Settings, kept: tuple[str, ...]) -> None:
    wanted = replace(before, trusted_proxies=(ip_network("127.0.0.1"),), signup="off")
    fresh = read_anew(before, lambda: wanted)
    assert fresh.kept == kept
    assert set(fresh.changed) == {"signup", "trusted_proxies"} - set(kept)
    assert (fresh.settings.here_alone, fresh.settings.testable) == (before.here_alone, before.testable)


@pytest.mark.gen_test
async def test_a_server_that_is_here_alone_says_that_a_proxy_needs_a_new_start(
    reloading: Reloading, caplog: pytest.LogCaptureFixture
) -> None:
    reloading.runtime.settings = reloading.wanted = Settings()
    await reloading.take(trusted_proxies=(ip_network("127.0.0.1"),), signup="off")
    assert "need a new start: trusted_proxies" in caplog.text
    assert (reloading.site.here_alone, reloading.site.trusted_proxies) == (True, ())
    assert reloading.site.signup == "off"


def test_keys_that_are_none_are_refused() -> None:
    before = Settings(redis_url="redis://h", secret_keys=OLD_RING)
    with pytest.raises(KeyRingError):
        read_anew(before, lambda: replace(before, secret_keys="1:short"))


@pytest.mark.gen_test
async def test_keys_of_another_store_change_nothing(reloading: Reloading) -> None:
    ring = reloading.runtime.keys.ring
    await reloading.store.key_state.check(ring)
    reloading.runtime.settings = reloading.wanted = replace(Settings(), secret_keys=ring.render())
    with pytest.raises(StartupError):
        await reloading.take(secret_keys=NEW_RING, signup="off")
    assert reloading.runtime.keys.ring is ring
    assert (reloading.site.signup, reloading.runtime.settings.signup) == ("open", "open")


@pytest.mark.gen_test
async def test_a_key_in_front_seals_from_then_on(reloading: Reloading, service: Service) -> None:
    old = reloading.runtime.keys.ring.render()
    tokens = await service.tokens()
    reloading.runtime.settings = reloading.wanted = replace(Settings(), secret_keys=old)
    new = KeyRing.generate(9)
    await reloading.take(secret_keys=f"{new},{old}")
    assert reloading.runtime.keys.ring.front.id == 9
    assert (await service.web.userinfo(tokens["access_token"])).code == 200
    assert (await service.tokens())["access_token"] != tokens["access_token"]


class TestModels:
    """The file of models."""

    @pytest.fixture
    def site(self, ai_site: Site) -> Site:
        """The model runs on the scripted upstream."""
        return ai_site

    @pytest.mark.gen_test(timeout=20)
    async def test_a_call_under_way_goes_on_and_the_next_has_the_new_file(
        self, reloading: Reloading, service: Service, upstream: ScriptedUpstream, tmp_path: Path
    ) -> None:
        spender = await Spender.make(service)
        gate = asyncio.Semaphore(4)
        upstream.plan = Plan(gate=gate)
        stream = await (await OpenStream.open(spender)).begin()
        events = await stream.read(3)
        models = tmp_path / "models.toml"
        models.write_text(CONFIG.replace("PORT", upstream.url.rpartition(":")[2]).replace(MODEL, "another-model"))
        await reloading.take(ai_config=models)
        for _ in range(100):
            gate.release()
        events += await stream.rest()
        assert text_of(events) == TEXT
        stream.cut()
        assert (await spender.ask()).code == 404
        assert [model.model_id for model in reloading.site.models.all()] == ["another-model"]
        # The same file, which says something else now.
        models.write_text(models.read_text().replace("another-model", "third-model"))
        await reloading.take()
        assert [model.model_id for model in reloading.site.models.all()] == ["third-model"]
        models.write_text("nonsense")
        with pytest.raises(ConfigError):
            await reloading.take()
        assert [model.model_id for model in reloading.site.models.all()] == ["third-model"]


# Real processes.


def config_file(directory: Path, **values: object) -> str:
    """A configuration file."""
    path = directory / "latchkey.toml"
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()))
    return str(path)


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_server_takes_up_its_file_and_drops_nobody(tmp_path: Path, count: str) -> None:
    async def reload() -> None:
        config = config_file(tmp_path, signup="open")
        with Server("--config", config, "--workers", count, *QUICK) as running:
            port = running.ready().port
            family = workers(running)
            assert status_of(port, "/signup") == 200
            load = Steady(port)
            async with load.at_work(6):
                await load.more(50)
                config_file(tmp_path, signup="off", redis_timeout=4, log_format="json")
                running.process.send_signal(signal.SIGHUP)
                wait_until(lambda: all(status_of(port, "/signup") == 403 for _ in range(12)))
                assert running.log.count("others now: log_format, signup") == 1
                assert running.log.count("need a new start: redis_timeout") == 1
                config_file(tmp_path, signup="open", requests="none")
                running.process.send_signal(signal.SIGHUP)
                wait_until(lambda: "nothing was reloaded" in running.log)
                assert "requests must be a whole number" in running.log
                await load.more(50)
                assert all(status_of(port, "/signup") == 403 for _ in range(12))
                if count == "2":  # one that is started later knows, too
                    os.kill(family[0], signal.SIGKILL)
                    wait_until(lambda: len(set(workers(running)) - {family[0]}) == 2)
                    load.lost.clear()
                    assert all(status_of(port, "/signup") == 403 for _ in range(12))
                else:
                    assert workers(running) == family
            assert (load.lost, load.refused) == ([], 0)
            assert running.stop() == 0
            assert "Traceback" not in running.log

    asyncio.run(reload())


@pytest.mark.parametrize("later", ["signup = 5", 'signup = "open"'], ids=["a mistake", "something else"])
def test_a_worker_that_comes_late_takes_up_what_the_others_have(tmp_path: Path, later: str) -> None:
    config = config_file(tmp_path, signup="open")
    with Server("--config", config, "--workers", "2", *QUICK) as running:
        all_serve(port := running.ready().port)
        late = workers(running)[0]
        freeze(late)
        config_file(tmp_path, signup="off")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "settings were read anew" in running.log)
        Path(config).write_text(later)
        os.kill(late, signal.SIGCONT)
        wait_until(lambda: all(status_of(port, "/signup") == 403 for _ in range(24)))
        assert "nothing was reloaded" not in running.log
        assert late in workers(running)


@pytest.mark.parametrize("count", ["1", "2"])
def test_whatever_is_wrong_with_the_file_the_server_serves_on(tmp_path: Path, count: str) -> None:
    config = config_file(tmp_path, signup="open")
    with Server("--config", config, "--workers", count, *QUICK) as running:
        running.ready()
        for number, text in enumerate(("x = " + "[" * 5000 + "]" * 5000, "port = " + "9" * 5000), start=1):
            Path(config).write_text(text)
            running.process.send_signal(signal.SIGHUP)
            wait_until(lambda number=number: running.log.count("nothing was reloaded") == number)  # type: ignore[misc]  # mypy and defaults of lambdas
        config_file(tmp_path, signup="off")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: all(status_of(running.port, "/signup") == 403 for _ in range(12)))
        assert "Traceback" not in running.log


@pytest.mark.gen_test
async def test_a_defect_leaves_everything_as_it_was_and_the_next_time_is_another_one(
    reloading: Reloading, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> Settings:
        raise RuntimeError("secret")

    asked = asyncio.Event()
    following = asyncio.ensure_future(reloading.reloads.follow(asked))
    reloading.runtime.reread = fails
    asked.set()
    while "nothing was reloaded, everything stays as it was: RuntimeError" not in caplog.text:
        await asyncio.sleep(0)
    reloading.runtime.reread = lambda: replace(Settings(), signup="off")
    asked.set()
    while reloading.site.signup != "off":
        await asyncio.sleep(0)
    following.cancel()


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_reload_that_is_asked_for_while_the_store_starts_is_done(tmp_path: Path, count: str) -> None:
    config = config_file(tmp_path, signup="open")
    with Server("--config", config, "--workers", count, *QUICK) as running:
        wait_until((running.data_dir / "store.lock").exists)
        config_file(tmp_path, signup="off")
        running.process.send_signal(signal.SIGHUP)
        running.ready()
        wait_until(lambda: all(status_of(running.port, "/signup") == 403 for _ in range(12)))
        config_file(tmp_path, signup="open")
        if count == "2":  # what is asked for once is not done again by those that are started later
            family = workers(running)
            os.kill(family[0], signal.SIGKILL)
            wait_until(lambda: len(set(workers(running)) - {family[0]}) == 2)
            with contextlib.suppress(ConnectionError):  # of the one that was killed
                status_of(running.port)
        assert all(status_of(running.port, "/signup") == 403 for _ in range(24))


@pytest.mark.parametrize("count", ["1", "2"])
def test_keys_are_rotated_without_a_new_start(tmp_path: Path, count: str) -> None:
    with valkey() as engine:
        config = config_file(tmp_path, redis_url=engine.url, secret_keys=OLD_RING)
        with Server("--config", config, "--workers", count, *QUICK) as running:
            running.ready()
            config_file(tmp_path, redis_url=engine.url, secret_keys=NEW_RING)  # without the old one
            running.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "nothing was reloaded" in running.log)
            assert "none of the configured secret keys opens what this store holds" in running.log
            config_file(tmp_path, redis_url=engine.url, secret_keys=f"{NEW_RING},{OLD_RING}")
            running.process.send_signal(signal.SIGHUP)
            with engine.client() as client:
                wait_until(lambda: any(b"2" in name for name in client.hkeys("{keyring}:state")))
            wait_until(lambda: "others now: secret_keys" in running.log)
            assert status_of(running.port, "/readyz") == 200
            assert running.stop() == 0
            for ring in (OLD_RING, NEW_RING):
                assert ring.partition(":")[2] not in running.log


@pytest.mark.parametrize("count", ["1", "2"])
def test_systemd_is_told(tmp_path: Path, count: str) -> None:
    config = config_file(tmp_path, signup="open")
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(20)
        options = ("--config", config, "--workers", count, *QUICK)
        with Server(*options, environment={"NOTIFY_SOCKET": address}) as running:
            assert manager.recv(200) == b"READY=1"
            assert status_of(running.ready().port) == 200
            for pid in children(running.process.pid):
                assert b"NOTIFY_SOCKET=" not in store_environ(pid)
            running.process.send_signal(signal.SIGHUP)
            name, _, moment = manager.recv(200).decode().partition("\nMONOTONIC_USEC=")
            assert name == "RELOADING=1"
            assert int(moment) > 0
            assert manager.recv(200) == b"READY=1"
            assert running.stop() == 0
            assert manager.recv(200) == b"STOPPING=1"
            manager.setblocking(False)
            with pytest.raises(BlockingIOError):
                manager.recv(200)


def store_environ(pid: int) -> bytes:
    """The environment that a program was started with; a worker's is the supervisor's of then."""
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    return b"" if b"server.py" in command else Path(f"/proc/{pid}/environ").read_bytes()


def at_a_terminal(*options: str, ignoring: bool = False) -> tuple[subprocess.Popen[bytes], int]:
    """A server whose terminal can be hung up, and the other end of that. `ignoring`: as with nohup."""
    master, slave = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignoring else signal.SIG_DFL)

    process = subprocess.Popen(
        [sys.executable, "server.py", "--port", "0", "--redis-url", "memory", *QUICK, *options],
        cwd=ROOT,
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=take_terminal,
    )
    os.close(slave)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"Latchkey listening")
    return process, master


def test_a_server_ends_with_its_terminal_and_reloads_while_it_is_there(tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path), "--drain-delay", "0")
    process, master = at_a_terminal(*options)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    os.close(master)
    assert process.wait(15) == 0
    assert process.stdout is not None
    process.stdout.close()
    process, master = at_a_terminal(*options, ignoring=True)
    os.close(master)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.terminate()
    assert process.wait(15) == 0
    assert process.stdout is not None
    process.stdout.close()


def test_connections_that_are_kept_outlive_a_reload(tmp_path: Path) -> None:
    config = config_file(tmp_path, signup="open")
    with Server("--config", config, "--redis-url", "memory", *QUICK) as running:
        kept = http.client.HTTPConnection("127.0.0.1", running.ready().port, timeout=10)
        kept.connect()
        port = kept.sock.getsockname()[1]
        for signup, status in (("open", 200), ("off", 403)):
            config_file(tmp_path, signup=signup)
            running.process.send_signal(signal.SIGHUP)
            wait_until(lambda want=status: status_of(running.port, "/signup") == want)
            kept.request("GET", "/signup")
            answer = kept.getresponse()
            answer.read()
            assert answer.status == status
            assert kept.sock.getsockname()[1] == port
        kept.close()
