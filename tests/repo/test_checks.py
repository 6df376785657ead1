"""The checks of `make lint` for locked packages and secrets find what they should."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from detect_secrets.core.scan import scan_file
from packaging.requirements import Requirement

from dev.checks import audit, lock, secret_scan
from dev.checks.own_secrets import LatchkeyDetector
from store.apps.client_secrets import new_secret
from store.apps.webhooks import new_webhook_secret
from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import Sealer, Token, TokenKind, new_id, new_user_id

ROOT = Path(__file__).resolve().parent.parent.parent
HASH = "    --hash=sha256:" + "0" * 64
TODAY = date(2026, 11, 22)


def test_the_lock_files_satisfy_setup_cfg() -> None:
    assert lock.complaints(ROOT / lock.SERVER, lock.asked_for(lock.SERVER_EXTRAS)) == []
    assert lock.complaints(ROOT / lock.EVERYTHING, lock.asked_for()) == []
    assert lock.differences(ROOT / lock.SERVER, ROOT / lock.EVERYTHING) == []
    assert lock.differences(ROOT / lock.EVERYTHING, ROOT / lock.SERVER) != []
    assert lock.main() == 0
    names = {requirement.name for requirement in lock.asked_for()}
    assert {"tornado", "uvloop", "pytest", "psutil"} <= names
    assert "pytest" not in {pin.name for pin in lock.read_lock(ROOT / lock.SERVER)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(f"tornado==6.5.2 \\\n{HASH}\n", None, id="a package in its range"),
        pytest.param(f"# a comment\nTornado==6.5.2 ; python_version < '4' \\\n{HASH}\n", None, id="one with a marker"),
        pytest.param(f"tornado==6.4 \\\n{HASH}\n", "tornado 6.4 is not", id="one too old"),
        pytest.param(f"tornado==7.0 \\\n{HASH}\n", "tornado 7.0 is not", id="one too new"),
        pytest.param(f"cyclone==1.0 \\\n{HASH}\n", "tornado is not in it", id="one that is missing"),
        pytest.param("tornado==6.5.2\n", "has no hash", id="one without a hash"),
    ],
)
def test_a_lock_file_is_checked_against_the_version_ranges(tmp_path: Path, text: str, complaint: str | None) -> None:
    file = tmp_path / "some.lock"
    file.write_text(text)
    found = lock.complaints(file, [Requirement("tornado>=6.5,<7")])
    assert len(found) == (complaint is not None)
    assert complaint is None or complaint in found[0]


@pytest.mark.parametrize("line", ["tornado>=6.5", "-e .", "    --hash=md5:00", "git+ssh://example.com/x"])
def test_a_line_without_a_pin_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "some.lock").write_text(line + "\n")
    with pytest.raises(lock.BadLock, match=r"some\.lock:1"):
        lock.read_lock(tmp_path / "some.lock")


Answer = Callable[[str, str], dict[str, Any]]


@contextmanager
def database(answer: Answer) -> Iterator[str]:
    """The address of an advisory database that answers like OSV."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(answer(query["package"]["name"], query["version"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()
        thread.join()


def advisory(name: str, one_id: str) -> dict[str, Any]:
    fixed = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "9.9"}]}]
    affected = [{"package": {"name": name, "ecosystem": "PyPI"}, "ranges": fixed}]
    return {"id": one_id, "aliases": [f"CVE-2026-{one_id[-2:]}"], "details": "It is weak.", "affected": affected}


