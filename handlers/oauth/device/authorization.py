"""POST /api/oauth/device_authorization: a device asks for codes, one for itself and one for a person. RFC 8628 3.1."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from handlers.core.params import Params
from handlers.core.site import Site
from handlers.oauth.beginning import BeginningHandler
from handlers.oauth.details import check_details
from handlers.oauth.pushed_record import PushedRecord, rules_of, write_record
from handlers.oauth.requests import Interaction, check_api, check_key, check_scope
from store.apps.registration import Registration
from store.crypto.dpop import DpopProof
from store.oauth.authorizations import AuthorizationRequest
from store.oauth.device_requests import GRANT_TYPE, shown_code
from store.refused import Refused
from store.results import Window

DEVICE = "/device"
"""The page on which people type the code."""


class DeviceAuthorizationHandler(BeginningHandler):
    """Checks the device's request, and keeps it until a person comes with the code."""

    async def take_window(self, app: Registration) -> Window:
        """A public app's calls also count for all addresses together: each request leaves a row, and makes a guessed
        code a little likelier."""
        window = await super().take_window(app)
        if app.public:
            await self.store.device_windows.take(app.client_id)
        return window

    async def begin(self, app: Registration, params: Params, window: Window) -> dict[str, Any]:
        """The codes (RFC 8628 3.2)."""
        check_device_grant(app)
        proof = self.sent_proof(app)
        record = await device_record(self.site, app, params, proof)
        async with self.store.proofs.counted(proof):
            begun = await self.store.device_requests.begin(app.client_id, record, self.visitor)
        self.set_header("Pragma", "no-cache")  # as the token endpoint
        page, code = f"{self.site.base_url}{DEVICE}", shown_code(begun.user_code)
        return {
            "device_code": begun.device_code,
            "user_code": code,
            "verification_uri": page,
            "verification_uri_complete": complete_address(self.site.base_url, code),
            "expires_in": begun.expires_in,
            "interval": begun.interval,
        }


async def device_record(site: Site, app: Registration, params: Params, proof: DpopProof | None = None) -> str:
    """A device's request as a record; with a proof, its tokens are bound to the key, as for a pushed request. Raises
    Refused."""
    details = check_details(params, site.models.find)
    wanted = check_scope(app, params, site.base_url, spends=bool(details), at_mcp=site.mcp_scopes)
    request = AuthorizationRequest(
        app.client_id,
        GRANT_TYPE,
        wanted.scopes,
        "",
        "",
        app.terms,
        "",
        api=wanted.api,
        jkt=check_key(params, proof),
        details=details,
        allowed=app.members_of,
    )
    request = await check_api(site.store.apis, app, request)
    return write_record(PushedRecord([], rules_of(app, site), (request, Interaction(frozenset()))))


def complete_address(base_url: str, code: str) -> str:
    """The page's address with a code, as a QR code has it (RFC 8628 3.3.1)."""
    return f"{base_url}{DEVICE}?{urlencode({'user_code': code})}"


def check_device_grant(app: Registration) -> None:
    """Raises Refused("unauthorized_client") unless the app may sign people in on devices."""
    if not app.signs_in_devices:
        raise Refused("unauthorized_client", "The app is not registered for the device grant.")
