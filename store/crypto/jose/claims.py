"""Checks of claims that every kind of token shares (RFC 7519 4.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from store.crypto.jose.refusal import JoseError

DATES = ("exp", "nbf", "iat", "auth_time", "updated_at")
LAST_DATE = 253_402_300_799
"""The end of the year 9999, in seconds since 1970."""
MOST_AUDIENCES = 10


def check_dates(claims: Mapping[str, Any]) -> None:
    """Checks that dates are finite numbers of a sane size (RFC 7519 2). Raises JoseError("dates")."""
    for name in DATES:
        value = claims.get(name, 0)
        # A boolean is a number in Python, and 1e999 is infinite in its parser of JSON.
        if type(value) not in (int, float) or not math.isfinite(value) or not 0 <= value <= LAST_DATE:
            raise JoseError("dates")


def check_time(
    claims: Mapping[str, Any], now: float, *, leeway: float, longest: float | None = None, age: float | None = None
) -> None:
    """Checks the token's times against `now`; all in seconds. `leeway`: how far clocks may differ. `longest`: how far
    away `exp`, which then is required, may be. `age`: how old `iat`, which then is required, may be. Raises JoseError:
    "expired", "not_yet", "exp" for a missing or distant end, "iat" for a missing or old birth."""
    exp, iat = claims.get("exp"), claims.get("iat")
    if exp is not None and exp <= now - leeway:
        raise JoseError("expired")
    if longest is not None and (exp is None or exp > now + longest + leeway):
        raise JoseError("exp")
    if claims.get("nbf", 0) > now + leeway or (iat or 0) > now + leeway:
        raise JoseError("not_yet")
    if age is not None and (iat is None or iat < now - age - leeway):
        raise JoseError("iat")


def audiences(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """The `aud` of a token: a string, or a short list of them (RFC 7519 4.1.3). Raises JoseError("aud") for anything
    else, also if it is missing."""
    value = claims.get("aud")
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not 0 < len(listed) <= MOST_AUDIENCES:
        raise JoseError("aud")
    if not all(isinstance(one, str) and one for one in listed):
        raise JoseError("aud")
    return tuple(listed)


def text(claims: Mapping[str, Any], name: str, longest: int) -> str:
    """A claim that must be text of 1 to `longest` characters. Raises JoseError(name)."""
    value = claims.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise JoseError(name)
    return value
