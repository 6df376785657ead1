"""Cases of hosted documents, events, credits, registrations and the keyring."""

from __future__ import annotations

import pytest

from store import keys
from store.apps.owners.roles import Member
from tests.support.breaking.cases import GHOST, OLD, case, then
from tests.support.store.checked_store import DOCUMENTS, Furnished, every_app
from tests.support.store.credit_spender import recount


async def counts_agree(f: Furnished) -> None:
    usage = await f.keeper.recount()
    assert await f.keeper.usage() == usage
    assert usage.documents == len(DOCUMENTS)


async def lists_all(f: Furnished) -> None:
    await counts_agree(f)
    assert await f.keeper.walk("notes") == ["n1", "n2", "n3"]
    assert (await f.keeper.get("notes/n2"))[1] == b'{"of": "some bytes"}'


async def credits_agree(f: Furnished) -> None:
    await recount(f.store, f.world.user)


async def list_that_ends(f: Furnished) -> None:
    await f.client.pexpire(keys.shard_app_users(f.world.user[:3], f.world.app.client_id), 10**6)


async def bury_own_app(f: Furnished) -> None:
    app = await f.store.apps.find(f.own_app)
    assert app is not None
    await f.world.tokens(("profile",), app)
    await f.store.apps.begin_deletion(f.own_app)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "SHARDS", (f.world.user[:3],))
        await f.store.apps.finish_deletion(f.own_app)


async def tombstone_that_does_not_count(f: Furnished) -> None:
    await bury_own_app(f)
    await f.client.zrem(f.person["apps"], f.own_app)


async def tombstone_without_end(f: Furnished) -> None:
    await bury_own_app(f)
    await f.client.persist(keys.app(f.own_app))


async def member_without_account(f: Furnished) -> None:
    await f.store.apps.update(f.own_app, members=(Member(GHOST, "viewer"),))


async def api_of_another(f: Furnished) -> None:
    await f.client.rename(keys.api(f.api), keys.api("api_other"))
    await f.client.zadd(keys.APIS, {"api_other": OLD})
    await f.client.zrem(keys.APIS, f.api)


async def revoked_for_ever(f: Furnished) -> None:
    await f.client.persist(keys.grant(f.other.user, f.other.app.client_id))


async def data_that_stays(f: Furnished) -> None:
    await f.client.persist(keys.hosted(f.other.user, f.other.app.client_id)["docs"])


def due_of(f: Furnished) -> tuple[str, str]:
    """The due list of the person who has disconnected the app, and their entry."""
    return keys.outbox_keys(f.other.user[:3])["due"], f"{keys.member(f.other.user)}:{f.other.app.client_id}"


async def not_due(f: Furnished) -> None:
    await f.client.zrem(*due_of(f))


async def due_later(f: Furnished) -> None:
    due, entry = due_of(f)
    await f.client.zincrby(due, 10**7, entry)


async def live_and_due(f: Furnished) -> None:
    entry = f"{keys.member(f.world.user)}:{f.world.app.client_id}"
    await f.client.zadd(f.due, {entry: OLD * 10**6})


async def nothing_due(f: Furnished) -> None:
    await f.client.zadd(f.due, {f"{keys.member(GHOST)}:ghost": OLD * 10**6})


async def ends_in_time(f: Furnished) -> None:
    await f.store.outbox.sweep(every_app)
    due, entry = due_of(f)
    ends = await f.client.pexpiretime(keys.hosted(f.other.user, f.other.app.client_id)["docs"])
    assert abs(await f.client.zscore(due, entry) - ends) < 2_000


async def waiting(f: Furnished) -> str:
    (one,) = await f.store.deliveries.list(f.other.app.client_id)
    return one.id


async def is_tried(f: Furnished) -> None:
    assert await waiting(f) in {one.id for one in await f.store.deliveries.claim(10, 30)}


