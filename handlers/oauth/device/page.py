"""GET and POST /device: the page on which a person types the code that a device shows. RFC 8628 3.3."""

from __future__ import annotations

from urllib.parse import urlencode

from handlers.core.params import once, parse_pairs
from handlers.core.site import Site
from handlers.oauth.consent import AskingDevice
from handlers.oauth.device.authorization import DEVICE
from handlers.oauth.pushed_record import read_record
from handlers.oauth.requests import check_api
from handlers.oauth.step_up import StepUpPage
from store.apps.registration import Registration
from store.oauth.authorizations import AuthorizationRequest, ConsentRequest, Pending, StepUp
from store.oauth.device_requests import DeviceRequest, gone, shown_code, typed_code
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile

DONE = {name: name for name in ("connected", "denied")}
"""What the address says after a decision: the state of the page."""


class DeviceHandler(StepUpPage):
    """From the code to the consent page. A code in the address is only shown: it counts once the person has said that
    the device shows it, because anybody can send people a link (RFC 8628 3.3.1, 5.4)."""

    came_from = DEVICE

    async def get(self) -> None:
        """The form for the code, or the question whether the device shows this code. Looks no request up."""
        code = typed_code(once(parse_pairs(self.request.query)).get("user_code") or "")
        profile = await self.profile()
        if profile is None:
            return self.to_sign_in(device_address(code))
        if done := self.notice(DONE):
            return self.show_done(profile, done)
        self.show_form(profile, code)

    async def post(self) -> None:
        """The consent page of the request with this code."""
        self.check_same_origin()
        code = typed_code(self.body().get("user_code") or "")
        self.came_from = device_address(code)
        session = self.require_session()
        profile = await self.store.sessions.profile(session)
        if code is None:
            self.set_status(400)
            return self.show_form(profile, None, error=NO_CODE)
        try:
            found = await self.store.device_requests.typed(session.user, self.counted_address, code)
            app, request = await device_request(self.site, found)
        except Refused as refusal:
            if refusal.code != "invalid_grant" or self.wants_json():
                raise
            self.set_status(400)
            return self.show_form(profile, None, error=refusal.description)
        self.logged_app = app.client_id
        # A device is never answered without a page.
        try:
            pending = await self.store.authorizations.begin(session, request, always_ask=True)
        except StepUp:
            return self.step_up(app, request, profile, [("user_code", shown_code(code))], path=DEVICE)
        assert isinstance(pending, Pending)
        if self.site.mail.confirms and not pending.profile.email_verified:
            return await self.confirm_first(app, pending.profile, device_address(code))
        asked = ConsentRequest(request.redirect_uri, request.scopes, request.api)
        device = AskingDevice(found, shown_code(code), self.address)
        await self.show_consent(app, asked, pending, device_address(code), device=device)

    def show_form(self, profile: Profile, code: str | None, *, error: str = "") -> None:
        """The form: empty, or with the code in the address and the question about it."""
        self.render(
            "oauth/device.html",
            title=Phrase("Connect a device"),
            signed_in=profile,
            code=shown_code(code) if code else "",
            example=EXAMPLE,
            next=device_address(code),
            error=error,
        )

    def show_done(self, profile: Profile, done: str) -> None:
        """What the person decided, and where to go on: at the device."""
        connected = done == "connected"
        title = Phrase("Your device is connected") if connected else Phrase("You denied access")
        self.render("oauth/device_done.html", title=title, signed_in=profile, connected=connected)


EXAMPLE = "WDJB-MJHT"
NO_CODE = Phrase("Enter the 8 letters that your device shows, such as %(example)s.", example=EXAMPLE)


async def device_request(site: Site, found: DeviceRequest) -> tuple[Registration, AuthorizationRequest]:
    """The app and the request of a device. Raises Refused("invalid_grant") if the registration or its API has changed
    since: the device begins again."""
    record = read_record(found.record)
    if record.found is None:  # of a later release, whose conditions this one does not know
        raise gone()
    app = await site.store.apps.active(record.found[0].client)
    if app is None or not app.signs_in_devices or record.checked(app, site) is None:
        raise gone()
    try:
        request = await check_api(site.store.apis, app, record.found[0])
    except Refused:
        raise gone() from None
    return app, request._replace(device=found.id)


def device_address(code: str | None) -> str:
    """The page's address, with the code if there is one."""
    return f"{DEVICE}?{urlencode({'user_code': shown_code(code)})}" if code else DEVICE
