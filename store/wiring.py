"""An open store: one client, the scripts, and a module for each noun."""

from __future__ import annotations

from collections.abc import Iterator

from redis.asyncio import Redis

from store.accounts.account_deletion import AccountDeletion
from store.accounts.addresses import Addresses
from store.accounts.audit.recorded import RecordedEvents
from store.accounts.audit.security_log import SecurityLog
from store.accounts.audit.security_reading import SecurityEvents
from store.accounts.groups import Groups
from store.accounts.identities import Identities
from store.accounts.import_state import ImportState
from store.accounts.links import Links
from store.accounts.movers import Movers
from store.accounts.people import People
from store.accounts.planned_deletions import PlannedDeletions
from store.accounts.profiles import Profiles
from store.accounts.signin.devices import Devices
from store.accounts.signin.factors import Challenges, OwnFactors
from store.accounts.signin.hash_prices import HashPrices
from store.accounts.signin.listed_accounts import ListedAccounts
from store.accounts.signin.passkey_thread import PasskeyThread
from store.accounts.signin.reauth import Reauth
from store.accounts.signin.second_step import SecondStep
from store.accounts.signin.sessions import Sessions
from store.accounts.signin.signin import SignIn
from store.accounts.signin.totp import TotpSecrets
from store.accounts.signin.upstream import UpstreamSignIn
from store.accounts.signin.upstream_flow import UpstreamFlows
from store.accounts.undoing import Undoing
from store.app_log import AppLog
from store.app_stats import AppStats
from store.apps.apis import Apis
from store.apps.apps import Apps
from store.apps.cache import Announcements
from store.apps.owners.invitations import Invitations
from store.apps.owners.owned import OwnedApps
from store.apps.owners.owned_apis import OwnedApis
from store.apps.owners.owner_deletion import OwnerDeletion
from store.apps.owners.owner_notes import OwnerNotes
from store.apps.owners.team import Teams
from store.apps.self_registered.documents import DocumentFetches
from store.apps.self_registered.initial_tokens import InitialTokens
from store.apps.self_registered.kept import SelfRegistered
from store.apps.sweep import AppSweep
from store.apps.webhooks import Webhooks, WebhookSecrets
from store.bounds import Bounds
from store.credits.calls import Calls
from store.credits.credits import Bookkeeping, Credits
from store.credits.payments import Payments
from store.credits.usage import UsageReports
from store.crypto.cipher import Cipher
from store.crypto.keyring import Keys
from store.crypto.pairwise import Pairwise
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Sealer
from store.crypto.signing_keys import SigningKeys
from store.crypto.signing_store import SigningStore
from store.directory.rebuild import DirectoryRebuild
from store.directory.relay import DirectoryRelay
from store.directory.search import Directory
from store.documents.documents import Documents, Quotas
from store.documents.hosting import Hosting, OwnerLimits
from store.documents.person_documents import PersonDocuments
from store.engine.connect import acknowledged, check_store, connect
from store.engine.memory import Headroom, Room, room_of
from store.engine.replicas import Wait
from store.engine.scripts import ScriptObserver, Scripts
from store.errors import StartupError, StoreError, wrapped
from store.fsck.walk import Fsck
from store.keystate import LAYOUT, KeyState
from store.lifetimes import CLIENT, DEVICE_REQUESTS, INTROSPECT
from store.limits import RateLimits
from store.oauth.api_access import ApiAccess
from store.oauth.app_tokens import AppTokens
from store.oauth.assertions.assertion_grants import AssertionGrants
from store.oauth.authorizations import Authorizations
from store.oauth.client_assertions import ClientAssertions
from store.oauth.device_requests import DeviceRequests
from store.oauth.grants import Grants
from store.oauth.id_tokens import IdTokens
from store.oauth.identity import Identity
from store.oauth.introspection import Introspection
from store.oauth.logout_tokens import LogoutTokens
from store.oauth.mcp_messages import McpMessages
from store.oauth.portions import Portions
from store.oauth.progress import RequestProgress
from store.oauth.proofs import Proofs
from store.oauth.pushed import PushedRequests
from store.oauth.subjects import Subjects
from store.oauth.token_exchange import TokenExchange
from store.oauth.tokens import Tokens
from store.operations import Operator
from store.operators.app_acts import AppActs
from store.operators.bulk_acts import BulkActs
from store.operators.credit_report import CreditReports
from store.operators.cursors import Cursors
from store.operators.delivery_pages import DeliveryPages
from store.operators.event_filter import EventFilters
from store.operators.health import HealthReader
from store.operators.hosted_sizes import HostedSizes
from store.operators.jobs import OperatorJobs
from store.operators.ledger_search import LedgerSearch
from store.operators.operator_keys import OperatorKeys
from store.operators.people_acts import PeopleActs
from store.operators.people_pages import PeoplePages
from store.operators.provisioning import Provisioning
from store.operators.replies import OperatorReplies
from store.operators.role_holders import RoleHolders
from store.rates import Rates
from store.reencryption import Reencryption
from store.threads import SharedThreads, Threads
from store.upgrade import Upgrade
from store.webhooks.deliveries import Deliveries
from store.webhooks.outbox import Outbox
from store.webhooks.relay_wakeup import RelayWakeup

