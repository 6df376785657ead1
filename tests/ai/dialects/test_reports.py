"""Each token of a report counts once, and what a server says in an error stays here."""

from __future__ import annotations

from typing import Any

import pytest

from outbound.ai.dialects import errors, usage
from store.credits.prices import MAX_TOKENS as MOST_REPORTED
from store.credits.prices import TokenCounts


@pytest.mark.trap(66)
@pytest.mark.parametrize(
    "tokens",
    [TokenCounts(), TokenCounts(5, 7), TokenCounts(1, 2, 30, 400, 0, 1), TokenCounts(0, 9, 100, 0, 0, 9)],
)
def test_a_token_counts_once_in_every_dialect(tokens: TokenCounts) -> None:
    assert usage.of_messages(usage.in_messages(tokens)) == tokens
    assert usage.of_chat(usage.in_chat(tokens)) == tokens
    assert usage.of_responses(usage.in_responses(tokens)) == tokens
    assert sum(tokens[:5]) == usage.in_chat(tokens)["total_tokens"] == usage.in_responses(tokens)["total_tokens"]


@pytest.mark.trap(67)
@pytest.mark.parametrize("number", [-1, True, 1.5, "7", None, [], 2**53, 10**30])
def test_a_report_that_cannot_be_true_is_bounded(number: Any) -> None:
    names = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "cache_creation_input_tokens")
    details = {"cached_tokens": number, "cache_write_tokens": number, "reasoning_tokens": number}
    report = {**dict.fromkeys(names, number), "prompt_tokens_details": details, "completion_tokens_details": details}
    for read in (usage.of_chat, usage.of_messages, usage.of_responses):
        found = read(report)
        assert all(0 <= count <= MOST_REPORTED for count in found)
        assert found.reasoning <= found.output


@pytest.mark.trap(66)
def test_reads_and_writes_never_exceed_the_prompt() -> None:
    report = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 100}}
    assert usage.of_chat(report) == TokenCounts(0, 0, 7, 3)


@pytest.mark.trap(70)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 429, 500, 503, 529])
def test_nothing_a_server_says_reaches_an_app(status: int) -> None:
    secret = "sk-of-the-operator"
    error = {"message": f"Bad key {secret}", "type": secret, "code": secret, "param": f"https://{secret}"}
    _, said, param = errors.read_failure(status, {"error": error})
    assert secret not in said
    assert param is None


@pytest.mark.parametrize(
    ("status", "error", "code", "param"),
    [
        (400, {"code": "context_length_exceeded", "param": "messages"}, "invalid_request", "messages"),
        (400, {"message": "x", "param": "tools[0].function.name"}, "invalid_request", "tools[0].function.name"),
        (400, {"message": "Your organization has no credit"}, "upstream_error", None),
        (401, {"message": "Bad key"}, "upstream_error", None),
        (429, {"code": "rate_limit_exceeded"}, "overloaded", None),
        (429, {"code": "insufficient_quota"}, "upstream_error", None),
        (500, {}, "upstream_error", None),
        (400, None, "invalid_request", None),
    ],
)
def test_a_servers_error_has_a_code_of_the_catalogue(status: int, error: Any, code: str, param: str | None) -> None:
    found, _, where = errors.read_failure(status, {"error": error})
    assert (found, where) == (code, param)


def test_an_error_has_the_envelope_of_the_dialect() -> None:
    assert errors.envelope("invalid_request", 400, "No.", "n") == {
        "error": {"message": "No.", "type": "invalid_request_error", "param": "n", "code": "invalid_request"}
    }
    assert errors.envelope("anything_else", 503, "Later.")["error"]["type"] == "server_error"
