"""Every event of a person's activity and of the security log, declared once.

An event is ordinary if a thief gains nothing by hiding it, and a person or an app may cause hundreds: names, pictures,
documents. Ordinary events have their own trail, so they push no sign-in out of the trail of security events.

The security log has four streams, by what writing an event takes. Each stream has its own bounds, so a flood of cheap
events pushes out cheap events only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from store.events.declared_event import Declared
from store.events.operator_events import OPERATOR_EVENTS, by_operator, for_people

# The classes of events. Each row of the table adds what differs.
_by_stranger = partial(Declared, stream="strangers", counted="by_cause", trail="", result="refused")
_by_person = Declared
_sensitive = partial(Declared, stream="sensitive")
_failed_proof = partial(Declared, stream="sensitive", trail="", result="refused")
_caught = partial(Declared, stream="sensitive", severity="warning", result="refused")
_ordinary = partial(Declared, logged=False, trail="ordinary")

_AMOUNT: Final = "the amount, negative if taken; empty if different amounts were counted together"

_ALL: Final = (
    # Signing in and out
    _by_person("signed_up", "Account created", counted=""),  # a different person each time; bounded by network
    _by_person("signed_in", "Signed in", counted="by_place"),
    _by_person("signed_in_by_passkey", "Signed in with a passkey", counted="by_place"),
    _by_person("signed_in_by_provider", "Signed in with an account at another site", counted="by_place"),
    _sensitive("signed_in_by_recovery", "Signed in with a recovery code"),
    _by_person("second_step_asked", "Password correct; two-step verification required", counted="by_place", trail=""),
    _by_stranger(
        "sign_in_refused", "Sign-in refused", "why: password, unknown (no such account) or disabled", counted=""
    ),
    _failed_proof("second_step_refused", "Two-step verification refused", "what was wrong: code"),
    _by_stranger(
        "passkey_refused",
        "Passkey refused",
        "why: unknown, disabled, used (the challenge), or answer (not valid)",
    ),
    _by_stranger("provider_refused", "Sign-in with an account at another site refused", "the provider and why"),
    _caught("codes_guessed", "Several wrong codes after the correct password"),
    _by_person(
        "groups_changed_by_provider",
        "Groups changed by a directory",
        "the groups: +added -removed; empty if different changes were counted together",
        varies=True,
        trail="",
    ),
    _by_person("signed_out", "Signed out"),
    _by_person("session_ended", "Ended another session"),
    _by_person("session_crowded_out", "Longest unused device signed out to make room for another"),
    _by_person("other_sessions_ended", "Ended all other sessions"),
    _by_person("confirmed", "Identity confirmed", "how: password, passkey or provider", trail=""),
    _failed_proof("confirmation_refused", "Confirmation refused", "what was wrong: password, code or provider"),
    # The log records each as confirmation_refused.
    for_people("password_mistyped", "Wrong password entered while signed in"),
    _by_person(
        "change_refused",
        "Change refused: identity not confirmed",
        "the script that refused it",
        counted="by_cause",
        trail="",
        result="refused",
    ),
    # How a person signs in
    _sensitive("totp_enabled", "Authenticator app added"),
    _sensitive("totp_disabled", "Authenticator app removed"),
    _sensitive("passkey_added", "Passkey added"),
    _ordinary("passkey_renamed", "Passkey renamed"),
    _sensitive("passkey_removed", "Passkey removed"),
    _sensitive("identity_linked", "Account at another site connected"),
    _sensitive("identity_unlinked", "Account at another site disconnected"),
    _caught("passkey_copied", "Passkey refused because it may have been copied"),
    _sensitive("recovery_renewed", "Recovery codes created"),
    _sensitive("password_changed", "Password changed; all other devices signed out"),
    _sensitive("password_reset", "Password reset by e-mail link; all devices signed out"),
    _by_stranger("link_issued", "E-mail link created", "its purpose", result="ok"),
    # The account
    _sensitive(
        "address_claimed",
        "Address confirmed by setting a password; earlier passkeys, authenticator app and connected apps removed",
        severity="warning",
    ),
    _by_person("email_confirmed", "E-mail address confirmed"),
    _sensitive("email_change_asked", "E-mail address change requested"),
    _sensitive("email_changed", "E-mail address changed"),
    _sensitive(
        "email_change_undone",
        "E-mail address change undone; all devices signed out, and the password no longer works",
        severity="warning",
    ),
    _sensitive(
        "second_step_undone",
        "Two-step verification turned off by e-mail link; all devices signed out, and the password no longer works",
        severity="warning",
    ),
    _sensitive(
        "identity_undone",
        "Account at another site disconnected by e-mail link; all devices signed out, and the password no longer works",
        severity="warning",
    ),
    _sensitive("account_downloaded", "Account data downloaded"),
    _sensitive("account_deleted", "Account deleted", trail=""),
    _ordinary("name_changed", "Name changed"),
    _ordinary("preferences_changed", "Language or time zone changed"),
    _ordinary("picture_changed", "Picture changed"),
    _ordinary("picture_removed", "Picture removed"),
    # Connected apps
    _by_person("consent_given", "App connected"),
    _by_person("device_allowed", "App connected on a device"),
    # An agent hands on as often as it has work to share.
    _by_person("token_exchanged", "App handed on part of its access", trail="ordinary", actor="app"),
    _by_person("app_connected_by_issuer", "App connected by an identity provider", actor="app"),
    _by_stranger("assertion_refused", "Assertion of an identity provider refused", "why, in one word", actor="app"),
    _by_person("delegation_ended", "Access handed on by an app ended"),
    _by_person("consent_denied", "App denied"),
    _by_person("app_paused", "App paused"),
    _by_person("app_resumed", "App resumed"),
    _by_person("app_disconnected", "App disconnected"),
    _by_person("tokens_revoked", "App ended its own access", actor="app"),
    _by_person(
        "tokens_crowded_out",
        "Longest unused sign-in of an app ended to make room for another",
        actor="app",
    ),
    _caught("code_replayed", "A code was used twice; the access it gave has ended", actor="app", counted="by_app"),
    _caught(
        "refresh_replayed",
        "A token was used twice; the app’s access has ended",
        actor="app",
        counted="by_app",
    ),
    _by_stranger("client_refused", "Client authentication failed", actor="app"),
    # Apps that register themselves
    _by_stranger("client_registered", "App registered itself", actor="app", result="ok"),
    _by_stranger("client_changed", "App changed its own registration", actor="app", result="ok"),
    _by_stranger("client_deleted", "App deleted its own registration", actor="app", result="ok"),
    _by_stranger(
        "registration_refused", "App could not register itself", "the code of the error, or document", actor="app"
    ),
    _by_person(
        "scope_refused",
        "Call refused: the token lacks the scope",
        "the script",
        counted="by_cause",
        trail="",
        actor="app",
        result="refused",
    ),
    _ordinary("documents_downloaded", "Documents downloaded"),
    _ordinary("documents_deleted", "All documents deleted"),
    _ordinary("document_deleted", "Document deleted"),
    _by_person("spend_limit_set", "Spending limit changed"),
    _by_person("budget_granted", "Budget granted to an app"),
    _by_person("budget_changed", "Budget of an app changed"),
    # One event in the log says that an app was deleted; these are for the people who connected it.
    for_people("app_ended_by_owner", "App deleted by its developer; its documents are kept for 30 days"),
    for_people(
        "app_ended_by_operator",
        "App deleted by the operator; its documents are kept for 30 days",
        actor="operator",
    ),
    for_people(
        "app_ended_idle", "App unused for 90 days and deleted; its documents are kept for 30 days", actor="server"
    ),
    for_people("app_purged_by_operator", "App and its documents deleted by the operator", actor="operator"),
    # Apps of a person
    _ordinary("app_registered", "App registered"),
    _by_person("app_changed", "Your app changed"),
    _sensitive("app_keys_changed", "Your app’s public keys or authentication method changed"),
    _by_person("app_disabled", "Your app switched off"),
    _by_person("app_enabled", "Your app switched on"),
    _sensitive("app_secret_made", "Client secret created for your app"),
    _by_person("app_secret_ended", "Client secret of your app revoked"),
    _by_person("app_domain_verified", "Domain of your app verified"),
    _sensitive("app_webhook_changed", "Webhook URL of your app changed"),
    _sensitive("app_webhook_secret_made", "Webhook signing secret created for your app"),
    _sensitive("app_deleted", "Your app deleted"),
    _sensitive("app_member_invited", "Person invited to the team of your app"),
    _by_person("app_invitation_withdrawn", "Invitation to the team of your app withdrawn"),
    _sensitive("app_member_role_changed", "Role in the team of your app changed"),
    _sensitive("app_member_removed", "Person removed from the team of your app"),
    _sensitive("app_joined", "Joined the team of an app"),
    _sensitive("app_left", "Left the team of an app"),
    _sensitive("app_role_given", "Role in the team of an app given to you by one of its owners"),
    _sensitive("app_role_taken", "Removed from the team of an app by one of its owners"),
    # APIs of a person
    _by_person("api_changed", "Your API changed"),
    _by_person("api_disabled", "Your API switched off"),
    _by_person("api_enabled", "Your API switched on"),
    _sensitive("api_secret_made", "Client secret created for your API"),
    _by_person("api_secret_ended", "Client secret of your API revoked"),
    _sensitive("api_deleted", "Your API deleted"),
    # A shop adds credits with each purchase, so buyers cause these events. Commands are the operator's own acts.
    by_operator(
        "credit_added",
        "Credits added",
        _AMOUNT,
        varies=True,
        stream="people",
        counted="by_person",
        trail="ordinary",
    ),
    by_operator(
        "credit_taken",
        "Credits taken back",
        _AMOUNT,
        varies=True,
        stream="people",
        counted="by_person",
        trail="ordinary",
    ),
    # Payments for credits
    _by_person("credit_bought", "Credits bought", trail="ordinary"),
    _by_person(
        "credit_reversed", "Credits taken back: the payment was refunded or disputed", trail="ordinary", actor="server"
    ),
    _by_person("credit_returned", "Credits given back: the payment stands again", trail="ordinary", actor="server"),
    by_operator(
        "payment_unplaced",
        "Payment event that couldn’t be applied to credits",
        "the payment, what happened, the amount, and why",
        severity="warning",
        trail="",
        actor="server",
        result="failed",
    ),
    _by_stranger(
        "payment_event_refused",
        "Payment event refused: its signature is missing, old or wrong",
        severity="warning",
        actor="server",
    ),
    _by_stranger("operator_key_refused", "Operator key missing or invalid", severity="warning", actor="operator"),
    by_operator(
        "operator_refused",
        "Operator key refused: its role does not allow this",
        "the act and the route",
        severity="warning",
        trail="",
        result="refused",
    ),
    by_operator("operator_key_made_by_operator", "Operator key created", "the key", trail=""),
    by_operator("operator_key_revoked_by_operator", "Operator key revoked", "the key", trail=""),
    *OPERATOR_EVENTS,
    # The server
    _by_stranger(
        "form_refused", "Form refused: no XSRF token, or sent by another site", "the route, and xsrf or origin"
    ),
    _by_stranger("limited", "Refused by a rate limit", "the window that was full", actor="server"),
    # A loss is reported in the stream whose events were lost.
    Declared(
        "events_lost",
        "Security events lost before reaching the store",
        "the stream that they belong to",
        counted="",
        severity="warning",
        trail="",
        actor="server",
        result="failed",
    ),
)
EVENTS: Final[Mapping[str, Declared]] = {one.name: one for one in _ALL}


def is_ordinary(event: str) -> bool:
    """Whether an event of this name is ordinary. An undeclared name is not."""
    found = EVENTS.get(event)
    return found is not None and found.trail == "ordinary"
