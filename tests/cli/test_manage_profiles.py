"""`app create` and `app update` with `--profile`: what a profile brings along, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.http.key_app import key_for, set_of
from tests.support.lists.offenders import each
from tests.support.processes.operator_commands import Home

GIVEN = ("--name", "Bank", "--redirect-uri", "https://bank.example/cb", "--scopes", "openid profile")
FAPI2 = ("--profile", "fapi2")
SWITCHED: dict[str, Any] = {
    "authMethod": "private_key_jwt",
    "public": False,
    "requirePushed": True,
    "pkceRequired": True,
    "dpopRequired": True,
    "issInResponse": True,
    "refreshRetrySeconds": 60,
    "idTokenAlg": "ES256",
    "profile": "fapi2",
}


@pytest.fixture
def keys(tmp_path: Path) -> tuple[str, str]:
    """The option with a set of one key."""
    (tmp_path / "jwks.json").write_bytes(set_of(key_for("ES256")))
    return "--jwks", str(tmp_path / "jwks.json")


def shown(app: dict[str, Any]) -> dict[str, Any]:
    """The members of a record that the profile sets."""
    return {name: app[name] for name in SWITCHED}


def test_the_profile_brings_its_settings_along(home: Home, keys: tuple[str, str]) -> None:
    made = home.json("app", "create", "--client-id", "bank", *GIVEN, *FAPI2, *keys)
    assert shown(made) == SWITCHED
    assert "client_secret" not in made
    assert shown(home.json("app", "show", "bank")) == SWITCHED
    assert [shown(app) for app in home.json("app", "list")["apps"]] == [SWITCHED]


def test_other_apps_have_no_profile(home: Home) -> None:
    assert home.app("web")["profile"] == "none"


def test_the_profile_is_switched_on_for_an_app_and_off(home: Home, keys: tuple[str, str]) -> None:
    home.json("app", "create", "--client-id", "bank", *GIVEN, "--auth-method", "private_key_jwt", *keys)
    assert shown(home.json("app", "update", "bank", *FAPI2)) == SWITCHED
    assert home.json("app", "update", "bank", "--id-token-alg", "EdDSA")["idTokenAlg"] == "EdDSA"
    assert home.json("app", "update", "bank", "--profile", "none", "--no-dpop-required")["dpopRequired"] is False


def test_an_id_token_alg_that_the_profile_allows_stays(home: Home, keys: tuple[str, str]) -> None:
    made = home.json("app", "create", *GIVEN, *FAPI2, *keys, "--id-token-alg", "EdDSA")
    assert made["idTokenAlg"] == "EdDSA"
    assert home.json("app", "update", made["client_id"], *FAPI2)["idTokenAlg"] == "EdDSA"


def test_everything_that_an_app_lacks_is_named_at_once(home: Home) -> None:
    plain = ("--name", "Web", "--redirect-uri", "http://localhost:3000/cb", "--scopes", "profile")
    back = ("--post-logout-redirect-uri", "http://localhost:3000/bye")
    home.json("app", "create", "--client-id", "web", *plain, *back)
    before = home.json("app", "show", "web")
    status, code, said = home.error("app", "update", "web", *FAPI2, "--no-dpop-required", "--id-token-alg", "RS256")
    assert (status, code) == (1, "invalid_request")
    assert said == (
        "the profile fapi2 demands: authMethod is private_key_jwt; dpopRequired is true; jwks or jwksUri is there; "
        "idTokenAlg is ES256 or EdDSA; redirect_uris begins with https:// ('http://localhost:3000/cb'); "
        "postLogoutRedirectUris begins with https:// ('http://localhost:3000/bye')"
    )
    assert home.json("app", "show", "web") == before


@each(
    ("options", "field"),
    [
        pytest.param(("--auth-method", "client_secret"), "authMethod is private_key_jwt", id="a secret"),
        pytest.param(("--auth-method", "none"), "authMethod is private_key_jwt", id="no proof"),
        pytest.param(("--public",), "authMethod is private_key_jwt", id="public"),
        pytest.param(("--no-require-pushed",), "requirePushed is true", id="requests in the address"),
        pytest.param(("--no-pkce-required",), "pkceRequired is true", id="no PKCE"),
        pytest.param(("--no-dpop-required",), "dpopRequired is true", id="bearer tokens"),
        pytest.param(("--no-iss",), "issInResponse is true", id="no iss"),
        pytest.param(("--refresh-retry-seconds", "30"), "refreshRetrySeconds is 60", id="a shorter retry"),
        pytest.param(("--id-token-alg", "RS256"), "idTokenAlg is ES256 or EdDSA", id="RS256"),
        pytest.param(("--jwks", ""), "jwks or jwksUri is there", id="no keys"),
        pytest.param(("--jwks-uri", "http://127.0.0.1:9/k"), "jwksUri begins with https://", id="keys without TLS"),
        pytest.param(("--redirect-uri", "http://127.0.0.1/cb"), "redirect_uris begins with https://", id="loopback"),
        pytest.param(("--redirect-uri", "http://localhost/cb"), "redirect_uris begins with https://", id="localhost"),
        pytest.param(("--webhook-url", "http://127.0.0.1:9/w"), "webhookUrl begins with https://", id="webhook"),
        pytest.param(
            ("--backchannel-logout-uri", "http://127.0.0.1:9/l"), "backchannelLogoutUri begins with", id="logout"
        ),
    ],
)
def test_a_weaker_value_is_refused_by_name(
    home: Home, keys: tuple[str, str], options: tuple[str, ...], field: str
) -> None:
    given = (*GIVEN, *(() if options[0].startswith("--jwks") else keys))
    if options[0] != "--jwks":
        status, _, said = home.error("app", "create", *given, *FAPI2, *options)
        assert status != 0
        assert field in said
    client_id = home.json("app", "create", *GIVEN, *FAPI2, *keys)["client_id"]
    before = home.json("app", "show", client_id)
    status, _, said = home.error("app", "update", client_id, *options)
    assert status != 0
    assert field in said
    assert home.json("app", "show", client_id) == before


def test_a_set_of_keys_for_rs256_alone_is_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "rsa.json").write_bytes(set_of({**key_for("RS256").public.to_jwk(), "alg": "RS256"}))
    _, _, said = home.error("app", "create", *GIVEN, *FAPI2, "--jwks", str(tmp_path / "rsa.json"))
    assert "jwks has a key for ES256, PS256, EdDSA or Ed25519" in said
    (tmp_path / "rsa.json").write_bytes(set_of(key_for("RS256")))
    made = home.json("app", "create", *GIVEN, *FAPI2, "--jwks", str(tmp_path / "rsa.json"))
    assert orjson.dumps(made["jwks"]).count(b'"kty"') == 1


def test_an_api_whose_tokens_are_signed_with_rs256_is_refused(home: Home, keys: tuple[str, str]) -> None:
    for name, options in (("old", ("--signing-alg", "RS256")), ("new", ("--signing-alg", "ES256"))):
        made = ("--identifier", f"https://{name}.example", "--name", name.title(), "--scope", f"{name}:read=Read")
        home.json("api", "create", *made, "--token-format", "jwt", *options)
    given = ("--name", "Bank", "--redirect-uri", "https://bank.example/cb", *FAPI2, *keys)
    _, _, said = home.error("app", "create", *given, "--scopes", "old:read new:read")
    assert said.endswith("signed with ES256, PS256, EdDSA or Ed25519 (not those of https://old.example)")
    made = home.json("app", "create", *given, "--scopes", "new:read")
    assert "https://old.example" in home.error("app", "update", made["client_id"], "--scopes", "old:read")[2]


def test_no_tokens_are_minted_for_an_app_whose_tokens_are_bound(home: Home, keys: tuple[str, str]) -> None:
    home.json("app", "create", "--client-id", "bank", *GIVEN, *FAPI2, *keys)
    home.app("bound", "--dpop-required")
    home.user("ada@example.com")
    for client_id in ("bank", "bound"):
        refused = home.error(
            "token", "mint", "--client-id", client_id, "--user", "ada@example.com", "--scopes", "profile"
        )
        assert refused[1:] == ("invalid_dpop_proof", "This app gets tokens with a DPoP proof only.")
