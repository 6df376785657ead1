"""/api/admin/v1/people/ID/export: everything that is kept about a person."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, cast

from tornado.iostream import StreamClosedError

from handlers.admin.base import AdminHandler
from store.accounts.signin.sessions import ACTIVITY_KEPT
from store.moving.person_export import WRITERS
from store.operators.roles import check_act
from store.refused import Refused

MEDIA_TYPES = {"zip": "application/zip", "jsonl": "application/jsonl"}


class AdminExportHandler(AdminHandler):
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
        try:
            with self.site.downloads.place(user):
                async with aclosing(WRITERS[form](self.store, person, documents)) as pieces:
                    async for piece, _ in pieces:
                        await self._send(piece, MEDIA_TYPES[form])
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
