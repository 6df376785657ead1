"""The Model Context Protocol, by the official SDK: what a message means, and what the answer looks like.

All that this program uses of the SDK is here. Revisions up to 2025-11-25 begin with a handshake; from 2026-07-28 on,
each request says who asks. Both are served without sessions. Only a server with `--mcp on` imports this module."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, cast

import anyio
import mcp_types as types
import orjson
from mcp.server.caching import CacheHint
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
)
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from tornado.httputil import HTTPHeaders

from handlers.mcp.tool import Tool, ToolAnswer
from store.refused import Refused

VERSION_HEADER = "MCP-Protocol-Version"
WITHOUT_VERSION = "2025-03-26"
"""The revision of a request without the header (2025-11-25, transports)."""
LISTED_FOR = 300_000
"""Milliseconds for which a client may keep the list of tools."""
DOCUMENTS = "latchkey://documents/"
TEMPLATE = "latchkey://documents/{collection}/{id}"
INVALID_BODY = "The body must be one JSON-RPC request or notification."


class MessageHost(Protocol):
    """The HTTP request that carries a message."""

    async def admit(self) -> None:
        """Admits a message that calls no tool, once. Raises Refused, StoreUnavailable."""

    def tools(self) -> list[Tool]:
        """The tools that the app may have."""

    async def use(self, tool: Tool, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Carries out a call, and admits it. Raises Refused, StoreUnavailable."""

    def explain(self, refusal: Refused) -> str:
        """What a model reads about a refused call. Raises the refusal if the client can mend it by authorization."""


class McpReply(NamedTuple):
    """The answer to a message: the HTTP status and the JSON-RPC response, None for a notification."""

    status: int
    message: dict[str, Any] | None


@dataclass
class _Exchange:
    """One request and its response, without a way back to the client: a `DispatchContext` of the SDK."""

    transport: TransportContext
    request_id: types.RequestId
    message_metadata: MessageMetadata
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = field(default=False, init=False)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Nothing waits for notifications of the server."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Nothing reports progress."""


class McpServer:
    """Answers messages. `scopes`: what an assistant asks for first."""

    def __init__(self, name: str, base_url: str, version: str, scopes: tuple[str, ...]) -> None:
        self.scopes = scopes
        kept = CacheHint(ttl_ms=LISTED_FOR, scope="private")
        self._server: Server[Any] = Server(
            "latchkey",
            version=version,
            title=name,
            website_url=base_url,
            instructions=(
                f"Documents that you keep for a person at {name}, the person's credits, and AI models that they pay "
                "for. You see only your own documents, not those of other apps."
            ),
            cache_hints={"tools/list": kept, "resources/list": kept, "resources/templates/list": kept},
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
            on_list_resources=_list_resources,
            on_list_resource_templates=_list_templates,
            on_read_resource=_read_resource,
        )
        self._server.middleware.clear()  # the SDK's tracing; requests have ids of ours

    async def answer(self, host: MessageHost, decoded: Any, headers: HTTPHeaders) -> McpReply:
        """The answer to a message. Raises Refused and StoreUnavailable of the host; of the SDK nothing."""
        if not isinstance(decoded, dict) or not isinstance(decoded.get("method"), str):
            await host.admit()
            return _failed(None, types.INVALID_REQUEST, INVALID_BODY)  # a batch, or a response
        requested = headers.get(VERSION_HEADER)
        if "id" not in decoded:
            await host.admit()
            # No notification matters here: a client cancels a call by closing its connection.
            known = requested is None or requested in HANDSHAKE_PROTOCOL_VERSIONS
            unknown = None if known else unsupported_protocol_version_rejection(requested or "")
            return _rejected(None, unknown) if unknown else McpReply(202, None)
        try:
            request = types.JSONRPCRequest.model_validate(decoded)
        except ValidationError:
            await host.admit()
            return _failed(None, types.INVALID_REQUEST, INVALID_BODY)
        legacy = requested in (None, *HANDSHAKE_PROTOCOL_VERSIONS) and not _is_modern(request.params)
        if legacy:
            connection = Connection.from_envelope(requested or WITHOUT_VERSION, None, None)
        else:
            refused = _misrouted(decoded, headers)
            if refused is not None:
                await host.admit()
                return _rejected(request.id, refused)
            meta = (request.params or {})["_meta"]
            connection = Connection.from_envelope(
                meta[types.PROTOCOL_VERSION_META_KEY],
                meta.get(types.CLIENT_INFO_META_KEY),
                meta[types.CLIENT_CAPABILITIES_META_KEY],
            )
        if request.method not in ("tools/call", "resources/read"):
            await host.admit()
        exchange = _Exchange(
            TransportContext(kind="streamable-http", can_send_request=False),
            request.id,
            ServerMessageMetadata(request_context=host),
        )
        try:
            result = await serve_one(
                self._server, exchange, request.method, request.params, connection=connection, lifespan_state=None
            )
        except (MCPError, ValidationError) as error:
            await host.admit()
            data = modern_error_data(error)
            return _failed(request.id, data.code, data.message, data.data, legacy=legacy)
        return McpReply(200, {"jsonrpc": "2.0", "id": request.id, "result": result})


