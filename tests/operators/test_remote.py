"""Commands against a server elsewhere: the same answers through its management interface."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import manage
from cli.commands.acts import ACTS, READS
from cli.commands.audit import COLUMNS
from cli.remote import following
from cli.remote.client import RemoteServer, ServerUnreachable
from cli.remote.commands import REMOTE
from dev.lab.engines import wait_until
from store.refused import Refused
from tests.support.browser.pictures import drawn
from tests.support.processes.operator_commands import clean_environment
from tests.support.processes.processes import QUICK, Server

EVE = "eve@example.com"
ROOT = Path(__file__).resolve().parent.parent.parent


class Elsewhere:
    """A server, and a shell on another machine with a key of a role."""

    def __init__(self, server: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        self.server, self.capsys, self.folder = server, capsys, tmp_path
        found = re.search(r"operations on (\S+)$", server.log, re.MULTILINE)
        assert found
        self.url = found[1]
        self.file = self.key_file("admin")

    def local(self, *words: str) -> Any:
        """The JSON of a command on the server's machine."""
        return self._run("--data-dir", str(self.server.data_dir), *words)

    def key_file(self, role: str) -> Path:
        """A file with a new key."""
        key = self.local("operator-key", "create", "--role", role)["key"]
        file = self.folder / f"{role}.key"
        file.write_text(f"{key}\n")
        file.chmod(0o600)
        return file

    def there(self, *words: str, file: Path | None = None) -> Any:
        """The JSON of a command against the server."""
        return self._run("--server", self.url, "--key-file", str(file or self.file), *words)

    def error(self, *words: str, file: Path | None = None, url: str = "") -> tuple[int, str, str]:
        """Exit status, code and description of a command that fails."""
        return self._failed("--server", url or self.url, "--key-file", str(file or self.file), *words)

    def local_error(self, *words: str) -> tuple[int, str, str]:
        """The same of a command on the server's machine."""
        return self._failed("--data-dir", str(self.server.data_dir), *words)

    def _failed(self, *words: str) -> tuple[int, str, str]:
        status = manage.main([*words, "--json"], {})
        found = json.loads(self.capsys.readouterr().err)
        return status, found["error"], found["error_description"]

    def _run(self, *words: str) -> Any:
        status = manage.main([*words, "--json"], {})
        shown = self.capsys.readouterr()
        assert status == 0, shown.err
        return json.loads(shown.out)


@pytest.fixture
def elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Elsewhere]:
    """A server with an operations port, and without keys in its settings."""
    with Server("--ops-port", "0", *QUICK) as server:
        server.ready()
        yield Elsewhere(server, capsys, tmp_path)


def test_every_remote_command_is_a_command() -> None:
    assert set(REMOTE) <= {*ACTS, *READS}


