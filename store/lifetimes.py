"""Lifetimes and rate limits as data, each with the clause it comes from. All lifetimes are in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE

ACCESS_TOKEN = 60 * MINUTE  # SPEC 8.3
REFRESH_TOKEN = 30 * DAY  # SPEC 8.3
GRACE = 30 * DAY  # SPEC 8.3
CODE = 60 * SECOND  # RFC 6749 4.1.2: at most ten minutes
REQUEST = 10 * MINUTE
EMAIL_RESERVATION = 60 * SECOND
INVITE = 7 * DAY
# Sealed things live at most this long, and a server notes hourly which key it seals with.
LONGEST_SEALED = 30 * DAY + DAY


@dataclass(frozen=True, slots=True)
class Group:
    """A sliding window: `limit` requests per `period` ms. SPEC 8.1."""

    name: str
    limit: int
    period: int = MINUTE


OAUTH = Group("oauth", 100)  # SPEC 8.1: /api/oauth/*, per user, shared by all apps
AUTHORIZE = Group("authorize", 60)  # each leaves a pending request for ten minutes
ADDRESS = Group("address", 100)  # requests to /api/oauth/* whose user is unknown
SIGN_IN_ADDRESS = Group("signin-address", 20)
SIGN_IN_ACCOUNT = Group("signin-account", 20, 15 * MINUTE)
SIGN_UP_ADDRESS = Group("signup-address", 20, 60 * MINUTE)
# SPEC 8.1: per (app, user) pair.
DATA_READ = Group("data-read", 300)
DATA_WRITE = Group("data-write", 60)
DATA_LIST = Group("data-list", 60)
AI = Group("ai", 20)  # SPEC 8.1: per user, shared by all apps
