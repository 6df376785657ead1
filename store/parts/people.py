"""Accounts, sign-in and the index of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.parts.apps import AppParts
from store.parts.part import part

if TYPE_CHECKING:
    from store.accounts.account_deletion import AccountDeletion
    from store.accounts.addresses import Addresses
    from store.accounts.groups import Groups
    from store.accounts.identities import Identities
    from store.accounts.import_state import ImportState
    from store.accounts.links import Links
    from store.accounts.movers import Movers
    from store.accounts.people import People
    from store.accounts.planned_deletions import PlannedDeletions
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
    from store.apps.api_record import ApiRegistration
    from store.apps.owners.owner_deletion import OwnerDeletion
    from store.apps.registration import Registration
    from store.bounds import Bounds
    from store.directory.rebuild import DirectoryRebuild
    from store.directory.relay import DirectoryRelay
    from store.directory.search import Directory
    from store.limits import RateLimits
    from store.operators.role_holders import RoleHolders
    from store.rates import Rates
    from store.threads import Threads

PASSKEYS_WAITING = 64
"""The most passkey answers that may wait for their check; one check takes about a millisecond."""
PASSKEYS_EACH = 4
"""The same for one person, with those that wait for the person's turn: a person has one in the thread or its queue."""


class PeopleParts(AppParts):
    """Accounts, sign-in and the index of people."""

    @part
    def rates(self) -> Rates:
        from store.rates import Rates

        return Rates()

    @part
    def limits(self) -> RateLimits:
        from store.limits import RateLimits

        return RateLimits(self.scripts, self.rates)

    @part
    def addresses(self) -> Addresses:
        from store.accounts.addresses import Addresses

        return Addresses(self.client, self.scripts)

    @part
    def identities(self) -> Identities:
        from store.accounts.identities import Identities

        return Identities(self.client, self.scripts)

    @part
    def hash_prices(self) -> HashPrices:
        from store.accounts.signin.hash_prices import HashPrices

        return HashPrices(self.client)

    @part
    def movers(self) -> Movers:
        from store.accounts.movers import Movers

        return Movers(self.scripts)

    @part
    def import_state(self) -> ImportState:
        from store.accounts.import_state import ImportState

        return ImportState(self.client, self.scripts)

    @part
    def people(self) -> People:
        from store.accounts.people import People

        return People(
            self.client,
            self.scripts,
            self.sealer,
            self.hasher,
            self.addresses,
            self.app_stats,
            self._wakeup,
            self.security,
            self._part_with,
            self.identities,
            self.hash_prices,
        )

    async def _part_with(self, user: str) -> None:
        # Only a deletion needs the teams, so people are read without them.
        await self.teams.part_with(user)

    @part
    def planned_deletions(self) -> PlannedDeletions:
        from store.accounts.planned_deletions import PlannedDeletions

        return PlannedDeletions(self.scripts, self.people, self._wakeup)

    @part
    def groups(self) -> Groups:
        from store.accounts.groups import Groups

        return Groups(self.client, self.scripts, self.security)

    @part
    def directory_relay(self) -> DirectoryRelay:
        from store.directory.relay import DirectoryRelay

        return DirectoryRelay(self.client, self.scripts, self._changed)

    @part
    def directory_rebuild(self) -> DirectoryRebuild:
        from store.directory.rebuild import DirectoryRebuild

        return DirectoryRebuild(self.client, self.scripts, self.directory_relay)

    @part
    def directory(self) -> Directory:
        from store.directory.search import Directory

        return Directory(self.scripts, self.sealer, self.addresses, self.directory_relay)

    @part
    def devices(self) -> Devices:
        from store.accounts.signin.devices import Devices

        return Devices(self.scripts, self.sealer)

    @part
    def listed_accounts(self) -> ListedAccounts:
        from store.accounts.signin.listed_accounts import ListedAccounts

        return ListedAccounts(self.sealer)

    @part
    def bounds(self) -> Bounds:
        from store.bounds import Bounds

        return Bounds()

    @part
    def sessions(self) -> Sessions:
        from store.accounts.signin.sessions import Sessions

        return Sessions(
            self.scripts,
            self.sealer,
            self.hasher,
            self.devices,
            self._idle,
            self._lifetime,
            self.security,
            self.bounds,
            self._wakeup,
        )

    @part
    def signing_in(self) -> SignIn:
        from store.accounts.signin.signin import SignIn

        return SignIn(self.limits, self.people, self.sessions, self.devices)

    @part
    def totp_secrets(self) -> TotpSecrets:
        from store.accounts.signin.totp import TotpSecrets

        return TotpSecrets(self.keys)

    @part
    def _challenges(self) -> Challenges:
        from store.accounts.signin.factors import Challenges

        return Challenges(self.client, self.sealer)

    @part
    def checks(self) -> Threads:
        from store.threads import Threads

        return Threads("latchkey-passkey", workers=1, queue=PASSKEYS_WAITING)

    @part
    def _passkey_thread(self) -> PasskeyThread:
        from store.accounts.signin.passkey_thread import PasskeyThread
        from store.threads import SharedThreads

        return PasskeyThread(SharedThreads(self.checks, PASSKEYS_EACH))

    @part
    def factors(self) -> OwnFactors:
        from store.accounts.signin.factors import OwnFactors

        return OwnFactors(
            self.scripts, self.sealer, self.totp_secrets, self._challenges, self._passkey_thread, self._idle
        )

    @part
    def second_step(self) -> SecondStep:
        from store.accounts.signin.second_step import SecondStep

        return SecondStep(
            self.scripts, self.sealer, self.totp_secrets, self._challenges, self.sessions, self._passkey_thread
        )

    @part
    def upstream_flows(self) -> UpstreamFlows:
        from store.accounts.signin.upstream_flow import UpstreamFlows

        return UpstreamFlows(self.sealer)

    @part
    def upstream(self) -> UpstreamSignIn:
        from store.accounts.signin.upstream import UpstreamSignIn

        return UpstreamSignIn(self.scripts, self.sealer, self.people, self.identities, self.sessions)

    @part
    def reauth(self) -> Reauth:
        from store.accounts.signin.reauth import Reauth

        return Reauth(
            self.scripts,
            self.people,
            self.sessions,
            self.factors,
            self.totp_secrets,
            self._challenges,
            self.limits,
            self._passkey_thread,
            self.devices,
        )

    @part
    def role_holders(self) -> RoleHolders:
        from store.operators.role_holders import RoleHolders

        return RoleHolders(self.client, self.scripts)

    @part
    def account_deletion(self) -> AccountDeletion:
        from store.accounts.account_deletion import AccountDeletion

        return AccountDeletion(self.people, self.factors, self.reauth, self.role_holders.is_last_admin)

    @part
    def app_ending(self) -> OwnerDeletion[Registration]:
        from store.apps.owners.owner_deletion import OwnerDeletion

        return OwnerDeletion("app", self.owned, self.sessions, self.factors, self.reauth)

    @part
    def api_ending(self) -> OwnerDeletion[ApiRegistration]:
        from store.apps.owners.owner_deletion import OwnerDeletion

        return OwnerDeletion("API", self.owned_apis, self.sessions, self.factors, self.reauth)

    @part
    def links(self) -> Links:
        from store.accounts.links import Links

        return Links(
            self.scripts,
            self.sealer,
            self.hasher,
            self.addresses,
            self.identities,
            self.app_stats,
            self._wakeup,
            self._idle,
        )

    @part
    def undoing(self) -> Undoing:
        from store.accounts.undoing import Undoing

        return Undoing(
            self.scripts,
            self.sealer,
            self.hasher,
            self.addresses,
            self.identities,
            self.app_stats,
            self._wakeup,
            (self.owned, self.owned_apis),
        )
