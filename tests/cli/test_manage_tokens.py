"""`token mint` for APIs and for keys: the rules of an authorization request."""

from __future__ import annotations

import pytest

from cli.run import KNOWN_SCOPES
from tests.support.processes.operator_commands import Home

ADA = "ada@example.com"
MINT = ("token", "mint", "--user", ADA, "--client-id", "shop")
ORDERS = "https://orders.example"
JKT = "A" * 43


@pytest.fixture
def shop(home: Home) -> Home:
    """A person, two APIs with a scope of one name, and an app with scopes of both and of Latchkey."""
    home.user(ADA)
    for name, scopes, form in (("orders", ("read", "write"), "opaque"), ("bills", ("read",), "jwt")):
        options = [word for scope in scopes for word in ("--scope", scope)]
        given = ("--identifier", f"https://{name}.example", "--name", name.title(), *options)
        home.json("api", "create", *given, "--token-format", form)
    scopes_of_all = f"openid data:read {ORDERS} read {ORDERS} write https://bills.example read"
    home.json(
        *("app", "create", "--client-id", "shop", "--name", "Shop", "--scopes", scopes_of_all),
        *("--redirect-uri", "https://shop.example/cb", "--hosted-storage"),
    )
    return home


def test_a_token_is_minted_for_the_api_that_is_named(shop: Home) -> None:
    made = shop.json(*MINT, "--scopes", "read write", "--resource", ORDERS)
    assert (made["scope"], made["token_type"], made["expires_in"]) == ("read write", "Bearer", 600)
    assert made["access_token"].startswith("lk_at_")
    assert made["refresh_token"].startswith("lk_rt_")


def test_the_api_may_be_left_out_if_the_scopes_name_it(shop: Home) -> None:
    assert shop.json(*MINT, "--scopes", "openid write")["scope"] == "write"
    assert shop.json(*MINT, "--scopes", "data:read openid")["scope"] == "openid data:read"


def test_a_minted_token_is_bound_to_a_key(shop: Home) -> None:
    for scopes in ("write", "data:read"):
        assert shop.json(*MINT, "--scopes", scopes, "--dpop-jkt", JKT)["token_type"] == "DPoP"


def test_a_minted_jwt_names_the_base_url(shop: Home) -> None:
    bills = (*MINT, "--scopes", "read", "--resource", "https://bills.example")
    _, code, said = shop.error(*bills)
    assert (code, said) == ("invalid_request", "This API takes JWTs, which name their issuer: set --base-url.")
    made = shop.json(*bills, "--base-url", "https://id.example.org")
    assert made["access_token"].count(".") == 2


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        pytest.param(("--scopes", "read"), "invalid_target", "Name the API as resource", id="a name of two APIs"),
        pytest.param(("--scopes", "data:read write"), "invalid_target", "name the API as resource", id="a mix"),
        pytest.param(
            ("--scopes", "write", "--resource", "https://bills.example"),
            "invalid_scope",
            "did not register",
            id="other",
        ),
        pytest.param(
            ("--scopes", "read", "--resource", "https://x.example"), "invalid_target", "no such", id="unknown"
        ),
        pytest.param(("--scopes", "data:read", "--resource", ORDERS), "invalid_target", "no scope there", id="none"),
        pytest.param(("--scopes", "data:write"), "invalid_scope", "did not register data:write", id="unregistered"),
        pytest.param(("--scopes", "openid"), "invalid_scope", "asks for data:read or data:write", id="no data"),
        pytest.param(("--scopes", "raed"), "invalid_scope", f"There is no scope raed. {KNOWN_SCOPES}", id="misspelt"),
        pytest.param(("--scopes", ""), "invalid_request", "A scope is a list", id="no scope"),
        pytest.param(("--scopes", "write", "--dpop-jkt", "x"), "invalid_request", "thumbprint", id="no thumbprint"),
    ],
)
def test_a_mint_is_refused_as_the_request_would_be(shop: Home, options: tuple[str, ...], code: str, words: str) -> None:
    _, found, said = shop.error(*MINT, *options)
    assert words in said
    assert found == code


def test_nothing_is_minted_for_a_disabled_api(shop: Home) -> None:
    shop.json("api", "update", ORDERS, "--disable")
    assert shop.error(*MINT, "--scopes", "write")[1] == "invalid_target"
