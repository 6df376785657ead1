"""Signing secrets of webhooks in the store: sealed, rotated and reencrypted."""

from __future__ import annotations

import asyncio

import msgpack
import pytest

from store import keys
from store.apps.registration import Registration
from store.apps.webhooks import WebhookChange, WebhookSecrets, newest_mark
from store.crypto.keyring import Keys
from store.errors import StoreError
from store.lifetimes import WEBHOOK_OVERLAP
from store.refused import Refused
from store.wiring import Store
from tests.engine.keys.test_reencrypt import walk
from tests.support.processes.engines import FakeClock
from tests.support.store.checked_store import broken, checked
from tests.support.store.many_documents import rotated
from tests.support.store.world import refusal_of

APP = Registration("web", "Web", ("https://web.example/cb",), ("profile",))
URL = "https://web.example/hook"


async def hooked(store: Store) -> str:
    """The secret of an app with a webhook."""
    await store.apps.create(APP)
    _, secret = await store.webhooks.set_url("web", URL)
    assert secret
    return secret


async def signing(store: Store) -> tuple[str, ...]:
    store.apps.forget()
    target = await store.webhooks.target("web")
    assert target
    return target.secrets


@pytest.mark.gen_test
async def test_a_secret_is_made_with_the_first_url_and_kept_sealed(store: Store) -> None:
    secret = await hooked(store)
    assert await signing(store) == (secret,)
    assert await store.webhooks.wants("web")
    raw = await store.client.get(keys.app("web"))
    assert isinstance(raw, bytes)
    assert secret.encode() not in raw
    assert secret.removeprefix("whsec_").encode() not in raw
    assert not [name for name in APP.record() if "secret" in name.lower()]
    changed, other = await store.webhooks.set_url("web", URL + "/2")
    assert (changed.webhook_url, other) == (URL + "/2", None)
    changed, other = await store.webhooks.set_url("web", "")
    assert not await store.webhooks.wants("web")
    assert await store.webhooks.target("web") is None
    with pytest.raises(Refused, match="invalid_request"):
        await store.webhooks.rotate("web")
    with pytest.raises(Refused, match="not_found"):
        await store.webhooks.set_url("nobody", URL)
    with pytest.raises(ValueError, match="must start with https"):
        await store.webhooks.set_url("web", "http://web.example/")


@pytest.mark.gen_test
async def test_of_three_secrets_the_newest_two_are_kept(memory_store: Store) -> None:
    made = [await hooked(memory_store)]
    for _ in range(2):
        _, secret = await memory_store.webhooks.rotate("web")
        assert secret
        made.append(secret)
    assert await signing(memory_store) == (made[2], made[1])


@pytest.mark.gen_test
async def test_a_rotation_must_name_which_of_two_secrets_ends(clock: FakeClock, memory_store: Store) -> None:
    first = await hooked(memory_store)
    await memory_store.webhooks.rotate("web", ends=None)
    for ends in (None, "both"):
        assert await refusal_of(memory_store.webhooks.rotate("web", ends=ends)) == "invalid_request"
    _, third = await memory_store.webhooks.rotate("web", ends="newer")
    assert await signing(memory_store) == (third, first)
    clock.advance(WEBHOOK_OVERLAP / 1000 - 1)
    assert await signing(memory_store) == (third, first), "for a day from then on"
    clock.advance(2)
    _, fourth = await memory_store.webhooks.rotate("web", ends="newer")
    assert await signing(memory_store) == (fourth, third), "one alone signed, and it is not the one that ends"


@pytest.mark.gen_test
async def test_with_a_mark_repeated_requests_make_one_secret(store: Store) -> None:
    first = await hooked(store)
    app, _ = await store.apps.fresh("web")
    assert app is not None
    mark = newest_mark(app)
    assert mark not in first
    rotations = [store.webhooks.rotate("web", mark=mark, ends="older") for _ in range(5)]
    made = await asyncio.gather(*rotations, return_exceptions=True)
    [changed] = [one for one in made if isinstance(one, WebhookChange)]
    assert {str(one) for one in made if one is not changed} == {"invalid_request"}
    assert await signing(store) == (changed.secret, first)


@pytest.mark.gen_test
async def test_a_secret_moved_to_another_app_cannot_be_opened(memory_store: Store, keys: Keys) -> None:
    secrets = WebhookSecrets(keys)
    sealed = secrets.seal("web", b"whsec_x")
    assert secrets.open("web", sealed) == b"whsec_x"
    damaged = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for app, changed in (("wob", sealed), ("web", damaged), ("web", b""), ("web", b"\x09" * 40)):
        with pytest.raises(StoreError):
            secrets.open(app, changed)


@pytest.mark.gen_test
async def test_reencryption_moves_secrets_to_the_newest_key(store: Store) -> None:
    first = await hooked(store)
    _, second = await store.webhooks.rotate("web")
    newer = rotated(store, 2)
    progress = await walk(newer)
    assert progress.unreadable == 0
    raw = await store.client.get(keys.app("web"))
    assert isinstance(raw, bytes)
    assert [one[0] for one in msgpack.unpackb(raw)["webhookSecrets"]] == [2, 2]
    assert await signing(newer) == (second, first)
    before = raw
    await walk(newer)
    assert await store.client.get(keys.app("web")) == before


@pytest.mark.gen_test
async def test_an_unreadable_secret_is_named_and_keeps_its_key(memory_store: Store) -> None:
    await hooked(memory_store)
    await memory_store.apps.update("web", webhook_secrets=(b"\x01" + bytes(60),))
    newer = rotated(memory_store, 2)
    progress = await walk(newer)
    assert progress.unreadable == 1
    assert progress.named == ["web (webhook)"]
    assert "content" in broken(await checked(memory_store, deep=True))
