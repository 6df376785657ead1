"""The events of operators' acts: with people, with apps, with the store."""

from __future__ import annotations

from functools import partial
from typing import Final

from store.events.declared_event import Declared

by_operator = partial(Declared, stream="operator", counted="", actor="operator")
for_people = partial(Declared, logged=False)

OPERATOR_EVENTS: Final = (
    # The operator, with people
    by_operator("created_by_operator", "Account created by the operator"),
    for_people("imported", "Account moved here from another server by the operator", actor="operator"),
    for_people("profile_changed_by_operator", "Name or linked accounts changed by the operator", actor="operator"),
    by_operator(
        "people_imported_by_operator", "People imported", "how many were created, updated and refused", trail=""
    ),
    by_operator("trail_exported_by_operator", "Security log exported by the operator", "the format", trail=""),
    by_operator("people_exported_by_operator", "People exported", "how many, and with or without secrets", trail=""),
    by_operator("invited_by_operator", "Invitation created by the operator", trail=""),
    by_operator("disabled_by_operator", "Account disabled by the operator"),
    by_operator("suspended_by_operator", "Account suspended by the operator"),
    by_operator("suspension_ended", "Suspension of the account ended", actor="server"),
    by_operator("deletion_planned_by_operator", "Account deletion planned by the operator"),
    by_operator("deletion_cancelled_by_operator", "Planned deletion of the account cancelled by the operator"),
    by_operator("planned_deletion_began", "Planned deletion of the account began", actor="server"),
    by_operator("enabled_by_operator", "Account enabled by the operator"),
    by_operator("password_set_by_operator", "Password set by the operator; all devices signed out"),
    by_operator("factors_reset_by_operator", "Authenticator app, passkeys and recovery codes removed by the operator"),
    by_operator("signed_out_by_operator", "All devices signed out by the operator"),
    by_operator("session_ended_by_operator", "Device signed out by the operator"),
    by_operator("app_disconnected_by_operator", "App disconnected by the operator"),
    by_operator("identity_unlinked_by_operator", "Account at another site disconnected by the operator"),
    by_operator("link_sent_by_operator", "E-mail link sent by the operator"),
    by_operator("email_changed_by_operator", "E-mail address changed by the operator"),
    by_operator("email_links_ended_by_operator", "E-mail links back to earlier addresses ended by the operator"),
    by_operator("name_changed_by_operator", "Name changed by the operator", trail="ordinary"),
    by_operator("external_id_changed_by_operator", "Link to your organization’s directory changed by the operator"),
    by_operator("role_given_by_operator", "Operator role given to you"),
    by_operator("role_taken_by_operator", "Operator role taken from you"),
    by_operator("exported_by_operator", "Account exported by the operator"),
    by_operator("token_minted", "Access given by the operator"),
    for_people("groups_changed", "Your groups changed by the operator", actor="operator"),
    by_operator("groups_changed_by_operator", "Groups changed", "the groups: +added -removed", trail=""),
    for_people("own_app_deleted_by_operator", "Your app deleted by the operator", actor="operator"),
    by_operator("app_given_by_operator", "App given to you by the operator"),
    by_operator("app_role_given_by_operator", "Role in the team of an app given to you by the operator"),
    by_operator("app_role_taken_by_operator", "Removed from the team of an app by the operator"),
    by_operator("api_given_by_operator", "API given to you by the operator"),
    # The operator, with apps and the store
    by_operator("app_created_by_operator", "App registered by the operator", trail=""),
    by_operator("app_changed_by_operator", "App changed by the operator", trail=""),
    by_operator("app_secret_made_by_operator", "Client secret created by the operator", trail=""),
    by_operator("app_deleted_by_operator", "App deleted by the operator", trail=""),
    by_operator("registration_token_made_by_operator", "Registration token created", trail=""),
    by_operator("registration_token_revoked_by_operator", "Registration token revoked", trail=""),
    by_operator("api_created_by_operator", "API registered by the operator", trail=""),
    by_operator("api_changed_by_operator", "API changed by the operator", trail=""),
    by_operator("api_secret_made_by_operator", "Client secret of an API created by the operator", trail=""),
    by_operator("api_deleted_by_operator", "API deleted by the operator", trail=""),
    by_operator("webhook_secret_made_by_operator", "Webhook signing secret created by the operator", trail=""),
    by_operator("delivery_replayed_by_operator", "Webhook event sent again by the operator", trail=""),
    by_operator("key_made_by_operator", "Secret key created", trail=""),
    by_operator("key_retired_by_operator", "Secret key retired", trail=""),
    by_operator("signing_key_made_by_operator", "New signing key published", trail=""),
    by_operator("signing_key_revoked_by_operator", "Signing key revoked", trail=""),
    by_operator("documents_reencrypted_by_operator", "Documents re-encrypted", trail=""),
    by_operator("store_copied_by_operator", "Store backed up", trail=""),
    by_operator("store_restored_by_operator", "Store restored from a backup", trail=""),
    by_operator("tokens_ended_by_operator", "Every session and token ended", trail=""),
    by_operator("store_repaired_by_operator", "Store checked with --repair", trail=""),
    by_operator(
        "command_failed",
        "Operator command refused or failed",
        "the command and the code of the error",
        severity="warning",
        trail="",
        result="failed",
    ),
)
