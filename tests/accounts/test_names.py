"""E-mail addresses, names of people and apps, client ids and scopes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbound.identity.ldap.directory import normal_login
from store.apps.lookalikes import check_honest_name, looks_like_a_brand
from store.crypto.passwords import check_password
from store.directory.queries import stages_of
from store.names import (
    SCOPES,
    UnknownScope,
    check_app_name,
    check_client_id,
    check_person_name,
    check_program_name,
    mailbox_of,
    normalise_email,
    parse_scope,
    same_name,
)
from tests.support.http.driver import ALL_SCOPES
from tests.support.lists.offenders import each


@each(
    ("text", "expected"),
    [
        pytest.param("someone@example.com", "someone@example.com", id="a plain one"),
        pytest.param("  Some.One+Tag@Example.COM\n", "some.one+tag@example.com", id="case and space around it"),
        pytest.param("user@localhost", "user@localhost", id="a domain of one label"),
        pytest.param("u@bücher.example", "u@xn--bcher-kva.example", id="an international domain"),
        pytest.param("u@BÜCHER.example", "u@xn--bcher-kva.example", id="an international domain in capitals"),
        pytest.param("u@XN--BCHER-KVA.example", "u@xn--bcher-kva.example", id="a domain already in ASCII form"),
        pytest.param("jose\u0301@example.com", "josé@example.com", id="a decomposed letter"),
        pytest.param("JOSÉ@example.com", "josé@example.com", id="a capital outside ASCII"),
        pytest.param("\u212aelvin@example.com", "kelvin@example.com", id="a Kelvin sign is the letter it looks like"),
        pytest.param("o'brien#1{}~@example.com", "o'brien#1{}~@example.com", id="every odd character of an atom"),
        pytest.param("a=?b@example.com", "a=?b@example.com", id="the beginning of an encoded word"),
        pytest.param("a" * 64 + "@example.com", "a" * 64 + "@example.com", id="a local part of 64"),
        pytest.param("a@b。example", "a@b.example", id="an ideographic full stop in the domain"),
        pytest.param("a@straße.example", "a@xn--strae-oqa.example", id="a sharp s, which is no double s (IDNA 2008)"),
        pytest.param("a@xn--53h.example", "a@xn--53h.example", id="an ASCII form that IDNA 2008 would not make"),
    ],
)
def test_addresses_have_one_normal_form(text: str, expected: str) -> None:
    assert normalise_email(text) == expected
    assert normalise_email(expected) == expected


@pytest.mark.trap(21)
@each(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("   ", id="only space"),
        pytest.param("someone", id="no @"),
        pytest.param("@example.com", id="nothing before the @"),
        pytest.param("someone@", id="nothing after the @"),
        pytest.param("a@b@example.com", id="two @"),
        pytest.param("some one@example.com", id="a space"),
        pytest.param("some\u00a0one@example.com", id="a no-break space"),
        pytest.param("some\u200bone@example.com", id="a zero-width space"),
        pytest.param("some\u202eone@example.com", id="a direction override"),
        pytest.param("some\0one@example.com", id="a NUL"),
        pytest.param("someone@exam\0ple.com", id="a NUL in the domain"),
        pytest.param("someone\r\nBcc:x@example.com", id="a header injection"),
        pytest.param("someone@example.com\r\nBcc: x", id="a header injection behind it"),
        pytest.param("=?utf-8?q?a=0d=0abcc=3ax?=@example.com", id="an encoded word, which a header would decode"),
        pytest.param("a.=?utf-8?q?b?=@example.com", id="an encoded word behind a dot"),
        pytest.param("Some One <someone@example.com>", id="with a display name"),
        pytest.param("<someone@example.com>", id="in angle brackets"),
        pytest.param('"some one"@example.com', id="a quoted local part"),
        pytest.param("a,b@example.com", id="a comma"),
        pytest.param("a;b@example.com", id="a semicolon"),
        pytest.param("a(b)@example.com", id="a comment"),
        pytest.param("a\\b@example.com", id="a backslash"),
        pytest.param(".a@example.com", id="a dot in front"),
        pytest.param("a.@example.com", id="a dot before the @"),
        pytest.param("a..b@example.com", id="two dots"),
        pytest.param("a\ud800@example.com", id="a lone surrogate"),
        pytest.param("a@exam\ud800ple.com", id="a lone surrogate in the domain"),
        pytest.param("a@[192.0.2.1]", id="an address literal"),
        pytest.param("a@192.0.2.1", id="a bare IP address"),
        pytest.param("a@.example.com", id="a dot in front of the domain"),
        pytest.param("a@example.com.", id="a dot after the domain"),
        pytest.param("a@example..com", id="an empty label"),
        pytest.param("a@-example.com", id="a hyphen in front of a label"),
        pytest.param("a@exa_mple.com", id="an underscore in the domain"),
        pytest.param("a@example.com:25", id="a port"),
        pytest.param("a@☕.example", id="a symbol in the domain (IDNA 2008)"),
        pytest.param("a@" + "b" * 64 + ".com", id="a label of 64"),
        pytest.param("a" * 65 + "@example.com", id="a local part of 65"),
        pytest.param("é" * 33 + "@example.com", id="a local part of 66 bytes"),
        pytest.param("a@" + "b." * 126 + "com", id="257 characters"),
        pytest.param("a@" + "ü." * 60 + "com", id="a domain too long in its ASCII form"),
        pytest.param("a" * 1_000_000, id="endless"),
        pytest.param("a@" + "ü" * 1_000_000, id="an endless domain"),
    ],
)
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"e-mail address"):
        normalise_email(text)


@each(
    ("email", "mailbox"),
    [
        pytest.param("someone@example.com", "someone@example.com", id="a plain one"),
        pytest.param("some.one@mail.example.com", "someone@mail.example.com", id="dots before the @"),
        pytest.param("someone+a.b+c@example.com", "someone@example.com", id="a tag with another in it"),
        pytest.param("some-one_x@example.com", "some-one_x@example.com", id="other marks are no tags"),
        pytest.param("+15550100@example.com", "+15550100@example.com", id="a phone number, which is no tag"),
        pytest.param("+15550100+tag@example.com", "+15550100@example.com", id="a phone number with a tag"),
    ],
)
def test_a_mailbox_has_neither_tags_nor_dots(email: str, mailbox: str) -> None:
    assert mailbox_of(email) == mailbox


@given(st.text(st.characters(), max_size=80), st.text(st.characters(), max_size=40))
def test_normalisation_is_idempotent_and_fits_in_254_bytes(local: str, domain: str) -> None:
    try:
        once = normalise_email(f"{local}@{domain}")
    except ValueError:
        return
    assert normalise_email(once) == once
    assert len(once.encode()) <= 254
    assert once.isprintable()
    assert " " not in once


@given(st.text("abcüéßİΣςǅ.", min_size=1, max_size=20))
def test_case_never_makes_two_addresses_of_ascii_and_the_form_is_stable(local: str) -> None:
    try:
        once = normalise_email(f"{local}@example.com")
    except ValueError:
        return
    assert normalise_email(once) == once
    if local.isascii():
        assert normalise_email(f"{local.upper()}@EXAMPLE.com") == once


@each("check", [check_person_name, check_app_name])
@each(
    ("text", "expected"),
    [
        pytest.param("Ada Lovelace", "Ada Lovelace", id="a plain one"),
        pytest.param("  Ada ", "Ada", id="space around it"),
        pytest.param("Jose\u0301", "José", id="a decomposed letter"),
        pytest.param("محمد", "محمد", id="written from right to left"),
        pytest.param(
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            id="a joiner that Persian needs",
        ),
        pytest.param("👩\u200d💻", "👩\u200d💻", id="an emoji of several characters"),
        pytest.param("<b>O'Brien & Co</b>", "<b>O'Brien & Co</b>", id="what HTML must escape is kept"),
        pytest.param("x" * 100, "x" * 100, id="100 characters"),
    ],
)
def test_a_name_is_kept(check: object, text: str, expected: str) -> None:
    assert callable(check)
    assert check(text) == expected


@pytest.mark.trap(21)
@each("check", [check_person_name, check_app_name])
@each(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(" \t ", id="only space"),
        pytest.param("x" * 101, id="101 characters"),
        pytest.param("x" * 1_000_000, id="endless"),
        pytest.param("a\0b", id="a NUL"),
        pytest.param("a\nb", id="a line break"),
        pytest.param("a\x1b[31mb", id="an escape sequence"),
        pytest.param("a\x85b", id="a C1 control character"),
        pytest.param("a\u2028b", id="a line separator"),
        pytest.param("gro.elpmaxe\u202e", id="a direction override"),
        pytest.param("a\u2066b\u2069", id="a direction isolate"),
        pytest.param("a\u200fb", id="a direction mark"),
        pytest.param("a\u200bb", id="a zero-width space"),
        pytest.param("a\ufeffb", id="a byte order mark"),
        pytest.param("a\ud800b", id="a lone surrogate"),
        pytest.param("a\ue000b", id="a private-use character"),
        pytest.param("\u200d\u200c", id="only joiners"),
        pytest.param("\u3164", id="a letter that shows nothing"),
    ],
)
def test_a_name_with_hidden_characters_is_refused(check: object, text: str) -> None:
    assert callable(check)
    with pytest.raises(ValueError, match="name"):
        check(text)


def test_a_program_cannot_choose_a_name_that_covers_other_lines() -> None:
    with pytest.raises(ValueError, match="at most 8 combining marks"):
        check_program_name("Planner" + "\u0316\u0334\u0489" * 3)
    for text in ("ကြွန်ုပ်တို့၏", "สู้ที่นี่", "हिन्दी", "བསྒྲུབས", "בְּרֵאשִׁית", "e\u0316\u0301\u0323"):
        assert check_program_name(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("text", ["a", "A-z_0", "x" * 64])
def test_a_valid_client_id_is_accepted(text: str) -> None:
    assert check_client_id(text) == text


@pytest.mark.trap(19)
@each("text", ["", "x" * 65, "a b", "a:b", "a%b", "a+b", "a\n", "é", "a{b}", "a\0", "\ud800"])
def test_a_client_id_with_other_characters_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="client_id"):
        check_client_id(text)


@pytest.mark.spec("2.4")
def test_the_scopes_are_those_of_the_specification() -> None:
    own = {"openid", "email", "groups"}  # OpenID Connect
    assert [scope for scope in SCOPES if scope not in own] == [*ALL_SCOPES]


@pytest.mark.spec("2.4")
@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        pytest.param("profile", ("profile",), id="one"),
        pytest.param("data:write profile", ("profile", "data:write"), id="two in another order"),
        pytest.param("profile profile", ("profile",), id="one twice"),
        pytest.param(" ".join(reversed(SCOPES)), SCOPES, id="all of them"),
    ],
)
def test_a_scope_parameter_is_parsed(text: str, scopes: tuple[str, ...]) -> None:
    assert parse_scope(text) == scopes


@each(
    "text",
    ["", " ", " profile", "profile ", "profile  data:read", "profile\tdata:read", "profile\n", '"', "\\", "é", "\0"],
)
def test_a_malformed_scope_parameter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="list of names") as caught:
        parse_scope(text)
    assert not isinstance(caught.value, UnknownScope)


@pytest.mark.parametrize("text", ["profile admin", "admin", "Profile", "data:*", "profile,data:read"])
def test_an_unknown_scope_is_named(text: str) -> None:
    with pytest.raises(UnknownScope) as caught:
        parse_scope(text)
    assert caught.value.scope == text.split()[-1]
    assert caught.value.scope in str(caught.value)


def test_a_long_unknown_scope_is_truncated_in_the_message() -> None:
    with pytest.raises(UnknownScope) as caught:
        parse_scope("x" * 1_000_000)
    assert len(str(caught.value)) < 100


LONG = "a" + "\u0344" * 16_000 + "\u0323" * 15_500  # 3 s of normalisation
READERS: dict[str, Callable[[str], object]] = {
    "a person's name": check_person_name,
    "an app's name": check_app_name,
    "an address": normalise_email,
    "an address with a long domain": lambda text: normalise_email(f"a@{text}"),
    "an app's name to confirm its deletion": lambda text: same_name(text, "Notes"),
    "a password": check_password,
    "a name that may mislead": check_honest_name,
    "a name like a brand's": lambda text: bool(looks_like_a_brand(text)),
    "a search for people": lambda text: bool(stages_of(text, "name")),
    "a login of a directory": lambda text: bool(normal_login(text)),
}


@pytest.mark.trap(39)
@pytest.mark.parametrize("reader", READERS)
def test_text_is_measured_before_it_is_normalised(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    normalise, seen = unicodedata.normalize, []

    def measured(form: Any, text: str) -> str:
        seen.append(len(text))
        return normalise(form, text)

    monkeypatch.setattr(unicodedata, "normalize", measured)
    with suppress(ValueError):
        assert READERS[reader](LONG) is False
    with suppress(ValueError):
        READERS[reader]("a" + "\u0344" * 90)
    assert max(seen, default=0) <= 1000


def test_text_is_normalised_where_its_length_is_known() -> None:
    root = Path(__file__).resolve().parent.parent.parent
    folders = ("handlers", "store", "outbound", "runtime", "settings", "observability")
    pattern = re.compile(r"normalize\(|casefold\(|\"idna\"|idna\.")
    found = {
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob("*.py")
        if pattern.search(path.read_text("utf-8"))
    }
    assert found <= {
        "store/names.py",
        "store/crypto/passwords.py",
        "store/crypto/guessable.py",
        "store/apps/lookalikes.py",
        "store/apps/confusables.py",
        "store/directory/folding.py",
        # What an operator types is cut before.
        "store/operators/app_acts.py",
        "handlers/admin/console/apis.py",
        "handlers/admin/console/apps.py",
        "handlers/admin/console/search.py",
        "handlers/admin/console/server.py",
        "outbound/identity/ldap/directory.py",
    }, "measure first, and add a case to READERS"


def test_names_are_normalised_to_composed_form() -> None:
    assert check_person_name("\u03b1\u0313\u0300\u0345" * 100) == "ᾂ" * 100
    with pytest.raises(ValueError, match="1 to 100"):
        check_person_name("\u03b1\u0313\u0300\u0345" * 101)


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ("notes  \uff21\uff30\uff30 ", True),
        ("Notes App", True),
        ("Notes", False),
        ("", False),
        (" " * 500 + "notes app", False),
    ],
)
def test_confirming_a_name_ignores_its_unicode_form(typed: str, same: bool) -> None:
    assert same_name(typed, "Notes App") is same
