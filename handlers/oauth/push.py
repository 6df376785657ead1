"""POST /api/oauth/par: an app pushes its authorization request. RFC 9126."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from handlers.account.authorize_address import MAX_ADDRESS, SURELY_SHORT
from handlers.core.params import Params, once
from handlers.oauth.beginning import BeginningHandler
from handlers.oauth.pushed_record import PushedRecord, rules_of, write_record
from handlers.oauth.request_objects import verified_pairs
from handlers.oauth.requests import check_api, check_key, check_mode, check_redirect_uri, check_request
from store.apps.registration import Registration
from store.clock import wall
from store.crypto.dpop import DpopProof
from store.lifetimes import PUSHED, SECOND
from store.refused import Refused
from store.results import Window

_APART = frozenset(("client_id", "client_secret", "client_assertion", "client_assertion_type"))
"""Parameters that say who pushes."""


class PushHandler(BeginningHandler):
    """Checks a request before the browser comes with it, and keeps it out of the browser's address. An error is the one
    that the browser would have brought back."""

    def check_first(self, params: Params) -> None:
        """RFC 9126 2.1: no `request_uri` here."""
        if params.get("request_uri") is not None:
            raise Refused("invalid_request", "request_uri is what this request is to get.")

    async def begin(self, app: Registration, params: Params, window: Window) -> dict[str, Any]:
        """The `request_uri` (RFC 9126 2.2)."""
        address = self.counted_address if app.public else None
        proof = self.sent_proof(app)
        text = await self.checked(app, params, proof)
        async with self.store.proofs.counted(proof):
            request_uri = await self.store.pushed.push(app.client_id, text, window, address)
        self.set_status(201)
        return {"request_uri": request_uri, "expires_in": PUSHED // SECOND}

    async def checked(self, app: Registration, params: Params, proof: DpopProof | None) -> str:
        """The request as a record; with a proof, its code is bound to the key (RFC 9449 10.1). If the registration
        changes meanwhile, the browser's arrival checks it again."""
        signed = params.get("request") if app.has_keys else None
        if signed is not None:  # RFC 9126 3: nothing beside it counts but what proves the app
            pairs = await verified_pairs(self.site, app, signed, wall.time())
        else:
            pairs = [pair for pair in params.pairs() if pair[0] not in _APART]
            pairs.append(("client_id", app.wire_id))
        sent = once(pairs)
        if jkt := check_key(sent, proof):
            pairs = [*(pair for pair in pairs if pair[0] != "dpop_jkt"), ("dpop_jkt", jkt)]
            sent = once(pairs)
        long = signed is not None or len(self.request.body) > SURELY_SHORT
        if long and len(urlencode(pairs)) > MAX_ADDRESS:
            raise Refused("invalid_request", "The request is too long.")
        redirect_uri = check_redirect_uri(app, pairs, self.site.base_url)
        check_mode(pairs)
        rules = self.site.base_url, self.site.require_pkce, self.site.models.find, self.site.mcp_scopes
        found = check_request(app, redirect_uri, sent, *rules)
        await check_api(self.store.apis, app, found[0])
        return write_record(PushedRecord(pairs, rules_of(app, self.site), found))
