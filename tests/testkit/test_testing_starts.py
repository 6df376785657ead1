"""Which starts of a server let tests of apps control it, and which refuse."""

from __future__ import annotations

import json
import re

import httpx
import pytest

from runtime.arguments import load
from settings.types import SettingsError
from testkit.routes import TESTING_ROUTES
from tests.support.lists.offenders import each
from tests.support.processes.processes import QUICK, Server, refused
from tests.testkit.conftest import ADA, MEMORY
from tests.testkit.test_testing_http import request_of

OTHER_STARTS = {
    "the embedded store": (),
    "another host": ("--redis-url=memory", "--host=0.0.0.0"),
    "another address": ("--redis-url=memory", "--base-url=https://id.example.org"),
    "behind a proxy": ("--redis-url=memory", "--trusted-proxies=127.0.0.1"),
    "a demo": ("--redis-url=memory", "--demo"),
}


@pytest.mark.parametrize("options", [pytest.param(options, id=name) for name, options in OTHER_STARTS.items()])
def test_other_servers_have_no_test_controls(options: tuple[str, ...]) -> None:
    with Server(*QUICK, *options, environment={"PYTHONPROFILEIMPORTTIME": "1"}, fresh=True) as server:
        server.ready()
        port = int(re.search(r"port (\d+)", server.log)[1])  # type: ignore[index]  # it says where it listens
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as http:
            assert http.get("/healthz").status_code == 200
            for path, _ in TESTING_ROUTES:
                assert http.post(path, json={}).status_code == 404, path
            played = http.get(request_of("nobody"), headers={"Latchkey-Consents": json.dumps({"email": ADA})})
            assert played.status_code == 400
        server.stop()
        loaded = set(re.findall(r"^import time:.*\| +([\w.]+)$", server.log, re.MULTILINE))
        assert {"handlers.oauth.authorize", "handlers.core.page"} <= loaded
        assert {name for name in loaded if name.partition(".")[0] == "testkit"} == set()


def test_a_test_server_loads_the_controls() -> None:
    """What the test before looks for can be seen."""
    with Server(*MEMORY, environment={"PYTHONPROFILEIMPORTTIME": "1"}, fresh=True) as server:
        server.ready()
        assert re.search(r"\| +testkit\.routes$", server.log, re.MULTILINE)


@each(
    "options",
    [
        *(pytest.param(options, id=name) for name, options in OTHER_STARTS.items()),
        pytest.param(("--redis-url=redis://localhost",), id="a Redis"),
        pytest.param(("--redis-url=memory", "--host=::"), id="all addresses"),
    ],
)
def test_auto_consent_is_refused_outside_of_tests(options: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError, match=r"^auto_consent needs redis_url memory.*auto_consent from --auto-consent"):
        load([*options, f"--auto-consent={ADA}"], {})
    with pytest.raises(SettingsError, match="auto_consent from LATCHKEY_AUTO_CONSENT"):
        load(options, {"LATCHKEY_AUTO_CONSENT": ADA})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_auto_consent_needs_only_memory_and_loopback(host: str) -> None:
    found = load(["--redis-url=memory", f"--host={host}", f"--auto-consent={ADA}"], {})
    assert (found.auto_consent, found.testable) == (ADA, True)
    assert load([], {}).testable is False
    with pytest.raises(SettingsError, match="auto_consent must be an e-mail address"):
        load(["--redis-url=memory", "--auto-consent=Ada"], {})


def test_a_refused_start_gives_the_reason() -> None:
    status, said = refused("--auto-consent", ADA)
    assert status == 2
    assert said.startswith("latchkey: auto_consent needs redis_url memory")


def test_an_impossible_address_is_refused_on_start() -> None:
    status, said = refused("--redis-url=memory", "--auto-consent", f"{'a' * 65}@example.com")
    assert status == 1
    assert "latchkey: auto_consent: The part of an e-mail address before the @" in said
