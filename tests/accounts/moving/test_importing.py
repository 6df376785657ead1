"""Imports: what they write, what they refuse, and how they continue after an interruption."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from typing import Any

import pytest

from store import keys
from store.accounts.identities import UpstreamIdentity
from store.accounts.signin.totp import code_at
from store.crypto.keyring import Keys
from store.crypto.seal import new_user_id
from store.directory.relay import Listed
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable
from store.moving import import_index, importing
from store.moving.import_lines import read_mover
from store.moving.import_writes import ID_TAKEN, LINK_TAKEN, TAKEN, TOO_MANY_LINKS
from store.moving.importing import TOGETHER, user_of
from store.moving.people_export import people_lines
from store.results import Visitor
from store.wiring import Store
from tests.support.directory.listed_people import everybody, flaws
from tests.support.moving.movers import GOOGLE, HASH, PASSWORD, bring, line, lines
from tests.support.processes.engines import Engine
from tests.support.store.checked_store import checked, findings
from tests.support.store.lost_answers import losing

pytestmark = pytest.mark.gen_test(timeout=60)

ADA, BOB = "ada@example.com", "bob@example.com"
LINK = {"issuer": GOOGLE, "subject": "1234"}
WHOLE = line(
    ADA,
    email_verified=True,
    password_hash=HASH,
    totp_secret="JBSWY3DPEHPK3PXP",
    created_at="2024-01-31T08:00:00Z",
    links=[LINK],
    groups=["staff"],
)


BATCH = 48


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that are small enough for short tests."""
    monkeypatch.setattr(importing, "BATCH", BATCH)


async def sound(store: Store) -> None:
    store.fsck.settle = 0
    report = await checked(store, deep=True)
    assert findings(report) == []


async def _links(store: Store, user: str) -> list[UpstreamIdentity]:
    return [one.identity for one in (await store.operator.security(user)).identities]


async def exported(store: Store) -> list[dict[str, Any]]:
    found = [json.loads(one) async for text, _ in people_lines(store, secrets=True) for one in text.splitlines()]
    return sorted(found, key=lambda one: one["email"])


async def test_people_move_in_with_everything_they_bring(store: Store) -> None:
    result = await bring(store, [WHOLE, line(BOB, status="disabled")])
    assert (result.created, result.updated, result.refused) == (2, 0, 0)
    ada, bob = [await store.operator.find(email) for email in (ADA, BOB)]
    assert (ada.email_verified, ada.status, ada.groups) == (True, "active", ("staff",))
    assert ada.created_at.isoformat() == "2024-01-31T08:00:00+00:00"
    assert await _links(store, ada.user) == [UpstreamIdentity(GOOGLE, "1234")]
    assert await store.identities.find(UpstreamIdentity(GOOGLE, "1234")) == ada.user
    assert [entry.event for entry in ada.activity] == ["imported"]
    assert (bob.email_verified, bob.status, await _links(store, bob.user)) == (False, "disabled", [])
    assert await store.people.verify(ADA, PASSWORD)
    sealed: Any = await store.client.hget(keys.person(ada.user)["factors"], "secret")
    assert code_at(store.totp_secrets.open(ada.user, sealed), 1) == code_at(b"Hello!\xde\xad\xbe\xef", 1)
    await sound(store)


async def test_an_account_without_a_hash_has_no_password(store: Store) -> None:
    await bring(store, [line(BOB)])
    for guess in ("", "none", PASSWORD):
        assert await store.people.verify(BOB, guess) is None


