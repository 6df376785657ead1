"""What the operator's command line refuses, its error messages, and its confirmation questions."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path

import pytest

import manage
from cli.run import KNOWN_SCOPES
from store.crypto.keyring import KeyRing
from tests.support.processes.operator_commands import NEW_APP, PASSWORD, Home, child, everything


def test_the_password_is_read_from_standard_input(home: Home) -> None:
    words = ("user", "create", "--email", "ada@example.com", "--name", "Ada", "--password-stdin", "--json")
    weak = child(home.data_dir, *words, stdin="short\n")
    assert weak.error == (1, "invalid_request", "Choose a password of at least 10 characters.")
    made = child(home.data_dir, *words, stdin=f"{PASSWORD}\n").json
    assert "password" not in made
    assert home.with_store(lambda store: store.people.verify("ada@example.com", PASSWORD))
    assert child(home.data_dir, *words).error[0] == 2


@pytest.mark.parametrize(
    ("answer", "status", "left"),
    [pytest.param("yes\n", 0, 0, id="yes"), pytest.param("\n", 1, 1, id="anything else leaves it")],
)
def test_deleting_in_a_terminal_asks_for_confirmation(home: Home, answer: str, status: int, left: int) -> None:
    home.app("web")
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode())
        said = child(home.data_dir, "app", "delete", "web", stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert said.status == status
    assert said.err.startswith("Delete the app web, every token of it")
    assert len(home.json("app", "list")["apps"]) == left


def test_without_a_terminal_deleting_needs_yes(home: Home) -> None:
    home.app("web")
    said = child(home.data_dir, "app", "delete", "web", "--json")
    assert said.error == (
        1,
        "invalid_request",
        "This cannot be undone: give --yes, or run it on a terminal.",
    )
    assert home.json("app", "delete", "web", "--yes") == {
        "client_id": "web",
        "deleted": True,
        "purged": False,
    }
    assert home.json("app", "list") == {"apps": []}
    # Nobody had connected it, so its id is free at once.
    assert home.app("web")


def test_a_misleading_name_needs_a_flag(home: Home) -> None:
    misleading = ("app", "create", "--client-id", "own", *NEW_APP, "--scopes", "profile", "--name", "Latchkey Support")
    code, _, said = child(home.data_dir, *misleading, "--json").error
    assert (code, "name of this server" in said) == (1, True)
    assert home.json(*misleading, "--any-name")["name"] == "Latchkey Support"


MINT = ("token", "mint", "--user", "ada@example.com", "--client-id")


@pytest.mark.parametrize(
    ("words", "code", "description"),
    [
        pytest.param(("app", "show", "none"), "not_found", "No such app.", id="an unknown app"),
        pytest.param(("app", "show", "a b"), "not_found", "No such app.", id="what no client id can be"),
        pytest.param(("app", "update", "none", "--disable"), "not_found", "No such app.", id="updating an unknown app"),
        pytest.param(("app", "rotate-secret", "none"), "not_found", "No such app.", id="rotating an unknown app"),
        pytest.param(("app", "delete", "none", "--yes"), "not_found", "No such app.", id="deleting an unknown app"),
        pytest.param(
            ("app", "update", "web"), "invalid_request", "Nothing to change is given.", id="an update of nothing"
        ),
        pytest.param(
            ("app", "create", *NEW_APP, "--redirect-uri", "http://web.example/\x1b", "--scopes", "profile"),
            "invalid_request",
            r"redirect URI 'http://web.example/\x1b': A redirect URI can't have spaces, control characters, quotes, "
            "brackets or backslashes.",
            id="a bad redirect URI of two is named with its reason",
        ),
        pytest.param(
            ("app", "update", "web", "--redirect-uri", "https://id.example/cb", "--base-url", "https://id.example"),
            "invalid_request",
            "redirect URI 'https://id.example/cb': This is the address of this server itself. Use an address of the "
            "app.",
            id="a redirect URI of the server",
        ),
        pytest.param(
            ("app", "update", "web", "--redirect-uri", "com.example.app:/cb"),
            "invalid_request",
            "redirect URI 'com.example.app:/cb': Only public apps can have a scheme of their own. Use https.",
            id="a redirect URI that only a public app may have",
        ),
        pytest.param(
            ("app", "create", "--client-id", "web", *NEW_APP, "--scopes", "profile"),
            "invalid_request",
            "This client_id is registered already.",
            id="a client id that is taken",
        ),
        pytest.param(
            ("app", "create", *NEW_APP, "--scopes", "root"),
            "invalid_scope",
            f"There is no scope root. {KNOWN_SCOPES}",
            id="no scope",
        ),
        pytest.param(
            ("app", "create", *NEW_APP, "--scopes", "profile", "--hosted-storage"),
            "invalid_request",
            "an app with hosted storage registers data:read or data:write",
            id="hosted storage without a scope for it",
        ),
        pytest.param(
            ("user", "create", "--email", "ADA@example.com", "--name", "Ada"),
            "invalid_request",
            "There's already an account with this e-mail address.",
            id="an address that is taken",
        ),
        pytest.param(
            ("user", "invite", "--email", "ada@example.com", "--base-url", "https://id.example"),
            "invalid_request",
            "There's already an account with this e-mail address.",
            id="an invitation for somebody who is there",
        ),
        pytest.param(
            ("user", "invite", "--email", "bob@example.com"),
            "invalid_request",
            "The link needs the server's address: --base-url or LATCHKEY_BASE_URL.",
            id="an invitation to nowhere",
        ),
        pytest.param(
            ("user", "show", "nobody@example.com"),
            "not_found",
            "No such person.",
            id="an unknown person",
        ),
        pytest.param(
            ("user", "disable", "nobody"),
            "invalid_request",
            "An e-mail address must have one @.",
            id="no e-mail address",
        ),
        pytest.param(
            (*MINT, "web", "--scopes", "data:write profile apps:read"),
            "invalid_scope",
            "The app did not register apps:read data:write.",
            id="minting more than the app registered",
        ),
        pytest.param(
            (*MINT, "stores", "--scopes", "profile"),
            "invalid_scope",
            "An app with hosted storage asks for data:read or data:write.",
            id="minting what the app may not ask for",
        ),
        pytest.param(
            (*MINT, "ended", "--scopes", "profile"),
            "access_denied",
            "This app is disabled.",
            id="minting for a disabled app",
        ),
        pytest.param(
            ("token", "mint", "--user", "gone@example.com", "--client-id", "web", "--scopes", "profile"),
            "access_denied",
            "This person is disabled.",
            id="minting for a disabled person",
        ),
    ],
)
def test_a_refusal_is_one_line_with_the_reason(home: Home, words: tuple[str, ...], code: str, description: str) -> None:
    if "web" in words:
        home.app("web")
    if "stores" in words:
        home.app("stores", "--hosted-storage")
    if "ended" in words:
        home.app("ended")
        home.json("app", "update", "ended", "--disable")
    for email in {"ada@example.com", "gone@example.com"} & {word.lower() for word in words}:
        home.user(email)
        if email.startswith("gone"):
            home.json("user", "disable", email)
    assert home.error(*words) == (1, code, description)
    said = home.words(*words)
    assert (said.status, said.out, said.err) == (1, "", f"manage.py: {description}\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        pytest.param((), "required: COMMAND", id="no command"),
        pytest.param(("app",), "required: ACTION", id="no action"),
        pytest.param(("app", "creat"), "invalid choice: 'creat'", id="an unknown action"),
        pytest.param(("app", "create", "--name", "x"), "required: --redirect-uri, --scopes", id="missing options"),
        pytest.param(("app", "update", "x", "--enable", "--disable"), "not allowed with", id="both ways at once"),
        pytest.param(("app", "update", "x", "--refresh-retry-seconds", "no"), "invalid int", id="no number"),
        pytest.param(("app", "list", "--redis-url", "memory"), "must not be memory here", id="the memory store"),
        pytest.param(("app", "list", "--redis-url", "ftp://x"), "redis_url must be", id="a setting that is none"),
        pytest.param(("app", "list", "--redis-url", "redis://x"), "keys generate", id="a shared store without keys"),
        pytest.param(("app", "list", "--secret-keys", "1:x"), "LATCHKEY_SECRET_KEYS", id="keys on the command line"),
    ],
)
def test_a_bad_command_line_is_reported_in_one_line(
    data_dir: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    for extra in ((), ("--json",)):
        assert manage.main(["--data-dir", str(data_dir), *extra, *words], {}) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert complaint in (json.loads(err)["error_description"] if extra else err)
    assert not data_dir.exists()


def test_an_unreachable_store_is_reported_without_a_traceback(tmp_path: Path) -> None:
    away = f"unix://{tmp_path}/none.sock"
    said = child(tmp_path, "app", "list", LATCHKEY_REDIS_URL=away, LATCHKEY_SECRET_KEYS=KeyRing.generate(1))
    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert "cannot be reached" in said.err


@pytest.mark.trap(38)
@pytest.mark.parametrize("key_id", [1, 9], ids=["under the same id", "under another id"])
def test_keys_of_another_store_are_refused_and_change_nothing(home: Home, key_id: int) -> None:
    home.app("web")
    with home.client() as client:
        before = everything(client)
    foreign = KeyRing.generate(key_id)
    status, _, description = home.error("app", "update", "web", "--disable", LATCHKEY_SECRET_KEYS=foreign)
    assert status == 1
    assert "key" in description
    assert foreign not in description
    with home.client() as client:
        assert everything(client) == before


def test_a_command_that_makes_a_store_says_so_once(tmp_path: Path) -> None:
    place = tmp_path / "new"
    first = child(place, "app", "create", *NEW_APP, "--scopes", "profile")
    assert (first.status, f"There was no store in {place}, so this command makes an empty one." in first.err) == (
        0,
        True,
    )
    second = child(place, "user", "list")
    assert (second.status, second.err) == (0, "")
    said = child(tmp_path / "other", "app", "create", *NEW_APP, "--scopes", "profile", "--json")
    assert (said.status, said.err, "client_id" in said.json) == (0, "", True)


@pytest.mark.parametrize(
    "words", [("user", "list"), ("app", "show", "web"), ("audit", "--follow"), ("store", "backup", "copies"), ("fsck",)]
)
def test_a_command_that_reads_makes_no_store(tmp_path: Path, words: tuple[str, ...]) -> None:
    place = tmp_path / "typo"
    said = child(place, *words)
    assert (said.status, said.out) == (1, "")
    assert f"There is no store in {place}. `latchkey serve` makes one." in said.err
    said = child(place, *words, "--json")
    assert (said.status, said.out, json.loads(said.err)["error"]) == (1, "", "not_found")
    assert not place.exists()
