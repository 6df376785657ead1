"""Made-up and broken input: nothing but a reason comes out of the parsers, and soon."""

from __future__ import annotations

import contextlib
import json
from io import BytesIO
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from store.crypto.foreign.hashes import ForeignHash, of_price, unpack
from store.crypto.foreign.texts import read_hash, text_of
from store.moving.import_lines import MAX_LINE, MEMBERS, lines_of, read_mover
from store.moving.vendors.json_pieces import objects_in
from store.moving.vendors.readers import READERS, lines_from
from store.moving.vendors.records import Brought
from tests.accounts.moving.test_foreign_hashes import ALLOWED, DEAR, FORMS, MALFORMED
from tests.support.moving.movers import HASH, line

NOW = 1_800_000_000_000
CORPUS = [form for _, form in FORMS] + DEAR + ALLOWED + MALFORMED
"""The hashes of the other tests, from which broken ones are made."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
WORDS = ["email", "name", "fields", "password", "credentials", "secretData", "credentialData", "type", "groups"]
WORDS += ["identities", "federatedIdentities", "providerUserInfo", "passwordHash", "salt", "users", "model", "pk"]
RECORDS = st.dictionaries(st.sampled_from(WORDS), JSON, max_size=8)


@st.composite
def broken_hashes(draw: st.DrawFn) -> str:
    """A hash of the corpus with characters changed, removed or doubled."""
    text = draw(st.sampled_from([one for one in CORPUS if isinstance(one, str) and len(one) < 2000]))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 5)))
        text = text[:at] + draw(st.text(alphabet="$0123456789,=abmtp/+.{}", max_size=4)) + text[end:]
    return text


def _within_bounds(found: ForeignHash) -> None:
    assert unpack(found.pack()) == found
    assert read_hash(json.loads(json.dumps(text_of(found)))) == found
    made = of_price(found.price)
    assert made is not None
    assert made.cost == found.cost


@settings(max_examples=300, deadline=1000)
@given(broken_hashes() | JSON | st.dictionaries(st.sampled_from(["algorithm", "salt", "value", "iterations"]), JSON))
def test_every_hash_is_within_the_bounds_or_refused(value: Any) -> None:
    with contextlib.suppress(ValueError):
        _within_bounds(read_hash(value))


@settings(max_examples=200, deadline=1000)
@given(st.binary(max_size=100))
def test_every_stored_hash_is_within_the_bounds_or_none(stored: bytes) -> None:
    found = unpack(stored)
    if found is not None:
        _within_bounds(found)


@settings(max_examples=200, deadline=1000)
@given(st.dictionaries(st.sampled_from(sorted(MEMBERS)), JSON), st.integers(0, 300), st.binary(max_size=3))
def test_every_line_is_a_person_or_refused(members: dict[str, Any], at: int, noise: bytes) -> None:
    good = line("ada@example.com", password_hash=HASH)
    broken = good[:at] + noise + good[at + 1 :]
    for raw in (broken, json.dumps({"email": "a@b.example", "name": "A", **members}).encode()):
        try:
            mover = read_mover(raw, NOW)
        except ValueError as error:
            assert HASH[10:] not in str(error)  # noqa: PT017  # not every line is refused
        else:
            assert mover.email.count("@") == 1


@settings(max_examples=150, deadline=2000)
@given(st.sampled_from(sorted(READERS)), st.lists(RECORDS, max_size=4), st.integers(0, 400), st.binary(max_size=3))
def test_every_export_is_read_or_refused(vendor: str, records: list[Any], at: int, noise: bytes) -> None:
    whole = json.dumps({"users": records} if len(records) % 2 else records).encode()
    for content in (whole, whole[:at] + noise + whole[at + 1 :]):
        with contextlib.suppress(ValueError):
            for found in lines_from(vendor, BytesIO(content), Brought()):
                assert len(found.raw) <= MAX_LINE
                with contextlib.suppress(ValueError):
                    read_mover(found.raw, NOW)


@settings(max_examples=200, deadline=1000)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_end(content: bytes, in_users: bool) -> None:
    list(lines_of(BytesIO(content)))
    with contextlib.suppress(ValueError):
        list(objects_in(BytesIO(content), in_users=in_users))
