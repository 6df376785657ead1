"""`audit`: the operator reads and follows the security log."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from store.wiring import Store
from tests.support.processes.operator_commands import NEW_APP, Home, child, clean_environment

ROOT = Path(__file__).resolve().parent.parent.parent.parent
NOBODY = "my-password@nowhere.example"


@pytest.fixture
def lived(home: Home) -> str:
    """A store with some events; returns Ada's user id."""
    user: str = home.user("ada@example.com")["sub"]
    home.app("web")
    assert home.error("app", "show", "nonsense")[0] == 1
    assert home.error("app", "rotate-secret", "nonsense")[0] == 1

    async def strangers(store: Store) -> None:
        for email, password in (("ada@example.com", "guess one"), (NOBODY, "guess two")):
            assert await store.people.verify(email, password, refused="sign_in_refused") is None
        await store.security.flush()

    home.with_store(strangers)
    return user


def names(answer: Any) -> list[tuple[str, str]]:
    return [(one["event"], one["detail"]) for one in answer["events"]]


def test_log_shows_acts_of_people_strangers_and_the_operator(home: Home, lived: str) -> None:
    answer = home.json("audit")
    assert names(answer) == [
        ("created_by_operator", ""),
        ("app_created_by_operator", ""),
        ("command_failed", "apps.rotate_secret not_found"),
        ("sign_in_refused", "password"),
        ("sign_in_refused", "unknown"),
    ]
    made, app, failed, known, unknown = answer["events"]
    assert (made["person"], made["actor"], made["result"], made["severity"]) == (lived, "operator", "ok", "info")
    assert app["client_id"] == "web"
    assert (failed["result"], failed["severity"]) == ("failed", "warning")
    assert (known["person"], known["typed"]) == (lived, "")
    assert unknown["person"] == ""
    assert unknown["typed"]
    assert "nowhere" not in json.dumps(answer)


def test_events_are_found_by_address_and_id_even_for_an_unused_address(home: Home, lived: str) -> None:
    of_ada = [("created_by_operator", ""), ("sign_in_refused", "password")]
    assert names(home.json("audit", "--person", "Ada@example.com")) == of_ada
    assert names(home.json("audit", "--person", lived)) == of_ada
    assert names(home.json("audit", "--person", NOBODY)) == [("sign_in_refused", "unknown")]
    assert names(home.json("audit", "--limit", "1")) == [("sign_in_refused", "unknown")]


def test_an_operators_address_needs_an_account(home: Home, lived: str) -> None:
    assert "Give the operator’s user ID" in str(home.error("audit", "--operator", NOBODY))


def test_events_are_found_by_name_and_app(home: Home, lived: str) -> None:
    refused, made = ("sign_in_refused", "password"), ("created_by_operator", "")
    app = ("app_created_by_operator", "")
    assert names(home.json("audit", "--app", "web")) == [app]
    both = ("--event", "created_by_operator, app_created_by_operator")
    assert names(home.json("audit", *both)) == [made, app]
    assert names(home.json("audit", *both, "--event", "sign_in_refused", "--person", lived)) == [made, refused]
    assert names(home.json("audit", *both, "--app", "nothing")) == []
    file = home.data_dir / "events.jsonl"
    home.json("audit", "export", "--event", "sign_in_refused", "--output", str(file))
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["sign_in_refused"] * 2


def test_filters_before_the_word_export_count_and_other_flags_are_refused(home: Home, lived: str) -> None:
    def exported(*words: str) -> list[str]:
        file = home.data_dir / "events.jsonl"
        file.unlink(missing_ok=True)
        home.json("audit", *words, "--output", str(file))
        return [json.loads(line)["event"] for line in file.read_text().splitlines()]

    assert exported("--person", lived, "export") == ["created_by_operator", "sign_in_refused"]
    assert exported("--app", "web", "export") == ["app_created_by_operator"]
    both = ("--event", "created_by_operator", "export", "--event", "app_created_by_operator")
    assert exported(*both) == ["created_by_operator", "app_created_by_operator"]
    assert exported("--since", "2100-01-01", "export") == []
    assert exported("--person", NOBODY, "export", "--person", lived, "--event", "sign_in_refused") == [
        "sign_in_refused"
    ]
    for flag, instead in (("--follow", "audit --follow --json"), ("--limit=3", "--since and --until")):
        status, _, error = home.error("audit", flag, "export")
        assert status == 2
        assert instead in error


