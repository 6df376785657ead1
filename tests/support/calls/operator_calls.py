"""Calls of operators: accounts, keys, the check of the whole store."""

from __future__ import annotations

from typing import Any

from store import keys
from store.operations import Suspension
from tests.support.calls.apps import HOOK
from tests.support.calls.grants import held
from tests.support.calls.prepared import Call, call, drained
from tests.support.store.many_documents import rotated
from tests.support.store.second_factors import App
from tests.support.store.world import World


@call("operator.find", "describe_user")
async def _(w: World) -> Call:
    return lambda: w.store.operator.find(w.email)


@call("operator.show", "describe_user")
async def _(w: World) -> Call:
    return lambda: w.store.operator.show(w.user)


@call("operator.people", "describe_user")
async def _(w: World) -> Call:
    async def people() -> list[Any]:
        return [person async for person in w.store.operator.people()]

    return people


@call("groups.change", "set_groups")
async def _(w: World) -> Call:
    present = (await w.store.operator.find(w.user)).groups
    return lambda: w.store.groups.change(w.user, present, add=[f"group {len(present)}"])


@call("groups.take_over", "set_groups")
async def _(w: World) -> Call:
    name = f"group {len((await w.store.operator.find(w.user)).groups)}"
    return lambda: w.store.groups.take_over(w.user, [name], [name])


@call("operator.note", "record_event")
async def _(w: World) -> Call:
    return lambda: w.store.operator.note(w.user, "exported_by_operator")


@call("operator.set_status", "describe_user", "set_user_status")
async def _(w: World) -> Call:
    return lambda: w.store.operator.set_status(w.email, "disabled")


@call("operator.suspend", "describe_user", "set_user_status")
async def _(w: World) -> Call:
    return lambda: w.store.operator.suspend(w.email, Suspension("Unpaid"))


@call("operator.credit", "describe_user", "grant_credit")
async def _(w: World) -> Call:
    return lambda: w.store.operator.credit(w.email, 5)


@call("operator.set_password", "describe_user", "set_password")
async def _(w: World) -> Call:
    return lambda: w.store.operator.set_password(w.email, b"a-hash")


@call("operator.security", "describe_security")
async def _(w: World) -> Call:
    await App.add(w)
    return lambda: w.store.operator.security(w.user)


@call("operator.reset_factors", "describe_user", "reset_factors")
async def _(w: World) -> Call:
    await App.add(w)
    return lambda: w.store.operator.reset_factors(w.email)


@call("operator.delete", "describe_user", "begin_leaving", "delete_user", "release_email")
async def _(w: World) -> Call:
    return lambda: w.store.operator.delete(w.email)


@call("key_state.check", "check_keys")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.check(w.store.keys.ring)


@call("key_state.known", "list_keys")
async def _(w: World) -> Call:
    return w.store.key_state.known


@call("key_state.retire", "retire_key")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.retire(200)


@call("key_state.note_sealing", "note_sealing")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.note_sealing(1)


@call("signing_keys.for_signing", "list_signing_keys", "add_signing_key")
async def _(w: World) -> Call:
    w.store.signing_keys.forget()
    return lambda: w.store.signing_keys.for_signing("ES256")


@call("signing_keys.published", "list_signing_keys", "add_signing_key")
async def _(w: World) -> Call:
    w.store.signing_keys.forget()
    return w.store.signing_keys.published


@call("signing_keys.verifier", "list_signing_keys")
async def _(w: World) -> Call:
    w.store.signing_keys.forget()
    return lambda: w.store.signing_keys.verifier("A" * 43)


@call("id_tokens.signer", "list_signing_keys")
async def _(w: World) -> Call:
    w.store.signing_keys.forget()
    return lambda: w.store.id_tokens.signer("EdDSA")


@call("id_tokens.read_hint", "list_signing_keys")
async def _(w: World) -> Call:
    claims = {"iss": "https://id.example", "aud": "an-app", "sub": w.user, "sid": "a-session"}
    text = (await w.store.signing_keys.for_signing("ES256")).sign(claims, "JWT")
    w.store.signing_keys.forget()
    return lambda: w.store.id_tokens.read_hint(text, "https://id.example", "an-app")


