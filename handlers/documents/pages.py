"""/account/apps/:client_id/data: an app's data about the person, to view, download and delete."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, closing
from itertools import groupby
from types import SimpleNamespace

from handlers.account.reauth_forms import GuardedPage
from handlers.core.lists.paging import part_of
from handlers.core.page import DownloadPage
from handlers.core.params import once, parse_pairs
from handlers.documents.documents import check_names
from handlers.documents.pretty import in_parts, indented
from store.clock import wall
from store.documents.archive import ARCHIVES, Archive
from store.phrases import Phrase
from store.refused import Refused

PAGE, COLLECTIONS = 50, 40
"""Documents and collections on a page."""
PART = 30_000
"""Bytes of a long document on a page."""
NOTICES = {
    "deleted": Phrase("The document was deleted."),
    "all-deleted": Phrase("All stored documents were deleted."),
}


class DataHandler(GuardedPage):
    """A page about one app's data."""

    async def app(self, client_id: str) -> SimpleNamespace:
        """The app, as the pages name it. It may have been deleted since."""
        app = await self.store.apps.remembered(client_id)
        return SimpleNamespace(client_id=client_id, name=app.name if app else "An app that no longer exists")


class AppDataHandler(DataHandler):
    """The documents of an app."""

    async def get(self, client_id: str) -> None:
        """Shows a page of documents by collection: names, sizes and dates. `collection` selects one; `after` shows the
        next page."""
        params = once(parse_pairs(self.request.query))
        collection, after = params.get("collection") or "", params.get("after") or ""
        if collection:
            check_names(collection)
        if after:
            check_names(*after.partition("/")[::2])
        page = await self.store.person_documents.list(
            self.require_session(), client_id, collection=collection, after=after, most=PAGE
        )
        names = [name for name, _, _ in page.usage.collections]
        number = self.page_asked("collections") if params.get("collections") else 0
        if not number:  # the one with the collection that is shown
            number = names.index(collection) // COLLECTIONS + 1 if collection in names else 1
        at = f"/account/apps/{client_id}/data{f'?collection={collection}' if collection else ''}"
        self.render(
            "account/app_data.html",
            title=Phrase("Stored documents"),
            signed_in=page.profile,
            app=await self.app(client_id),
            notice=self.notice(NOTICES),
            data_until=page.data_until,
            usage=page.usage,
            collections=part_of(page.usage.collections, COLLECTIONS, number, at, "collections"),
            collection=collection,
            after=after,
            groups=[(name, list(items)) for name, items in groupby(page.items, key=lambda item: item.collection)],
            onward=page.items[-1].name if page.more else None,
        )


class DocumentPageHandler(DataHandler):
    """The page of one document."""

    async def get(self, client_id: str, collection: str, document_id: str) -> None:
        """Shows the document, indented, or as sent if indenting would make it too long."""
        check_names(collection, document_id)
        profile, found, content = await self.store.person_documents.read(
            self.require_session(), client_id, collection, document_id
        )
        text = content.decode()
        parts = in_parts(indented(text) or text, PART)
        part = part_of(parts, 1, self.page_asked(), self.request.path)
        self.render(
            "account/document.html",
            title=document_id,
            signed_in=profile,
            app=await self.app(client_id),
            found=found,
            part=part,
            text="".join(part.rows),
        )


class DeleteDocumentHandler(GuardedPage):
    """Deletes one document."""

    async def post(self, client_id: str, collection: str, document_id: str) -> None:
        """For the app, the document no longer exists."""
        self.check_same_origin()
        check_names(collection, document_id)
        await self.store.person_documents.delete(
            self.require_session(), client_id, collection, document_id, self.visitor
        )
        self.see_done(f"/account/apps/{client_id}/data?deleted")


class DeleteDataHandler(GuardedPage):
    """Deletes all data of an app about the person."""

    async def post(self, client_id: str) -> None:
        """The app stays connected."""
        self.check_same_origin()
        await self.store.person_documents.delete_all(self.require_session(), client_id, self.visitor)
        self.see_done(f"/account/apps/{client_id}/data?all-deleted")


class ExportHandler(DownloadPage):
    """The download of all documents of an app."""

    async def get(self, client_id: str) -> None:
        """Streams a zip archive or JSON lines (`format`). Memory use does not depend on the number of documents."""
        make = ARCHIVES.get(once(parse_pairs(self.request.query)).get("format") or "zip")
        if make is None:
            raise Refused("invalid_request", f"format is one of {', '.join(ARCHIVES)}.")
        with closing(make()) as archive:
            name = f"{client_id}-{wall.utc():%Y-%m-%d}.{archive.extension}"
            await self.send_file(name, archive.media_type, self.pieces(archive, client_id))

    async def pieces(self, archive: Archive, client_id: str) -> AsyncGenerator[bytes, None]:
        """The archive, a page of documents at a time."""
        async with aclosing(
            self.store.person_documents.export(self.require_session(), client_id, self.visitor)
        ) as pages:
            async for page in pages:
                yield b"".join(archive.add(found, content) for found, content in page)
        for chunk in archive.end():
            yield chunk
