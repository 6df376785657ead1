"""How a page or mail speaks to one person: the language, and the zone of its times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any

from babel.lists import format_list
from tornado.escape import xhtml_escape

from handlers.core.words import formats
from handlers.core.words.html import AUTOESCAPE, Html, encoded, parted, shown, unbroken
from handlers.core.words.languages import Language, together
from runtime.http.tornado_private import ENCODER
from store.clock import wall
from store.moments import timestamp
from store.phrases import Phrase

NBSP = "\u00a0"
"""Keeps what stands around it in one line."""
_MADE_FOR_A_FIELD = re.compile(r"0\.[0-9]{2,6}|[0-9]+\.[0-9]{2}(?:[0-9]{2,4})?")
_JUST_NOW = timedelta(seconds=45)
_SIZES = (Phrase("%(number)s KiB"), Phrase("%(number)s MiB"), Phrase("%(number)s GiB"))


def aware(at: datetime) -> datetime:
    """`at` in UTC. A naive time is refused, because it would be read in the host's time zone."""
    if at.tzinfo is None:
        raise ValueError("a time shown on a page needs a time zone")
    return at.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Wording:
    """A language and a zone. Every method that takes a time raises ValueError for a naive one."""

    language: Language
    zone: tzinfo = UTC

    def names(self) -> dict[str, Any]:
        """What templates of pages use of this."""
        language = self.language
        return {
            "_": language.html,
            "_n": language.html_n,
            "lang": language.tag,
            "dir": language.direction,
            AUTOESCAPE: shown,
            ENCODER: self.encoded,
            "unbroken": self.unbroken,
            "parted": self.parted,
            "together": together,
            **{name: getattr(self, name) for name in FORMATS},
        }

    def plain_names(self) -> dict[str, Any]:
        """What templates of mails use of this."""
        language = self.language
        return {**self.names(), "_": language.plain, "_n": language.plain_n, ENCODER: self.encoded_plain}

    def encoded(self, value: Any) -> bytes:
        """A value of a template in UTF-8; messages are translated."""
        return encoded(self.language.say(value, on_page=True) if type(value) is Phrase else value)

    def encoded_plain(self, value: Any) -> bytes:
        """The same in a text that is no HTML."""
        return encoded(self.say(value) if type(value) is Phrase else value)

    def unbroken(self, text: str | Phrase) -> Html:
        """A text or message of which no line ends at a hyphen."""
        return unbroken(self.language.say(text, on_page=True) if isinstance(text, Phrase) else text)

    def parted(self, text: str | Phrase) -> Html:
        """An address, or a text or message with addresses, with places for the ends of lines."""
        return parted(self.language.say(text, on_page=True) if isinstance(text, Phrase) else text)

    def day(self, at: datetime) -> str:
        """The day of `at` in words: "3 October 2026"."""
        return formats.day(self.language.row.dates, aware(at).astimezone(self.zone).date())

    def exact(self, at: datetime) -> str:
        """`at` to the second: "3 October 2026, 14:05:09 UTC"."""
        return formats.exact(self.language.row.dates, aware(at).astimezone(self.zone))

    def ago(self, at: datetime, now: datetime | None = None) -> str:
        """How long before `now` (default: the present) `at` was: "just now", "5 minutes ago"; beyond 31 days, the day.
        A time ahead of `now` by more than 45 seconds reads "in 5 minutes"."""
        _, _n = self.language.plain, self.language.plain_n
        passed = (aware(now) if now else wall.utc()) - aware(at)
        length = abs(passed)
        if length < _JUST_NOW:
            return _("just now")
        past = passed > timedelta()
        if length < timedelta(hours=1):
            count = max(1, length // timedelta(minutes=1))
            if past:
                return _n("%(count)s minute ago", "%(count)s minutes ago", count)
            return _n("in %(count)s minute", "in %(count)s minutes", count)
        if length < timedelta(days=1):
            count = length // timedelta(hours=1)
            if past:
                return _n("%(count)s hour ago", "%(count)s hours ago", count)
            return _n("in %(count)s hour", "in %(count)s hours", count)
        if length < timedelta(days=31):
            if past:
                return _n("%(count)s day ago", "%(count)s days ago", length.days)
            return _n("in %(count)s day", "in %(count)s days", length.days)
        return self.day(at)

    def until(self, at: datetime, now: datetime | None = None) -> str:
        """How long after `now` (default: the present) `at` is: "in 5 minutes"; "in a moment" for less than 45 seconds
        and for what is past."""
        _, moment = self.language.plain, aware(now) if now else wall.utc()
        return self.ago(at, moment) if aware(at) - moment >= _JUST_NOW else _("in a moment")

    def say(self, text: str) -> str:
        """A text for people in this language."""
        return self.language.say(text)

    def listing(self, texts: Iterable[str]) -> str:
        """Texts for people, one after the other: "Red, Green and Blue"."""
        said = [self.language.say(text) for text in texts]
        # Babel lacks patterns of CLDR's other styles in many locales, and would raise KeyError.
        return format_list(said, "standard", self.language.row.dates)

    def when(self, at: datetime, words: Callable[[datetime], str] | None = None) -> Html:
        """The element of a time: `words` of it, by default `ago`, with the exact time where they don't say it. The
        stylesheet keeps words with such a title in one line."""
        said, exact = xhtml_escape((words or self.ago)(at)), xhtml_escape(self.exact(at))
        title = "" if said == exact else f' title="{exact}"'
        return Html(f'<time datetime="{timestamp(aware(at))}"{title}>{said if title else self._exact(at)}</time>')

    def utc_day(self, on: date) -> Html:
        """The element of a day of UTC, in words and in one line: "3 October 2026"."""
        return Html(f'<time datetime="{on}" class="whole">{formats.day(self.language.row.dates, on)}</time>')

    def stamp(self, at: datetime) -> Html:
        """The element of a time in a record: the exact time, and for the last month how long ago that is."""
        said = self.ago(at)
        past = "" if said == self.day(at) else f'{NBSP}· <span class="whole">{xhtml_escape(said)}</span>'
        return Html(f'<time datetime="{timestamp(aware(at))}">{self._exact(at)}{past}</time>')

    def _exact(self, at: datetime) -> str:
        """The exact time as HTML. Lines end between its day and its clock only."""
        before, day, clock = xhtml_escape(self.exact(at)).partition(xhtml_escape(self.day(at)))
        return f'{before}<span class="whole">{day}</span>{NBSP.join(clock.rsplit(" ", 1))}'

    def money(self, micro: int, places: int = 2) -> str:
        """An exact amount of micro-dollars: "$4.99", "$0.00015", "$1,250.00", with a minus in front if negative; at
        least `places` digits after the point."""
        return formats.money(self.language.row.numbers, micro, places)

    def cents(self, micro: int) -> str:
        """An amount of micro-dollars to the cent, rounded down: "$4.99"."""
        return self.money(micro // 10_000 * 10_000)

    def total(self, micro: int) -> str:
        """A balance or a sum of micro-dollars, rounded down to the cent: "$4.99". Below a cent it is exact, so that it
        doesn't read as nothing."""
        return self.money(micro) if 0 < micro < 10_000 else self.cents(micro)

    def money_typed(self, amount: str) -> str:
        """An amount of `money_field` as the reader types it: "4.99", "4,99". What else a person typed stays."""
        if not _MADE_FOR_A_FIELD.fullmatch(amount):
            return amount
        return amount.replace(".", formats.decimal_sign(self.language.row.numbers))

    def size(self, number: int) -> str:
        """A number of bytes for people: "1 byte", "812 bytes", "1.5 KiB", "64 MiB"."""
        if number < 1024:
            _n = self.language.plain_n
            return _n("%(count)s byte", "%(count)s bytes", number).replace(" ", NBSP)
        amount, unit = number / 1024, 0
        while amount >= 1023.95 and unit < 2:
            amount, unit = amount / 1024, unit + 1
        said = self.language.say(_SIZES[unit].filled(number=formats.tenths(self.language.row.numbers, amount)))
        return said.replace(" ", NBSP)

    def decimal(self, number: float) -> str:
        """A number with at most three decimals: "0.225"."""
        return formats.decimal(self.language.row.numbers, number)

    def percent(self, share: int) -> str:
        """A whole number of hundredths: "50%"."""
        return formats.percent(self.language.row.numbers, share)


FORMATS = (
    "day",
    "exact",
    "ago",
    "until",
    "when",
    "utc_day",
    "stamp",
    "money",
    "cents",
    "total",
    "money_typed",
    "size",
    "decimal",
    "percent",
    "say",
    "listing",
)
"""The methods of `Wording` that templates call by these names."""


@lru_cache(maxsize=256)
def names_of(wording: Wording) -> dict[str, Any]:
    """The names of a wording for pages, made once. Not to be changed."""
    return wording.names()
