"""The security events of scripts that write no trail, by what they answered.

A script that changes something also records the event (`record_apart` of the include "audit"); the detail is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class OutcomeEvent(NamedTuple):
    """The event of a script's outcome, and its detail."""

    event: str
    detail: str = ""


OUTCOMES: Final[Mapping[tuple[str, str], OutcomeEvent]] = {
    ("start_session", "second_step"): OutcomeEvent("second_step_asked"),
    ("start_session", "setup"): OutcomeEvent("second_step_asked"),
    ("sign_in_with_identity", "setup"): OutcomeEvent("second_step_asked"),
    ("finish_with_code", "wrong"): OutcomeEvent("second_step_refused", "code"),
    ("finish_with_code", "stopped"): OutcomeEvent("second_step_refused", "code"),
    ("finish_with_passkey", "used"): OutcomeEvent("passkey_refused", "used"),
    ("read_passkey", "unknown"): OutcomeEvent("passkey_refused", "unknown"),
    ("read_passkey", "suspended"): OutcomeEvent("passkey_refused", "disabled"),
    ("try_passkey", "unknown"): OutcomeEvent("passkey_refused", "unknown"),
    ("sign_in_with_identity", "second_step"): OutcomeEvent("second_step_asked"),
    ("sign_in_with_identity", "suspended"): OutcomeEvent("provider_refused", "disabled"),
    ("prove_with_code", "ok"): OutcomeEvent("confirmed", "password"),
    ("prove_with_code", "wrong"): OutcomeEvent("confirmation_refused", "code"),
    ("prove_with_code", "stopped"): OutcomeEvent("confirmation_refused", "code"),
    ("prove_with_passkey", "ok"): OutcomeEvent("confirmed", "passkey"),
    ("prove_with_passkey", "used"): OutcomeEvent("passkey_refused", "used"),
    ("prove_with_identity", "ok"): OutcomeEvent("confirmed", "provider"),
    ("delete_user", "done"): OutcomeEvent("account_deleted"),
    ("issue_link", "ok"): OutcomeEvent("link_issued"),
}
"""Events of scripts that write no trail, by script and first word of the answer."""
WORDS: Final[Mapping[str, str]] = {
    "rate_limited": "limited",
    "unproved": "change_refused",
    "insufficient_scope": "scope_refused",
}
"""Events by the first word of an answer, for all scripts."""
