"""The operator lists, rotates and ends the keys that sign."""

from __future__ import annotations

from typing import Any

from store.wiring import Store
from tests.support.processes.operator_commands import Home


def make_keys(home: Home) -> None:
    """One key of each algorithm, as the first reader of the set makes them."""

    async def use(store: Store) -> None:
        await store.signing_keys.published()

    home.with_store(use)


def listed(home: Home) -> dict[str, dict[str, Any]]:
    """The keys by name."""
    return {key["kid"]: key for key in home.json("keys", "signing", "list")["keys"]}


def test_nothing_is_listed_before_a_key_was_needed(home: Home) -> None:
    assert home.json("keys", "signing", "list") == {"keys": []}
    status, code, said = home.error("keys", "signing", "rotate")
    assert (status, code) == (1, "invalid_request")
    assert "--alg" in said
    assert [key["alg"] for key in home.json("keys", "signing", "rotate", "--alg", "ES256")["keys"]] == ["ES256"]


def test_successors_are_published_and_wait(home: Home) -> None:
    make_keys(home)
    old = listed(home)
    assert {key["state"] for key in old.values()} == {"signing"}
    assert {key["until"] for key in old.values()} == {None}
    made = home.json("keys", "signing", "rotate")["keys"]
    assert {key["alg"] for key in made} == {"RS256", "ES256", "EdDSA"}
    for key in made:
        assert key["state"] == "waiting"
        assert key["until"] == key["signsFrom"]
    status, code, said = home.error("keys", "signing", "rotate")
    assert (status, code) == (1, "invalid_request")
    assert "--now" in said
    now = home.json("keys", "signing", "rotate", "--alg", "RS256", "--now")["keys"]
    assert [(key["alg"], key["state"]) for key in now] == [("RS256", "signing")]
    after = listed(home)
    assert {after[kid]["state"] for kid in old if after[kid]["alg"] == "RS256"} == {"published"}
    assert len(after) == 6


def test_a_revoked_key_stays_in_the_list_and_the_log_names_the_acts(home: Home) -> None:
    make_keys(home)
    kid = next(iter(listed(home)))
    assert home.error("keys", "signing", "revoke", kid)[0] == 1, "it asks"
    assert home.json("keys", "signing", "revoke", kid, "--yes") == {"kid": kid, "revoked": True}
    assert listed(home)[kid]["state"] == "revoked"
    assert home.error("keys", "signing", "revoke", "A" * 43, "--yes")[1] == "not_found"
    home.json("keys", "signing", "rotate")

    said = [row["event"] for row in home.json("audit")["events"]]
    assert {"signing_key_made_by_operator", "signing_key_revoked_by_operator", "command_failed"} <= set(said)


def test_the_list_at_a_terminal_is_a_table(home: Home) -> None:
    make_keys(home)
    said = home.words("keys", "signing", "list")
    assert said.status == 0
    assert said.out.splitlines()[0].split() == ["kid", "alg", "state", "signsFrom", "until"]
    assert "signing" in said.out
