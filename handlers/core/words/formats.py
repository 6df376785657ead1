"""Dates, times and money as CLDR has them. What pages show often is kept, since Babel takes 5 to 30 µs for it."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache

from babel import Locale
from babel.dates import format_date, get_datetime_format, get_timezone_name
from babel.numbers import format_currency, format_decimal

MINUS = "\N{MINUS SIGN}"


@cache
def _locale(code: str) -> Locale:
    return Locale.parse(code)


@lru_cache(maxsize=4096)
def day(locale: str, on: date) -> str:
    """A day in words: "3 October 2026"."""
    return format_date(on, "long", locale=_locale(locale))


def exact(locale: str, at: datetime) -> str:
    """A time of a zone to the second: "3 October 2026, 14:05:09 UTC"."""
    known = _locale(locale)
    clock = known.time_formats["medium"].apply(at, known)
    return _glue(locale).format(f"{clock} {_zone(locale, at)}", day(locale, at.date()))


@cache
def _glue(locale: str) -> str:
    return str(get_datetime_format("medium", locale=_locale(locale)))


_ZONES: dict[tuple[str, str, timedelta | None], str] = {}
_MOST_ZONES = 4096


def _zone(locale: str, at: datetime) -> str:
    """The short name of the zone at that time: "UTC", "CEST", or its distance from UTC."""
    key = locale, str(at.tzinfo), at.utcoffset()
    found = _ZONES.get(key)
    if found is None:
        found = get_timezone_name(at, "short", locale=_locale(locale))
        if len(_ZONES) < _MOST_ZONES:
            _ZONES[key] = found
    return found


@lru_cache(maxsize=4096)
def money(locale: str, micro: int) -> str:
    """An exact amount of micro-dollars: "$4.99", "$0.00015", with a minus in front if negative."""
    amount = Decimal(abs(micro)).scaleb(-6).normalize()
    shown = format_currency(amount, "USD", locale=_locale(locale), decimal_quantization=False)
    return shown if micro >= 0 else MINUS + shown


def number(locale: str, value: int) -> str:
    """A whole number: "12,000"."""
    return str(value) if -1000 < value < 1000 else _number(locale, value)


@lru_cache(maxsize=4096)
def _number(locale: str, value: int) -> str:
    return format_decimal(value, locale=_locale(locale))


def tenths(locale: str, value: float) -> str:
    """A number with at most one decimal: "1.5"."""
    return format_decimal(round(value, 1), "0.#", locale=_locale(locale))