async def test_an_address_or_link_that_is_there_is_refused(store: Store) -> None:
    await bring(store, [WHOLE])
    before = await exported(store)
    given = [line("ADA@example.com", password_hash=HASH), line(BOB, links=[LINK]), line("eve@example.com"), b"x"]
    for dry in (True, False):
        result = await bring(store, given, dry=dry)
        reasons = [(1, TAKEN), (2, LINK_TAKEN), (4, "The line is no JSON object: the mistake is at column 1.")]
        assert (result.created, list(result.listed)) == (1, reasons)
    assert [one["email"] for one in await exported(store)] == [ADA, "eve@example.com"]
    assert (await exported(store))[0] == before[0]
    assert await store.people.find(BOB) is None, "the address is free again"
    await sound(store)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"email": "a@example.com",}', "The line is no JSON object: the mistake is at column 26."),
        (b"[]", "The line is no JSON object."),
        (b'{"email": 1, "email": 2}', "The line has a repeated member, a NUL or half a character."),
        (b'{"emial": "a@example.com"}', "The line has a member that an import doesn't know: `emial`."),
        (b'{"hunter2 is my password": 1}', "The line has a member that an import doesn't know."),
        (b'{"' + b"a" * 41 + b'": 1}', "The line has a member that an import doesn't know."),
    ],
)
def test_a_refusal_says_where_to_look_and_quotes_no_secret(raw: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(reason) + "$"):
        read_mover(raw, 0)


async def test_update_changes_name_and_links_only(store: Store) -> None:
    await bring(store, [WHOLE])
    before = (await exported(store))[0]
    other = {"issuer": "https://github.com", "subject": "77"}
    given = line(
        ADA,
        name="Countess",
        email_verified=False,
        password_hash=HASH.replace("$04$", "$05$"),
        totp_secret="A" * 32,
        created_at="2020-01-01T00:00:00Z",
        status="disabled",
        groups=["admins"],
        links=[other],
    )
    for dry in (True, False, False):
        result = await bring(store, [given], update=True, dry=dry)
        assert (result.created, result.updated, result.refused) == (0, 1, 0)
    assert (await exported(store))[0] == {**before, "name": "Countess", "links": [LINK, other]}
    activity = (await store.operator.find(ADA)).activity
    assert [entry.event for entry in activity] == ["profile_changed_by_operator", "imported"], "once for both runs"
    await sound(store)


async def test_update_takes_no_link_of_another_account_and_not_too_many(store: Store) -> None:
    many = [{"issuer": GOOGLE, "subject": f"s{number}"} for number in range(20)]
    await bring(store, [WHOLE, line(BOB, links=many)])
    result = await bring(store, [line(BOB, links=[LINK]), line(BOB, links=[{**LINK, "subject": "new"}])], update=True)
    assert list(result.listed) == [(1, LINK_TAKEN), (2, TOO_MANY_LINKS)]
    assert await store.identities.find(UpstreamIdentity(GOOGLE, "new")) is None
    assert not await store.client.exists(keys.identity(UpstreamIdentity(GOOGLE, "new").name))
    await sound(store)


@pytest.mark.parametrize("update", [False, True])
async def test_a_dry_run_says_the_same_and_writes_nothing(store: Store, update: bool) -> None:
    await store.people.create("mover3@example.com", "P", PASSWORD, verified=True, event="signed_up", visitor=Visitor())
    given = [*lines(5), *lines(2), line("x@example.com", links=[LINK]), line("y@example.com", links=[LINK]), b"", b"x"]
    before = await exported(store)
    said = await bring(store, given, update=update, dry=True)
    assert await exported(store) == before
    assert [key async for key in store.client.scan_iter("*{import*")] == []
    did = await bring(store, given, update=update)
    assert said == did
    assert (did.created, did.updated) == (5, 3 if update else 0)
    await sound(store)


async def test_export_and_import_are_a_round_trip(store: Store) -> None:
    await bring(store, [WHOLE, line(BOB, status="disabled", password_hash=HASH)])
    user = await store.people.create(
        "zoe@example.com", "Zo\u00eb", PASSWORD, verified=True, event="signed_up", visitor=Visitor(), groups=["a", "b"]
    )
    assert user
    first = await exported(store)
    for one in first:
        await store.operator.delete(one["email"])
    assert await exported(store) == []
    assert await store.identities.find(UpstreamIdentity(GOOGLE, "1234")) is None
    result = await bring(store, [json.dumps(one).encode() for one in first])
    assert (result.created, result.refused) == (3, 0)
    assert await exported(store) == first
    assert await store.people.verify("zoe@example.com", PASSWORD)
    await sound(store)


