"""Ready-made receivers of webhooks, the same code as in docs/webhooks.md."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from store.phrases import Phrase

FOLDER = Path(__file__).resolve().parent.parent.parent / "templates" / "developer" / "receivers"
_NEEDS = {
    "python": ("Python", Phrase("Python 3.9 or newer, nothing to install.")),
    "javascript": ("Node", Phrase("Node 18 or newer, saved as receiver.mjs.")),
    "go": ("Go", Phrase("Go 1.19 or newer, run with “go run receiver.go”.")),
    "php": ("PHP", Phrase("PHP 8 behind any web server.")),
}


class Receiver(NamedTuple):
    """A whole receiver in one language. `needs`: what it runs on."""

    name: str
    language: str
    needs: Phrase
    code: str


@cache
def receivers() -> tuple[Receiver, ...]:
    """The receivers, in the order in which they are shown."""
    return tuple(Receiver(name, *words, (FOLDER / name).read_text("utf-8")) for name, words in _NEEDS.items())
