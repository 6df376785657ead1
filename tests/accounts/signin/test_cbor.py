"""CBOR of authenticators: what is accepted, what is refused, and that a library reads the same."""

from __future__ import annotations

import random
from typing import Any

import cbor2
import pytest

from store.accounts.signin.cbor import MOST_BYTES, MOST_ITEMS, NotCanonical, read_item
from tests.support.lists.offenders import each

FITS = {"fmt": "packed", "attStmt": {"alg": -7, "sig": b"s" * 70, "x5c": [b"c" * 600]}, "authData": b"d" * 200}


def test_real_authenticator_cbor_is_decoded() -> None:
    raw = cbor2.dumps(FITS)
    assert read_item(b"before" + raw + b"behind", 6) == (FITS, 6 + len(raw))
    assert read_item(cbor2.dumps({1: 2, 3: -7, -1: True, -2: None, "ä": 2**64 - 1})).value["ä"] == 2**64 - 1


REFUSED = {
    "a regular expression": cbor2.dumps(cbor2.CBORTag(35, "[a-z]" * 9)),
    "a tag in a list in a map": cbor2.dumps({"x": [cbor2.CBORTag(2, b"n")]}),
    "a tag as a key": b"\xa1\xd8\x23\x61a\x01",
    "a number of any length": b"\xc2\x42\xff\xff",
    "a shared reference": b"\xd8\x1c\x81\xd8\x1d\x00",
    "five levels": b"\x81" * 5 + b"\x00",
    "more values than fit": cbor2.dumps(list(range(MOST_ITEMS))),
    "an array of 2**64 values": b"\x9b" + b"\xff" * 8,
    "a map of 2**32 pairs": b"\xba" + b"\xff" * 4,
    "more bytes than fit": cbor2.dumps(bytes(MOST_BYTES)),
    "a list without a length": b"\x9f\x00\xff",
    "text without a length": b"\x7f\x61a\xff",
    "a reserved length": b"\x1c",
    "a break alone": b"\xff",
    "a float": cbor2.dumps(1.5),
    "an unknown simple value": b"\xe0",
    "a boolean in two bytes": b"\xf8\x15",
    "a list as a key": b"\xa1\x80\x00",
    "a boolean as a key": b"\xa2\x01\x00\xf5\x00",
    "a key twice": b"\xa2\x01\x00\x01\x00",
    "text that is not UTF-8": b"\x61\xff",
    "a string that is cut off": b"\x45abcd",
    "a head that is cut off": b"\x59\x01",
    "nothing": b"",
}


@pytest.mark.trap(40)
@each("raw", [pytest.param(raw, id=name) for name, raw in REFUSED.items()])
@each("shortest", [True, False])
def test_unusual_cbor_is_refused(raw: bytes, shortest: bool) -> None:
    with pytest.raises(NotCanonical):
        read_item(raw, shortest=shortest)


LONGER = {"a number": b"\x18\x17", "a length": b"\x58\x01a", "two bytes": b"\x19\x00\xff", "a count": b"\x98\x00"}


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name) for name, raw in LONGER.items()])
def test_non_minimal_encoding_is_accepted_only_where_nothing_reencodes_it(raw: bytes) -> None:
    assert read_item(raw, shortest=False).end == len(raw)
    with pytest.raises(NotCanonical, match="shorter"):
        read_item(raw)


def test_decoding_matches_a_library() -> None:
    # The `webauthn` library learns where a value ended by encoding it again. If one byte differed, it would continue in
    # the middle of unread bytes.
    rng, read = random.Random(1), 0
    raws = [cbor2.dumps(value) for value in (FITS, {1: 3, 3: -257, -1: b"n" * 256, -2: b"\1\0\1"}, {"a": [True, None]})]
    for _ in range(3000):
        changed = bytearray(rng.choice(raws))
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(rng.choice((len(changed), 6)))] = rng.randrange(256)
        try:
            found = read_item(bytes(changed))
        except NotCanonical:
            continue
        read += 1
        whole = bytes(changed[: found.end])
        assert cbor2.dumps(cbor2.loads(whole, allow_duplicate_keys=False)) == whole
        assert found.value == cbor2.loads(whole, tag_hook=_never) or b"\xf7" in whole
    assert read > 200


def _never(*_: Any) -> None:
    raise AssertionError("a tag")
