"""The operations on AI models, for the OpenAPI document."""

from __future__ import annotations

from handlers.core.params import JSON
from handlers.openapi.operation import EVENTS, Operation, Success

_REPLAYED = ("Idempotent-Replayed",)
_MESSAGES = {200: Success("the reply and what it cost; with stream, events", "AIReply", (JSON, EVENTS), _REPLAYED)}
_KEY = (("apiKey",),)
_HEADERS = ("anthropic-version", "anthropic-beta")
_UPSTREAM = ("upstream_error", "upstream_timeout", "overloaded")
_CALL = (
    *("invalid_request", "insufficient_credits", "app_spend_limit", "person_spend_limit", "not_found"),
    *("budget_exhausted", "model_not_allowed"),
    *("idempotency_in_progress", "idempotency_reply_gone", "idempotency_mismatch", *_UPSTREAM),
)

AI_OPERATIONS: dict[str, dict[str, Operation]] = {
    "ai-messages": {
        "post": Operation(
            "AI",
            "Call a model, paid by the person",
            (
                "Before the call, its highest cost is held. After it, the charge is the use that the model's server "
                "reports, never more than was held. A call that the model's server refuses costs nothing. A call that "
                "it accepts costs at least its input, even if the app hangs up. With `stream` the answer is events, "
                "and the last `message_delta` has the `credits`."
            ),
            _MESSAGES,
            errors=_CALL,
            parameters=("idempotency-key", *_HEADERS),
            body="AIRequest",
            security=_KEY,
        )
    },
    "ai-models": {
        "get": Operation(
            "AI",
            "List models and prices",
            "Prices are micro-dollars per million tokens. `latchkey-echo` is built in, and repeats the last message.",
            {200: Success("all models", "AIModels")},
            security=_KEY,
        )
    },
    "ai-sdk-messages": {
        "post": Operation(
            "AI for the SDKs",
            "Call a model",
            (
                "`messages.create` and `messages.stream`. In the same window as `POST /api/v1/ai/messages`. The SDKs "
                "retry after 409, 429 and 5xx: with an `Idempotency-Key`, the call is charged once."
            ),
            _MESSAGES,
            errors=_CALL,
            parameters=("idempotency-key", *_HEADERS),
            body="AIRequest",
            security=_KEY,
            envelope="messages",
        )
    },
    "ai-chat": {
        "post": Operation(
            "AI for the SDKs",
            "Call a model in the format of chat/completions",
            (
                "`chat.completions.create` of the OpenAI SDKs. `usage` has `credits_charged`; in a stream only with "
                "`stream_options.include_usage`, in its last chunk. A field that has no counterpart at the model's "
                "server, or that would be billed by other measures, is refused, and `error.param` names it."
            ),
            {200: Success("the reply and its cost; with stream, chunks", "ChatReply", (JSON, EVENTS), _REPLAYED)},
            errors=_CALL,
            parameters=("idempotency-key", "openai-beta"),
            body="ChatRequest",
            document=True,
            security=_KEY,
            envelope="openai",
        )
    },
    "ai-responses": {
        "post": Operation(
            "AI for the SDKs",
            "Call a model in the format of responses",
            (
                "`responses.create` of the OpenAI SDKs. `usage` has `credits_charged`. Nothing is kept: send the whole "
                "conversation, with the reasoning items as they came."
            ),
            {200: Success("the reply and its cost; with stream, events", "ResponsesReply", (JSON, EVENTS), _REPLAYED)},
            errors=_CALL,
            parameters=("idempotency-key", "openai-beta"),
            body="ResponsesRequest",
            document=True,
            security=_KEY,
            envelope="openai",
        )
    },
    "ai-response": {
        method: Operation(
            "AI for the SDKs",
            "Always 404: responses are not kept",
            "Responses are not kept.",
            {},
            errors=("not_found",),
            path=("response",),
            security=_KEY,
            envelope="openai",
        )
        for method in ("get", "delete")
    },
    "ai-sdk-count": {
        "post": Operation(
            "AI for the SDKs",
            "Count the tokens of a request",
            "`messages.count_tokens`. Nothing is charged.",
            {200: Success("their number", "AICount")},
            errors=("invalid_request", "not_found", *_UPSTREAM),
            parameters=_HEADERS,
            body="AICountRequest",
            security=_KEY,
            envelope="messages",
        )
    },
    "ai-sdk-models": {
        "get": Operation(
            "AI for the SDKs",
            "List models",
            "`models.list`. All are on one page.",
            {200: Success("all of them", "SdkModels")},
            security=_KEY,
            envelope="shared",
            parameters=("anthropic-version",),
        )
    },
    "ai-sdk-model": {
        "get": Operation(
            "AI for the SDKs",
            "Describe a model",
            "`models.retrieve`.",
            {200: Success("the model", "SdkModel")},
            errors=("invalid_request", "not_found"),
            path=("model",),
            security=_KEY,
            envelope="shared",
            parameters=("anthropic-version",),
        )
    },
}