@call("logout_tokens.sign", "list_signing_keys")
async def _(w: World) -> Call:
    await w.store.signing_keys.for_signing("ES256")
    w.store.signing_keys.forget()
    return lambda: w.store.logout_tokens.sign("https://id.example", "an-app", w.user, "a-session", "ES256", 1)


@call("signing_keys.verify", "list_signing_keys")
async def _(w: World) -> Call:
    text = (await w.store.signing_keys.for_signing("ES256")).sign({}, "JWT")
    w.store.signing_keys.forget()
    return lambda: w.store.signing_keys.verify(text, types=["JWT"])


@call("signing_store.rotate", "list_signing_keys", "add_signing_key")
async def _(w: World) -> Call:
    return lambda: w.store.signing_store.rotate("ES256", at_once=True)


@call("signing_store.promote", "promote_signing_key")
async def _(w: World) -> Call:
    await w.store.signing_keys.for_signing("EdDSA")
    waits, _ = await w.store.signing_store.rotate("EdDSA")
    return lambda: w.store.signing_store.promote(waits.row)


@call("signing_store.revoke", "revoke_signing_key")
async def _(w: World) -> Call:
    kid = (await w.store.signing_keys.for_signing("ES256")).kid
    return lambda: w.store.signing_store.revoke(kid)


@call("signing_store.drop", "drop_signing_key")
async def _(w: World) -> Call:
    await w.store.signing_keys.for_signing("ES256")
    row = (await w.store.signing_store.read()).rows[0]
    return lambda: w.store.signing_store.drop(row, whole=False)


@call("signing_store.make", "add_signing_key")
async def _(w: World) -> Call:
    found = await w.store.signing_store.read()
    return lambda: w.store.signing_store.make("ES256", found, 0)


@call("signing_store.reseal", "list_signing_keys", "reseal_signing_key")
async def _(w: World) -> Call:
    await w.store.signing_store.rotate("EdDSA", at_once=True)
    return rotated(w.store, 2).signing_store.reseal


@call("signing_store.read", "list_signing_keys")
async def _(w: World) -> Call:
    return w.store.signing_store.read


@call("signing_store.listed", "list_signing_keys")
async def _(w: World) -> Call:
    return w.store.signing_store.listed


@call("key_state.note_layout", "note_layout")
async def _(w: World) -> Call:
    return w.store.key_state.note_layout


@call(
    "upgrade.run",
    *(f"upgrade_{what}" for what in ("token", "person", "people", "connected", "grant")),
    "begin_rebuild",
    "note_layout",
)
async def _(w: World) -> Call:
    await w.tokens()
    token = keys.token(w.user, w.app.client_id, f"{w.app.client_id}:an-id", 0)["family"]
    await w.store.client.hset(token, "generation", "0")
    return lambda: w.store.upgrade.run(1)


@call("key_state.record_reencryption", "record_reencryption")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.record_reencryption(1, 0)


@call(
    "reencryption.run",
    *("note_sealing", "list_stale_documents", "reseal_document", "reseal_secret", "save_app"),
    *("list_signing_keys", "reseal_signing_key", "record_reencryption"),
)
async def _(w: World) -> Call:
    await held(w)
    await App.add(w)
    await w.store.webhooks.set_url(w.app.client_id, HOOK)
    await w.store.signing_store.rotate("EdDSA", at_once=True)
    newer = rotated(w.store, 2)
    return lambda: drained(newer.reencryption.run(0))


@call("fsck.check", "inspect_keys", "inspect_documents")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: w.store.fsck.check(keys.grant(w.user, client))


@call("fsck.run", "inspect_keys", "inspect_documents", "mend_keys", "read_section", "find_entries")
async def _(w: World) -> Call:
    client = await held(w)
    await w.store.client.hset(keys.hosted(w.user, client)["usage"], "documents", "7")
    w.store.fsck.settle = 0
    return lambda: drained(w.store.fsck.run(repair=True))
