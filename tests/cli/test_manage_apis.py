"""APIs on the operator's command line."""

from __future__ import annotations

import pytest

from store.wiring import Store
from tests.support.lists.offenders import each
from tests.support.processes.operator_commands import NEW_APP, Home, everything

URI = "https://orders.example"
NEW = ("api", "create", "--identifier", URI, "--name", "Orders", "--scope", "orders:read=See your orders")


def test_an_api_is_registered_with_a_secret_that_is_shown_once(home: Home) -> None:
    made = home.json(*NEW, "--scope", "orders.write", "--care", "orders.write", "--detail", "orders.write=It costs.")
    secret = made.pop("client_secret")
    assert secret.startswith("lk_cs_")
    assert made["client_id"].startswith("api_")
    assert (made["identifier"], made["name"], made["status"]) == (URI, "Orders", "active")
    assert (made["tokenFormat"], made["signingAlg"], made["tokenLifetime"]) == ("opaque", "ES256", 600)
    assert made["scopes"] == [
        {"name": "orders:read", "title": "See your orders", "detail": "", "care": False, "secondStep": False},
        {"name": "orders.write", "title": "orders.write", "detail": "It costs.", "care": True, "secondStep": False},
    ]
    assert home.json("api", "show", made["client_id"]) == made
    assert home.json("api", "show", URI + "/") == made
    assert home.json("api", "list") == {"apis": [made]}
    with home.client() as client:
        assert secret.encode() not in everything(client)


def test_people_see_a_table_and_a_note(home: Home) -> None:
    said = home.words(*NEW)
    assert "The client_secret is shown this once" in said.out
    assert "orders:read  See your orders" in said.out
    assert URI in home.words("api", "list").out


def test_an_update_changes_what_is_given(home: Home) -> None:
    made = home.json(*NEW, "--scope", "orders.write=Place orders", "--care", "orders.write")
    del made["client_secret"]
    changed = home.json(
        "api", "update", URI, "--token-format", "jwt", "--signing-alg", "RS256", "--token-lifetime", "60"
    )
    assert changed == {**made, "tokenFormat": "jwt", "signingAlg": "RS256", "tokenLifetime": 60}
    assert home.json("api", "update", URI, "--disable")["status"] == "disabled"
    assert home.json("api", "update", URI, "--enable") == changed
    (kept,) = home.json("api", "update", URI, "--scope", "orders.write=Buy things")["scopes"]
    assert kept == {"name": "orders.write", "title": "Buy things", "detail": "", "care": True, "secondStep": False}
    (described,) = home.json("api", "update", URI, "--detail", "orders.write=It costs.")["scopes"]
    assert described["detail"] == "It costs."


def test_a_secret_is_rotated(home: Home) -> None:
    first = home.json(*NEW)
    rotated = home.json("api", "rotate-secret", URI)
    assert rotated["client_id"] == first["client_id"]
    assert rotated["client_secret"] != first["client_secret"]
    assert "stays valid" in home.words("api", "rotate-secret", URI).out
    assert "the only valid secret" in home.words("api", "rotate-secret", URI, "--drop-old").out


def test_a_deleted_api_is_gone(home: Home) -> None:
    made = home.json(*NEW)
    assert home.error("api", "delete", URI)[:2] == (1, "invalid_request"), "it asks, and there is no terminal"
    assert home.json("api", "delete", URI, "--yes") == {"client_id": made["client_id"], "deleted": True}
    assert home.error("api", "show", URI) == (1, "not_found", "No such API.")
    assert home.json("api", "list") == {"apis": []}


def test_an_api_that_is_registered_again_is_another_one(home: Home) -> None:
    first = home.json(*NEW)
    home.json("api", "delete", URI, "--yes")
    second = home.json(*NEW)
    assert second["client_id"] != first["client_id"]
    assert home.error("api", "show", first["client_id"]) == (1, "not_found", "No such API.")
    assert home.json("api", "show", URI)["client_id"] == second["client_id"]
    assert home.json("api", "rotate-secret", URI)["client_id"] == second["client_id"]
    assert home.json("api", "update", URI, "--disable")["client_id"] == second["client_id"]
    assert home.json("fsck")["findings"] == []
    assert home.json("api", "delete", URI, "--yes")["client_id"] == second["client_id"]


