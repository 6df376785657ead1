"""`operator-key` and `user role`."""

from __future__ import annotations

import re

from tests.support.processes.operator_commands import Home

EXPIRES = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def test_a_key_is_printed_once(home: Home) -> None:
    made = home.json("operator-key", "create", "--role", "support", "--name", "Helpdesk", "--expires", "30d")
    assert set(made) == {"id", "key", "role", "expiresAt"}
    assert re.fullmatch(r"lk_ok_[A-Za-z0-9_-]{43}", made["key"])
    assert re.fullmatch(EXPIRES, made["expiresAt"])
    lasting = home.json("operator-key", "create", "--role", "credits", "--address", "10.0.0.0/24")
    assert lasting["expiresAt"] is None
    listed = home.json("operator-key", "list")["keys"]
    assert [(key["id"], key["role"], key["name"], key["address"]) for key in listed] == [
        (made["id"], "support", "Helpdesk", None),
        (lasting["id"], "credits", "", "10.0.0.0/24"),
    ]
    assert made["key"] not in str(listed)
    assert home.json("operator-key", "revoke", made["id"], "--yes") == {"id": made["id"], "revoked": True}
    assert home.error("operator-key", "revoke", made["id"], "--yes")[:2] == (1, "not_found")


def test_wrong_keys_are_refused(home: Home) -> None:
    for words in (
        ("--role", "owner"),
        (),
        ("--role", "admin", "--expires", "1999-01-01"),
        ("--role", "admin", "--expires", "9999-12-31T23:59:59-23:59"),
        ("--role", "admin", "--address", "10.0.0.1/8"),
        ("--role", "admin", "--name", "\u202e"),
    ):
        assert home.error("operator-key", "create", *words)[1] == "invalid_request"
    assert home.json("operator-key", "list")["keys"] == []


def test_a_role_is_given_mailed_and_taken(home: Home) -> None:
    for name in ("ada", "bea"):
        home.json("user", "create", "--email", f"{name}@example.com", "--name", name)
    given = home.json("user", "role", "ada@example.com", "admin")
    assert (given["email"], given["role"], given["before"]) == ("ada@example.com", "admin", None)
    [mail] = (home.data_dir / "mail").iterdir()
    assert "ada@example.com" in mail.read_text()
    assert "Administrator" in mail.read_text()
    assert home.error("user", "role", "ada@example.com", "none")[:2] == (1, "access_denied")
    assert home.error("user", "role", "bea@example.com", "owner")[0] == 2
    assert home.error("user", "role", "nobody@example.com", "admin")[:2] == (1, "not_found")
    home.json("user", "role", given["sub"], "admin")
    [one] = home.json("user", "roles")["roles"]
    assert (one["id"], one["role"], one["givenBy"]) == (given["sub"], "admin", "command")
    assert len(list((home.data_dir / "mail").iterdir())) == 1
