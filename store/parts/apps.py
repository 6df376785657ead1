"""Apps, their owners and APIs, signing keys, and webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.parts.part import PartsBase, part

if TYPE_CHECKING:
    from store.accounts.audit.export_turn import ExportTurns
    from store.accounts.audit.security_reading import SecurityEvents
    from store.app_log import AppLog
    from store.app_stats import AppStats
    from store.apps.apis import Apis
    from store.apps.apps import Apps
    from store.apps.cache import Announcements
    from store.apps.owners.invitations import Invitations
    from store.apps.owners.owned import OwnedApps
    from store.apps.owners.owned_apis import OwnedApis
    from store.apps.owners.owner_notes import OwnerNotes
    from store.apps.owners.team import Teams
    from store.apps.self_registered.documents import DocumentFetches
    from store.apps.self_registered.initial_tokens import InitialTokens
    from store.apps.self_registered.kept import SelfRegistered
    from store.apps.sweep import AppSweep
    from store.apps.webhooks import Webhooks, WebhookSecrets
    from store.crypto.pairwise import Pairwise
    from store.crypto.signing_keys import SigningKeys
    from store.crypto.signing_store import SigningStore
    from store.oauth.subjects import Subjects
    from store.webhooks.deliveries import Deliveries
    from store.webhooks.outbox import Outbox


class AppParts(PartsBase):
    """Apps, their owners and APIs, signing keys, and webhooks."""

    @part
    def security_events(self) -> SecurityEvents:
        from store.accounts.audit.security_reading import SecurityEvents

        return SecurityEvents(self.scripts)

    @part
    def export_turns(self) -> ExportTurns:
        from store.accounts.audit.export_turn import ExportTurns

        return ExportTurns(self.scripts)

    @part
    def apps(self) -> Apps:
        from store.apps.apps import Apps

        found = Apps(self.client, self.scripts, wakeup=self._wakeup)
        found.filled = lambda app: self.self_registered.filled(app)
        return found

    @part
    def apis(self) -> Apis:
        from store.apps.apis import Apis

        return Apis(self.client, self.scripts)

    @part
    def signing_store(self) -> SigningStore:
        from store.crypto.signing_store import SigningStore

        return SigningStore(self.scripts, self.keys, self._lifetime)

    @part
    def signing_keys(self) -> SigningKeys:
        from store.crypto.signing_keys import SigningKeys

        return SigningKeys(self.signing_store)

    @part
    def announcements(self) -> Announcements:
        from store.apps.cache import Announcements

        return Announcements(self.client, self.apps.forget, self.apis.forget, self.signing_keys.heard)

    @part
    def app_sweep(self) -> AppSweep:
        from store.apps.sweep import AppSweep

        sweep = AppSweep(self.client, self.apps)
        sweep.end_idle = self.self_registered.end_idle
        return sweep

    @part
    def self_registered(self) -> SelfRegistered:
        from store.apps.self_registered.kept import SelfRegistered

        return SelfRegistered(self.client, self.scripts, self.apps, self.apis)

    @part
    def initial_tokens(self) -> InitialTokens:
        from store.apps.self_registered.initial_tokens import InitialTokens

        return InitialTokens(self.client)

    @part
    def document_fetches(self) -> DocumentFetches:
        from store.apps.self_registered.documents import DocumentFetches

        return DocumentFetches(self.client)

    @part
    def _webhook_secrets(self) -> WebhookSecrets:
        from store.apps.webhooks import WebhookSecrets

        return WebhookSecrets(self.keys)

    @part
    def webhooks(self) -> Webhooks:
        from store.apps.webhooks import Webhooks

        return Webhooks(self.apps, self._webhook_secrets)

    @part
    def app_stats(self) -> AppStats:
        from store.app_stats import AppStats

        return AppStats(self.scripts)

    @part
    def app_log(self) -> AppLog:
        from store.app_log import AppLog

        return AppLog(self.scripts)

    @part
    def deliveries(self) -> Deliveries:
        from store.webhooks.deliveries import Deliveries

        return Deliveries(self.scripts, self.headroom)

    @part
    def pairwise(self) -> Pairwise:
        from store.crypto.pairwise import Pairwise

        return Pairwise(self.client, self.scripts, self.keys)

    @part
    def subjects(self) -> Subjects:
        from store.oauth.subjects import Subjects

        return Subjects(self.pairwise, self.apps)

    @part
    def outbox(self) -> Outbox:
        from store.webhooks.outbox import Outbox

        return Outbox(self.client, self.scripts, self.deliveries, self.subjects.in_event, self._wakeup)

    @part
    def _owner_notes(self) -> OwnerNotes:
        from store.apps.owners.owner_notes import OwnerNotes

        return OwnerNotes(self.scripts, self._idle)

    @part
    def _invitations(self) -> Invitations:
        from store.apps.owners.invitations import Invitations

        return Invitations(self.client, self.scripts, self.sealer)

    @part
    def owned(self) -> OwnedApps:
        from store.apps.owners.owned import OwnedApps

        return OwnedApps(
            self.client,
            self.scripts,
            self.apps,
            self.webhooks,
            self._owner_notes,
            self._invitations,
            self._idle,
            self.headroom,
        )

    @part
    def teams(self) -> Teams:
        from store.apps.owners.team import Teams

        return Teams(self.client, self.scripts, self.apps, self._invitations, self._owner_notes, self._idle)

    @part
    def owned_apis(self) -> OwnedApis:
        from store.apps.owners.owned_apis import OwnedApis

        return OwnedApis(self.scripts, self.apis, self.apps, self._owner_notes)
