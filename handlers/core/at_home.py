"""Whether a request comes from this machine, under its own name: for a demo and for tests of apps."""

from __future__ import annotations

from urllib.parse import urlsplit

from tornado.httputil import HTTPServerRequest

HERE = ("localhost", "127.0.0.1", "::1")
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via")


def is_at_home(request: HTTPServerRequest) -> bool:
    """Whether the request's host is this machine. A foreign name that resolves to it is DNS rebinding."""
    try:
        return urlsplit(f"//{request.host}").hostname in HERE
    except ValueError:
        return False


def is_forwarded(request: HTTPServerRequest) -> bool:
    """Whether the request came through a proxy."""
    return any(name in request.headers for name in FORWARDED)
