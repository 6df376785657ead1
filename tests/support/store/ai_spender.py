"""An app that makes AI calls at a person's expense over HTTP, and the expected cost of those calls."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.application import Latchkey
from handlers.core.site import Site
from outbound.ai.config import load_models
from outbound.ai.messages import MessagesUpstream
from outbound.ai.models import Model, Models, Timeouts
from store import keys
from store.accounts.signin.sessions import Session
from store.credits.credits import Account
from store.credits.prices import Price
from tests.support.http.driver import EMAIL, PASSWORD, App, Service, json_of, send
from tests.support.http.upstream import KEY, VENDOR_MODEL, ScriptedUpstream
from tests.support.store.world import VISITOR

MODEL = "scripted"
PRICE = Price("v3", 3_141_593, 15_926_535)
"""Micro-dollars per million tokens; few tokens never make a whole micro-dollar."""
PATIENT = Timeouts(connect=10, first_byte=20, between_events=20, total=25)
SHORT = Timeouts(connect=2, first_byte=0.4, between_events=0.4, total=0.9)
PLENTY = 1_000_000
NATIVE, SDK = "/api/v1/ai/messages", "/api/v1/ai/v1/messages"
both_ways = pytest.mark.parametrize("stream", [pytest.param(False, id="whole"), pytest.param(True, id="streamed")])
"""Runs a test with a whole reply and with a stream."""


def models_on(url: str, limits: Timeouts = PATIENT, price: Price = PRICE, *, max_output: int = 4096) -> Models:
    """One model on a scripted upstream."""
    upstream = MessagesUpstream("scripted", url, KEY, limits, 100)
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    return Models((Model(MODEL, "Scripted", upstream, VENDOR_MODEL, 200_000, max_output, ((begins, price),)),))


def hurry(site: Site, limits: Timeouts = SHORT) -> None:
    """Shortens the upstream's timeouts."""
    for model in site.models.all():
        model.upstream.limits = limits


def pass_traces_on(site: Site, upstream: ScriptedUpstream, folder: Path) -> None:
    """Sends traces to the upstream of the model. `folder` gets a file of models that says so."""
    (model,) = site.models.all()
    file = folder / "models.toml"
    file.write_text(f"""[[upstream]]
name = "traced"
url = "{upstream.url}"
trace = true
models = [{{ id = "traced", prices = [{{ version = "1", input = 1, output = 1 }}] }}]
""")
    site.models._models[MODEL] = replace(model, upstream=load_models(file).all()[0].upstream)


