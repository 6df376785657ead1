"""A tour in a language that is made from the English one: its texts are read back as English.

So the legs of the tour serve all languages. A text that is in no catalogue is found by the missing brackets.
"""

from __future__ import annotations

import re

from dev.words.pseudo import accented, bare, plain
from tests.support.browser.tour_kit import Seen, Tour
from tests.support.browser.webdriver import Chromium

# Lists to choose from name places. Code, and texts that say that they are English, are in no catalogue.
_SAID = """
for (const one of document.querySelectorAll("select, pre, body [lang=en]")) one.style.display = "none";
return [...document.querySelectorAll("body *")].flatMap((one) =>
  ["alt", "aria-label", "aria-description", "placeholder", "title"].map((name) => one.getAttribute(name)))
  .filter(Boolean).concat(document.title, document.body.innerText.replaceAll("\\n", "\\f"));
"""
_SENTENCE = re.compile(r"[A-Za-z’']{2,}[,:;]? [A-Za-z’']{2,}")


class ForeignChromium(Chromium):
    """A browser whose pages read as English ones."""

    @property
    def text(self) -> str:
        """The text of the page in English."""
        return plain(super().text)

    def click(self, words: str) -> None:
        """Clicks the button, link or summary with this text, which may also be a value that a person chose."""
        self.wait_until_ready()
        named = " or ".join(f'contains(normalize-space(), "{text}")' for text in (words, accented(words)))
        self.press_on(f"//*[self::button or self::a or self::summary][{named}]")


class ForeignTour(Tour):
    """A tour that looks for texts in no catalogue and for what does not fit. `others`: texts that people chose."""

    def __init__(self, *arguments: object, others: re.Pattern[str], skipped: tuple[str, ...]) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # as they come
        self._others, self._skipped = others, skipped

    def look(self, name: str) -> Seen:
        """The checks of the current page."""
        texts = [line for text in self.browser.run(_SAID) for line in bare(text).split("\f")]
        loose = [f"{name}: {text}" for text in texts if _SENTENCE.search(self._others.sub("", text))]
        loose = [] if name.startswith(self._skipped) else loose
        return Seen(name, self.route(), 0, frozenset(), (), tuple(self.burst(name)), tuple(loose))
