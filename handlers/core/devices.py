"""The name of a device, from its User-Agent; nothing else of the User-Agent is kept. The browser can send anything: the
name helps people recognize a device, and proves nothing."""

from __future__ import annotations

import re

from store.phrases import Phrase

# The first match counts: most browsers also name those whose engine they share.
_BROWSERS = (
    (r"\bEdg(?:e|A|iOS)?/", "Edge"),
    (r"\b(?:OPR|Opera|OPiOS)/", "Opera"),
    (r"\bVivaldi/", "Vivaldi"),
    (r"\bSamsungBrowser/", "Samsung Internet"),
    (r"\bDuckDuckGo/", "DuckDuckGo"),
    (r"\b(?:Firefox|FxiOS)/", "Firefox"),
    (r"\b(?:Chrome|CriOS|HeadlessChrome)/", "Chrome"),
    (r"\bChromium/", "Chromium"),
    (r"\bSafari/", "Safari"),
    (r"^curl/", "curl"),
)
_READ = 1024
"""Characters of a User-Agent that are read. Real ones have about 150."""
_MOST = 60
"""Characters kept of an unknown User-Agent, because a session with short texts takes half the memory."""
_SYSTEMS = (
    (r"\biPhone\b", "iPhone"),
    (r"\biPad\b", "iPad"),
    (r"\bAndroid\b", "Android"),
    (r"\bCrOS\b", "ChromeOS"),
    (r"\bWindows\b", "Windows"),
    (r"\b(?:Macintosh|Mac OS X)\b", "a Mac"),
    (r"\bLinux\b|\bX11\b", "Linux"),
)


_BROWSER_NAMES, _SYSTEM_NAMES = ({name for _, name in known} for known in (_BROWSERS, _SYSTEMS))


def device_words(agent: str) -> str:
    """Browser and system of a User-Agent: "Firefox on Linux". If neither is known, the beginning of the User-Agent."""
    agent = agent[:_READ]
    browser, system = _first(_BROWSERS, agent), _first(_SYSTEMS, agent)
    if browser and system:
        return f"{browser} on {system}"
    printable = "".join(char for char in agent[:_MOST] if char.isprintable())
    return browser or (f"A browser on {system}" if system else printable.strip() or "An unknown device")


def device_phrase(name: str) -> str:
    """The name of a device as pages show it: most parts of it are names in every language."""
    browser, on, system = name.partition(" on ")
    if name == "An unknown device":
        return Phrase("An unknown device")
    if not on or system not in _SYSTEM_NAMES:
        return name
    named = Phrase("a Mac") if system == "a Mac" else system
    if browser == "A browser":
        return Phrase("A browser on %(system)s", system=named)
    return Phrase("%(browser)s on %(system)s", browser=browser, system=named) if browser in _BROWSER_NAMES else name


def _first(known: tuple[tuple[str, str], ...], agent: str) -> str:
    return next((words for pattern, words in known if re.search(pattern, agent)), "")