def test_people_and_apps_are_managed_from_elsewhere(elsewhere: Elsewhere, tmp_path: Path) -> None:
    there, local = elsewhere.there, elsewhere.local
    made = there("user", "create", "--email", EVE, "--name", "Eve", "--group", "staff")
    assert made["password"]
    shown = there("user", "show", EVE)
    assert {name: value for name, value in local("user", "show", EVE).items() if name != "activity"} == {
        name: value for name, value in shown.items() if name != "activity"
    }
    moved = "eve@new.example"
    assert there("user", "update", EVE, "--email", moved, "--name", "Eve")["email"] == moved
    assert local("user", "update", moved, "--email", EVE, "--no-way-back")["email"] == EVE
    assert "Nothing to change" in elsewhere.error("user", "update", EVE)[2]
    assert "goes with --email" in elsewhere.error("user", "update", EVE, "--name", "E", "--no-way-back")[2]
    assert elsewhere.error("user", "update", EVE, "--email", "x")[:2] == (1, "invalid_request")
    assert there("user", "group", "add", EVE, "admins")["groups"] == ["admins", "staff"]
    assert there("user", "group", "remove", EVE, "staff")["groups"] == ["admins"]
    plan = there("user", "bulk", "suspend", "--query", EVE, "--reason", "Unpaid")
    assert (plan["dryRun"], plan["changed"], there("user", "show", EVE)["status"]) == (True, 1, "active")
    done = there("user", "bulk", "suspend", "--token", plan["token"])
    assert (done["state"], done["changed"], there("user", "show", EVE)["status"]) == ("done", 1, "disabled")
    now = local("user", "bulk", "delete", "--query", EVE)
    for command in (elsewhere.error, elsewhere.local_error):
        waits = command("user", "bulk", "delete", "--token", now["token"], "--wait", "7")
        assert waits[:2] == (1, "invalid_request"), "nobody is deleted at once who was to wait"
    late = there("user", "bulk", "delete", "--query", EVE, "--wait", "7", "--reason", "Asked for")
    assert (late["waitDays"], there("user", "bulk", "delete", "--token", late["token"])["changed"]) == (7, 1)
    kept = local("user", "bulk", "cancel-deletion", "--query", EVE)
    assert local("user", "bulk", "cancel-deletion", "--token", kept["token"])["changed"] == 1
    again = local("user", "bulk", "delete", "--query", EVE, "--wait", "90")
    assert local("user", "bulk", "delete", "--token", again["token"])["changed"] == 1
    assert "deletionAt" not in there("user", "cancel-deletion", EVE)
    assert elsewhere.error("user", "bulk", "delete", "--query", EVE, "--wait", "0")[:2] == (1, "invalid_request")
    here = elsewhere.local("user", "bulk", "resume", "--query", EVE)
    assert elsewhere.local("user", "bulk", "resume", "--token", here["token"])["changed"] == 1
    assert there("user", "suspend", EVE, "--reason", "Unpaid")["status"] == "disabled"
    assert there("user", "list", "--status", "suspended")["users"][0]["sub"] == made["sub"]
    assert there("user", "resume", EVE)["status"] == "active"
    assert there("user", "sign-out", EVE) == {
        name: value for name, value in local("user", "sign-out", EVE).items() if name != "activity"
    }
    assert elsewhere.error("user", "disconnect", EVE, "nothing")[:2] == (1, "not_found")
    planned = there("user", "delete", EVE, "--wait", "7", "--reason", "Asked for", "--yes")
    assert planned == {name: value for name, value in local("user", "show", EVE).items() if name in planned}
    assert planned["deletionAt"]
    assert "deletionAt" not in there("user", "cancel-deletion", EVE)
    for run in (there, local):
        page = run("user", "list", "--limit", "1")
        assert (page["nextCursor"], page["total"]) == (None, 1)
    assert there("user", "role", EVE, "admin") == {"sub": made["sub"], "email": EVE, "role": "admin", "before": None}
    assert [one["id"] for one in there("user", "roles")["roles"]] == [made["sub"]]
    assert elsewhere.error("user", "role", EVE, "none")[:2] == (1, "access_denied")
    assert there("credits", "grant", EVE, "5usd", "--key", "once")["paid"] == 5_000_000
    assert there("credits", "grant", EVE, "5usd", "--key", "once")["replayed"] is True
    assert [entry["amount"] for entry in there("credits", "show", EVE)["entries"]] == [5_000_000]
    output = tmp_path / "eve.zip"
    there("user", "export", EVE, "--output", str(output))
    assert output.read_bytes().startswith(b"PK")
    app = there("app", "create", "--name", "Web", "--redirect-uri", "https://web.example/cb", "--scopes", "profile")
    assert app["client_secret"]
    assert there("app", "update", app["client_id"], "--name", "The web", "--disable")["status"] == "disabled"
    assert local("app", "show", app["client_id"])["name"] == "The web"
    assert there("app", "list") == local("app", "list")
    assert there("app", "rotate-secret", app["client_id"])["client_secret"]
    assert there("app", "deliveries", app["client_id"])["deliveries"] == []
    assert there("app", "delete", app["client_id"], "--yes")["deleted"] is True
    # The server's events are in the log about a second later.
    wait_until(lambda: "exported_by_operator" in str(there("audit", "--person", EVE)))
    assert {event["event"] for event in there("audit", "--person", EVE)["events"]} >= {"suspended_by_operator"}
    shop = local("app", "create", "--name", "Shop", "--redirect-uri", "https://shop.example/cb", "--scopes", "profile")
    named = ("--since", "1h", "--event", "suspended_by_operator,app_created_by_operator", "--event", "signed_up")
    for command in (there, local):
        assert {one["event"] for one in command("audit", *named)["events"]} == {
            "suspended_by_operator",
            "app_created_by_operator",
        }
        assert [one["client_id"] for one in command("audit", *named, "--app", shop["client_id"])["events"]] == [
            shop["client_id"]
        ]
    assert "suspended_by_operator" in elsewhere.error("audit", "--event", "suspend_by_operator")[2]
    trail = tmp_path / "trail.cef"
    there("audit", "export", "--format", "cef", "--since", "1h", "--output", str(trail))
    assert "|suspended_by_operator|" in trail.read_text()
    assert local("audit", "export", "--person", EVE, "--output", str(tmp_path / "eve.jsonl"))["bytes"] > 100
    assert elsewhere.error("audit", "export")[:2] == (1, "invalid_request")
    assert there("operator-key", "list")["keys"][0]["role"] == "admin"
    assert "keys" in there("keys", "signing", "list")
    words = (
        "--server",
        elsewhere.url,
        "--key-file",
        str(elsewhere.file),
        "user",
        "invite",
        "--email",
        "new@example.com",
    )
    assert manage.main([*words], {}) == 0
    assert "sends no e-mail. Give this link" in elsewhere.capsys.readouterr().out
    assert there("keys", "list") == local("keys", "list")
    assert there("keys", "list")["keys"][0]["since"]
    assert elsewhere.error("user", "delete", EVE, "--yes")[:2] == (1, "access_denied")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_events_are_followed_from_elsewhere_until_a_signal(elsewhere: Elsewhere, ending: signal.Signals) -> None:
    for name in ("First", "Second", "Third"):
        elsewhere.local(
            "app", "create", "--name", name, "--redirect-uri", "https://a.example/cb", "--scopes", "profile"
        )
    words = ("--server", elsewhere.url, "--key-file", str(elsewhere.file), "audit", "--follow", "--json")
    made = ("--event", "app_created_by_operator,app_changed_by_operator")
    with program(*words, *made, "--limit", "2") as newest, program(*words, *made, "--since", "1h") as since:
        earlier = [[read_event(one) for _ in range(count)] for one, count in ((newest, 2), (since, 3))]
        assert [one["client_id"] for one in earlier[0]] == [one["client_id"] for one in earlier[1]][1:]
        first = earlier[1][0]["client_id"]
        elsewhere.there("app", "update", first, "--name", "Fourth")
        for one in (newest, since):
            came = read_event(one)
            assert (came["event"], came["client_id"]) == ("app_changed_by_operator", first)
            one.send_signal(ending)
            assert one.wait(10) == 130
            assert one.stderr is not None
            assert one.stderr.read() == ""