@pytest.mark.parametrize(
    ("typed", "meant"), [("signed_inn", "signed_in"), ("signed_in,", "docs"), ("x" * 4000, "docs")]
)
def test_an_unknown_event_is_refused_with_the_nearest(home: Home, typed: str, meant: str) -> None:
    for command in (("audit",), ("audit", "export", "--output", str(home.data_dir / "events"))):
        status, code, error = home.error(*command, "--event", typed)
        assert (status, code) == (1, "invalid_request")
        assert "There is no event" in error
        assert meant in error
        assert len(error) < 300


def test_since_limits_the_events(home: Home, lived: str) -> None:
    assert len(home.json("audit", "--since", "1h")["events"]) == 5
    assert home.json("audit", "--since", "2100-01-01")["events"] == []
    status, _, error = home.error("audit", "--since", "soon")
    assert status == 1
    assert "15m, 2h or 7d" in error


def test_people_get_a_table(home: Home, lived: str) -> None:
    said = home.words("audit")
    assert "sign_in_refused" in said.out
    assert "password" in said.out


def follow(home: Home, *options: str) -> subprocess.Popen[str]:
    """A follower whose output is a pipe."""
    command = [sys.executable, "manage.py", "--data-dir", str(home.data_dir), "audit", "--follow", "--json", *options]
    return subprocess.Popen(
        command, cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_following_prints_a_line_per_event_until_ctrl_c_or_a_closed_pipe(home: Home, lived: str) -> None:
    with follow(home) as one, follow(home) as other:
        assert one.stdout is not None
        assert one.stderr is not None
        assert other.stdout is not None
        try:
            shown = [json.loads(one.stdout.readline())["event"] for _ in range(5)]
            assert shown[-2:] == ["sign_in_refused"] * 2
            assert all(other.stdout.readline() for _ in range(5))
            other.stdout.close()
            assert other.wait(10) == 0
            home.json("app", "rotate-secret", "web")
            assert json.loads(one.stdout.readline())["event"] == "app_secret_made_by_operator"
            one.send_signal(signal.SIGINT)
            assert one.wait(10) == 130
            assert one.stderr.read() == ""
        finally:
            one.kill()
            other.kill()


def test_a_follower_with_filters_prints_only_their_events(home: Home, lived: str) -> None:
    with follow(home, "--app", "web", "--event", "app_secret_made_by_operator,app_deleted_by_operator") as one:
        assert one.stdout is not None
        try:
            home.json("app", "rotate-secret", "web")
            home.user("eve@example.com")
            home.json("app", "delete", "web", "--yes")
            shown = [json.loads(one.stdout.readline())["event"] for _ in range(2)]
            assert shown == ["app_secret_made_by_operator", "app_deleted_by_operator"]
        finally:
            one.kill()


def test_a_second_sigterm_during_shutdown_changes_nothing(home: Home, lived: str) -> None:
    with follow(home) as one:
        assert one.stdout is not None
        assert one.stderr is not None
        try:
            assert one.stdout.readline()
            ends = time.monotonic() + 10
            while one.poll() is None and time.monotonic() < ends:
                one.send_signal(signal.SIGTERM)
                time.sleep(0.001)
            assert one.poll() == 130
            assert one.stderr.read() == ""
        finally:
            one.kill()


def test_following_the_embedded_store_needs_a_running_server(data_dir: Path) -> None:
    assert child(data_dir, "app", "create", *NEW_APP, "--scopes", "profile").status == 0
    assert "No server runs" in child(data_dir, "audit", "--follow").err
