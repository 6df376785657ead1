"""The Dockerfile and the Compose file, checked by linters.

No container is built or started here: the commands in them are run without one. `make image-test` needs an engine.
"""

from __future__ import annotations

import fnmatch
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.programs import HERE, ROOT, accepts, ran, tool
from dev.lab.engines import wait_until
from dev.lab.ports import free_port
from settings.declared import Settings
from settings.offers import DAY
from tests.support.processes.processes import QUICK, Server

DCLINT = "dclint@3.1.0"


def test_the_dockerfile_passes_its_linter() -> None:
    ran(tool("hadolint"), "--strict-labels", str(HERE / "Dockerfile"))


def in_the_image(tmp_path: Path) -> Path:
    """The files that the image gets, as `Dockerfile.dockerignore` lets them in."""
    lines = (HERE / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    for name in ran("git", "ls-files", cwd=ROOT).stdout.splitlines():
        if any(fnmatch.fnmatch(name.partition("/")[0], rule) for rule in allowed) and (ROOT / name).exists():
            target = tmp_path / "image" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    return tmp_path / "image"


def dockerfile() -> list[tuple[str, str]]:
    """Its instructions, those in several lines as one."""
    text = re.sub(r"\\\n\s*", "", "\n".join(line for line in lines_without_comments(HERE / "Dockerfile")))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def lines_without_comments(path: Path) -> Iterator[str]:
    """The rest."""
    return (line for line in path.read_text().splitlines() if not line.startswith("#"))


def test_the_last_stage_of_the_image_gets_nothing_that_only_the_build_needs() -> None:
    instructions = dockerfile()
    begins = [place for place, (word, _) in enumerate(instructions) if word == "FROM"]
    assert [instructions[place][1] for place in begins] == ["${BASE} AS build", "${BASE}"]
    last = "\n".join(rest for _, rest in instructions[begins[-1] :])
    installed = re.search(r"apt-get install (.+?);", last)
    assert installed
    assert [word for word in installed[1].split() if not word.startswith("-")] == ["ca-certificates", "python3"]
    for word in ("pip", "venv --", "requirements"):
        assert word not in last
    for cleared in ("/var/lib/apt/lists/*", "/var/cache/*"):
        assert cleared in last


def test_what_the_image_holds_is_enough_to_serve_and_its_health_check_sees_it(tmp_path: Path) -> None:
    instructions = dict(dockerfile())
    assert instructions["USER"] == "10001:10001"
    assert instructions["STOPSIGNAL"] == "SIGTERM"
    command = json.loads(instructions["CMD"])
    assert command == ["python", "server.py"]
    image = in_the_image(tmp_path)
    assert not (image / "tests").exists()
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "LATCHKEY_DATA_DIR": str(tmp_path / "d")}
    port = free_port()
    given = ["--host", "127.0.0.1", "--port", str(port), "--redis-url", "memory"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *command[1:], *given], cwd=image, env=environment, stdout=log, stderr=log
        )
    try:
        check = json.loads(instructions["HEALTHCHECK"].partition("CMD ")[2])
        assert check[0] == "python"
        probe = [sys.executable, *check[1:]]

        def healthy() -> bool:
            there = {"LATCHKEY_PORT": str(port)}
            return not subprocess.run(probe, cwd=image, capture_output=True, env=there, check=False).returncode

        # An engine asks again, too, before it calls a server that is starting unhealthy.
        wait_until(healthy, 30)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/signin")
        assert connection.getresponse().status == 200
        connection.close()
    finally:
        process.terminate()
        assert process.wait(20) == 0, (tmp_path / "log").read_text()
    assert not healthy()
    programs = image / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "python").chmod(0o755)
    assert "cp cli/latchkey .venv/bin/" in (HERE / "Dockerfile").read_text()
    ran("cp", "cli/latchkey", ".venv/bin/", cwd=image)
    ran(str(programs / "latchkey"), "keys", "generate", cwd=tmp_path, env=environment)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The Compose file, after a linter has held it against the schema of the specification and its own rules."""
    npm = tool("npm")
    ran(npm, "exec", "--yes", f"--package={DCLINT}", "--", "dclint", "--max-warnings", "0", str(HERE / "compose.yaml"))
    import yaml

    found: dict[str, Any] = yaml.safe_load((HERE / "compose.yaml").read_text())
    return found


def test_the_compose_file_is_one_and_gives_away_nothing(compose: dict[str, Any]) -> None:
    services: dict[str, dict[str, Any]] = compose["services"]  # type: ignore[assignment]  # what YAML holds
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert services["latchkey"]["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in services["redis"]
    environment: dict[str, str] = services["latchkey"]["environment"]
    known = {name for name in environment if name.removeprefix("LATCHKEY_").lower() in vars(Settings())}
    assert known == environment.keys()
    for name in ("LATCHKEY_SECRET_KEYS", "LATCHKEY_BASE_URL"):
        assert environment[name].startswith(f"${{{name}:?")
    assert "${REDIS_PASSWORD:?" in environment["LATCHKEY_REDIS_URL"]
    usual = Settings()
    grace = float(str(services["latchkey"]["stop_grace_period"]).removesuffix("s"))
    assert grace >= usual.drain_delay + usual.drain_timeout + 2 * usual.redis_timeout + 5
    assert usual.session_lifetime == 30 * DAY


def test_the_store_of_the_compose_file_is_one_that_latchkey_takes(compose: dict[str, Any], tmp_path: Path) -> None:
    services: dict[str, dict[str, Any]] = compose["services"]
    shell, option, script = services["redis"]["command"]
    port, password = free_port(), "a-password-of-the-store"
    script = re.sub("/[a-z]+/redis.conf", f"{tmp_path}/redis.conf", str(script).replace("$$", "$"))
    script = script.replace("--appendonly yes", f"--appendonly yes --port {port} --dir {tmp_path}")
    process = subprocess.Popen(
        [shell, option, script], env={"PATH": os.environ["PATH"], "REDIS_PASSWORD": password}, stdout=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: accepts(port))
        with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        assert password not in Path(f"/proc/{process.pid}/cmdline").read_text()
        environment = {
            "LATCHKEY_REDIS_URL": f"redis://:{password}@127.0.0.1:{port}",
            "LATCHKEY_SECRET_KEYS": "1:" + "A" * 43,
        }
        with Server(*QUICK, environment=environment) as server:
            assert server.ready().stop() == 0
    finally:
        process.terminate()
        assert process.wait(20) == 0
