"""The file of `--ai-config`: servers, models and prices, in TOML. Without it only the built-in model exists."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from outbound.ai.dialects.conversation import Thinking
from outbound.ai.echo import echo_model
from outbound.ai.health import Ejection
from outbound.ai.models import Model, Models, Timeouts, Upstream
from outbound.ai.server_keys import KeyUnreadable, ReadKey, ServerKey, command_reader, file_reader, key_in
from outbound.toml_table import TomlTable, Wrong
from store.credits.prices import Price

MAX_PRICE = 10**9
MAX_INPUT = 4_000_000
MAX_OUTPUT = 1_000_000
"""Within these limits, a price times a number of tokens is exact."""
MAX_SEARCH_PRICE = 10**7
MAX_PRICE_WITH_SEARCH = 10**8
"""With searches, a call may read its input once more for each."""
_TOP = ("echo", "upstream")
_KEYS = ("key", "key_env", "key_file", "key_command")
_UPSTREAM = (
    *(
        "name",
        "url",
        "key",
        "key_env",
        "key_file",
        "key_command",
        "key_lifetime",
        "connections",
        "connect_timeout",
        "first_byte_timeout",
    ),
    *("event_timeout", "total_timeout", "trace", "unknown_fields", "models", "dialect"),
    *("weight", "retry_timeouts", "eject_failures", "eject_seconds"),
)
DIALECTS = ("anthropic", "openai")
"""The APIs that a model's server may speak."""
_SHARED = ("display_name", "max_input", "max_output", "thinking", "output_limit", "prices")
"""What is the same at each server that offers a model."""
_MODEL = ("id", "upstream_id", "weight", *_SHARED)
KEY_SECONDS = 600.0
"""How long a key that was read from a file or a command is used."""
_THINKING = ("adaptive", "budget", "none")
_LIMITS = ("max_completion_tokens", "max_tokens")
MAX_WEIGHT = 1000.0
MAX_FAILURES = 1000
_KINDS_OF_CACHE = ("cache_read", "cache_write", "cache_write_1h")
_PRICE = ("version", "from", "input", "output", *_KINDS_OF_CACHE, "web_search")


class ConfigError(ValueError):
    """The file is unusable. The message is one line, names the place and never contains a key."""


def load_models(path: Path | None, environ: Mapping[str, str] = os.environ, *, echo_pause: float = 0.0) -> Models:
    """The configured models. Raises ConfigError."""
    return parse_models(path, read_models(path), environ, echo_pause=echo_pause)


def read_models(path: Path | None) -> str:
    """The text of the file; empty without a file. Raises ConfigError."""
    try:
        return path.read_text("utf-8") if path else ""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def parse_models(
    path: Path | None, text: str, environ: Mapping[str, str] = os.environ, *, echo_pause: float = 0.0
) -> Models:
    """The models in the text of a file. Raises ConfigError."""
    if path is None:
        return Models((echo_model(echo_pause),))
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    try:
        top = TomlTable(content, "", _TOP)
        upstreams = top.tables("upstream", _UPSTREAM)
        # People who can use a real model should not pay for an echo.
        models = [echo_model(echo_pause)] if top.take("echo", bool, not upstreams) else []
        for upstream in upstreams:
            _add_models(models, upstream, environ)
    except Wrong as wrong:
        raise ConfigError(f"{path}: {wrong}") from None
    if not models:
        raise ConfigError(f"{path}: offers no model")
    return Models(tuple(models))


def _add_models(models: list[Model], table: TomlTable, environ: Mapping[str, str]) -> None:
    """Adds the models of a server to the list. A model that is in the list gets one more server."""
    # Slow to import, and needed only by a server that calls others.
    from outbound.ai.messages import MessagesUpstream
    from outbound.ai.openai import OpenAIUpstream

    kinds: dict[str, type[MessagesUpstream]] = {"anthropic": MessagesUpstream, "openai": OpenAIUpstream}
    usual, usual_ejection = Timeouts(), Ejection()
    limits = Timeouts(
        table.seconds("connect_timeout", usual.connect),
        table.seconds("first_byte_timeout", usual.first_byte),
        table.seconds("event_timeout", usual.between_events),
        table.seconds("total_timeout", usual.total),
    )
    upstream = kinds[table.one_of("dialect", DIALECTS)](
        table.text("name"),
        _url(table),
        _key(table, environ),
        limits,
        table.whole("connections", 1, 100_000, 1_000),
        traced=table.take("trace", bool, False),
        refuses_unknown=table.one_of("unknown_fields", ("pass", "refuse")) == "refuse",
        retry_timeouts=table.take("retry_timeouts", bool, False),
        ejection=Ejection(
            table.whole("eject_failures", 0, MAX_FAILURES, usual_ejection.failures),
            table.seconds("eject_seconds", usual_ejection.seconds),
        ),
    )
    weight = table.number("weight", 0, MAX_WEIGHT, 1.0)
    for entry in table.tables("models", _MODEL):
        model_id = entry.text("id")
        place = next((place for place, one in enumerate(models) if one.model_id == model_id), None)
        if place is None:
            models.append(_model(entry, upstream, weight))
        else:
            first = models[place]
            models[place] = replace(first, others=(*first.others, _same_model(entry, first, upstream, weight)))


