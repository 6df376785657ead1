"""The schemas of calls of AI models, for the OpenAPI document (JSON Schema 2020-12)."""

from __future__ import annotations

from handlers.ai.errors import OTHERS, TYPES
from handlers.ai.request import MOST_TOKENS, ROLES
from handlers.openapi.shapes import COUNT, FILLED, FLAG, MONEY, TEXT, TIME, Schema, listed, read, ref, written
from outbound.ai.dialects.messages_same import MAX_SEARCHES
from outbound.ai.dialects.same import MOST_CHOICES
from store.credits.credits import CURRENCY, SCALE

MONEY_IS = {"currency": {"const": CURRENCY}, "scale": {"const": SCALE}}
PRICES = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "cacheWrite1h"), COUNT)
_LEFT = {"description": "the remaining credits, if the token has credits:read"}
CREDITS = written({"charged": COUNT}, {"remaining": {**MONEY, **_LEFT}})
_BLOCK = read({"type": TEXT}, {"text": TEXT})
_CONTENT: Schema = {"oneOf": [TEXT, {"type": "array", "minItems": 1, "items": ref("AIBlock")}]}
_USES = {"type": "integer", "minimum": 1, "maximum": MAX_SEARCHES}
_PER_CALL = {"webSearch": {**COUNT, "description": "for each search that the model's server makes, if it may"}}
_MODEL_OPTIONS = {
    "system": ref("AIContent"),
    "tools": listed(read({"name": TEXT}, {"input_schema": {"type": "object"}, "type": TEXT, "max_uses": _USES})),
    **{name: {"type": "object"} for name in ("tool_choice", "thinking", "metadata", "output_config")},
    **{name: {"type": "object"} for name in ("cache_control", "context_management")},
    **{"service_tier": {"enum": ["auto", "standard_only"]}, "speed": {"const": "standard"}},
    **{"inference_geo": {"const": "global"}, "container": {"type": "null"}, "mcp_servers": {"maxItems": 0}},
    "temperature": {"type": "number"},
    "top_p": {"type": "number"},
    "top_k": {"type": "integer"},
    "stop_sequences": listed(TEXT),
}
_HOW: Schema = {"max_tokens": {"type": "integer", "minimum": 1, "maximum": MOST_TOKENS}, "stream": FLAG}
_MESSAGES = {"type": "array", "minItems": 1, "items": ref("AITurn")}
_TOOLS = listed(read({"type": TEXT}, {"function": {"type": "object"}, "name": TEXT}))
_SHARED = {
    **{"stream": FLAG, "tools": _TOOLS, "parallel_tool_calls": FLAG, "store": FLAG, "user": TEXT},
    **{"temperature": {"type": "number"}, "top_p": {"type": "number"}, "service_tier": {"enum": ["auto", "default"]}},
    "tool_choice": {"type": ["string", "object"]},
    "metadata": {"type": "object"},
}
_LIMIT = {"type": "integer", "minimum": 1}

AI_SCHEMAS: dict[str, Schema] = {
    "AIContent": _CONTENT,
    "AIBlock": _BLOCK,
    "AITurn": read({"role": {"enum": list(ROLES)}, "content": ref("AIContent")}),
    "AIRequest": read(
        {"model": FILLED, "max_tokens": _HOW["max_tokens"], "messages": _MESSAGES},
        {**_HOW, **_MODEL_OPTIONS},
    ),
    "AICountRequest": read({"model": FILLED, "messages": _MESSAGES}, {**_HOW, **_MODEL_OPTIONS}),
    "AIReply": read(
        {
            **{"id": TEXT, "type": {"const": "message"}, "role": {"const": "assistant"}, "model": TEXT},
            "content": listed({"type": "object"}),
            "stop_reason": {"type": ["string", "null"]},
            "usage": {"description": "as the model's server reports it"},
            "credits": CREDITS,
        },
        {"stop_sequence": {"type": ["string", "null"]}},
    ),
    "AICount": written({"input_tokens": COUNT}),
    "AIModels": written(
        {
            "models": listed(
                written(
                    {
                        **{"id": FILLED, "displayName": TEXT, "maxInputTokens": COUNT, "maxOutputTokens": COUNT},
                        "pricePerMillionTokens": written({"version": TEXT, **PRICES, **MONEY_IS}),
                    },
                    {"pricePerCall": written(_PER_CALL)},
                )
            )
        }
    ),
    "SdkModel": written(
        {
            **{"type": {"const": "model"}, "id": FILLED, "display_name": TEXT, "created_at": TIME},
            **{"object": {"const": "model"}, "owned_by": TEXT, "created": COUNT, **PRICES},
        },
        _PER_CALL,
    ),
    "SdkModels": written(
        {
            "object": {"const": "list"},
            "data": listed(ref("SdkModel")),
            "first_id": {"type": ["string", "null"]},
            "last_id": {"type": ["string", "null"]},
            "has_more": FLAG,
        }
    ),
    "SdkError": written(
        {
            "type": {"const": "error"},
            "error": written(
                {
                    **{"type": {"enum": sorted({*TYPES.values(), *OTHERS})}, "message": FILLED},
                    "code": {**FILLED, "description": "the code of the error, as in all other answers"},
                }
            ),
            "request_id": FILLED,
        }
    ),
    # In the dialects of OpenAI.
    "ChatRequest": read(
        {"model": FILLED, "messages": listed(read({"role": TEXT}))},
        {
            **_SHARED,
            **{"max_completion_tokens": _LIMIT, "max_tokens": _LIMIT, "n": {**_LIMIT, "maximum": MOST_CHOICES}},
            "stream_options": read({}, {"include_usage": FLAG}),
            "response_format": read({"type": TEXT}),
            "reasoning_effort": TEXT,
            "stop": {"oneOf": [TEXT, listed(TEXT)]},
        },
    ),
    "ChatReply": read(
        {
            **{"id": TEXT, "object": {"const": "chat.completion"}, "created": COUNT, "model": TEXT},
            "choices": listed(read({"index": COUNT, "message": {"type": "object"}, "finish_reason": TEXT})),
            "usage": read({"credits_charged": MONEY}, {"prompt_tokens": {}, "completion_tokens": {}}),
        },
    ),
    "ResponsesRequest": read(
        {"model": FILLED, "input": {"oneOf": [TEXT, listed({"type": "object"})]}},
        {
            **_SHARED,
            **{"instructions": TEXT, "max_output_tokens": _LIMIT, "include": listed(TEXT)},
            **{"text": {"type": "object"}, "reasoning": {"type": "object"}},
            **{"background": {"const": False}, "previous_response_id": {"type": "null"}},
        },
    ),
    "ResponsesReply": read(
        {
            **{"id": TEXT, "object": {"const": "response"}, "created_at": COUNT, "model": TEXT, "status": TEXT},
            "output": listed(read({"type": TEXT})),
            "usage": read({"credits_charged": MONEY}, {"input_tokens": {}, "output_tokens": {}}),
        },
    ),
    "OpenAIError": written(
        {
            "error": written(
                {
                    **{"message": FILLED, "type": FILLED, "code": FILLED},
                    "param": {"type": ["string", "null"], "description": "the path of the field that is wrong"},
                }
            )
        }
    ),
    "SharedError": {"anyOf": [ref("SdkError"), ref("OpenAIError")]},
}
