"""The notes of the demo app: forms that work without JavaScript."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from demo_pages import NOT_CONNECTED, Page
from notes_client import add_note, delete_note, edit_note
from oauth_client import Tokens, Trouble

LONGEST_NOTE = 2000


class NotePage(Page):
    """What the forms share."""

    async def change(self, work: Callable[[Tokens], Awaitable[None]]) -> None:
        """Does `work` with live tokens, then shows the front page."""
        session = self.checked_session()
        try:
            async with session.lock:
                tokens = await self.live_tokens(session)
            if tokens is None:
                raise Trouble(NOT_CONNECTED, 401)
            await work(tokens)
        except Trouble as trouble:
            raise self.ended(session, trouble) from None
        self.redirect("/", status=303)

    def text(self) -> str:
        """What was written. Raises Trouble where that is nothing."""
        text = self.get_body_argument("text", "").replace("\r\n", "\n").strip()[:LONGEST_NOTE]
        if not text:
            raise Trouble("An empty note says nothing. To get rid of one, delete it.")
        return text


class AddNote(NotePage):
    """Keeps a new note."""

    async def post(self) -> None:
        await self.change(lambda tokens: add_note(self.client, tokens, self.text()))


class EditNote(NotePage):
    """Changes a note, if it is still as it was shown."""

    async def post(self) -> None:
        name, etag = self.get_body_argument("id", ""), self.get_body_argument("etag", "")
        await self.change(lambda tokens: edit_note(self.client, tokens, name, etag, self.text()))


class DeleteNote(NotePage):
    """Deletes a note, if it is still as it was shown."""

    async def post(self) -> None:
        name, etag = self.get_body_argument("id", ""), self.get_body_argument("etag", "")
        await self.change(lambda tokens: delete_note(self.client, tokens, name, etag))
