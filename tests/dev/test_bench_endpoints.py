"""The measurements of endpoints, peers and memory run and report; nothing depends on speed."""

from __future__ import annotations

import shutil
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import pytest

from dev.bench import aims, capacity, endpoints, memory, report
from dev.bench.cores import Cores
from dev.bench.flat import EMPTY, FULL
from dev.bench.measure import ROOT, Unexpected
from dev.bench.parts import results
from dev.bench.parts.latchkey import (
    BARE,
    BOUND,
    CALLS,
    CEILING,
    EVALSHA,
    LOOKS,
    PUSHED,
    SIGNED,
    SYSTEM,
    Filling,
    Latchkey,
)
from dev.bench.parts.options import RESULTS
from dev.bench.parts.rounds import Found, Key, Rounds, Sample
from dev.bench.parts.rows import Once, Pushed, Row, http
from dev.bench.parts.stores import IN_MEMORY, running, valkey_binary
from dev.bench.parts.wrk import burst, write_parts
from dev.bench.peers import __main__ as peers
from dev.bench.peers.install import NotInstalled
from dev.bench.peers.setups import SETUPS
from dev.bench.peers.tables import tables as peer_tables
from dev.bench.plot import Bar, Group, draw

# As many as their windows let make all requests of the bursts below within a minute, on a fast machine too.
PEOPLE = 1000
THINGS = {
    memory.ACCOUNT: 500.0,
    memory.CONSENT: 1000.0,
    memory.TRAIL: 100.0,
    memory.PAIR: 500.0,
    memory.ACCESS: 200.0,
    memory.FAMILY: 300.0,
    memory.SESSION: 700.0,
    memory.CODE: 600.0,
    memory.WINDOW: 150.0,
    memory.PAIR_WINDOW: 150.0,
    memory.CREDITS: 600.0,
    memory.FIRST: 1900.0,
    memory.DOCUMENT: 1300.0,
}


@pytest.fixture(scope="module")
def latchkey() -> Iterator[Latchkey]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="bench-", dir="/tmp")))
        yield Latchkey(stack, directory / "ours", PEOPLE, Cores.choose(), filling=Filling(100, 500, 200))


@pytest.fixture(scope="module")
def rows(latchkey: Latchkey) -> dict[str, Row]:
    """Every row there is, by its endpoint."""
    return {
        row.endpoint: row for row in [*latchkey.ceilings(latchkey.serve_ceiling()), *latchkey.rows(latchkey.serve())]
    }


def sample(rate: float, p50: float = 1.0, p99: float = 2.0) -> Sample:
    return Sample(rate, p50, p99, 1000 / rate, 0.05, 0.3, 500.0, 0.01)


def found(rates: dict[tuple[str, str], float], connections: int = 32) -> Found:
    """Two rounds, the second half as fast as the first."""
    samples = {
        Key(system, endpoint, connections): [sample(rate), sample(rate / 2)]
        for (system, endpoint), rate in rates.items()
    }
    return Found(samples, {"userinfo": 1}, {})


def test_every_benchmark_request_is_answered(rows: dict[str, Row]) -> None:
    assert set(rows) == {BARE, EVALSHA, SIGNED, *CALLS}
    for row in rows.values():
        assert row.look() > 0
        assert row.process.cpu() > 0
    with pytest.raises(Unexpected, match=r"userinfo: answered 401"):
        rows["userinfo"].look(http("GET", "/api/oauth/userinfo", {"Authorization": "Bearer forged"}))


def test_a_request_takes_one_store_command_an_ai_call_two_a_pushed_request_three(
    latchkey: Latchkey, rows: dict[str, Row]
) -> None:
    """A pushed request is one command when it is pushed. It is in the slot of its app, and the code in that of the
    person: so its arrival is two commands."""
    calls = {name: latchkey.calls(row) for name, row in rows.items() if row.system == SYSTEM}
    assert calls.pop("AI call") == 2
    assert calls.pop(PUSHED) == 3
    assert set(calls.values()) == {1}


def test_each_bound_call_has_a_proof_of_its_own(rows: dict[str, Row]) -> None:
    row = rows[BOUND]
    assert isinstance(row.source, Once)
    sent = [row.source.sample() for _ in range(3)]
    assert len({proof_of(request) for request in sent}) == 3
    for request in sent:
        assert row.look(request) > 0
    with pytest.raises(Unexpected, match=r"answered 401.*used before"):
        row.look(sent[0])
    with pytest.raises(Unexpected, match="answered 401"):
        row.look(sent[0].replace(b"Authorization: DPoP", b"Authorization: Bearer"))


def proof_of(request: bytes) -> bytes:
    """The DPoP header of a request."""
    return request.partition(b"\r\nDPoP: ")[2].partition(b"\r\n")[0]


def test_a_pushed_request_leads_to_a_code_only_with_its_arrival(rows: dict[str, Row]) -> None:
    row = rows[PUSHED]
    with pytest.raises(Unexpected, match="answered 303"):
        replace(row, expected=b"what no address has").look()
    with pytest.raises(Unexpected, match=r"answered 401.*invalid_client"):
        row.look(row.source.sample().replace(b"client_secret=", b"client_secret=x"))