def knowing(*weak: str) -> Answer:
    return lambda name, version: {"vulns": [advisory(name, "PYSEC-2026-17")]} if name in weak else {}


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A lock file of two packages."""
    file = tmp_path / "two.lock"
    file.write_text(f"tornado==6.5.2 \\\n{HASH}\nredis==8.1 \\\n{HASH}\n")
    return file


def audited(url: str, locked: Path, ignored: str = "") -> tuple[int, str, str]:
    """The exit status and output of the program, run as `make lint` runs it."""
    file = locked.with_suffix(".toml")
    file.write_text(ignored)
    command = [
        sys.executable,
        "-m",
        "dev.checks.audit",
        "--lock",
        str(locked),
        "--ignored",
        str(file),
        "--osv-url",
        url,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_vulnerability_fails_and_is_named(locked: Path) -> None:
    with database(knowing("django", "redis")) as url:
        status, out, err = audited(url, locked)
        assert (status, out) == (1, "dependency audit: 2 Python packages checked, 1 to be seen to\n")
        assert err == "redis 8.1: CVE-2026-17, PYSEC-2026-17; better: 9.9\n"
        # Without findings, the number of checked packages is its only output.
        until = date.today() + timedelta(days=30)
        entry = f'[[ignored]]\nadvisory = "CVE-2026-17"\nreason = "It reads no XML."\nuntil = {until}\n'
        assert audited(url, locked, entry) == (0, "dependency audit: 2 Python packages checked, 0 to be seen to\n", "")


@pytest.mark.parametrize("why", ["it knows nothing", "nobody is there"])
def test_an_impossible_audit_neither_passes_nor_fails(locked: Path, why: str) -> None:
    if why == "it knows nothing":
        with database(knowing()) as url:
            status, out, err = audited(url, locked)
    else:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            status, out, err = audited(f"http://127.0.0.1:{unused.getsockname()[1]}/v1/query", locked)
    assert (status, err) == (0, "")
    assert out.startswith("dependency audit: not checked (")
    assert "packages checked" not in out


def test_a_hanging_audit_is_given_up(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "QUICK", 0.5)
    done = threading.Event()
    hangs: Answer = lambda name, version: {"never": done.wait(10)}  # noqa: E731  # one line is enough
    with database(hangs) as url:
        begun = time.monotonic()
        with pytest.raises(audit.NotChecked, match=r"no answer within 0\.5 seconds"):
            audit.of_python(("-s", "osv", "--osv-url", url), lock.read_lock(locked))
        assert time.monotonic() - begun < 5
        done.set()


@pytest.mark.parametrize(
    ("until", "counts"), [(TODAY, True), (TODAY - timedelta(days=1), False)], ids=["on its last day", "the day after"]
)
def test_an_ignored_advisory_is_ignored_until_its_date(until: date, counts: bool) -> None:
    weakness = audit.Weakness("redis 8.1", frozenset({"PYSEC-2026-17", "CVE-2026-17"}), "better: 9.9")
    lines = audit.report([weakness], [audit.Ignored("CVE-2026-17", "It reads no XML.", until)], TODAY)
    assert (lines == []) is counts
    assert counts or f"(ignored until {until}: It reads no XML.)" in lines[0]


@pytest.mark.parametrize(
    "row", ['advisory = "X"', 'advisory = "X"\nreason = ""\nuntil = 2026-01-01', "until = 2026-01-01"]
)
def test_ignoring_needs_a_reason_and_a_date(tmp_path: Path, row: str) -> None:
    (tmp_path / "ignored.toml").write_text(f"[[ignored]]\n{row}\n")
    with pytest.raises(ValueError, match="an entry has"):
        audit.read_ignored(tmp_path / "ignored.toml")


def test_the_list_of_ignored_advisories_is_valid() -> None:
    assert isinstance(audit.read_ignored(), list)


def npm_that_says(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a program named npm first on the path."""
    npm = folder / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:/usr/bin:/bin")


ONE_OF_NPM = json.dumps(
    {
        "vulnerabilities": {
            "minimist": {"range": "<1.2.6", "via": [{"url": "https://x.example/GHSA-xvch", "title": "It is weak."}]},
            "mkdirp": {"range": "*", "via": ["minimist"]},
        }
    }
)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(f"echo '{ONE_OF_NPM}'; exit 1", ["minimist <1.2.6"], id="a weakness"),
        pytest.param(
            f"test -e axe || case $PWD in */node) echo '{{\"vulnerabilities\": {{}}}}';; *) echo '{ONE_OF_NPM}';; esac",
            [],
            id="none",
        ),
        pytest.param("""echo '{"vulnerabilities": {}}'""", "reports no weaknesses", id="a registry that knows nothing"),
        pytest.param("""echo '{"message": "ECONNREFUSED"}'; exit 1""", "ECONNREFUSED", id="a registry that is away"),
        pytest.param("echo 'npm error' >&2; exit 1", "npm error", id="an npm that breaks"),
    ],
)
def test_npm_is_trusted_if_it_reports_well_known_advisories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: list[str] | str
) -> None:
    npm_that_says(tmp_path, script, monkeypatch)
    if isinstance(expected, list):
        assert [weakness.package for weakness in audit.of_npm()] == expected
    else:
        with pytest.raises(audit.NotChecked, match=expected):
            audit.of_npm()