async def ends_with_the_grant(f: Furnished) -> None:
    known = [keys.grant(f.other.user, f.other.app.client_id)]
    known += keys.hosted(f.other.user, f.other.app.client_id).values()
    left = [await f.client.pttl(key) for key in known]
    assert min(left) > 0
    assert max(left) - min(left) < 2_000


async def index_beside(f: Furnished) -> None:
    await f.client.zadd(f.hosted["index"], {"notes/never": 0, "notes/n2": 1})


async def without_metadata(f: Furnished) -> None:
    await f.client.hdel(f.hosted["meta"], "notes/n2")


async def of_another_size(f: Furnished) -> None:
    etag, _, created, updated = (await f.client.hget(f.hosted["meta"], "notes/n2")).decode().split()
    await f.client.hset(f.hosted["meta"], "notes/n2", f"{etag} 7 {created} {updated}")


async def usage_otherwise(f: Furnished) -> None:
    await f.client.hdel(f.person["user"], "stored")
    await f.client.hincrby(f.hosted["usage"], "bytes", 5)


async def usage_gone(f: Furnished) -> None:
    await f.client.hdel(f.person["user"], "stored")
    await f.client.delete(f.hosted["usage"])


async def stored_otherwise(f: Furnished) -> None:
    said = (await f.client.hget(f.person["user"], "stored")).split()
    await f.client.hset(f.person["user"], "stored", b" ".join((said[0], b"7", said[2])))


async def damaged(f: Furnished) -> None:
    sealed = bytearray(await f.client.hget(f.hosted["docs"], "notes/n2"))
    sealed[-1] ^= 1
    await f.client.hset(f.hosted["docs"], "notes/n2", bytes(sealed))


async def no_hold(f: Furnished) -> None:
    await f.client.delete(f.person["holds"])


async def reply_gone(f: Furnished) -> None:
    await f.client.delete(await f.first("reply"))


async def reply_uncounted(f: Furnished) -> None:
    await f.client.delete(f.person["replies"])


async def counts_its_calls(f: Furnished) -> None:
    assert await f.client.hget(await f.delegated(), "used") == b"30"


async def entry_of_no_form(f: Furnished) -> None:
    await f.client.xadd(f.person["ledger"], {"kind": "gift", "amount": "1", "paid": "x"})


async def etag_beyond(f: Furnished) -> None:
    await f.client.hset(f.hosted["usage"], "sequence", "3")


async def writes_on(f: Furnished) -> None:
    before = (await f.keeper.get("notes/n3"))[0].etag
    assert int((await f.keeper.put("notes/n3"))[0].etag) > int(before)


async def signing_key_that_opens_nowhere(f: Furnished) -> None:
    kid = (await f.store.signing_keys.for_signing("ES256")).kid
    await f.client.hset(keys.SIGNING, f"{kid}:private", b"\x01" + bytes(80))


