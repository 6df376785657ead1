"""Outbound calls without a network: the operator's models file, events, tokens, the built-in model."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbound.ai.config import ConfigError, load_models
from outbound.ai.echo import ECHO, PRICE, echo_model
from outbound.ai.events import MAX_EVENT_BYTES, BrokenStream, EventReader, StreamEvent
from outbound.ai.health import Ejection
from outbound.ai.messages import IMAGE_TOKENS, OVERHEAD_TOKENS, MessagesUpstream
from outbound.ai.meter import Meter
from outbound.ai.models import Model, Models, Timeouts
from outbound.ai.tokens import count, equal_texts, pieces, texts_of
from store.credits.prices import Price, TokenCounts
from tests.support.lists.offenders import each

UPSTREAM = '[[upstream]]\nname = "a"\nurl = "https://models.example.com"\n'
OTHER = UPSTREAM.replace('"a"', '"b"')
MODEL = '[[upstream.models]]\nid = "m"\n'
PRICED = '[[upstream.models.prices]]\nversion = "1"\ninput = 3_000_000\noutput = 15_000_000\n'
WHOLE = UPSTREAM + MODEL + PRICED


def loaded(tmp_path: Path, text: str, **environ: str) -> Models:
    file = tmp_path / "models.toml"
    file.write_text(text)
    return load_models(file, environ)


def test_without_a_file_only_the_built_in_model_exists() -> None:
    models = load_models(None)
    assert [model.model_id for model in models.all()] == [ECHO]
    assert models.find(ECHO) is models.all()[0]
    assert models.find("another") is None


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        pytest.param(WHOLE, ["m"], id="not in addition to the models of a server"),
        pytest.param("echo = true\n" + WHOLE, [ECHO, "m"], id="in addition to them where the file says so"),
        pytest.param("echo = false\n" + WHOLE, ["m"], id="not where the file says no"),
        pytest.param("", [ECHO], id="where the file names no server"),
    ],
)
def test_the_built_in_model_is_offered(tmp_path: Path, text: str, offered: list[str]) -> None:
    assert [model.model_id for model in loaded(tmp_path, text).all()] == offered


def test_a_model_at_two_servers_is_offered_once(tmp_path: Path) -> None:
    other = OTHER + "weight = 3\nretry_timeouts = true\neject_failures = 2\neject_seconds = 7\n"
    again = MODEL + 'upstream_id = "its-name-there"\n'
    for text in (WHOLE + other + again, WHOLE + other + again + PRICED, WHOLE + OTHER + again + "weight = 3\n"):
        (model,) = loaded(tmp_path, text).all()
        found = [(one.upstream.name, one.upstream_id, one.weight, one.prices) for one in model.candidates]
        assert found == [("a", "m", 1.0, model.prices), ("b", "its-name-there", 3.0, model.prices)]
        assert (model.others[0].max_input, model.others[0].max_output) == (model.max_input, model.max_output)
    rules = [server.health.rule for server in loaded(tmp_path, WHOLE + other + again).upstreams()]
    assert rules == [Ejection(), Ejection(2, 7.0)]


def test_a_price_applies_from_its_start(tmp_path: Path) -> None:
    later = PRICED.replace('"1"', '"2"') + "from = 2030-06-01T00:00:00Z\n"
    earlier = PRICED + "from = 2025-01-01T00:00:00Z\n"
    model = loaded(tmp_path, UPSTREAM + MODEL + later + earlier).all()[0]
    assert model.price(datetime(2024, 12, 31, tzinfo=UTC)) is None
    for moment, version in ((datetime(2025, 1, 1, tzinfo=UTC), "1"), (datetime(2030, 6, 1, tzinfo=UTC), "2")):
        price = model.price(moment)
        assert price is not None
        assert price.version == version


def test_a_model_with_only_a_future_price_is_not_offered(tmp_path: Path) -> None:
    models = loaded(tmp_path, WHOLE + "from = 2999-01-01T00:00:00Z\n")
    assert models.find("m") is None
    assert models.all() == []


def test_the_key_comes_from_the_environment(tmp_path: Path) -> None:
    text = UPSTREAM + 'key_env = "THE_KEY"\n' + MODEL + PRICED
    assert loaded(tmp_path, text, THE_KEY="a-key").find("m")
    with pytest.raises(ConfigError, match="THE_KEY, which is not set"):
        loaded(tmp_path, text)


@each(
    ("text", "reason"),
    [
        pytest.param("= 1", "is not TOML", id="no TOML"),
        pytest.param("echo = false\n", "offers no model", id="nothing is offered"),
        pytest.param('echo = "no"\n', "echo must be true or false", id="a flag of another type"),
        pytest.param("colour = 1\n", "colour is unknown", id="an unknown name"),
        pytest.param("upstream = 1\n", "upstream must be an array", id="no array"),
        pytest.param('[[upstream]]\nurl = "https://a.example.com"\n', r"upstream\[0\].name is missing", id="no name"),
        pytest.param(WHOLE.replace("https://models", "ftp://models"), r"upstream\[0\].url", id="another scheme"),
        pytest.param(WHOLE.replace("https://", "https://u:secret@"), r"upstream\[0\].url", id="a password in the URL"),
        pytest.param(UPSTREAM + "total_timeout = 0\n" + MODEL + PRICED, "total_timeout must be more", id="no time"),
        pytest.param("echo = " + "[" * 5000 + "]" * 5000, "is not TOML", id="nested too deep"),
        pytest.param(
            UPSTREAM + f"total_timeout = 1{'0' * 400}\n" + MODEL + PRICED, "more than 0", id="a time for ever"
        ),
        pytest.param(UPSTREAM + 'total_timeout = "1"\n' + MODEL + PRICED, "must be a number", id="a time as text"),
        pytest.param(UPSTREAM + MODEL, r"models\[0\].prices is empty", id="no price"),
        pytest.param(WHOLE + PRICED, "has two of one version", id="a version twice"),
        pytest.param(
            WHOLE.replace("3_000_000", "3.5"), "input must be a whole number", id="a price that is no integer"
        ),
        pytest.param(WHOLE.replace("3_000_000", "true"), "input must be a whole number", id="a price that is a flag"),
        pytest.param(WHOLE.replace("3_000_000", "-1"), "input must be 0 to", id="a price below zero"),
        pytest.param(WHOLE.replace("3_000_000", "1_000_000_001"), "input must be 0 to", id="a price too high"),
        pytest.param(WHOLE + MODEL + PRICED, "offers 'm' twice", id="a model twice"),
        pytest.param(WHOLE + UPSTREAM + MODEL, "offers 'm' twice, at servers named 'a'", id="two servers of one name"),
        pytest.param(
            WHOLE + OTHER + MODEL + PRICED.replace("3_000_000", "3_000_001"),
            r"upstream\[1\].models\[0\].prices differs from where 'm' is first offered",
            id="two prices of one model",
        ),
        pytest.param(WHOLE + OTHER + MODEL + "max_output = 9\n", "max_output differs", id="two limits of one model"),
        pytest.param(UPSTREAM + "weight = -1\n" + MODEL + PRICED, "weight must be 0 to 1000", id="a weight below 0"),
        pytest.param(UPSTREAM + "weight = nan\n" + MODEL + PRICED, "weight must be", id="a weight that is no number"),
        pytest.param(
            UPSTREAM + "eject_failures = -1\n" + MODEL + PRICED, "eject_failures must be 0 to", id="failures below 0"
        ),
        pytest.param(
            "echo = true\n" + WHOLE.replace('"m"', '"latchkey-echo"'),
            "offers 'latchkey-echo' twice",
            id="the built-in model",
        ),
        pytest.param(UPSTREAM + "trace = 1\n" + MODEL + PRICED, "trace must be true or false", id="a trace of 1"),
        pytest.param(
            UPSTREAM + 'dialect = "gemini"\n' + MODEL + PRICED, r"dialect must be anthropic", id="an unknown dialect"
        ),
        pytest.param(WHOLE + "from = 2026-01-01\n", "from must be a date and time", id="a day without a time"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        loaded(tmp_path, text)
    assert "secret" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_models(tmp_path / "none.toml")


@given(st.text())
def test_a_texts_tokens_join_to_the_text(text: str) -> None:
    found = pieces(text)
    assert "".join(found) == text
    assert len(found) <= len(text.encode("utf-8", "surrogatepass"))
    # What goes out a token at a time is counted as what was said whole.
    assert sum(count(piece) for piece in found) == count(text)


def test_every_text_of_a_value_is_found() -> None:
    value = {"a": ["b", {"c": 1, "d": None}], "e": "f", "g": [[["h"]]]}
    assert sorted(texts_of(value)) == ["a", "b", "c", "d", "e", "f", "g", "h"]


def test_equal_texts_are_counted_wherever_they_are() -> None:
    value = {"image": ["image", {"type": "image"}, None], "images": "an image", "c": [[["image"]]], "d": 1}
    assert equal_texts(value, "image") == sum(text == "image" for text in texts_of(value)) == 4


EVENTS = [
    StreamEvent("message_start", {"type": "message_start", "message": {"id": "ä"}}),
    StreamEvent("ping", {"type": "ping"}),
    StreamEvent("content_block_delta", {"type": "content_block_delta", "delta": {"text": 'a "quoted"\nline'}}),
]


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@given(st.lists(st.integers(1, 60), min_size=1))
def test_events_are_assembled_from_any_pieces(ends: bytes, sizes: list[int]) -> None:
    whole = b": a comment\n\n" + b"".join(event.encoded() for event in EVENTS)
    whole = whole.replace(b"\n", ends)
    reader, found, at = EventReader(), [], 0
    while at < len(whole):
        size = sizes[at % len(sizes)]
        found += list(reader.feed(whole[at : at + size]))
        at += size
    assert [(event.name, event.data) for event in found] == [(event.name, event.data) for event in EVENTS]
    assert [json.loads(event.encoded().split(b"data: ")[1]) for event in found] == [event.data for event in EVENTS]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"data: {", id="no JSON"),
        pytest.param(b"data: []", id="no object"),
        pytest.param(b"data: {}", id="no type"),
        pytest.param(b'data: {"type": "a\\nevent: b"}', id="a type that is no name"),
        pytest.param(b"data: " + b"[" * 100_000, id="nested too deep"),
        pytest.param(b"data: " + b" " * (MAX_EVENT_BYTES + 1), id="endless"),
    ],
)
def test_invalid_data_breaks_the_stream(block: bytes) -> None:
    with pytest.raises(BrokenStream):
        list(EventReader().feed(block + b"\n\n" if len(block) < MAX_EVENT_BYTES else block))


@pytest.mark.gen_test
async def test_counting_a_megabyte_does_not_block_the_loop() -> None:
    meter, turns = Meter(question("a b " * 250_000)), 0
    counting = asyncio.ensure_future(meter.count_input())
    while not counting.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 3
    assert abs(meter.used()[0] - 500_000) < 100


def question(content: Any, max_tokens: int = 100) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], "max_tokens": max_tokens}


async def streamed(model: Model, request: dict[str, Any]) -> list[StreamEvent]:
    return [event async for event in model.upstream.stream(model, request)]


@pytest.mark.parametrize(
    ("content", "max_tokens", "said", "reason"),
    [
        pytest.param("Hello, world", 100, "Hello, world", "end_turn", id="text"),
        pytest.param(
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], 9, "a\nb", "end_turn", id="blocks"
        ),
        pytest.param("one two three", 2, "one two", "max_tokens", id="cut"),
        pytest.param("", 2, "", "end_turn", id="nothing"),
        pytest.param([{"type": "image", "source": {"type": "base64"}}], 2, "", "end_turn", id="no text"),
    ],
)
def test_the_built_in_model_echoes(content: Any, max_tokens: int, said: str, reason: str) -> None:
    model, request = echo_model(), question(content, max_tokens)
    reply = asyncio.run(model.upstream.complete(model, request))
    assert "".join(block["text"] for block in reply["content"]) == said
    assert (reply["stop_reason"], reply["usage"]["output_tokens"]) == (reason, count(said))
    events = asyncio.run(streamed(model, request))
    deltas = [event.data["delta"]["text"] for event in events if event.name == "content_block_delta"]
    assert "".join(deltas) == said
    assert events[-2].data["delta"]["stop_reason"] == reason
    assert events[-2].data["usage"]["output_tokens"] == len(deltas)
    input_tokens = asyncio.run(model.upstream.count_tokens(model, request))
    assert input_tokens == model.upstream.most_input(model, request, 10**6) == reply["usage"]["input_tokens"]
    assert events[0].data["message"]["usage"]["input_tokens"] == input_tokens


def test_the_input_of_another_server_is_bounded_by_its_bytes() -> None:
    upstream = MessagesUpstream("a", "https://models.example.com", "", Timeouts(), 1)
    always = ((datetime(2026, 1, 1, tzinfo=UTC), PRICE),)
    model = Model("m", "M", upstream, "m", 20_000, 100, always)
    assert upstream.most_input(model, question("x"), 50) == 50 + OVERHEAD_TOKENS
    image = {"type": "image", "source": {"type": "base64", "data": "aaaa"}}
    assert upstream.most_input(model, question([image, image]), 90) == 90 + OVERHEAD_TOKENS + 2 * IMAGE_TOKENS
    assert upstream.most_input(model, question("x"), 10**6) == 20_000


def test_a_price_is_rounded_up_once() -> None:
    price = Price("1", 3_000_000, 15_000_001)
    assert price.cost(TokenCounts(0, 0)) == 0
    assert price.cost(TokenCounts(1, 0)) == 3
    assert price.cost(TokenCounts(0, 1)) == 16
    assert price.cost(TokenCounts(1, 1)) == 19
    assert price.cost(TokenCounts(10**6, 10**6)) == 18_000_001
    assert price.cost(TokenCounts(1, 0, 1, 1, 1)) == 12, "what has no price of its own costs as input does"
    price = Price("2", 1, 1, 1, 1, 1)
    assert price.cost(TokenCounts(1, 1, 1, 1, 1)) == 1, "one rounding, over the sum"


@pytest.mark.parametrize(
    ("usage", "used"),
    [
        pytest.param({"input_tokens": 7, "output_tokens": 9}, (7, 9), id="reported"),
        pytest.param({"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 9}, (7, 9, 5), id="cache"),
        pytest.param(None, (10, 3), id="not reported"),
        pytest.param({"input_tokens": "7", "output_tokens": True}, (10, 3), id="no numbers"),
        pytest.param({"input_tokens": -7, "output_tokens": 1.5}, (10, 3), id="no whole numbers above zero"),
    ],
)
def test_unreported_usage_is_counted(usage: object, used: tuple[int, ...]) -> None:
    meter = Meter(question("one two three four five six"))
    meter.see_reply({"content": [{"type": "text", "text": "one two three"}], "usage": usage})
    assert meter.used() == TokenCounts(*used)


@pytest.mark.parametrize("content", [[], None, "text", [{"type": "text", "text": ""}]])
def test_a_replys_reported_usage_applies(content: object) -> None:
    meter = Meter(question("one"))
    meter.see_reply({"content": content, "usage": {"input_tokens": 7, "output_tokens": 9}})
    assert meter.used() == TokenCounts(7, 9)
