"""The roles of operators, and what each may do: one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from store.refused import Refused

OperatorRole = Literal["admin", "support", "auditor", "credits", "scim"]
OperatorAct = Literal[
    "people.read",
    "people.export",
    "people.export_documents",
    "people.create",
    "people.change",
    "people.suspend",
    "people.resume",
    "people.sign_out",
    "people.send_link",
    "people.reset_factors",
    "people.delete",
    "people.bulk",
    "roles.read",
    "roles.give",
    "credits.read",
    "credits.give",
    "credits.report",
    "apps.read",
    "apps.change",
    "apis.read",
    "apis.change",
    "grants.read",
    "audit.read",
    "webhooks.read",
    "webhooks.send",
    "keys.read",
    "operator_keys.read",
    "operator_keys.revoke",
    "settings.read",
    "health.read",
    "scim",
]

ROLES: Final[tuple[OperatorRole, ...]] = get_args(OperatorRole)
ACTS: Final[tuple[OperatorAct, ...]] = get_args(OperatorAct)
PEOPLES_ROLES: Final[tuple[OperatorRole, ...]] = ("admin", "support", "auditor")
"""The roles that people may have. Only programs need the others."""

_READERS: Final[tuple[OperatorRole, ...]] = ("admin", "support", "auditor")
_SUPPORT: Final[tuple[OperatorRole, ...]] = ("admin", "support")
_ADMIN: Final[tuple[OperatorRole, ...]] = ("admin",)

ALLOWED: Final[Mapping[OperatorAct, tuple[OperatorRole, ...]]] = {
    # People. An export has the names and sizes of documents; their content is an act of its own.
    "people.read": _READERS,
    "people.export": _READERS,
    "people.export_documents": _ADMIN,
    "people.create": _ADMIN,
    "people.change": _ADMIN,
    "people.suspend": _SUPPORT,
    "people.resume": _SUPPORT,
    "people.sign_out": _SUPPORT,
    "people.send_link": _SUPPORT,
    "people.reset_factors": _SUPPORT,
    "people.delete": _ADMIN,
    # Each act in bulk needs its own right, too.
    "people.bulk": _SUPPORT,
    "roles.read": _READERS,
    "roles.give": _ADMIN,
    # Credits: a payment back end needs nothing else.
    "credits.read": (*_READERS, "credits"),
    "credits.give": ("admin", "credits"),
    "credits.report": ("admin", "credits"),
    # Apps and APIs
    "apps.read": _READERS,
    "apps.change": _ADMIN,
    "apis.read": _READERS,
    "apis.change": _ADMIN,
    "grants.read": _READERS,
    "webhooks.read": _READERS,
    "webhooks.send": _ADMIN,
    # The server
    "audit.read": _READERS,
    "keys.read": _READERS,
    "operator_keys.read": _READERS,
    "operator_keys.revoke": _ADMIN,
    "settings.read": _READERS,
    "health.read": _READERS,
    # The directory of another system
    "scim": ("admin", "scim"),
}
"""The policy: the roles that may do each act. `PeopleActs` adds the rules about whom an act concerns."""

APART: Final = frozenset[OperatorAct](
    ("people.suspend", "people.resume", "people.sign_out", "people.send_link", "people.reset_factors")
)
"""Acts of support that only an admin may do to a person with a role."""


class OperatorActor(NamedTuple):
    """Who acts. `kind`: a `key`, a `person` with a role, or a `command` on the server; `id`: of the key, or the user
    id; `name`: of the key."""

    kind: Literal["key", "person", "command"]
    id: str
    role: OperatorRole
    name: str = ""

    @property
    def shown(self) -> str:
        """The actor in the audit trail, such as `key 4f… Helpdesk`."""
        return f"{self.kind} {self.id} {self.name}".rstrip()


def may(role: OperatorRole | None, act: OperatorAct) -> bool:
    """Whether somebody with this role, or with none, may do this."""
    return role is not None and role in ALLOWED[act]


def check_act(actor: OperatorActor, act: OperatorAct) -> None:
    """Raises Refused("insufficient_role")."""
    if not may(actor.role, act):
        needed = " or ".join(ALLOWED[act])
        raise Refused("insufficient_role", f"This needs the role {needed}; yours is {actor.role}.")


def check_operator_role(typed: str, of: tuple[OperatorRole, ...] = ROLES) -> OperatorRole:
    """The role of this name, among the roles `of`. Raises Refused("invalid_request")."""
    for role in of:
        if role == typed:
            return role
    raise Refused("invalid_request", f"role is {', '.join(of)}.")
