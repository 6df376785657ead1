"""Password hashes of other servers: the forms that an import takes, what they cost, and sign-in with one."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import bcrypt
import pytest
from cryptography.hazmat.primitives.kdf.argon2 import Argon2i, Argon2id

from store.crypto.foreign.hashes import SCHEMES, TOO_DEAR, ForeignHash, of_price, unpack
from store.crypto.foreign.texts import argon2_text, firebase_hash, read_hash, text_of
from store.crypto.passwords import PasswordHasher, hash_text
from tests.support.lists.offenders import each

PASSWORD = "a fairly long password"
SALT = b"0123456789abcdef"
SIGNER = "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="
"""The published example of Firebase's hash (github.com/firebase/scrypt)."""
SEALED = "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def bare(data: bytes) -> str:
    return b64(data).rstrip("=")


def _pbkdf2(name: str, length: int, password: str = PASSWORD) -> bytes:
    return hashlib.pbkdf2_hmac(name, password.encode(), SALT, 1000, length)


def _scrypt(length: int = 64) -> bytes:
    return hashlib.scrypt(PASSWORD.encode(), salt=SALT, n=1024, r=8, p=2, dklen=length)


def _argon2(kind: type[Argon2i | Argon2id] = Argon2id) -> bytes:
    return kind(salt=SALT, length=32, iterations=2, lanes=1, memory_cost=64).derive(PASSWORD.encode())


def _bcrypt(password: bytes = PASSWORD.encode(), version: str = "2b") -> str:
    return f"${version}{bcrypt.hashpw(password[:72], bcrypt.gensalt(4)).decode()[3:]}"


FORMS: list[Any] = [
    *((f"bcrypt {version}", _bcrypt(version=version)) for version in ("2a", "2b", "2y")),
    ("argon2id", argon2_text("argon2id", 64, 2, 1, SALT, _argon2())),
    ("argon2i", argon2_text("argon2i", 64, 2, 1, SALT, _argon2(Argon2i))),
    ("django argon2", "argon2" + argon2_text("argon2id", 64, 2, 1, SALT, _argon2())),
    ("django pbkdf2", f"pbkdf2_sha256$1000${SALT.decode()}${b64(_pbkdf2('sha256', 32))}"),
    ("django pbkdf2 sha1", f"pbkdf2_sha1$1000${SALT.decode()}${b64(_pbkdf2('sha1', 20))}"),
    ("django bcrypt", f"bcrypt${_bcrypt()}"),
    ("django bcrypt of a digest", f"bcrypt_sha256${_bcrypt(hashlib.sha256(PASSWORD.encode()).hexdigest().encode())}"),
    ("django scrypt", f"scrypt$1024${SALT.decode()}$8$2${b64(_scrypt())}"),
    ("phc scrypt", f"$scrypt$ln=10,r=8,p=2${bare(SALT)}${bare(_scrypt(32))}"),
    ("phc pbkdf2", f"$pbkdf2-sha512$i=1000,l=64${bare(SALT)}${bare(_pbkdf2('sha512', 64))}"),
    ("passlib pbkdf2", f"$pbkdf2-sha256$1000${bare(SALT)}${bare(_pbkdf2('sha256', 32)).replace('+', '.')}"),
    ("passlib pbkdf2 of sha1", f"$pbkdf2$1000${bare(SALT)}${bare(_pbkdf2('sha1', 20)).replace('+', '.')}"),
    *(
        (
            f"keycloak {name}",
            {
                "algorithm": name,
                "iterations": 1000,
                "salt": b64(SALT),
                "value": b64(_pbkdf2(name.partition("-")[2] or "sha1", length)),
            },
        )
        for name, length in (("pbkdf2", 20), ("pbkdf2-sha256", 32), ("pbkdf2-sha512", 64))
    ),
]


@pytest.fixture
def hasher() -> Iterator[PasswordHasher]:
    made = PasswordHasher(memory_kib=64, iterations=1)
    yield made
    made.close()


@each("name, given", FORMS)
def test_each_form_verifies_and_comes_back_from_the_store_and_from_an_export(
    name: str, given: Any, hasher: PasswordHasher
) -> None:
    async def check() -> None:
        stored = read_hash(given).pack()
        assert len(stored) <= 64, "a longer field would cost the row its compact form"
        assert await hasher.verify(PASSWORD, stored)
        assert not await hasher.verify(PASSWORD + "!", stored)
        assert hasher.needs_rehash(stored)
        again = unpack(stored)
        assert again is not None
        assert read_hash(json.loads(json.dumps(text_of(again)))) == again

    asyncio.run(check())


