"""The lines of an import: bounds, and what is refused with which words."""

from __future__ import annotations

import json
import time
from io import BytesIO
from typing import Any

import pytest

from store.accounts.identities import UpstreamIdentity
from store.moving.import_lines import MAX_LINE, TOO_LONG, ImportLine, lines_of, read_mover
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
    for given in (line(ADA), line(ADA, **nulls)):
        mover = read_mover(given, NOW)
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
