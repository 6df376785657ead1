"""Deceptive app names: mixed scripts, the product's own name, lookalikes of brands."""
# ruff: noqa: RUF001 - names that deceive are the cases

from __future__ import annotations

import re
import sys
from contextlib import suppress

import pytest

from handlers.core.brand.brand import PRODUCT
from store.apps import lookalikes
from store.apps.lookalikes import BRANDS, check_honest_name, looks_like_a_brand, mixes_scripts, skeleton
from tests.support.browser.pages import ROOT
from tests.support.lists.offenders import each


@each(
    ("name", "mixed"),
    [
        pytest.param("Weather Diary 2", False, id="Latin"),
        pytest.param("Дневник погоды", False, id="Cyrillic alone"),
        pytest.param("P\u0430yments", True, id="a Cyrillic letter in a Latin word"),
        pytest.param("Diary Дневник", True, id="a Latin and a Cyrillic word"),
        pytest.param("Diarу", True, id="a Cyrillic y at the end"),
        pytest.param("Αlpha Notes", True, id="a Greek capital"),
        pytest.param("天気 diary ひらがな カタカナー", False, id="Japanese with Latin"),
        pytest.param("날씨 漢字 notes", False, id="Korean with Latin"),
        pytest.param("ひらがな 날씨", True, id="Japanese and Korean"),
        pytest.param("یادداشت Notes", False, id="Arabic with Latin"),
        pytest.param("מזג ไทย", True, id="Hebrew and Thai"),
        pytest.param("Ꭰiary", True, id="a Cherokee letter"),
        pytest.param("Café Zoë — 24/7 ☀", False, id="accents, digits and signs"),
        pytest.param("ＤＩＡＲＹ diary", False, id="fullwidth Latin"),
        pytest.param("µm ruler", True, id="a micro sign, which is Greek"),
    ],
)
def test_mixed_scripts_are_detected(name: str, mixed: bool) -> None:
    assert mixes_scripts(name) == mixed


@each(
    "name",
    [
        *("Latchkey", "LATCHKEY", "  latch key ", "L a t c h k e y", "Latchkey Support", "Lаtсhkеу", "Latchk\u00e9y"),
        *(
            "l4tchk3y",
            "Iatchkey",
            "1atchkey",
            "|atchkey",
            "ＬＡＴＣＨＫＥＹ",
            "Latch\u00adkey",
            "𝓛atchkey",
            "L@tchkey",
            "Latch-key!",
        ),
        *("Łatchkey", "Ƚatchkey", "Lɑtchkey", "Latcħkey", "Latchƙey", "ʟᴀᴛᴄʜᴋᴇʏ", "Latchˈkey"),
        *("🅻🅰🆃🅲🅷🅺🅴🆈", "🇱🇦🇹🇨🇭🇰🇪🇾", "Ⓛⓐⓣⓒⓗⓚⓔⓨ"),
        *("£atchkey", "₤atchkey", "Latchk℮y", "Lat¢hkey", "L∆tchkey", "Latch!key", "|atch!key", "ㄥatchkey"),
        *("ꓡꓮꓔꓚꓧꓗꓰꓬ", "ᏞᎪᎢᏟᎻᏦᎬᎩ", "ІАТСНКЕУ", "ҚАТСНКЕУ ӏатсһкеу", "ΛΑΤϹΗΚΕΥ"),
        *("L⍺tchkey", "∟atchkey", "†atchkey", "Lat⊂hkey", "Latchk∃y", "⎿atchkey", "Latch⌇key"),
        *("Latch\u115fkey", "Latch\u034fkey", "Latch\u2800key"),
    ],
)
def test_no_spelling_of_the_products_name_can_register(name: str) -> None:
    with pytest.raises(ValueError, match="A name"):
        check_honest_name(name)


@each(
    ("name", "why"),
    [
        pytest.param("ꓢꓳꓠꓖ ꓐꓳꓳꓗ", "everyday", id="Lisu"),
        pytest.param("ᎣᏏᏲ", "everyday", id="Cherokee"),
        pytest.param("ⲥⲟⲛⲅ", "everyday", id="Coptic"),
        pytest.param("ᚠᚢᚦ", "everyday", id="runes"),
        pytest.param("𐐀𐐁𐐂", "everyday", id="Deseret"),
        pytest.param("ⴰⵣⵓⵍ", "everyday", id="Tifinagh"),
        pytest.param("Dia\u115fry", "invisible", id="a Hangul filler"),
        pytest.param("Dia\u3164ry", "invisible", id="a compatibility filler"),
        pytest.param("Dia\u2800ry", "invisible", id="a blank of Braille"),
        pytest.param("Dia\u034fry", "invisible", id="a grapheme joiner"),
    ],
)
def test_rare_scripts_and_invisible_letters_are_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_honest_name(name)