async def test_an_export_without_secrets_has_none(store: Store) -> None:
    await bring(store, [WHOLE])
    text = b"".join([piece async for piece, _ in people_lines(store, secrets=False)])
    assert json.loads(text).keys() == {"email", "email_verified", "name", "created_at", "status", "links", "groups"}


async def test_an_interrupted_import_continues_behind_its_last_batch(memory_store: Store) -> None:
    store, given = memory_store, [*lines(2 * BATCH + 100, password_hash=HASH), b"x"]
    first = await bring(store, given, batches=1)
    assert first.created == BATCH
    names = [key.decode() async for key in store.client.scan_iter("{import:*")]
    assert len(names) == 1
    assert 0 < await store.client.pttl(names[0]) <= 7 * 24 * 3600 * 1000
    last = await bring(store, given)
    assert (last.created, last.refused) == (2 * BATCH + 100, 1)
    assert last.listed[0][0] == len(given)
    assert not await store.client.exists(names[0])
    again = await bring(store, given)
    assert (again.created, again.refused) == (0, len(given))
    await sound(store)


async def test_people_of_an_import_are_in_the_index_of_people(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_index, "AT_ONCE", 2 * BATCH)
    store, given = memory_store, lines(4 * BATCH)
    await bring(store, given[: BATCH + 5], batches=1)  # interrupted before the index
    assert [key async for key in store.client.scan_iter("*:changed")]
    result = await bring(store, given[: BATCH + 5])
    assert result.created == BATCH + 5
    await bring(store, given)
    assert [key async for key in store.client.scan_iter("*:changed")] == []
    people = {one.user: (one.email, one.name) for one in await everybody(store, "ada", by="name")}
    assert len(people) == 4 * BATCH
    assert await flaws(store, people) == []


