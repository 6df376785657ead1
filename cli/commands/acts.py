"""Which commands are acts of the operator, and the security event of each."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Final

from cli.terminal.outcome import CommandResult
from store.accounts.audit.security_log import AskedBy, Origin
from store.wiring import Store

ACTS: Final[Mapping[str, str]] = {
    "apps.create_app": "app_created_by_operator",
    "apps.update_app": "app_changed_by_operator",
    "members.add_member": "app_changed_by_operator",
    "members.remove_member": "app_changed_by_operator",
    "apps.rotate_secret": "app_secret_made_by_operator",
    "apps.delete_app": "app_deleted_by_operator",
    "registration.create_token": "registration_token_made_by_operator",
    "registration.revoke_token": "registration_token_revoked_by_operator",
    "apis.create_api": "api_created_by_operator",
    "apis.update_api": "api_changed_by_operator",
    "apis.rotate_secret": "api_secret_made_by_operator",
    "apis.delete_api": "api_deleted_by_operator",
    "webhooks.rotate_secret": "webhook_secret_made_by_operator",
    "webhooks.replay": "delivery_replayed_by_operator",
    "people.create_user": "",
    "people.invite_user": "invited_by_operator",
    "people.set_password": "",
    "person_parts.update_user": "",
    "people.reset_factors": "",
    "people.sign_out": "",
    "people.disconnect_app": "",
    "person_parts.end_session": "",
    "person_parts.unlink": "",
    "people.disable_user": "",
    "people.suspend_user": "",
    "people.enable_user": "",
    "bulk.bulk_users": "",
    "people.delete_user": "",
    "people.cancel_deletion": "",
    "people.add_groups": "",
    "people.remove_groups": "",
    "export.export_user": "",
    "moving.import_people": "",
    "moving.export_people": "",
    "credits.grant_credits": "",
    "tokens.mint_token": "",
    "operators.create_key": "operator_key_made_by_operator",
    "operators.revoke_key": "operator_key_revoked_by_operator",
    "operators.give": "",
    "keys.rotate_keys": "key_made_by_operator",
    "keys.reencrypt": "documents_reencrypted_by_operator",
    "keys.retire_key": "key_retired_by_operator",
    "signing.rotate_keys": "signing_key_made_by_operator",
    "signing.revoke_key": "signing_key_revoked_by_operator",
    "people.reindex": "store_repaired_by_operator",
    "fsck.check_store": "store_repaired_by_operator",
    "audit.export_events": "trail_exported_by_operator",
    "backup.back_up": "store_copied_by_operator",
    "backup.restore": "store_restored_by_operator",
    "backup.end_tokens": "tokens_ended_by_operator",
}
"""The event of each command; "" if the store notes one with the change."""
READS: Final = frozenset(
    {
        *(
            "ai.check_models",
            "apis.list_apis",
            "apis.show_api",
            "apps.list_apps",
            "apps.show_app",
            "members.list_members",
            "webhooks.list_deliveries",
            "people.list_users",
            "people.show_user",
            "person_parts.list_sessions",
            "person_parts.list_identities",
        ),
        *("credits.show_credits", "audit.show_events", "shell.completion", "keys.generate_key", "keys.list_keys"),
        "signing.list_keys",
        *("registration.list_tokens", "operators.list_keys", "operators.list_roles"),
    }
)
"""Commands that change nothing in the store."""
ON_A_STORE: Final = READS | {
    *("fsck.check_store", "people.reindex", "audit.export_events", "backup.back_up", "backup.end_tokens"),
    *("export.export_user", "moving.export_people", "keys.reencrypt"),
}
"""Commands that are of use only where a store is: they never make one."""


def by_operator(store: Store) -> None:
    """Notes everything that this process does as an act of the operator."""
    store.security.origin = lambda: Origin(actor="operator")
    store.security.asked_by = lambda: AskedBy(actor="operator")


def note_act(store: Store, args: Namespace, outcome: CommandResult) -> None:
    """Notes a command that succeeded."""
    event, record = ACTS.get(args.run, ""), outcome.record
    if event and (args.run != "fsck.check_store" or args.repair):
        # An invitation's address has no account yet.
        typed = str(record.get("email", "")) if args.run == "people.invite_user" else ""
        client = str(record.get("client_id", getattr(args, "client_id", "")) or "")
        store.security.note(event, client=client, typed=typed)


def note_failure(store: Store, args: Namespace, code: str) -> None:
    """Notes a command that was refused or failed."""
    if args.run in ACTS:
        store.security.note("command_failed", detail=f"{args.run} {code}")