def test_events_are_filtered_by_who_acted_here_and_from_elsewhere(elsewhere: Elsewhere, tmp_path: Path) -> None:
    support = elsewhere.key_file("support")
    (key,) = (one["id"] for one in elsewhere.local("operator-key", "list")["keys"] if one["role"] == "support")
    sub = elsewhere.there("user", "create", "--email", EVE, "--name", "Eve")["sub"]
    elsewhere.there("user", "suspend", EVE, "--reason", "Unpaid", file=support)
    elsewhere.local("user", "resume", EVE)
    log, acts = ("audit", "--since", "1h", "--person", EVE), ["suspended_by_operator"]
    # The server's events are in the log about a second later.
    wait_until(lambda: "suspended_by_operator" in str(elsewhere.local(*log)))
    remote = ("--server", elsewhere.url, "--key-file", str(elsewhere.file))
    for run, server in ((elsewhere.local, ("--data-dir", str(elsewhere.server.data_dir))), (elsewhere.there, remote)):
        for operator, done in ((key, acts), (sub, []), (EVE, [])):
            assert [one["event"] for one in run(*log, "--operator", operator)["events"]] == done
        for words in (("--operator", key, "export"), ("export", "--operator", key)):
            file = tmp_path / "events.jsonl"
            run("audit", *words, "--output", str(file))
            assert [json.loads(line)["by"] for line in file.read_text().splitlines()] == [f"key {key}"], words
            file.unlink()
        with program(*server, "audit", "--follow", "--json", "--since", "1h", "--operator", key) as follower:
            assert read_event(follower)["event"] == "suspended_by_operator"