def test_firebase_hash_verifies_and_the_signer_key_is_kept_nowhere(hasher: PasswordHasher) -> None:
    found = firebase_hash(SEALED, "42xEC+ixf3L2lw==", SIGNER, "Bw==", 14, 8)
    again = read_hash(f"$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk={SIGNER}$42xEC+ixf3L2lw==${SEALED}")
    assert again == found == read_hash(text_of(found))
    assert asyncio.run(hasher.verify("user1password", found.pack()))
    assert not asyncio.run(hasher.verify("user1passwore", found.pack()))
    key = base64.b64decode(SIGNER)
    assert key[:8] not in found.pack()


def test_own_hash_survives_an_export(hasher: PasswordHasher) -> None:
    stored = asyncio.run(hasher.hash("pa\u00dfw\u00f6rter \u212bngstr\u00f6m"))
    text = hash_text(stored)
    assert text is not None
    moved = read_hash(text).pack()
    assert asyncio.run(hasher.verify("pa\u00dfwo\u0308rter A\u030angstro\u0308m", moved)), "normalised as ours are"
    assert hash_text(moved) is None


def test_password_is_taken_as_the_browser_sends_it_and_normalised(hasher: PasswordHasher) -> None:
    sent = "\u212bngstr\u00f6m and more"
    stored = read_hash(_bcrypt(sent.encode())).pack()
    assert asyncio.run(hasher.verify(sent, stored))


def test_bcrypt_cuts_at_72_bytes_and_no_password_has_a_nul(hasher: PasswordHasher) -> None:
    stored = read_hash(_bcrypt(b"x" * 100)).pack()
    assert asyncio.run(hasher.verify("x" * 100, stored))
    assert asyncio.run(hasher.verify("x" * 72 + "other", stored))
    assert not asyncio.run(hasher.verify("x" * 71, stored))
    assert not asyncio.run(hasher.verify("x" * 72 + "\0", stored))


DEAR = [
    "$2b$15$" + "a" * 21 + "O" + "b" * 31,
    f"pbkdf2_sha256$2000001$salt${b64(SALT * 2)}",
    {"algorithm": "pbkdf2-sha512", "iterations": 2_000_001, "salt": b64(SALT), "value": b64(SALT * 4)},
    f"$argon2id$v=19$m=131073,t=1,p=1${bare(SALT)}${bare(SALT * 2)}",
    f"$argon2id$v=19$m=65536,t=17,p=1${bare(SALT)}${bare(SALT * 2)}",
    f"$argon2id$v=19$m=131072,t=5,p=1${bare(SALT)}${bare(SALT * 2)}",
    f"$argon2id$v=19$m=65536,t=1,p=17${bare(SALT)}${bare(SALT * 2)}",
    f"$scrypt$ln=18,r=8,p=1${bare(SALT)}${bare(SALT * 2)}",
    f"$scrypt$ln=17,r=8,p=5${bare(SALT)}${bare(SALT * 2)}",
    f"$fbscrypt$v=1,n=18,r=8,p=1,sk={SIGNER}$c2FsdA==${SEALED}",
    f"$scrypt$ln=9999999999,r=9999999999,p=9999999999${bare(SALT)}${bare(SALT * 2)}",
]
ALLOWED = [
    "$2b$14$" + "a" * 21 + "O" + "b" * 31,
    f"pbkdf2_sha256$2000000$salt${b64(SALT * 2)}",
    f"$argon2id$v=19$m=131072,t=4,p=4${bare(SALT)}${bare(SALT * 2)}",
    f"$scrypt$ln=17,r=8,p=1${bare(SALT)}${bare(SALT * 2)}",
]


@each("given", DEAR)
def test_hash_dearer_than_the_bounds_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=TOO_DEAR):
        read_hash(given)


@each("given", ALLOWED)
def test_dearest_hash_within_the_bounds_is_taken(given: Any) -> None:
    assert unpack(read_hash(given).pack()) is not None


GOOD = read_hash(_bcrypt()).pack()
TOO_MANY = bytes([SCHEMES["pbkdf2-sha256"].code]) + (2_000_001).to_bytes(4) + b"\x10" + SALT + SALT * 2


@each("stored", [b"", b"\1" * 56, b"\xff" * 64, TOO_MANY, GOOD[:1], GOOD[:2], GOOD[:-1], GOOD + b"x", b"$2b$"])
def test_other_bytes_in_the_store_are_no_hash(stored: bytes) -> None:
    assert unpack(stored) is None


