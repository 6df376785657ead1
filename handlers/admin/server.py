"""/api/admin/v1/keys, /settings and /health: the server itself."""

from __future__ import annotations

import platform
from typing import cast

from handlers.admin.base import AdminHandler
from handlers.ops.operations import Operations
from store.operators.records import secret_key_record, signing_key_record


class AdminKeysHandler(AdminHandler):
    """The keys of the server, without the keys themselves."""

    async def get(self) -> None:
        """Ids and ages of the secret keys and of the keys that sign."""
        self.query()
        ring, sealed = self.store.keys.ring, await self.store.key_state.sealed()
        items = [secret_key_record(key.id, key == ring.front, sealed.get(key.id, 0)) for key in ring.keys]
        items += [signing_key_record(one) for one in await self.store.signing_store.listed()]
        self.write_page(items, "")


class AdminSettingsHandler(AdminHandler):
    """The settings in force."""

    def get(self) -> None:
        """Each setting with its value and where that comes from. Secret values are null."""
        self.query()
        self.write_json({"items": cast(Operations, self.application).facts().settings})


class AdminHealthHandler(AdminHandler):
    """The health of the server and its store."""

    async def get(self) -> None:
        """The state of this process and of the store."""
        self.query()
        store, application = self.store, cast(Operations, self.application)
        health = await store.health.read()
        facts = application.facts()
        self.write_json(
            {
                "status": "stopping" if application.draining else "ok",
                "version": facts.version,
                "python": platform.python_version(),
                "workers": facts.workers,
                "store": {**health.shown(), "roomForDocuments": not store.headroom.low},
                "queues": {
                    "storeCalls": store.queue,
                    "securityEvents": store.security.waiting,
                    "webhooks": health.webhooks_waiting,
                    "requests": application.in_flight,
                },
            }
        )
