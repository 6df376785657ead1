"""A tour in another language: its texts are read back as English, so the legs of the tour serve all languages.

In a language made for tests, a text that is in no catalogue is found by the missing brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from dev.words.pseudo import bare
from tests.support.browser.tour_kit import Seen, Stand, Tour
from tests.support.browser.webdriver import Chromium

# Lists to choose from name places. Code, and texts that say that they are English, are in no catalogue.
_SAID = """
for (const one of document.querySelectorAll("select, pre, body [lang=en]")) one.style.display = "none";
return [...document.querySelectorAll("body *")].flatMap((one) =>
  ["alt", "aria-label", "aria-description", "placeholder", "title"].map((name) => one.getAttribute(name)))
  .filter(Boolean).concat(document.title, document.body.innerText.replaceAll("\\n", "\\f"));
"""
# The style sheet arranges pages by the direction that the document has.
_TURN = "const all = document.documentElement; all.dir = all.dir === 'rtl' ? 'ltr' : 'rtl'"
_SENTENCE = re.compile(r"[A-Za-z’']{2,}[,:;]? [A-Za-z’']{2,}")


_NAMED = "//*[self::button or self::a or self::summary]"
_NAMES = """
return [...document.querySelectorAll("button, a, summary")].map((one) => one.textContent);
"""


class ForeignChromium(Chromium):
    """A browser whose pages read as English ones. `english` says what a text means."""

    def __init__(self, english: Callable[[str], str]) -> None:
        super().__init__(windowless=True)
        self._english = english

    @property
    def text(self) -> str:
        """The text of the page in English."""
        return self._english(super().text)

    def click(self, words: str) -> None:
        """Clicks the button, link or summary with this text, in English or as a person chose it."""
        self.wait_until_ready()
        names = [" ".join(self._english(name).split()) for name in self.run(_NAMES)]
        place = next((place for place, name in enumerate(names, 1) if words in name), None)
        assert place, f"nothing is named {words}: {names}"
        self.press_on(f"({_NAMED})[{place}]")


class ForeignTour(Tour):
    """A tour that looks for what does not fit, and for texts in no catalogue: all but `others`, which people chose.
    Without `others` the language is one that people speak, and any text will do."""

    def __init__(
        self,
        stand: Stand,
        browser: Chromium,
        shots: Path | None = None,
        *,
        others: re.Pattern[str] | None = None,
        skipped: tuple[str, ...] = (),
    ) -> None:
        super().__init__(stand, browser, shots)
        self._others, self._skipped = others, skipped

    def look(self, name: str) -> Seen:
        """The checks of the current page."""
        self.take_pictures(name)
        if self._others is None or name.startswith(self._skipped):
            return Seen(name, self.route(), 0, frozenset(), (), tuple(self.burst(name)))
        burst = self.burst(name, _TURN)
        texts = [line for text in self.browser.run(_SAID) for line in bare(text).split("\f")]
        loose = [f"{name}: {text}" for text in texts if _SENTENCE.search(self._others.sub("", text))]
        return Seen(name, self.route(), 0, frozenset(), (), tuple(burst), tuple(loose))