async def test_an_index_that_fails_while_the_import_ends_prints_nothing(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(import_index, "AT_ONCE", 1)
    monkeypatch.setattr(memory_store.directory, "add_many", away)
    index = import_index.ImportIndex(memory_store)
    await index.add([Listed(new_user_id(), ADA, "Ada")])
    await asyncio.sleep(0)
    await index.cancel()
    del index
    gc.collect()
    assert caplog.text == ""


async def test_an_input_that_changed_meanwhile_is_read_from_its_first_line(memory_store: Store) -> None:
    store, given = memory_store, lines(3 * BATCH, padding="")
    given = [one.replace(b', "padding": ""', b" " * 2000) for one in given]
    await bring(store, given, batches=1)
    # The head that names the import is the same; a line that is done isn't.
    given[BATCH - 1] = line("another@example.com")
    assert sum(map(len, given[: BATCH - 1])) > 64 * 1024
    result = await bring(store, given)
    assert (result.created, result.refused) == (2 * BATCH + 1, BATCH - 1)


@pytest.mark.parametrize("script", ["import_people", "confirm_email", "keep_identity", "note_import", "settle_changed"])
@pytest.mark.parametrize("lose_request", [True, False])
async def test_a_batch_that_was_cut_short_is_written_once(
    valkey_engine: Engine, keys: Keys, script: str, lose_request: bool
) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        given = [*lines(40), WHOLE.replace(b"ada@", b"carol@"), line(BOB, links=[{**LINK, "subject": "5"}])]
        armed.lose_request = lose_request
        armed.arm(script, 2)
        with pytest.raises(StoreUnavailable):
            await bring(world.store, given)
        armed.times = 0
        result = await bring(world.store, given)
        assert (result.created, result.listed) == (42, ())
        assert len(await exported(world.store)) == 42 + 1
        await sound(world.store)


async def test_two_imports_of_one_input_at_once_create_each_person_once(store: Store) -> None:
    given = lines(BATCH + 50, password_hash=HASH)
    await bring(store, given, batches=1)
    results = await asyncio.gather(*(bring(store, given) for _ in range(2)))
    assert [one.created for one in results] == [BATCH + 50] * 2
    assert len(await exported(store)) == BATCH + 50
    await sound(store)


async def test_an_address_that_somebody_just_reserved_is_refused(store: Store) -> None:
    await store.client.set(keys.email(ADA), "0" * 32, px=60_000)
    result = await bring(store, [WHOLE])
    assert list(result.listed) == [(1, TAKEN)]


async def test_the_rest_of_an_interrupted_act_gives_way(store: Store) -> None:
    await store.client.set(keys.email(ADA), "0" * 32)
    await store.client.set(keys.identity(UpstreamIdentity(GOOGLE, "1234").name), "0" * 32)
    assert (await bring(store, [WHOLE], dry=True)).created == 1
    assert (await bring(store, [WHOLE])).created == 1
    await sound(store)


def test_people_of_an_import_are_even_over_the_shards_and_nobody_can_guess_their_ids() -> None:
    ids = [user_of("a seed", number) for number in range(TOGETHER * 4096)]
    assert len(set(ids)) == len(ids)
    assert {ids.count(one) for one in ids[:3]} == {1}
    shards = [one[:3] for one in ids]
    assert len(set(shards)) == 4096
    assert max(shards.count(one) for one in shards[:: TOGETHER * 512]) <= 2 * TOGETHER
    assert user_of("another seed", 7) != user_of("a seed", 7)


async def test_one_script_writes_the_people_of_a_shard(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    run = Scripts.run

    async def counted(self: Scripts, name: str, *args: Any, **more: Any) -> Any:
        ran.append(name)
        return await run(self, name, *args, **more)

    monkeypatch.setattr(Scripts, "run", counted)
    await bring(memory_store, lines(BATCH))
    assert ran.count("import_people") <= BATCH / TOGETHER + 1
    assert ran.count("confirm_email") == BATCH


async def test_external_ids_move_and_are_one_person_s_alone(store: Store) -> None:
    """SCIM's externalId goes out and comes in again, and the directory finds the person by it."""
    given = [line(ADA, external_id="00u1 ä"), line(BOB, external_id="00u2"), line("eve@example.com")]
    assert (await bring(store, given, dry=True)).created == 3
    assert (await bring(store, given)).created == 3
    out = b"".join([piece async for piece, _ in people_lines(store, secrets=False)]).splitlines()
    assert {one["email"]: one.get("external_id") for one in map(json.loads, out)} == {
        ADA: "00u1 ä",
        BOB: "00u2",
        "eve@example.com": None,
    }
    found = await store.provisioning.with_external_id("00u1 ä")
    assert found
    assert found.email == ADA
    taken = [
        line("new@example.com", external_id="00u2", links=[LINK]),
        line("first@example.com", external_id="00u3"),
        line("second@example.com", external_id="00u3"),
    ]
    for dry in (True, False):
        result = await bring(store, taken, dry=dry)
        assert (result.created, result.listed) == (1, ((1, ID_TAKEN), (3, ID_TAKEN))), dry
    # What a refused line had reserved is free.
    assert (await bring(store, [line("new@example.com", external_id="00u4", links=[LINK])])).created == 1
    # An update leaves the id of an account alone.
    assert (await bring(store, [line(ADA, external_id="00u9")], update=True)).updated == 1
    assert (await store.operator.find(ADA)).external_id == "00u1 ä"
    assert await store.provisioning.with_external_id("00u9") is None
    await sound(store)
    for user in [(await store.operator.find(email)).user for email in (ADA, BOB)]:
        await store.people.delete(user)
    assert (await bring(store, given[:2])).created == 2
    await sound(store)


@pytest.mark.parametrize("wrong", ["", "x" * 256, "a\nb", 5, ["00u1"]])
async def test_a_wrong_external_id_is_refused(memory_store: Store, wrong: object) -> None:
    result = await bring(memory_store, [line(ADA, external_id=wrong)])
    assert (result.created, result.listed[0][1]) == (0, "`external_id` is 1 to 255 printable characters.")