MALFORMED: list[Any] = [
    *(None, 1, True, [], {}, "", "x", "!", "!unusable", "plaintext", "md5$salt$5f4dcc3b5aa765d61d8327deb882cf99"),
    *("$2b$10$" + "a" * 52, "$2b$03$" + "a" * 21 + "O" + "a" * 31, "$2x$10$" + "a" * 21 + "O" + "a" * 31),
    "$2b$10$" + "a" * 53 + "\n",
    "$2b$10$" + "\u00e9" * 53,
    f"$argon2d$v=19$m=64,t=1,p=1${bare(SALT)}${bare(SALT * 2)}",
    f"$argon2id$v=16$m=64,t=1,p=1${bare(SALT)}${bare(SALT * 2)}",
    f"$argon2id$v=19$m=64,t=0,p=1${bare(SALT)}${bare(SALT * 2)}",
    f"$argon2id$v=19$m=7,t=1,p=1${bare(SALT)}${bare(SALT * 2)}",
    f"$argon2id$v=19$m=64,t=1,p=1${bare(b'short')}${bare(SALT * 2)}",
    f"pbkdf2_sha256$0$salt${b64(SALT)}",
    "pbkdf2_sha256$1000$salt$a",
    f"pbkdf2_sha256$1000$salt${b64(b'short')}",
    f"pbkdf2_md5$1000$salt${b64(SALT)}",
    f"scrypt$1000$salt$8$1${b64(SALT * 2)}",
    f"$pbkdf2-sha256$i=1000,l=64${bare(SALT)}${bare(SALT)}",
    "argon2$" * 100,
    "bcrypt$$2" * 50,
    "$" * 100_000,
    {"algorithm": "md5", "salt": b64(SALT), "value": b64(SALT)},
    {"algorithm": ["pbkdf2"], "salt": b64(SALT), "value": b64(SALT)},
    {"algorithm": "pbkdf2", "iterations": True, "salt": b64(SALT), "value": b64(SALT)},
    {"algorithm": "pbkdf2", "iterations": 10**400, "salt": b64(SALT), "value": b64(SALT)},
    {"algorithm": "pbkdf2", "iterations": 1000, "salt": "", "value": b64(SALT)},
    {"algorithm": "pbkdf2", "iterations": 1000, "salt": b64(SALT * 5), "value": b64(SALT)},
    {"algorithm": "pbkdf2", "iterations": 1000, "salt": b64(SALT), "value": "x" * 5000},
    {"algorithm": "pbkdf2", "iterations": 1000, "salt": b64(SALT), "value": b64(SALT), "more": 1},
    {"algorithm": "scrypt", "log2n": 0, "r": 8, "p": 1, "salt": b64(SALT), "value": b64(SALT)},
]


@each("given", MALFORMED, ids=lambda given: str(given)[:40])
def test_malformed_hash_is_refused_without_quoting_it(given: Any) -> None:
    with pytest.raises(ValueError, match=r"^The password hash is [a-z' ]+\.$"):
        read_hash(given)


@each("name, given", FORMS)
def test_hash_that_nobody_has_costs_what_its_price_says(name: str, given: Any) -> None:
    found = read_hash(given)
    made = of_price(found.price)
    assert made is not None
    assert (made.scheme, made.cost) == (found.scheme, found.cost)
    assert not made.matches(PASSWORD.encode())


@each("price", ["", "md5 1", "bcrypt", "bcrypt 15", "bcrypt x", "argon2id 1 2 3"])
def test_unknown_price_has_no_hash(price: str) -> None:
    assert of_price(price) is None


def test_foreign_hashes_wait_in_a_queue_of_their_own() -> None:
    """A flood of dear hashes keeps nobody with one of ours from signing in."""
    hasher = PasswordHasher(memory_kib=64, iterations=1, workers=1, queue=3)
    dear = ForeignHash("bcrypt", (8,), b"a" * 21 + b"O", b"b" * 31).pack()

    async def check() -> list[Any]:
        ours = await hasher.hash(PASSWORD)
        flood = [asyncio.ensure_future(hasher.verify(PASSWORD, dear)) for _ in range(10)]
        await asyncio.sleep(0)
        assert await hasher.verify(PASSWORD, ours)
        return await asyncio.gather(*flood, return_exceptions=True)

    answers = asyncio.run(check())
    assert answers.count(False) == 3
    assert len(answers) == 10
    hasher.close()
