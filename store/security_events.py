"""Every event of a person's activity and of the security log, declared once.

An event is ordinary where a thief gains nothing by hiding it, and a person or an app may cause hundreds of it: names,
pictures, documents. Ordinary events have a trail of their own, so they push no sign-in out of the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Trail = Literal["security", "ordinary", ""]
Severity = Literal["info", "warning"]
Result = Literal["ok", "refused", "failed"]
Actor = Literal["person", "app", "operator", "server"]


@dataclass(frozen=True, slots=True)
class Declared:
    """An event: its name, and the sentence that people read.

    `severity`: a warning is what somebody should look into. `trail`: where the event is in a person's activity, or ""
    where it is in the security log alone. `logged`: whether it is in the security log. `actor`: who causes it.
    `detail`: what the log's field of that name has. `result`: how it ended.
    """

    name: str
    sentence: str
    severity: Severity = "info"
    trail: Trail = "security"
    logged: bool = True
    actor: Actor = "person"
    detail: str = ""
    result: Result = "ok"


def _ordinary(name: str, sentence: str) -> Declared:
    return Declared(name, sentence, trail="ordinary", logged=False)


def _by_operator(name: str, sentence: str, trail: Trail = "security", detail: str = "") -> Declared:
    return Declared(name, sentence, trail=trail, actor="operator", detail=detail)


def _refused(name: str, sentence: str, detail: str = "", actor: Actor = "person") -> Declared:
    return Declared(name, sentence, trail="", actor=actor, detail=detail, result="refused")


def _caught(name: str, sentence: str, actor: Actor = "person") -> Declared:
    return Declared(name, sentence, "warning", actor=actor, result="refused")


_ALL: Final = (
    # Signing in and out
    Declared("signed_up", "Account created"),
    Declared("signed_in", "Signed in"),
    Declared("signed_in_by_passkey", "Signed in with a passkey"),
    Declared("signed_in_by_recovery", "Signed in with a recovery code"),
    Declared("second_step_asked", "Password right, second step asked for", trail=""),
    _refused("sign_in_refused", "Sign-in refused", "why: password, unknown (no such account) or disabled"),
    _refused("second_step_refused", "Second step refused", "what was wrong: code"),
    _refused("passkey_refused", "Passkey refused", "why: unknown, used (the challenge), or answer (it does not hold)"),
    _caught("codes_guessed", "Several wrong codes, with the right password"),
    Declared("signed_out", "Signed out"),
    Declared("session_ended", "Another device signed out"),
    Declared("other_sessions_ended", "All other devices signed out"),
    Declared("confirmed", "Confirmed who is signed in", trail="", detail="how: password or passkey"),
    _refused("confirmation_refused", "Confirmation refused", "what was wrong: password or code"),
    _refused("change_refused", "Change refused, since nobody confirmed it", "the script that refused it"),
    # How a person signs in
    Declared("totp_enabled", "Authenticator app added"),
    Declared("totp_disabled", "Authenticator app removed"),
    Declared("passkey_added", "Passkey added"),
    _ordinary("passkey_renamed", "Passkey renamed"),
    Declared("passkey_removed", "Passkey removed"),
    _caught("passkey_copied", "A passkey that may have been copied was refused"),
    Declared("recovery_renewed", "New recovery codes made"),
    Declared("password_changed", "Password changed; other sessions ended"),
    Declared("password_reset", "Password set by a mailed link; all sessions ended"),
    Declared("link_issued", "Link issued to be mailed", trail="", detail="its purpose"),
    # The account
    Declared(
        "address_claimed",
        "Address confirmed by a new password; second step, passkeys and connected apps of before ended",
        "warning",
    ),
    Declared("email_confirmed", "E-mail address confirmed"),
    Declared("email_change_asked", "Change of the e-mail address asked for"),
    Declared("email_changed", "E-mail address changed"),
    Declared(
        "email_change_undone", "Change of the e-mail address undone; all sessions and the password ended", "warning"
    ),
    Declared("account_downloaded", "Everything about the account downloaded"),
    Declared("account_deleted", "Account deleted", trail=""),
    _ordinary("name_changed", "Name changed"),
    _ordinary("picture_changed", "Picture changed"),
    _ordinary("picture_removed", "Picture removed"),
    # Connected apps
    Declared("consent_given", "App connected"),
    Declared("consent_denied", "App refused"),
    Declared("app_disconnected", "App disconnected"),
    Declared("tokens_revoked", "App gave back its access", actor="app"),
    _caught("code_replayed", "A used code was presented again; the access it gave was ended", "app"),
    _caught("refresh_replayed", "A used token was presented again; the app's access was ended", "app"),
    _refused("client_refused", "Client authentication failed", actor="app"),
    _refused("scope_refused", "Call refused, since the token lacks the scope", "the script", actor="app"),
    _ordinary("documents_downloaded", "Documents of an app downloaded"),
    _ordinary("documents_deleted", "All documents of an app deleted"),
    _ordinary("document_deleted", "Document of an app deleted"),
    Declared("spend_limit_set", "Monthly spending limit of an app changed"),
    # One event in the log says that an app was deleted; these are for the people who connected it.
    Declared(
        "app_ended_by_owner", "An app was deleted by its developer; its documents are kept for 30 days", logged=False
    ),
    Declared(
        "app_ended_by_operator",
        "An app was deleted by the operator; its documents are kept for 30 days",
        logged=False,
        actor="operator",
    ),
    Declared(
        "app_purged_by_operator",
        "An app and its documents were deleted by the operator",
        logged=False,
        actor="operator",
    ),
    # Apps of a person
    _ordinary("app_registered", "App registered by you"),
    Declared("app_changed", "Your app changed"),
    Declared("app_disabled", "Your app switched off"),
    Declared("app_enabled", "Your app switched on"),
    Declared("app_secret_made", "New client secret made for your app"),
    Declared("app_secret_ended", "A client secret of your app ended"),
    Declared("app_domain_verified", "Domain of your app verified"),
    Declared("app_webhook_changed", "Webhook URL of your app changed"),
    Declared("app_webhook_secret_made", "New signing secret made for the webhook of your app"),
    Declared("app_deleted", "Your app deleted"),
    # The operator, with people
    _by_operator("created_by_operator", "Account created by the operator"),
    _by_operator("invited_by_operator", "Invitation made by the operator", ""),
    _by_operator("disabled_by_operator", "Account disabled by the operator"),
    _by_operator("enabled_by_operator", "Account enabled by the operator"),
    _by_operator("password_set_by_operator", "Password set by the operator; all sessions ended"),
    _by_operator("factors_reset_by_operator", "Authenticator app, passkeys and recovery codes removed by the operator"),
    _by_operator("exported_by_operator", "Account exported by the operator"),
    _by_operator("token_minted", "Access given by the operator"),
    Declared("own_app_deleted_by_operator", "Your app deleted by the operator", logged=False, actor="operator"),
    _by_operator("app_given_by_operator", "App given to you by the operator"),
    _by_operator("credit_added", "Credits added", "ordinary"),
    _by_operator("credit_taken", "Credits taken back", "ordinary"),
    Declared(
        "operator_key_refused", "Operator key missing or wrong", "warning", "", actor="operator", result="refused"
    ),
    # The operator, with apps and the store
    _by_operator("app_created_by_operator", "App registered by the operator", ""),
    _by_operator("app_changed_by_operator", "App changed by the operator", ""),
    _by_operator("app_secret_made_by_operator", "New client secret made by the operator", ""),
    _by_operator("app_deleted_by_operator", "App deleted by the operator", ""),
    _by_operator("webhook_secret_made_by_operator", "New signing secret made by the operator", ""),
    _by_operator("delivery_replayed_by_operator", "Webhook event sent again by the operator", ""),
    _by_operator("key_made_by_operator", "New secret key made", ""),
    _by_operator("key_retired_by_operator", "Secret key retired", ""),
    _by_operator("documents_reencrypted_by_operator", "Documents re-encrypted", ""),
    _by_operator("store_copied_by_operator", "Store copied", ""),
    _by_operator("store_restored_by_operator", "Store restored from a copy", ""),
    _by_operator("tokens_ended_by_operator", "Every session and token ended", ""),
    _by_operator("store_repaired_by_operator", "Store checked with --repair", ""),
    Declared(
        "command_failed",
        "Command of the operator refused or failed",
        "warning",
        "",
        actor="operator",
        detail="the command and the code of the error",
        result="failed",
    ),
    # The server
    _refused("form_refused", "Form without its XSRF token, or of another site", "the route, and xsrf or origin"),
    _refused("limited", "Refused by a rate limit", "the window that was full", actor="server"),
    Declared("events_lost", "Events that the store never received", "warning", "", actor="server", result="failed"),
)
EVENTS: Final[Mapping[str, Declared]] = {one.name: one for one in _ALL}

OUTCOMES: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("start_session", "second_step"): ("second_step_asked", ""),
    ("finish_with_code", "wrong"): ("second_step_refused", "code"),
    ("finish_with_code", "stopped"): ("second_step_refused", "code"),
    ("finish_with_passkey", "used"): ("passkey_refused", "used"),
    ("read_passkey", "unknown"): ("passkey_refused", "unknown"),
    ("prove_with_code", "ok"): ("confirmed", "password"),
    ("prove_with_code", "wrong"): ("confirmation_refused", "code"),
    ("prove_with_code", "stopped"): ("confirmation_refused", "code"),
    ("prove_with_passkey", "ok"): ("confirmed", "passkey"),
    ("prove_with_passkey", "used"): ("passkey_refused", "used"),
    ("delete_user", "done"): ("account_deleted", ""),
    ("issue_link", "ok"): ("link_issued", ""),
}
"""What a script's first word means to the log, as event and detail, where the script leaves no line in a trail."""
WORDS: Final[Mapping[str, str]] = {
    "rate_limited": "limited",
    "unproved": "change_refused",
    "insufficient_scope": "scope_refused",
}
"""What a first word means to the log, whichever script answers it."""
TOGETHER: Final = frozenset({*WORDS.values(), "client_refused", "form_refused", "operator_key_refused"})
"""Events that anybody can cause as fast as requests arrive: those of one cause are told together."""
_ONE_BY_ONE: Final = frozenset(
    {"signed_up", "signed_in", "signed_in_by_passkey", "signed_in_by_recovery", "sign_in_refused"}
)
GATHERED: Final = frozenset(
    one.name
    for one in _ALL
    if one.severity == "info" and one.actor in ("person", "app") and one.name not in _ONE_BY_ONE
)
"""Events that a person can repeat at will, whichever apps they name: those of one person are told together."""


def is_ordinary(event: str) -> bool:
    """Whether an event of this name is an ordinary one. Names that nothing declares are not."""
    found = EVENTS.get(event)
    return found is not None and found.trail == "ordinary"
