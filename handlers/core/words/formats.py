"""Dates, times and money as CLDR has them. What pages show often is kept, since Babel takes 5 to 30 µs for it."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache

from babel import Locale
from babel.dates import format_date, format_skeleton, get_datetime_format
from babel.numbers import format_currency, format_decimal, format_percent, get_decimal_symbol

from handlers.core.format import MINUS


@cache
def _locale(code: str) -> Locale:
    return Locale.parse(code)


@lru_cache(maxsize=4096)
def day(locale: str, on: date) -> str:
    """A day in words: "3 October 2026"."""
    return format_date(on, "long", locale=_locale(locale))


@lru_cache(maxsize=4096)
def table_day(locale: str, on: date) -> str:
    """A day for a column of a table: "3 Oct 2026"."""
    return format_date(on, "medium", locale=_locale(locale))


@lru_cache(maxsize=4096)
def short_day(locale: str, on: date) -> str:
    """A day without its year: "3 Oct"."""
    known = _locale(locale)
    return format_skeleton("MMMd", on, locale=known)


def exact(locale: str, at: datetime) -> str:
    """A time of a zone to the second: "3 October 2026, 14:05:09 UTC"."""
    known = _locale(locale)
    clock = known.time_formats["medium"].apply(at, known)
    return _glue(locale).format(f"{clock} {_zone(at)}", day(locale, at.date()))


@cache
def _glue(locale: str) -> str:
    return str(get_datetime_format("medium", locale=_locale(locale)))


def _zone(at: datetime) -> str:
    """The distance of a time's zone from UTC, which reads alike in every language: "UTC", "UTC+2", "UTC+5:30". CLDR's
    short names are not short for most zones."""
    minutes = (at.utcoffset() or timedelta()) // timedelta(minutes=1)
    hours, rest = divmod(abs(minutes), 60)
    far = f"{hours}:{rest:02d}" if rest else f"{hours}"
    return f"UTC{'+' if minutes > 0 else MINUS}{far}" if minutes else "UTC"


@lru_cache(maxsize=4096)
def money(locale: str, micro: int, places: int = 2) -> str:
    """An exact amount of micro-dollars with at least `places` digits after the point: "$4.99", "$0.00015", with a minus
    in front if negative. "20.125" becomes "20.1250": with three digits, others would read thousands."""
    if micro % 1000 == 0 and (micro % 10_000 or places == 3) and abs(micro) >= 1_000_000:
        places = max(places, 4)
    amount, pattern = Decimal(abs(micro)).scaleb(-6), _money_pattern(locale, places)
    shown = format_currency(
        amount, "USD", pattern, locale=_locale(locale), currency_digits=False, decimal_quantization=False
    )
    return shown if micro >= 0 else MINUS + shown


@cache
def _money_pattern(locale: str, places: int) -> str:
    digits = f"0.{'0' * places}" if places else "0"
    return str(_locale(locale).currency_formats["standard"].pattern).replace("0.00", digits)


@cache
def decimal_sign(locale: str) -> str:
    """What stands before the decimals of a number: ".", ","."""
    return get_decimal_symbol(_locale(locale))


def number(locale: str, value: int) -> str:
    """A whole number: "12,000"."""
    return str(value) if -1000 < value < 1000 else _number(locale, value)


@lru_cache(maxsize=4096)
def _number(locale: str, value: int) -> str:
    return format_decimal(value, locale=_locale(locale))


def decimal(locale: str, value: float) -> str:
    """A number with at most three decimals: "0.225"."""
    return format_decimal(round(value, 3), "0.###", locale=_locale(locale))


def percent(locale: str, share: int) -> str:
    """A whole number of hundredths: "50%"."""
    return format_percent(Decimal(share) / 100, locale=_locale(locale))


def tenths(locale: str, value: float) -> str:
    """A number with at most one decimal: "1.5"."""
    return format_decimal(round(value, 1), "0.#", locale=_locale(locale))
