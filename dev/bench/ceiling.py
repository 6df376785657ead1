"""The ceilings: a server that does nothing, on the product's HTTP server, event loop and store client.

    python -m dev.bench.ceiling --redis-url URL [--port N] [--http FRONT] [--model URL]

`/bare` answers with 27 bytes; `/evalsha` first calls a script that does nothing; `/signed` also signs as many claims as
an ID token has, with ES256. `/relay` passes its body on to the model's server with aiohttp's client, as AI calls are
passed on, and answers with what comes back; it calls no store. Handlers and routing are plain Tornado; the product
skips part of that (`handlers/core/base.py`), so this is no absolute upper bound.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from aiohttp import ClientSession
from redis.asyncio import Redis
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from dev.bench.measure import HOST
from runtime import event_loop, garbage
from runtime.http.server import HttpServer
from store.crypto.jose import jws
from store.crypto.jose.algorithms import ES256
from store.crypto.jose.private import PrivateKey
from store.engine.connect import connect

ANSWER = b'{"what": "a bare handler"}\n'
SCRIPT = "return {'ok'}"
CLAIMS = {"iss": "http://localhost:8080", "what": "a bare handler", "others": "x" * 500}
"""As long as the claims of an ID token with the scope `profile`."""


class BareHandler(RequestHandler):
    """Writes the answer."""

    def compute_etag(self) -> None:
        """No ETag: the product has none either, and computing one costs a sixth of the time."""
        return None

    def get(self) -> None:
        """Answers at once."""
        self.set_header("Content-Type", "application/json")
        self.finish(ANSWER)


class EvalshaHandler(BareHandler):
    """Calls the store first."""

    def initialize(self, client: Redis, sha: str) -> None:
        """Takes the client and the script."""
        self._client = client
        self._sha = sha

    async def get(self) -> None:  # type: ignore[override]  # a coroutine in place of a plain method
        """Answers after one round trip."""
        await self._client.evalsha(self._sha, 1, "{bench}:none", "an argument")
        super().get()


class SignedHandler(EvalshaHandler):
    """Calls the store, and signs."""

    def initialize(self, client: Redis, sha: str, key: PrivateKey) -> None:  # type: ignore[override]  # more arguments
        """Takes the client, the script and the key."""
        super().initialize(client, sha)
        self._key = key

    async def get(self) -> None:  # type: ignore[override]  # a coroutine in place of a plain method
        """Answers after one round trip and one signature."""
        await self._client.evalsha(self._sha, 1, "{bench}:none", "an argument")
        self.finish(jws.sign(CLAIMS, self._key, "JWT"))


class RelayHandler(BareHandler):
    """Passes a call on to a model's server."""

    def initialize(self, session: ClientSession, url: str) -> None:
        """Takes the client and the address of calls."""
        self._session = session
        self._url = url

    async def post(self) -> None:
        """Answers with the answer of the model's server."""
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._url, data=self.request.body, headers=headers) as answer:
            body = await answer.read()
        self.set_header("Content-Type", "application/json")
        self.finish(body)


async def serve(store_url: str, port: int, http: str, model: str) -> None:
    """Listens until it is ended."""
    client = await connect(store_url)
    sha = await client.script_load(SCRIPT)
    facts: dict[str, Any] = {"client": client, "sha": sha}
    signing = {**facts, "key": PrivateKey.generate(ES256)}
    relay = {"session": ClientSession(), "url": f"{model}/v1/messages"}
    application = Application(
        [
            ("/bare", BareHandler),
            ("/evalsha", EvalshaHandler, facts),
            ("/signed", SignedHandler, signing),
            ("/relay", RelayHandler, relay),
        ]
    )
    make_server(application, http).listen(port, HOST)
    garbage.settle()
    await asyncio.Event().wait()


def make_server(application: Application, http: str) -> HTTPServer:
    """The HTTP server of the product, or Tornado's own."""
    return HTTPServer(application) if http == "tornado" else HttpServer(application)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.ceiling", allow_abbrev=False)
    parser.add_argument("--redis-url", required=True)
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--http", default="")
    parser.add_argument("--model", default="", metavar="URL", help="the server of the Messages API for /relay")
    return parser.parse_args(argv)


if __name__ == "__main__":
    options = parse(sys.argv[1:])
    event_loop.run(serve(options.redis_url, options.port, options.http, options.model))
