"""The overload measurement runs and reports; nothing depends on speed."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tornado.web import Application, RequestHandler

from dev.bench import overload
from dev.bench.measure import Unexpected
from dev.bench.overload import BOUND, MOST_BURSTS, UNBOUND, figures, load_table, recovery, sustainable_rate
from dev.bench.parts import results
from dev.bench.parts.options import RESULTS
from dev.bench.parts.probe import Probe, Seen
from dev.bench.parts.wrk import Burst, Unanswered, burst, write_parts
from tests.support.http.http_servers import request, running, until

BEFORE = [Seen(at / 100, 0.002, 200) for at in range(100)]


def after(slow: int) -> list[Seen]:
    """Requests from second 10 on, a hundred a second. The first `slow` are slow or refused."""
    odd = [Seen(10 + at / 100, 0.5, 200) if at % 2 else Seen(10 + at / 100, 0.001, 503) for at in range(slow)]
    return odd + [Seen(10 + at / 100, 0.002, 200) for at in range(slow, 200)]


def test_recovery_ends_with_a_run_of_normal_answers() -> None:
    assert recovery(BEFORE, after(0), 10.0) == 0
    assert recovery(BEFORE, after(50), 10.0) == pytest.approx(0.5)
    assert recovery(BEFORE, after(195), 10.0) is None


def test_accepted_and_refused_requests_are_distinguished() -> None:
    during = [Seen(5.0, 0.08, 200), Seen(5.1, 0.001, 503), Seen(5.2, 0.12, 200), Seen(5.3, 0.1, 0)]
    found = figures([*BEFORE, *during, *after(10)], 4.0, 10.0, unsent=2)
    assert (found["offered"], found["accepted"], found["refused"]) == (1, 2 / 6, 1 / 6)
    assert found["during"] == {"p50": 80, "p99": 120, "most": 120, "number": 2}
    assert (found["away"]["number"], found["other"]) == (1, 1)
    assert found["recovery"] == pytest.approx(0.1)
    nothing = figures([*BEFORE, *after(200)], 4.0, 10.0)
    shown = load_table({"loads": {BOUND: found, UNBOUND: nothing}})
    assert "80 / 120 / 120" in shown
    assert "not within 10 s" in shown


class Answer(RequestHandler):
    """Answers with the status in the path."""

    def get(self, status: str) -> None:
        self.set_status(int(status))
        if status == "500":
            connection: Any = self.request.connection
            connection.close()
        self.finish("x")


@pytest.mark.gen_test
async def test_the_probe_asks_at_its_rate_and_notes_how_it_was_answered() -> None:
    requests = [request("GET", f"/{status}") for status in (200, 503, 500)]
    application = Application([("/(.*)", Answer)], log_function=lambda handler: None)
    async with running(application) as server, Probe(server.port, requests, 300) as probe:
        await until(lambda: len(probe.seen) >= 30)
    assert {one.status for one in probe.seen} == {200, 503, 0}
    assert all(one.took > 0 for one in probe.seen)


def test_a_burst_without_an_answer_is_repeated() -> None:
    outcomes: Iterator[int | None] = iter((None, 900, None, 200, 500, None, 400))

    def follow() -> Burst:
        if (rate := next(outcomes)) is None:
            raise Unanswered("no answer came in 1 s")
        return Burst(rate, 1.0, 0, 0.0, 0.0, 0, 0.0)

    assert sustainable_rate(follow) == 500, "the best but the first, which warms up"
    assert next(outcomes, "used up") == "used up"
    outcomes = itertools.chain((900, 200, 500), itertools.repeat(None))
    with pytest.raises(Unexpected, match=f"of {MOST_BURSTS} bursts, {MOST_BURSTS - 3} ended before their first answer"):
        sustainable_rate(follow)


def test_a_server_that_answers_nothing_is_told_from_requests_that_run_out(tmp_path: Path) -> None:
    if shutil.which("wrk") is None:
        pytest.skip("there is no wrk on the PATH")
    file, core = tmp_path / "requests", min(os.sched_getaffinity(0))
    write_parts(file, [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(Unanswered, match="no answer came in 1 s"):
            burst(port, "round", file, 0, connections=2, seconds=1, core=core)
        with pytest.raises(Unexpected, match="too few requests"):
            burst(port, "once", file, 0, connections=2, seconds=1, core=core)


def test_both_servers_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("wrk") is None:
        pytest.skip("there is no wrk on the PATH")
    monkeypatch.setattr(overload, "BEFORE", 0.3)
    monkeypatch.setattr(overload, "AFTER", 0.3)
    monkeypatch.setattr(overload, "FOLLOWED", 1)
    with TemporaryDirectory(prefix="bench-", dir="/tmp") as directory:
        found = overload.measure(Path(directory), Namespace(people=1000, seconds=2, times=2))
    assert found["sustainable"] > 0
    assert set(found["loads"]) == {BOUND, UNBOUND}
    for one in found["loads"].values():
        assert one["accepted"] > 0
        assert one["before"]["number"] > 0
        assert one["other"] == 0


def test_the_page_matches_the_last_measurement() -> None:
    found = results.read(RESULTS / "overload.json")
    assert overload.PAGE.read_text("utf-8") == overload.page(found)