PASSKEYS_WAITING = 64
"""The most passkey answers that may wait for their check; one check takes about a millisecond."""
PASSKEYS_EACH = 4
"""The same for one person, with those that wait for the person's turn: a person has one in the thread or its queue."""


class Store:
    """Everything a process does with the store. `session_idle` and `session_lifetime` are in seconds,
    `refresh_lifetime` is in days (0: none); with `wait`, a durable script waits for replicas before it answers."""

    def __init__(
        self,
        client: Redis,
        keys: Keys,
        hasher: PasswordHasher,
        *,
        session_idle: int,
        session_lifetime: int,
        refresh_lifetime: int = 0,
        quotas: Quotas | None = None,
        books: Bookkeeping | None = None,
        wait: Wait | None = None,
    ) -> None:
        self.client = client
        self.keys, self.hasher = keys, hasher
        self.scripts = scripts = Scripts(client, durable=acknowledged(client, wait))
        self.security = security = SecurityLog(scripts, keys)
        scripts.hear, scripts.noted_as = security.heard, security.noted_as
        self.activity_figures, self.security_events = security.trail.figures, SecurityEvents(scripts)
        self.recorded_events = RecordedEvents(client, security)
        self.sealer = sealer = Sealer(keys)
        idle, lifetime = session_idle * 1000, session_lifetime * 1000
        wakeup = RelayWakeup()
        self.headroom = headroom = Headroom()
        self.apps = Apps(client, scripts, wakeup=wakeup)
        self.apis = Apis(client, scripts)
        self.signing_store = SigningStore(scripts, keys, lifetime)
        self.signing_keys = SigningKeys(self.signing_store)
        self.announcements = Announcements(client, self.apps.forget, self.apis.forget, self.signing_keys.heard)
        self.app_sweep = AppSweep(client, self.apps)
        self.self_registered = SelfRegistered(client, scripts, self.apps, self.apis)
        self.app_sweep.end_idle = self.self_registered.end_idle
        self.initial_tokens = InitialTokens(client)
        self.document_fetches = DocumentFetches(client)
        signing = WebhookSecrets(keys)
        self.webhooks = Webhooks(self.apps, signing)
        self.app_stats = AppStats(scripts)
        self.app_log = AppLog(scripts)
        self.deliveries = Deliveries(scripts, headroom)
        self.pairwise = Pairwise(client, scripts, keys)
        self.subjects = Subjects(self.pairwise, self.apps)
        self.outbox = Outbox(client, scripts, self.deliveries, self.subjects.in_event, wakeup)
        notes = OwnerNotes(scripts, idle)
        invitations = Invitations(client, scripts, sealer)
        self.owned = OwnedApps(client, scripts, self.apps, self.webhooks, notes, invitations, idle, headroom)
        self.teams = Teams(client, scripts, self.apps, invitations, notes, idle)
        self.owned_apis = OwnedApis(scripts, self.apis, self.apps, notes)
        self.rates = rates = Rates()
        self.limits = RateLimits(scripts, rates)
        self.addresses = addresses = Addresses(client, scripts)
        self.identities = identities = Identities(client, scripts)
        self.hash_prices = prices = HashPrices(client)
        self.movers = Movers(scripts)
        self.import_state = ImportState(client, scripts)
        of_index = (self.teams.part_with, identities, prices)
        self.people = People(client, scripts, sealer, hasher, addresses, self.app_stats, wakeup, security, *of_index)
        self.planned_deletions = planned = PlannedDeletions(scripts, self.people, wakeup)
        self.groups = Groups(client, scripts, security)
        changed = RelayWakeup()
        scripts.changed = changed.add_key
        self.directory_relay = relay = DirectoryRelay(client, scripts, changed)
        self.directory_rebuild = DirectoryRebuild(client, scripts, relay)
        self.directory = Directory(scripts, sealer, addresses, relay)
        self.devices = Devices(scripts, sealer)
        self.listed_accounts = ListedAccounts(sealer)
        self.bounds = bounds = Bounds()
        self.sessions = Sessions(scripts, sealer, hasher, self.devices, idle, lifetime, security, bounds, wakeup)
        self.signing_in = SignIn(self.limits, self.people, self.sessions, self.devices)
        self.totp_secrets = secrets = TotpSecrets(keys)
        challenges = Challenges(client, sealer)
        self.checks = Threads("latchkey-passkey", workers=1, queue=PASSKEYS_WAITING)
        checks = PasskeyThread(SharedThreads(self.checks, PASSKEYS_EACH))
        self.factors = OwnFactors(scripts, sealer, secrets, challenges, checks, idle)
        self.second_step = SecondStep(scripts, sealer, secrets, challenges, self.sessions, checks)
        self.upstream_flows = UpstreamFlows(sealer)
        self.upstream = UpstreamSignIn(scripts, sealer, self.people, identities, self.sessions)
        self.reauth = Reauth(
            scripts, self.people, self.sessions, self.factors, secrets, challenges, self.limits, checks, self.devices
        )
        self.role_holders = holders = RoleHolders(client, scripts)
        self.account_deletion = AccountDeletion(self.people, self.factors, self.reauth, holders.is_last_admin)
        self.app_ending = OwnerDeletion("app", self.owned, self.sessions, self.factors, self.reauth)
        self.api_ending = OwnerDeletion("API", self.owned_apis, self.sessions, self.factors, self.reauth)
        self.links = Links(scripts, sealer, hasher, addresses, identities, self.app_stats, wakeup, idle)
        possessions = (self.owned, self.owned_apis)
        self.undoing = Undoing(scripts, sealer, hasher, addresses, identities, self.app_stats, wakeup, possessions)
        self.authorizations = Authorizations(scripts, sealer, idle, bounds, rates)
        self.authorizations.keep = self.self_registered.keep
        self.progress = RequestProgress(sealer)
        self.client_assertions = ClientAssertions(scripts)
        access = ApiAccess(self.apis, self.signing_keys, self.subjects)
        self.proofs = proofs = Proofs(scripts, sealer)
        self.tokens = Tokens(
            scripts, sealer, self.limits, self.app_stats, wakeup, bounds, access, proofs, refresh_lifetime
        )
        self.introspection = Introspection(
            scripts, sealer, access, self.subjects, self.apps, self.apis, refresh_lifetime
        )
        self.client_windows = Portions(scripts, CLIENT)
        self.mcp_messages = McpMessages(scripts)
        self.app_tokens = AppTokens(scripts, sealer, self.apis, access, self.client_windows, proofs)
        self.token_exchange = TokenExchange(scripts, sealer, self.limits, self.apps, access, proofs)
        self.assertion_grants = AssertionGrants(
            scripts, sealer, addresses, self.app_stats, bounds, self.apis, access, proofs
        )
        self.pushed = PushedRequests(scripts, sealer)
        self.device_requests = DeviceRequests(scripts, sealer, keys, self.limits, self.tokens)
        self.device_windows = Portions(scripts, DEVICE_REQUESTS)
        self.introspection_windows = Portions(scripts, INTROSPECT)
        self.id_tokens = IdTokens(self.signing_keys)
        self.logout_tokens = LogoutTokens(self.signing_keys)
        self.identity = Identity(scripts, rates)
        self.profiles = Profiles(scripts, sealer, idle, headroom)
        self.grants = Grants(scripts, wakeup, idle, rates)
        self.cipher = Cipher(keys)
        self.hosting = Hosting(client, scripts, OwnerLimits(), self.apps.retiring.shards_of)
        self.documents = Documents(scripts, self.cipher, quotas or Quotas(), self.hosting, headroom, rates)
        self.person_documents = PersonDocuments(scripts, self.cipher, wakeup, idle)
        self.credits = Credits(scripts, idle, books or Bookkeeping())
        self.calls = Calls(scripts, self.cipher, books or Bookkeeping(), rates, self.app_stats)
        self.usage = UsageReports(scripts, idle)
        self.payments = Payments(scripts, idle, books or Bookkeeping())
        self.operator = Operator(client, scripts, self.people, self.credits)
        self.app_acts = AppActs(self.apps, self.apis, self.webhooks, self.owned, self.operator, self.self_registered)
        self.cursors = Cursors(sealer)
        self.event_filters = EventFilters(security, self.operator)
        self.delivery_pages = DeliveryPages(self.scripts, self.cursors)
        self.operator_keys = OperatorKeys(client, scripts)
        self.operator_replies = OperatorReplies(client, scripts)
        self.hosted_sizes = HostedSizes(client)
        self.people_pages = PeoplePages(client, scripts, self.people, self.cursors)
        self.people_pages.matching = self.directory.matching
        acted_on = (self.operator, holders, self.people_pages, self.groups, wakeup, planned, identities)
        self.people_acts = PeopleActs(scripts, *acted_on)
        self.provisioning = Provisioning(client, scripts, self.people, self.operator, holders, self.people_pages)
        self.jobs = OperatorJobs(scripts)
        self.ledgers = LedgerSearch(scripts, self.cursors)
        self.credit_reports = CreditReports(client, self.jobs, self.ledgers)
        self.bulk_acts = BulkActs(self.jobs, self.people_acts, self.people_pages, self.operator_keys, holders)
        self.key_state = KeyState(scripts)
        self.health = HealthReader(client, keys, self.key_state, self.signing_store)
        ring_facts = (client, scripts, self.cipher, secrets, keys, self.key_state)
        self.reencryption = Reencryption(*ring_facts, self.apps, signing, self.signing_store, self.pairwise)
        self.fsck = Fsck(client, scripts, self.cipher, secrets, keys, addresses, identities, relay)
        self.upgrade = Upgrade(client, scripts, self.key_state, self.directory_rebuild)

    @classmethod
    async def open(
        cls,
        url: str,
        keys: Keys,
        hasher: PasswordHasher,
        *,
        timeout: float,
        connections: int,
        session_idle: int,
        session_lifetime: int,
        refresh_lifetime: int = 0,
        quotas: Quotas | None = None,
        books: Bookkeeping | None = None,
        wait: Wait | None = None,
    ) -> Store:
        """Connects, checks that the store fits this process, and upgrades an earlier release's data to the present
        layout. `timeout` is in seconds, for one call. Raises StartupError if the store cannot be reached, would evict,
        or was written with other keys or by a later release."""
        client = await connect(url, socket_timeout=timeout, max_connections=connections)
        store = cls(
            client,
            keys,
            hasher,
            session_idle=session_idle,
            session_lifetime=session_lifetime,
            refresh_lifetime=refresh_lifetime,
            quotas=quotas,
            books=books,
            wait=wait,
        )
        try:
            await check_store(client, url, wait)
            layout = await store.key_state.check(keys.ring)
            if layout < LAYOUT:
                await store.upgrade.run(layout)
        except BaseException as error:
            await store.close()
            if isinstance(error, StoreError):
                raise StartupError(f"the store failed at the first call: {error}") from None
            raise
        return store

    def observed_by(self, observer: ScriptObserver | None) -> None:
        """Reports the duration of each script to `observer` from now on; None stops the reports."""
        self.scripts.observer = observer

    def answers(self) -> Iterator[tuple[str, str, int]]:
        """Yields each script, the words it has answered in this process, and how often."""
        return self.scripts.answers()

    @property
    def queue(self) -> int:
        """Calls that wait for their answer."""
        return sum(
            connection.queue for connection in getattr(self.client, "pipelined_connections", ())
        )  # the store in memory has none

    async def room(self) -> Room | None:
        """How full the store is; None if the store does not say. Raises StoreUnavailable."""
        return await room_of(self.client)

    async def ping(self) -> None:
        """Raises StoreUnavailable when the store does not answer."""
        with wrapped():
            await self.client.ping()

    async def close(self) -> None:
        """Closes connections and threads."""
        self.hasher.close()
        self.checks.close()
        with wrapped():
            await self.client.aclose()
