"""Reads the final state: over HTTP as apps and people do, and with `manage.py fsck`."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from dev.bench.measure import ROOT, Unexpected, progress
from dev.proof.apps import COLLECTION
from dev.proof.calling import Response
from dev.proof.history import Account, Hosted, Op
from dev.proof.options import Options
from dev.proof.people import APPS, Hand, Person, Stage, Tokens
from dev.proof.planners import Planner
from dev.proof.stories import NAMES, Worker
from dev.proof.televisions import Television

H = TypeVar("H", bound=Hand)
PATIENCE = 75.0
"""Seconds until a repeated request must succeed: a rate limit window may have to pass first."""
REFUSALS = 5
AT_ONCE = 8
PROBED = 12
"""Access and refresh tokens of one code to try at the end."""


async def read_all(
    setting: Stage,
    workers: Sequence[Worker],
    others: Sequence[Planner | Television],
    options: Options,
    manage: tuple[list[str], dict[str, str]],
) -> None:
    """Collects everything that the checker needs, and records what cannot be read."""
    try:
        await _read_all(setting, workers, others, options)
        setting.recorder.run(went_on=len(workers) + len(others))
    except Unexpected as error:
        setting.recorder.run(stuck=str(error))
    setting.recorder.fsck(await asyncio.to_thread(fsck, *manage))


async def _read_all(
    setting: Stage, workers: Sequence[Worker], others: Sequence[Planner | Television], options: Options
) -> None:
    loaded = setting.now()
    planners = [other for other in others if isinstance(other, Planner)]
    await each(others, sign_in_again)
    await each(workers, reconnect)
    await each(workers, read_documents)
    await each(workers, probe)
    await each(workers, present_again)
    await each(workers, newcomers)
    spenders = [worker for number, worker in enumerate(workers) if number % 2 == 0]
    await holds_over(setting, [*workers, *planners], loaded + options.hold_ends)
    await each(others, finish)
    await each([*spenders, *planners], read_account)


async def sign_in_again(hand: Hand) -> None:
    """The person signs in."""
    hand.address = f"203.0.113.{hand.dice.randrange(1, 255)}"
    await until_acked(hand, hand.sign_in)


async def finish(other: Planner | Television) -> None:
    """Does what is left to do for trees and devices."""
    await other.finish_up()


async def each(workers: Sequence[H], work: Callable[[H], Awaitable[None]]) -> None:
    """Runs this for every worker, a few at once. Afterwards raises the first error."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(worker: H) -> None:
        async with slots:
            await work(worker)

    for failed in await asyncio.gather(*map(one, workers), return_exceptions=True):
        if failed is not None:
            raise failed


async def until_acked(worker: Hand, what: Callable[[], Awaitable[Op]]) -> Op:
    """Repeats a request until it succeeds. Raises Unexpected if it never does, or is refused too often."""
    ends, refusals = worker.stage.now() + PATIENCE, 0
    while not (op := await what()).acked:
        refusals += op.refused and op.status == 400
        if worker.stage.now() > ends or refusals >= REFUSALS:
            raise Unexpected(f"{worker.name} cannot go on: {op} {op.error}")
        await asyncio.sleep(2.0 if op.status == 429 else 0.3)
    return op


async def reconnect(worker: Worker) -> None:
    """The person signs in again and the app gets new tokens: any client can do this after the faults."""
    await sign_in_again(worker)
    got: list[Tokens] = []

    async def connect() -> Op:
        op, tokens = await worker.consent()
        if tokens is None:
            return op
        worker.held.append(tokens)
        got[:] = [tokens]
        return await worker.exchange(tokens)

    await until_acked(worker, connect)
    worker.tokens = got[0]


