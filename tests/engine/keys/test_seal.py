"""Sealed tokens: each has one spelling, and nothing else opens."""

from __future__ import annotations

import base64
import itertools
import re
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.crypto.keyring import KeyFile, KeyRing, Keys, SecretKey
from store.crypto.seal import MAX_CLIENT_BYTES, Sealer, Token, TokenKind, fingerprint, new_id, new_user_id
from tests.support.lists.offenders import each

ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
FIRST, SECOND, THIRD = (SecretKey(key_id, bytes((key_id,)) * 32) for key_id in (1, 2, 3))
SEALER = Sealer(Keys(KeyRing((FIRST, SECOND))))

kinds = st.sampled_from(TokenKind)
raw_ids = st.binary(min_size=16, max_size=16)
clients = st.text(max_size=MAX_CLIENT_BYTES // 4)
tokens = st.builds(
    Token,
    kind=kinds,
    user=raw_ids.map(bytes.hex),
    client=clients,
    id=raw_ids.map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("=")),
    generation=st.integers(0, 2**32 - 1),
)


def a_token(kind: TokenKind = TokenKind.ACCESS, client: str = "app", generation: int = 0) -> Token:
    return Token(kind, "0123456789abcdef" * 2, client, "AAECAwQFBgcICQoLDA0ODw", generation)


def body_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text[6:] + "==")


def as_text(kind: TokenKind, sealed: bytes) -> str:
    return kind.prefix + base64.urlsafe_b64encode(sealed).decode().rstrip("=")


@given(tokens)
def test_every_token_opens_to_what_was_sealed(token: Token) -> None:
    text = SEALER.seal(token)
    assert SEALER.open(token.kind, text) == token
    assert SEALER.seal(token) == text
    assert re.fullmatch(r"lk_[a-z]{2}_[A-Za-z0-9_-]+", text)


@given(tokens, tokens)
def test_two_tokens_never_share_a_string(one: Token, other: Token) -> None:
    assert (SEALER.seal(one) == SEALER.seal(other)) == (one == other)


