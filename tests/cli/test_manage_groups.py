"""Groups of people on the operator's command line."""

from __future__ import annotations

from tests.support.processes.operator_commands import Home

ADA = "ada@example.com"


def test_people_get_and_lose_groups(home: Home) -> None:
    sub = home.user(ADA)["sub"]
    assert home.json("user", "group", "add", ADA, "staff", " Site admins ")["groups"] == ["Site admins", "staff"]
    assert home.json("user", "group", "add", sub, "staff", "editors")["groups"] == ["Site admins", "editors", "staff"]
    assert home.json("user", "group", "remove", ADA, "staff", "never had it")["groups"] == ["Site admins", "editors"]
    assert home.json("user", "show", ADA)["groups"] == ["Site admins", "editors"]
    assert home.json("user", "list")["users"][0]["groups"] == ["Site admins", "editors"]
    assert [one["event"] for one in home.json("user", "show", ADA)["activity"]].count("groups_changed") == 3
    logged = [one for one in home.json("audit")["events"] if one["event"] == "groups_changed_by_operator"]
    assert [one["detail"] for one in logged] == ["+Site admins +staff", "+editors", "-staff"]


def test_an_account_may_begin_with_groups(home: Home) -> None:
    words = ("user", "create", "--email", ADA, "--name", "Ada", "--group", "staff", "--group", "admins")
    assert home.json(*words, LATCHKEY_PASSWORD_MEMORY="8192")["groups"] == ["admins", "staff"]
    logged = [one for one in home.json("audit")["events"] if one["event"] == "groups_changed_by_operator"]
    assert [one["detail"] for one in logged] == ["+admins +staff"]


def test_mistakes_change_nothing(home: Home) -> None:
    home.user(ADA)
    assert home.error("user", "group", "add", "nobody@example.com", "staff")[1] == "not_found"
    many = [str(number) for number in range(51)]
    assert home.error("user", "group", "add", ADA, *many)[1:] == (
        "invalid_request",
        "A person has at most 50 groups.",
    )
    assert "1 to 100 characters" in home.error("user", "group", "add", ADA, "x" * 101)[2]
    assert home.json("user", "show", ADA)["groups"] == []


def test_people_at_a_terminal_see_groups_in_a_line_and_none_without(home: Home) -> None:
    home.user(ADA)
    assert "groups" not in home.words("user", "show", ADA).out
    said = home.words("user", "group", "add", ADA, "staff", "admins")
    assert "admins staff" in said.out
    assert "confirmed" not in said.out.replace("email_verified", "")


def test_a_group_for_an_unconfirmed_address_comes_with_a_warning(home: Home) -> None:
    home.user(ADA)
    with home.client() as client:
        for key in client.scan_iter("*:user"):
            client.hdel(key, "verified")
    assert "Nobody has confirmed this address" in home.words("user", "group", "add", ADA, "staff").out