async def read_documents(worker: Worker) -> None:
    """Every document that may exist; the list; the usage."""
    tokens = worker.tokens
    assert tokens is not None
    for name in NAMES:
        await until_acked(worker, partial(worker.get, tokens, name))
    answers: list[Response] = []

    async def kept(ask: Callable[[], Awaitable[tuple[Op, Response]]]) -> Op:
        op, answer = await ask()
        answers.append(answer)
        return op

    await until_acked(worker, lambda: kept(lambda: worker.listing(tokens)))
    listed = answers[-1].json()["items"]
    await until_acked(worker, lambda: kept(lambda: worker.usage(tokens)))
    usage = answers[-1].json()
    items = [{"collection": COLLECTION, "id": item["id"], "size": item["size"]} for item in listed]
    worker.stage.recorder.hosted(Hosted(worker.person.email, worker.app.client_id, usage, items))


async def probe(worker: Worker) -> None:
    """Calls with every earlier access token and every signed-out session."""
    for tokens in worker.held:
        for generation in _some(worker.dice, list(tokens.access)):
            op, _ = await worker.usage(tokens, generation=generation)
            if op.status == 429:
                await asyncio.sleep(1)
    for session, cookie in worker.signed_out:
        await worker.page(session, cookie)


async def present_again(worker: Worker) -> None:
    """Presents used codes and refresh tokens. Comes last, because this ends all tokens of the app."""
    for tokens in worker.held:
        await worker.exchange(tokens)
        for generation in _some(worker.dice, [old for old in tokens.refresh if old < tokens.generation]):
            await worker.refresh(tokens, generation)


def _some(dice: random.Random, found: list[int]) -> list[int]:
    return sorted(dice.sample(found, min(len(found), PROBED)))


async def newcomers(worker: Worker) -> None:
    """Everybody who signed up signs in."""
    for email in worker.new_people:
        hand = Hand(worker.stage, Person(email), APPS[0], worker.name, worker.dice)
        hand.address = f"203.0.113.{worker.dice.randrange(1, 255)}"
        await hand.sign_in()


async def holds_over(setting: Stage, workers: Sequence[Hand], deadline: float) -> None:
    """Waits until no credits are held for calls, at most for the lifetime of a hold."""
    left = {worker.person.email: worker for worker in workers}
    while left:
        for email, worker in list(left.items()):
            if _held(await download(worker)) == 0:
                del left[email]
        if not left or setting.now() > deadline:
            return
        progress(f"{setting.now():7.1f} s  money of {len(left)} people is held for calls that were cut off; waiting")
        await asyncio.sleep(0.5)


def _held(lines: list[dict[str, Any]]) -> int:
    return next(int(line["held"]) for line in lines if line["type"] == "balance")


async def download(worker: Hand) -> list[dict[str, Any]]:
    """All data of the person, from the person's own download."""
    answer = Response()

    async def got() -> Op:
        nonlocal answer
        op, answer = await worker.call("download", {}, "GET", "/account/download?format=jsonl", browser=True)
        return op

    await until_acked(worker, got)
    return [json.loads(line) for line in answer.body.splitlines()]


async def read_account(worker: Hand) -> None:
    """The person's credits, with all entries."""
    lines = await download(worker)
    balance, opening, profile = (
        next(line for line in lines if line["type"] == kind) for kind in ("balance", "opening", "profile")
    )
    kept = ("kind", "amount", "paid", "reason")
    entries = [{name: line.get(name) for name in kept} for line in reversed(lines) if line["type"] == "entry"]
    account = Account(
        worker.person.email, profile["sub"], balance["paid"], balance["held"], opening["opening"], entries
    )
    worker.stage.recorder.account(account)


def fsck(flags: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """The findings of `manage.py fsck`. Raises Unexpected."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
    ran = subprocess.run(
        [sys.executable, "manage.py", "--json", "fsck", "--deep", *flags],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    try:
        found: dict[str, Any] = json.loads(ran.stdout)
    except ValueError:
        raise Unexpected(f"fsck failed: {ran.stderr[-2000:]}") from None
    return {"status": ran.returncode, **found}
