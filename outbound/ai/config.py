"""The file of `--ai-config`: servers, models and prices, in TOML. Without it only the built-in model exists."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from outbound.ai.echo import echo_model
from outbound.ai.models import Model, Models, Timeouts, Upstream
from store.credits.prices import Price

MAX_PRICE = 10**9
MAX_INPUT = 4_000_000
MAX_OUTPUT = 1_000_000
"""Within these limits, a price times a number of tokens is exact."""
MAX_SECONDS = 3600.0
_TOP = ("echo", "upstream")
_UPSTREAM = (
    *("name", "url", "key", "key_env", "connections", "connect_timeout", "first_byte_timeout"),
    *("event_timeout", "total_timeout", "trace", "unknown_fields", "models", "dialect"),
)
DIALECTS = ("anthropic",)
"""The APIs that a model's server may speak."""
_MODEL = ("id", "display_name", "upstream_id", "max_input", "max_output", "prices")
_KINDS_OF_CACHE = ("cache_read", "cache_write", "cache_write_1h")
_PRICE = ("version", "from", "input", "output", *_KINDS_OF_CACHE)


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
            models += _models(upstream, environ)
        _refuse_twins([model.model_id for model in models])
    except _Wrong as wrong:
        raise ConfigError(f"{path}: {wrong}") from None
    if not models:
        raise ConfigError(f"{path}: offers no model")
    return Models(tuple(models))


def _models(table: _Table, environ: Mapping[str, str]) -> list[Model]:
    # Slow to import, and needed only by a server that calls others.
    from outbound.ai.messages import MessagesUpstream

    usual = Timeouts()
    limits = Timeouts(
        table.seconds("connect_timeout", usual.connect),
        table.seconds("first_byte_timeout", usual.first_byte),
        table.seconds("event_timeout", usual.between_events),
        table.seconds("total_timeout", usual.total),
    )
    upstream = MessagesUpstream(
        table.text("name"),
        _url(table),
        _key(table, environ),
        limits,
        table.whole("connections", 1, 100_000, 1_000),
        traced=table.take("trace", bool, False),
        refuses_unknown=table.one_of("unknown_fields", ("pass", "refuse")) == "refuse",
        dialect=table.one_of("dialect", DIALECTS),
    )
    return [_model(model, upstream) for model in table.tables("models", _MODEL)]


def _model(table: _Table, upstream: Upstream) -> Model:
    model_id = table.text("id")
    prices = sorted((_price(price) for price in table.tables("prices", _PRICE)), key=lambda price: price[0])
    if not prices:
        raise _Wrong(f"{table.place}.prices", "is empty: a model without a price is not offered")
    versions = [price.version for _, price in prices]
    if len(set(versions)) < len(versions):
        raise _Wrong(f"{table.place}.prices", "has two of one version")
    return Model(
        model_id,
        table.text("display_name", model_id),
        upstream,
        table.text("upstream_id", model_id),
        table.whole("max_input", 1, MAX_INPUT, 200_000),
        table.whole("max_output", 1, MAX_OUTPUT, 8_192),
        tuple(prices),
        prices[0][0],
    )


def _price(table: _Table) -> tuple[datetime, Price]:
    begins = table.take("from", datetime, datetime(2026, 1, 1, tzinfo=UTC))
    plain = table.whole("input", 0, MAX_PRICE)
    cached = (table.whole(kind, 0, MAX_PRICE, plain) for kind in _KINDS_OF_CACHE)
    price = Price(table.text("version"), plain, table.whole("output", 0, MAX_PRICE), *cached)
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


def _key(table: _Table, environ: Mapping[str, str]) -> str:
    name = table.text("key_env", "")
    key = environ.get(name, "") if name else table.text("key", "")
    if name and not key:
        raise _Wrong(f"{table.place}.key_env", f"names {name}, which is not set")
    if not key.isascii() or not key.isprintable():
        raise _Wrong(f"{table.place}.{'key_env' if name else 'key'}", "must be printable ASCII")
    return key


def _refuse_twins(names: list[str]) -> None:
    for position, name in enumerate(names):
        if name in names[:position]:
            raise _Wrong("upstream", f"offers {name!a} twice")


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

    def one_of(self, name: str, values: tuple[str, ...]) -> str:
        """One of these values; the first if it is missing."""
        value = self.text(name, values[0])
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
    list: "an array of tables",
}
