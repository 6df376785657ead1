"""The page about imports: its example is a line, and its commands work as they are pasted."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from store.moving.import_lines import MEMBERS, read_mover
from tests.accounts.moving.test_foreign_hashes import SEALED, SIGNER
from tests.accounts.moving.test_vendors import NOW, keycloak_user, realm
from tests.cli.test_quickstarts import blocks
from tests.support.moving.movers import HASH, line
from tests.support.processes.operator_commands import Home
from tests.support.processes.store_owners import ROOT

PAGE = ROOT / "docs" / "moving" / "importing.md"
FIREBASE = {"users": [{"email": "f@example.com", "passwordHash": SEALED, "salt": "42xEC+ixf3L2lw=="}]}
DJANGO = [{"model": "auth.user", "pk": 1, "fields": {"email": "d@example.com", "password": "!", "username": "d"}}]


def _files(folder: Path, vendor: str) -> None:
    """The files that the commands name."""
    users = FIREBASE if vendor == "firebase" else DJANGO
    content = {
        "people.jsonl": line("ada@example.com"),
        "realm.json": realm(keycloak_user(email="k@example.com")),
        "users.ndjson": json.dumps({"email": "a0@example.com", "user_id": "auth0|1"}).encode(),
        "hashes.ndjson": json.dumps({"_id": {"$oid": "1"}, "passwordHash": HASH}).encode(),
        "users.json": json.dumps(users).encode(),
        "hash-config.txt": f"base64_signer_key: {SIGNER},\nrounds: 8,\nmem_cost: 14,\n".encode(),
        "users.jsonl": json.dumps({"email": "s@example.com", "encrypted_password": HASH}).encode(),
    }
    for name, written in content.items():
        (folder / name).write_bytes(written)


def test_each_pasted_command_works(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(one) for block in blocks(PAGE, "sh") for one in block.splitlines()]
    assert len(commands) >= 10
    for program, *words in commands:
        assert program == "latchkey"
        _files(tmp_path, words[words.index("--from") + 1] if "--from" in words else "")
        said = home.words(*words)
        assert said.status == 0, (words, said)
    assert {one["email"][0] for one in home.json("user", "list")["users"]} == {"a", "k", "d", "f", "s"}


def test_the_example_is_a_line_and_the_table_has_every_member() -> None:
    example = blocks(PAGE, "json")[0]
    assert read_mover(example.strip().encode(), NOW).email == "ada@example.com"
    text = PAGE.read_text("utf-8")
    assert all(f"\n| `{member}` |" in text for member in MEMBERS)