def test_a_follower_prints_an_event_that_comes_twice_once(capsys: pytest.CaptureFixture[str]) -> None:
    event = dict.fromkeys(COLUMNS, "") | {"id": "1", "event": "signed_in"}

    class Ending(RemoteServer):
        pages = iter(({"items": [], "nextCursor": "a"}, {"items": [event, {**event, "id": "2"}], "nextCursor": "b"}))

        def get(self, path: str, **query: str | int | None) -> Any:
            if "follow" not in query:
                return {"items": [event], "nextCursor": None}
            return next(self.pages)

    args = Namespace(events=[], person=None, app=None, operator=None, since=None, limit=None, json=True)
    with pytest.raises(StopIteration):
        following.follow_events(Ending("http://localhost:1", "key"), args)
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["1", "2"]


def test_a_follower_asks_at_once_for_more_and_outlasts_a_server_that_is_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    event = dict.fromkeys(COLUMNS, "") | {"id": "1", "event": "signed_in"}
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return True

    monkeypatch.setattr(following, "_waited", wait)
    limited = Refused("rate_limited", "Too many requests. Try again later.", retry_after=7)
    away = ServerUnreachable("localhost:1 cannot be reached: refused")
    outcomes: list[Any] = [
        *({"items": [], "nextCursor": "a", "more": True}, {"items": [], "nextCursor": "b", "more": False}),
        *(away, away, Refused("temporarily_unavailable", "Not now."), limited),
        {"items": [event], "nextCursor": "c", "more": False},
        Refused("invalid_token", "Gone."),
    ]
    cursors: list[Any] = []

    class Failing(RemoteServer):
        def get(self, path: str, **query: str | int | None) -> Any:
            cursors.append(query.get("cursor"))
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

    args = Namespace(events=[], person=None, app=None, operator=None, since="1970-01-01", limit=None, json=True)
    with pytest.raises(Refused, match="invalid_token"):
        following.follow_events(Failing("http://localhost:1", "key"), args)
    assert cursors == [None, "a", "b", "b", "b", "b", "b", "c"]
    assert waits == [0, 1, 1, 2, 4, 7, 1]
    shown = capsys.readouterr()
    assert [json.loads(line)["id"] for line in shown.out.splitlines()] == ["1"]
    assert [line.split(".")[0] for line in shown.err.splitlines()] == [
        "latchkey: localhost:1 cannot be reached: refused",
        "latchkey: Not now",
        "latchkey: Too many requests",
        "latchkey: the server answers again",
    ]


@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_keeps_what_the_server_asks_to_wait(status: int) -> None:
    body = b'{"error":"rate_limited","error_description":"Too many requests."}' if status == 429 else b"<html>"
    head = f"HTTP/1.1 {status} No\r\nRetry-After: 9\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with listening.accept()[0] as asking:
                asking.recv(65536)
                asking.sendall(head + body)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises((Refused, ServerUnreachable)) as refused:
            RemoteServer(f"http://127.0.0.1:{listening.getsockname()[1]}", "key").get("/audit")
        thread.join()
    assert isinstance(refused.value, Refused | ServerUnreachable)
    assert refused.value.retry_after == 9


