"""An app that stores documents for a person, directly on a store, and a recount of its documents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from store import keys
from store.apps.registration import Registration
from store.documents.documents import Conditions, DocumentPage, Metadata, Quotas, Usage, usage_of
from store.lifetimes import DATA_LIST, DATA_READ, DATA_WRITE
from store.results import Caller, Window
from store.wiring import Store
from tests.support.store.world import SCOPES, World

GROUPS = (DATA_READ, DATA_WRITE, DATA_LIST)


@dataclass
class Keeper:
    """An app with an access token. Names are `collection/id`. Each call first empties the pair's windows, so that a
    test may make any number of calls."""

    store: Store
    caller: Caller

    @classmethod
    async def make(cls, world: World, app: Registration | None = None, scopes: tuple[str, ...] = SCOPES) -> Keeper:
        """An app with a token from the operator, which leaves the person's window alone."""
        tokens = await world.store.tokens.mint(world.user, app or world.app, scopes)
        return cls(world.store, world.caller(tokens.access_token))

    async def empty_windows(self) -> None:
        """Empties the pair's windows."""
        names = (keys.limit(self.caller.user, group.name, self.caller.client) for group in GROUPS)
        await self.store.client.delete(*names)

    async def put(
        self, name: str, content: bytes = b"1", *, if_match: str = "", if_none_match: bool = False
    ) -> tuple[Metadata, bool, Window]:
        """Writes a document."""
        await self.empty_windows()
        collection, document_id = name.split("/")
        conditions = Conditions(if_match, if_none_match)
        return await self.store.documents.write(self.caller, "data:write", collection, document_id, content, conditions)

    async def get(self, name: str) -> tuple[Metadata, bytes, Window]:
        """Reads a document."""
        await self.empty_windows()
        collection, document_id = name.split("/")
        return await self.store.documents.read(self.caller, "data:read", collection, document_id)

    async def delete(self, name: str, if_match: str = "") -> Window:
        """Deletes a document."""
        await self.empty_windows()
        collection, document_id = name.split("/")
        return await self.store.documents.delete(
            self.caller, "data:write", collection, document_id, Conditions(if_match)
        )

    async def page(
        self, collection: str, prefix: str = "", after: str = "", most: int = 50, *, content: bool = False
    ) -> DocumentPage:
        """One page of a collection."""
        await self.empty_windows()
        page, _ = await self.store.documents.list(
            self.caller, "data:read", collection, prefix=prefix, after=after, most=most, content=content
        )
        return page

    async def walk(self, collection: str, prefix: str = "", most: int = 50) -> list[str]:
        """The ids of a collection, collected page by page."""
        ids: list[str] = []
        more = True
        while more:
            page = await self.page(collection, prefix, ids[-1] if ids else "", most)
            ids += [found.document_id for found, _ in page.items]
            more = page.more
        return ids

    async def usage(self) -> Usage:
        """The app's usage record."""
        await self.empty_windows()
        usage, _ = await self.store.documents.usage(self.caller, "data:read data:write")
        return usage

    async def fill(self, documents: int, collections: int = 1, content: bytes = b"1") -> None:
        """Writes documents directly into the four keys, evenly over the collections, as the same number of writes
        would."""
        rows, cipher = self.keys(), self.store.cipher
        client: Any = self.store.client
        seconds, _ = await client.time()
        names = [f"c{number % collections:04}/d{number:05}" for number in range(documents)]
        sizes = Counter(name.split("/")[0] for name in names)
        async with client.pipeline(transaction=False) as batch:
            for number, name in enumerate(names):
                sealed = cipher.seal(self.caller.user, self.caller.client, name, content)
                batch.hset(rows["docs"], name, sealed)
                batch.hset(rows["meta"], name, f"{number + 1} {len(content)} {seconds}000 {seconds}000")
                batch.zadd(rows["index"], {name: 0})
            counts = {"documents": documents, "bytes": documents * len(content), "sequence": documents}
            counts["collections"] = len(sizes)
            for name, number in sizes.items():
                counts |= {f"n:{name}": number, f"b:{name}": number * len(content)}
            batch.hset(rows["usage"], mapping=counts)
            batch.hdel(keys.person(self.caller.user)["user"], "stored")
            await batch.execute()

    def keys(self) -> dict[str, str]:
        """The four keys."""
        return keys.hosted(self.caller.user, self.caller.client)

    async def dump(self) -> list[bytes | None]:
        """The content of all keys, for a comparison."""
        return [await self.store.client.dump(key) for key in self.keys().values()]

    async def recount(self) -> Usage:
        """Recounts the documents one by one, after checking that the four keys list the same documents, that each
        document opens, and that the usage row matches."""
        rows = self.keys()
        client: Any = self.store.client
        docs, meta = await client.hgetall(rows["docs"]), await client.hgetall(rows["meta"])
        assert await client.zrange(rows["index"], 0, -1) == sorted(docs) == sorted(meta)
        counted: dict[str, tuple[int, int]] = {}
        for raw, sealed in docs.items():
            name = raw.decode()
            size = len(self.store.cipher.open(self.caller.user, self.caller.client, name, sealed))
            assert int(meta[raw].split()[1]) == size
            number, total = counted.get(name.split("/")[0], (0, 0))
            counted[name.split("/")[0]] = (number + 1, total + size)
        collections = tuple((name, *counted[name]) for name in sorted(counted))
        recounted = Usage(len(docs), sum(row[2] for row in collections), collections)
        row = await client.hgetall(rows["usage"])
        assert usage_of([part for pair in row.items() for part in pair]) == recounted
        assert int(row.get(b"collections", 0)) == len(collections)
        return recounted


async def a_keeper(store: Store, **quotas: int) -> Keeper:
    """An app with a person of its own; the quotas are the store's from here on."""
    store.documents.quotas = Quotas(**quotas)
    return await Keeper.make(await World.make(store))
