"""Apps at work while something happens to the store: each rotates its refresh token and writes documents repeatedly,
and knows which calls were acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from store import keys
from store.accounts import people
from store.apps.registration import Registration
from store.crypto.seal import Token, TokenKind, new_user_id
from tests.support.http.driver import App, Service, json_of, send

SCOPES = ("profile", "data:read", "data:write")
SHARD = "abc"
WORKERS = 8
PACE = 0.2
"""Seconds between two rounds of one app, which has rate limits."""


@dataclass
class Worker:
    """One app of one person. `rotated` counts the acknowledged rotations; `written` has the numbers of the acknowledged
    documents, `tried` the last one sent, `etags` the returned ETags. `strange` are the rotations whose access token the
    store did not know at a write."""

    app: App
    user: str
    tokens: dict[str, Any]
    service: Service
    rotated: int = 0
    tried: int = 0
    written: set[int] = field(default_factory=set)
    etags: dict[int, int] = field(default_factory=dict)
    strange: set[int] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)

    async def round(self) -> None:
        """One rotation and one write."""
        response = await self.app.refresh(self.tokens["refresh_token"])
        if self._acknowledged(response):
            self.tokens = json_of(response)
            self.rotated += 1
        self.tried += 1
        response = await send(
            f"{self.service.base_url}/api/v1/data/notes/{self.tried}",
            "PUT",
            body="{}",
            headers={"Authorization": f"Bearer {self.tokens['access_token']}", "Content-Type": "application/json"},
        )
        if response.code == 401:
            self.strange.add(self.rotated)
        elif self._acknowledged(response):
            self.written.add(self.tried)
            self.etags[self.tried] = int(response.headers["ETag"].strip('"'))

    def _acknowledged(self, response: HTTPResponse) -> bool:
        """Whether a call was acknowledged; the only other answer allowed is 503 with Retry-After."""
        self.statuses[response.code] += 1
        if response.code == 503:
            assert int(response.headers["Retry-After"]) > 0
            return False
        assert response.code in (200, 201), (response.code, response.body)
        return True

    @property
    def token(self) -> Token:
        """The app's refresh token, opened."""
        token = self.service.store.sealer.open(TokenKind.REFRESH, self.tokens["refresh_token"])
        assert token is not None
        return token

    async def documents(self) -> set[int]:
        """The numbers of the documents in the store."""
        docs = keys.hosted(self.user, self.app.client_id)["docs"]
        found: Any = await self.service.store.client.hkeys(docs)
        return {int(name.decode().rpartition("/")[2]) for name in found}

    async def check_exactly_once(self) -> None:
        """Checks that each acknowledged call happened once, and every other one not at all."""
        row = keys.token(self.user, self.app.client_id, self.token.id, 0)["family"]
        generation = await self.service.store.client.hget(row, "generation")
        assert generation == str(self.rotated).encode() == str(self.token.generation).encode()
        assert await self.documents() == self.written
        # A write that ran twice would have left a newer ETag than the acknowledged one.
        meta: Any = await self.service.store.client.hgetall(keys.hosted(self.user, self.app.client_id)["meta"])
        kept = {int(name.rpartition(b"/")[2]): int(row.split()[0]) for name, row in meta.items()}
        assert kept == self.etags
        assert not self.strange


async def employ(service: Service, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> list[Worker]:
    """Some workers for people of one shard; `fields` are those of their app's registration."""
    monkeypatch.setattr(people, "new_user_id", lambda: SHARD + new_user_id()[3:])
    app = await service.add_app("worker", scopes=SCOPES, **fields)
    registration = await service.store.apps.find("worker")
    assert isinstance(registration, Registration)
    made = []
    for number in range(WORKERS):
        user = await service.add_person(f"worker{number}@example.com")
        minted = await service.store.tokens.mint(user, registration, SCOPES)
        tokens = {"access_token": minted.access_token, "refresh_token": minted.refresh_token}
        made.append(Worker(app, user, tokens, service))
    return made


@contextlib.asynccontextmanager
async def at_work(workers: Sequence[Worker]) -> AsyncIterator[None]:
    """The workers run during the block; at its end each finishes its round. Raises what a worker found wrong."""
    done = asyncio.Event()

    async def work(worker: Worker) -> None:
        while not done.is_set():
            await worker.round()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), PACE)

    tasks = [asyncio.ensure_future(work(worker)) for worker in workers]
    try:
        yield
    finally:
        done.set()
        await asyncio.gather(*tasks)


async def until_each(workers: Sequence[Worker], rounds: int) -> None:
    """Waits until each worker has this many more acknowledged rotations and writes; fails after 20 s."""
    goals = [(worker, worker.rotated + rounds, len(worker.written) + rounds) for worker in workers]
    async with asyncio.timeout(20):
        while any(worker.rotated < rotated or len(worker.written) < written for worker, rotated, written in goals):
            await asyncio.sleep(0.01)


def acknowledged(workers: Sequence[Worker]) -> list[tuple[set[int], int]]:
    """The acknowledged calls of each worker so far: its documents, and the number of rotations."""
    return [(set(worker.written), worker.rotated) for worker in workers]


async def check_survival(
    workers: Sequence[Worker], safe: list[tuple[set[int], int]], open_to_loss: list[tuple[set[int], int]]
) -> None:
    """Checks that everything `safe` is there. Of the rest, only calls acknowledged between the replica's last
    confirmation and its promotion may be missing: documents, and rotations with their access tokens."""
    for worker, (sure, sure_rotations), (unsure, unsure_rotations) in zip(workers, safe, open_to_loss, strict=True):
        there = await worker.documents()
        assert sure <= there <= set(range(1, worker.tried + 1))
        assert worker.written - (unsure - sure) <= there
        assert worker.strange <= set(range(sure_rotations + 1, unsure_rotations + 1))
        assert worker.rotated > sure_rotations
