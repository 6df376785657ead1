"""/api/admin/v1/keys, /settings and /health: the server itself."""

from __future__ import annotations

from typing import Any

from handlers.admin.base import AdminHandler
from handlers.admin.server_health import health_of
from store.moments import at, timestamp
from store.operators.memory_sample import MemoryEstimate
from store.operators.records import secret_key_record, signing_key_record


class AdminKeysHandler(AdminHandler):
    """The keys of the server, without the keys themselves."""

    async def get(self) -> None:
        """Ids and ages of the secret keys and of the keys that sign."""
        self.query()
        ring, state = self.store.keys.ring, self.store.key_state
        sealed, since = await state.sealed(), await state.since()
        items = [
            secret_key_record(key.id, key == ring.front, sealed.get(key.id, 0), since.get(key.id, 0))
            for key in ring.keys
        ]
        items += [signing_key_record(one) for one in await self.store.signing_store.listed()]
        self.write_page(items, "")


class AdminSettingsHandler(AdminHandler):
    """The settings in force."""

    def get(self) -> None:
        """Each setting with its value and where that comes from. Secret values are null."""
        self.query()
        self.write_json({"items": self.site.facts().settings})


class AdminHealthHandler(AdminHandler):
    """The health of the server and its store."""

    async def get(self) -> None:
        """The state of this process and of the store."""
        self.query()
        found = await health_of(self.application, self.site)
        self.write_json(
            {
                "status": "stopping" if found.stopping else "ok",
                "version": found.version,
                "python": found.python,
                "workers": found.workers,
                "store": {**found.store.shown(), "roomForDocuments": found.room},
                "memory": estimate_record(found.memory) if found.memory else None,
                "keys": found.ages.shown(),
                "queues": found.queues,
            }
        )


def estimate_record(estimate: MemoryEstimate) -> dict[str, Any]:
    """What fills the store, as a sample suggests."""
    kinds = [{"kind": one.kind, "keys": one.keys, "bytes": one.bytes} for one in estimate.kinds]
    sampled = {"at": timestamp(at(estimate.at)), "sampledKeys": estimate.sampled, "keys": estimate.keys}
    return {"estimate": True, **sampled, "kinds": kinds}
