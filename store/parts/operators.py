"""Operators, and the upkeep of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.parts.part import part
from store.parts.resources import ResourceParts

if TYPE_CHECKING:
    from store.fsck.walk import Fsck
    from store.keystate import KeyState
    from store.operations import Operator
    from store.operators.address_changes import AddressChanges
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
    from store.reencryption import Reencryption
    from store.upgrade import Upgrade


class OperatorParts(ResourceParts):
    """Operators, and the upkeep of the store."""

    @part
    def operator(self) -> Operator:
        from store.operations import Operator

        return Operator(self.client, self.scripts, self.people, self.credits)

    @part
    def app_acts(self) -> AppActs:
        from store.operators.app_acts import AppActs

        return AppActs(self.apps, self.apis, self.webhooks, self.owned, self.operator, self.self_registered)

    @part
    def cursors(self) -> Cursors:
        from store.operators.cursors import Cursors

        return Cursors(self.sealer)

    @part
    def event_filters(self) -> EventFilters:
        from store.operators.event_filter import EventFilters

        return EventFilters(self.security, self.operator)

    @part
    def delivery_pages(self) -> DeliveryPages:
        from store.operators.delivery_pages import DeliveryPages

        return DeliveryPages(self.scripts, self.cursors)

    @part
    def operator_keys(self) -> OperatorKeys:
        from store.operators.operator_keys import OperatorKeys

        return OperatorKeys(self.client, self.scripts)

    @part
    def operator_replies(self) -> OperatorReplies:
        from store.operators.replies import OperatorReplies

        return OperatorReplies(self.client, self.scripts, self.security.fingerprints)

    @part
    def hosted_sizes(self) -> HostedSizes:
        from store.operators.hosted_sizes import HostedSizes

        return HostedSizes(self.client)

    @part
    def people_pages(self) -> PeoplePages:
        from store.operators.people_pages import PeoplePages

        made = PeoplePages(self.client, self.scripts, self.people, self.cursors)
        made.matching = self.directory.matching
        return made

    @part
    def people_acts(self) -> PeopleActs:
        from store.operators.people_acts import PeopleActs

        return PeopleActs(
            self.scripts,
            self.operator,
            self.role_holders,
            self.people_pages,
            self.groups,
            self._wakeup,
            self.planned_deletions,
            self.identities,
            self.address_changes,
        )

    @part
    def address_changes(self) -> AddressChanges:
        from store.operators.address_changes import AddressChanges

        return AddressChanges(self.scripts, self.addresses, self.sealer)

    @part
    def provisioning(self) -> Provisioning:
        from store.operators.provisioning import Provisioning

        return Provisioning(self.client, self.scripts, self.people, self.operator, self.role_holders, self.people_pages)

    @part
    def jobs(self) -> OperatorJobs:
        from store.operators.jobs import OperatorJobs

        return OperatorJobs(self.scripts)

    @part
    def ledgers(self) -> LedgerSearch:
        from store.operators.ledger_search import LedgerSearch

        return LedgerSearch(self.scripts, self.cursors)

    @part
    def credit_reports(self) -> CreditReports:
        from store.operators.credit_report import CreditReports

        return CreditReports(self.client, self.jobs, self.ledgers)

    @part
    def bulk_acts(self) -> BulkActs:
        from store.operators.bulk_acts import BulkActs

        return BulkActs(
            *(self.jobs, self.people_acts, self.people_pages, self.operator_keys, self.role_holders),
            self.security.fingerprints,
        )

    @part
    def key_state(self) -> KeyState:
        from store.keystate import KeyState

        return KeyState(self.scripts)

    @part
    def health(self) -> HealthReader:
        from store.operators.health import HealthReader

        return HealthReader(self.client, self.keys, self.key_state, self.signing_store)

    @part
    def reencryption(self) -> Reencryption:
        from store.reencryption import Reencryption

        return Reencryption(
            self.client,
            self.scripts,
            self.cipher,
            self.totp_secrets,
            self.keys,
            self.key_state,
            self.apps,
            self._webhook_secrets,
            self.signing_store,
            self.pairwise,
        )

    @part
    def fsck(self) -> Fsck:
        from store.fsck.walk import Fsck

        return Fsck(
            self.client,
            self.scripts,
            self.cipher,
            self.totp_secrets,
            self.keys,
            self.addresses,
            self.identities,
            self.directory_relay,
        )

    @part
    def upgrade(self) -> Upgrade:
        from store.upgrade import Upgrade

        return Upgrade(self.client, self.scripts, self.key_state, self.directory_rebuild)