@contextmanager
def program(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A command whose output is a pipe."""
    command = [sys.executable, "manage.py", *words]
    with subprocess.Popen(
        command, cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_event(process: subprocess.Popen[str]) -> Any:
    """The next event that the command prints."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_one_thing_of_a_person_and_the_logo_of_an_app_end_from_elsewhere(elsewhere: Elsewhere, tmp_path: Path) -> None:
    there, local, error = elsewhere.there, elsewhere.local, elsewhere.error
    people, logo = tmp_path / "people.jsonl", tmp_path / "logo.png"
    links = [{"issuer": "https://idp.example.org", "subject": "eve"}]
    people.write_text(json.dumps({"email": EVE, "email_verified": True, "name": "Eve", "links": links}))
    assert local("import", str(people))["created"] == 1
    found = there("user", "identities", EVE)
    assert found == local("user", "identities", EVE)
    linked = found["identities"][0]["id"]
    status, code, said = error("user", "unlink", EVE, linked)
    assert (status, code, "only this way" in said) == (1, "invalid_request", True)
    local("user", "set-password", EVE)
    assert there("user", "unlink", EVE, linked) == {"sub": found["sub"], "id": linked, "ended": True}
    assert "`latchkey user identities`" in error("user", "unlink", EVE, linked)[2]
    assert there("user", "sessions", EVE) == {"sub": found["sub"], "sessions": []}
    assert error("user", "end-session", EVE, "-" + "x" * 21)[1] == "not_found"
    logo.write_bytes(drawn("PNG", (64, 64), (1, 2, 3)))
    words = ("--name", "Web", "--redirect-uri", "https://web.example/cb", "--scopes", "profile")
    app = there("app", "create", *words, "--logo", str(logo))
    assert app["client_secret"]
    assert app["logo"]
    name = app["client_id"]
    assert local("app", "show", name)["logo"] == app["logo"]
    assert there("app", "update", name, "--logo", "")["logo"] == ""
    assert there("app", "update", name, "--logo", str(logo))["logo"] == app["logo"]
    (tmp_path / "bad.png").write_text("no picture")
    assert error("app", "create", *words, "--logo", str(tmp_path / "bad.png"))[:2] == (1, "invalid_request")
    assert "cannot be read" in error("app", "update", name, "--logo", str(tmp_path / "missing"))[2]
    assert len(local("app", "list")["apps"]) == 1


def test_mistakes_are_answered_with_what_to_do(elsewhere: Elsewhere, tmp_path: Path) -> None:
    error, good = elsewhere.error, elsewhere.file
    support = elsewhere.key_file("support")
    assert error("app", "list", url="http://ops.example.org:8081")[0] == 2
    assert "tunnel" in error("app", "list", url="http://ops.example.org:8081")[2]
    assert error("app", "list", url="ftp://localhost")[0] == 2
    assert error("app", "list", url="http://localhost:1")[:2] == (1, "server_error")
    status, code, said = error("user", "create", "--email", EVE, "--name", "Eve", file=support)
    assert (status, code) == (1, "insufficient_role")
    assert "admin" in said
    assert "server's machine" in error("fsck")[2]
    assert "server's machine" in error("operator-key", "create", "--role", "admin")[2]
    assert error("user", "show", "nobody@example.com")[:2] == (1, "not_found")
    assert "--ops-port" in error("app", "list", url=elsewhere.server.url)[2], "the address of the site itself"
    absent = [error(*words)[2] for words in (("app", "show", "nothing"), ("api", "show", "nothing"))]
    absent += [error("operator-key", "revoke", "nothing", "--yes")[2], error("user", "disconnect", EVE, "nothing")[2]]
    assert not [said for said in absent if "--ops-port" in said]
    wide, empty, strange = (tmp_path / name for name in ("wide", "empty", "strange"))
    for file, text, mode in ((wide, good.read_text(), 0o644), (empty, "", 0o600), (strange, "lk_ok_x\ny\n", 0o600)):
        file.write_text(text)
        file.chmod(mode)
    assert f"chmod 600 {wide}" in error("app", "list", file=wide)[2]
    for file in (empty, strange):
        assert "operator-key create" in error("app", "list", file=file)[2]
    assert "cannot be read" in error("app", "list", file=tmp_path / "missing")[2]
    key = elsewhere.there("operator-key", "list", file=good)["keys"][0]["id"]
    elsewhere.there("operator-key", "revoke", key, "--yes")
    assert error("app", "list", file=good)[1] == "invalid_token"
    assert good.read_text().strip() not in elsewhere.server.log