def cost(input_tokens: int, output_tokens: int, price: Price = PRICE) -> int:
    """Whole micro-dollars, rounded up once."""
    return -(-(input_tokens * price.input + output_tokens * price.output) // 10**6)


def question(text: str = "Tell me the first sentence.", **changes: Any) -> dict[str, Any]:
    """A request; a change to None leaves a field out."""
    request = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": text}], **changes}
    return {name: value for name, value in request.items() if value is not None}


@dataclass
class Spender:
    """An app with an access token of a person who has credits."""

    service: Service
    app: App
    user: str
    token: str
    base_url: str

    @classmethod
    async def make(cls, service: Service, *scopes: str, amount: int = PLENTY, app: App | None = None) -> Self:
        """Ada's token for an app, with credits:spend and credits:read or the given scopes; gives her `amount` more
        credits."""
        app = app or service.web
        token = await mint(service, app, *scopes)
        if amount:
            await service.store.credits.grant(service.ada, amount)
        return cls(service, app, service.ada, token, service.base_url)

    async def ask(
        self, body: dict[str, Any] | bytes | None = None, path: str = NATIVE, *, key: str = "", **headers: str
    ) -> HTTPResponse:
        """One call; `key` is its Idempotency-Key. Underscores in header names become hyphens."""
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        sent |= {"Idempotency-Key": key} if key else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else json.dumps(question() if body is None else body)
        return await send(self.base_url + path, "POST", body=content, headers=sent)

    async def get(self, path: str, **headers: str) -> HTTPResponse:
        """A GET below /api/v1."""
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        return await send(f"{self.base_url}/api/v1{path}", headers=sent)

    async def account(self) -> Account:
        """The person's credits."""
        return await self.service.store.credits.show(self.user)

    async def charged(self) -> list[int]:
        """The amount of each charge in the ledger, oldest first. Also asserts that nothing is held and that the balance
        is the sum of grants less the charges."""
        account = await self.account()
        assert (account.held, account.holds) == (0, ())
        assert account.paid == account.opening + sum(entry.amount for entry in account.entries)
        return [-entry.amount for entry in reversed(account.entries) if entry.kind == "charge"]

    async def fresh_window(self) -> None:
        """Lets the person make twenty more calls."""
        await self.service.store.client.delete(keys.limit(self.user, "ai"))


async def mint(service: Service, app: App, *scopes: str) -> str:
    """An access token of Ada's, from the operator."""
    registration = await service.store.apps.find(app.client_id)
    assert registration is not None
    tokens = await service.store.tokens.mint(service.ada, registration, scopes or ("credits:spend", "credits:read"))
    return tokens.access_token


async def session_of(service: Service) -> Session:
    """Ada, signed in."""
    credentials = await service.store.people.verify(EMAIL, PASSWORD)
    assert credentials is not None
    session = service.store.sessions.open((await service.store.sessions.start(credentials, VISITOR)).cookie)
    assert session is not None
    return session


def events_in(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream; asserts that each has its own type as name."""
    events = []
    for block in body.decode().removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


def text_of(events: list[dict[str, Any]]) -> str:
    """The text of a stream."""
    return "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta")


def assert_error(response: HTTPResponse, status: int, code: str) -> str:
    """Checks the catalogue's error in the API's form; returns its text for people."""
    assert (response.code, json_of(response)["error"]) == (status, code), response.body
    description: str = json_of(response)["error_description"]
    return description


async def at_rest(app: Latchkey) -> None:
    """Waits until no request is in progress."""
    while app.in_flight or app.site.tasks:
        await asyncio.sleep(0.001)


async def noticed(app: Latchkey) -> None:
    """Waits until the server knows that every app with a call in progress has hung up."""
    while not all(stop.__self__._gone for stop in app.site.endings):  # type: ignore[attr-defined]  # methods of calls
        await asyncio.sleep(0.001)


async def reached(upstream: ScriptedUpstream, number: int = 1) -> None:
    """Waits until this many calls have reached the upstream."""
    while len(upstream.calls) < number:
        await asyncio.sleep(0.001)


class OpenStream:
    """A call whose answer the test reads slowly, over its own socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._buffer = b""
        self.status = 0
        self.headers: dict[str, str] = {}

    @classmethod
    async def open(
        cls, spender: Spender, body: dict[str, Any] | None = None, *, key: str = "", buffer: int = 0, path: str = NATIVE
    ) -> Self:
        """Sends the call. `buffer` is the size of the socket's receive buffer in bytes, if it should be small."""
        parts = urlsplit(spender.base_url)
        raw = socket.socket()
        raw.setblocking(False)
        if buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", parts.port))
        reader, writer = await asyncio.open_connection(sock=raw, limit=buffer or 2**16)
        content = json.dumps(body or question(stream=True)).encode()
        head = [f"POST {path} HTTP/1.1", f"Host: {parts.netloc}", f"Authorization: Bearer {spender.token}"]
        head += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        head += [f"Idempotency-Key: {key}"] if key else []
        writer.write("\r\n".join([*head, "", ""]).encode() + content)
        return cls(reader, writer)

    async def begin(self) -> Self:
        """Reads the head of the answer."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(head[0].split(" ")[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        return self

    async def event(self) -> dict[str, Any] | None:
        """The next event; None at the end. Raises asyncio.IncompleteReadError if the answer is cut off."""
        while b"\n\n" not in self._buffer:
            chunk = await self._chunk()
            if not chunk:
                return None
            self._buffer += chunk
        block, _, self._buffer = self._buffer.partition(b"\n\n")
        return events_in(block + b"\n\n")[0]

    async def read(self, number: int) -> list[dict[str, Any]]:
        """The next events, this many of them."""
        events = [await self.event() for _ in range(number)]
        return [event for event in events if event is not None]

    async def rest(self) -> list[dict[str, Any]]:
        """All events to the end."""
        events = []
        while event := await self.event():
            events.append(event)
        return events

    async def _chunk(self) -> bytes:
        size = int((await self._reader.readuntil(b"\r\n"))[:-2], 16)
        chunk = await self._reader.readexactly(size + 2)
        return chunk[:-2]

    def cut(self, *, reset: bool = False) -> None:
        """Closes the connection, with a reset if requested."""
        if reset:
            raw = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.close()


def bound(request: dict[str, Any]) -> int:
    """The most input tokens that a request may cost: its bytes, and the server's own overhead."""
    kept = {name: value for name, value in request.items() if name not in ("model", "max_tokens", "stream")}
    return len(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()) + 1024
