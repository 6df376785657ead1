"""The commands that work only where the store is. Help knows them without loading what the others need."""

from __future__ import annotations

from typing import Final

LOCAL: Final = frozenset(
    (
        "",  # serve
        *("ai.check_models", "fsck.check_store", "shell.completion", "tokens.mint_token"),
        *("apis.create_api", "apis.delete_api", "apis.list_apis", "apis.rotate_secret", "apis.show_api"),
        *("apis.update_api", "members.add_member", "members.list_members", "members.remove_member"),
        *("backup.back_up", "backup.end_tokens", "backup.restore", "moving.export_people", "moving.import_people"),
        *("keys.generate_key", "keys.reencrypt", "keys.retire_key", "keys.rotate_keys"),
        *("operators.create_key", "people.disable_user", "people.reindex", "people.set_password"),
        *("registration.create_token", "registration.list_tokens", "registration.revoke_token"),
        *("signing.revoke_key", "signing.rotate_keys", "webhooks.rotate_secret"),
    )
)
"""The functions of these commands, as the parser names them."""
