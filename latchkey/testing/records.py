"""The bodies of the calls that register apps, from the arguments of the test kit's methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from latchkey.testing.calls import listed

_NAMES = {
    "pkce_required": "pkceRequired",
    "hosted_storage": "hostedStorage",
    "refresh_retry_seconds": "refreshRetrySeconds",
    "refresh_lifetime_days": "refreshLifetimeDays",
    "iss_in_response": "issInResponse",
    "webhook_url": "webhookUrl",
    "webhook_events": "webhookEvents",
    "id_token_alg": "idTokenAlg",
    "subject_type": "subjectType",
    "post_logout_redirect_uris": "postLogoutRedirectUris",
    "backchannel_logout_uri": "backchannelLogoutUri",
    "auth_method": "authMethod",
    "jwks_uri": "jwksUri",
    "require_pushed": "requirePushed",
    "dpop_required": "dpopRequired",
    "device_grant": "deviceGrant",
}
"""Arguments whose member of the record has another name."""
_ON = ("iss_in_response", "device_grant")
"""Switches that are on by default. All others are off, and left out where they are."""


def app_record(given: Mapping[str, Any]) -> dict[str, Any]:
    """The record of an app (SPEC 2.1). What has its default value is left out, because a profile may bring another."""
    record = {}
    for name, value in given.items():
        usual = value is True if name in _ON else value in (False, None)
        record[_NAMES.get(name, name)] = None if usual else _written(name, value)
    return record


def _written(name: str, value: Any) -> Any:
    if name == "scopes":
        return listed(value)
    if name == "jwks" and not isinstance(value, Mapping):
        return {"keys": [one.public for one in value]}
    return value if isinstance(value, str | bool | int | Mapping) else list(value)
