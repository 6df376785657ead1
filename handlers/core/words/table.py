"""The languages of pages and mails, as data. Each has a folder of its code in `templates/locale`.

English is the language of the source: its catalogue has every message and translates none.
"""

from __future__ import annotations

from typing import NamedTuple

from babel import Locale


class LanguageRow(NamedTuple):
    """A language. `code`: the name of its folder; `tag`: its language tag (RFC 5646) in pages; `name`: what its readers
    call it; `dates` and `numbers`: the CLDR locales of dates and of numbers and money. Patterns: `hyphens` at
    which no line of a page ends, `soft` for places where a line may divide a long word, `blanks` at which no line ends,
    apart from those after numbers, `whole` for places in words, other than terms, at which no line ends; `plural`: the
    rule of plurals, where it is not CLDR's; `stop`: a full stop with room of its own, which no blank follows."""

    code: str
    tag: str
    name: str
    dates: str
    numbers: str
    hyphens: str = ""
    soft: str = ""
    plural: str = ""
    blanks: str = r"(?<=RFC) (?=\d)"
    stop: str = ""
    whole: str = ""

    @property
    def rtl(self) -> bool:
        """Whether it is written from right to left."""
        return Locale.parse(self.dates).text_direction == "rtl"


ENGLISH = LanguageRow("en", "en", "English", "en_GB", "en_US")
"""Days before months, and dollars as their own country writes them."""
LANGUAGES = (
    ENGLISH,
    LanguageRow(
        "de",
        "de",
        "Deutsch",
        "de",
        "de",
        r"(?<=\bE)-(?=Mail)|(?<=\bKI)-|(?<=\bJSON)-|-(?=(?:Apps?|ID)\b)",
        "(?<=Wiederherstellungs)(?=code)|(?<=Sicherheits)(?=protokoll)",
        blanks=r"(?<=RFC) (?=\d)|(?<=zuletzt) (?=genutzt|benutzt)",
    ),
    LanguageRow(
        *("fr", "fr", "Français", "fr", "fr"),
        hyphens=r"(?<=\b[eE])-(?=mail)|(?<=\w)-(?=(?:ci|desso?us|en|l[ae]|les|là|y)\b)",
    ),
    LanguageRow("es", "es", "Español", "es", "es"),
    LanguageRow(
        *("pt", "pt-BR", "Português (Brasil)", "pt_BR", "pt_BR"),
        hyphens=r"(?<=\b[eE])-(?=mail)|(?<=\w)-(?=(?:[lmn]?[oa]s?|se|me|lhes?)\b)",
        # CLDR counts 0 as one; people write "0 pessoas".
        plural="nplurals=2; plural=(n != 1);",
    ),
    LanguageRow(
        *("ja", "ja", "日本語", "ja", "ja"),
        # Between a number and its counter, a name and its number, or "アプリ" and "ID", and before a particle.
        blanks=r"(?<=[0-9s]) (?=\w)|(?<=[A-Za-z>]) (?=[0-9ぁ-ん])|(?<=[ァ-ヶー]) (?=ID|UR[IL])",
        stop="。",
        # Chromium's phrases divide these words, and some in katakana too, which people search, copy and quote.
        whole="(?<=もう)(?=一)|(?<=一時)(?=停止)|(?<=方)(?=法)|(?<=正方)(?=形)|"
        r"(?<=問い)(?=合わせ)|(?<=[切取]り)(?=[抜除])|(?<=〜)(?=\d|\Z)",
    ),
)
"""English first: it is for those who ask for none of these."""
