"""Long work of operators: prepared by one call, begun by another, done in the background, followed by anybody."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Final

import orjson

from store import keys
from store.engine.scripts import Scripts
from store.lifetimes import OPERATOR_JOB
from store.operators.roles import OperatorActor

SILENCE: Final = 60_000
"""Milliseconds without a sign of life after which a job has stopped: the server that did it died."""


@dataclass(frozen=True, slots=True)
class OperatorJob:
    """`order`: what to do; `report`: what came of it. `state`: ready, running, stopped or done. `at`: the last sign of
    life (epoch ms), 0 for none."""

    id: str
    kind: str
    actor: str
    order: dict[str, Any]
    total: int
    done: int
    state: str
    report: dict[str, Any]
    at: int


@dataclass(frozen=True, slots=True)
class BegunJob:
    """A job that this process does now: from the step `done` on, with the report until there."""

    id: str
    order: dict[str, Any]
    done: int
    report: dict[str, Any]


class OperatorJobs:
    """Keeps jobs for a day. Every method raises StoreUnavailable."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def prepare(self, kind: str, actor: OperatorActor, order: dict[str, Any], total: int, job: str = "") -> str:
        """Keeps work that only this actor may begin, and returns its id: `job`, or a new one that nobody guesses;
        "" while that job is done."""
        job = job or secrets.token_urlsafe(16)
        reply = await self._scripts.run(
            "prepare_operator_job",
            {"job": keys.OPERATOR_JOBS + job},
            lasts=OPERATOR_JOB,
            kind=kind,
            actor=f"{actor.kind} {actor.id}",
            order=orjson.dumps(order),
            total=total,
            silence=SILENCE,
        )
        return job if reply.word == "ok" else ""

    async def begin(self, job: str, kind: str, actor: OperatorActor) -> BegunJob | bool:
        """The job, for this process to do; True if it was begun before, False if there is none of this actor."""
        reply = await self._scripts.run(
            "begin_operator_job",
            {"job": keys.OPERATOR_JOBS + job},
            kind=kind,
            actor=f"{actor.kind} {actor.id}",
            silence=SILENCE,
            lasts=OPERATOR_JOB,
        )
        if reply.word != "ok":
            return reply.word == "begun"
        order, report = orjson.loads(reply.raw("order")), orjson.loads(reply.raw("report"))
        return BegunJob(job, order, reply.number("done"), report)

    async def note(self, job: str, done: int, report: dict[str, Any], *, over: bool) -> None:
        """Notes how far a job is; `over`: it is done."""
        await self._scripts.run(
            "note_operator_job",
            {"job": keys.OPERATOR_JOBS + job},
            state="done" if over else "running",
            done=done,
            report=orjson.dumps(report),
        )

    async def read(self, job: str, kind: str) -> OperatorJob | None:
        """A job of this kind; None if there is none."""
        reply = await self._scripts.run("read_operator_job", {"job": keys.OPERATOR_JOBS + job})
        if reply.word != "ok" or reply.text("kind") != kind:
            return None
        state, beat = reply.text("state"), int(reply.text("beat"))
        if state == "running" and beat + SILENCE < int(reply.text("now")):
            state = "stopped"
        order, report = orjson.loads(reply.raw("order")), orjson.loads(reply.raw("report"))
        total, done = int(reply.text("total")), int(reply.text("done"))
        return OperatorJob(job, kind, reply.text("actor"), order, total, done, state, report, beat)
