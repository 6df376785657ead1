"""The benchmark runs; nothing here depends on speed."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dev.bench import ai, starting
from dev.bench.documents import parse
from dev.bench.measure import Client, Unexpected, compared, percentile, request, table
from dev.bench.parts import results
from dev.bench.parts.calling import Direct, Reply, stub
from dev.bench.parts.filling import FilledStore, document, name_of
from handlers.documents.documents import check_names
from store import keys
from store.json_text import check_json
from tests.support.http.driver import Service

ROOT = Path(__file__).resolve().parent.parent.parent


def rows_of(printed: str) -> list[list[str]]:
    """The cells of every row of the tables, headers and rules included."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if line]


def number(cell: str) -> float:
    """The figure of a cell, without its ratio."""
    return float(cell.split()[0].replace(",", ""))


def test_a_run_fills_every_row_of_its_tables() -> None:
    options = ["--documents", "2,120", "--seconds", "0.1", "--connections", "2", "--stored", "50"]
    command = [sys.executable, "-m", "dev.bench.documents", *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    rows = rows_of(ran.stdout)
    speed, memory = rows[2:6], rows[8:]
    assert [row[:2] for row in speed] == [["GET", "2"], ["GET", "120"], ["PUT", "2"], ["PUT", "120"]]
    assert all(len(row) == len(rows[0]) and number(cell) > 0 for row in speed for cell in row[2:])
    assert all("(×1.00)" in cell for row in (speed[0], speed[2]) for cell in row[2:])
    assert [row[0] for row in memory] == ["100 B", "1,024 B", "10,240 B"]
    for row in memory:
        total, *split = map(number, row[1:])
        # What is kept is at least the document, and its parts are most of the whole.
        assert number(row[0]) < split[0] < total
        assert 0.5 * total < sum(split) < 1.5 * total
    assert "120 documents for 100 people" in ran.stderr


def test_a_run_of_holds_compares_each_token_with_that_of_the_sign_in() -> None:
    command = [sys.executable, "-m", "dev.bench.holds", "--rounds", "1", "--calls", "20"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    rows = rows_of(ran.stdout)[2:]
    tokens = [
        "a sign-in, without a budget",
        "a sign-in, with a budget",
        *(f"{n} above it" for n in ("1 token", "3 tokens", "5 tokens")),
    ]
    assert [row[:2] for row in rows] == [[call, one] for call in ("hold", "settlement") for one in tokens]
    assert all(number(cell) > 0 for row in rows for cell in row[2:])
    assert all("(×1.00)" in cell for row in (rows[0], rows[5]) for cell in row[2:])


def test_a_run_of_calls_fills_every_row_of_its_tables() -> None:
    options = ["--seconds", "0.01", "--burst", "0.01", "--connections", "2", "--long", "8", "--streams", "10"]
    command = [sys.executable, "-m", "dev.bench.ai", *options, "--people", "4"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    latency, load, events, memory = (rows_of(part)[2:] for part in ran.stdout.split("\n\n"))
    assert [row[:2] for row in latency][::2] == [
        ["whole", "1"],
        ["stream: first event", "1"],
        ["stream: longest pause", "1"],
        ["stream: end", "1"],
    ]
    assert all(number(row[column]) > 0 for row in latency for column in (2, 3, 5, 6))
    # The stub sends a millisecond after each of the 25 events before the last; nothing that is passed on comes earlier.
    assert all(number(row[column]) >= 25 for row in latency[-2:] for column in (2, 3))
    assert [row[1] for row in load] == ["the stub", "Latchkey"] * 2
    assert all(number(cell) > 0 for row in load[1::2] for cell in row[2:])
    assert all(number(cell) > 0 for row in events for cell in row[2:])
    assert [row[0] for row in memory] == ["at rest", "10 connections, idle", "10 open streams, with their connections"]
    assert all(number(row[1]) > 0 for row in memory)
    assert "4 people with credits and a token each" in ran.stderr


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--burst", "0"), id="no time for a burst"),
        pytest.param(("--asked", "200000"), id="a request beyond the model's window"),
        pytest.param(("--people", "4"), id="more streams than the people may open"),
    ],
)
def test_calls_that_cannot_be_measured_are_refused(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        ai.parse(options)
    assert f"argument {options[0]}" in capsys.readouterr().err


@pytest.mark.gen_test
async def test_the_stubs_model_name_sets_its_reply(tmp_path: Path) -> None:
    with stub(tmp_path) as served:
        direct, client = Direct(served), await Client.connect(served.port, 1)
        for reply in (Reply(3, 0, False, 10), Reply(3, 0, True, 10), Reply(3, 1, True, 10)):
            burst = await client.burst([direct.request(reply, "none")] * 2, direct.expected(reply))
            assert len(burst.latencies) == len(burst.firsts) == len(burst.pauses) == 2
        with pytest.raises(Unexpected, match="404"):
            await client.burst([request("POST", "/v1/messages", "none", b'{"model":"other"}')])
        client.close()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--documents", "10,0"), id="a store of no documents"),
        pytest.param(("--documents", "10;20"), id="counts that are none"),
        pytest.param(("--seconds", "3600"), id="longer than an access token lives"),
        pytest.param(("--connections", "0"), id="no connection"),
    ],
)
def test_invalid_measurements_are_refused(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(options)
    assert f"argument {options[0]}" in capsys.readouterr().err


def test_the_filling_writes_what_the_product_reads() -> None:
    """Row by row as a client's PUTs would have left it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, FilledStore.started(Path(directory)) as store:
        pairs = store.mint(2)
        store.fill(pairs, 1003, 200)
        assert [pair.documents for pair in pairs] == [502, 501]
        for pair in pairs:
            hosted = keys.hosted(pair.caller.user, pair.caller.client)
            usage = store.client.hgetall(hosted["usage"])
            assert isinstance(usage, dict)
            assert (int(usage[b"documents"]), int(usage[b"bytes"])) == (pair.documents, 200 * pair.documents)
            assert store.client.hlen(hosted["docs"]) == store.client.hlen(hosted["meta"]) == pair.documents
            assert store.client.zcard(hosted["index"]) == pair.documents
        assert store.script_time()[0] >= 1003
        assert dict(store.client.config_get())["appendonly"] == "yes"


@pytest.mark.gen_test
async def test_a_burst_is_answered_in_full_or_ends_the_run(service: Service) -> None:
    client = await Client.connect(int(service.base_url.rpartition(":")[2]), 2)
    try:
        burst = await client.burst([request("GET", "/healthz", "none")] * 7)
        assert len(burst.latencies) == 7
        assert 0 < max(burst.latencies) <= burst.seconds
        with pytest.raises(Unexpected, match="invalid_token"):
            await client.burst([request("GET", "/api/oauth/userinfo", "forged")])
    finally:
        client.close()


@pytest.mark.parametrize("size", [100, 1024, 10 * 1024])
def test_a_document_has_its_size_and_a_name_that_may_be(size: int) -> None:
    assert len(document(size)) == size
    check_json(document(size))
    assert json.loads(document(size))["title"] == "A note"
    check_names(*name_of(9999).split("/"))


@pytest.mark.parametrize(
    ("values", "percent", "found"),
    [
        pytest.param([3, 1, 2], 50, 2, id="the middle one"),
        pytest.param([1, 2, 3, 4], 50, 2, id="the lower of two middle ones"),
        pytest.param(list(range(1, 101)), 99, 99, id="one of a hundred lies above"),
        pytest.param([7], 99, 7, id="of one, that one"),
    ],
)
def test_a_percentile_is_one_of_the_values(values: list[float], percent: float, found: float) -> None:
    assert percentile(values, percent) == found


def test_a_request_and_a_table_are_written_as_they_are_read() -> None:
    sent = request("PUT", "/api/v1/data/notes/n1", "token", b"{}")
    assert sent.startswith(b"PUT /api/v1/data/notes/n1 HTTP/1.1\r\n")
    assert sent.endswith(b"\r\nContent-Length: 2\r\n\r\n{}")
    assert request("GET", "/", "token").endswith(b"Bearer token\r\n\r\n")
    cells = ("1", "2", compared([1500, 100, 3000], [1000, 100, 1000], 0))
    assert rows_of(table(("a", "b", "c"), [cells])) == [
        ["a", "b", "c"],
        ["---", "---", "---:"],
        ["1", "2", "1,500 (×1.50)"],
    ]


def test_a_start_is_timed_and_every_workers_memory_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert starting.main(["--times", "1", "--json", str(tmp_path / "starting.json")]) == 0
    measured = results.read(tmp_path / "starting.json")
    starts = measured["starts"]
    assert {workers: len(found["memory"]) for workers, found in starts.items()} == {"1": 1, "4": 4}
    assert len(measured["kit"]["memory"]) == 1
    for found in (*starts.values(), measured["kit"]):
        assert len(found["seconds"]) == 1
        assert all(seconds > 0 for seconds in found["seconds"])
        assert all(one["resident"] >= one["share"] >= one["own"] > 0 for one in found["memory"])
    assert capsys.readouterr().out.count("\n") == 5
    assert starting.start_table({"starts": starts}).count("\n") == 3  # results from before the test kit was measured
