"""/api/admin/v1/people/ID/export and /audit/export: everything that is kept about a person, and the security log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from tornado.iostream import StreamClosedError

from handlers.admin.base import AdminHandler, valid
from handlers.admin.trails import bounds_of
from store.accounts.signin.sessions import ACTIVITY_KEPT
from store.moving.person_export import WRITERS
from store.operators import trail_formats
from store.operators.event_filter import EVENT_FILTERS
from store.operators.roles import check_act
from store.operators.trail_formats import exported
from store.refused import Refused

MEDIA_TYPES = {"zip": "application/zip", "jsonl": "application/jsonl"}


class AdminFileHandler(AdminHandler):
    """A call that answers with a file."""

    async def send_all(self, user: str, pieces: AsyncGenerator[bytes, None], media_type: str) -> None:
        """Sends the pieces, each once the one before is on its way; `user`: as in `DownloadPlaces.place`. Raises
        Refused if too many downloads are in progress."""
        try:
            with self.site.downloads.place(user):
                async with aclosing(pieces):
                    async for piece in pieces:
                        await self._send(piece, media_type)
            if not self.head_sent:
                await self._send(b"", media_type)
            await self.finish()
        except StreamClosedError:
            self.finish()
        except BaseException:
            # Nobody must take half an export for a whole one.
            if self.head_sent:
                cast(Any, self.request.connection).stream.close()
            raise

    async def _send(self, piece: bytes, media_type: str) -> None:
        if not self.head_sent:
            self.step_aside()
            self.set_header("Content-Type", media_type)
        self.streamed += len(piece)
        self.write(piece)
        await self.flush()


class AdminExportHandler(AdminFileHandler):
    """The export."""

    async def get(self, user: str) -> None:
        """Streams what `latchkey user export` writes. Documents have a role of their own: `documents=true`."""
        params = self.query("format", "documents")
        form, documents = params.get("format") or "jsonl", self.flag(params, "documents")
        if form not in WRITERS:
            raise Refused("invalid_request", f"format is {' or '.join(WRITERS)}.")
        if documents:
            check_act(self.actor, "people.export_documents")
        person = await self.store.operator.find(user, ACTIVITY_KEPT)
        await self.store.operator.note(user, "exported_by_operator")
        await self.send_all(user, _pieces(WRITERS[form](self.store, person, documents)), MEDIA_TYPES[form])


class AdminTrailExportHandler(AdminFileHandler):
    """The security log as a file."""

    async def get(self) -> None:
        """Streams events, oldest first, as JSON lines, CEF or OTLP logs: `format`, `since`, `until`, and the filters of
        the list."""
        params = self.query("format", "since", "until", *EVENT_FILTERS)
        form = trail_format(params.get("format") or "")
        with valid():
            bounds = bounds_of(params.get("since") or "", params.get("until") or "")
            wanted = await self.store.event_filters.of(*(params.get(name) or "" for name in EVENT_FILTERS))
        self.store.security.note("trail_exported_by_operator", detail=form)
        pieces = exported(self.store.security_events, form, *bounds, wanted)
        await self.send_all("", pieces, trail_formats.MEDIA_TYPES[form])


def trail_format(text: str) -> str:
    """A form of the security log; JSON lines without one. Raises Refused("invalid_request")."""
    if text and text not in trail_formats.FORMATS:
        raise Refused("invalid_request", f"format is {' or '.join(trail_formats.FORMATS)}.")
    return text or "jsonl"


async def _pieces(numbered: AsyncIterator[tuple[bytes, int]]) -> AsyncGenerator[bytes, None]:
    async for piece, _ in numbered:
        yield piece
