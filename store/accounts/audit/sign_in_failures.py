"""Why a sign-in failed, as one of a few words for the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REASONS: Final = (
    *("password", "unknown", "disabled", "code", "limited"),
    *("passkey", "passkey_unknown", "passkey_used", "provider", "provider_away"),
)
_BY_DETAIL: Final[Mapping[str, Mapping[str, str]]] = {
    "sign_in_refused": {"password": "password", "unknown": "unknown", "disabled": "disabled"},
    "second_step_refused": {"code": "code"},
    "passkey_refused": {"unknown": "passkey_unknown", "used": "passkey_used", "disabled": "disabled"},
    "provider_refused": {"disabled": "disabled"},
}
_OTHERWISE: Final = {"second_step_refused": "code", "passkey_refused": "passkey", "provider_refused": "provider"}


def sign_in_failure(event: str, detail: str) -> str | None:
    """One of REASONS for an event of the security log and its detail; None for any other event."""
    if event == "limited":
        # The windows of sign-in: of an address, an account, a device.
        return "limited" if detail.startswith("signin-") else None
    reasons = _BY_DETAIL.get(event)
    if reasons is None:
        return None
    if " away: " in detail and event == "provider_refused":
        return "provider_away"
    return reasons.get(detail) or _OTHERWISE.get(event, "password")
