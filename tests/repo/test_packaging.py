"""The result of `pip install`: one name, the whole application inside it, and a command for an empty folder."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import latchkey
from cli.commands_parser import build_parser
from handlers.guides.pages import TITLES
from tests.support.http.driver import send

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("cli", "examples", "handlers", "observability", "outbound", "runtime", "settings", "store", "testkit")
DATA = ("lua", "static", "templates", "examples/templates")
# Outputs of tools and the server in the checkout, which no build uses.
NOT_COPIED = (".*", "build", "dist", "data", "*.egg-info", "__pycache__", "node_modules", "dev")
APP = "latchkey/_app/"
MADE_UP = "nothing-real-0123456789"


@dataclass(frozen=True)
class Built:
    """What the build backend made of a copy of the checkout."""

    checkout: Path
    wheel: Path
    again: Path
    """The wheel that is built from the source distribution."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    base = tmp_path_factory.mktemp("built")
    checkout = shutil.copytree(ROOT, base / "checkout", ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    wheel = make("wheel", checkout, base)
    shutil.rmtree(checkout / "build")
    sdist = make("sdist", checkout, base)
    (base / "unpacked").mkdir()
    subprocess.run(["tar", "-xf", sdist, "-C", base / "unpacked"], check=True)  # `tarfile` has filters since 3.11.4
    (unpacked,) = (base / "unpacked").iterdir()
    (base / "again").mkdir()
    return Built(checkout, wheel, make("wheel", unpacked, base / "again"))


def make(what: str, source: Path, target: Path) -> Path:
    """A wheel or an sdist, built by the installed backend that pyproject.toml names. Downloads nothing."""
    program = f"import setuptools.build_meta as backend; print(backend.build_{what}({str(target)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=source, env=clean(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return target / done.stdout.splitlines()[-1]


def clean(*folders: Path) -> dict[str, str]:
    """An environment without this checkout."""
    path = os.pathsep.join(map(str, (*folders, "/usr/bin", "/bin")))
    return {"PATH": path, "HOME": "/nonexistent", "LANG": "C.UTF-8"}


class Installed:
    """A separate environment, with an empty folder to work in."""

    def __init__(self, base: Path) -> None:
        self.home = base / "empty"
        self.home.mkdir()
        self.environment = base / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.environment)], check=True)
        self.python = self.environment / "bin" / "python"
        self.command = self.environment / "bin" / "latchkey"
        self.packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(self.environment)}))
        # What Latchkey needs is there already. So may be a Latchkey that was installed, as README's second way to run
        # the tests has it: it would hide an editable one.
        needed = base / "needed"
        needed.mkdir()
        for place in dict.fromkeys(entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))):
            for found in Path(place).iterdir():
                if not found.name.startswith(("latchkey", "__editable__")) and not (needed / found.name).is_symlink():
                    (needed / found.name).symlink_to(found)
        (self.packages / "needed.pth").write_text(str(needed))

    def install(self, *what: str) -> None:
        """With pip, which fetches nothing."""
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--no-deps", "--no-index"]
        # The test environment may have a Latchkey too, which is left alone.
        options = ["--quiet", "--ignore-installed", "--disable-pip-version-check", "--no-build-isolation", *what]
        done = subprocess.run(
            [*command, *options], cwd=self.home, env=clean(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def run(self, *words: str | Path, **environ: str) -> str:
        """A command's output."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.home,
            env={**clean(self.environment / "bin"), **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.run(self.command, "--json", *words))

    @contextmanager
    def serving(self, *words: str) -> Iterator[tuple[str, str]]:
        """A server; its address, and its output on start."""
        process = subprocess.Popen(
            [str(self.command), "serve", "--port", "0", "--password-memory", "8192", *words],
            cwd=self.home,
            env=clean(self.environment / "bin"),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("Latchkey listening on "), line
            said = ""
            while "--demo" in words and "Ctrl-C" not in said:
                said += process.stdout.readline()
            yield line.split()[-1], said
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
        assert process.returncode == 0


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made = Installed(tmp_path_factory.mktemp("installed"))
    made.install(str(built.wheel))
    return made


def files(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel in site-packages, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def tree() -> dict[str, bytes]:
    """The expected content of a wheel."""
    found = [*ROOT.glob("*.py")]
    found += [path for name in PACKAGES for path in (ROOT / name).glob("**/*.py")]
    found += [path for name in DATA for path in (ROOT / name).glob("**/*") if path.is_file()]
    found += (ROOT / "store").rglob("*.bloom")
    found += [ROOT / "docs" / f"{name}.md" for name in TITLES]
    own = [path for path in (ROOT / "latchkey").glob("**/*") if path.is_file() and path.suffix != ".pyc"]
    return {APP + str(path.relative_to(ROOT)): path.read_bytes() for path in found} | {
        str(path.relative_to(ROOT)): path.read_bytes() for path in own
    }


def test_the_wheel_contains_exactly_the_application(built: Built) -> None:
    held, wanted = files(built.wheel), tree()
    assert sorted(set(wanted) - set(held)) == []
    assert sorted(set(held) - set(wanted)) == []
    assert held == wanted


def test_the_source_distribution_builds_the_same_wheel(built: Built) -> None:
    assert files(built.again) == files(built.wheel)


def test_every_imported_module_is_in_the_wheel(built: Built) -> None:
    held = set(files(built.wheel))
    waiting = ["server", "manage", *{"cli.commands." + run.partition(".")[0] for run in functions()}]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        path = next((p for p in (place(name, ".py"), place(name, "/__init__.py")) if (ROOT / p).is_file()), None)
        if name in seen or path is None:
            continue
        seen.add(name)
        assert (path if path.startswith("latchkey/") else APP + path) in held
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                waiting += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    assert {
        "store.fsck.walk",
        "handlers.core.errors",
        "runtime.http.server",
        "outbound.mail.mailer",
        "cli.commands.shell",
    } <= seen
    assert not {"tests", "dev"} & {name.partition(".")[0] for name in seen}


def place(name: str, end: str) -> str:
    return name.replace(".", "/") + end


def functions() -> set[str]:
    """What the commands run, by name."""
    return {run for leaf in build_parser().leaves() if (run := leaf.get_default("run"))}


def test_only_one_top_level_name_is_installed(installed: Installed) -> None:
    names = {path.name for path in installed.packages.iterdir()} - {"needed.pth", "__pycache__"}
    assert names == {"latchkey", f"latchkey-{latchkey.__version__}.dist-info"}
    for name in ("server", "manage", "settings", "store", "handlers"):
        done = subprocess.run(
            [installed.python, "-c", f"import {name}"],
            cwd=installed.home,
            env=clean(),
            check=False,
            capture_output=True,
        )
        assert b"No module named" in done.stderr, name
    assert installed.run(installed.python, "-c", "import latchkey, sys; print(latchkey.tree())").strip() == str(
        installed.packages / "latchkey" / "_app"
    )


def test_there_is_one_version(installed: Installed) -> None:
    said = f"latchkey {latchkey.__version__}\n"
    assert installed.run(installed.command, "--version") == said
    assert installed.run(installed.python, "-m", "latchkey", "--version") == said
    metadata = installed.packages / f"latchkey-{latchkey.__version__}.dist-info" / "METADATA"
    assert f"\nVersion: {latchkey.__version__}\n" in metadata.read_text("utf-8")


def test_files_in_the_working_directory_shadow_no_module(installed: Installed) -> None:
    for name in ("settings", "store", "cli"):
        (installed.home / f"{name}.py").write_text("raise SystemExit('not mine')")
    try:
        assert installed.run(installed.python, "-m", "latchkey", "keys", "list") == "no keys\n"
    finally:
        for path in installed.home.glob("*.py"):
            path.unlink()


def test_server_and_commands_work_in_an_empty_folder(installed: Installed) -> None:
    with installed.serving() as (url, _):
        app = installed.json(
            *("app", "create", "--name", "Web", "--redirect-uri", "https://web.example/cb", "--scopes", "profile")
        )
        assert app["client_secret"].startswith("lk_cs_")
        made = installed.json("user", "create", "--email", "ada@example.com", "--name", "Ada")
        tokens = installed.json(
            *("token", "mint", "--user", "ada@example.com", "--client-id", app["client_id"], "--scopes", "profile")
        )
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        answer = asyncio.run(send(f"{url}/api/oauth/userinfo", headers=headers))
        userinfo = json.loads(answer.body)
        assert (answer.code, userinfo["sub"], userinfo["email"]) == (200, made["sub"], "ada@example.com")
        assert asyncio.run(send(f"{url}/signin")).code == 200
        assert asyncio.run(send(f"{url}/static/latchkey.css")).code == 200
        copied = installed.json("store", "backup", "copy.rdb", "--keys", "copy.keys")
        assert copied["rows"] > 0
    restored = installed.json("store", "restore", "copy.rdb", "--keys", "copy.keys", "--data-dir", "second")
    # What has expired since is not laid out.
    assert 0 < restored["rows"] <= copied["rows"]
    assert installed.json("app", "list", "--data-dir", "second")["apps"][0]["client_id"] == app["client_id"]
    assert {path.name for path in installed.home.iterdir()} == {"data", "second", "copy.rdb", "copy.keys"}


PLAYED = """
import json
import sys
from urllib.request import Request, urlopen


def test_a_person_can_sign_in_to_an_installed_server(latchkey):
    token = latchkey.token(latchkey.person(email="ada@example.com"))
    with urlopen(Request(f"{latchkey.url}/api/oauth/userinfo", headers=token.headers)) as answer:
        assert json.load(answer)["email"] == "ada@example.com"
    assert not {"server", "handlers", "store"} & set(sys.modules)
"""


def test_the_pytest_plugin_is_installed(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text(PLAYED)
    said = installed.run(installed.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", tmp_path)
    assert "1 passed" in said


def test_our_own_tests_run_without_the_plugin(installed: Installed) -> None:
    command = [
        str(installed.python),
        "-m",
        "pytest",
        "--fixtures",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/credits/test_amounts.py",
    ]
    done = subprocess.run(command, cwd=ROOT, env=clean(), capture_output=True, text=True, timeout=60, check=True)
    assert "memory_store" in done.stdout
    assert "latchkey.testing" not in done.stdout
    assert "latchkey/testing" not in done.stdout


def test_an_installed_server_runs_workers_and_the_demo(installed: Installed) -> None:
    with installed.serving("--demo", "--workers", "2", "--data-dir", "demo") as (url, said):
        assert asyncio.run(send(f"{url}/healthz")).code == 200
        found = re.search(r"Open (\S+) and sign in", said)
        assert found, said
        page = asyncio.run(send(found[1]))
        assert (page.code, b"Latchkey" in page.body) == (200, True)
    shutil.rmtree(installed.home / "demo")


def test_an_editable_installation_runs_the_checkout(built: Built, tmp_path: Path) -> None:
    made = Installed(tmp_path)
    made.install("--editable", str(built.checkout))
    found = made.run(made.python, "-c", "import latchkey; print(latchkey.tree())").strip()
    assert Path(found) == built.checkout
    assert made.run(made.command, "keys", "list") == "no keys\n"
    source = built.checkout / "latchkey" / "__init__.py"
    source.write_text(source.read_text().replace(latchkey.__version__, "9.9"))
    assert made.run(made.command, "--version") == "latchkey 9.9\n"
