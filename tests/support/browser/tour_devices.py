"""A leg of the tour: the code of a device, and what the person decides about it."""

from __future__ import annotations

from tests.oauth.device.devices import Device
from tests.support.browser.tour_kit import Tour
from tests.support.browser.tour_people import ALL

AGENT = "LivingRoomTV/7.1 (a very long name of a television that its maker chose)"


def devices(tour: Tour) -> None:
    """Visits the pages of a device, from its code to the end."""
    stand = tour.stand
    app = stand.run(stand.service.add_app("tv", name="Living Room TV", public=True))

    def begun() -> Device:
        return stand.run(Device.begun(app, scope=" ".join(ALL), headers={"User-Agent": AGENT}))

    tour.open("/device")
    tour.stop("oauth/device.html", "Enter the code that your TV")
    tour.submit("/device", user_code="BCDF-GHJK")
    tour.stop("oauth/device.html wrong", "isn’t right, or it has expired")
    device = begun()
    tour.open(device.codes["verification_uri_complete"])
    tour.stop("oauth/device.html matching", "Does your device show this code?")
    tour.submit("/device")
    tour.stop("oauth/consent.html device", "A device wants to connect")
    tour.submit("/api/oauth/authorize", "allow")
    tour.stop("oauth/device_done.html", "Go back to your device")
    tour.open("/device")
    tour.submit("/device", user_code=begun().user_code)
    tour.submit("/api/oauth/authorize", "deny")
    tour.stop("oauth/device_done.html denied", "You denied access")
