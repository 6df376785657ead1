"""Hosted documents from the person's side: viewed, downloaded, deleted. This works in the grace window too, because the
data is the person's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime

from store import keys
from store.accounts.signin.sessions import Session
from store.crypto.cipher import Cipher
from store.documents.documents import Metadata, Usage, metadata_of, usage_of
from store.engine.scripts import Reply, Scripts, Value
from store.lifetimes import PROOF
from store.moments import at
from store.refused import Refused, refuse_signed_out, refuse_unproved
from store.results import Profile, Visitor, profile_of
from store.webhooks.relay_wakeup import RelayWakeup

EXPORT_DOCUMENTS = 200
EXPORT_BYTES = 256 * 2**10
DELETED_AT_ONCE = 200
# Sorts after every name: no name has a character beyond "~".
PAST_ALL = "\x7f"

SealedDocument = tuple[Metadata, bytes]


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of an app's documents for the signed-in person, in order of collection and id, and the totals.
    `data_until`: when the data ends, for a disconnected app."""

    profile: Profile
    data_until: datetime | None
    usage: Usage
    items: tuple[Metadata, ...]
    more: bool


class PersonDocuments:
    """The person's side of hosted documents. `idle` is the idle lifetime of a session in ms. Methods with a session
    raise SignedOut, and Refused("not_found") for an app without documents for the person."""

    def __init__(self, scripts: Scripts, cipher: Cipher, wakeup: RelayWakeup, idle: int) -> None:
        self._scripts = scripts
        self._cipher = cipher
        self._wakeup = wakeup
        self._idle = idle

    async def _run(self, script: str, session: Session, client: str, missing: str, /, **args: Value) -> Reply:
        reply = await self._scripts.run(
            script,
            {
                **session.keys(),
                **keys.hosted(session.user, client),
                **keys.outbox_keys(session.user[:3]),
                "grant": keys.grant(session.user, client),
            },
            idle=self._idle,
            **args,
        )
        refuse_signed_out(reply)
        refuse_unproved(reply)
        if reply.word == "not_found":
            raise Refused("not_found", missing)
        return reply

    async def list(
        self, session: Session, client: str, *, collection: str = "", after: str = "", most: int = 100
    ) -> Listing:
        """A page after the name `after` (`collection/id`), of one collection or of all, at most `most` documents."""
        within = f"{collection}/" if collection else ""
        reply = await self._run(
            "list_holdings",
            session,
            client,
            _NOT_CONNECTED,
            first=within,
            after=after if after >= within else "",
            past=within + PAST_ALL,
            most=most,
        )
        ends = reply.number("data_until")
        return Listing(
            profile_of(session.user, reply),
            at(ends) if ends else None,
            usage_of(reply.rows("fields")),
            tuple(metadata_of(row) for row in reply.rows("rows")),
            reply.number("more") == 1,
        )

    async def read(
        self, session: Session, client: str, collection: str, document_id: str
    ) -> tuple[Profile, Metadata, bytes]:
        """The signed-in person and one document, byte for byte as the app sent it."""
        name = f"{collection}/{document_id}"
        reply = await self._run("read_holding", session, client, _NO_DOCUMENT, document=name)
        found = Metadata(
            collection,
            document_id,
            reply.text("etag"),
            reply.number("size"),
            reply.number("created_at"),
            reply.number("updated_at"),
        )
        content = self._cipher.open(session.user, client, name, reply.raw("sealed"))
        return profile_of(session.user, reply), found, content

    async def delete(self, session: Session, client: str, collection: str, document_id: str, visitor: Visitor) -> None:
        """Deletes one document. Raises Unproved unless the person re-authenticated within 10 minutes."""
        await self._run(
            "delete_holding",
            session,
            client,
            _NO_DOCUMENT,
            client=client,
            document=f"{collection}/{document_id}",
            collection=collection,
            member=keys.member(session.user),
            proof=PROOF,
            **visitor.fields(),
        )
        self._wakeup.add(session.user)

    async def delete_all(self, session: Session, client: str, visitor: Visitor) -> int:
        """Deletes every document of the app in bounded steps and returns how many. A new call continues an interrupted
        one; the sequence of ETags continues. Raises Unproved as `delete` does."""
        deleted, word = 0, "more"
        while word == "more":
            reply = await self._run(
                "delete_holdings",
                session,
                client,
                _NOT_CONNECTED,
                client=client,
                steps=DELETED_AT_ONCE,
                begun="1" if deleted else "",
                member=keys.member(session.user),
                proof=PROOF,
                **visitor.fields(),
            )
            word, deleted = reply.word, deleted + reply.number("deleted")
        self._wakeup.add(session.user)
        return deleted

    async def export(
        self, session: Session, client: str, visitor: Visitor
    ) -> AsyncGenerator[tuple[SealedDocument, ...], None]:
        """Yields every document of the app in order, in pages of bounded size; without any, one empty page."""
        after, more = "", True
        while more:
            reply = await self._run(
                "export_holdings",
                session,
                client,
                _NOT_CONNECTED,
                client=client,
                after=after,
                past=PAST_ALL,
                most=EXPORT_DOCUMENTS,
                max_bytes=EXPORT_BYTES,
                **visitor.fields(),
            )
            page = self._opened(session.user, client, reply)
            yield page
            more, after = reply.number("more") == 1, page[-1][0].name if page else ""

    async def copy(self, user: str, client: str) -> AsyncGenerator[tuple[SealedDocument, ...], None]:
        """As `export`, for the operator, who needs no session."""
        after, more = "", True
        while more:
            reply = await self._scripts.run(
                "copy_holdings",
                keys.hosted(user, client),
                after=after,
                past=PAST_ALL,
                most=EXPORT_DOCUMENTS,
                max_bytes=EXPORT_BYTES,
            )
            page = self._opened(user, client, reply)
            yield page
            more, after = reply.number("more") == 1, page[-1][0].name if page else ""

    def _opened(self, user: str, client: str, reply: Reply) -> tuple[SealedDocument, ...]:
        found = ((metadata_of(row), row[5]) for row in reply.rows("rows"))
        return tuple((held, self._cipher.open(user, client, held.name, sealed)) for held, sealed in found)


_NOT_CONNECTED = "This app is not connected and keeps nothing for you."
_NO_DOCUMENT = "There is no such document."