def planted() -> dict[str, str]:
    """Secrets of all kinds, made at run time so that this file has none."""
    sealer = Sealer(Keys(KeyRing.parse(KeyRing.generate(1))))
    found = {kind.name.lower(): sealer.seal(Token(kind, new_user_id(), "an-app", new_id(), 3)) for kind in TokenKind}
    key = "-----BEGIN " + "PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg\n"
    return {
        **found,
        "client_secret": new_secret(),
        "webhook_secret": new_webhook_secret(),
        "secret_keys": f'export LATCHKEY_SECRET_KEYS="{KeyRing.generate(12)},{KeyRing.generate(7)}"',
        "private_key": key,
        "url": "redis://default:" + new_id() + "@redis.internal:6379",
        "aws": "AKIA" + "IOSFODNN7EXAMPL2",
    }


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("no git on this machine")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def track(repository: Path, name: str, text: str) -> None:
    (repository / name).write_text(text)
    subprocess.run(["git", "add", name], cwd=repository, check=True)


def test_a_planted_secret_is_found_and_not_shown_whole(repository: Path) -> None:
    for name, text in planted().items():
        track(repository, f"{name}.txt", f"first line\nIt is {text} here.\n")
    # One of two lines is named by the second, which holds the key.
    (repository / "untracked.txt").write_text(planted()["access"])
    wrong = secret_scan.complaints(repository, [])
    assert {line.partition(".txt")[0] for line in wrong} == set(planted())
    for line in wrong:
        assert (".txt:3: " if "private_key" in line else ".txt:2: ") in line
        assert len(line.rpartition(": ")[2]) <= 11


def test_harmless_lookalikes_are_not_reported(repository: Path) -> None:
    track(repository, "prose.md", "Tokens begin with lk_at_, lk_rt_ or lk_ac_.\nAt 12:30 " + "x" * 43 + "y\nlk_at_…\n")
    track(repository, "code.py", 'prefix = f"lk_{word}_"\nurl = "redis://localhost:6379"\nport = 127:0\n')
    assert secret_scan.complaints(repository, []) == []


def test_an_allowance_applies_to_its_files_and_must_match(repository: Path) -> None:
    secret = new_secret()
    track(repository, "example.md", secret)
    allowed = [secret_scan.Allowed("*.md", f"{secret[:12]}*", "an example")]
    assert secret_scan.complaints(repository, allowed) == []
    track(repository, "example.py", secret)
    assert [line.partition(":")[0] for line in secret_scan.complaints(repository, allowed)] == ["example.py"]
    for name in ("example.py", "example.md"):
        track(repository, name, "nothing")
    (line,) = secret_scan.complaints(repository, allowed)
    assert "holds no" in line


def test_a_content_without_secrets_is_searched_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = repository / "build" / "kept.json"
    track(repository, "secret.txt", new_secret())
    for name in ("same.txt", "changed.txt"):
        track(repository, name, "nothing")
    (first,) = secret_scan.complaints(repository, [], kept)
    assert first.startswith("secret.txt")
    search = Mock(wraps=scan_file)
    monkeypatch.setattr(secret_scan, "scan_file", search)
    track(repository, "changed.txt", new_secret())
    assert first in secret_scan.complaints(repository, [], kept)
    assert {Path(call.args[0]).name for call in search.call_args_list} == {"changed.txt", "secret.txt"}
    monkeypatch.setattr(LatchkeyDetector, "denylist", (re.compile("nothing"),))
    search.reset_mock()
    secret_scan.complaints(repository, [], kept)
    assert search.call_count == 3, "other detectors search everything again"


@pytest.mark.parametrize("content", ["", "[]", "null", '{"a": []}', "[[1]]"])
def test_a_search_needs_no_kept_digests(repository: Path, content: str) -> None:
    kept = repository / "build" / "kept.json"
    kept.parent.mkdir()
    kept.write_text(content)
    track(repository, "secret.txt", new_secret())
    (repository / "file").touch()
    for place in (kept, repository / "file" / "kept.json"):
        assert len(secret_scan.complaints(repository, [], place)) == 1


def test_every_allowance_has_its_reason(tmp_path: Path) -> None:
    assert all(entry.reason for entry in secret_scan.read_allowed())
    (tmp_path / "allowed.toml").write_text('[[allowed]]\nfiles = "*"\ntexts = ["*"]\nreason = ""\n')
    with pytest.raises(ValueError, match="a reason"):
        secret_scan.read_allowed(tmp_path / "allowed.toml")


def test_lint_runs_all_checks() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    names = ("house", "silenced", "imports", "lock", "audit", "secret_scan")
    assert {f"python -m dev.checks.{name}" for name in names} <= {
        line.strip().partition("/")[2] for line in recipe.splitlines()
    }
