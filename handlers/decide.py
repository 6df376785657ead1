"""POST /api/oauth/authorize: the person's decision on the consent page. SPEC 4.2."""

from __future__ import annotations

from handlers.authorize import answer_url
from handlers.page import PageHandler
from handlers.params import Params
from store.names import SCOPES
from store.refused import Refused

BOX = "scope:"


class DecideHandler(PageHandler):
    """Session cookie, XSRF token and the same origin: no other site can decide for a person."""

    async def post(self) -> None:
        """A form is sent on to the app (303), a JSON request is told where to go."""
        self.check_same_origin()
        session = self.require_session()
        params = self.body()
        decision = params.require("decision")
        if decision not in ("allow", "deny"):
            raise Refused("invalid_request", "decision is allow or deny.")
        request_id, scopes = params.require("request_id"), ticked(params)
        client = self.store.authorizations.client_of(session, request_id)
        app = await self.store.apps.active(client) if client else None
        if app is None:
            raise Refused("invalid_request", "This request is not one of yours, or its app is gone.")
        decided = await self.store.authorizations.decide(
            session, app, request_id, allow=decision == "allow", scopes=scopes, visitor=self.visitor
        )
        answer = {"code": decided.code} if decided.code else {"error": "access_denied"}
        url = answer_url(app, self.site.base_url, decided.redirect_uri, answer, decided.state)
        self.write_window(decided.window)
        if self.wants_json():
            self.write_json({"redirect_to": url})
        else:
            self.see_other(url)


def ticked(params: Params) -> list[str] | None:
    """The scopes the person ticked: `scopes`, or the page's boxes. None, when neither was sent, means all. Raises
    Refused("invalid_scope") for a name that is no scope."""
    scopes = params.texts("scopes")
    if scopes is None and params.get("boxes"):
        scopes = [name.removeprefix(BOX) for name in params.names() if name.startswith(BOX)]
    if scopes is not None and not set(scopes) <= set(SCOPES):
        raise Refused("invalid_scope")
    return scopes
