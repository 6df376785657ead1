"""Pages in the language and the time zone of their reader.

The language is the first that is here of: those of the app's request (`ui_locales`), the person's choice, those of the
browser (`Accept-Language`), English. A page knows the choice from the profile that it shows anyway; a page without one
knows it from a cookie, so no page asks the store for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from typing import Any

from handlers.core.base import BaseHandler
from handlers.core.words.choosing import UI_LOCALES, accepted, listed, ui_locales
from handlers.core.words.languages import Language
from handlers.core.words.wording import Wording, names_of
from handlers.core.words.zones import zone_of
from store.lifetimes import DAY
from store.results import Preferences

LANGUAGE_COOKIE = "language"
ZONE_COOKIE = "zone"
"""What a script of the page says of the browser's time zone."""
KEPT = 400 * DAY
"""The longest time that browsers keep a cookie."""


class WordedPage(BaseHandler):
    """A page with words."""

    asked_languages: Sequence[str] = ()
    """The languages that the app's request asks for, where its address does not say so."""

    def speak(self, pairs: Iterable[tuple[str, str]]) -> None:
        """From here on this request's page is in the languages that these parameters ask for."""
        self.asked_languages = listed(dict(pairs).get(UI_LOCALES, ""))

    def preferred(self, preferences: Preferences | None) -> Language | None:
        """The language of the app's request or the person's choice; None without either. `preferences` are those of the
        person who is signed in, if they are known."""
        languages = self.site.languages
        asked = self.asked_languages or ui_locales(self.request.uri or "") or ui_locales(self._onward())
        if asked and (found := languages.closest(asked)):
            return found
        chosen = preferences.language if preferences else self.read_cookie(LANGUAGE_COOKIE)
        return languages.by_code.get(chosen or "")

    def get_user_locale(self) -> Language | None:
        """As `preferred`, for a page that knows nobody's preferences."""
        return self.preferred(None)

    def get_browser_locale(self, default: str = "en_US") -> Language:
        """The language that the browser asks for. Tornado's method would parse any header."""
        languages = self.site.languages
        return languages.closest(accepted(self.request.headers.get("Accept-Language", ""))) or languages.default

    def wording(self, preferences: Preferences | None = None) -> Wording:
        """How this request's reader is spoken to."""
        return Wording(self.preferred(preferences) or self.get_browser_locale(), self.zone(preferences))

    def zone(self, preferences: Preferences | None) -> tzinfo:
        """The person's choice, else the browser's zone if a script could tell it, else UTC."""
        chosen = zone_of(preferences.zone) if preferences and preferences.zone else None
        return chosen or zone_of(self.read_cookie(ZONE_COOKIE) or "") or UTC

    def speak_to(self, person: object) -> dict[str, Any]:
        """What templates use to speak to the reader of this page: a person with `preferences`, or None. The head of the
        answer then says which language that is."""
        preferences = getattr(person, "preferences", None)
        wording = self.wording(preferences)
        self.locale = wording.language
        self.set_header("Content-Language", wording.language.tag)
        self.set_header("Vary", "Accept-Language, Cookie")
        if preferences is not None:
            self.remember(preferences.language)
        return names_of(wording)

    def remember(self, language: str) -> None:
        """Keeps the person's choice in this browser, for pages that know nobody."""
        if language != (self.read_cookie(LANGUAGE_COOKIE) or ""):
            self.write_cookie(LANGUAGE_COOKIE, language or None, KEPT)

    def _onward(self) -> str:
        """The address that this page goes on to."""
        sent = self.request.arguments.get("next", [])
        return sent[0].decode("utf-8", "replace") if len(sent) == 1 else ""
