"""/api/admin/v1/operator-keys: the keys of this interface. They are made by command."""

from __future__ import annotations

from handlers.admin.base import AdminHandler
from store.operators.records import key_record


class AdminOperatorKeysHandler(AdminHandler):
    """The list of keys."""

    async def get(self) -> None:
        """Every live key without its text: at most 1,000, so this list has one page."""
        self.query()
        self.write_page([key_record(key) for key in await self.store.operator_keys.list()], "")


class AdminOperatorKeyHandler(AdminHandler):
    """One key."""

    async def delete(self, key_id: str) -> None:
        """Ends the key at once."""
        self.query()
        key = await self.store.operator_keys.revoke(key_id)
        self.store.security.note("operator_key_revoked_by_operator", detail=key.actor.shown)
        self.write_json({"id": key_id, "revoked": True})
