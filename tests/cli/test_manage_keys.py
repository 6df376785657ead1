"""The operator makes, rotates and retires secret keys."""

from __future__ import annotations

import fcntl
import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import manage
from cli.commands.key_ages import age
from store import keys
from store.crypto.cipher import Cipher
from store.crypto.keyring import KeyFile, KeyRing, Keys, SecretKey
from store.lifetimes import DAY
from store.moments import at, timestamp
from store.wiring import Store
from tests.support.processes.operator_commands import Home


def test_generate_prints_the_next_key_and_changes_nothing(
    home: Home, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configured = f"{KeyRing.generate(7)},{KeyRing.generate(3)}"
    first, second = (home.json("keys", "generate", LATCHKEY_SECRET_KEYS=configured)["key"] for _ in range(2))
    assert SecretKey.parse(first).id == SecretKey.parse(second).id == 8
    assert first != second
    before = (home.data_dir / "keys").read_text()
    assert SecretKey.parse(home.json("keys", "generate")["key"]).id == 2
    assert (home.data_dir / "keys").read_text() == before
    full = ",".join(KeyRing.generate(key_id) for key_id in (255, 1))
    assert SecretKey.parse(home.json("keys", "generate", LATCHKEY_SECRET_KEYS=full)["key"]).id == 2
    # The first key of a shared store is made before there is any.
    words = ["--data-dir", str(data_dir), "keys", "generate", "--redis-url", "redis://nowhere.example", "--json"]
    assert manage.main(words, {}) == 0
    assert json.loads(capsys.readouterr().out)["key"].startswith("1:")
    assert not data_dir.exists()


def test_listing_keys_never_shows_them(home: Home) -> None:
    home.user("ada@example.com")
    configured = f"{KeyRing.generate(7)},{KeyRing.generate(3)}"
    said = home.words("keys", "list", LATCHKEY_SECRET_KEYS=configured)
    assert said.out == "id  front  since\n7   yes    not known\n3   no     not known\n"
    known = home.with_store(lambda store: store.key_state.since())
    assert set(known) == {1}, "a command that lists keys makes none known"
    assert home.json("keys", "list") == {"keys": [{"id": 1, "front": True, "since": timestamp(at(known[1]))}]}


def test_listed_keys_have_their_age(home: Home) -> None:
    home.user("ada@example.com")
    began = datetime.now(UTC) - timedelta(days=25)
    home.client().hset(keys.KEYRING, "known_at:1", str(round(began.timestamp() * 1000)))
    assert home.words("keys", "list").out == f"id  front  since\n1   yes    {began:%Y-%m-%d}, 25 days ago\n"


@pytest.mark.parametrize(("days", "words"), [(0, "today"), (1, "1 day ago"), (2, "2 days ago"), (400, "400 days ago")])
def test_an_age_is_in_days(days: int, words: str) -> None:
    began = datetime.now(UTC) - timedelta(days=days)
    assert age(timestamp(began)) == f"{began:%Y-%m-%d}, {words}"


def test_keys_are_listed_without_their_store(home: Home) -> None:
    said = home.words("keys", "list", "--redis-url", "redis://127.0.0.1:1", LATCHKEY_SECRET_KEYS=KeyRing.generate(7))
    assert "7   yes    not known" in said.out
    assert "The store can't be opened" in said.out


def test_configured_keys_are_rotated_and_retired_by_the_operator(home: Home) -> None:
    old, new = KeyRing.generate(1), KeyRing.generate(2)
    home_keys = {"LATCHKEY_SECRET_KEYS": f"{new},{old}"}
    status, _, description = home.error("keys", "rotate", **home_keys)
    assert status == 1
    assert "append what `manage.py keys generate` prints" in description
    assert home.error("keys", "retire", "2", **home_keys)[0] == 1
    said = home.words("keys", "retire", "1", **home_keys)
    assert said.status == 0
    assert "Now remove key 1 from LATCHKEY_SECRET_KEYS" in said.out


def test_a_key_can_be_retired_when_nothing_it_sealed_can_be_live(home: Home) -> None:
    path = home.data_dir / "keys"
    original = KeyFile(path).ring
    old = SecretKey.parse(KeyRing.generate(4))
    KeyFile(path).write(KeyRing((*original.keys, old)))
    try:
        assert home.error("keys", "retire", "1")[2] == "Key 1 is the front one, which seals: rotate first."
        assert home.error("keys", "retire", "3")[:2] == (1, "not_found")
        now = time.time_ns() // 1_000_000
        with home.client() as client:
            client.hset(keys.KEYRING, "sealed_at:4", now - 31 * DAY + 60_000)
            assert "less than 31 days ago" in home.error("keys", "retire", "4")[2]
            assert KeyFile(path).ring.by_id(4) == old
            client.hset(keys.KEYRING, "sealed_at:4", now - 31 * DAY)
            assert "keys reencrypt" in home.error("keys", "retire", "4")[2]
            assert KeyFile(path).ring.by_id(4) == old
            os.utime(path, (0, 0))  # every server took the file up long ago
            home.json("keys", "reencrypt")
            assert home.json("keys", "retire", "4") == {"id": 4, "retired": True}
            left = {b"layout", b"check:1", b"known_at:1", b"sealed_at:1", b"documents_front", b"documents_since"}
            assert set(client.hkeys(keys.KEYRING)) == left
        assert KeyFile(path).ring == original
    finally:
        KeyFile(path).write(original)


def test_a_late_document_under_an_old_key_prevents_its_retirement(home: Home) -> None:
    path = home.data_dir / "keys"
    original = KeyFile(path).ring
    old = SecretKey.parse(KeyRing.generate(5))
    home.app("late")
    sub = home.user("late@example.com")["sub"]
    KeyFile(path).write(KeyRing((*original.keys, old)))
    os.utime(path, (0, 0))
    try:
        home.json("keys", "reencrypt")

        docs = keys.hosted(sub, "late")["docs"]

        async def write_late(store: Store) -> None:
            behind = Cipher(Keys(KeyRing((old, *original.keys))))
            await store.client.hset(docs, "notes/n1", behind.seal(sub, "late", "notes/n1", b"1"))

        async def read(store: Store) -> bytes:
            sealed = await store.client.hget(docs, "notes/n1")
            assert isinstance(sealed, bytes)
            return store.cipher.open(sub, "late", "notes/n1", sealed)

        home.json("token", "mint", "--user", "late@example.com", "--client-id", "late", "--scopes", "profile")
        home.with_store(write_late)
        with home.client() as client:
            client.zadd(keys.hosted(sub, "late")["index"], {"notes/n1": 0})
            client.hset(keys.KEYRING, "sealed_at:5", time.time_ns() // 1_000_000 - 31 * DAY)
        assert home.json("keys", "retire", "5") == {"id": 5, "retired": True}
        assert home.with_store(read) == b"1"
    finally:
        KeyFile(path).write(original)


def test_only_one_command_at_a_time_changes_the_key_file(home: Home) -> None:
    with (home.data_dir / "keys.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = (home.data_dir / "keys").read_text()
        assert home.error("keys", "rotate")[:2] == (1, "temporarily_unavailable")
        assert (home.data_dir / "keys").read_text() == before


def test_a_new_key_never_takes_an_id_that_the_store_knows(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rotate() -> Any:
        assert manage.main(["--data-dir", str(data_dir), "keys", "rotate", "--json"], {}) == 0
        return json.loads(capsys.readouterr().out)["id"]

    assert rotate() == 2
    file = KeyFile(data_dir / "keys")
    file.write(KeyRing(file.ring.keys[1:]))  # a key file from before the rotation, put back
    assert rotate() == 3
