"""/account/download and /account/delete: the person's data, and the end of the account."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from handlers.account.account_list import unlist_person
from handlers.account.reauth import ReauthPage
from handlers.core import mails
from handlers.core.page import DownloadPage, PageHandler
from handlers.core.params import once, parse_pairs
from store.accounts.account_deletion import DeletionForm
from store.accounts.signin.reauth import ReauthFailed
from store.accounts.signin.sessions import ACTIVITY_KEPT
from store.clock import wall
from store.moving.person_export import WRITERS
from store.operations import Person
from store.phrases import Phrase
from store.refused import Refused, SignedOut
from store.wiring import Store

MEDIA_TYPES = {"zip": "application/zip", "jsonl": "application/x-ndjson"}
PIECE_BYTES = 64 * 1024


async def pieces_of(store: Store, form: str, person: Person, documents: bool = True) -> AsyncGenerator[bytes, None]:
    """All data of a person as a file of this form, in pieces large enough to send; `documents`: their content too."""
    waiting: list[bytes] = []
    size = 0
    async with aclosing(WRITERS[form](store, person, documents)) as written:
        async for piece, _ in written:
            waiting.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES:
                yield b"".join(waiting)
                waiting, size = [], 0
    yield b"".join(waiting)


class DownloadHandler(DownloadPage):
    """The download of all data of the person."""

    async def get(self) -> None:
        """Streams what `manage.py user export` writes: a zip archive or JSON lines (`format`)."""
        form = once(parse_pairs(self.request.query)).get("format") or "zip"
        if form not in WRITERS:
            raise Refused("invalid_request", f"format is one of {', '.join(WRITERS)}.")
        session = self.require_session()
        await self.store.sessions.note(session, "account_downloaded", self.visitor)
        person = await self.store.operator.show(session.user, ACTIVITY_KEPT)
        if person is None:
            raise SignedOut
        name = f"latchkey-{wall.utc():%Y-%m-%d}.{form}"
        await self.send_file(name, MEDIA_TYPES[form], pieces_of(self.store, form, person))


class DeleteAccountHandler(ReauthPage):
    """The page on which a person deletes the account."""

    uses_scripts = True

    async def get(self) -> None:
        """Shows what will be deleted, and asks for re-authentication."""
        await self.show()

    async def show(self, *, typed: str = "", errors: dict[str, str] | None = None) -> None:
        """The page, with what was typed and the errors by part of the form."""
        session = self.require_session()
        count = await self.store.grants.count(session)
        _, account = await self.store.credits.of(session, most=1)
        factors = await self.store.factors.of(session)
        self.render(
            "account/delete.html",
            title=Phrase("Delete your account"),
            signed_in=count.profile,
            apps=count.apps,
            documents=count.documents,
            paid=account.paid,
            typed=typed,
            errors=errors or {},
            **self.ways_to_confirm(factors),
        )

    async def post(self) -> None:
        """Deletes the account after the person typed its e-mail address and re-authenticated. The first write
        ends every session and the access of every app."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        typed = DeletionForm(params.get("email") or "", params.get("password") or "", params.get("code") or "")
        try:
            if params.get("credential"):
                shown = self.read_passkey(params)
                warned = await self.store.account_deletion.with_passkey(session, typed.email, *shown, self.visitor)
            else:
                warned = await self.store.account_deletion.with_password(session, typed, self.visitor)
        except ReauthFailed as wrong:
            mails.codes_guessed(self.site, session.user, wrong.notice, self.visitor)
            self.set_status(400)
            return await self.show(typed=typed.email, errors={wrong.part: wrong.text})
        mails.account_deleted(self.site, session.user, warned, self.visitor)
        self.write_session(None)
        unlist_person(self, session.user)
        self.see_other("/account/deleted")


class DeleteOptionsHandler(ReauthPage):
    """WebAuthn options for a passkey that deletes the account."""

    async def post(self) -> None:
        """Lists this person's passkeys."""
        self.check_same_origin()
        self.ask_passkey(*await self.store.account_deletion.challenge(self.require_session()))


class DeletedHandler(PageHandler):
    """The page after the deletion of an account."""

    async def get(self) -> None:
        """Shows the same page to everybody."""
        text = Phrase("We deleted your data here, and apps can no longer use your account.")
        heading = Phrase("Your account was deleted")
        self.render("base/message.html", title=heading, heading=heading, text=text, status=200)
