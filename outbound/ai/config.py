"""The file of `--ai-config`: servers, models and prices, in TOML. Without it only the built-in model exists."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from outbound.ai.dialects.conversation import Thinking
from outbound.ai.echo import echo_model
from outbound.ai.health import Ejection
from outbound.ai.models import Model, Models, Timeouts, Upstream
from outbound.ai.server_keys import KeyUnreadable, ReadKey, ServerKey, command_reader, file_reader, key_in
from store.credits.prices import Price

MAX_PRICE = 10**9
MAX_INPUT = 4_000_000
MAX_OUTPUT = 1_000_000
"""Within these limits, a price times a number of tokens is exact."""
MAX_SEARCH_PRICE = 10**7
MAX_PRICE_WITH_SEARCH = 10**8
"""With searches, a call may read its input once more for each."""
MAX_SECONDS = 3600.0
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
        top = _Table(content, "", _TOP)
        upstreams = top.tables("upstream", _UPSTREAM)
        # People who can use a real model should not pay for an echo.
        models = [echo_model(echo_pause)] if top.take("echo", bool, not upstreams) else []
        for upstream in upstreams:
            _add_models(models, upstream, environ)
    except _Wrong as wrong:
        raise ConfigError(f"{path}: {wrong}") from None
    if not models:
        raise ConfigError(f"{path}: offers no model")
    return Models(tuple(models))


def _add_models(models: list[Model], table: _Table, environ: Mapping[str, str]) -> None:
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


def _same_model(table: _Table, first: Model, upstream: Upstream, weight: float) -> Model:
    """A model at one more server. What belongs to the model may be said again, and nothing else about it."""
    if not first.upstream.url or upstream.name in [one.upstream.name for one in first.candidates]:
        raise _Wrong(table.place, f"offers {first.model_id!a} twice, at servers named {upstream.name!a}")
    if upstream.dialect != first.upstream.dialect:
        raise _Wrong(table.place, f"offers {first.model_id!a}, which is first offered in another dialect")
    again = _model(table, upstream, weight, first)
    for name in _SHARED:
        if getattr(again, name) != getattr(first, name):
            raise _Wrong(f"{table.place}.{name}", f"differs from where {first.model_id!a} is first offered")
    return again


def _model(table: _Table, upstream: Upstream, weight: float, first: Model | None = None) -> Model:
    model_id = table.text("id")
    prices = sorted((_price(price) for price in table.tables("prices", _PRICE)), key=lambda price: price[0])
    if not prices and first is None:
        raise _Wrong(f"{table.place}.prices", "is empty: a model without a price is not offered")
    versions = [price.version for _, price in prices]
    if len(set(versions)) < len(versions):
        raise _Wrong(f"{table.place}.prices", "has two of one version")
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


def _price(table: _Table) -> tuple[datetime, Price]:
    begins = table.take("from", datetime, datetime(2026, 1, 1, tzinfo=UTC))
    plain = table.whole("input", 0, MAX_PRICE)
    read, write, hour = (table.whole(kind, 0, MAX_PRICE, plain) for kind in _KINDS_OF_CACHE)
    search = table.whole("web_search", 0, MAX_SEARCH_PRICE) if table.has("web_search") else None
    price = Price(table.text("version"), plain, table.whole("output", 0, MAX_PRICE), read, write, hour, search)
    if search is not None and price.dearest_input > MAX_PRICE_WITH_SEARCH:
        raise _Wrong(f"{table.place}.web_search", f"needs prices of input up to {MAX_PRICE_WITH_SEARCH}")
    return begins.replace(tzinfo=begins.tzinfo or UTC), price


def _url(table: _Table) -> str:
    url = table.text("url")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
    except ValueError:
        sound = False
    if not sound or parts.username is not None:
        raise _Wrong(f"{table.place}.url", "must be an http or https URL without user, query and fragment")
    return url


def _key(table: _Table, environ: Mapping[str, str]) -> str | ServerKey:
    given = [name for name in _KEYS if table.has(name)]
    if len(given) > 1:
        raise _Wrong(f"{table.place}.{given[1]}", f"is one key too many: there is {given[0]}")
    lifetime = table.seconds("key_lifetime", KEY_SECONDS)
    if path := table.text("key_file", ""):
        try:
            key_in(Path(path))
        except KeyUnreadable as error:
            raise _Wrong(f"{table.place}.key_file", f"is unusable: {error}") from None
        return ReadKey(file_reader(Path(path)), lifetime)
    if words := table.texts("key_command"):
        return ReadKey(command_reader(words), lifetime)
    name = table.text("key_env", "")
    key = environ.get(name, "") if name else table.text("key", "")
    if name and not key:
        raise _Wrong(f"{table.place}.key_env", f"names {name}, which is not set")
    if not key.isascii() or not key.isprintable():
        raise _Wrong(f"{table.place}.{'key_env' if name else 'key'}", "must be printable ASCII")
    return key


class _Wrong(Exception):
    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place} {reason}" if place else reason)


class _Table:
    """A table of the file: known names, values of the right type."""

    def __init__(self, given: object, place: str, known: tuple[str, ...]) -> None:
        if not isinstance(given, dict):
            raise _Wrong(place, "must be a table")
        self.place = place
        self._given: dict[str, Any] = given
        for name in given:
            if name not in known:
                raise _Wrong(self._at(name[:64]), f"is unknown; known are {', '.join(known)}")

    def _at(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def take(self, name: str, kind: type[Any], default: Any = None) -> Any:
        """The value, which must have this type."""
        value = self._given.get(name, default)
        if value is None:
            raise _Wrong(self._at(name), "is missing")
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise _Wrong(self._at(name), f"must be {_KINDS[kind]}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A line of printable text."""
        value: str = self.take(name, str, default)
        if len(value) > 500 or not value.isprintable() or (default is None and not value):
            raise _Wrong(self._at(name), "must be a line of text")
        return value

    def one_of(self, name: str, values: tuple[str, ...], default: str | None = None) -> str:
        """One of these values; if it is missing the default, or else the first."""
        value = self.text(name, default or values[0])
        if value not in values:
            raise _Wrong(self._at(name), f"must be {' or '.join(values)}")
        return value

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number between `low` and `high`."""
        value: int = self.take(name, int, default)
        if not low <= value <= high:
            raise _Wrong(self._at(name), f"must be {low} to {high}")
        return value

    def seconds(self, name: str, default: float) -> float:
        """A number of seconds above zero."""
        value: float = self.take(name, (int, float), default)  # type: ignore[arg-type]  # take() has checked
        if not 0 < value <= MAX_SECONDS:
            raise _Wrong(self._at(name), f"must be more than 0 and at most {MAX_SECONDS:g} seconds")
        return float(value)

    def number(self, name: str, low: float, high: float, default: float) -> float:
        """A number between `low` and `high`."""
        value: float = self.take(name, (int, float), default)  # type: ignore[arg-type]  # take() has checked
        if not low <= value <= high:
            raise _Wrong(self._at(name), f"must be {low:g} to {high:g}")
        return float(value)

    def texts(self, name: str) -> list[str]:
        """An array of strings; empty if it is missing."""
        values: list[Any] = self.take(name, list, [])
        if not all(isinstance(value, str) and "\0" not in value for value in values) or (values and not values[0]):
            raise _Wrong(self._at(name), "must be an array of strings: a program and its arguments")
        return values

    def has(self, name: str) -> bool:
        """Whether the table has this name."""
        return name in self._given

    def tables(self, name: str, known: tuple[str, ...]) -> list[_Table]:
        """The tables of an array; empty if it is missing."""
        items = self.take(name, list, [])
        return [_Table(item, f"{self._at(name)}[{position}]", known) for position, item in enumerate(items)]


_KINDS: Mapping[Any, str] = {
    bool: "true or false",
    str: "a string",
    int: "a whole number",
    (int, float): "a number",
    datetime: "a date and time",
    list: "an array",
}
