"""Signing keys in a copy of the store: what was published at its time signs after the restore."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from store.crypto.keyring import KeyFile, Keys
from store.engine.connect import unix_url
from store.engine.embedded import EmbeddedStore
from tests.support.processes.operator_commands import child
from tests.support.processes.processes import opened
from tests.support.store.signing import TYPES, published, signed

pytestmark = pytest.mark.slow


@pytest.mark.trap(47)
@pytest.mark.gen_test(timeout=60)
async def test_a_restored_copy_signs_with_a_key_that_was_published(tmp_path: Path) -> None:
    copy, its_keys, home, other = (tmp_path / name for name in ("store.rdb", "store.keys", "home", "other"))
    ring = Keys(KeyFile.open_or_create(its_keys))
    home.mkdir(mode=0o700)
    (home / "keys").write_bytes(its_keys.read_bytes())
    (home / "keys").chmod(0o600)
    engine = EmbeddedStore.start(home, "server")
    async with opened(unix_url(engine.socket_path), ring) as store:
        text, kid = await signed(store, "ES256")
        sub = await store.pairwise.for_sector("app.example", "0" * 32)
        waits, _ = await store.signing_store.rotate("ES256")
        before = await published(store, "ES256")
        said = await asyncio.to_thread(child, home, "store", "backup", str(copy))
        assert said.status == 0, said.err
        later, _ = await store.signing_store.rotate("ES256", at_once=True)
        assert later.row.kid == waits.row.kid
    engine.stop()
    said = await asyncio.to_thread(child, other, "store", "restore", str(copy), "--keys", str(its_keys))
    assert said.status == 0, said.err
    engine = EmbeddedStore.start(other, "server")
    async with opened(unix_url(engine.socket_path), ring) as store:
        assert (await signed(store, "ES256"))[1] == kid
        assert await published(store, "ES256") == before == [kid, waits.row.kid]
        assert await store.pairwise.for_sector("app.example", "0" * 32) == sub, "apps know their people again"
        assert (await store.signing_keys.verify(text, types=TYPES)).claims == {"sub": "ada"}
    engine.stop()
