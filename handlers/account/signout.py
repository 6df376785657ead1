"""/signout."""

from __future__ import annotations

from handlers.core.page import PageHandler, safe_next


class SignOutHandler(PageHandler):
    """Ends the session."""

    async def post(self) -> None:
        """Takes one click, and goes on to `next`."""
        self.check_same_origin()
        target = safe_next(self.body().get("next"))
        session = self.session()
        if session:
            await self.store.sessions.end(session, self.visitor)
        self.write_session(None)
        self.see_other(target)
