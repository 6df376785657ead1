"""Formats times, money and addresses for pages. The templates import these functions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from store.clock import wall
from store.moments import timestamp

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

MINUS = "\N{MINUS SIGN}"
_JUST_NOW = timedelta(seconds=45)
_STEPS = (
    (timedelta(minutes=1), "minute", timedelta(hours=1)),
    (timedelta(hours=1), "hour", timedelta(days=1)),
    (timedelta(days=1), "day", timedelta(days=31)),
)


def _utc(at: datetime) -> datetime:
    """`at` in UTC. A naive time is refused, because it would be read in the host's time zone."""
    if at.tzinfo is None:
        raise ValueError("a time shown on a page needs a time zone")
    return at.astimezone(UTC)


def ago(at: datetime, now: datetime | None = None) -> str:
    """How long before `now` (default: the present) `at` was: "just now", "5 minutes ago"; beyond 31 days, the day.

    A time ahead of `now` by more than 45 seconds reads "in 5 minutes". Raises ValueError for a naive time.
    """
    moment = _utc(now) if now else wall.utc()
    passed = moment - _utc(at)
    length = abs(passed)
    if length < _JUST_NOW:
        return "just now"
    for unit, word, end in _STEPS:
        if length < end:
            count = max(1, length // unit)
            words = f"{count} {word}" if count == 1 else f"{count} {word}s"
            return f"{words} ago" if passed > timedelta() else f"in {words}"
    return day(at)


def until(at: datetime, now: datetime | None = None) -> str:
    """How long after `now` (default: the present) `at` is: "in 5 minutes"; "in a moment" for less than 45 seconds and
    for what is past. Raises ValueError for a naive time."""
    moment = _utc(now) if now else wall.utc()
    return ago(at, moment) if _utc(at) - moment >= _JUST_NOW else "in a moment"


def day(at: datetime) -> str:
    """The UTC day of `at` in words: "3 October 2026". Raises ValueError for a naive time."""
    utc = _utc(at)
    return f"{utc.day} {_MONTHS[utc.month - 1]} {utc.year}"


def exact(at: datetime) -> str:
    """`at` to the second: "3 October 2026, 14:05:09 UTC". Raises ValueError for a naive time."""
    return f"{day(at)}, {_utc(at):%H:%M:%S} UTC"


def iso(at: datetime) -> str:
    """`at` as RFC 3339 in UTC with milliseconds, for the `datetime` attribute. Raises ValueError for a naive time."""
    return timestamp(_utc(at))


def web_link(address: str | None) -> str | None:
    """`address` if it is safe as a link on our pages (http or https, with a host), else None."""
    if not address:
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return address if parts.scheme in ("http", "https") and parts.hostname else None


def initial(name: str) -> str:
    """The letter on the badge of `name`; a dot if it has no letter to show."""
    return next((letter.upper() for letter in name if letter.isalnum()), "·")[:1]


def size(number: int) -> str:
    """A number of bytes for people: "1 byte", "812 bytes", "1.5 KiB", "64 MiB"."""
    if number < 1024:
        return "1 byte" if number == 1 else f"{number} bytes"
    amount, unit = number / 1024, "KiB"
    for larger in ("MiB", "GiB"):
        if amount < 1023.95:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def counted(number: int, what: str) -> str:
    """A number and its noun: "1 document", "12,000 documents"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def money(micro: int, places: int = 2) -> str:
    """An exact amount of micro-dollars: "$4.99", "$0.00015", "$1,250.00", with a minus in front if negative; at least
    `places` digits after the point."""
    whole, _, part = plain_dollars(abs(micro)).partition(".")
    return f"{MINUS if micro < 0 else ''}${int(whole):,}.{part.ljust(places, '0')}"


def cents(micro: int) -> str:
    """An amount of micro-dollars to the cent, rounded down: "$4.99"."""
    return money(micro // 10_000 * 10_000)


def money_places(amounts: Iterable[int]) -> int:
    """The digits after the point with which all these amounts are exact, so that they align in a column."""
    return max((len(plain_dollars(abs(amount)).partition(".")[2]) for amount in amounts), default=2)


def plain_dollars(micro: int) -> str:
    """A non-negative amount of micro-dollars in dollars: "4.99", "1250.00", "0.00015"."""
    whole, part = divmod(micro, 1_000_000)
    decimals = f"{part:06d}"
    return f"{whole}.{decimals[:2]}{decimals[2:].rstrip('0')}"


def money_field(micro: int | None) -> str:
    """A non-negative amount of micro-dollars for a form field: "4.99", "1250.00"; empty for None. "1.234" becomes
    "1.2340": `handlers.core.amounts` refuses a point that could divide thousands."""
    if micro is None:
        return ""
    text = plain_dollars(micro)
    return f"{text}0" if micro >= 1_000_000 and text[-4] == "." else text
