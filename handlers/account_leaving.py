"""/account/download and /account/delete: what a person takes along, and the end of the account."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime

from handlers.download import DownloadPage
from handlers.page import PageHandler
from handlers.params import once, parse_pairs
from store.export import WRITERS
from store.names import normalise_email
from store.operations import Person
from store.refused import Refused, SignedOut
from store.sessions import ACTIVITY_KEPT

MEDIA_TYPES = {"zip": "application/zip", "jsonl": "application/x-ndjson"}
PIECE_BYTES = 64 * 1024


class DownloadHandler(DownloadPage):
    """The download of everything that is kept of the person."""

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
        name = f"latchkey-{datetime.now(UTC):%Y-%m-%d}.{form}"
        await self.send_file(name, MEDIA_TYPES[form], self.pieces(form, person))

    async def pieces(self, form: str, person: Person) -> AsyncGenerator[bytes, None]:
        """The file, in pieces that are worth sending."""
        waiting: list[bytes] = []
        size = 0
        async with aclosing(WRITERS[form](self.store, person)) as written:
            async for piece, _ in written:
                waiting.append(piece)
                size += len(piece)
                if size >= PIECE_BYTES:
                    yield b"".join(waiting)
                    waiting, size = [], 0
        yield b"".join(waiting)


class DeleteAccountHandler(PageHandler):
    """The page on which a person deletes the account."""

    async def get(self) -> None:
        """Says what goes, and asks."""
        await self.show()

    async def show(self, *, typed: str = "", email_error: str = "", password_error: str = "") -> None:
        """The page, with what was typed and what is wrong with it."""
        session = self.require_session()
        profile, grants = await self.store.grants.list(session)
        _, account = await self.store.credits.of(session, most=1)
        self.render(
            "account_delete.html",
            title="Delete your account",
            signed_in=profile,
            apps=sum(1 for grant in grants if not grant.data_until),
            documents=sum(grant.documents for grant in grants),
            paid=account.paid,
            typed=typed,
            email_error=email_error,
            password_error=password_error,
        )

    async def post(self) -> None:
        """Deletes the account once the e-mail address is typed and the password right; with the first write every
        session and every app's access is over."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        typed, password = params.get("email") or "", params.get("password") or ""
        profile = await self.store.sessions.profile(session)
        if not _names(typed, profile.email):
            self.set_status(400)
            return await self.show(typed=typed, email_error="That is not the e-mail address of this account.")
        await self.store.limits.sign_in(self.counted_address, profile.email)
        credentials = await self.store.people.verify(profile.email, password)
        if credentials is None or credentials.user != session.user:
            self.set_status(400)
            return await self.show(typed=typed, password_error="That is not your password.")  # noqa: S106  # a message
        await self.store.people.delete(session.user, profile.email)
        self.write_session(None)
        self.see_other("/account/deleted")


class DeletedHandler(PageHandler):
    """Where the browser goes when the account is deleted."""

    async def get(self) -> None:
        """Says so to anybody, and is the same for all."""
        text = "Everything that was kept of you here is gone, and no app can use your account any more."
        heading = "Your account was deleted"
        self.render("message.html", title=heading, heading=heading, text=text, status=200)


def _names(typed: str, email: str) -> bool:
    """Whether this is the account's address, however it is spelt."""
    try:
        return normalise_email(typed) == email
    except ValueError:
        return False
