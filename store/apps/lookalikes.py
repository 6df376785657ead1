"""Checks for deceptive names of apps: mixed scripts, the server's own name, brands.

A skeleton (after UTS 39 4) is a name as a hurried reader sees it: without case, accents, spaces and signs, with Latin
letters in place of those that look like them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import islice

from store.apps.confusables import is_shape, letters_of
from store.apps.signs import has_phone_number, strange_sign
from store.phrases import Phrase

LONGEST = 100
"""The most characters of an app's name; a longer name is not analysed."""
PRODUCT = "Latchkey"

_PAIRS = (("rn", "m"), ("vv", "w"))
_MOST_APART = 4

BRANDS = tuple(
    """
    Adobe, Airbnb, Alibaba, Amazon, American Express, Anthropic, Apple, Atlassian, Bank of America, Barclays, Binance,
    Booking.com, ChatGPT, Cloudflare, Coinbase, DHL, Discord, DocuSign, Dropbox, eBay, Facebook, FedEx, GitHub, GitLab,
    Gmail, Google, HSBC, iCloud, Instagram, Intuit, LinkedIn, Mastercard, MetaMask, Microsoft, Netflix, Nintendo,
    Notion, Office 365, OpenAI, Outlook, PayPal, Pinterest, PlayStation, Reddit, Revolut, Salesforce, Samsung, Shopify,
    Slack, Snapchat, Spotify, Steam, Stripe, Telegram, TikTok, Twitter, Venmo, Walmart, WeChat, WhatsApp, Wikipedia,
    Yahoo, YouTube, Zendesk, Zoom
    """.replace("\n    ", " ")
    .strip()
    .split(", ")
)
# Brands that are also words, or parts of words and of other names: found as a separate word, or next to a lure.
_WORDS_TOO = frozenset(
    """
    Adobe, Amazon, Anthropic, Booking.com, Discord, GitHub, GitLab, iCloud, Intuit, LinkedIn, Notion, OpenAI, Outlook,
    Reddit, Revolut, Stripe, Telegram, Twitter, WeChat
    """.replace("\n    ", " ")
    .strip()
    .split(", ")
)
_LONG = 6
"""From this number of letters on, a brand is also found inside a word."""
_LURES = (
    """
    access, account, admin, api, app, apps, auth, bank, billing, bot, business, card, center, cloud, community,
    connect, corp, customer, desk, drive, email, free, gift, group, help, helpdesk, inc, id, login, mail, market,
    my, oauth, official, online, pay, payment, payments, plus, portal, pro, real, refund, safe, secure, security,
    service, services, shop, sign, signin, signup, sso, store, support, team, the, user, verification, verified,
    verify, wallet, web
    """.replace("\n    ", " ")
    .strip()
    .split(", ")
)

_JAPANESE, _KOREAN, _CHINESE = {"HIRAGANA", "KATAKANA", "HAN"}, {"HANGUL", "HAN"}, {"BOPOMOFO", "HAN"}
# UTS 39 5.2: scripts that one language mixes, and scripts allowed with Latin because few of their letters look Latin.
_BESIDE_LATIN = (
    *("ARABIC", "BENGALI", "DEVANAGARI", "ETHIOPIC", "GUJARATI", "GURMUKHI", "HEBREW", "KANNADA", "KHMER", "LAO"),
    *("MALAYALAM", "MYANMAR", "ORIYA", "SINHALA", "TAMIL", "TELUGU", "THAANA", "THAI", "TIBETAN"),
)
_TOGETHER = tuple(
    frozenset({"LATIN", *some}) for some in (_JAPANESE, _KOREAN, _CHINESE, *([one] for one in _BESIDE_LATIN))
)
RECOMMENDED = frozenset({"ARMENIAN", "CYRILLIC", "GEORGIAN", "GREEK"}).union(*_TOGETHER)
"""The scripts in everyday use (UAX 31, table 5). All others are historic or have few users: "excluded", "limited"."""
_NAMED_OTHERWISE = {
    "CJK": "HAN",
    "IDEOGRAPHIC": "HAN",
    "KATAKANA-HIRAGANA": "",
    "VERTICAL": "",
    "MODIFIER": "",
    "ARABIC-INDIC": "ARABIC",
}
# Invisible: fillers, the grapheme joiner, vowels and selectors of Khmer and Mongolian, the blank of Braille.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0")
# Words that the consent page puts next to an app's name (templates/base/app_mark.html).
_WORD = "verified"
_PHRASES = ("it controls", "by the operator", "operator of this", "of this server", "nobody has checked")
_TRADEMARKS = str.maketrans(dict.fromkeys("™℠®©℗🄬", " "))


