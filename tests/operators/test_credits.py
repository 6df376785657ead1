"""Ledger search and the report on everybody's credits in the management interface."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from store import keys
from store.lifetimes import DAY
from store.operators import ledger_search
from tests.operators.conftest import Desk, refused

pytestmark = pytest.mark.gen_test(timeout=60)


async def entry(desk: Desk, user: str, kind: str, amount: int, ago: int = 0, **fields: str) -> str:
    """The id of a new entry of a ledger, some days old."""
    client, known = desk.store.client, keys.credits(user)
    now = int((await client.time())[0]) * 1000 - ago * DAY
    paid = await client.hincrby(known["balance"], "paid", amount)
    row: Any = {"kind": kind, "amount": amount, "paid": paid, **fields}
    length = await client.xlen(known["ledger"])
    made = f"{now}-{length + 1}"
    await client.xadd(known["ledger"], row, id=made)
    return made


async def report(desk: Desk, **order: str) -> Any:
    """A finished report."""
    await desk.do("POST", "/credits/report", order)
    while True:
        found = await desk.get("/credits/report")
        if found["state"] == "done":
            return found
        await asyncio.sleep(0)


async def test_a_ledger_is_searched_by_kind_app_id_and_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_search, "STEP", 3)
    ids = [
        await entry(desk, desk.ada, "grant", 50, 9, reason="Welcome"),
        await entry(desk, desk.ada, "purchase", 100, 5, payment="pi_1"),
        await entry(desk, desk.ada, "charge", -7, 3, client="shop", model="m", hold="h1"),
        await entry(desk, desk.ada, "charge", -8, 2, client="mail", model="m", hold="h2"),
        await entry(desk, desk.ada, "reversal", -20, 1, payment="pi_1", cause="refund"),
    ]
    for query, places in (
        ("", [4, 3, 2, 1, 0]),
        ("&kind=charge", [3, 2]),
        ("&app=shop", [2]),
        ("&transaction=pi_1", [4, 1]),
        ("&transaction=h2", [3]),
        (f"&transaction={ids[2]}", [2]),
        ("&app=nothing", []),
        ("&since=2099-01-01", []),
        ("&until=2000-01-01", []),
    ):
        found = await desk.get(f"/credits?person={desk.ada}{query}")
        assert [one["id"] for one in found["items"]] == [ids[place] for place in places], query
    first = await desk.get(f"/credits?person={desk.ada}&limit=2")
    rest = await desk.get(f"/credits?person={desk.ada}&limit=2&cursor={first['nextCursor']}")
    assert [one["id"] for one in (*first["items"], *rest["items"])] == [ids[place] for place in (4, 3, 2, 1)]
    for wrong in ("kind=gift", "since=soon", "since=2026-02-01&until=2026-01-01", f"cursor={first['nextCursor']}x"):
        refused(await desk.ask("GET", f"/credits?person={desk.ada}&{wrong}"), 400, "invalid_request")
    refused(await desk.ask("GET", "/credits"), 400, "invalid_request")
    refused(await desk.ask("GET", "/credits?person=nobody@example.com"), 404, "not_found")


async def test_the_report_adds_up_days_and_finds_what_differs(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_search, "STEP", 3)
    refused(await desk.ask("GET", "/credits/report"), 404, "not_found")
    bea = await desk.person("bea@example.com")
    for _ in range(4):
        await entry(desk, desk.ada, "charge", -1, client="shop", model="m")
    await entry(desk, desk.ada, "grant", 10)
    await entry(desk, desk.ada, "grant", -2)
    wanted = await entry(desk, bea, "purchase", 100, payment="pi_1")
    await entry(desk, bea, "reversal", -30, payment="pi_1", cause="refund")
    found = await report(desk, transaction="pi_1", kind="purchase")
    (day,) = found["days"]
    sums = {name: day[name] for name in ("granted", "taken", "bought", "charged", "refunded", "returned")}
    assert sums == {"granted": 10, "taken": 2, "bought": 100, "charged": 4, "refunded": 30, "returned": 0}
    books = found["reconciliation"]
    assert (books["paid"], books["ledger"], books["different"]) == (74, 74, 0)
    assert books["people"] >= 2
    assert [(one["person"], one["id"]) for one in found["items"]] == [(bea, wanted)]
    await desk.store.client.hincrby(keys.credits(bea)["balance"], "paid", 1)
    found = await report(desk)
    assert found["items"] == [], "a report that looks for nothing lists nobody's entries"
    assert found["reconciliation"]["differences"] == [{"person": bea, "paid": 71, "ledger": 70}]


async def test_folded_entries_count_and_one_report_is_made_at_a_time(desk: Desk) -> None:
    await entry(desk, desk.ada, "grant", 5)
    known = keys.credits(desk.ada)["balance"]
    await desk.store.client.hset(known, mapping={"opening": 20, "paid": 25})
    found = await report(desk)
    assert (found["reconciliation"]["paid"], found["reconciliation"]["different"]) == (25, 0)
    job = await desk.store.credit_reports.last()
    assert job
    await desk.store.client.hset(keys.OPERATOR_JOBS + job.id, "state", "running")
    refused(await desk.ask("POST", "/credits/report", {}), 400, "invalid_request")
    refused(await desk.ask("POST", "/credits/report", {}, role="auditor"), 403, "insufficient_role")
