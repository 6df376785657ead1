"""What a directory says of a person, as a resource (POST, PUT) or as operations on one (PATCH).

We keep an address, one name, whether the person is active, and the directory's id. Other attributes of RFC 7643 are
accepted and not kept, because every directory sends some.
"""

from __future__ import annotations

import re
from typing import Any

from handlers.admin.base import Record
from handlers.admin.scim.base import ScimRefused
from store.accounts.external_ids import check_external_id
from store.names import check_person_name, normalise_email
from store.operators.provisioning import AssertedPerson

MOST_OPERATIONS = 100
MOST_PATH = 256
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user"
READ_ONLY = frozenset(("id", "meta", "groups"))
NOT_KEPT = frozenset(
    (
        *("schemas", "nickname", "profileurl", "title", "usertype", "preferredlanguage", "locale", "timezone"),
        *("phonenumbers", "ims", "photos", "addresses", "entitlements", "roles", "x509certificates", ENTERPRISE),
    )
)
"""Attributes of RFC 7643 4.1 and 4.3 that are accepted and not kept."""
_PATH = re.compile(r"(?P<name>[A-Za-z$][\w$-]*)(?:\[[^\[\]]*\])?(?:\.(?P<part>[A-Za-z$][\w$-]*))?")
_BOOLEANS = {"true": True, "false": False}


class Asserted:
    """What a request says, one attribute after the other. `patch`: the rules of PATCH, where an attribute that cannot
    change is an error; a whole resource may repeat it (RFC 7644 3.5.1, 3.5.2)."""

    def __init__(self, *, patch: bool) -> None:
        self._patch = patch
        self.email: str | None = None
        self.emails: set[str] = set()
        self.external_id: str | None = None
        self.active: bool | None = None
        self._names: dict[str, str] = {}

    @property
    def wanted(self) -> AssertedPerson:
        """The changes. Raises ValueError for a wrong name or id."""
        name, external_id = self.name, self.external_id
        return AssertedPerson(
            check_person_name(name) if name is not None else None,
            check_external_id(external_id) if external_id else external_id,
            self.active,
        )

    @property
    def name(self) -> str | None:
        """The display name; else the formatted name; else given name and family name, if the request has both or is a
        whole resource. We keep one name, so a part of it alone changes nothing."""
        names = self._names
        if whole := names.get("displayname") or names.get("formatted"):
            return whole
        parts = [names[part] for part in ("givenname", "familyname") if names.get(part)]
        return " ".join(parts) if len(parts) == 2 or (parts and not self._patch) else None

    def take(self, resource: Record) -> None:
        """The attributes of a resource, or of an operation without a path."""
        for name, value in resource.items():
            self.put(name, value)

    def put(self, path: str, value: Any) -> None:
        """One attribute. Raises ScimRefused."""
        name, part = self._parsed(path)
        if name == "name" and not part and isinstance(value, dict):
            for one, text in value.items():
                self._put_name(one.lower(), text)
        elif name in ("displayname", "name"):
            self._put_name(part or name, value)
        elif name == "username":
            self.email = normalise_email(_text(path, value))
        elif name == "active":
            self.active = self.active if value is None else _boolean(value)
        elif name == "externalid":
            self.external_id = "" if value is None or value == "" else _text(path, value)
        elif name == "emails":
            self.emails |= set(_addresses(value)) if self._patch else set()
        elif name == "password" or name in READ_ONLY:
            self._refuse_change(path)
        elif name not in NOT_KEPT and self._patch:
            raise ScimRefused("invalidPath", f"There is no attribute {path[:80]!r} here.")

    def remove(self, path: str) -> None:
        """Removes one attribute. Raises ScimRefused."""
        name, part = self._parsed(path)
        if name == "externalid":
            self.external_id = ""
        elif name == "name" and part:
            return  # a part of a name, which we don't keep
        elif name in ("username", "displayname", "name", "active", "emails", "password") or name in READ_ONLY:
            self._refuse_change(path)
        elif name not in NOT_KEPT:
            raise ScimRefused("invalidPath", f"There is no attribute {path[:80]!r} here.")

    def check_address(self, present: str) -> None:
        """Raises ScimRefused("mutability") for another address than the present one: only the person changes it."""
        if self.email not in (None, present) or (self._patch and self.emails - {present}):
            raise ScimRefused("mutability", "The address cannot be changed here: only its person changes it.")

    def _put_name(self, part: str, value: Any) -> None:
        if value is None or value == "":
            return
        self._names["displayname" if part == "name" else part] = _text(part, value)

    def _refuse_change(self, path: str) -> None:
        if self._patch:
            raise ScimRefused("mutability", f"{path[:80]} cannot be changed here.")

    def _parsed(self, path: str) -> tuple[str, str]:
        """The attribute and the sub-attribute of a path, in lower case; a filter in it is for lists that we don't keep.
        Raises ScimRefused("invalidPath")."""
        if len(path) > MOST_PATH:
            raise ScimRefused("invalidPath", f"A path has at most {MOST_PATH} characters.")
        lower = path.lower()
        if lower.startswith(ENTERPRISE):
            return ENTERPRISE, ""
        if lower.startswith(f"{USER.lower()}:"):
            path = path[len(USER) + 1 :]
        match = _PATH.fullmatch(path)
        if match is None:
            if self._patch:
                raise ScimRefused("invalidPath", f"The path {path[:80]!r} is malformed.")
            return path.lower(), ""
        return match["name"].lower(), (match["part"] or "").lower()


def of_resource(resource: Record) -> Asserted:
    """What a whole resource says. Raises ScimRefused, ValueError for a wrong address."""
    asserted = Asserted(patch=False)
    asserted.take(resource)
    return asserted


def of_operations(message: Record) -> Asserted:
    """What the operations of a PATCH say together (RFC 7644 3.5.2). Raises ScimRefused, ValueError."""
    asserted = Asserted(patch=True)
    found = next((value for name, value in message.items() if name.lower() == "operations"), None)
    if not isinstance(found, list) or not 1 <= len(found) <= MOST_OPERATIONS:
        raise ScimRefused("invalidSyntax", f"Operations is a list of 1 to {MOST_OPERATIONS} operations.")
    for one in found:
        if not isinstance(one, dict):
            raise ScimRefused("invalidSyntax", "An operation is a JSON object.")
        operation = {name.lower(): value for name, value in one.items()}
        kind, path, value = operation.get("op"), operation.get("path"), operation.get("value")
        if not isinstance(kind, str) or kind.lower() not in ("add", "replace", "remove"):
            raise ScimRefused("invalidSyntax", "op is add, replace or remove.")
        if path is not None and not isinstance(path, str):
            raise ScimRefused("invalidPath", "path is text.")
        if not path:
            if kind.lower() == "remove" or not isinstance(value, dict):
                raise ScimRefused("noTarget", "An operation without a path adds or replaces the members of its value.")
            asserted.take(value)
        elif kind.lower() == "remove":
            asserted.remove(path)
        else:
            asserted.put(path, value)
    return asserted


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ScimRefused("invalidValue", f"{name[:80]} is text, and not empty.")
    return value


def _boolean(value: Any) -> bool:
    """Microsoft Entra sends "True" and "False"."""
    found = value if isinstance(value, bool) else _BOOLEANS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise ScimRefused("invalidValue", "active is true or false.")
    return found


def _addresses(value: Any) -> list[str]:
    """The addresses in a value of `emails`."""
    values = value if isinstance(value, list) else [value]
    texts = [one.get("value") if isinstance(one, dict) else one for one in values]
    return [normalise_email(text) for text in texts if isinstance(text, str) and text]