@pytest.mark.trap(5)
@settings(max_examples=25, deadline=None)
@given(tokens)
def test_a_token_with_any_single_bit_flipped_is_refused(token: Token) -> None:
    sealed = body_of(SEALER.seal(token))
    for bit in range(len(sealed) * 8):
        mangled = bytearray(sealed)
        mangled[bit // 8] ^= 1 << bit % 8
        assert SEALER.open(token.kind, as_text(token.kind, bytes(mangled))) is None


def test_a_token_with_any_single_character_changed_is_refused() -> None:
    for client in ("", "a", "ab", "abc"):  # every length modulo 4, so the last character has 0, 2 and 4 spare bits
        text = SEALER.seal(a_token(client=client))
        for at, char in itertools.product(range(len(text)), ALPHABET):
            if text[at] != char:
                assert SEALER.open(TokenKind.ACCESS, text[:at] + char + text[at + 1 :]) is None


@pytest.mark.trap(5)
@each(
    ("sealed_as", "opened_as"),
    [pytest.param(one, other, id=f"{one.name} as {other.name}") for one, other in itertools.permutations(TokenKind, 2)],
)
def test_no_kind_opens_as_another_under_any_prefix(sealed_as: TokenKind, opened_as: TokenKind) -> None:
    text = SEALER.seal(a_token(sealed_as))
    assert SEALER.open(sealed_as, text) == a_token(sealed_as)
    assert SEALER.open(opened_as, text) is None
    assert SEALER.open(opened_as, opened_as.prefix + text[6:]) is None
    assert SEALER.open(sealed_as, opened_as.prefix + text[6:]) is None


def test_prefixes_are_recognisable_and_all_different() -> None:
    kinds = "ac at br ce cf ch cu dc dn dv hs in la pc pg pr pu rq rt ss ti un up"
    assert sorted(kind.prefix for kind in TokenKind) == [f"lk_{word}_" for word in kinds.split()]


def test_tokens_of_one_service_do_not_open_in_another() -> None:
    text = SEALER.seal(a_token())
    namesake = Sealer(Keys(KeyRing((SecretKey(1, b"x" * 32),))))
    assert namesake.open(TokenKind.ACCESS, text) is None
    assert Sealer(Keys(KeyRing((THIRD,)))).open(TokenKind.ACCESS, text) is None


def test_the_key_id_is_authenticated() -> None:
    sealed = body_of(SEALER.seal(a_token()))
    assert sealed[0] == 1
    for key_id in (0, 2, 3, 255):
        assert SEALER.open(TokenKind.ACCESS, as_text(TokenKind.ACCESS, bytes((key_id,)) + sealed[1:])) is None


def test_the_front_key_seals_and_every_key_opens() -> None:
    old = Sealer(Keys(KeyRing((SECOND,)))).seal(a_token())
    assert SEALER.open(TokenKind.ACCESS, old) == a_token()
    assert body_of(SEALER.seal(a_token()))[0] == 1


def test_a_reloaded_ring_is_used_at_once(tmp_path: Path) -> None:
    file = KeyFile.open_or_create(tmp_path / "keys")
    sealer = Sealer(keys := Keys(file))
    first = file.ring.front
    old = sealer.seal(a_token())

    file.write(KeyRing((SECOND, first)))
    assert keys.reload()
    assert sealer.open(TokenKind.ACCESS, old) == a_token()
    new = sealer.seal(a_token())
    assert body_of(new)[0] == SECOND.id

    file.write(KeyRing((SECOND,)))
    assert keys.reload()
    assert sealer.open(TokenKind.ACCESS, old) is None
    assert sealer.open(TokenKind.ACCESS, new) == a_token()


def test_a_reloaded_rings_front_key_seals_at_once() -> None:
    sealer = Sealer(keys := Keys(KeyRing((FIRST,))))
    assert body_of(sealer.seal(a_token()))[0] == FIRST.id
    keys.replace(KeyRing((SECOND, FIRST)))
    assert body_of(sealer.seal(a_token()))[0] == SECOND.id


def test_a_token_reveals_nothing_of_its_content() -> None:
    token = a_token(TokenKind.INVITE, client="someone@example.com")
    text = SEALER.seal(token)
    assert b"someone" not in body_of(text)
    assert bytes.fromhex(token.user) not in body_of(text)
    successor = SEALER.seal(a_token(TokenKind.INVITE, client="someone@example.com", generation=1))
    assert text[8:24] != successor[8:24]


VALID = SEALER.seal(a_token())


@pytest.mark.trap(21)
@each(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("lk_at_", id="only the prefix"),
        pytest.param(VALID[6:], id="no prefix"),
        pytest.param(VALID.upper(), id="another case"),
        pytest.param(VALID + "=", id="padding"),
        pytest.param(VALID + "==", id="more padding"),
        pytest.param(VALID + " ", id="a space after it"),
        pytest.param(" " + VALID, id="a space before it"),
        pytest.param(VALID + "\n", id="a line break after it"),
        pytest.param(VALID[:40] + "\n" + VALID[40:], id="a line break inside"),
        pytest.param(VALID[:40] + "=" + VALID[40:], id="padding inside"),
        pytest.param(VALID[:40] + "." + VALID[40:], id="a character that lenient decoders skip"),
        pytest.param(VALID[:40] + "\0" + VALID[40:], id="a NUL inside"),
        pytest.param(VALID[:-1], id="one character short"),
        pytest.param(VALID + "A", id="one character more"),
        pytest.param(VALID + "AAAA", id="four characters more"),
        pytest.param(VALID[:40] + "é" + VALID[41:], id="not ASCII"),
        pytest.param(VALID[:40] + "\ud800" + VALID[41:], id="a lone surrogate"),
        pytest.param(VALID.replace("lk", "\uff4c\uff4b"), id="full-width letters in the prefix"),
        pytest.param("lk_at_" + "A" * 71, id="the right length and nothing in it"),
        pytest.param("lk_at_" + "A" * 1_000_000, id="endless"),
        pytest.param("lk_at_" + "=" * 80, id="only padding"),
    ],
)
def test_near_misses_of_a_token_are_refused(text: str) -> None:
    assert SEALER.open(TokenKind.ACCESS, text) is None


