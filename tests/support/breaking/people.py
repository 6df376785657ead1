"""Cases of unknown keys, people, their sessions and tokens, and their connected apps."""

from __future__ import annotations

from store import keys, parsed_keys
from store.accounts.external_ids import key_of, name_of
from store.accounts.identities import UpstreamIdentity
from tests.support.breaking.cases import GHOST, OLD, case, then
from tests.support.moving.movers import bring, line
from tests.support.store.checked_store import Furnished, broken, checked
from tests.support.store.second_factors import arrival
from tests.support.store.world import every_key


async def signs_in(f: Furnished) -> None:
    assert await f.store.people.verify(f.world.email, "correct horse battery") is not None


async def shows_the_app(f: Furnished) -> None:
    listed = await f.store.grants.list(f.world.session)
    assert f.world.app.client_id in {grant.client for grant in listed.grants}


async def deletion_ends(f: Furnished) -> None:
    await f.store.people.finish_deletions()
    assert [key for key in await every_key(f.client) if f.other.user.encode() in key and b":limit:" not in key] != []
    assert await f.store.operator.show(f.other.user) is None
    assert broken(await checked(f.store)) == set()


async def identity_gone(f: Furnished) -> None:
    await f.client.delete(keys.identity(arrival(f"sub-{f.world.user}").identity.name))


def external(f: Furnished) -> str:
    return key_of(name_of(f"id-{f.world.user}"))


async def directory_knows_the_person(f: Furnished) -> None:
    found = await f.store.provisioning.with_external_id(f"id-{f.world.user}")
    assert found
    assert found.user == f.world.user


async def signs_in_elsewhere(f: Furnished) -> None:
    assert await f.store.identities.find(arrival(f"sub-{f.world.user}").identity) == f.world.user


NEW = "begun@example.com"


UNDONE = "undone@example.com"


async def undo_of_an_address_that_went(f: Furnished) -> None:
    undos, ends = keys.person(f.world.user)["undos"], await f.store.apps.now() + 60_000
    await f.client.hset(undos, "A" * 22, f"{ends} {ends} 0 {UNDONE}")
    await f.client.pexpireat(undos, ends)


async def address_is_kept(f: Furnished) -> None:
    assert await f.store.people.find(UNDONE) == f.world.user
    assert 0 < await f.client.pttl(keys.email(UNDONE)) <= 60_000


async def half_made(f: Furnished) -> None:
    await f.world.person(NEW)
    await f.client.delete(keys.email(NEW))


async def half_made_just_now(f: Furnished) -> None:
    await f.world.person(NEW)
    await f.client.pexpire(keys.email(NEW), 60_000)


async def can_sign_in_at_last(f: Furnished) -> None:
    assert await f.store.people.verify(NEW, "correct horse battery") is not None


async def app_deletion_ends(f: Furnished) -> None:
    await f.store.apps.delete(f.own_app)
    assert broken(await checked(f.store)) == set()


async def half_moved_in(f: Furnished) -> None:
    link = UpstreamIdentity("https://a.example", "1")
    await bring(f.store, [line(NEW, links=[link._asdict()])])
    await f.client.delete(keys.identity(link.name))


async def half_deleted(f: Furnished) -> None:
    person = keys.person(f.other.user)
    email, name = await f.client.hmget(person["user"], "email", "name")
    changed, member = keys.changed(f.other.user)["changed"], keys.member(f.other.user)
    await f.client.hset(changed, member, email + b"\t" + name)  # as the script that deletes
    await f.client.hdel(person["user"], "status")
    await f.client.rename(person["user"], person["leaving"])


async def half_deleted_and_noted(f: Furnished) -> None:
    await half_deleted(f)
    await f.client.zadd(keys.DELETIONS, {f.other.user: OLD})


async def planned_on_no_list(f: Furnished) -> None:
    await f.store.planned_deletions.plan(f.other.user, 7)
    await f.client.zrem(keys.DELETIONS, f.other.user)


