"""`manage.py fsck`: its output and exit status, with and without a server, on every kind of store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from dev.lab.engines import wait_until
from store import keys
from store.engine.embedded import running_socket
from store.fsck.invariants import INVARIANTS
from store.wiring import Store
from tests.support.processes.operator_commands import CommandOutput, Home, child
from tests.support.processes.processes import QUICK, Server
from tests.support.store.many_documents import connect_app, numbered, stock


def put(home: Home) -> str:
    """A person whose app stores documents."""
    home.app("an-app")
    user: str = home.user("ada@example.com")["sub"]

    async def fill(store: Store) -> None:
        app = await store.apps.find("an-app")
        assert app is not None
        await connect_app(store, user, app)
        await stock(store, user, "an-app", numbered(9, 40))

    home.with_store(fill)
    return user


def found(said: CommandOutput) -> dict[str, tuple[int, int]]:
    """What was found and mended by invariant."""
    return {row["invariant"]: (row["found"], row["mended"]) for row in record_of(said)["invariants"] if row["found"]}


def record_of(said: CommandOutput) -> Any:
    """The object, whatever the exit status."""
    return CommandOutput(0, said.out, said.err).json


def test_a_sound_store(home: Home) -> None:
    put(home)
    record = home.json("fsck", "--deep")
    assert (record["clean"], record["errors"], record["notes"], record["mended"]) == (True, 0, 0, 0)
    assert (record["people"], record["apps"], record["documents"], record["unsettled"]) == (1, 1, 9, 0)
    assert record["keys"] > 10
    assert record["findings"] == []
    assert [row["invariant"] for row in record["invariants"]] == [one.name for one in INVARIANTS]
    said = home.words("fsck")
    assert (said.status, said.err) == (0, "")
    assert said.out.splitlines()[0].split() == ["clean", "yes"]
    assert said.out.endswith("\n\nEvery invariant holds.\n")


def test_a_fault_is_named_mended_and_gone(home: Home) -> None:
    user = put(home)
    usage = keys.hosted(user, "an-app")["usage"]
    with home.client() as client:
        client.hincrby(usage, "documents", 3)
        client.set("a key of nobody", "1")
    said = home.words("fsck")
    assert said.status == 1
    assert "usage matches a recount of the documents" in said.out
    assert f"{usage}  it says documents 12 instead of 9" in said.out
    assert "--repair would fix:\n  usage: recounts\n" in said.out
    assert "Needs a manual fix, because the right value is unknown: key." in said.out
    mended = home.words("fsck", "--repair", "--json")
    assert (mended.status, found(mended)) == (1, {"key": (1, 0), "usage": (1, 1)})
    assert record_of(mended)["findings"] == [
        {
            "invariant": "key",
            "severity": "error",
            "mended": False,
            "key": "a key of nobody",
            "what": "Latchkey creates no key with this name",
        },
        {
            "invariant": "usage",
            "severity": "error",
            "mended": True,
            "key": usage,
            "what": "it says documents 12 instead of 9",
        },
    ]
    with home.client() as client:
        client.delete("a key of nobody")
    assert home.json("fsck")["clean"] is True


def test_mended_findings_do_not_fail_the_command(home: Home) -> None:
    user = put(home)
    with home.client() as client:
        client.hdel(keys.hosted(user, "an-app")["usage"], "documents")
    said = home.words("fsck", "--repair")
    assert said.status == 0
    assert said.out.endswith("\n\nNo errors are left. Notes are leftovers by design: they expire or do no harm.\n")


def test_notes_alone_do_not_fail_the_command(home: Home) -> None:
    user = put(home)
    with home.client() as client:
        client.zadd(keys.person(user)["sessions"], {"A" * 22: 1})
    record = home.json("fsck")
    assert (record["clean"], record["notes"]) == (True, 1)


def test_addresses_are_shown_only_on_request(home: Home) -> None:
    put(home)
    with home.client() as client:
        client.hset(keys.email("secret@example.com"), "x", "y")
        client.set(keys.window("signin-account", "typed@example.com"), "nonsense", ex=60)
    plain = [home.words("fsck"), home.words("fsck", "--json"), home.words("fsck", "--limit", "1")]
    assert {said.status for said in plain} == {1}
    assert not [said for said in plain if "example.com" in said.out]
    assert "{email:#" in plain[0].out
    openly = home.words("fsck", "-v").out
    assert keys.email("secret@example.com") in openly
    assert "typed@example.com" in openly


def test_the_limit_applies_to_examples_not_to_counts(home: Home) -> None:
    with home.client() as client:
        for number in range(7):
            client.set(f"nonsense:{number}", "1")
    record = record_of(home.words("fsck", "--limit", "2", "--json"))
    assert (record["errors"], len(record["findings"])) == (7, 2)
    assert home.error("fsck", "--limit", "0")[:2] == (2, "invalid_request")


def test_fsck_refuses_an_in_memory_store(tmp_path: Path) -> None:
    said = child(tmp_path, "--json", "fsck", "--redis-url", "memory")
    assert said.error[:2] == (2, "invalid_request")


@pytest.mark.parametrize("options", [pytest.param((), id="one"), pytest.param(("--workers", "2"), id="workers")])
def test_fsck_runs_with_and_without_a_server(options: tuple[str, ...]) -> None:
    with Server("--demo", *options, *QUICK) as server:
        server.ready()
        socket = running_socket(server.data_dir)
        assert socket
        later = keys.TRAIL_SWEPT, keys.RELAYED
        with redis.Redis(unix_socket_path=socket) as client:  # what a server writes a moment after it listens
            wait_until(lambda: client.exists(*later) == len(later))
        beside = child(server.data_dir, "fsck", "--deep", "--json")
        assert (beside.json["clean"], beside.json["people"], beside.json["findings"]) == (True, 1, [])
        with redis.Redis(unix_socket_path=socket) as client:  # a slow machine loses keys that expire within a minute
            lasting = sum(client.ttl(key) == -1 or client.ttl(key) > 3600 for key in client.scan_iter())
        assert lasting > 10
        server.stop()
        alone = child(server.data_dir, "fsck", "--json").json
        assert (alone["clean"], alone["people"], alone["findings"]) == (True, 1, [])
        assert alone["keys"] >= lasting, "a server that stops writes what is left of its security log"
