"""A service with three models: the built-in one, one on a server of the Messages API, and one on an OpenAI server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from outbound.ai.echo import ECHO, echo_model
from outbound.ai.models import Models
from tests.support.http.openai_upstream import openai_models
from tests.support.http.upstream import ScriptedUpstream
from tests.support.store.ai_spender import MODEL, PRICE, models_on

CHAT, RESPONSES = "/api/v1/ai/v1/chat/completions", "/api/v1/ai/v1/responses"
CLAUDE, GPT = "on-messages", MODEL
"""The models on the scripted server, asked by the Messages API and by OpenAI's APIs."""
CACHED = replace(PRICE, cache_read=300_000)
"""Reads from a cache cost a tenth."""
__all__ = ["ECHO"]


@pytest.fixture
def site(io_loop: IOLoop, ai_site: Site, upstream: ScriptedUpstream) -> Iterator[Site]:
    """All three models; the last two have the same server."""
    claude = replace(models_on(upstream.url, price=replace(CACHED, web_search=0)).all()[0], model_id=CLAUDE)
    gpt = openai_models(upstream.url, price=CACHED).all()[0]
    made = replace(ai_site, models=Models((echo_model(), claude, gpt)))
    yield made
    io_loop.run_sync(made.models.close)


def chat(text: str = "Tell me the first sentence.", model: str = GPT, **changes: Any) -> dict[str, Any]:
    """A request of chat/completions."""
    return {"model": model, "messages": [{"role": "user", "content": text}], **changes}


def asks(text: str = "Tell me the first sentence.", model: str = GPT, **changes: Any) -> dict[str, Any]:
    """A request of responses."""
    return {"model": model, "input": text, **changes}


def chunks_in(body: bytes) -> list[dict[str, Any]]:
    """The chunks of a stream; asserts that it ends with its mark."""
    *blocks, last = body.decode().removesuffix("\n\n").split("\n\n")
    assert last == "data: [DONE]"
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def said_in(chunks: list[dict[str, Any]]) -> str:
    """The text of chunks."""
    return "".join(one["delta"].get("content") or "" for chunk in chunks for one in chunk["choices"])


def wrong(response: HTTPResponse, status: int) -> dict[str, Any]:
    """The error of an answer in OpenAI's envelope."""
    assert response.code == status, response.body
    body: dict[str, Any] = json.loads(response.body)
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"message", "type", "param", "code"}
    error: dict[str, Any] = body["error"]
    return error