def test_background_commands_count_for_no_request(
    latchkey: Latchkey, rows: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, look = count(), Row.look

    def disturbed(row: Row, request: bytes | None = None) -> int:
        if next(looks) == 1:  # the first of those that are counted
            latchkey.filled.client.ping()
        return look(row, request)

    monkeypatch.setattr(Row, "look", disturbed)
    assert latchkey.calls(rows["userinfo"]) == 1
    assert next(looks) >= 1 + LOOKS


def test_long_background_work_counts_for_no_request(latchkey: Latchkey, rows: dict[str, Row]) -> None:
    """A sweep is thousands of commands in a row, so every try would fall into it."""
    begun, ends = Event(), time.monotonic() + 1

    def sweep() -> None:
        while time.monotonic() < ends:
            latchkey.filled.client.ping()
            begun.set()

    sweeping = Thread(target=sweep)
    sweeping.start()
    begun.wait()
    try:
        assert latchkey.calls(rows["userinfo"]) == 1
    finally:
        sweeping.join()


def test_a_store_is_filled_around_the_measured_people(latchkey: Latchkey) -> None:
    names = [key.decode().rpartition(":") for key in latchkey.filled.client.scan_iter(count=10_000)]
    assert sum(last == "user" for _, _, last in names) == PEOPLE + 100
    assert sum(first.endswith(":family") for first, _, _ in names) >= PEOPLE + 200
    assert len(latchkey.users) == len(latchkey.lineages) == len(latchkey.cookies) == PEOPLE


def test_a_burst_of_each_kind_is_counted_and_its_answers_are_checked(rows: dict[str, Row]) -> None:
    """Requests again and again, requests that are sent once, a chain of refresh tokens, pairs of requests."""
    if shutil.which("wrk") is None:
        pytest.skip("there is no wrk on the PATH")
    chosen = [rows[EVALSHA], rows["revoke"], rows["refresh"], rows[BOUND], rows[PUSHED]]
    # All in one process of Lua: what was sent once must not have run out, and no refresh may have been a replay.
    measured = Rounds(chosen, [4], 1, Cores.choose(), warm_up=1).run(1)
    assert [key.endpoint for key in measured.samples] == [EVALSHA, "revoke", "refresh", BOUND, PUSHED]
    for (one,) in measured.samples.values():
        assert one.rate > 0
        assert 0 < one.p50 <= one.p99
        assert one.server > 0
    assert Found.load(measured.dump()).dump() == measured.dump()
    assert "server's core" in measured.disturbance()


def test_a_failed_row_ends_the_run_unless_it_is_a_peers(rows: dict[str, Row]) -> None:
    broken = Row("a peer", "userinfo", rows["userinfo"].process, rows["revoke"].source, b"what is never answered")
    with pytest.raises(Unexpected, match="a peer, userinfo: answered 200"):
        Rounds([broken], [1], 1, Cores.choose()).run(1)
    left = Rounds([broken], [1], 1, Cores.choose(), lenient=("a peer",)).run(1)
    assert left.samples == {}
    assert "answered 200" in left.missing["a peer, userinfo"]


def test_arrivals_that_get_no_code_end_the_run(rows: dict[str, Row], tmp_path: Path) -> None:
    """They are redirects, so their status says nothing."""
    if shutil.which("wrk") is None:
        pytest.skip("there is no wrk on the PATH")
    source = rows[PUSHED].source
    assert isinstance(source, Pushed)
    parts = [b"", b"", b""]
    parts[:2] = source.plan(1).file.read_bytes().split(b"\0")[:2]
    parts[2] = b" HTTP/1.1\r\nHost: localhost\r\n\r\n"  # nobody is signed in
    nobody = tmp_path / "nobody.requests"
    write_parts(nobody, parts)
    with pytest.raises(Unexpected, match="answers are errors"):
        burst(rows[PUSHED].process.port, "push", nobody, 0, connections=1, seconds=1, core=Cores.choose().load)


@pytest.mark.parametrize("parse", [endpoints.parse, peers.parse])
def test_results_of_some_calls_replace_no_results_of_all(
    parse: Callable[[list[str]], Namespace], capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse(["--calls", f"userinfo;{PUSHED}", "--json", "some.json"]).calls == ["userinfo", PUSHED]
    for wrong in (["--calls", "userinfo"], ["--calls", "userinfo;tea", "--json", "some.json"]):
        with pytest.raises(SystemExit):
            parse(wrong)
        assert "argument --calls" in capsys.readouterr().err


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(stage: Any) -> Iterator[Row]:
        raise NotInstalled("there is no npm here")
        yield

    monkeypatch.setitem(SETUPS, "oidc-provider", refuse)
    made, missing = peers.started(None, ["oidc-provider"])  # type: ignore[arg-type]  # the stage is not looked at
    assert (made, missing) == ([], {"oidc-provider": "there is no npm here"})
    shown = peer_tables(Found({}, {}, missing))
    assert shown == "- Not measured: oidc-provider: there is no npm here"


def test_ratios_are_those_of_the_same_round() -> None:
    both = found({(SYSTEM, "userinfo"): 3000, ("oidc-provider", "userinfo"): 1500})
    ours, theirs = both.samples
    assert both.figure(ours, "rate") == 2250
    assert both.ratio(ours, theirs) == 2
    assert both.ratio(theirs, ours, "server") == 2


@pytest.mark.parametrize(
    ("rate", "met"),
    [pytest.param(7500, True, id="just reached"), pytest.param(7400, False, id="just missed")],
)
def test_an_aim_is_met_from_its_bound_on(rate: float, met: bool) -> None:
    aim = next(iter(aims.of_endpoints(found({(CEILING, EVALSHA): 10_000, (SYSTEM, "userinfo"): rate}))))
    assert (aim.what, aim.met) == ("userinfo, of the ceiling", met)
    assert ("**not met**" in aims.aim_table([aim])) is not met


def test_an_aim_whose_peer_was_not_measured_is_not_met() -> None:
    named = {aim.what: aim for aim in aims.of_peers(found({(SYSTEM, "userinfo"): 1000}))}
    assert named["userinfo, of oidc-provider's"].measured == "not measured"
    assert not any(aim.met for aim in named.values())


def test_a_missed_aim_says_how_far_a_bare_handler_gets() -> None:
    rates = {(CEILING, EVALSHA): 4000.0, (SYSTEM, PUSHED): 1500.0, ("oidc-provider", PUSHED): 1000.0}
    (aim,) = [aim for aim in aims.of_peers(found(rates)) if aim.what.startswith(PUSHED)]
    assert (aim.measured, aim.met) == ("1.50 ×", False)
    # Two requests at half the rate of a bare handler.
    assert "**not met**; a bare handler: 2.00 ×" in aims.aim_table([aim])


def test_a_missed_aim_of_a_call_that_signs_has_a_bare_handler_that_signs() -> None:
    call = "refresh, ES256 id_token"
    rates = {
        (CEILING, EVALSHA): 4000.0,
        (CEILING, SIGNED): 3000.0,
        (SYSTEM, call): 2000.0,
        ("oidc-provider", call): 1000.0,
    }
    (aim,) = [aim for aim in aims.of_peers(found(rates)) if aim.what.startswith(call)]
    assert "**not met**; a bare handler: 3.00 ×" in aims.aim_table([aim])


def test_memory_is_measured_thing_by_thing() -> None:
    with (
        TemporaryDirectory(prefix="bench-", dir="/tmp") as directory,
        running(valkey_binary(), Path(directory), IN_MEMORY) as store,
    ):
        one = memory.measure(store, 500)
    assert set(one.things) == set(THINGS)
    assert all(size > 0 for size in one.things.values())
    assert {row.noun for row in one.rows} >= {"user", "grant", "family", "access", "e-mail index"}
    assert memory.load({"stores": [{"version": one.version, "things": one.things, "rows": []}]})[0].person == one.person


def test_ten_times_the_people_need_ten_times_as_much() -> None:
    measured = found({(SYSTEM, call): 5000.0 for call in capacity.CALLS})
    small, large = (capacity.need(people, measured, THINGS, capacity.Assumed()) for people in (10**7, 10**8))
    for name in ("rate", "data_gib", "gigabits"):
        assert getattr(large, name) == pytest.approx(10 * getattr(small, name))
    assert large.primaries == max(large.by_memory, large.by_work) > small.primaries > 1
    assert large.cores > 7 * small.cores


def test_the_model_of_memory_counts_what_the_full_store_was_filled_with() -> None:
    how = {"users": 10, "tokens": 50, "documents": 10}
    flat = {"how": how, "memory": {EMPTY: 1000.0, FULL: 101_000.0}}
    predicted, measured = capacity.check(flat, [memory.Footprint("Valkey", THINGS, [])])
    assert predicted == 10 * 1500 + 15 * 500 + 10 * 1900
    assert measured == 100_000


def test_what_a_plot_shows_is_escaped_and_on_the_scale_of_its_group() -> None:
    drawn = draw(
        "a & b", [Group("one", [Bar("<x>", 10, "ours"), Bar("y", 5, "peer")]), Group("two", [Bar("z", 1, "peer")])]
    )
    assert "&lt;x&gt;" in drawn
    assert "a &amp; b" in drawn
    widths = [float(part.partition('"')[0]) for part in drawn.split('" width="')[1:]]
    assert widths[1:4] == pytest.approx([440.0, 220.0, 440.0])


def test_the_pages_match_the_results() -> None:
    """As `make bench-docs` would write them; where nothing was measured, there are none."""
    if not RESULTS.exists():
        assert not (ROOT / "docs" / "benchmarks.md").exists()
        return
    for name, content in report.render(report.Results.read(RESULTS)).items():
        assert (ROOT / "docs" / name).read_text("utf-8") == content, f"make bench-docs writes another docs/{name}"


def test_results_say_when_and_where_they_were_measured(tmp_path: Path) -> None:
    results.write(tmp_path / "new" / "one.json", {"rows": []}, rounds=3)
    read = results.read(tmp_path / "new" / "one.json")
    assert read["how"] == {"rounds": 3}
    assert "cores" in read["machine"]
