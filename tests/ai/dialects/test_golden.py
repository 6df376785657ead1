"""Requests and answers are translated as the golden files have them, and the SDKs' own types accept the answers."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from tests.ai.dialects.pairs import FILES, given, translated

each = pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])


@cache
def answers() -> dict[str, tuple[Any, Any]]:
    """The types of a whole answer and of an event, by the pair; `requests` has those of requests. Only the process that
    runs the tests loads the SDKs, which takes two seconds."""
    import anthropic.types
    import openai.types.chat
    import openai.types.responses

    return {
        "chat-messages": (openai.types.chat.ChatCompletion, openai.types.chat.ChatCompletionChunk),
        "responses-messages": (openai.types.responses.Response, openai.types.responses.ResponseStreamEvent),
        "messages-chat": (anthropic.types.Message, anthropic.types.RawMessageStreamEvent),
    }


@cache
def requests() -> dict[str, Any]:
    import anthropic.types
    import openai.types.chat

    return {
        "chat-messages": anthropic.types.message_create_params.MessageCreateParamsBase,
        "responses-messages": anthropic.types.message_create_params.MessageCreateParamsBase,
        "messages-chat": openai.types.chat.completion_create_params.CompletionCreateParamsBase,
    }


@each
def test_a_pair_is_translated_as_its_golden_file_has_it(path: Path) -> None:
    """`LATCHKEY_FROZEN=accept` writes the files."""
    case = given(path)
    found = translated(case)
    if os.environ.get("LATCHKEY_FROZEN") == "accept":
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    assert found == given(path)


@each
def test_the_sdks_types_accept_the_answers(path: Path) -> None:
    case = given(path)
    whole, event = answers()[case["pair"]]
    checked = TypeAdapter(whole).validate_python(case["answer_out"])
    assert isinstance(checked, BaseModel)
    for sent in case["stream_out"]:
        TypeAdapter(event).validate_python(sent)


@each
def test_the_sdks_types_accept_the_requests(path: Path) -> None:
    case = given(path)
    kind = requests()[case["pair"]]
    # The SDK no longer names these two, which older models and other servers of the dialect take.
    assert case["request_out"].keys() <= {*kind.__annotations__, "temperature", "top_p"}
    TypeAdapter(kind).validate_python({"model": "vendor", **case["request_out"]})
