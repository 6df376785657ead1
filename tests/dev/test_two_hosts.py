"""The verdict on two hosts: which requests count as failed. The run itself needs root: `make two-hosts`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer
from aiohttp.web import Application, Request, Response

from dev.bench.measure import ROOT
from dev.proof.two_hosts.__main__ import BEFORE, judged
from dev.proof.two_hosts.asked import Asked, LoggedClients, by_phase, failures
from dev.proof.two_hosts.run import Outcome
from dev.proof.two_hosts.servers import flags
from store.keystate import LAYOUT
from store.upgrade import ROLLING
from tests.support.store.proof_histories import sound


def asked(status: int, error: str = "", retry_after: str = "") -> Asked:
    """A request that ended like this."""
    return Asked("failover", 1.0, 0.1, "GET", "/api/oauth/userinfo", status, error, retry_after)


def outcome(one: Asked, not_found: Sequence[str] = (), defects: Sequence[str] = ()) -> Outcome:
    """A run that kept every promise, with this request in it."""
    history = sound()
    history.run.update(title="two hosts", wait_replicas=1, before=BEFORE, seed=1)
    return Outcome(history, [one], 0, list(not_found), list(defects))


@pytest.mark.parametrize(
    ("one", "fails"),
    [
        pytest.param(asked(200), False, id="an answer"),
        pytest.param(asked(401), False, id="a refusal"),
        pytest.param(asked(503, retry_after="2"), False, id="a 503 that says when to come back"),
        pytest.param(asked(503), True, id="a 503 that does not"),
        pytest.param(asked(502), True, id="the proxy's own error"),
        pytest.param(asked(500), True, id="a defect"),
        pytest.param(asked(0, "unreachable"), True, id="a refused connection"),
        pytest.param(asked(200, "ClientPayloadError"), True, id="an answer that broke off"),
        pytest.param(asked(503, "ClientPayloadError", "2"), True, id="a 503 that broke off"),
    ],
)
def test_a_request_without_a_whole_answer_fails_the_run(one: Asked, fails: bool) -> None:
    assert bool(failures([one])) == fails
    said, well = judged(outcome(one))
    assert well is not fails
    assert ("FAILED" in said) == fails


def test_people_whom_nobody_finds_and_defects_fail_the_run() -> None:
    assert judged(outcome(asked(200)))[1]
    assert not judged(outcome(asked(200), not_found=["ada@example.com"]))[1]
    assert not judged(outcome(asked(200), defects=["a traceback"]))[1]


def test_a_phase_counts_what_was_put_off_apart() -> None:
    rows = by_phase([asked(200), asked(503, retry_after="2"), asked(0, "unreachable")]).splitlines()
    assert rows[-1] == "| failover | 0 | 3 | 1 | 1 | 0.10 |"


@pytest.mark.gen_test
async def test_every_request_of_a_client_is_logged_without_its_query(tmp_path: Path) -> None:
    async def answer(request: Request) -> Response:
        return Response(status=503, headers={"Retry-After": "2"})

    application = Application()
    application.router.add_get("/busy", answer)
    async with TestServer(application) as server:
        clients = LoggedClients([str(server.make_url("")).rstrip("/")], random.Random(1), tmp_path / "log")
        clients.phase = "failover"
        await clients.send("GET", "/busy?code=secret")
        await clients.close()
    [line] = (tmp_path / "log").read_text().splitlines()
    found = json.loads(line)
    assert (found["phase"], found["path"], found["status"], found["retry_after"]) == ("failover", "/busy", 503, "2")


def test_the_run_begins_with_the_last_release_of_the_layout_that_may_roll() -> None:
    table = (ROOT / "docs" / "operations.md").read_text("utf-8")
    assert re.search(rf"^\| {ROLLING} \| until commit {BEFORE} \|", table, re.MULTILINE)
    assert ROLLING < LAYOUT


def test_settings_that_an_earlier_release_does_not_have_are_left_out() -> None:
    known = flags(ROOT)
    assert {"--drain-delay", "--wait-replicas", "--trusted-proxies"} <= known
    assert "--no-such-setting" not in known
