"""What RFC 8628 (device grant) demands of an authorization server.

Each has a test that is marked for it, or a reason why not. What it demands of devices is left out.
"""

from __future__ import annotations

from tests.support.lists.demands import TLS, Demand

DEVICES: dict[str, Demand] = {
    "8628 3.1 https": Demand("all requests from the device MUST use TLS", TLS),
    "8628 3.1 ignored": Demand("empty and unknown parameters MUST count for nothing, repeated ones MUST NOT be sent"),
    "8628 3.1 authentication": Demand("clients authenticate as at the token endpoint"),
    "8628 3.2 answer": Demand("the answer has all members, and MUST NOT be cached"),
    "8628 3.2 error": Demand("an error is answered as by the token endpoint"),
    "8628 3.3 sequence": Demand("the person MUST be able to begin at verification_uri and enter the code there"),
    "8628 3.3.1 confirmed": Demand("a code in the address SHOULD be shown, and the person asked to compare it"),
    "8628 3.4 authentication": Demand("a client with credentials MUST authenticate when it polls"),
    "8628 3.5 tokens": Demand("an allowed request gets a token response"),
    "8628 3.5 pending": Demand("authorization_pending while nobody has decided"),
    "8628 3.5 slow_down": Demand("slow_down, and the interval MUST be 5 seconds longer from then on"),
    "8628 3.5 denied": Demand("access_denied for a denied request"),
    "8628 3.5 expired": Demand("expired_token for a code whose time is over"),
    "8628 4 metadata": Demand("the metadata names the endpoint and the grant type"),
    "8628 5.1 guesses": Demand("attempts to enter user codes SHOULD be limited"),
    "8628 5.2 entropy": Demand("the device code SHOULD have a very high entropy"),
    "8628 5.4 told": Demand("the page SHOULD say that a device asks and what is known of it, and ask to compare codes"),
}
