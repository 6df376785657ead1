"""The names of roles in an app's team, and what each may do, in words."""

from __future__ import annotations

from store.apps.owners.roles import Role
from store.phrases import Phrase

ROLE_NAMES: dict[Role, Phrase] = {
    "owner": Phrase("Owner"),
    "developer": Phrase("Developer"),
    "viewer": Phrase("Viewer"),
}
ROLE_WORDS: dict[Role, Phrase] = {
    "owner": Phrase("Can do everything, including deleting the app and changing the team."),
    "developer": Phrase("Can change settings, secrets and webhooks, and read everything."),
    "viewer": Phrase("Can read settings, usage, the log and the team. Sees no secrets and no webhook deliveries."),
}