@each(
    ("name", "why"),
    [
        *((name, "verified") for name in ("Verified", "NOT VERIFIED", "Acme (verified)", "V e r i f i e d")),
        *((name, "verified") for name in ("Verífied", "Acme veriﬁed", "Unverified?", "V3rified")),
        *((name, "verified") for name in ("Acme, by the operator of this server", "Acme · it controls www.paypal.com")),
        *((name, "check mark") for name in ("Acme ✓", "✅ Acme", "Acme ☑", "√ Acme", "Acme ✔\ufe0f")),
        *((name, "the character") for name in ("⊢ Acme", "⌶ Beam", "∞")),
        *((name, "telephone") for name in ("Call +1 800 555 0100 now", "Help: (0800) 555-01-00", "+49 30 12345")),
        *((name, "telephone") for name in ("Ring ٠٨٠٠٥٥٥٠١٠٠", "Dial ０８００５５５０１００", "①⑧⓪⓪ ⑤⑤⑤ ⓪①⓪⓪")),
    ],
)
def test_a_name_cannot_impersonate_the_server(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_honest_name(name)


def test_the_consent_pages_trust_words_are_refused_in_names() -> None:
    said = re.findall(r'_\("([A-Za-z][A-Z a-z]*?)(?:"| <)', (ROOT / "templates/base/app_mark.html").read_text())
    assert len(said) >= 5
    for words in said:
        with pytest.raises(ValueError, match="verified"):
            check_honest_name(f"Acme: {words}")


ORDINARY = """
    Applebaum's recipes · Stripes & dots · Łódź transit · Żółw i Gęś · Steamboat Notes · Pineapple · Grapple · Snapple?
    Philanthropic Giving · Airship Bookings · Revolution Radio · Intuition Lab · Notional · Redditch Buses · Slackline
    Zoomable Maps · Discordant Jazz · Telegrammar · Twittering Birds · Digital Lab · DigitLab · Linked Invoices
    Multicloud Costs · Amazonas Travel · Outlooking · Booking company · WeChatter · Mein Kalender Größe · Crème brûlée
    L'été à Paris · Niño y Señora · São João · İstanbul Işıkları · Çağrı Merkezi · Tiếng Việt mỗi ngày · Đà Nẵng ơi
    Þórður og Æsa · Ørsted Øl · Ħaż-Żebbuġ · Ŋusɛ · Šárka & Ľubomír · Əli və Nino · Hawaiʻi Surf · Sağlık+ · Ⓐ-Team ☕
    天气日记 · 繁體中文筆記 · 微信助手 · 天気 diary · 予定表アプリ · Tシャツ屋さん · カレンダー · 날씨 알림
    KTX 예매 · 한국어 漢字
    مذكرات الطقس · یادداشت Notes · اردو خبریں · मौसम डायरी · বাংলা খবর · தமிழ் செய்திகள்
    ไทยแลนด์ 4.0 · ខ្មែរ · ລາວ · မြန်မာ
    Ημερολόγιο καιρού · ΕΛΛΗΝΙΚΑ ΝΕΑ · Дневник погоды · Український щоденник · Қазақ тілі · Монгол · Հայերեն · ქართული
    🌤 Weather · 🅿️ Parking · 🇵🇱 Polska · 👩‍👩‍👧 Family · €uro Budget · C# & C++
    יומן מזג אוויר · አማርኛ · བོད་ཡིག · සිංහල · ગુજરાતી · ਪੰਜਾਬੀ
    Tax 2024-2025 · 24/7 · Tour Operators · Summit Controls · Verify Me · Server Watch · St. Pauli Fans · A + B = C
    → Next stop · ♥ Hearts · ★ Stars · ⌘ Keys · ° Degrees · 3 × 3 · ♪ Tunes · ▶ Player · Acme™ · 1000000 Steps · ¥en
    OpenAir · 50% off! · Caf€ · A1 Taxi · Yes! we can · Route 66 · #1 Coach · Ali & Baker · M&M's fans · Ask Ann @ home
"""


@each("name", [name for line in ORDINARY.strip().splitlines() for name in line.strip().split(" · ")])
def test_an_ordinary_name_registers_and_matches_no_brand(name: str) -> None:
    check_honest_name(name)
    assert looks_like_a_brand(name) is None


@pytest.mark.parametrize("name", ["Latch Keeper", "Keylatch", "Weather Diary", "Дневник", "🌤"])
def test_other_names_register(name: str) -> None:
    check_honest_name(name)


@each(
    ("name", "brand"),
    [
        pytest.param("PayPal", "PayPal", id="the brand itself"),
        pytest.param("paypaI", "PayPal", id="a capital i for an l"),
        pytest.param("Pay Pal Login", "PayPal", id="spaced, with another word"),
        pytest.param("РауРаl".replace("l", "ӏ"), "PayPal", id="Cyrillic throughout"),
        pytest.param("G00gle", "Google", id="zeros"),
        pytest.param("Arnazon Prime", "Amazon", id="rn for m"),
        pytest.param("Micr\u00f6soft", "Microsoft", id="an accent"),
        pytest.param("booking com", "Booking.com", id="a sign left out"),
        pytest.param("Netf|ix", "Netflix", id="a bar for an l"),
        pytest.param("Office-365", "Office 365", id="a hyphen"),
        pytest.param("ꓑꓮꓬꓑꓮꓡ", "PayPal", id="Lisu"),
        pytest.param("ꓖꓳꓳꓖꓡꓰ", "Google", id="Lisu, with an E"),
        pytest.param("ᏢᎪᎩᏢᎪᏞ", "PayPal", id="Cherokee"),
        pytest.param("Ⲣⲁⲩⲣⲁⳑ", "PayPal", id="Coptic"),
        pytest.param("ΡΑΥΡΑΛ", "PayPal", id="Greek capitals"),
        pytest.param("ΥΑΗΟΟ", "Yahoo", id="Greek capitals unlike their small letters"),
        pytest.param("ᴘᴀʏᴘᴀʟ", "PayPal", id="small capitals"),
        pytest.param("ɢoogle", "Google", id="one small capital"),
        pytest.param("Goᴏgle", "Google", id="a small capital o"),
        pytest.param("G๐๐gle", "Google", id="Thai zeros"),
        pytest.param("G\u05e1ogle", "Google", id="a Hebrew letter"),
        pytest.param("🅿🅰🆈🅿🅰🅻", "PayPal", id="squared letters"),
        pytest.param("Dʀøpbøx", "Dropbox", id="stroked letters"),
        pytest.param("PayPalSupport", "PayPal", id="with another word behind, in capitals"),
        pytest.param("paypalsupport", "PayPal", id="with another word behind"),
        pytest.param("mypaypallogin", "PayPal", id="in the middle of a word"),
        pytest.param("GoogleLogin", "Google", id="Google with a word behind"),
        pytest.param("SecureGoogle", "Google", id="Google with a word before"),
        pytest.param("Microsoft365", "Microsoft", id="digits behind"),
        pytest.param("365Apple", "Apple", id="digits before"),
        pytest.param("applelogin", "Apple", id="a word that is a brand too, with a lure"),
        pytest.param("AppleHelp", "Apple", id="the same with capitals"),
        pytest.param("DHLsupport", "DHL", id="capitals before small letters"),
        pytest.param("Paypal™", "PayPal", id="a trademark sign"),
        pytest.param("Stripe®Pay", "Stripe", id="a registered sign"),
        pytest.param("Apple!", "Apple", id="an exclamation mark behind"),
        pytest.param("goo\u034fglelogin", "Google", id="a joiner inside"),
        pytest.param("a " * 22 + "PayPal", "PayPal", id="behind many words"),
        pytest.param("Steamboat Notes", None, id="a brand inside of a word"),
        pytest.param("Pineapple", None, id="a brand at the end of a word"),
        pytest.param("Weather Diary", None, id="nothing alike"),
        pytest.param("PayPal" + "x" * 95, None, id="longer than a name may be"),
    ],
)
def test_a_brand_lookalike_is_reported(name: str, brand: str | None) -> None:
    assert looks_like_a_brand(name) == brand


def test_the_lookalike_tables_are_consistent() -> None:
    assert lookalikes.PRODUCT == PRODUCT
    assert len({skeleton(brand) for brand in BRANDS}) == len(BRANDS)
    assert all(looks_like_a_brand(brand) == brand for brand in BRANDS)
    assert skeleton("") == ""


DENSE = {
    "ligatures of a sentence": "\ufdfa" * 99 + "!",
    "marks": "a\u0344" * 50,
    "words of a letter": "x " * 50,
    "squares of two words": "㏂" * 99 + "|",
    "signs": "|@" * 50,
    "letters and signs": "aB1!" * 25,
    "pairs": "Rn" * 50,
    "a brand nearly": "googl" * 20,
    "every sign of the product": "L|a!t@c£h$" * 10,
    "Hangul": "".join(map(chr, range(0xAC00, 0xAC64))),
}


@each("name", DENSE.values(), ids=DENSE)
def test_checking_a_name_takes_few_steps(name: str) -> None:
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        with suppress(ValueError):
            check_honest_name(name)
        looks_like_a_brand(name)
    finally:
        sys.setprofile(None)
    assert steps < 80_000  # calls and returns, some 3 ms


def test_an_overlong_name_is_not_checked() -> None:
    with pytest.raises(ValueError, match="100"):
        check_honest_name("\u0344" * 30_000)
    assert looks_like_a_brand("PayPal " * 5000) is None