def check_honest_name(name: str, own: str = PRODUCT) -> None:
    """Raises ValueError for an app's name that would deceive people. `own`: the server's name, as pages show it.

    Such a name has the server's own name, or one like it; words of the consent page about apps; scripts that no
    language mixes; scripts out of everyday use; invisible letters; signs that read as letters; or a telephone number.
    """
    if len(name) > LONGEST:
        raise ValueError(Phrase("A name must have 1 to %(most)s characters.", most=str(LONGEST)))
    if not _UNSEEN.isdisjoint(name):
        raise ValueError(Phrase("A name can't have invisible characters."))
    if mixes_scripts(name):
        raise ValueError(Phrase("A name can't mix scripts: letters that look the same mislead people."))
    if not scripts_of(name) <= RECOMMENDED:
        raise ValueError(
            Phrase("A name can have only letters in everyday use: rare ones look like others and mislead people.")
        )
    if is_the_servers(name, own):
        raise ValueError(
            Phrase(
                "A name can't be %(name)s, or look like it: that's the name of this server.",
                name=own,
            )
        )
    if says_what_the_page_says(name):
        raise ValueError(Phrase("A name can't say whether the app is verified: this server shows that."))
    if sign := strange_sign(name):
        raise ValueError(
            Phrase("A name can't have the character %(sign)s: it looks like a letter or a check mark.", sign=sign)
        )
    if has_phone_number(name):
        raise ValueError(Phrase("A name can't have a telephone number."))


def mixes_scripts(name: str) -> bool:
    """Whether a name mixes scripts that no language writes together, such as Latin and Cyrillic."""
    found = scripts_of(name)
    return len(found) > 1 and not any(found <= together for together in _TOGETHER)


def scripts_of(name: str) -> frozenset[str]:
    """The scripts of the letters in a name's first 100 characters. Digits, signs and accents belong to every script."""
    letters = (char for char in unicodedata.normalize("NFKC", name[:LONGEST]) if unicodedata.category(char)[0] == "L")
    return frozenset(script for char in letters if (script := _script(char)))


def is_the_servers(name: str, own: str) -> bool:
    """Whether a name is or contains the server's own name, however it is written. A short name must be a word of its
    own: many words contain it."""
    word = skeleton(own)
    if not word or len(name) > LONGEST:
        return False
    if len(word) >= _LONG:
        return _spells(word, _decomposed(name))
    parts = _parts(name)
    return word in _runs(parts) or word in _words(parts)


def mistaken_for(name: str, own: str) -> str | None:
    """What an app's name looks like: the server's `own` name, unless that is empty, or a well-known brand; else None.
    An app may be older than the server's name."""
    return own if is_the_servers(name, own) else looks_like_a_brand(name)


def says_what_the_page_says(name: str) -> bool:
    """Whether a name contains the consent page's own words about apps, however they are written."""
    if len(name) > LONGEST or _spells(skeleton(_WORD), _decomposed(name)):
        return len(name) <= LONGEST
    skeletons = f" {' '.join(_words(_parts(name)))} "
    return any(f" {' '.join(map(skeleton, words.split()))} " in skeletons for words in _PHRASES)


def looks_like_a_brand(name: str) -> str | None:
    """The well-known brand that a name is, contains or looks like; None for any other name.

    A short brand, or one that is also a word, must be separate: between spaces, signs, digits or a change of case, or
    next to a word that promises something, such as "login".
    """
    if len(name) > LONGEST:
        return None
    parts = _parts(name)
    readings = [parts]
    if any(kind == "sign" for kind, _ in parts):
        readings.append([part for part in parts if part[0] != "sign"])
    found: set[str] = set()
    for reading in readings:
        words = _words(reading)
        found |= {brand for run in (*_runs(reading), *words) if (brand := _ALONE.get(run))}
        found |= {_INSIDE[one[0]] for one in map(_INSIDE_WORD.search, words) if one}
    return next((brand for brand in BRANDS if brand in found), None)


