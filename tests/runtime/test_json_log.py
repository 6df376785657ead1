"""The JSON log: every line of every process is one object, with no more data than the text log."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dev.lab.engines import wait_until
from handlers.ops.credits import OPS_ROUTES
from handlers.routes import ROUTES
from observability import logs
from observability.logs import ConsoleFormatter, JsonFormatter, Listens
from store import keys
from tests.runtime.test_logging import LOGGERS, assert_none_of, walk_through
from tests.runtime.test_tracing import Lines
from tests.support.http.driver import EMAIL, Service
from tests.support.http.raw_http import all_serve, seed_file, status_of, store_pid
from tests.support.lists.offenders import each
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, Server, children, refused, refused_port

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def lines_of(text: str) -> list[dict[str, Any]]:
    """The lines, each of which must be an object with what every line has."""
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        assert list(line)[:4] == ["ts", "level", "logger", "message"], line
        assert re.fullmatch(STAMP, line["ts"])
        assert line["level"] in ("debug", "info", "warning", "error", "critical")
        assert None not in line.values()
    return found


def record(message: object, *args: object, level: int = logging.INFO, **more: Any) -> logging.LogRecord:
    """A record of the logger `x`."""
    made = logging.LogRecord("x", level, __file__, 1, message, args, None)
    vars(made).update(more)
    return made


def test_a_log_line_is_one_json_object() -> None:
    formatter = JsonFormatter()
    shown = formatter.format(record("said %s", "so", created=1_700_000_000.0429))
    assert shown == '{"ts":"2023-11-14T22:13:20.042Z","level":"info","logger":"x","message":"said so"}'
    later = formatter.format(record("more", level=logging.WARNING, created=1_700_000_001.9999))
    assert later == '{"ts":"2023-11-14T22:13:21.999Z","level":"warning","logger":"x","message":"more"}'


@pytest.mark.trap(21)
@pytest.mark.parametrize(
    "text", ["two\nlines", "\x1b[31mred\x1b[0m", "\u2028 \x85 \x00", '"quoted\\"', "\ud800 half a pair", "\U0001f511"]
)
def test_every_message_stays_on_one_line(text: str) -> None:
    shown = JsonFormatter().format(record("%s", text))
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert json.loads(shown)["message"] == text


def test_an_error_has_its_name_and_its_traceback() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        line = json.loads(JsonFormatter().format(record("failed", exc_info=sys.exc_info())))
    assert line["error"] == "ValueError"
    assert line["traceback"].startswith("Traceback (most recent call last):\n")
    assert line["traceback"].endswith("\nValueError: wrong")
    assert "traceback" not in json.loads(JsonFormatter().format(record("no", exc_info=(None, None, None))))


def test_the_text_log_has_logging_format() -> None:
    usual = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    ours = ConsoleFormatter()
    for created in (1_700_000_000.042, 1_700_000_000.999, 1_700_000_001.0, 0.0):
        made = record("said %s", "so", created=created, msecs=created % 1 * 1000)
        assert ours.format(made) == usual.format(made)


@pytest.fixture
def json_log() -> Iterator[Lines]:
    """Every logger at its most verbose, in JSON."""
    lines = Lines()
    logging.getLogger().addHandler(lines)
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield lines
    logging.getLogger().removeHandler(lines)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.gen_test
@pytest.mark.trap(24)
async def test_the_whole_flow_and_failures_leave_no_secret_in_it(
    service: Service, json_log: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    secrets = await walk_through(service)
    tokens = await service.tokens(browser=await service.signed_in(EMAIL, "a password nobody may read"))
    secrets |= {"another access": tokens["access_token"], "another refresh": tokens["refresh_token"]}
    # A row of the wrong type: the script that meets it raises in the middle of its work.
    await service.store.client.delete(keys.grant(service.ada, "web-app"))
    await service.store.client.sadd(keys.grant(service.ada, "web-app"), "no hash")
    assert (await service.web.userinfo(tokens["access_token"])).code == 500
    text = "\n".join(json_log.lines)
    for name, secret in secrets.items():
        assert secret not in text, f"{name} stands in the log"
    assert_none_of(caplog, secrets)
    assert EMAIL not in text
    found = lines_of(text)
    accesses = [line for line in found if line["logger"] == "latchkey.access"]
    assert len(accesses) > 20
    for line in accesses:
        assert {"request_id", "method", "path", "status", "duration_ms"} <= set(line)
        assert "?" not in line["path"]
    exchanges = [line for line in accesses if line.get("route") == "token" and line["status"] == 200]
    assert exchanges
    assert {line["client_id"] for line in exchanges} == {"web-app"}
    assert all(line["bytes"] > 100 for line in exchanges)
    # What a library or a handler says in between carries the id of the request that it was about.
    [defect] = [line for line in found if "traceback" in line]
    assert defect["request_id"] == accesses[-1]["request_id"]
    assert accesses[-1]["level"] == "warning"


def test_every_handler_belongs_to_one_route_for_the_log() -> None:
    for routes in (ROUTES, OPS_ROUTES):
        assert len({route.handler for route in routes}) == len(routes)


@pytest.fixture
def configured(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`logs.configure`. The end of the test restores what it changes in the process."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, sys.excepthook, threading.excepthook, sys.unraisablehook
    kept = {name: getattr(logging, name) for name in ("logThreads", "logProcesses", "logMultiprocessing", "_srcfile")}
    monkeypatch.setattr(logs, "_handler", None)
    logging.captureWarnings(False)  # as any test before may have left it
    yield logs.configure
    root.handlers[:], root.level = before[:2]
    sys.excepthook, threading.excepthook, sys.unraisablehook = before[2:]
    for name, value in kept.items():
        setattr(logging, name, value)
    logging.captureWarnings(False)
    monkeypatch.setattr(logs, "_form", logs.CONSOLE)


def test_pythons_own_output_becomes_log_lines(configured: Any, capfd: pytest.CaptureFixture[str]) -> None:
    class Spoilt:
        def __del__(self) -> None:
            raise RuntimeError("cannot go")

    def fail() -> None:
        raise KeyError("in a thread")

    configured("info", "json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)  # catch_warnings has put Python's own back
        warnings.warn("old\nfashioned", UserWarning, stacklevel=1)
    thread = threading.Thread(target=fail)
    sys.excepthook(ValueError, ValueError("nobody"), None)
    threading.excepthook(threading.ExceptHookArgs((KeyError, KeyError("in a thread"), None, thread)))
    hook, sys.unraisablehook = sys.unraisablehook, logs._unraisable
    Spoilt()
    sys.unraisablehook = hook
    logging.getLogger("asyncio").warning("of a library")
    logs.complain("why it ends")
    logs.announce(Listens("http://localhost:1", "much more"))
    out, err = capfd.readouterr()
    found = lines_of(err)
    assert [line["logger"] for line in found] == ["py.warnings", *["latchkey"] * 3, "asyncio", "latchkey"]
    assert [line.get("error") for line in found] == [None, "ValueError", "KeyError", "RuntimeError", None, None]
    assert "old\nfashioned" in found[0]["message"]
    assert found[-1] | {"ts": ""} == {"ts": "", "level": "critical", "logger": "latchkey", "message": "why it ends"}
    [said] = lines_of(out)
    assert (said["message"], said["url"]) == ("Latchkey listening on http://localhost:1", "http://localhost:1")
    # And back to text for people.
    configured("warning", "console")
    assert sys.excepthook is sys.__excepthook__
    logging.getLogger("x").info("not this")
    logging.getLogger("x").warning("this")
    logs.complain("why it ends")
    logs.announce(Listens("http://localhost:1", "much more"))
    out, err = capfd.readouterr()
    assert out == "Latchkey listening on http://localhost:1\nmuch more\n"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING x: this\nlatchkey: why it ends\n", err)


@each(
    ("argv", "environ", "form"),
    [
        pytest.param([], {}, "console", id="nothing"),
        pytest.param([], {"LATCHKEY_LOG_FORMAT": "JSON"}, "json", id="the environment"),
        pytest.param(["--port", "1", "--log-format", "json"], {}, "json", id="a flag"),
        pytest.param(["--log-format=json"], {}, "json", id="a flag in one word"),
        pytest.param(["--log-format=console"], {"LATCHKEY_LOG_FORMAT": "json"}, "console", id="a flag wins"),
        pytest.param(["--log-format"], {}, "console", id="a flag without its value"),
        pytest.param(["--log-format", "xml"], {}, "console", id="another"),
    ],
)
def test_errors_before_the_settings_are_read_use_the_requested_format(
    argv: list[str], environ: dict[str, str], form: str
) -> None:
    assert logs.wanted(argv, environ) == form


@pytest.mark.parametrize("count", ["1", "2"])
def test_every_line_of_every_process_is_an_object(tmp_path: Path, count: str) -> None:
    seed = seed_file(tmp_path)
    options = ("--seed", seed, "--workers", count, "--log-format", "json", "--log-level", "debug", *QUICK)
    with Server(*options, environment={"PYTHONWARNINGS": "always"}, fresh=True) as server:
        server.ready()
        port, store = server.port, store_pid(server.data_dir)
        assert status_of(port, "/readyz") == 200
        if count == "2":
            died = next(pid for pid in children(server.process.pid) if pid != store)
            os.kill(died, signal.SIGKILL)
            wait_until(lambda: f"worker {died} ended" in server.log)
        os.kill(store, signal.SIGSTOP)
        os.kill(store, signal.SIGCONT)
        assert status_of(port, "/api/oauth/userinfo") == 401
        assert server.stop() == 0
        found = lines_of(server.log)
        [said] = lines_of(server.out)
        assert said["url"] == server.url
        named = {line["logger"] for line in found}
        assert {"latchkey", "latchkey.access"} <= named
        assert ("latchkey.workers" in named) is (count == "2")


def test_a_failed_start_is_a_log_line() -> None:
    with Server("--redis-url", "memory", "--log-format", "json") as server:
        taken = server.ready().port
        status, log = refused("--redis-url", "memory", "--log-format", "json", port=taken)
    [line] = lines_of(log)
    assert (status, line["level"]) == (1, "critical")
    assert line["message"] == refused_port(taken).removeprefix("latchkey: ").rstrip()
    status, log = refused("--log-format=json", "--workers", "none")
    [line] = lines_of(log)
    assert status == 2
    assert line["message"].startswith("workers must be a whole number")


def test_a_failed_worker_start_is_a_log_line() -> None:
    with valkey() as engine:
        environment = {"LATCHKEY_SECRET_KEYS": "1:" + "A" * 43}
        options = ("--redis-url", engine.url, "--workers", "2", "--log-format", "json", *QUICK)
        with Server(*options, environment=environment) as server:
            all_serve(server.ready().port)
            with engine.client() as client:
                client.config_set("min-replicas-to-write", 1)
                os.kill(children(server.process.pid)[0], signal.SIGKILL)
                wait_until(lambda: "a worker cannot start" in server.log)
                client.config_set("min-replicas-to-write", 0)
            assert server.stop() == 0
            assert "error" in {line["level"] for line in lines_of(server.log)}


def test_the_event_loop_logs_in_the_same_format(configured: Any, capfd: pytest.CaptureFixture[str]) -> None:
    async def fail() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    configured("info", "json")
    asyncio.run(fail())
    [line] = lines_of(capfd.readouterr().err)
    assert (line["logger"], line["error"]) == ("asyncio", "ZeroDivisionError")


def test_log_records_skip_the_code_location(configured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`logging` finds the place in the code unless its `_srcfile` is empty, as its manual says."""
    made: list[logging.LogRecord] = []

    def find_caller(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the place was looked for")

    configured("info", "console")
    monkeypatch.setattr(logging.Logger, "findCaller", find_caller)
    monkeypatch.setattr(logging.getLogger(), "handle", made.append)
    logging.getLogger().warning("a word")
    assert (made[0].thread, made[0].process, made[0].processName) == (None, None, None)
