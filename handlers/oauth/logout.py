"""GET and POST /oauth/logout: an app asks to sign a person out. OpenID Connect RP-Initiated Logout 1.0."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from handlers.core.page import PageHandler
from handlers.core.params import Params, once, parse_pairs
from handlers.oauth.requests import MAX_STATE, bounded
from store.apps.redirect_uris import display_origin, is_own_origin, with_params
from store.apps.registration import Registration
from store.phrases import Phrase
from store.refused import Refused

XSRF = "_xsrf"
MAX_ADDRESS = 15_000
"""The longest address of a request, in bytes."""
ASKED = ("id_token_hint", "client_id", "post_logout_redirect_uri", "state")
"""The parameters that count. `logout_hint` and `ui_locales` are accepted and ignored."""


class LogoutRequest(NamedTuple):
    """A checked request. `app`: who asks, None if the request names nobody; `sid`: the session in its ID token, or
    empty; `back`: where the browser goes afterwards, empty for a page of ours; `asked`: the parameters that a decision
    needs again."""

    app: Registration | None
    sid: str
    back: str
    target: str
    asked: dict[str, str]


class LogoutHandler(PageHandler):
    """The address to which an app sends a browser that shall be signed out.

    Whatever is wrong with a request, the answer is a page and no redirect. Only an ID token of this very session ends
    it at once; anybody can make a browser send the rest, so the person decides on a page.
    """

    async def get(self) -> None:
        """Signs out, or asks the person."""
        request = await self.check_request(once(parse_pairs(self.request.query)))
        session = self.session()
        # A browser or proxy that only looks ahead, with HEAD, signs nobody out.
        if session is not None and request.sid and self.request.method == "GET":
            assert request.app is not None
            client_id = request.app.client_id
            if await self.store.sessions.end(session, self.visitor, client_id=client_id, sid=request.sid):
                self.write_session(None)
                return self.see_other(request.target) if request.target else self.show_signed_out(request)
        profile = await self.profile()
        if profile is None:
            return self.show_signed_out(request)
        self.allow_form_to(request.back or None)
        shown = {**self.shown(request), "asked": request.asked}
        self.render("oauth/logout.html", title=Phrase("Sign out?"), signed_in=profile, **shown)

    async def post(self) -> None:
        """The person's decision. Without an XSRF token it is a request of an app (RP-Initiated Logout 2): redirects to
        the same by GET, because browsers send no session cookie with another site's form."""
        params = self.body()
        if XSRF not in params.names():
            asked = {name: value for name in ASKED if (value := params.get(name)) is not None}
            return self.see_other(address_of(asked))
        self.check_same_origin()
        request = await self.check_request(params)
        session = self.session()
        if session is not None:
            client_id = request.app.client_id if request.app else ""
            await self.store.sessions.end(session, self.visitor, client_id=client_id)
        self.write_session(None)
        self.see_other(request.target or address_of(request.asked))

    def check_xsrf_cookie(self) -> None:
        """Checks the XSRF token of a decision. An app's request has none, and decides nothing."""
        if XSRF in self.body().names():
            super().check_xsrf_cookie()

    async def check_request(self, params: Params) -> LogoutRequest:
        """RP-Initiated Logout 2, 3, 4. Raises Refused, which shows a page."""
        client_id, text = params.get("client_id"), params.get("id_token_hint")
        state, back = bounded(params, "state", MAX_STATE), params.get("post_logout_redirect_uri") or ""
        hint = await self.store.id_tokens.read_hint(text, self.site.base_url, client_id) if text else None
        client_id = hint.client_id if hint else client_id
        app = await self.store.apps.active(client_id) if client_id else None
        if client_id and app is None:
            raise Refused("invalid_request", Phrase("The app that sent you here is not known to this server."))
        if back:
            check_back(app, back, self.site.base_url)
        asked = {"client_id": client_id or "", "post_logout_redirect_uri": back, "state": state}
        target = with_params(back, {"state": state} if state else {}) if back else ""
        # A token that the app's profile excludes proves no session: the person decides.
        sid = ""
        if app and hint and app.rules.allows(hint.algorithm):
            sid = await self.store.subjects.session_behind(app.sector, hint.sid)
        return LogoutRequest(app, sid, back, target, {name: value for name, value in asked.items() if value})

    def show_signed_out(self, request: LogoutRequest) -> None:
        """The page for a browser that is signed out. It leads on to the app, but by a click: anybody who registers an
        app could otherwise use this address to send people on."""
        self.render("oauth/signed_out.html", title=Phrase("You’re signed out"), **self.shown(request))

    def shown(self, request: LogoutRequest) -> dict[str, object]:
        """What both pages show of a request."""
        app_domain = display_origin(request.back) if request.back else ""
        return {"app": request.app, "app_domain": app_domain, "target": request.target}


def check_back(app: Registration | None, back: str, base_url: str) -> None:
    """RP-Initiated Logout 3: the address is one that this app registered, letter by letter."""
    if app is None:
        raise Refused("invalid_request", Phrase("The request names an address to go back to, but no app."))
    # The base URL may have changed since the registration.
    if back not in app.post_logout_redirect_uris or is_own_origin(back, base_url):
        raise Refused(
            "invalid_request",
            Phrase("%(app)s did not register the address that it wants to send you back to.", app=app.name),
        )


def address_of(asked: dict[str, str]) -> str:
    """The address of a request. Raises Refused("invalid_request") if it is too long for one."""
    address = f"/oauth/logout?{urlencode(asked)}" if asked else "/oauth/logout"
    if len(address) > MAX_ADDRESS:
        raise Refused("invalid_request", Phrase("The request is too long."))
    return address
