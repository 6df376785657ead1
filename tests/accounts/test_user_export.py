"""The operator exports all data of one person."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from store import keys
from store.apps.api_record import ApiRegistration, ApiScope
from store.credits.credits import Bookkeeping
from store.moving.person_export import as_lines
from store.results import Visitor
from store.wiring import Store
from tests.support.processes.operator_commands import Home, clean_environment
from tests.support.processes.store_owners import ROOT
from tests.support.store.charges import DOLLAR
from tests.support.store.many_documents import connect_app, write
from tests.support.store.second_factors import App, add_passkey, reauth

EMAIL = "ada@example.com"
KINDS = ("balance", "entry", "opening")
FEW = Bookkeeping(entries=111)
DOCUMENTS = {"notes/a": b' {"n": 1.50}\n', "notes/user:1": b'"second"'}


@pytest.fixture
def person(home: Home) -> str:
    """A person with documents of one app, and of another that was disconnected; returns the user id."""
    made = home.user(EMAIL)
    sub: str = made["sub"]
    for client_id in ("first-app", "gone-app"):
        home.app(client_id)

    async def fill(store: Store) -> None:
        for client_id in ("first-app", "gone-app"):
            app = await store.apps.find(client_id)
            assert app is not None
            await write(store, await connect_app(store, sub, app), DOCUMENTS)
            await store.client.hset(keys.grant(sub, client_id), "spend_limit", 7 * DOLLAR)
        credentials = await store.people.credentials(EMAIL)
        assert credentials is not None
        visitor = Visitor("192.0.2.9", "Firefox")
        session = store.sessions.open((await store.sessions.start(credentials, visitor)).cookie)
        assert session is not None
        await store.grants.revoke(session, "gone-app", Visitor())
        own: Record = {"name": "Their own", "redirect_uris": ("https://own.example/",), "scopes": ("profile",)}
        await store.owned.register(session, "a nonce", Visitor(), most=1, **own)
        scopes = (ApiScope("read", "Read"),)
        await store.apis.create(ApiRegistration("https://orders.example", "Orders", scopes, owner=sub))
        signing_in: Any = SimpleNamespace(store=store, user=sub, email=EMAIL, session=session, codes=[])
        await reauth(signing_in, "", made["password"])
        await App.add(signing_in)
        await reauth(signing_in, password=made["password"])
        await add_passkey(signing_in)

    home.with_store(fill)
    return sub


Record = dict[str, Any]


def check_records(sub: str, profile: Record, apps: list[Record], activity: list[Record]) -> None:
    assert (profile["sub"], profile["email"], profile["email_verified"]) == (sub, EMAIL, True)
    assert set(profile) == {
        "sub",
        "email",
        "email_verified",
        "name",
        "picture",
        "keptOutApps",
        "status",
        "suspension",
        "groups",
        "externalId",
        "createdAt",
        "registeredApps",
        "teams",
        "registeredApis",
    }
    assert profile["suspension"] is None
    assert [app["name"] for app in profile["registeredApps"]] == ["Their own"]
    assert [api["name"] for api in profile["registeredApis"]] == ["Orders"]
    by_id = {app["client_id"]: app for app in apps}
    assert set(by_id) == {"first-app", "gone-app"}
    assert by_id["first-app"]["scopes"] == ["profile", "data:read", "data:write"]
    assert by_id["first-app"]["spendLimit"] == 7 * DOLLAR
    assert by_id["first-app"]["dataUntil"] is by_id["first-app"]["revokedAt"] is None
    assert by_id["gone-app"]["dataUntil"] > by_id["gone-app"]["revokedAt"]
    events = [entry["event"] for entry in activity]
    assert {"created_by_operator", "token_minted", "app_disconnected"} <= set(events)


def check_security(security: Record) -> None:
    assert security.pop("authenticatorAppSince") > "2020"
    assert security.pop("recoveryCodesLeft") == 9
    (passkey,) = security.pop("passkeys")
    assert (passkey["name"], passkey["lastUsedAt"]) == ("My phone", None)
    assert {(one["address"], one["agent"]) for one in security.pop("sessions")} == {("192.0.2.9", "Firefox")}
    assert security.pop("identities") == []
    assert security == {}


def check_credits(lines: list[Record], grants: int) -> None:
    """The balance, the entries from the newest on, and the opening balance; asserts that they add up."""
    balance, *entries, opening = lines
    assert balance == {
        "type": "balance",
        "paid": grants * DOLLAR,
        "held": 0,
        "spendable": grants * DOLLAR,
        "currency": "USD",
        "scale": 6,
        "holds": [],
    }
    assert [entry["reason"] for entry in entries] == [f"Payment {number}" for number in reversed(range(grants))]
    assert {entry["type"] for entry in entries} <= {"entry"}
    assert opening == {"type": "opening", "opening": 0, "openingAt": None}
    assert sum(entry["amount"] for entry in entries) == balance["paid"]


def test_the_export_has_the_reason_of_a_suspension_but_not_the_operators_note(home: Home) -> None:
    home.user(EMAIL)
    words = ("--reason", "Unpaid invoice", "--note", "ask Carol", "--until", "2100-01-31")
    home.json("user", "suspend", EMAIL, *words)
    said = home.words("user", "export", EMAIL, "--output", "-", "--format", "jsonl").out
    profile = json.loads(said.splitlines()[0])
    assert profile["status"] == "disabled"
    assert profile["suspension"] == {"reason": "Unpaid invoice", "until": "2100-01-31T00:00:00.000Z"}
    assert "Carol" not in said


@pytest.mark.parametrize("grants", [0, 1, 100, 250])
def test_the_ledger_is_in_both_export_formats(home: Home, tmp_path: Path, grants: int) -> None:
    sub = home.user(EMAIL)["sub"]

    async def fill(store: Store) -> None:
        for number in range(grants):
            await store.credits.grant(sub, DOLLAR, reason=f"Payment {number}")

    home.with_store(fill)
    path = tmp_path / "ada.zip"
    home.json("user", "export", sub, "--output", str(path))
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        check_credits([json.loads(line) for line in archive.read("credits.jsonl").splitlines()], grants)
    said = home.words("user", "export", EMAIL, "--output", "-", "--format", "jsonl").out
    lines = [json.loads(line) for line in said.splitlines()]
    check_credits([line for line in lines if line["type"] in KINDS], grants)


def test_a_ledger_folded_during_the_export_still_adds_up(home: Home) -> None:
    sub = home.user(EMAIL)["sub"]

    async def export(store: Store) -> list[Record]:
        for number in range(150):
            await store.credits.grant(sub, number + 1)
        person, lines = await store.operator.find(EMAIL), []
        async for piece, _ in as_lines(store, person):
            line = json.loads(piece)
            lines.append(line)
            if line["type"] == "balance":
                # The oldest forty go, and something new comes, before the next page is read.
                few = Store(store.client, store.keys, store.hasher, session_idle=60, session_lifetime=60, books=FEW)
                await few.credits.grant(sub, 1_000_000)
        return lines

    balance, *entries, opening = [line for line in home.with_store(export) if line["type"] in KINDS]
    assert (balance["paid"], len(entries)) == (sum(range(151)), 110)
    assert opening["opening"] == sum(range(41))
    assert opening["opening"] + sum(entry["amount"] for entry in entries) == balance["paid"]


def test_the_zip_contains_everything(home: Home, person: str, tmp_path: Path) -> None:
    path = tmp_path / "ada.zip"
    record = home.json("user", "export", EMAIL, "--output", str(path))
    assert record == {"email": EMAIL, "sub": person, "documents": 4, "output": str(path)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["ada.zip"]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name) for name in archive.namelist()}
    check_records(person, *(json.loads(files.pop(f"{name}.json")) for name in ("profile", "apps", "activity")))
    check_security(json.loads(files.pop("security.json")))
    check_credits([json.loads(line) for line in files.pop("credits.jsonl").splitlines()], 0)
    assert files.pop("usage.jsonl") == b""
    assert files == {
        f"documents/{client}/{name.replace(':', '%3A')}.json": content
        for client in ("first-app", "gone-app")
        for name, content in DOCUMENTS.items()
    }
    assert "exported_by_operator" in [entry["event"] for entry in home.json("user", "show", EMAIL)["activity"]]


def test_standard_output_has_only_the_lines(home: Home, person: str) -> None:
    said = home.words("user", "export", EMAIL, "--output", "-", "--format", "jsonl")
    assert (said.status, said.err) == (0, "")
    records = [json.loads(line) for line in said.out.splitlines()]
    kinds: dict[str, list[Any]] = {}
    for record in records:
        kinds.setdefault(record.pop("type"), []).append(record)
    check_records(person, kinds["profile"][0], kinds["app"], kinds["activity"])
    check_security(kinds["security"][0])
    found = {(line["client_id"], f"{line['collection']}/{line['id']}"): line["data"] for line in kinds["document"]}
    assert found == {
        (client, name): json.loads(content)
        for client in ("first-app", "gone-app")
        for name, content in DOCUMENTS.items()
    }


def test_a_zip_goes_to_standard_output_as_bytes(home: Home, person: str) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "--data-dir", str(home.data_dir)]
    words = [*command, "user", "export", EMAIL, "--output", "-"]
    done = subprocess.run(words, capture_output=True, check=True, env=clean_environment(), timeout=60)
    assert len(zipfile.ZipFile(io.BytesIO(done.stdout)).namelist()) == 10


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        pytest.param((EMAIL, "--output", "-"), 1, "--json and --output -", id="two things on standard output"),
        pytest.param(("nobody@example.com", "--output", "OUT"), 1, "No such person", id="nobody of that address"),
        pytest.param((EMAIL, "--output", "OUT", "--format", "rar"), 2, "--format", id="a format there is not"),
        pytest.param((EMAIL,), 2, "--output", id="no output"),
        pytest.param((EMAIL, "--output", "OUT/not/there"), 1, "No such file or directory", id="a folder there is not"),
    ],
)
def test_a_failed_write_leaves_no_file(
    home: Home, person: str, tmp_path: Path, words: tuple[str, ...], status: int, message: str
) -> None:
    given = [word.replace("OUT", str(tmp_path / "out")) for word in words]
    failed, _, description = home.error("user", "export", *given)
    assert failed == status
    assert message in description
    assert list(tmp_path.iterdir()) == []


def test_a_failed_export_keeps_the_earlier_file(home: Home, person: str, tmp_path: Path) -> None:
    path = tmp_path / "ada.jsonl"
    path.write_text("the one before")
    with home.client() as client:
        client.hset(keys.hosted(person, "gone-app")["docs"], "notes/a", b"\x63" + b"\0" * 60)
    status, code, description = home.error("user", "export", EMAIL, "--output", str(path), "--format", "jsonl")
    assert (status, code) == (1, "server_error")
    assert "not configured" in description
    assert path.read_text() == "the one before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["ada.jsonl"]


def test_a_person_without_apps_is_exported_too(home: Home, tmp_path: Path) -> None:
    home.user(EMAIL)
    home.json("user", "export", EMAIL, "--output", str(tmp_path / "ada.zip"))
    with zipfile.ZipFile(tmp_path / "ada.zip") as archive:
        assert archive.namelist() == [
            "profile.json",
            "security.json",
            "apps.json",
            "activity.json",
            "credits.jsonl",
            "usage.jsonl",
        ]
        assert json.loads(archive.read("apps.json")) == []
