"""Events as operators read them. A person's own pages say "your app"; here the reader is somebody else."""

from __future__ import annotations

from handlers.account.connected_apps import EVENTS as OF_PERSON
from store.phrases import Phrase

_OF_ANOTHER: dict[str, str] = {
    "app_changed": Phrase("App changed by its team"),
    "app_keys_changed": Phrase("Public keys or authentication method of an app changed by its team"),
    "app_disabled": Phrase("App switched off by its team"),
    "app_enabled": Phrase("App switched on by its team"),
    "app_secret_made": Phrase("Client secret of an app created by its team"),
    "app_secret_ended": Phrase("Client secret of an app revoked by its team"),
    "app_domain_verified": Phrase("Domain of an app verified by its team"),
    "app_webhook_changed": Phrase("Webhook URL of an app changed by its team"),
    "app_webhook_secret_made": Phrase("Webhook signing secret of an app created by its team"),
    "app_deleted": Phrase("App deleted by its team"),
    "app_member_invited": Phrase("Person invited to the team of an app"),
    "app_invitation_withdrawn": Phrase("Invitation to the team of an app withdrawn"),
    "app_member_role_changed": Phrase("Role in the team of an app changed"),
    "app_member_removed": Phrase("Person removed from the team of an app"),
    "app_role_given": Phrase("Role in the team of an app given by one of its owners"),
    "api_changed": Phrase("API changed by its owner"),
    "api_disabled": Phrase("API switched off by its owner"),
    "api_enabled": Phrase("API switched on by its owner"),
    "api_secret_made": Phrase("Client secret of an API created by its owner"),
    "api_secret_ended": Phrase("Client secret of an API revoked by its owner"),
    "api_deleted": Phrase("API deleted by its owner"),
    "external_id_changed_by_operator": Phrase("Link to an organization’s directory changed by the operator"),
    "role_given_by_operator": Phrase("Operator role given"),
    "role_taken_by_operator": Phrase("Operator role removed"),
    "groups_changed": Phrase("Groups changed by the operator"),
    "own_app_deleted_by_operator": Phrase("App of this person deleted by the operator"),
    "app_given_by_operator": Phrase("App given to a person by the operator"),
    "app_role_given_by_operator": Phrase("Role in the team of an app given by the operator"),
    "api_given_by_operator": Phrase("API given to a person by the operator"),
}
EVENTS = {**OF_PERSON, **_OF_ANOTHER}
"""What events are, by name."""
