"""What people and apps have: documents and credits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.parts.oauth import OauthParts
from store.parts.part import part

if TYPE_CHECKING:
    from store.credits.calls import Calls
    from store.credits.credits import Bookkeeping, Credits
    from store.credits.payments import Payments
    from store.credits.usage import UsageReports
    from store.crypto.cipher import Cipher
    from store.documents.documents import Documents
    from store.documents.hosting import Hosting
    from store.documents.person_documents import PersonDocuments


class ResourceParts(OauthParts):
    """What people and apps have: documents and credits."""

    @part
    def _bookkeeping(self) -> Bookkeeping:
        from store.credits.credits import Bookkeeping

        return self._books or Bookkeeping()

    @part
    def cipher(self) -> Cipher:
        from store.crypto.cipher import Cipher

        return Cipher(self.keys)

    @part
    def hosting(self) -> Hosting:
        from store.documents.hosting import Hosting, OwnerLimits

        return Hosting(self.client, self.scripts, OwnerLimits(), self.apps.retiring.shards_of)

    @part
    def documents(self) -> Documents:
        from store.documents.documents import Documents, Quotas

        return Documents(self.scripts, self.cipher, self._quotas or Quotas(), self.hosting, self.headroom, self.rates)

    @part
    def person_documents(self) -> PersonDocuments:
        from store.documents.person_documents import PersonDocuments

        return PersonDocuments(self.scripts, self.cipher, self._wakeup, self._idle)

    @part
    def credits(self) -> Credits:
        from store.credits.credits import Credits

        return Credits(self.scripts, self._idle, self._bookkeeping)

    @part
    def calls(self) -> Calls:
        from store.credits.calls import Calls
        from store.credits.request_digests import RequestDigests

        digests = RequestDigests(self.keys)
        made = Calls(self.scripts, self.cipher, digests, self._bookkeeping, self.rates, self.app_stats)
        made.daily.own = self.apps.spend_per_day
        return made

    @part
    def usage(self) -> UsageReports:
        from store.credits.usage import UsageReports

        return UsageReports(self.scripts, self._idle)

    @part
    def payments(self) -> Payments:
        from store.credits.payments import Payments

        return Payments(self.scripts, self._idle, self._bookkeeping)
