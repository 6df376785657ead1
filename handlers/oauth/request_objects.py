"""Signed authorization requests, by value: at the authorization endpoint, and pushed. RFC 9101 5.1, 6, RFC 9126 3."""

from __future__ import annotations

from typing import NamedTuple

from handlers.account.authorize_address import PROGRESS, Pairs, request_print
from handlers.core.auth.client_credentials import WHY, why_refused
from handlers.core.params import once
from handlers.core.site import Site
from handlers.oauth.pushed_address import handed_on
from handlers.oauth.requests import first_of
from store.apps.registration import Registration
from store.clock import wall
from store.crypto.jose.refusal import JoseError
from store.crypto.seal import NOBODY
from store.lifetimes import REQUEST
from store.oauth.request_objects import read_object
from store.phrases import Phrase
from store.refused import Refused

ARRIVED = "arrived"
"""Our parameter that says when the browser first arrived with an object: later, only its signature is checked again. A
person may take longer to sign in than the object lives."""
_ARRIVAL = "arrival"
_WHY = WHY | {
    "typ": "typ is oauth-authz-req+jwt, JWT or missing",
    "sender": "iss and client_id are the client_id of the app",
    "sub": "sub is not the client_id",
    "aud": "aud is the issuer",
    "nested": "it has the parameter request or request_uri",
}


class SignedRequest(NamedTuple):
    """`pairs`: the parameters that count; `here`: those of the address that the browser keeps."""

    pairs: Pairs
    here: Pairs


async def verified_pairs(site: Site, app: Registration, text: str, now: float | None) -> Pairs:
    """The parameters in a request object of this app; see `read_object`. Raises Refused("invalid_request_object")."""
    client, issuer, rules = app.wire_id, site.base_url, app.rules
    try:
        return await site.client_keys.verified(app, lambda known: read_object(text, known, client, issuer, now, rules))
    except JoseError as error:
        why = f"The request object is refused: {why_refused(error, rules, _WHY)}."
        raise Refused("invalid_request_object", why) from None


async def open_object(site: Site, app: Registration, here: Pairs) -> SignedRequest | None:
    """The request in a request object at the authorization endpoint; None if the address has none, or if the app has no
    keys. Parameters beside it count for nothing (RFC 9101 6.3). Raises Refused("invalid_request" or
    "invalid_request_object")."""
    text = once([pair for pair in here if pair[0] == "request"]).get("request") if app.has_keys else None
    if text is None:
        return None
    # RFC 9101 5
    if any(name == "request_uri" and value for name, value in here):
        raise Refused("invalid_request", Phrase("A request can have request or request_uri, but not both."))
    own = [("client_id", app.wire_id), ("request", text)]
    of, now, mark = request_print(own), wall.time(), first_of(here, ARRIVED)
    arrival = site.store.progress.open(mark, of)
    again = arrival is not None and arrival.done == _ARRIVAL and 0 <= now * 1000 - arrival.at <= REQUEST
    if not again:
        mark = site.store.progress.mark(_ARRIVAL, of, NOBODY, int(now * 1000))
    pairs = await verified_pairs(site, app, text, None if again else now)
    kept = [pair for pair in here if pair[0] == PROGRESS]
    return SignedRequest(pairs, [*own, (ARRIVED, mark or ""), *kept, *handed_on(pairs)])
