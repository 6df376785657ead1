"""The page for the code of a device when a test acts for the person: the same checks and scripts, no page."""

from __future__ import annotations

from functools import partial

from handlers.oauth.device.page import device_request
from store.oauth.authorizations import Pending
from store.oauth.device_requests import gone, typed_code
from store.oauth.resources import plain_names
from testkit.rehearsal import VISITOR, AutoConsent, Rehearsal


async def enter_code(rehearsal: Rehearsal, text: str, played: AutoConsent) -> str:
    """Enters a device's code and decides. Returns the client id of the device's app. Raises Refused, SignedOut."""
    store, code = rehearsal.store, typed_code(text)
    if code is None:
        raise gone()
    session = await rehearsal.session(played.email)
    found = await store.device_requests.typed(session.user, VISITOR.address, code)
    app, request = await device_request(rehearsal.site, found)
    begun = await store.authorizations.begin(session, request, always_ask=True)
    assert isinstance(begun, Pending)
    names = plain_names(request.scopes)
    decide = partial(
        store.authorizations.decide,
        session,
        app,
        begun.request_id,
        allow=played.decides == "allow",
        scopes=None if played.scopes is None else [one for one in names if one in played.scopes],
        visitor=VISITOR,
        spend_limit=played.spend_limit,
    )
    decided = await store.device_requests.decided(found.id, session.user, decide)
    if decided.connected:
        store.app_stats.connected(app.client_id)
    return app.client_id
