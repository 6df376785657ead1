"""A store with data of every kind, a check of the store, and damage done by hand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from store import keys, parsed_keys
from store.accounts.audit.export_turn import Exported
from store.app_log import Cause
from store.apps.api_record import ApiRegistration, ApiScope
from store.apps.registration import DYNAMIC, Registration
from store.credits.payments import Movement, What
from store.credits.prices import TokenCounts
from store.crypto.dpop import DpopProof
from store.crypto.seal import new_id
from store.fsck.invariants import Finding
from store.fsck.walk import Report
from store.lifetimes import DAY, DOCUMENT_PAUSE, UNUSED_APP
from store.oauth.budgets import Budget
from store.oauth.client_assertions import Proof
from store.oauth.exchange.token_exchange import WantedToken
from store.oauth.proofs import for_call
from store.operations import Suspension
from store.operators.roles import OperatorActor
from store.refused import Refused
from store.results import Window
from store.webhooks.attempts import WebhookExchange, WebhookResponse
from store.wiring import Store
from tests.conftest import OpenStore, emptied
from tests.support.browser.pictures import drawn
from tests.support.calls.assertions import BASE_URL, said_of, trusted_for
from tests.support.calls.provisioning import known
from tests.support.moving.movers import bring, line
from tests.support.store.budgeted import decided
from tests.support.store.credit_spender import REPLY, SPENDING, Spender
from tests.support.store.document_app import Keeper
from tests.support.store.second_factors import App, add_passkey, half_of, link, shown
from tests.support.store.world import CALLBACK, VERIFIER, VISITOR, World, to_change

EVERYTHING = (*SPENDING, "data:read", "data:write")
DOCUMENTS = ("notes/n1", "notes/n2", "notes/n3", "letters/l1")


async def sign_in_and_out(world: World) -> None:
    """The person signs in to an app in another session, which ends."""
    here, world.session = world.session, await world.sign_in()
    app, _ = await world.register(f"{world.app.client_id}-openid", scopes=("openid",))
    await world.code(("openid",), app)
    await world.store.sessions.end(world.session, VISITOR)
    world.session = here


async def registered_themselves(world: World) -> None:
    """Two apps that registered themselves, of which the person has allowed the first."""
    kept = world.store.self_registered
    for name in ("used", "unused"):
        facts: dict[str, Any] = {"redirect_uris": (CALLBACK,), "scopes": (), "pkce_required": True, "origin": DYNAMIC}
        app = Registration(f"{world.app.client_id}-{name}", name, public=True, **facts)
        await kept.claim(app.client_id, UNUSED_APP)
        assert await kept.save(app, b"", UNUSED_APP)
        if name == "used":
            await kept.keep(app)
    await world.store.initial_tokens.create(3, 0, "For tests")
    await world.store.operator_keys.create("support", name="For tests")
    await world.store.role_holders.give(world.user, "auditor")
    await world.store.jobs.prepare("bulk", OperatorActor("key", "k", "admin"), {"act": "resume", "people": []}, 0)
    await world.store.operator_replies.claim(OperatorActor("key", new_id(), "admin"), "a key", b"a request")
    await world.store.client.set(keys.fetching(world.app.client_id), "a reason", px=DOCUMENT_PAUSE)


async def moved_in(world: World) -> None:
    """An import was interrupted before its first batch."""
    await bring(world.store, [line("moves@example.com")], batches=0)
    await world.store.hash_prices.add({"bcrypt 10": 1})


async def every_app(client: str, event: str) -> bool:
    """Lets every app receive every event."""
    return True


async def call_with_key(world: World) -> None:
    """Gets tokens that are bound to a key, and calls with one."""
    proof, store = DpopProof("k" * 43, new_id(), None), world.store
    issued = await store.tokens.exchange(world.app, await world.code(), CALLBACK, VERIFIER, proof)
    caller = world.caller(issued.access_token)._replace(proof=for_call(world.user, proof))
    await store.identity.read(caller, "profile")


@dataclass
class Furnished:
    """A person with data of every kind, one who has disconnected the app, and one in the team of `own_app`."""

    store: Store
    world: World
    keeper: Keeper
    other: World
    own_app: str
    api: str
    member: str

    @classmethod
    async def make(cls, store: Store) -> Furnished:
        """Fills a store, which need not be empty."""
        store.fsck.settle = 0
        await store.key_state.check(store.keys.ring)
        world = await World.make(store, scopes=EVERYTHING)
        keeper = await Keeper.make(world, scopes=EVERYTHING)
        for name in DOCUMENTS:
            await keeper.put(name, b'{"of": "some bytes"}')
        await store.credits.grant(world.user, 10_000, key="a-payment")
        happened: tuple[tuple[What, str], ...] = (("paid", ""), ("refunded", ""), ("withdrawn", "dp_1"))
        for what, dispute in happened:
            await store.payments.book(Movement(world.user, "pi_1", what, 300, 1, dispute))
        spender = await Spender.make(world, scopes=EVERYTHING)
        await decided(world, Budget("credits", 5000, "month", ("echo",)), Budget("llm-inference", 4000))
        store.calls.daily.per_app = 10_000
        await spender.settle(await spender.hold(70, key="done"), 40, reply=REPLY)
        await store.calls.settle(await spender.hold(60), TokenCounts(60, web_search=1))
        await spender.hold(90, key="under way")
        await world.refresh((await world.tokens()).refresh_token)
        await store.tokens.revoke(None, (await world.tokens()).refresh_token)
        subject = await store.token_exchange.subject(world.app, (await world.tokens(EVERYTHING)).access_token, "")
        part = WantedToken(details="llm-inference 100 total *", name="A helper")
        helper = await store.token_exchange.exchange(world.app, subject, part, None, "")
        await Spender(store, world.caller(helper.access_token)).spend(30)
        await world.code()
        await world.pending()
        await store.profiles.save_picture(world.session, drawn("WEBP", (8, 8), (1, 2, 3)), VISITOR)
        fields: dict[str, Any] = {"name": "Mine", "redirect_uris": (CALLBACK,), "scopes": ("profile",)}
        made = await store.owned.register(world.session, "a nonce", VISITOR, most=9, **fields)
        await shown(store, world.session)
        await store.teams.invite(world.session, made.registration.client_id, "new@example.com", "viewer", VISITOR)
        await store.people.invite("somebody@example.com")
        await store.links.to_reset(world.user, world.email)
        await store.limits.sign_in("192.0.2.1", world.email)
        await App.add(world)
        await add_passkey(world)
        await link(world)
        await known(world)
        await store.signing_keys.for_signing("ES256")
        await store.pushed.push(world.app.client_id, "scope=profile", Window(600, 599, 0))
        await store.device_requests.begin(world.app.client_id, "[]", VISITOR)
        trusted = trusted_for(world.app.client_id, BASE_URL, "data:read")
        await store.assertion_grants.issue(world.app, trusted, said_of(world.email), "", (), BASE_URL)
        await store.client_assertions.use(world.app.client_id, Proof(new_id(), 60_000))
        await call_with_key(world)
        await registered_themselves(world)
        await moved_in(world)
        with suppress(Refused):
            await store.second_step.with_code(await half_of(world), "000000", VISITOR)
        other = await World.make(store)
        await store.links.change(
            other.session, (await to_change(store, other.session, f"moved-{other.email}")).text, VISITOR
        )
        other.email = f"moved-{other.email}"
        await (await Keeper.make(other)).put("notes/n1")
        await other.revoke_app()
        await sign_in_and_out(other)
        await store.outbox.relay(every_app)
        await store.outbox.relay_shards({other.user[:3]}, every_app)
        [attempted] = await store.deliveries.claim(1, 30)
        exchange = WebhookExchange(
            "https://app.example/hook", (("accept", "*/*"),), b"{}", WebhookResponse((), b"busy"), 12
        )
        await store.deliveries.settle(attempted.id, 1, delivered=False, status=503, retry_in=0, exchange=exchange)
        await store.deliveries.claim(1, 30)
        await store.security.flush()
        await store.export_turns.hold(Exported(await store.security_events.end(), 1), 0)
        old: dict[Any, Any] = {
            "at": "1000",
            "event": '{"event":"signed_in","result":"ok","severity":"info","actor":"person","id":"1"}',
        }
        await store.client.xadd(keys.OLD_TRAIL["people"], old)
        await store.client.pexpire(keys.OLD_TRAIL["people"], 90 * DAY)
        await store.app_sweep.sweep()
        await world.tokens(app=(await world.register(f"{world.app.client_id}-left", scopes=EVERYTHING))[0])
        await store.grants.pause(world.session, f"{world.app.client_id}-left", VISITOR)
        await store.grants.revoke(world.session, f"{world.app.client_id}-left", VISITOR)
        store.app_stats.called(world.app.client_id, limited=False)
        await store.app_stats.flush()
        store.app_log.refused(
            world.app.client_id, Cause("authorize", "invalid_request", "Why.", "https://app.example/")
        )
        await store.app_log.flush()
        api = ApiRegistration(f"https://{world.app.client_id}.example", "Orders", (ApiScope("orders", "Orders"),))
        registered, _ = await store.apis.create(api)
        await store.apps.update(made.registration.client_id, api_scopes=(f"{registered.client_id}/orders",))
        await store.owned.set_logo(world.session, made.registration.client_id, b"a logo", VISITOR)
        member = await world.person(f"member-{world.email}")
        await store.teams.put(made.registration.client_id, member, "viewer")
        leaver = await world.person(f"leaver-{world.email}")
        await store.operator.suspend(leaver, Suspension("Unpaid", "Ticket 4711"))
        await store.planned_deletions.plan(leaver, 7)
        await store.directory_relay.repeat([world.user, other.user, member, leaver])
        await store.client.hset(keys.changed(member)["changed"], keys.member(member), "")
        return cls(store, world, keeper, other, made.registration.client_id, registered.client_id, member)

    @property
    def client(self) -> Any:
        """A client to damage the store with."""
        return self.store.client

    @property
    def hosted(self) -> dict[str, str]:
        """The keys of the documents."""
        return self.keeper.keys()

    @property
    def person(self) -> dict[str, str]:
        """The fixed keys of the person."""
        return keys.person(self.world.user)

    @property
    def grant(self) -> str:
        """The key of the grant."""
        return keys.grant(self.world.user, self.world.app.client_id)

    async def delegated(self) -> str:
        """The key of the family of the delegated token."""
        listed = (await self.client.hget(self.grant, "delegated")).decode()
        return keys.token(self.world.user, "-", listed.partition(":")[0], 0)["family"]

    @property
    def lease(self) -> str:
        """What the person's shard may spend of the app's daily limit."""
        return keys.lease(self.world.user, self.world.app.client_id)["lease"]

    @property
    def due(self) -> str:
        """The due list of the person's shard."""
        return keys.outbox_keys(self.world.user[:3])["due"]

    @property
    def listed(self) -> str:
        """The deliveries of the disconnected app."""
        return keys.deliveries(self.other.app.client_id)["listed"]

    async def first(self, kind: str, user: str | None = None) -> str:
        """A key of a kind, of the person unless another is named."""
        async for raw in self.client.scan_iter(count=1000):
            at = parsed_keys.read(raw.decode())
            if at is not None and at.kind == kind and at.user in ("", user or self.world.user):
                return str(raw.decode())
        raise AssertionError(f"there is no {kind}")


async def checked(store: Store, **options: Any) -> Report:
    """The report at the end of a check."""
    last = None
    async for last in store.fsck.run(**options):
        assert last.seen >= 0
    assert last is not None
    return last


def findings(report: Report) -> list[Finding]:
    """All findings, mended or not."""
    return [finding for tally in report.tallies.values() for finding, _ in tally.first]


def unmended(report: Report) -> set[str]:
    """The invariants that are still broken."""
    return {name for name, tally in report.tallies.items() if tally.found > tally.mended}


def broken(report: Report) -> set[str]:
    """The invariants with findings."""
    return {name for name, tally in report.tallies.items() if tally.found}


@pytest.fixture(autouse=True)
def few_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a walk over all shards, as the deletion of an app does it, quick."""
    monkeypatch.setattr(keys, "SHARDS", keys.SHARDS[:16])


@pytest.fixture
def one_store(request: pytest.FixtureRequest, open_store: OpenStore) -> Store:
    """A store on Valkey, which is faster than one in memory."""
    return open_store(emptied(request, "valkey"))
