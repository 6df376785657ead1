"""What this service provider supports (RFC 7644 4), and everything else under /scim/v2."""

from __future__ import annotations

from urllib.parse import unquote

from handlers.admin.base import Record
from handlers.admin.scim.attributes import USER
from handlers.admin.scim.base import MOST_AT_ONCE, ScimHandler
from handlers.admin.scim.resources import GROUP
from handlers.admin.scim.schemas import SCHEMAS
from store.refused import Refused

CONFIG = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
RESOURCE_TYPE = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:Schema"
_NO: Record = {"supported": False}
FEATURES: Record = {
    "patch": {"supported": True},
    "bulk": {**_NO, "maxOperations": 0, "maxPayloadSize": 0},
    "filter": {"supported": True, "maxResults": MOST_AT_ONCE},
    "changePassword": _NO,
    "sort": _NO,
    "etag": _NO,
    "authenticationSchemes": [
        {
            "type": "oauthbearertoken",
            "name": "Operator key",
            "description": "A key of `latchkey operator-key create --role scim`, sent as a bearer token.",
            "specUri": "https://www.rfc-editor.org/info/rfc6750",
            "primary": True,
        }
    ],
}
RESOURCE_TYPES = (("User", USER, "People"), ("Group", GROUP, "Groups of people, to read"))


class ScimDiscovery(ScimHandler):
    """A call about the service itself. Raises Refused("access_denied") for a filter (RFC 7644 4)."""

    def refuse_filter(self) -> None:
        """Raises Refused("access_denied")."""
        if self.asked().get("filter") is not None:
            raise Refused("access_denied", "These resources take no filter.")

    def write_one(self, found: list[Record]) -> None:
        """Writes the one resource. Raises Refused("not_found")."""
        if not found:
            raise Refused("not_found", "There is no such resource.")
        self.write_scim(found[0])

    def described(self, kind: str, one_id: str, schema: str, record: Record) -> Record:
        """A resource of discovery, with its schema and address."""
        place = {"ServiceProviderConfig": "", "ResourceType": f"s/{one_id}", "Schema": f"s/{one_id}"}[kind]
        meta = {"resourceType": kind, "location": self.address_of(f"/{kind}{place}")}
        return {"schemas": [schema], **record, "meta": meta}


class ScimConfigHandler(ScimDiscovery):
    """GET /scim/v2/ServiceProviderConfig."""

    def get(self) -> None:
        """What is supported."""
        self.refuse_filter()
        self.write_scim(self.described("ServiceProviderConfig", "", CONFIG, FEATURES))


class ScimResourceTypesHandler(ScimDiscovery):
    """The kinds of resources."""

    def types(self) -> list[Record]:
        """All of them."""
        return [
            self.described(
                "ResourceType",
                name,
                RESOURCE_TYPE,
                {"id": name, "name": name, "description": about, "endpoint": f"/{name}s", "schema": schema},
            )
            for name, schema, about in RESOURCE_TYPES
        ]

    def get(self) -> None:
        """All of them."""
        self.refuse_filter()
        types = self.types()
        self.write_list(types, len(types))


class ScimResourceTypeHandler(ScimResourceTypesHandler):
    """One kind of resource."""

    def get(self, one_id: str) -> None:  # type: ignore[override]  # the part of the address
        """The kind."""
        self.refuse_filter()
        self.write_one([one for one in self.types() if one["id"] == one_id])


class ScimSchemasHandler(ScimDiscovery):
    """The schemas."""

    def schemas(self) -> list[Record]:
        """All of them."""
        return [self.described("Schema", name, SCHEMA, one) for name, one in SCHEMAS.items()]

    def get(self) -> None:
        """All of them."""
        self.refuse_filter()
        found = self.schemas()
        self.write_list(found, len(found))


class ScimSchemaHandler(ScimSchemasHandler):
    """One schema."""

    def get(self, one_id: str) -> None:  # type: ignore[override]  # the part of the address
        """The schema."""
        self.refuse_filter()
        self.write_one([one for one in self.schemas() if one["id"] == unquote(one_id)])


class ScimMissingHandler(ScimHandler):
    """Parts of SCIM that are left out: bulk operations, searches by POST, the caller as a person."""

    def get(self) -> None:
        """501 (RFC 7644 3.12)."""
        raise Refused("not_implemented")

    post = put = patch = delete = get


class ScimNothingHandler(ScimHandler):
    """404 for everything else."""

    def get(self) -> None:
        """Raises Refused("not_found")."""
        raise Refused("not_found", "There is no such resource.")

    post = put = patch = delete = get
