"""The roles of people in an app's team, and the role that each act needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from store.refused import Refused

Role = Literal["owner", "developer", "viewer"]
Act = Literal["see", "change", "delete", "team", "leave"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""Every role, the most powerful first. Each may do what those after it may."""
ACTS: Final[Mapping[Act, Role]] = {
    "see": "viewer",  # read the app's pages, except those with secrets
    "leave": "viewer",
    "change": "developer",  # settings, credentials, webhooks, deliveries, trying the app
    "team": "owner",  # invite, change roles, remove
    "delete": "owner",
}
"""The policy: the least role that may do each act."""
MOST_MEMBERS = 20
"""People in the team of one app, its first owner among them."""


class Member(NamedTuple):
    """A person in the team of an app. `since`: when somebody gave the role (epoch ms); `by`: the owner who gave the
    role, empty for the operator."""

    user: str
    role: Role
    since: int = 0
    by: str = ""


def may(role: Role | None, act: Act) -> bool:
    """Whether somebody with this role, or with none, may do this."""
    return role is not None and ROLES.index(role) <= ROLES.index(ACTS[act])


def check_role(typed: str) -> Role:
    """The role of this name. Raises Refused("invalid_request")."""
    for role in ROLES:
        if role == typed:
            return role
    raise Refused("invalid_request", f"role is {', '.join(ROLES)}.")


def well_formed(owner: str, members: Sequence[Member]) -> bool:
    """Whether an app of this owner may have these other members."""
    users = [owner, *(one.user for one in members)]
    known = all(one.role in ROLES for one in members)
    return known and len(set(users)) == len(users) <= MOST_MEMBERS and bool(owner or not members)
