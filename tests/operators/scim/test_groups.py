"""Groups over SCIM 2.0, to read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import pytest

from handlers.admin.scim import base, groups
from handlers.core.params import parse_pairs
from store import keys
from store.accounts.movers import MoverRow
from store.crypto.seal import new_user_id
from store.engine.scripts import Reply, Run, Value
from store.operators import provisioning
from tests.operators.scim.conftest import Provisioner

pytestmark = pytest.mark.gen_test
Calls = Sequence[tuple[Mapping[str, str], Mapping[str, Value]]]
STAFF, RED = "c3RhZmY", "w6kgJiA"


async def in_groups(scim: Provisioner) -> dict[str, str]:
    """Ada and Bea in `staff`, Bea in `é &` too."""
    bea = (await scim.make())["id"]
    await scim.desk.do("PATCH", f"/people/{bea}", {"groups": ["staff", "é &"]})
    await scim.desk.do("PATCH", f"/people/{scim.desk.ada}", {"groups": ["staff"]})
    return {"ada": scim.desk.ada, "bea": bea}


async def test_groups_have_the_people_in_them(scim: Provisioner) -> None:
    people = await in_groups(scim)
    listed = await scim.get("/Groups")
    assert (listed["totalResults"], listed["itemsPerPage"]) == (2, 2)
    staff, red = listed["Resources"]
    assert (staff["id"], staff["displayName"], red["displayName"]) == (STAFF, "staff", "é &")
    assert [one["value"] for one in staff["members"]] == sorted(people.values())
    assert [(one["value"], one["display"], one["type"]) for one in red["members"]] == [
        (people["bea"], "bea@example.com", "User")
    ]
    assert staff["members"][0]["$ref"] == f"{scim.desk.url}/scim/v2/Users/{staff['members'][0]['value']}"
    assert await scim.get(f"/Groups/{STAFF}") == staff
    assert staff["meta"] == {"resourceType": "Group", "location": f"{scim.desk.url}/scim/v2/Groups/{STAFF}"}
    shown = (await scim.get(f"/Users/{people['bea']}"))["groups"]
    assert [(one["value"], one["display"]) for one in shown] == [(STAFF, "staff"), (red["id"], "é &")]


async def test_members_are_left_out_on_request(scim: Provisioner, monkeypatch: pytest.MonkeyPatch) -> None:
    await in_groups(scim)
    monkeypatch.setattr(groups, "MOST_MEMBERS", 1)
    for query in ("excludedAttributes=members", "attributes=displayName"):
        assert "members" not in await scim.get(f"/Groups/{STAFF}?{query}")
        assert all("members" not in one for one in (await scim.get(f"/Groups?{query}"))["Resources"])
    for path in (f"/Groups/{STAFF}", "/Groups", f"/Groups/{STAFF}?attributes=members.value"):
        await scim.refused(await scim.ask("GET", path), 400, "tooMany")


async def test_groups_are_found_and_paged(scim: Provisioner) -> None:
    await in_groups(scim)
    for text, names in (
        ('displayName eq "staff"', ["staff"]),
        ('displayname EQ "é &"', ["é &"]),
        (f'id eq "{STAFF}"', ["staff"]),
        ('displayName eq "sta"', []),
        ('displayName eq ""', []),
        ('displayName eq "staff\\né &"', []),
        ('id eq "x"', []),
    ):
        found = await scim.get(f"/Groups?filter={quote(text)}")
        assert ([one["displayName"] for one in found["Resources"]], found["totalResults"]) == (names, len(names)), text
    wrong = quote('members eq "x"')
    await scim.refused(await scim.ask("GET", f"/Groups?filter={wrong}"), 400, "invalidFilter")
    page = await scim.get("/Groups?startIndex=2&count=1")
    assert ([one["displayName"] for one in page["Resources"]], page["totalResults"]) == (["é &"], 2)


async def test_groups_are_read_once_for_all_pages(scim: Provisioner) -> None:
    people, sent = await in_groups(scim), list[str]()

    def counted(run: Run) -> Run:
        async def counting(name: str, known: Mapping[str, str], /, **args: Value) -> Reply:
            sent.append(name)
            return await run(name, known, **args)

        return counting

    async def page(start: int, count: int = 1) -> tuple[list[str], int]:
        sent.clear()
        found = await scim.get(f"/Groups?startIndex={start}&count={count}")
        return [one["displayName"] for one in found["Resources"]], sent.count("read_groups")

    scim.store.scripts.wrap(counted)
    _, whole = await page(1)
    assert whole > 0
    assert await page(2) == (["é &"], 0)
    # The list ended: the same page is read again. So is the first one, and one that is not the next.
    assert await page(2) == (["é &"], whole)
    await page(1)
    await scim.desk.do("PATCH", f"/people/{people['bea']}", {"groups": ["a", "é &"]})
    assert await page(1) == (["a"], whole)
    assert await page(3) == (["é &"], whole)
    assert await page(2) == (["staff"], whole)
    # A list is of one key, and of answers of one kind.
    await page(1)
    assert "members" in (await scim.get("/Groups?startIndex=2&count=1"))["Resources"][0]
    await page(1)
    sent.clear()
    await scim.get("/Groups?startIndex=2&count=1&excludedAttributes=members")
    assert sent.count("read_groups") == whole


async def test_shards_are_asked_for_their_groups_together_and_to_their_end(
    scim: Provisioner, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards, asked, run_many = ("0aa", "0bb"), list[int](), scim.store.scripts.run_many

    async def counted(name: str, calls: Calls) -> list[Reply]:
        asked.append(len(calls))
        return await run_many(name, calls)

    for shard in shards:
        users = [shard + new_user_id()[3:] for _ in range(200)]
        rows = [MoverRow(user, f"{user}@example.com", "A", b"x" * 32, groups=("many",)) for user in users]
        await scim.store.movers.create(rows)
    monkeypatch.setattr(provisioning, "SCANNED_AT_ONCE", 50)
    monkeypatch.setattr(scim.store.scripts, "run_many", counted)
    (many,) = (await scim.get("/Groups"))["Resources"]
    assert len({one["value"] for one in many["members"]}) == 400
    assert max(asked) >= 2
    assert len(asked) < 20


async def test_other_calls_get_a_turn_between_the_shards_of_a_list(
    scim: Provisioner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, turns, run_many = list[int](), list[int](), scim.store.scripts.run_many
    for shard in keys.SHARDS[:70]:
        user = shard + new_user_id()[3:]
        await scim.store.movers.create([MoverRow(user, f"{user}@example.com", "A", b"x" * 32, groups=("many",))])

    async def answered(name: str, calls: Calls) -> list[Reply]:
        asked.append(len(calls))
        return await run_many(name, calls)

    async def others() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    monkeypatch.setattr(scim.store.scripts, "run_many", answered)
    running = asyncio.ensure_future(others())
    between = list[int]()
    async for _ in scim.store.provisioning.in_groups():
        between.append(len(turns))
    running.cancel()
    assert len(between) == 70
    assert len(set(between)) == 70, "each person is in another shard"
    assert max(asked) == 64


async def test_a_query_is_read_as_often_for_many_groups_as_for_few(
    scim: Provisioner, monkeypatch: pytest.MonkeyPatch
) -> None:
    people, reads = await in_groups(scim), list[str]()

    def counted(query: str) -> list[tuple[str, str]]:
        reads.append(query)
        return parse_pairs(query)

    monkeypatch.setattr(base, "parse_pairs", counted)
    await scim.get("/Groups")
    few = len(reads)
    await scim.desk.do("PATCH", f"/people/{people['bea']}", {"groups": [f"group {number}" for number in range(40)]})
    reads.clear()
    assert len((await scim.get("/Groups"))["Resources"]) == 41
    assert len(reads) == few


async def test_groups_are_only_read(scim: Provisioner) -> None:
    await in_groups(scim)
    for method, path in (("POST", "/Groups"), *((method, f"/Groups/{STAFF}") for method in ("PUT", "PATCH", "DELETE"))):
        await scim.refused(await scim.ask(method, path, {"displayName": "x"}), 501)
    for one in ("bm9ib2R5", "A", "____", "c3RhZmY=", "c3RhZmYKYQ"):
        await scim.refused(await scim.ask("GET", f"/Groups/{one}"), 404)
