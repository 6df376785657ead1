"""What an account that its person took back did to their apps and APIs, in words."""

from __future__ import annotations

from store.phrases import Phrase


def taken_back_phrase(*, off: bool, ended: bool) -> Phrase:
    """The end of a line that names the app. `off`: it was switched off; `ended`: newer client secrets were ended."""
    if off and ended:
        return Phrase("switched off because it was changed; newer client secrets no longer work")
    return Phrase("switched off because it was changed") if off else Phrase("newer client secrets no longer work")
