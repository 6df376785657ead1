"""In the second of a rotation: a process that has not read the new key file yet, and values under the new key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from store import keys as spell
from store.crypto import keyring
from store.crypto.keyring import KeyFile, KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.oauth.device_requests import typed_code
from store.operators.bulk_acts import KIND, BulkOrder
from store.operators.replies import ClaimedWrite, KeptReply
from store.operators.roles import OperatorActor
from store.wiring import Store
from tests.support.store.world import VISITOR

USER, NOBODY = "ab" * 16, "nobody@example.com"
ADMIN = OperatorActor("key", "one", "admin")
TOKEN = Token(TokenKind.SESSION, USER, "", new_id(), 0)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """The keys of the process that is late."""
    return Keys(KeyFile.open_or_create(tmp_path / "keys"))


def rotate(path: Path) -> Keys:
    """The keys of a process that seals under a new key already."""
    file = KeyFile(path)
    file.write(KeyRing.parse(f"{KeyRing.generate(file.ring.front.id + 1)},{file.ring.render()}"))
    return Keys(file)


async def token(early: Store, late: Store) -> None:
    assert late.sealer.open(TOKEN.kind, early.sealer.seal(TOKEN)) == TOKEN


async def document(early: Store, late: Store) -> None:
    sealed = early.cipher.seal(USER, "web", "notes/1", b"{}")
    assert late.cipher.open(USER, "web", "notes/1", sealed) == b"{}"


async def secret(early: Store, late: Store) -> None:
    assert late.totp_secrets.open(USER, early.totp_secrets.make(USER))


async def signing_key(early: Store, late: Store) -> None:
    made = await early.signing_keys.for_signing("ES256")
    late.signing_keys.forget()
    assert (await late.signing_keys.for_signing("ES256")).kid == made.kid


async def pairwise_id(early: Store, late: Store) -> None:
    assert await early.pairwise.for_app("web", USER) == await late.pairwise.for_app("web", USER)


async def typed_user_code(early: Store, late: Store) -> None:
    begun = await early.device_requests.begin("web", "[]", VISITOR)
    code = typed_code(begun.user_code)
    assert code
    assert (await late.device_requests.typed(USER, "192.0.2.1", code)).record == "[]"


async def shown_user_code(early: Store, late: Store) -> None:
    begun = await early.device_requests.begin("web", "[]", VISITOR)
    code, request = typed_code(begun.user_code), early.sealer.open(TokenKind.DEVICE_CODE, begun.device_code)
    assert code
    assert request
    assert late.device_requests.has_code(request.id, code)


async def repeated_write(early: Store, late: Store) -> None:
    claimed = await early.operator_replies.claim(ADMIN, "once", b"1")
    assert isinstance(claimed, ClaimedWrite)
    await early.operator_replies.keep(claimed, 200, b"{}")
    assert await late.operator_replies.claim(ADMIN, "once", b"1") == KeptReply(200, b"{}")


async def planned_query(early: Store, late: Store) -> None:
    order = BulkOrder("sign-out", query=NOBODY)
    planned = await late.jobs.read((await early.bulk_acts.plan(ADMIN, order)).token, KIND)
    assert planned
    late.bulk_acts.check_same(planned.order, order)


async def typed_address(early: Store, late: Store) -> None:
    wanted = await late.event_filters.of(NOBODY)
    early.security.note("sign_in_refused", typed=NOBODY)
    await early.security.flush()
    assert [wanted(one) for one in await late.security_events.newest(1)] == [True]


async def check_of_the_store(early: Store, late: Store) -> None:
    await early.key_state.check(early.keys.ring)
    assert await late.fsck.check(spell.KEYRING) == []


CASES = (
    *(token, document, secret, signing_key, pairwise_id, typed_user_code, shown_user_code),
    *(repeated_write, planned_query, typed_address, check_of_the_store),
)


@pytest.mark.gen_test
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_a_process_with_the_old_ring_takes_what_another_made_under_the_new_key(
    case: Callable[[Store, Store], Awaitable[None]], memory_store: Store, tmp_path: Path
) -> None:
    hasher = PasswordHasher(64, 1)
    early = Store(memory_store.client, rotate(tmp_path / "keys"), hasher, session_idle=86_400, session_lifetime=86_400)
    await case(early, memory_store)
    hasher.close()


def test_garbage_reads_a_key_file_once_for_each_change(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, read, path, late = list[Path](), keyring._read, tmp_path / "keys", Sealer(keys)

    def counted(path: Path) -> Any:
        reads.append(path)
        return read(path)

    def receive_garbage() -> int:
        """How often the file was read for a value of each key."""
        reads.clear()
        for key_id in range(1, 256):
            made = Sealer(Keys(KeyRing.parse(KeyRing.generate(key_id)))).seal(TOKEN)
            assert late.open(TOKEN.kind, made) is None
        return len(reads)

    monkeypatch.setattr(keyring, "_read", counted)
    old = late.seal(TOKEN)
    assert receive_garbage() == 0
    path.write_text("unusable")
    assert [receive_garbage(), receive_garbage()] == [1, 0]
    assert late.open(TOKEN.kind, old) == TOKEN
    path.write_text(f"{keys.ring.render()}\n")
    early = Sealer(rotate(path))
    assert [receive_garbage(), receive_garbage()] == [1, 0]
    assert late.open(TOKEN.kind, early.seal(TOKEN)) == TOKEN
