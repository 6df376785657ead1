"""What commands write and ask in a terminal, in a pipe, and where a stream is closed or full."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from store.crypto.keyring import KeyRing
from tests.support.processes.engines import valkey
from tests.support.processes.operator_commands import Home, at_terminal, clean_environment
from tests.support.processes.store_owners import ROOT

MANAGE = ROOT / "manage.py"


@pytest.mark.parametrize("words", ["keys list", "completion bash"])
def test_a_closed_pipe_is_silent(tmp_path: Path, words: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, str(MANAGE), "--data-dir", str(tmp_path / "data"), *words.split()]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, env=clean_environment(), check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, str(MANAGE), "--data-dir", str(tmp_path / "data"), "keys", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=clean_environment(), check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"manage.py: [Errno 28]")
    assert done.stderr.count(b"\n") == 1


def test_ctrl_c_at_a_question_leaves_a_clean_line(home: Home) -> None:
    home.app("web")
    words = (MANAGE, "--data-dir", str(home.data_dir), "app", "delete", "web")
    seen = at_terminal(*words, typed=[("[yes/no] ", "^C")])
    assert seen.status == 130
    assert seen.lines[-2:] == [
        "Delete the app web, every token of it and, in 30 days, every document it keeps? "
        "This cannot be undone. [yes/no] ",
        "Interrupted.",
    ]
    seen = at_terminal(*words, typed=[("[yes/no] ", "\x04")])
    assert (seen.status, seen.lines[-1]) == (1, "manage.py: Nothing was changed.")
    assert len(home.json("app", "list")["apps"]) == 1


@pytest.mark.parametrize(
    ("again", "status", "complaint"),
    [
        pytest.param("correct horse battery", 0, "email_verified  yes", id="the same twice"),
        pytest.param("correct horse batterie", 1, "manage.py: The two passwords differ.", id="two that differ"),
    ],
)
def test_a_password_is_asked_for_twice_and_not_shown(home: Home, again: str, status: int, complaint: str) -> None:
    words = ("--data-dir", str(home.data_dir), "user", "create", "--email", "ada@example.com", "--name", "Ada")
    typed = [("it is not shown", "correct horse battery\n"), ("once more", f"{again}\n")]
    seen = at_terminal(MANAGE, *words, "--password-stdin", typed=typed, LATCHKEY_PASSWORD_MEMORY="8192")
    assert seen.status == status
    assert complaint in seen.text
    assert "correct horse" not in seen.raw


def test_progress_is_shown_only_in_a_terminal(home: Home, tmp_path: Path) -> None:
    user = home.user("ada@example.com")["sub"]
    words = ("--data-dir", str(home.data_dir), "user")
    seen = at_terminal(MANAGE, *words, "export", user, "--output", tmp_path / "ada.zip")
    assert "\r\x1b[K0 documents, 0.0 MB" in seen.raw
    assert "\n" not in seen.raw.partition("documents, ")[2].partition("\r\x1b[K")[0]
    piped = home.words("user", "export", user, "--output", str(tmp_path / "again.zip"))
    assert (piped.status, piped.err) == (0, "")
    seen = at_terminal(MANAGE, *words, "delete", user, "--yes")
    assert "\r\x1b[K0 apps disconnected\r\x1b[K" in seen.raw
    home.app("web")
    home.user("bob@example.com")
    home.json("token", "mint", "--user", "bob@example.com", "--client-id", "web", "--scopes", "profile")
    seen = at_terminal(MANAGE, "--data-dir", str(home.data_dir), "app", "delete", "web", "--purge", "--yes")
    assert "\r\x1b[Kwaiting until every server has heard of it\r\x1b[K" in seen.raw
    assert re.search(r"\r\x1b\[K\[[#.]{24}\] +\d+%  [\d,]+ of [\d,]+", seen.raw)
    assert seen.raw.rpartition("\x1b[K")[2].count("\n") == 3


def test_ctrl_c_in_long_work_leaves_a_clean_line(home: Home) -> None:
    home.app("web")
    words = ("--data-dir", str(home.data_dir), "app", "delete", "web", "--purge", "--yes")
    seen = at_terminal(MANAGE, *words, typed=[("has heard of it", "^C")])
    assert seen.status == 130
    assert seen.raw.endswith("\r\x1b[K\nInterrupted.\n")


@pytest.mark.parametrize(
    ("words", "closed", "status", "said"),
    [
        pytest.param("app list", ">&-", 0, "", id="no output"),
        pytest.param("app list", "2>&-", 0, "", id="no errors"),
        pytest.param("app show none", "2>&-", 1, "", id="nobody to complain to"),
        pytest.param("app delete web", "<&-", 1, "give --yes", id="nobody to ask"),
        pytest.param("user create --email a@b.example --name A --password-stdin", "<&-", 2, "empty", id="no password"),
        pytest.param("app list", "<&- >&- 2>&-", 0, "", id="nothing"),
    ],
)
def test_standard_streams_may_be_closed(home: Home, words: str, closed: str, status: int, said: str) -> None:
    """A traceback ends with status 1, and says so where it can."""
    home.app("web")
    command = f"exec {sys.executable} {MANAGE} --data-dir {home.data_dir} {words} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=clean_environment())
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert said in done.stderr


def test_with_json_every_line_of_standard_error_is_json() -> None:
    with valkey() as engine:
        with engine.client() as client:
            client.config_set("lazyfree-lazy-expire", "no")
        command = [sys.executable, str(MANAGE), "--json", "--redis-url", engine.url, "app", "delete", "none", "--yes"]
        environment = {**clean_environment(), "LATCHKEY_SECRET_KEYS": KeyRing.generate(1)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    warned, failed = map(json.loads, done.stderr.splitlines())
    assert (warned["level"], failed["error"]) == ("warning", "not_found")
    assert (done.returncode, done.stdout) == (1, "")


def test_with_json_warnings_and_defects_are_json(tmp_path: Path) -> None:
    program = """
import sys, warnings
import manage
from cli import run
def fails(settings, args):
    warnings.warn("careful")
    raise RuntimeError("a defect")
run.named = lambda text: fails
sys.exit(manage.start(["--json", "keys", "generate"]))
"""
    command = [sys.executable, "-c", program]
    environment = {**clean_environment(), "LATCHKEY_DATA_DIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, done.stdout, len(lines)) == (1, "", 2)
    assert "careful" in lines[0]["message"]
    assert lines[1]["error"] == "RuntimeError"
