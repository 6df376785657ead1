"""Writes layout1.json: what the release before layout 2 kept, for the test that the next ones go on with it.

It runs in a checkout of commit b16e3d7, the last of layout 1, and is never changed again:

    git worktree add ../layout1 b16e3d7
    cp tests/support/data/write_layout1.py ../layout1/tests/
    (cd ../layout1 && PYTHONPATH=. python tests/write_layout1.py) > tests/support/data/layout1.json
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from store import keys
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.documents.documents import Conditions
from store.engine.connect import connect
from store.wiring import Store
from tests.support.store.credit_spender import DOLLAR, REPLY, SPENDING, Spender
from tests.support.store.many_documents import connect_app, write
from tests.support.store.second_factors import App, add_passkey
from tests.support.store.world import CALLBACK, PASSWORD, VERIFIER, VISITOR, World

RING = KeyRing.generate(1)


async def main() -> None:
    client = await connect("memory")
    hasher = PasswordHasher(8192, 1)
    store = Store(client, Keys(KeyRing.parse(RING)), hasher, session_idle=14 * 86400, session_lifetime=30 * 86400)
    store.apps.settle = 0
    await store.key_state.check(store.keys.ring)
    facts: dict[str, Any] = {"password": PASSWORD, "callback": CALLBACK, "verifier": VERIFIER}
    for part in (ada, bob, carol, dora, eve, frank):
        facts[part.__name__] = await part(store)
    seconds, micros = await client.time()
    rows = [await row(client, key) for key in sorted([key async for key in client.scan_iter()])]
    header = {"layout": 1, "commit": "b16e3d7", "moment": seconds * 1000 + micros // 1000, "keys": RING, **facts}
    json.dump({**header, "rows": rows}, sys.stdout, indent=0)
    await store.close()


async def ada(store: Store) -> dict[str, Any]:
    """Tokens in every state, documents, credits, an app of her own, a picture."""
    w = await World.make(store)
    verified = await store.people.verify(w.email, PASSWORD)
    assert verified is not None
    cookie = await store.sessions.start(verified, VISITOR)
    first = await w.tokens()
    second = await w.refresh(first.refresh_token)
    third = await w.refresh(second.refresh_token)
    narrow = await w.refresh((await w.tokens()).refresh_token, "profile")
    caller = w.caller(third.access_token)
    await write(store, caller, {"notes/n1": b'{"text": "kept"}', "notes/n2": b"2", "drafts/d1": b"[]"})
    await store.documents.delete(caller, "data:write", "drafts", "d1", Conditions())
    spending, _ = await w.register("spender", scopes=SPENDING)
    await store.credits.grant(w.user, 5 * DOLLAR, reason="Welcome", key="a-key")
    spender = await Spender.make(w, spending)
    await store.calls.settle(await spender.hold(1000, 500, key="a-call"), 1000, 200, REPLY)  # type: ignore[call-arg, arg-type]  # as it was
    await spender.hold(100, 100)
    await store.profiles.save_picture(w.session, b"an image", VISITOR)
    own = await store.owned.register(
        w.session, "a nonce", VISITOR, most=9, name="My App", redirect_uris=(CALLBACK,), scopes=("profile",)
    )
    return {
        **known(w),
        "cookie": cookie,
        "client_secret": w.secret,
        "access": third.access_token,
        "refresh": third.refresh_token,
        "replayed": second.refresh_token,
        "narrow": narrow.access_token,
        "code": await w.code(),
        "own": own.registration.client_id,
        "paid": (await store.credits.show(w.user)).paid,
        "events": await w.events(),
    }


async def bob(store: Store) -> dict[str, Any]:
    """An authenticator app, recovery codes and a passkey."""
    w = await World.make(store)
    app = await App.add(w)
    await add_passkey(w)
    return {**known(w), "codes": app.codes}


async def carol(store: Store) -> dict[str, Any]:
    """An app that was disconnected and is in its grace window."""
    w = await World.make(store)
    tokens = await w.tokens()
    await write(store, w.caller(tokens.access_token), {"notes/n1": b'"in the grace window"'})
    await w.revoke_app()
    return {**known(w), "dead": tokens.access_token}


async def dora(store: Store) -> dict[str, Any]:
    """An address that nobody has confirmed, a link that would confirm it, and an invitation of somebody else."""
    email = "dora@example.com"
    user = await store.people.create(email, "Dora", PASSWORD, verified=False, event="signed_up", visitor=VISITOR)
    link = await store.links.to_confirm(user, email)
    assert link is not None
    return {"user": user, "email": email, "link": link.text, "invite": await store.people.invite("new@example.com")}


async def eve(store: Store) -> dict[str, Any]:
    """A deletion that was cut short after its first step."""
    w = await World.make(store)
    clients = []
    for name in ("eve-one", "eve-two"):
        app, _ = await w.register(name)
        await write(store, await connect_app(store, w.user, app), {"notes/n1": b"1"})
        clients.append(app.client_id)
    reply = await store.scripts.run(
        "delete_user",
        keys.person(w.user),
        user_id=w.user,
        prefix=keys.prefix(w.user),
        shard=keys.shard_prefix(w.user),
        steps=1,
    )
    assert reply.word == "more"
    return {"user": w.user, "email": w.email, "clients": clients}


async def frank(store: Store) -> dict[str, Any]:
    """Somebody who is disabled."""
    w = await World.make(store)
    tokens = await w.tokens()
    await store.operator.set_status(w.email, "disabled")
    return {**known(w), "access": tokens.access_token}


def known(w: World) -> dict[str, Any]:
    return {"user": w.user, "email": w.email, "client": w.app.client_id}


async def row(client: Any, key: bytes) -> list[Any]:
    """Key, type, value, and the ms it lives from then on, or -1. Bytes are written as Latin-1."""

    def text(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if isinstance(value, dict):
            return {text(name): text(inner) for name, inner in value.items()}
        return sorted(map(text, value)) if isinstance(value, set) else [text(inner) for inner in value]

    kind = (await client.type(key)).decode()
    if kind == "string":
        value = await client.get(key)
    elif kind == "hash":
        value = await client.hgetall(key)
    elif kind == "set":
        value = await client.smembers(key)
    elif kind == "list":
        value = await client.lrange(key, 0, -1)
    elif kind == "zset":
        value = {member: str(int(score)).encode() for member, score in await client.zrange(key, 0, -1, withscores=True)}
    else:
        value = [[name, fields] for name, fields in await client.xrange(key)]
    return [key.decode("latin-1"), kind, text(value), await client.pttl(key)]


if __name__ == "__main__":
    asyncio.run(main())