async def planned_deletion_is_listed(f: Furnished) -> None:
    planned = (await f.store.operator.find(f.other.user)).delete_at
    assert planned
    assert await f.client.zscore(keys.DELETIONS, f.other.user) == planned.timestamp()


async def of_another_type(f: Furnished) -> None:
    await f.client.delete(f.person["audit"])
    await f.client.rpush(f.person["audit"], "1")


async def reserved_for_long(f: Furnished) -> None:
    await f.client.pexpire(keys.email(f.world.email), 3_600_000)


async def of_nobody(f: Furnished, noun: str) -> None:
    if noun == "audit":
        await f.client.set(keys.person(GHOST)[noun], "1")
    else:
        await f.client.zadd(keys.person(GHOST)[noun], {"x": 1})


async def without_a_second_step(f: Furnished) -> None:
    await f.client.delete(f.person["factors"], f.person["passkeys"])


async def half_a_passkey(f: Furnished) -> None:
    names = await f.client.hkeys(f.person["passkeys"])
    await f.client.hdel(f.person["passkeys"], next(name for name in names if name.startswith(b"n:")))


async def session_unlisted(f: Furnished) -> None:
    await f.client.zrem(f.person["sessions"], f.world.session.session_id)


async def is_listed(f: Furnished) -> None:
    assert f.world.session.session_id in {one.session_id for one in await f.store.sessions.live(f.world.session)}


async def family_gone(f: Furnished) -> None:
    parsed = [parsed_keys.read(key.decode()) for key in await every_key(f.client)]
    own = [at for at in parsed if at and at.kind == "access" and at.user == f.world.user]
    at = next(at for at in own if at.name != f.keeper.caller.family)
    await f.client.delete(keys.token(at.user, "-", at.name, 0)["family"])


async def not_in_the_row(f: Furnished) -> None:
    await f.client.hdel(f.person["user"], f"app:{f.world.app.client_id}", "stored")


async def not_in_the_list(f: Furnished) -> None:
    listed = keys.shard_app_users(f.world.user[:3], f.world.app.client_id)
    await f.client.srem(listed, keys.member(f.world.user))


async def grant_gone(f: Furnished) -> None:
    await f.client.delete(f.grant)


async def app_gone(f: Furnished) -> None:
    await f.client.delete(keys.app(f.other.app.client_id))


async def ghost_row(f: Furnished) -> None:
    await f.client.hset(f.person["user"], "app:ghost", "1")


