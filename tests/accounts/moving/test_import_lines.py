"""The lines of an import: bounds, and what is refused with which words."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import names
from store.accounts.identities import UpstreamIdentity
from store.json_text import NotJSON, decode_quickly, decode_strictly
from store.moving.import_lines import MAX_LINE, TOO_LONG, ImportLine, lines_of, read_mover
from store.names import normalise_email
from tests.support.lists.offenders import each
from tests.support.moving.movers import GOOGLE, HASH, line

NOW = 1_800_000_000_000
ADA = "ada@example.com"
LINK = {"issuer": GOOGLE, "subject": "1234"}


def test_a_line_has_everything_that_a_person_brings() -> None:
    mover = read_mover(
        line(
            " Ada@EXAMPLE.com ",
            email_verified=True,
            password_hash=HASH,
            totp_secret="jbsw y3dp ehpk 3pxp",
            created_at="2024-01-31T08:00:00+01:00",
            status="disabled",
            links=[LINK, LINK],
            groups=["staff", " Site admins "],
        ),
        NOW,
    )
    assert (mover.email, mover.name, mover.verified, mover.active) == (ADA, "Ada Lovelace", True, False)
    assert mover.totp_secret == b"Hello!\xde\xad\xbe\xef"
    assert mover.created_at == 1_706_684_400_000
    assert mover.identities == (UpstreamIdentity(GOOGLE, "1234"),)
    assert mover.groups == ("Site admins", "staff")
    assert mover.password is not None
    assert HASH not in repr(mover)


def test_a_line_needs_an_address_and_a_name_alone() -> None:
    nulls = dict.fromkeys(("email_verified", "password_hash", "totp_secret", "created_at", "links", "groups"))
    for raw in (line(ADA), line(ADA, **nulls)):
        mover = read_mover(raw, NOW)
        assert (mover.verified, mover.active, mover.password, mover.created_at) == (False, True, None, None)


REFUSED: list[Any] = [
    *((raw, "no JSON object") for raw in (b"x", b"[]", b"1", b"\xff", b"[" * 9999)),
    (b'{"a":1,"a":2}', "a repeated member"),
    (b'{"a":"\\ud800"}', "half a character"),
    (b'{"email":"a\\u0000b@example.com","name":"A"}', "a NUL"),
    (line(ADA, passwordHash=HASH), "doesn't know"),
    (json.dumps({"name": "Ada"}).encode(), "`email` is missing"),
    (json.dumps({"email": ADA}).encode(), "`name` is missing"),
    (json.dumps({"email": [ADA], "name": "Ada"}).encode(), "`email` must be text"),
    (line("no address"), "must have one @"),
    (line(f"{'a' * 65}@example.com"), "at most 64 bytes"),
    (line("ada@" + "e" * 60_000), "at most 254 bytes"),
    (line(ADA, name="x" * 101), "1 to 100 characters"),
    (line(ADA, name="Ada\u202e"), "text direction"),
    (line(ADA, email_verified="yes"), "`email_verified`"),
    (line(ADA, password_hash="secret"), "doesn't know"),
    (line(ADA, totp_secret="short"), "`totp_secret`"),
    (line(ADA, totp_secret=["a"]), "`totp_secret`"),
    *((line(ADA, created_at=when), "`created_at`") for when in ("", "yesterday", 1, "2099-01-01T00:00:00Z", "9" * 65)),
    (line(ADA, status="gone"), "`status`"),
    (line(ADA, status=["active"]), "`status`"),
    (line(ADA, links={}), "`links`"),
    (line(ADA, links=[LINK] * 21), "`links`"),
    (line(ADA, links=[{"issuer": GOOGLE}]), "both text"),
    (line(ADA, links=[{**LINK, "more": 1}]), "both text"),
    (line(ADA, links=[{**LINK, "subject": 1234}]), "both text"),
    (line(ADA, links=[{**LINK, "issuer": "a b"}]), "printable ASCII"),
    (line(ADA, links=[{**LINK, "subject": "x" * 256}]), "printable ASCII"),
    (line(ADA, links=[{**LINK, "subject": "\u00e9"}]), "printable ASCII"),
    (line(ADA, groups="staff"), "`groups`"),
    (line(ADA, groups=[1]), "`groups`"),
    (line(ADA, groups=[str(number) for number in range(51)]), "at most 50"),
]


@each("raw, words", REFUSED, ids=lambda raw: repr(raw[:60]))
def test_line_is_refused_with_a_reason(raw: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_mover(raw, NOW)


def test_a_long_line_is_skipped_and_the_next_one_read() -> None:
    longest = b"x" * (MAX_LINE - 1)
    text = b"\n".join((b"first", longest, longest + b"x", b"y" * 1_000_000, b"last"))
    found = list(lines_of(BytesIO(text)))
    assert found == [
        ImportLine(b"first"),
        ImportLine(longest),
        ImportLine(b"", TOO_LONG),
        ImportLine(b"", TOO_LONG),
        ImportLine(b"last"),
    ]
    assert list(lines_of(BytesIO(b"a\r\n\nb"))) == [ImportLine(b"a"), ImportLine(b""), ImportLine(b"b")]


@each(
    "raw",
    [
        b'{"email":"' + b"a@" * 32_000 + b'","name":"A"}',
        b'{"email":"a@b.example","name":"' + "a\u0344".encode() * 21_000 + b'"}',
        b'{"email":"a@b.example","name":"A","groups":[' + b'"g",' * 16_000 + b'"g"]}',
        b'{"email":"a@b.example","name":"A","totp_secret":"' + b"A" * 65_000 + b'"}',
        b'{"email":"a@b.example","name":"A","password_hash":"' + b"$2b$" * 16_000 + b'"}',
        b'{"email":"a@b.example","name":"A","created_at":' + b"9" * 65_000 + b"}",
        b'{"a":' * 10_000,
        b"[" * 65_000,
    ],
    ids=lambda raw: repr(raw[:40]),
)
def test_no_line_takes_long(raw: bytes) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match=r"\w"):
        read_mover(raw, NOW)
    assert time.process_time() - began < 0.25


PARTS = (
    '"a"',
    '"b"',
    '"\\u0061"',
    '"\\u0000"',
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\""',
    '"\\\\"',
    '"ü"',
    "1",
    "1e999",
)
TEXTS = st.lists(st.sampled_from((*PARTS, "9" * 30, "null", "NaN", '"a":"b"', '"a":1', '"a":"b","a":"c"', *":,{}[] ")))


@given(TEXTS.map("".join) | TEXTS.map(lambda parts: f'{{"a":"b"{",".join(["", *parts])}}}'))
def test_a_line_that_is_read_quickly_means_what_the_slow_reader_says(text: str) -> None:
    assert _read(decode_quickly, text) == _read(decode_strictly, text)


def _read(decode: Callable[[bytes, int], Any], text: str) -> str:
    try:
        return repr(decode(text.encode(), 3))
    except NotJSON as error:
        return type(error).__name__


@given(st.text("aB0._-+@=?! é", max_size=12), st.text("aB0.-c@é", max_size=12))
def test_a_plain_address_has_the_form_that_the_rules_give(local: str, domain: str) -> None:
    found = []
    for plain in (names._PLAIN_EMAIL, re.compile("(nothing)")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(names, "_PLAIN_EMAIL", plain)
            try:
                found.append(normalise_email(f"{local}@{domain}"))
            except ValueError as error:
                found.append(str(error))
    assert found[0] == found[1]