WITHOUT_BALANCE = "balance holds payments replies"
DATA = [
    case(revoked_for_ever, "grace", proof=ends_with_the_grant),
    case(data_that_stays, "grace", proof=ends_with_the_grant),
    case(lambda f: f.client.pexpire(f.hosted["docs"], 10**7), "grace", proof=lists_all),
    case(not_due, "due", proof=ends_in_time),
    case(due_later, "due", proof=ends_in_time),
    case(live_and_due, "due"),
    case(nothing_due, "due"),
    case(lambda f: f.client.zadd(f.due, {"nonsense": 1}), "due"),
    case(lambda f: then(waiting(f), lambda one: f.client.zrem(keys.DELIVERIES_DUE, one)), "delivery", proof=is_tried),
    case(lambda f: then(waiting(f), lambda one: f.client.zrem(f.listed, one)), "delivery"),
    case(lambda f: f.client.zadd(keys.DELIVERIES_DUE, {"A" * 22: OLD}), "delivery-left"),
    case(lambda f: f.client.zadd(f.listed, {"A" * 22: OLD}), "delivery-left"),
    case(lambda f: f.client.zadd(keys.DELIVERIES_NEWEST, {"A" * 22: OLD}), "delivery-left"),
    case(lambda f: f.client.zrem(f.hosted["index"], "notes/n2"), "documents", proof=lists_all),
    case(index_beside, "documents", proof=lists_all),
    case(stored_otherwise, "stored", proof=writes_on),
    case(without_metadata, "documents usage", proof=lists_all),
    case(of_another_size, "documents usage", proof=lists_all),
    case(lambda f: f.client.hdel(f.hosted["docs"], "notes/n2"), "documents", "documents"),
    case(usage_otherwise, "usage", proof=counts_agree),
    case(usage_gone, "usage etags", proof=lists_all),
    case(lambda f: f.client.hset(f.hosted["usage"], "n:ghosts", "0"), "usage", proof=counts_agree),
    case(etag_beyond, "etags", proof=writes_on),
    case(damaged, "content", "content", deep=True),
    case(lambda f: f.client.hset(f.person["factors"], "secret", b"\1" + bytes(40)), "content", "content", deep=True),
    case(lambda f: f.client.hincrby(f.person["balance"], "paid", 7), "balance", "balance"),
    case(entry_of_no_form, "balance", "balance"),
    case(lambda f: f.client.delete(f.person["balance"]), WITHOUT_BALANCE, WITHOUT_BALANCE),
    case(lambda f: f.client.hset(f.person["payments"], "pi_1", "a lot"), "payments", "payments"),
    case(lambda f: f.client.hincrby(f.person["balance"], "reversed", 5), "payments", "payments"),
    case(lambda f: f.client.hset(f.person["searches"], "some day", "1"), "row", "row"),
    case(lambda f: f.client.persist(f.person["searches"]), "lifetime"),
    case(lambda f: f.client.hset(f.person["holds"], "A" * 22, "a lot"), "holds", proof=credits_agree),
    case(lambda f: f.client.persist(f.person["holds"]), "holds", proof=credits_agree),
    case(lambda f: f.client.set(keys.settled(f.world.user, "A" * 22), "a lot", px=10**6), "row", "row"),
    case(lambda f: f.client.set(keys.settled(f.world.user, "A" * 22), "s1 1 app"), "lifetime"),
    case(lambda f: f.client.hincrby(f.grant, "spent", 1000), "spending"),
    case(lambda f: f.client.hset(f.grant, "used:llm-inference", "t1 5"), "budgets"),
    case(lambda f: f.client.hset(f.grant, "used:credits", "m5 5"), "budgets"),
    case(
        lambda f: then(f.delegated(), lambda one: f.client.hincrby(one, "used", 7)), "budgets", proof=counts_its_calls
    ),
    case(
        lambda f: then(f.delegated(), lambda one: f.client.hincrby(one, "used", -7)), "budgets", proof=counts_its_calls
    ),
    case(lambda f: then(f.delegated(), lambda one: f.client.hdel(one, "used")), "budgets", proof=counts_its_calls),
    case(lambda f: f.client.hincrby(f.person["balance"], "day_spent", 1000), "day-spending", proof=credits_agree),
    case(lambda f: f.client.hset(f.lease, "leased", "0"), "lease"),
    case(no_hold, "idempotency", proof=credits_agree),
    case(lambda f: f.client.hincrby(f.person["balance"], "reply_bytes", 5), "replies", proof=credits_agree),
    case(reply_gone, "replies", proof=credits_agree),
    case(reply_uncounted, "replies", proof=credits_agree),
    case(lambda f: f.client.set(keys.app(f.own_app), b"\x93nonsense"), "registration", "registration"),
    case(lambda f: f.client.zrem(keys.APPS, f.own_app), "registration"),
    case(lambda f: f.client.pexpire(keys.app(f.own_app), 10**6), "lasting"),
    case(lambda f: f.client.set(keys.api(f.api), b"\x93nonsense"), "registration", "registration"),
    case(api_of_another, "registration", "registration"),
    case(lambda f: f.client.zrem(keys.APIS, f.api), "registration"),
    case(lambda f: f.client.pexpire(keys.api(f.api), 10**6), "lasting"),
    case(lambda f: f.client.zadd(keys.APIS, {"api_ghost": OLD}), "registration-left"),
    case(lambda f: f.client.zrem(keys.api_apps(f.api), f.own_app), "at-api"),
    case(lambda f: f.client.zadd(keys.api_apps(f.api), {"ghost": OLD}), "at-api-left"),
    case(lambda f: f.client.zadd(keys.api_apps(f.api), {f.world.app.client_id: OLD}), "at-api-left"),
    case(list_that_ends, "connected-lasts"),
    case(tombstone_without_end, "lifetime"),
    case(tombstone_that_does_not_count, "owned"),
    case(lambda f: f.client.delete(keys.operator_key("")["all"]), "operator-key"),
    case(lambda f: f.client.hset(keys.ROLE_HOLDERS, GHOST, f"support {OLD} command"), "role-left"),
    case(lambda f: f.client.hset(keys.ROLE_HOLDERS, f.world.user, "owner"), "row", "row"),
    case(lambda f: f.client.zadd(keys.APPS, {"ghost": OLD}), "registration-left"),
    case(lambda f: f.client.zadd(keys.USED_APPS, {"ghost": OLD}), "registration-left"),
    case(lambda f: f.client.zadd(keys.UNUSED_APPS, {"ghost": 2**45}), "registration-left"),
    case(lambda f: f.client.zrem(keys.USED_APPS, f"{f.world.app.client_id}-used"), "registration"),
    case(lambda f: f.client.zrem(keys.UNUSED_APPS, f"{f.world.app.client_id}-unused"), "registration"),
    case(lambda f: f.client.pexpire(keys.app(f"{f.world.app.client_id}-unused"), 2**37), "lifetime"),
    case(lambda f: f.client.zrem(f.person["apps"], f.own_app), "owned"),
    case(lambda f: f.client.zadd(f.person["apps"], {"ghost": OLD * 1000}), "owned-left"),
    case(lambda f: f.client.zrem(keys.person(f.member)["teams"], f.own_app), "owned"),
    case(lambda f: f.client.zadd(f.person["teams"], {"ghost": OLD * 1000}), "owned-left"),
    case(member_without_account, "team", "team"),
    case(lambda f: f.client.set(keys.app_stats("ghost")["people"], "3"), "numbers"),
    case(lambda f: f.client.hset(keys.app_stats("ghost")["refusals"], '["token"]\t', "1 1 1"), "lifetime numbers"),
    case(lambda f: f.client.set(keys.app_stats("ghost")["logo"], b"a logo"), "logo"),
    case(lambda f: f.client.set(keys.app_stats(f.own_app)["logo"], b"another"), "logo", "logo"),
    case(lambda f: f.client.delete(keys.app_stats(f.own_app)["logo"]), "logo", "logo"),
    case(lambda f: f.client.set(keys.app_stats(f.world.app.client_id)["people"], "300"), "numbers-drift"),
    case(lambda f: f.client.hset(keys.KEYRING, "check:1", "0" * 32), "keyring", "keyring"),
    case(signing_key_that_opens_nowhere, "signing", "signing"),
    case(lambda f: f.client.hset(keys.KEYRING, "pairwise", b"\x01" + bytes(60)), "keyring-salt", "keyring-salt"),
    case(lambda f: f.client.hset(keys.KEYRING, "check:9", "0" * 32), "keyring-unknown", "keyring-unknown"),
    case(
        lambda f: f.client.hset(keys.KEYRING, mapping={"check:9": "0" * 32, "sealed_at:9": OLD}),
        "keyring-missing",
        "keyring-missing",
    ),
]