PEOPLE = [
    case(lambda f: f.client.set("nonsense", "1"), "key", "key"),
    case(lambda f: f.client.set(keys.limit(f.world.user, "nonsense"), "1 1 1"), "key", "key"),
    case(lambda f: f.client.set(b"\xff\xfe", "1"), "key", "key"),
    case(of_another_type, "type", "type"),
    case(lambda f: then(f.first("family"), f.client.persist), "lifetime"),
    case(lambda f: then(f.first("invite"), lambda key: f.client.pexpire(key, 10**10)), "lifetime"),
    case(reserved_for_long, "address", proof=signs_in),
    case(lambda f: f.client.pexpire(f.person["audit"], 10**6), "lasting"),
    case(lambda f: f.client.hdel(f.person["user"], "password"), "row", "row"),
    case(lambda f: f.client.hset(f.grant, "nonsense", "1"), "row", "row"),
    case(lambda f: f.client.hset(f.grant, "to:" + "A" * 16, "profile"), "row", "row"),
    case(lambda f: f.client.hset(f.grant, mapping={f"to:{n:016}": "1 profile" for n in range(9)}), "row", "row"),
    case(lambda f: of_nobody(f, "audit"), "owner", "owner"),
    case(lambda f: of_nobody(f, "sessions"), "owner"),
    case(lambda f: f.client.srem(f.person["users"], keys.member(f.world.user)), "listed"),
    case(lambda f: f.client.sadd(keys.shard_users(GHOST[:3]), keys.member(GHOST)), "listed"),
    case(lambda f: f.client.delete(keys.email(f.world.email)), "address", proof=signs_in),
    case(half_made, "address-begun", proof=can_sign_in_at_last),
    case(half_made_just_now, "address-begun", proof=can_sign_in_at_last),
    case(lambda f: f.client.set(keys.email("old@example.com"), f.world.user), "address-left"),
    case(lambda f: f.client.set(keys.email("old@example.com"), f.world.user, px=10**8), "reservation"),
    case(identity_gone, "identity", proof=signs_in_elsewhere),
    case(half_moved_in, "identity-begun"),
    case(lambda f: f.client.hset(f.person["identities"], "A" * 22, "x"), "row", "row"),
    case(lambda f: f.client.set(keys.identity("A" * 22), f.world.user), "identity-left"),
    case(lambda f: then(f.first("identity"), lambda key: f.client.pexpire(key, 10**8)), "lifetime identity"),
    case(lambda f: f.client.delete(external(f)), "external-id", proof=directory_knows_the_person),
    case(lambda f: f.client.pexpire(external(f), 50_000), "external-id", proof=directory_knows_the_person),
    case(lambda f: f.client.pexpire(external(f), 10**8), "lifetime external-id", proof=directory_knows_the_person),
    case(lambda f: f.client.set(key_of("A" * 22), f.world.user), "external-id-left"),
    case(lambda f: f.client.hset(f.person["user"], "external_id", "\n"), "row external-id-left", "row"),
    case(lambda f: f.client.hset(keys.person(f.world.user)["undos"], "A" * 22, "then"), "row", "row"),
    case(undo_of_an_address_that_went, "undo", proof=address_is_kept),
    case(half_deleted, "deletion", proof=deletion_ends),
    case(half_deleted_and_noted, "deletion-open", "deletion-open", deletion_ends),
    case(lambda f: f.store.apps.begin_deletion(f.own_app), "deletion-open", "deletion-open", app_deletion_ends),
    case(lambda f: f.client.zadd(keys.DELETIONS, {f.world.user: OLD}), "deletion-left"),
    case(planned_on_no_list, "deletion-unlisted", proof=planned_deletion_is_listed),
    case(session_unlisted, "sessions", proof=is_listed),
    case(lambda f: f.client.zadd(f.person["sessions"], {"A" * 22: 1}), "sessions-left"),
    case(lambda f: f.client.hdel(f.person["user"], "picture"), "picture"),
    case(lambda f: f.client.hset(f.person["user"], "groups", "staff\nadmins"), "groups", "groups"),
    case(lambda f: f.client.delete(f.person["picture"]), "picture"),
    case(without_a_second_step, "factors"),
    case(half_a_passkey, "factors", "factors"),
    case(lambda f: f.client.hset(f.person["guesses"], "counted", 1), "row", "row"),
    case(family_gone, "family"),
    case(lambda f: then(f.first("family"), lambda key: f.client.hset(key, "api", "an-app")), "row", "row"),
    case(lambda f: then(f.first("family"), lambda key: f.client.hset(key, "jkt", "A" * 43 + " x")), "row", "row"),
    case(lambda f: then(f.first("family"), lambda key: f.client.hset(key, "up", "another")), "row", "row"),
    case(lambda f: then(f.first("family"), lambda key: f.client.hset(key, "act", "an app!")), "row", "row"),
    case(not_in_the_row, "connected", proof=shows_the_app),
    case(not_in_the_list, "connected"),
    case(lambda f: f.client.sadd(keys.shard_app_users(GHOST[:3], "ghost"), keys.member(GHOST)), "connected"),
    case(ghost_row, "connected-left"),
    case(grant_gone, "connected-left granted", "granted"),
    case(app_gone, "app numbers", "app"),
]
