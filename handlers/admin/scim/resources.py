"""Users and groups as SCIM resources (RFC 7643 4.1, 4.2)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable

from handlers.admin.base import Record
from handlers.admin.scim.attributes import USER
from store.moments import timestamp
from store.operators.people_pages import PersonSummary
from store.operators.provisioning import GroupMember

GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
AddressOf = Callable[[str], str]


def group_id(name: str) -> str:
    """The id of a group, which is its name in base64url: a group is nothing but a name that people have."""
    return base64.urlsafe_b64encode(name.encode()).rstrip(b"=").decode()


def group_name(one_id: str) -> str | None:
    """The name of a group with this id; None for any other text."""
    try:
        name = base64.urlsafe_b64decode(one_id + "=" * (-len(one_id) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return name if group_id(name) == one_id and "\n" not in name else None


def user_record(one: PersonSummary, address_of: AddressOf) -> Record:
    """A person as a User."""
    return {
        "schemas": [USER],
        "id": one.user,
        **({"externalId": one.external_id} if one.external_id else {}),
        "userName": one.email,
        "name": {"formatted": one.name},
        "displayName": one.name,
        "active": one.status == "active",
        "emails": [{"value": one.email, "type": "work", "primary": True}],
        "groups": [
            {
                "value": group_id(name),
                "$ref": address_of(f"/Groups/{group_id(name)}"),
                "display": name,
                "type": "direct",
            }
            for name in one.groups
        ],
        "meta": {
            "resourceType": "User",
            "created": timestamp(one.created_at),
            "location": address_of(f"/Users/{one.user}"),
        },
    }


def group_record(name: str, members: Iterable[GroupMember] | None, address_of: AddressOf) -> Record:
    """A group; None for `members` leaves them out."""
    return {
        "schemas": [GROUP],
        "id": group_id(name),
        "displayName": name,
        **({} if members is None else {"members": [_member(one, address_of) for one in members]}),
        "meta": {"resourceType": "Group", "location": address_of(f"/Groups/{group_id(name)}")},
    }


def _member(one: GroupMember, address_of: AddressOf) -> Record:
    return {"value": one.user, "$ref": address_of(f"/Users/{one.user}"), "display": one.email, "type": "User"}
