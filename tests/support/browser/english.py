"""What every template of a page can use, in English and signed out."""

from __future__ import annotations

from handlers.core.brand.brand import Brand
from handlers.core.words.html import AUTOESCAPE
from handlers.core.words.languages import shipped
from handlers.core.words.wording import Wording, names_of

__all__ = ["AUTOESCAPE", "ENGLISH", "SPOKEN"]
SPOKEN = Wording(shipped().default)
ENGLISH = {
    **names_of(SPOKEN),
    "product": "Latchkey",
    "our_brand": Brand(),
    "session_here": False,
    "zone_cookie": "zone",
    "demo_inbox": False,
    "demo": None,
}