def _is_modern(params: Mapping[str, Any] | None) -> bool:
    """Whether the request itself says its revision, which only new ones do."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and types.PROTOCOL_VERSION_META_KEY in meta


def _misrouted(decoded: dict[str, Any], headers: HTTPHeaders) -> InboundLadderRejection | None:
    """Why the headers don't fit the body (2026-07-28, Server Validation); None if they do."""
    if duplicated := find_duplicated_routing_header(headers.get_all()):
        return InboundLadderRejection(types.HEADER_MISMATCH, f"The header {duplicated} is repeated.")
    found = classify_inbound_request(decoded, headers={name.lower(): value for name, value in headers.get_all()})
    return found if isinstance(found, InboundLadderRejection) else None


def _rejected(request_id: types.RequestId | None, refused: InboundLadderRejection) -> McpReply:
    return _failed(request_id, refused.code, refused.message, refused.data)


def _failed(
    request_id: types.RequestId | None, code: int, message: str, data: Any = None, *, legacy: bool = False
) -> McpReply:
    """A JSON-RPC error. Until 2025-11-25 an answered request was 200, whatever the answer."""
    status = 200 if legacy else ERROR_CODE_HTTP_STATUS.get(code, 200)
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return McpReply(status, {"jsonrpc": "2.0", "id": request_id, "error": error})


def _host(context: ServerRequestContext[Any, Any]) -> MessageHost:
    host: Any = context.request
    return cast(MessageHost, host)


async def _list_tools(
    context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[_described(tool) for tool in _host(context).tools()])


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.again or tool.reads,
            open_world_hint=tool.outside,
        ),
    )


def _found(host: MessageHost, name: str) -> Tool:
    for tool in host.tools():
        if tool.name == name:
            return tool
    raise MCPError(code=types.INVALID_PARAMS, message="There is no tool of this name for this app.")


async def _call_tool(
    context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    host = _host(context)
    tool = _found(host, params.name)
    try:
        answer = await host.use(tool, params.arguments or {})
    except Refused as refusal:
        # The specification wants these inside the result: a model reads them, and may do better.
        text = host.explain(refusal)
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
    text = answer.text or written(answer.value).decode()
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer.value)


async def _list_resources(
    context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    # Collections may be long, and only tools page through them.
    return types.ListResourcesResult(resources=[])


async def _list_templates(
    context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        name="document",
        title="Document",
        description="A JSON document that this app keeps for the person.",
        uri_template=TEMPLATE,
        mime_type="application/json",
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def _read_resource(
    context: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    host, uri = _host(context), str(params.uri)
    parts = uri.removeprefix(DOCUMENTS).split("/")
    if not uri.startswith(DOCUMENTS) or len(parts) != 2:
        raise MCPError(code=types.INVALID_PARAMS, message="There is no such resource.", data={"uri": uri[:300]})
    try:
        answer = await host.use(_found(host, "get_document"), {"collection": parts[0], "id": parts[1]})
    except Refused as refusal:
        raise MCPError(code=types.INVALID_PARAMS, message=host.explain(refusal), data={"uri": uri[:300]}) from None
    text = written(answer.value["content"]).decode()
    contents = types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
    return types.ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")


def written(value: Any) -> bytes:
    """JSON in UTF-8."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a whole number of more than 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
