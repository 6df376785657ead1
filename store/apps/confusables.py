"""Letters and signs that look like Latin letters: the data, and one function.

A small table of our own, after the confusables of UTS 39. The rest follows from the names of characters in Unicode:
`LATIN LETTER SMALL CAPITAL L`, `CYRILLIC SMALL LETTER KA WITH DESCENDER`, `NEGATIVE SQUARED LATIN CAPITAL LETTER L`.
"""
# ruff: noqa: RUF001 - the letters that look alike are the data

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Each group reads as its first letter. It has small letters of Latin, Cyrillic, Greek, Armenian and Coptic, signs, and
# letters of scripts that are written together with Latin. A capital reads as its small letter unless _SHAPES has it.
_GROUPS = (
    "aаɑαạ@4ʌ∀∆△▲₳ⲁ",
    "bЬьƅвβ8฿₿ⲃ",
    "cсϲςⅽ¢₡₢₵ㄷ匚ↄ",
    "dԁɗ₫∂",
    "eеєҽ3əεэ€℮∑∈ⲉㅌ",
    "fƒ₣ſ",
    "gɡց96₲",
    "hһнհңћⲏㅐ廾",
    "jјյ",
    "kкκĸ₭ⲕ",
    "liıіӏιɩлλ1|!¡¦∣ǀǃ£₤ⲓⳑㅣᅵ丨ㄥ乚ㄴᄂاוןﺎ",
    "mмⲙ₥",
    "nпոηŋ₦几∩ח",
    "oоοօ0ჿɵ٥۵סهഠଠဝዐㅇᄋᆼ口ロ囗〇○◯●⭕∅σ",
    "pрρ₱₽ⲣ",
    "qԛզ",
    "rгɾ₹ⲅ",
    "sѕʂ5$ƨƽ₴§💲ร",
    "tтτ7₮✝†ⲧㅜ丁ㄒፐ",
    "uυսцʊ∪ㄩ凵ሀ",
    "vνѵ√ט",
    "wԝѡωաɯ₩ሠ",
    "xхχ×❌✕✖ⲭ乂メ",
    "yуүγʏɥ¥丫ㄚⲩ",
    "zʐ2ʒⲍ",
)
# Capitals that look like another letter than their small ones do, and letters of imitation scripts, by shape.
_SHAPES = (
    ("ΗΥΝΜΖΛΣՏԼՍՕ", "hynmzlesluo"),
    ("ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ", "bpdtgkjczfmnlsrvhwxyaelou"),
    ("ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᏀᎽᏃᏎᏏᏒᏔᏕᏙᏚᏞᏟᏢᏦᏴᏳᏂᏫᏮ", "drtiyajewmhgyzabrwsvslcpkbghob"),
    ("ⲞⲟⲚⲛⲤⲥϹ", "oonnccc"),
)
_LETTERS = {char: group[0] for group in _GROUPS for char in group}
for _theirs, _ours in _SHAPES:
    _LETTERS |= {char: _LETTERS.get(letter, letter) for char, letter in zip(_theirs, _ours, strict=True)}

_LATIN = re.compile(
    r"(?:(?:CROSSED )?(?:NEGATIVE )?(?:SQUARED|CIRCLED) )?LATIN (?:SMALL |CAPITAL |EPIGRAPHIC )?LETTER (?:[A-Z-]+ )*?"
    r"([A-Z]{1,2})(?: WITH .+)?|REGIONAL INDICATOR SYMBOL LETTER ([A-Z])|TURNED (?:CAPITAL|SMALL) ([A-Z])"
)
_OTHERS = re.compile(r"((?:CYRILLIC|GREEK|COPTIC|ARMENIAN) SMALL LETTER )(?:[A-Z-]+ )*?([A-Z-]+)(?: WITH .+)?")


def is_shape(char: str) -> bool:
    """Whether the table has this very character, so that decomposing it would lose its shape."""
    return char in _LETTERS


@lru_cache(maxsize=4096)
def letters_of(char: str) -> str:
    """The small Latin letter or letters that a character looks like.

    A letter or digit that looks like none is returned itself, in lower case. For marks, spaces and signs that look like
    none the result is "". `char` is one code point of a decomposed text.
    """
    if char in _LETTERS:
        return _LETTERS[char]
    if (folded := char.casefold()) != char:
        return "".join(_LETTERS.get(one) or _named(one) for one in folded)
    return _named(char)


def _named(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] in "MCZ" or category == "Lm":
        return ""
    if (digit := unicodedata.decimal(char, None)) is not None:
        return _LETTERS.get(str(digit), str(digit))
    name = unicodedata.name(char, "")
    if found := _LATIN.fullmatch(name):
        return "".join(_LETTERS.get(one, one) for one in "".join(filter(None, found.groups())).lower())
    if found := _OTHERS.fullmatch(name):
        plain = _lookup(found[1] + found[2])
        return _LETTERS.get(plain, char)
    return char if char.isalnum() else ""


def _lookup(name: str) -> str:
    try:
        return unicodedata.lookup(name)
    except KeyError:
        return ""