def _same_model(table: TomlTable, first: Model, upstream: Upstream, weight: float) -> Model:
    """A model at one more server. What belongs to the model may be said again, and nothing else about it."""
    if not first.upstream.url or upstream.name in [one.upstream.name for one in first.candidates]:
        raise Wrong(table.place, f"offers {first.model_id!a} twice, at servers named {upstream.name!a}")
    if upstream.dialect != first.upstream.dialect:
        raise Wrong(table.place, f"offers {first.model_id!a}, which is first offered in another dialect")
    again = _model(table, upstream, weight, first)
    for name in _SHARED:
        if getattr(again, name) != getattr(first, name):
            raise Wrong(f"{table.place}.{name}", f"differs from where {first.model_id!a} is first offered")
    return again


def _model(table: TomlTable, upstream: Upstream, weight: float, first: Model | None = None) -> Model:
    model_id = table.text("id")
    prices = sorted((_price(price) for price in table.tables("prices", _PRICE)), key=lambda price: price[0])
    if not prices and first is None:
        raise Wrong(f"{table.place}.prices", "is empty: a model without a price is not offered")
    versions = [price.version for _, price in prices]
    if len(set(versions)) < len(versions):
        raise Wrong(f"{table.place}.prices", "has two of one version")
    shown = first.prices if first and not prices else tuple(prices)
    return Model(
        model_id,
        table.text("display_name", first.display_name if first else model_id),
        upstream,
        table.text("upstream_id", model_id),
        table.whole("max_input", 1, MAX_INPUT, first.max_input if first else 200_000),
        table.whole("max_output", 1, MAX_OUTPUT, first.max_output if first else 8_192),
        shown,
        shown[0][0],
        table.number("weight", 0, MAX_WEIGHT, weight),
        cast(Thinking, table.one_of("thinking", _THINKING, first.thinking if first else None)),
        table.one_of("output_limit", _LIMITS, first.output_limit if first else None),
    )


def _price(table: TomlTable) -> tuple[datetime, Price]:
    begins = table.take("from", datetime, datetime(2026, 1, 1, tzinfo=UTC))
    plain = table.whole("input", 0, MAX_PRICE)
    read, write, hour = (table.whole(kind, 0, MAX_PRICE, plain) for kind in _KINDS_OF_CACHE)
    search = table.whole("web_search", 0, MAX_SEARCH_PRICE) if table.has("web_search") else None
    price = Price(table.text("version"), plain, table.whole("output", 0, MAX_PRICE), read, write, hour, search)
    if search is not None and price.dearest_input > MAX_PRICE_WITH_SEARCH:
        raise Wrong(f"{table.place}.web_search", f"needs prices of input up to {MAX_PRICE_WITH_SEARCH}")
    return begins.replace(tzinfo=begins.tzinfo or UTC), price


def _url(table: TomlTable) -> str:
    url = table.text("url")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
    except ValueError:
        sound = False
    if not sound or parts.username is not None:
        raise Wrong(f"{table.place}.url", "must be an http or https URL without user, query and fragment")
    return url


def _key(table: TomlTable, environ: Mapping[str, str]) -> str | ServerKey:
    given = [name for name in _KEYS if table.has(name)]
    if len(given) > 1:
        raise Wrong(f"{table.place}.{given[1]}", f"is one key too many: there is {given[0]}")
    lifetime = table.seconds("key_lifetime", KEY_SECONDS)
    if path := table.text("key_file", ""):
        try:
            key_in(Path(path))
        except KeyUnreadable as error:
            raise Wrong(f"{table.place}.key_file", f"is unusable: {error}") from None
        return ReadKey(file_reader(Path(path)), lifetime)
    if words := table.texts("key_command"):
        return ReadKey(command_reader(words), lifetime)
    name = table.text("key_env", "")
    key = environ.get(name, "") if name else table.text("key", "")
    if name and not key:
        raise Wrong(f"{table.place}.key_env", f"names {name}, which is not set")
    if not key.isascii() or not key.isprintable():
        raise Wrong(f"{table.place}.{'key_env' if name else 'key'}", "must be printable ASCII")
    return key