@lru_cache(maxsize=256)
def skeleton(text: str) -> str:
    """A text as a hurried reader sees it. Texts with the same skeleton look alike. Reads at most 100 characters."""
    return _joined("".join(map(letters_of, _decomposed(text[:LONGEST]))))


def _spells(word: str, text: str) -> bool:
    """Whether a text spells a word; each sign in the text may count as a letter or not."""
    reached = {0}
    for char in text:
        for letter in letters_of(char) or " ":
            moved = {at + 1 for at in reached if word[at] == letter}
            reached = {0} | moved | (reached if letter == " " or not char.isalnum() else set())
            if len(word) in reached:
                return True
    return False


def _parts(name: str) -> list[tuple[str, str]]:
    """The pieces of a name as Latin letters, each with its kind.

    Kinds: upper, lower, other (a letter without case), foreign (a letter that looks like no Latin one), digit, sign
    (one that looks like a letter), space, gap (anything else).
    """
    parts: list[tuple[str, str]] = []
    capitals = 0
    for char in _decomposed(name.translate(_TRADEMARKS)):
        letters = letters_of(char)
        if not letters and (unicodedata.category(char)[0] == "M" or char in _UNSEEN):
            continue
        kind = _kind(char, letters) if letters else "space" if char.isspace() else "gap"
        last = parts[-1][0] if parts else ""
        if kind == "lower" and last == "upper" and capitals == 1:  # "Pay": a capital belongs to the following letters
            parts[-1] = (kind, parts[-1][1] + letters)
        elif kind == "lower" and last == "upper":  # "DHLsupport", "PAYPALSupport": the last capital fits both
            text = parts.pop()[1]
            parts += [(last, text[:-1]), (last, text[-1:]), (kind, letters)]
        elif kind == last:
            parts[-1] = (kind, parts[-1][1] + letters)
        else:
            parts.append((kind, letters))
        capitals = capitals + 1 if kind == "upper" else 0
    return parts


def _runs(parts: list[tuple[str, str]]) -> set[str]:
    """The texts that consecutive pieces spell together, up to the length of the longest brand."""
    pieces = [text for _, text in parts if text]
    runs = set()
    for start in range(len(pieces)):
        run = ""
        for piece in islice(pieces, start, None):
            if not piece.isascii() or (run and len(run) + len(piece) > _LONGEST_RUN):
                break
            run += piece
            runs.add(run)
    return {_joined(run) for run in runs}


def _words(parts: list[tuple[str, str]]) -> list[str]:
    """The words between spaces, without signs that are not letters."""
    return [_joined(word) for word in "".join(" " if kind == "space" else text for kind, text in parts).split()]


def _joined(letters: str) -> str:
    """Replaces pairs of letters that look like one letter with that letter."""
    for pair, letter in _PAIRS:
        letters = letters.replace(pair, letter)
    return letters


def _decomposed(name: str) -> str:
    """A name in NFKD, except for characters whose shape decomposing would lose, and for ligatures of whole words."""
    return "".join(map(_taken_apart, name))


@lru_cache(maxsize=4096)
def _taken_apart(char: str) -> str:
    apart = unicodedata.normalize("NFKD", char)
    return char if is_shape(char) or len(apart) > _MOST_APART else apart


@lru_cache(maxsize=4096)
def _kind(char: str, letters: str) -> str:
    category = unicodedata.category(char)
    if not letters.isascii():
        return "foreign"
    if category[0] != "L":
        return "digit" if category[0] == "N" else "sign"
    return {"Lu": "upper", "Lt": "upper", "Ll": "lower"}.get(category, "other")


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """The script of a letter: the first word of its Unicode name; "" for a letter that several scripts share."""
    first = unicodedata.name(letter, "UNNAMED").partition(" ")[0]
    return _NAMED_OTHERWISE.get(first, first)


_INSIDE = {skeleton(one): one for one in BRANDS if len(skeleton(one)) >= _LONG and one not in _WORDS_TOO}
_INSIDE_WORD = re.compile("|".join(map(re.escape, _INSIDE)))
_ALONE = {
    run: brand
    for brand in BRANDS
    for lure in ("", *map(skeleton, _LURES))
    for run in (skeleton(brand) + lure, lure + skeleton(brand))
}
_LONGEST_RUN = 2 + max(len(skeleton(brand)) for brand in BRANDS)
