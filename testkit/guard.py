"""Who may control a server in a test: programs on this machine, but no web page in a browser on it."""

from __future__ import annotations

from tornado.httputil import HTTPServerRequest

from handlers.core.at_home import is_at_home, is_forwarded
from handlers.core.params import JSON, media_type
from store.refused import Refused


def check_driver(request: HTTPServerRequest) -> None:
    """Raises Refused("access_denied") for requests of another origin's page, for a foreign host and for requests
    through a proxy; Refused("unsupported_media_type") for a body that a form could send."""
    headers = request.headers
    if not is_at_home(request):
        raise Refused("access_denied", "Tests are driven under the name localhost, 127.0.0.1 or [::1].")
    if is_forwarded(request):
        raise Refused("access_denied", "Tests are driven from this machine, not through a proxy.")
    origin = headers.get("Origin")
    foreign = origin is not None and origin != f"{request.protocol}://{request.host}"
    if foreign or headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        raise Refused("access_denied", "Tests are driven by programs, not by the page of another site.")
    # Another origin's page can send a form without permission, but no JSON.
    if request.method == "POST" and media_type(request) != JSON:
        raise Refused("unsupported_media_type")