def test_the_other_base64_alphabet_is_refused() -> None:
    texts = (SEALER.seal(a_token(generation=generation)) for generation in range(100))
    tried = 0
    for text in texts:
        other = "lk_at_" + text[6:].replace("-", "+").replace("_", "/")
        if other != text:
            tried += 1
            assert SEALER.open(TokenKind.ACCESS, other) is None
    assert tried > 50


@pytest.mark.trap(21)
@given(kinds, st.text(st.characters(), max_size=500))
def test_opening_any_string_never_raises(kind: TokenKind, text: str) -> None:
    assert SEALER.open(kind, text) is None
    assert SEALER.open(kind, kind.prefix + text) is None


@given(kinds, st.binary(max_size=320))
def test_random_bytes_never_open(kind: TokenKind, sealed: bytes) -> None:
    assert SEALER.open(kind, as_text(kind, b"\x01" + sealed)) is None


@each(
    "token",
    [
        pytest.param(Token(TokenKind.CODE, "", "app", new_id(), 0), id="no user"),
        pytest.param(Token(TokenKind.CODE, "0" * 31, "app", new_id(), 0), id="a short user"),
        pytest.param(Token(TokenKind.CODE, "A" * 32, "app", new_id(), 0), id="an upper-case user"),
        pytest.param(Token(TokenKind.CODE, "0" * 32 + "\n", "app", new_id(), 0), id="a user with a line break"),
        pytest.param(Token(TokenKind.CODE, "0" * 32, "é" * 128, new_id(), 0), id="a client of 256 bytes"),
        pytest.param(Token(TokenKind.CODE, "0" * 32, "\ud800", new_id(), 0), id="a client that is no text"),
        pytest.param(Token(TokenKind.CODE, "0" * 32, "app", "", 0), id="no id"),
        pytest.param(Token(TokenKind.CODE, "0" * 32, "app", "A" * 21, 0), id="a short id"),
        pytest.param(Token(TokenKind.CODE, "0" * 32, "app", "A" * 21 + "B", 0), id="an id with spare bits set"),
        pytest.param(Token(TokenKind.CODE, "0" * 32, "app", "A" * 21 + "é", 0), id="an id that is not ASCII"),
        pytest.param(Token(TokenKind.CODE, "0" * 32, "app", new_id(), -1), id="a negative generation"),
        pytest.param(Token(TokenKind.CODE, "0" * 32, "app", new_id(), 2**32), id="a generation of 33 bits"),
    ],
)
def test_a_token_out_of_range_is_not_sealed(token: Token) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # several kinds of it
        SEALER.seal(token)


def test_the_longest_token_opens() -> None:
    token = a_token(client="é" * 127, generation=2**32 - 1)
    assert SEALER.open(TokenKind.ACCESS, SEALER.seal(token)) == token
    assert SEALER.open(TokenKind.ACCESS, SEALER.seal(token) + "AAAA") is None


@pytest.mark.fapi("5.4.1-4 entropy")
def test_new_ids_are_well_formed_and_never_repeat() -> None:
    ids = {new_id() for _ in range(1000)}
    users = {new_user_id() for _ in range(1000)}
    assert len(ids) == len(users) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22}", one) for one in ids)
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in users)


@pytest.mark.trap(21)
@given(st.text(st.characters()), st.text(st.characters()))
def test_a_fingerprint_is_unique_and_valid_in_a_key(one: str, other: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", fingerprint(one))
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


def test_a_fingerprint_takes_lone_surrogates_and_is_sha_256() -> None:
    assert fingerprint("\ud800") != fingerprint("\ud801")
    assert (
        fingerprint("abc") == base64.urlsafe_b64encode(bytes.fromhex("ba7816bf8f01cfea414140de5dae2223")).decode()[:22]
    )
