"""`app create` and `app update`: how an app proves itself, and its keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.http.key_app import key_for, set_of
from tests.support.processes.operator_commands import Home

URL = "https://app.example/jwks.json"
BY_KEY = ("--auth-method", "private_key_jwt")


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with a set of one key."""
    (tmp_path / "jwks.json").write_bytes(set_of(key_for("ES256")))
    return str(tmp_path / "jwks.json")


def test_an_app_with_a_key_gets_no_secret(home: Home, file: str) -> None:
    made = home.app("web", *BY_KEY, "--jwks", file)
    assert "client_secret" not in made
    assert (made["authMethod"], made["public"], made["jwksUri"]) == ("private_key_jwt", False, "")
    assert made["jwks"]["keys"] == [key_for("ES256").public.to_jwk("ES256")]
    assert home.json("app", "show", "web")["jwks"] == made["jwks"]
    said = "An app with private_key_jwt has no secret."
    assert home.error("app", "rotate-secret", "web") == (1, "invalid_request", said)


def test_a_url_takes_the_place_of_a_file_and_back(home: Home, file: str) -> None:
    made = home.app("web", *BY_KEY, "--jwks-uri", URL)
    assert (made["jwks"], made["jwksUri"]) == (None, URL)
    changed = home.json("app", "update", "web", "--jwks", file)
    assert changed["jwksUri"] == ""
    assert changed["jwks"]
    changed = home.json("app", "update", "web", "--jwks-uri", URL)
    assert (changed["jwks"], changed["jwksUri"]) == (None, URL)


def test_a_change_of_the_method_ends_the_secrets(home: Home, file: str) -> None:
    home.app("web")
    said = home.words("app", "update", "web", *BY_KEY, "--jwks", file)
    assert "no secret yet" not in said.out
    assert home.json("app", "show", "web")["authMethod"] == "private_key_jwt"
    said = home.words("app", "update", "web", "--auth-method", "client_secret")
    assert "It has no secret yet" in said.out
    assert home.json("app", "update", "web", "--auth-method", "none")["public"] is True
    assert home.json("app", "update", "web", "--no-public")["authMethod"] == "client_secret"


def test_keys_can_be_registered_apart_from_the_method_and_taken_away(home: Home, file: str) -> None:
    assert home.app("web", "--jwks", file)["authMethod"] == "client_secret"
    assert home.json("app", "update", "web", "--jwks", "")["jwks"] is None
    home.json("app", "update", "web", *BY_KEY, "--jwks-uri", URL)
    said = "an app with private_key_jwt registers jwks or jwksUri"
    assert home.error("app", "update", "web", "--jwks-uri", "")[2] == said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param([*BY_KEY], "registers jwks or jwksUri", id="no keys"),
        pytest.param(["--auth-method", "none", "--no-public"], "contradict", id="two answers"),
        pytest.param([*BY_KEY, "--public", "--jwks-uri", URL], "contradict", id="public with a key"),
        pytest.param([*BY_KEY, "--jwks", "/nowhere/keys.json"], "cannot be read", id="no file"),
        pytest.param([*BY_KEY, "--jwks-uri", "http://app.example/k"], "jwksUri looks like", id="no TLS"),
        pytest.param([*BY_KEY, "--jwks-uri", "https://app.example/#k"], "jwksUri looks like", id="a fragment"),
    ],
)
def test_contradictions_and_unreadable_keys_are_refused(home: Home, options: list[str], why: str) -> None:
    given = ("--client-id", "web", "--name", "Web", "--redirect-uri", "https://web.example/cb", "--scopes", "profile")
    status, _, said = home.error("app", "create", *given, *options)
    assert status != 0
    assert why in said
    assert home.json("app", "list") == {"apps": []}


def test_a_private_key_is_refused_and_not_shown(home: Home, tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_bytes(set_of({**key_for("ES256").public.to_jwk(), "d": "a-private-number"}))
    given = ("--client-id", "web", "--name", "Web", "--redirect-uri", "https://web.example/cb", "--scopes", "profile")
    _, _, said = home.error("app", "create", *given, *BY_KEY, "--jwks", str(tmp_path / "jwks.json"))
    assert "private" in said
    assert "a-private-number" not in said
