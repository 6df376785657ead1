"""Examples of calls of AI models, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

_AT = "2026-01-01T00:00:00.000Z"
_MONEY = {"currency": "USD", "scale": 6}
_QUESTION = {"model": "latchkey-echo", "messages": [{"role": "user", "content": "Hello"}]}
_PRICES = {
    **dict.fromkeys(("input", "cacheRead", "cacheWrite", "cacheWrite1h"), 1_000_000),
    "output": 5_000_000,
}
_SDK_MODEL = {
    **{"type": "model", "id": "latchkey-echo", "display_name": "Latchkey Echo", "created_at": _AT},
    **{"object": "model", "owned_by": "latchkey", "created": 1_767_225_600, **_PRICES},
}
_HEAD = {"created": 1_767_225_600, "model": "latchkey-echo"}
_MESSAGE = {"role": "assistant", "content": "Hello", "refusal": None}
_PART = {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
_ITEM = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [_PART]}
_COST = {"total_tokens": 6, "credits_charged": 10}

AI_EXAMPLES: dict[str, dict[str, Any]] = {
    "AIRequest": {
        "whole": {**_QUESTION, "max_tokens": 100},
        "stream": {**_QUESTION, "max_tokens": 100, "stream": True, "system": "Answer in one sentence."},
    },
    "AICountRequest": {"count": _QUESTION},
    "AIReply": {
        "reply": {
            **{"id": "msg_a-message", "type": "message", "role": "assistant", "model": "latchkey-echo"},
            **{"content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn", "stop_sequence": None},
            **{"usage": {"input_tokens": 5, "output_tokens": 1}, "credits": {"charged": 10, "remaining": 4_999_990}},
        }
    },
    "AICount": {"count": {"input_tokens": 5}},
    "AIModels": {
        "models": {
            "models": [
                {
                    **{"id": "latchkey-echo", "displayName": "Latchkey Echo"},
                    **{"maxInputTokens": 16_384, "maxOutputTokens": 16_384},
                    "pricePerMillionTokens": {"version": "echo-1", **_PRICES, **_MONEY},
                }
            ]
        }
    },
    "SdkModel": {"model": _SDK_MODEL},
    "SdkModels": {
        "models": {
            "object": "list",
            "data": [_SDK_MODEL],
            "first_id": "latchkey-echo",
            "last_id": "latchkey-echo",
            "has_more": False,
        }
    },
    "ChatRequest": {
        "whole": _QUESTION,
        "stream": {**_QUESTION, "stream": True, "stream_options": {"include_usage": True}},
    },
    "ChatReply": {
        "reply": {
            **{"id": "chatcmpl-1", "object": "chat.completion", **_HEAD},
            "choices": [{"index": 0, "message": _MESSAGE, "logprobs": None, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1, **_COST},
        }
    },
    "ResponsesRequest": {"whole": {"model": "latchkey-echo", "input": "Hello"}},
    "ResponsesReply": {
        "reply": {
            **{"id": "resp_1", "object": "response", "created_at": 1_767_225_600, "model": "latchkey-echo"},
            **{"status": "completed", "output": [_ITEM]},
            "usage": {"input_tokens": 5, "output_tokens": 1, **_COST},
        }
    },
}
