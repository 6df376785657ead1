"""AI calls on the wire: connections are reused, and events leave at once."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

from dev.bench.measure import request
from dev.bench.parts.stub_upstream import HOLD, Stub, model_name
from handlers.core.site import Site
from outbound.ai.failure import UpstreamFailed
from outbound.ai.messages import MessagesUpstream
from outbound.ai.models import Model, Models, Timeouts
from store.credits.prices import Price
from store.wiring import Store
from tests.support.http.driver import Service

HELD, ENDED = model_name(4, HOLD), model_name(4, 0)
ALWAYS = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION: dict[str, Any] = {"max_tokens": 100, "messages": [{"role": "user", "content": "Why?"}]}


class LateStub(Stub):
    """The body of a stream ends when a test says so. `gone` is done when the connection is."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side hung up."""
        self.gone.set_result(None)

    def end(self) -> None:
        """Not behind the last event."""


class Upstream:
    """A listening stub, the connections to it, and its models."""

    def __init__(self) -> None:
        self.made: list[LateStub] = []

    async def listen(self) -> None:
        """Takes a free port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connected, "127.0.0.1", 0, family=socket.AF_INET)
        url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.client = MessagesUpstream("stub", url, "", Timeouts(), 10)
        self.held, self.ended = self._model(HELD), self._model(ENDED)

    def _connected(self) -> LateStub:
        self.made.append(LateStub())
        return self.made[-1]

    def _model(self, name: str) -> Model:
        return Model(name, name, self.client, name, 200_000, 8_192, ((ALWAYS, Price("1", 1, 1)),))

    async def close(self) -> None:
        """Ends both sides."""
        await self.client.close()
        self._server.close()
        await asyncio.gather(*(one.gone for one in self.made))


@pytest.fixture
def upstream(io_loop: IOLoop) -> Iterator[Upstream]:
    """A stub as the server of models."""
    made = Upstream()
    io_loop.run_sync(made.listen)
    yield made
    io_loop.run_sync(made.close)


@pytest.fixture
def site(memory_store: Store, base_url: str, upstream: Upstream) -> Site:
    """A model whose streams stop half-way."""
    return Site(memory_store, base_url, models=Models((upstream.held,)))


async def names_up_to_the_last(model: Model) -> list[str]:
    """The events of a stream. The reader stops at the last one."""
    names = []
    events = model.upstream.stream(model, QUESTION)
    async for event in events:
        names.append(event.name)
        if event.name == "message_stop":
            break
    await events.aclose()
    return names


@pytest.mark.gen_test
async def test_a_connection_is_reused_after_a_complete_stream(
    upstream: Upstream,
) -> None:
    for _ in range(3):
        assert (await names_up_to_the_last(upstream.ended))[-2:] == ["message_delta", "message_stop"]
        (ending,) = upstream.client._ending
        Stub.end(upstream.made[0])
        await ending
    assert len(upstream.made) == 1


@pytest.mark.gen_test
async def test_an_endless_body_delays_nobody(upstream: Upstream) -> None:
    await names_up_to_the_last(upstream.ended)
    await names_up_to_the_last(upstream.ended)
    assert len(upstream.made) == 2
    endings = list(upstream.client._ending)
    await upstream.client.close()
    await asyncio.wait(endings, timeout=10)
    assert all(ending.cancelled() for ending in endings)


@pytest.mark.gen_test
async def test_an_abandoned_stream_closes_its_connection(upstream: Upstream) -> None:
    for number in (1, 2):
        events = upstream.held.upstream.stream(upstream.held, QUESTION)
        await anext(events)
        await events.aclose()
        assert len(upstream.made) == number
    assert not upstream.client._ending


@pytest.mark.gen_test
async def test_events_are_sent_without_waiting_for_acknowledgement(service: Service, http_server: HTTPServer) -> None:
    """Nagle's algorithm is off during a stream."""
    await service.store.credits.grant(service.ada, 1_000_000)
    token = (await service.tokens(scope="credits:spend"))["access_token"]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(service.base_url.rpartition(":")[2]))
    body = json.dumps({**QUESTION, "model": HELD, "stream": True}).encode()
    writer.write(request("POST", "/api/v1/ai/messages", token, body))
    assert b"200" in await reader.readline()
    await reader.readuntil(b"content_block_delta")
    connections = getattr(http_server, "_open", None) or [one.stream for one in http_server._connections]
    sockets = [connection.socket for connection in connections]
    (ours,) = [one for one in sockets if one.getpeername() == writer.get_extra_info("sockname")]
    assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    writer.close()
    await writer.wait_closed()


@pytest.mark.gen_test
async def test_a_stream_is_cut_after_too_long_a_silence(upstream: Upstream) -> None:
    upstream.client.limits = Timeouts(between_events=0.05)
    events = upstream.held.upstream.stream(upstream.held, QUESTION)
    assert [(await anext(events)).name for _ in range(5)][2:] == ["ping", *["content_block_delta"] * 2]
    with pytest.raises(UpstreamFailed, match="between two events") as failed:
        await anext(events)
    assert failed.value.code == "upstream_timeout"
    await upstream.made[0].gone


@pytest.mark.gen_test
async def test_time_without_a_reader_is_not_silence(upstream: Upstream) -> None:
    upstream.client.limits = Timeouts(between_events=0.01)
    names = []
    async for event in upstream.ended.upstream.stream(upstream.ended, QUESTION):
        if event.name == "ping":
            await asyncio.sleep(0.05)  # an app that reads slowly
        names.append(event.name)
    assert names[-1] == "message_stop"
