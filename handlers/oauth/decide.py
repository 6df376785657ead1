"""POST /api/oauth/authorize: the person's decision on the consent page. SPEC 4.2, RFC 8628 3.3."""

from __future__ import annotations

import re
from functools import partial

from handlers.core import mails
from handlers.core.amounts import SpendLimit, spend_limit, typed_limit
from handlers.core.page import Onward, safe_next
from handlers.core.params import Params
from handlers.core.words.budgets import FIELD
from handlers.core.words.sentences import sentences
from handlers.oauth.consent import Again, AskingDevice, ConsentPage
from handlers.oauth.consent_budgets import LASTS, chosen_budgets
from handlers.oauth.device.authorization import DEVICE, check_device_grant
from store.apps.registration import Registration
from store.oauth.authorizations import TOO_MANY_APPS, NothingTicked
from store.oauth.budgets import SPEND
from store.oauth.device_requests import shown_code, typed_code
from store.phrases import Phrase
from store.refused import Refused

BOX = "scope:"
# RFC 6749 3.3, and the longest name of a scope of an API.
NAME = re.compile(r"[!#-\[\]-~]{1,64}")
MOST_AMOUNT = 40
"""The longest typed amount that the page shows again, in characters."""
DENIED = {"error": "access_denied", "error_description": "The person denied the request."}
"""What an app gets for a request that the person denied (RFC 6749 4.1.2.1)."""


class DecideHandler(ConsentPage):
    """Requires a session cookie, an XSRF token and the same origin, so that no other site can decide for a person."""

    async def post(self) -> None:
        """Redirects a form to the app (303). A JSON request gets the address, and the fields to post there with
        `response_mode=form_post`."""
        self.check_same_origin()
        params = self.body()
        self.came_from = params.get("next") or self.came_from
        session = self.require_session()
        decision = params.require("decision")
        if decision not in ("allow", "deny"):
            raise Refused("invalid_request", Phrase("decision must be allow or deny."))
        request_id, scopes = params.require("request_id"), ticked(params)
        # Before the decision, so that an invalid amount doesn't use the request up.
        limit, chosen = wanted_limit(params, decision, scopes), chosen_budgets(params, decision, scopes)
        awaited = self.store.authorizations.awaited(session, request_id)
        app = await self.store.apps.active(awaited.client) if awaited else None
        if app is None or awaited is None:
            raise Refused("invalid_request", Phrase("This request isn't yours, or its app no longer exists."))
        decide = partial(
            self.store.authorizations.decide,
            session,
            app,
            request_id,
            allow=decision == "allow",
            scopes=scopes,
            visitor=self.visitor,
            spend_limit=limit,
            budgets=chosen.amounts,
            budgets_last=chosen.lasts,
        )
        try:
            if awaited.device:
                check_device_grant(app)
                decided = await self.store.device_requests.decided(awaited.device, session.user, decide)
            else:
                # The end of a pushed request comes first, so that no second decision counts for which the app gets no
                # answer.
                async with self.store.pushed.answered(app.client_id, awaited.pushed):
                    decided = await decide()
        except NothingTicked as refusal:
            if self.wants_json():
                raise
            return await self.ask_again(app, refusal, params, awaited.device)
        if decided.connected:
            self.store.app_stats.connected(app.client_id)
        mails.allowance_grew(self.site, session.user, app.client_id, decided.allowance, self.visitor)
        self.write_window(decided.window)
        if awaited.device:
            return self.back_to_device("connected" if decided.code else "denied")
        answer = {"code": decided.code} if decided.code else DENIED
        if self.wants_json():
            back = self.way_back(app, decided.redirect_uri, answer, decided.state, decided.mode)
            self.write_json({"redirect_to": back.address, **({"form": back.fields} if back.fields else {})})
        else:
            self.send_back(app, decided.redirect_uri, answer, decided.state, decided.mode)

    def back_to_device(self, done: str) -> None:
        """Ends at a page of ours: nothing leads from here to the device, which polls."""
        target = f"{DEVICE}?{done}"
        if self.wants_json():
            self.write_json({"redirect_to": f"{self.site.base_url}{target}"})
        else:
            self.see_done(target)

    async def ask_again(self, app: Registration, refusal: NothingTicked, params: Params, device: str) -> None:
        """The consent page of the same request, with the error."""
        if refusal.window:
            self.write_window(refusal.window)
        self.set_status(400)
        names = [name for name in params.names() if name.startswith(FIELD) or name == LASTS]
        budgets = {name: (params.get(name) or "")[:MOST_AMOUNT] for name in names}
        again = Again(refusal.description, (params.get("spend_dollars") or "")[:MOST_AMOUNT], budgets)
        asking = None
        if device:
            code = typed_code(params.get("user_code") or "")
            known = shown_code(code) if code and self.store.device_requests.has_code(device, code) else ""
            asking = AskingDevice(await self.store.device_requests.read(device), known, self.address)
        target = safe_next(params.get("next"))
        await self.show_consent(app, refusal.asked, refusal.pending, target, again, asking)

    def way_on(self, refusal: Refused, here: bool) -> Onward:
        """Sends a person with too many apps to their list."""
        if refusal.description == TOO_MANY_APPS:
            return Onward("/account/apps", Phrase("Go to your apps"))
        return super().way_on(refusal, here)


def ticked(params: Params) -> list[str] | None:
    """The scopes that the person ticked: `scopes`, or the boxes of the page. None if neither was sent, which means all.
    Raises Refused("invalid_scope") for what is no name of a scope; the script knows which were requested."""
    scopes = params.texts("scopes")
    if scopes is None and params.get("boxes"):
        scopes = [name.removeprefix(BOX) for name in params.names() if name.startswith(BOX)]
    if scopes is not None and not all(map(NAME.fullmatch, scopes)):
        raise Refused("invalid_scope")
    return scopes


def wanted_limit(params: Params, decision: str, scopes: list[str] | None) -> SpendLimit:
    """The app's monthly limit: `spend_limit`, or the page's field of dollars, which counts only if the person allows
    spending. Raises Refused("invalid_request")."""
    if not params.get("boxes"):
        return spend_limit(params)
    if decision != "allow" or "spend_dollars" not in params.names() or (scopes is not None and SPEND not in scopes):
        return ""
    try:
        limit = typed_limit(params, "spend_dollars")
    except Refused as refusal:
        also = Phrase("Nothing was changed, and the app is still waiting. Go back and enter the amount again.")
        raise Refused("invalid_request", sentences(refusal.description, also)) from None
    return "none" if limit is None else limit
