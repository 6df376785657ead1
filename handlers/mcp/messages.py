"""POST /mcp: one message of the Model Context Protocol (Streamable HTTP), and what it asks for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import orjson
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError

from handlers.core.api import ApiHandler
from handlers.core.auth.challenges import CHALLENGED, challenges
from handlers.core.base import RESOURCE_METADATA
from handlers.core.errors import CATALOGUE
from handlers.core.params import JSON, decode_json, media_type
from handlers.core.reading import LONG_BODY
from handlers.mcp.arguments import ToolArguments
from handlers.mcp.document_tools import TOOLS as DOCUMENTS
from handlers.mcp.model_tools import TOOLS as MODELS
from handlers.mcp.person_tools import TOOLS as PERSON
from handlers.mcp.tool import Tool, ToolAnswer, ToolCall
from store.crypto.dpop import ALGORITHMS
from store.names import SCOPES
from store.oauth.resources import MCP, MCP_PATH
from store.refused import Refused
from store.results import Caller, Window

TOOLS = (*PERSON, *DOCUMENTS, *MODELS)
ROOM = 2**16
"""Bytes of a body in addition to a document, or the most for other messages."""
BREATH = 15.0
"""Seconds without an answer after which a proxy or a client gets a sign of life, and again."""
EVENTS = "text/event-stream"
UNREADABLE = -32700
"""The code of JSON-RPC for what is no JSON."""
MOST_ID = 256
"""The longest id and name of a method, in characters."""


class McpHandler(ApiHandler):
    """Answers each message by itself: there are no sessions, and the server begins nothing."""

    allowed_headers = f"{ApiHandler.allowed_headers}, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID"
    caller_here: Caller
    tool: Tool | None = None
    admitted: Window | None = None
    message_id: Any = None
    wanted = ""
    """The scopes of a token with which the call would succeed, after it was refused for its scope."""
    hang_up: Callable[[], None] | None = None

    @property
    def max_body(self) -> int:
        """A document in a message."""
        return self.store.documents.quotas.document_bytes + ROOM

    @property
    def needed(self) -> str:
        """The scopes that the tool needs; without one, any scope will do."""
        return self.tool.needed if self.tool else self.policy.scope

    def prepare(self) -> None:
        """There is nothing here if the MCP server is off. Scripts of other sites are refused, against DNS rebinding
        (Streamable HTTP, Security)."""
        if self.site.mcp is None:
            raise HTTPError(404)
        super().prepare()
        origin = self.request.headers.get("Origin")
        if self.request.method != "OPTIONS" and origin not in (None, self.site.base_url, *self.site.mcp_origins):
            raise Refused("access_denied", "Scripts of this origin may not use the MCP server.")

    async def post(self) -> None:
        """Answers with the response, in JSON, or in an event stream if it takes long; a notification with 202."""
        caller = await self.caller()
        self.caller_here = caller._replace(resource=MCP)
        if media_type(self.request) != JSON:
            raise Refused("unsupported_media_type", "Send application/json.")
        try:
            decoded, _ = await self.read_body(caller.user, partial(read_message, self.request.body), self.counted)
        except Refused as refusal:
            if refusal.code != "invalid_request":
                raise
            await self.admit()
            error = {"code": UNREADABLE, "message": refusal.description}
            self.write_message(400, {"jsonrpc": "2.0", "id": None, "error": error})
            return
        self.request.body = b""
        self.message_id = decoded.get("id") if isinstance(decoded, dict) else None
        status, message = await self.site.mcp.answer(self, decoded, self.request.headers)
        if message is None:
            self.set_status(status)
            self.finish()
        else:
            self.write_message(status, message)

    async def admit(self) -> None:
        """Admits the message in the window of the MCP server, once."""
        if self.admitted is None:
            await self.counted()

    async def counted(self) -> Window:
        """As `admit`, with the figures of the window. The call of a tool uses up the DPoP proof itself."""
        caller = self.caller_here
        if len(self.request.body) or self.tool:
            caller = caller._replace(proof=caller.proof.partition(" ")[0])
        self.admitted = await self.store.mcp_messages.admit(caller, self.policy.scope)
        self.write_window(self.admitted)
        return self.admitted

    def tools(self) -> list[Tool]:
        """The tools whose scope the app registered, also where the token lacks it: the app may ask for more."""
        models = bool(self.site.models.all())
        return [
            tool for tool in TOOLS if self.caller_here.may(tool.needed) and (models or tool.scope != "credits:spend")
        ]

    async def use(self, tool: Tool, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Carries out a call. Raises Refused, StoreUnavailable."""
        self.tool = tool
        try:
            return await tool.run(ToolCall(self, self.caller_here, ToolArguments(arguments, tool.takes), tool.needed))
        except Refused as refusal:
            if refusal.code == "insufficient_scope":
                self.wanted = await self.with_held(tool.scope)
            # Only a caller with a live token learns what is wrong, and each mistake counts.
            if refusal.window is None and refusal.code not in CHALLENGED:
                await self.admit()
            raise

    async def with_held(self, scope: str) -> str:
        """A scope that the token lacks, and those that it has: some clients ask for what a challenge names and nothing
        else, and would lose the others. The only call of the store that is not a tool's own."""
        presented = self.request.headers.get("Authorization", "").partition(" ")[2].strip()
        assert self.calling is not None
        found = await self.store.introspection.by_app(self.calling, presented, self.site.base_url)
        held = {scope, *(found.scope.split() if found else ())}
        return " ".join(name for name in SCOPES if name in held)

    def explain(self, refusal: Refused) -> str:
        """What a model reads about a refused call. Raises the refusal if authorization mends it, or if the app is
        paused, as for every other message."""
        if refusal.code in CHALLENGED or refusal.code == "app_paused":
            raise refusal
        self.log_refusal(refusal)
        self.site.measures.refused(self.policy.route, refusal.code)
        if refusal.window:
            self.write_window(refusal.window)
        text = str(refusal.description or CATALOGUE[refusal.code].description)
        return f"{text} Try again in {refusal.retry_after} s." if refusal.retry_after else text

    def take_long(self, hang_up: Callable[[], None], stop: Callable[[], None]) -> None:
        """From here on the call may take minutes."""
        self.step_aside()
        self.hang_up, self.stop = hang_up, stop
        self.site.endings.add(stop)
        if self.gone:
            hang_up()
        if EVENTS in self.request.headers.get("Accept", ""):
            self.breathing = asyncio.ensure_future(self.breathe())

    stop: Callable[[], None] | None = None
    breathing: asyncio.Future[None] | None = None

    async def breathe(self) -> None:
        """Turns the answer into an event stream, with a comment every few seconds."""
        with suppress(StreamClosedError):
            while True:
                await asyncio.sleep(BREATH)
                if not self.head_sent:
                    self.set_header("Content-Type", EVENTS)
                    self.set_header("X-Accel-Buffering", "no")
                self.write(b": in progress\n\n")
                await self.flush()

    def on_connection_close(self) -> None:
        """Called when the client hangs up."""
        super().on_connection_close()
        if self.hang_up is not None:
            self.hang_up()

    def on_finish(self) -> None:
        """Nothing waits any more."""
        if self.breathing is not None:
            self.breathing.cancel()
        if self.stop is not None:
            self.site.endings.discard(self.stop)
        super().on_finish()

    def write_message(self, status: int, message: dict[str, Any]) -> None:
        """Ends the answer with a response."""
        body = orjson.dumps(message)
        if self.head_sent:
            self.finish(b"event: message\ndata: " + body + b"\n\n")
            return
        self.set_status(status)
        self.set_header("Content-Type", JSON)
        self.finish(body)

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Also in the middle of an event stream."""
        if self.head_sent and not self.finished:
            error = {"code": -32603, "message": "Something went wrong on our side."}
            return self.write_message(500, {"jsonrpc": "2.0", "id": self.message_id, "error": error})
        super().send_error(status_code, **kwargs)

    def error_of(self, refusal: Refused) -> dict[str, Any]:
        """A JSON-RPC error with the HTTP status as its code, and the error of all other endpoints as its data."""
        entry = CATALOGUE[refusal.code]
        message = str(refusal.description or entry.description)
        error = {"code": entry.status, "message": message, "data": self.error_body(refusal, self.request_id)}
        return {"jsonrpc": "2.0", "id": self.message_id, "error": error}

    def write_refusal(self, refusal: Refused) -> None:
        """Each challenge names the scopes to ask for: those of the tool, or those to begin with (MCP, Scope Selection
        Strategy)."""
        if refusal.code in CHALLENGED:
            scheme = self.request.headers.get("Authorization", "").partition(" ")[0].lower()
            algorithms = self.calling.rules.among(ALGORITHMS) if self.calling else ALGORITHMS
            metadata = f"{self.site.base_url}{RESOURCE_METADATA}{MCP_PATH}"
            scope = self.wanted or " ".join(self.site.mcp.scopes)
            header = challenges(refusal.code, scheme, scope, metadata, algorithms, hint=True)
            self.set_header("WWW-Authenticate", header)
        self.set_header("Content-Type", JSON)
        self.finish(orjson.dumps(self.error_of(refusal)))


def read_message(body: bytes) -> Any:
    """The JSON of a body. What is no id or method, or too long for one, becomes null: the protocol refuses that. Raises
    Refused("invalid_request"), also if more than the arguments of a tool is long: reading that takes the SDK long."""
    decoded = decode_json(body)
    if not isinstance(decoded, dict):
        return decoded
    if "id" in decoded and not _is_id(decoded["id"]):
        decoded["id"] = None
    method, params = decoded.get("method"), decoded.get("params")
    if isinstance(method, str) and len(method) > MOST_ID:
        decoded["method"] = None
    if len(body) > LONG_BODY:
        rest = {name: value for name, value in decoded.items() if name != "params"}
        if method == "tools/call" and isinstance(params, dict):
            params = {name: value for name, value in params.items() if name != "arguments"}
        if len(json.dumps([rest, params])) > LONG_BODY:
            raise Refused("invalid_request", f"Only a tool's arguments may be longer than {LONG_BODY} bytes.")
    return decoded


def _is_id(value: object) -> bool:
    """Whether this is an id: a short text, or a whole number that every program reads alike."""
    if isinstance(value, str):
        return len(value) <= MOST_ID
    return type(value) is int and abs(value) < 2**53
