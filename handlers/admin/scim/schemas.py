"""The schemas of users and groups (RFC 7643 7): what is kept, and nothing else."""

from __future__ import annotations

from typing import Any, Final

from handlers.admin.base import Record
from handlers.admin.scim.attributes import USER
from handlers.admin.scim.resources import GROUP

READ_WRITE, IMMUTABLE, READ_ONLY = "readWrite", "immutable", "readOnly"


def _attribute(name: str, about: str, mutability: str, kind: str = "string", **other: Any) -> Record:
    """An attribute; `other`: what differs from the defaults of RFC 7643 2.2."""
    found: Record = {
        "name": name,
        "type": kind,
        "multiValued": False,
        "description": about,
        "required": False,
        "mutability": mutability,
        "returned": "default",
    }
    if kind in ("string", "reference"):
        found |= {"caseExact": False, "uniqueness": "none"}
    return found | other


SCHEMAS: Final[dict[str, Record]] = {
    USER: {
        "id": USER,
        "name": "User",
        "description": "A person",
        "attributes": [
            _attribute(
                "userName",
                "The e-mail address. The person alone changes it.",
                IMMUTABLE,
                required=True,
                uniqueness="server",
            ),
            _attribute(
                "name",
                "The person's name, as in displayName",
                READ_ONLY,
                "complex",
                subAttributes=[_attribute("formatted", "The whole name", READ_ONLY)],
            ),
            _attribute("displayName", "The person's name", READ_WRITE, required=True),
            _attribute(
                "active",
                "Whether the person may sign in. Becoming inactive ends every session and token.",
                READ_WRITE,
                "boolean",
                required=True,
            ),
            _attribute(
                "emails",
                "The e-mail address, as in userName",
                READ_ONLY,
                "complex",
                multiValued=True,
                subAttributes=[
                    _attribute("value", "The address", READ_ONLY),
                    _attribute("type", "Always work", READ_ONLY, canonicalValues=["work"]),
                    _attribute("primary", "Always true", READ_ONLY, "boolean"),
                ],
            ),
            _attribute(
                "groups",
                "The groups that an operator gave the person",
                READ_ONLY,
                "complex",
                multiValued=True,
                subAttributes=[
                    _attribute("value", "The id of the group", READ_ONLY, caseExact=True),
                    _attribute("$ref", "The address of the group", READ_ONLY, "reference", referenceTypes=["Group"]),
                    _attribute("display", "The name of the group", READ_ONLY),
                    _attribute("type", "Always direct", READ_ONLY, canonicalValues=["direct"]),
                ],
            ),
        ],
    },
    GROUP: {
        "id": GROUP,
        "name": "Group",
        "description": "A name that operators give people. A group that nobody is in does not exist.",
        "attributes": [
            _attribute("displayName", "The name", READ_ONLY, required=True, caseExact=True, uniqueness="server"),
            _attribute(
                "members",
                "The people in the group",
                READ_ONLY,
                "complex",
                multiValued=True,
                subAttributes=[
                    _attribute("value", "The id of the person", READ_ONLY, caseExact=True),
                    _attribute("$ref", "The address of the person", READ_ONLY, "reference", referenceTypes=["User"]),
                    _attribute("display", "The e-mail address", READ_ONLY),
                    _attribute("type", "Always User", READ_ONLY, canonicalValues=["User"]),
                ],
            ),
        ],
    },
}
