"""`app member`: the operator's view of an app's team."""

from __future__ import annotations

from tests.support.processes.operator_commands import Home


def test_members_are_listed_added_and_removed(home: Home) -> None:
    ada, bob = (
        home.json("user", "create", "--email", f"{name}@example.com", "--name", name)["sub"] for name in ("ada", "bob")
    )
    home.app("web", "--owner", ada)
    home.json("app", "member", "add", "web", "bob@example.com", "--role", "developer")
    added = home.json("app", "member", "list", "web")["members"]
    assert [(one["sub"], one["role"]) for one in added] == [(ada, "owner"), (bob, "developer")]
    assert added[1]["email"] == "bob@example.com"
    changed = home.json("app", "member", "add", "web", bob, "--role", "owner")["members"]
    assert [one["role"] for one in changed] == ["owner", "owner"]
    left = home.json("app", "member", "remove", "web", "ada@example.com")["members"]
    assert [(one["sub"], one["role"]) for one in left] == [(bob, "owner")]
    assert home.json("app", "show", "web")["owner"] == bob
    assert home.error("app", "member", "remove", "web", bob)[:2] == (1, "access_denied")
    assert home.error("app", "member", "remove", "web", ada)[:2] == (1, "invalid_request")
    events = [one["event"] for one in home.json("user", "show", bob)["activity"]]
    assert events.count("app_role_given_by_operator") == 2
    logged = [one["event"] for one in home.json("audit")["events"]]
    assert logged.count("app_changed_by_operator") == 3


def test_the_first_member_of_an_operators_app_is_its_owner(home: Home) -> None:
    ada = home.json("user", "create", "--email", "ada@example.com", "--name", "Ada")["sub"]
    home.app("web")
    assert home.json("app", "member", "list", "web")["members"] == []
    wrong = home.error("app", "member", "add", "web", ada, "--role", "viewer")
    assert wrong[:2] == (1, "invalid_request")
    home.json("app", "member", "add", "web", ada, "--role", "owner")
    assert home.json("app", "show", "web")["owner"] == ada
    assert home.with_store(lambda store: store.operator.find("ada@example.com")).registered == ("web",)


def test_a_new_owner_takes_the_place_of_the_first_one_alone(home: Home) -> None:
    ada, bob, eve = (
        home.json("user", "create", "--email", f"{name}@example.com", "--name", name)["sub"]
        for name in ("ada", "bob", "eve")
    )
    home.app("web", "--owner", ada)
    home.json("app", "member", "add", "web", bob, "--role", "viewer")
    home.json("app", "member", "add", "web", eve, "--role", "owner")
    home.json("app", "update", "web", "--owner", eve)
    team = home.json("app", "member", "list", "web")["members"]
    assert [(one["sub"], one["role"]) for one in team] == [(eve, "owner"), (bob, "viewer")]
    home.json("app", "member", "add", "web", bob, "--role", "owner")
    assert f"Still owners too: {bob}." in home.words("app", "update", "web", "--owner", ada).out


def test_an_app_can_be_given_to_a_person(home: Home) -> None:
    sub = home.json("user", "create", "--email", "dev@example.com", "--name", "Dev")["sub"]
    made = home.app("theirs", "--owner", "dev@example.com")
    assert made["owner"] == sub
    home.app("later")
    assert home.json("app", "update", "later", "--owner", sub)["owner"] == sub
    assert home.with_store(lambda store: store.operator.find("dev@example.com")).registered == ("theirs", "later")
    wrong = home.error("app", "update", "later", "--owner", "nobody@example.com")
    assert wrong == (1, "not_found", "No such person.")