@each(
    ("words", "says"),
    [
        pytest.param((*NEW, "--scope", "a b=Two"), "The name of a scope", id="a space in a name"),
        pytest.param((*NEW, "--scope", "profile=You"), "profile belongs to Latchkey", id="a scope of ours"),
        pytest.param((*NEW, "--scope", "address"), "address belongs to Latchkey or OpenID", id="a scope of OpenID"),
        pytest.param((*NEW, "--care", "other"), "no scope other", id="a warning of no scope"),
        pytest.param((*NEW, "--detail", "other=x"), "no scope other", id="a detail of no scope"),
        pytest.param((*NEW, "--name", "Latchkey Support"), "name", id="a misleading name"),
        pytest.param((*NEW, "--token-lifetime", "3601"), "60 to 3600", id="a lifetime of more than an hour"),
        pytest.param((*NEW, "--identifier", "http://orders.example"), "https://", id="http"),
        pytest.param((*NEW, "--base-url", URI), "this server itself", id="this server's own address"),
        pytest.param(("api", "update", URI), "Nothing to change", id="an update of nothing"),
    ],
)
def test_what_breaks_a_rule_changes_nothing(home: Home, words: tuple[str, ...], says: str) -> None:
    if words[1] == "update" and not home.json("api", "list")["apis"]:
        home.json(*NEW)
    before = home.json("api", "list")
    status, code, description = home.error(*words)
    assert (status, code) == (1, "invalid_request")
    assert says in description
    assert home.json("api", "list") == before


@pytest.mark.parametrize("action", ["show", "update", "rotate-secret", "delete"])
def test_an_unknown_api_is_not_found(home: Home, action: str) -> None:
    more = {"update": ("--disable",), "delete": ("--yes",)}.get(action, ())
    assert home.error("api", action, "https://nobody.example", *more)[:2] == (1, "not_found")


def test_the_acts_are_in_the_security_log(home: Home) -> None:
    made = home.json(*NEW)
    home.json("api", "update", URI, "--disable")
    home.json("api", "rotate-secret", URI)
    home.json("api", "delete", URI, "--yes")
    events = home.json("audit")["events"]
    acts = [f"api_{act}_by_operator" for act in ("created", "changed", "secret_made", "deleted")]
    assert [event["event"] for event in events] == acts
    assert {event["client_id"] for event in events} == {made["client_id"]}


def test_an_app_registers_for_scopes_of_apis(home: Home) -> None:
    api = home.json(*NEW)
    made = home.json("app", "create", *NEW_APP, "--client-id", "web", "--scopes", "profile orders:read")
    assert made["scopes"] == ["profile", "orders:read"]
    assert home.json("app", "show", "web")["scopes"] == ["profile", "orders:read"]

    async def stored(store: Store) -> tuple[str, ...]:
        app = await store.apps.find("web")
        return app.api_scopes if app else ()

    assert home.with_store(stored) == (f"{api['client_id']}/orders:read",)
    assert home.json("app", "update", "web", "--scopes", "profile")["scopes"] == ["profile"]
    assert home.json("app", "update", "web", "--scopes", "orders:read")["scopes"] == ["orders:read"]
    home.json("api", "create", "--identifier", "https://bills.example", "--name", "Bills", "--scope", "orders:read")
    status, code, said = home.error("app", "update", "web", "--scopes", "orders:read")
    assert (status, code) == (1, "invalid_request")
    assert "Several APIs have the scope orders:read" in said
    assert home.json("app", "update", "web", "--scopes", f"{URI} orders:read")["scopes"] == ["orders:read"]
    assert home.error("app", "update", "web", "--scopes", "root")[:2] == (1, "invalid_scope")


def test_an_owner_is_named_told_and_taken_back(home: Home) -> None:
    sub = home.json("user", "create", "--email", "dev@example.com", "--name", "Dev")["sub"]
    made = home.json(*NEW, "--owner", "dev@example.com")
    assert made["owner"] == sub
    assert home.json("api", "update", URI, "--owner", sub)["owner"] == sub
    events = [one["event"] for one in home.json("user", "show", "dev@example.com")["activity"]]
    assert events.count("api_given_by_operator") == 1, "an owner who had it already is not told again"
    assert home.json("api", "update", URI, "--name", "Purchases")["owner"] == sub
    assert home.json("api", "update", URI, "--owner", "")["owner"] == ""
    wrong = home.error("api", "update", URI, "--owner", "nobody@example.com")
    assert wrong[:2] == (1, "not_found")
    wrong = home.error(
        "api", "create", "--identifier", "https://b.example", "--name", "B", "--scope", "b", "--owner", "x@y.example"
    )
    assert wrong[:2] == (1, "not_found")
    assert len(home.json("api", "list")["apis"]) == 1
