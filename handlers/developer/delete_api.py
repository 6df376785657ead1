"""/developer/apis/:client_id/delete: its owner confirms and deletes an API."""

from __future__ import annotations

from handlers.account.reauth import ReauthPage
from handlers.core import mails
from store.accounts.signin.reauth import ReauthFailed
from store.apps.owners.owner_deletion import OwnerDeletionForm
from store.phrases import Phrase


class DeleteApiHandler(ReauthPage):
    """The page on which an owner deletes an API."""

    async def get(self, client_id: str) -> None:
        """Says what ends, and asks."""
        await self.show(client_id)

    async def show(self, client_id: str, *, typed: str = "", errors: dict[str, str] | None = None) -> None:
        """The page, with what was typed and, by the part of the form, what is wrong with it."""
        session = self.require_session()
        profile, api = await self.store.owned_apis.find(session, client_id)
        self.render(
            "developer/delete_api.html",
            title=Phrase("Delete %(name)s", name=api.name),
            signed_in=profile,
            api=api,
            typed=typed,
            errors=errors or {},
            **self.ways_to_confirm(await self.store.factors.of(session)),
        )

    async def post(self, client_id: str) -> None:
        """Deletes the API: its tokens are dead when this answers."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        typed = OwnerDeletionForm(params.get("confirm") or "", params.get("password") or "", params.get("code") or "")
        ending = self.store.api_ending
        try:
            if params.get("credential"):
                shown = self.read_passkey(params)
                ended = await ending.with_passkey(session, client_id, typed.name, *shown, self.visitor)
            else:
                ended = await ending.with_password(session, client_id, typed, self.visitor)
        except ReauthFailed as wrong:
            mails.codes_guessed(self.site, session.user, wrong.notice, self.visitor)
            self.set_status(400)
            return await self.show(client_id, typed=typed.name, errors={wrong.part: wrong.text})
        self.write_session(ended.cookie)
        mails.api_deleted(self.site, session.user, ended.warned, ended.registration, self.visitor)
        self.see_done("/developer/apis?deleted")


class DeleteApiOptionsHandler(ReauthPage):
    """WebAuthn options for a passkey that deletes the API."""

    async def post(self, client_id: str) -> None:
        """One of this person's passkeys."""
        self.check_same_origin()
        self.ask_passkey(*await self.store.api_ending.challenge(self.require_session(), client_id))
