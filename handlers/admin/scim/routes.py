"""The routes of SCIM 2.0. The interface describes itself at /scim/v2/Schemas, so OpenAPI leaves it out."""

from __future__ import annotations

from handlers.admin.scim.base import BASE
from handlers.admin.scim.discovery import (
    ScimConfigHandler,
    ScimMissingHandler,
    ScimNothingHandler,
    ScimResourceTypeHandler,
    ScimResourceTypesHandler,
    ScimSchemaHandler,
    ScimSchemasHandler,
)
from handlers.admin.scim.groups import ScimGroupHandler, ScimGroupsHandler
from handlers.admin.scim.users import ScimUserHandler, ScimUsersHandler
from handlers.core.policy import Policy
from handlers.core.route import Route

USER = "([0-9a-f]{32})"
_READING = Policy(operator=True, acts=(("GET", "scim"),))
_ALL = Policy(operator=True, acts=tuple((method, "scim") for method in ("GET", "POST", "PUT", "PATCH", "DELETE")))
_MANY = Policy(operator=True, acts=(("GET", "scim"), ("POST", "scim")))
_ONE = Policy(operator=True, acts=tuple((method, "scim") for method in ("GET", "PUT", "PATCH", "DELETE")))

ROUTES: tuple[Route, ...] = (
    Route(rf"{BASE}/Users", ScimUsersHandler, "scim-users", _MANY),
    Route(rf"{BASE}/Users/{USER}", ScimUserHandler, "scim-user", _ONE),
    Route(rf"{BASE}/Groups", ScimGroupsHandler, "scim-groups", _ALL),
    Route(rf"{BASE}/Groups/([A-Za-z0-9_-]{{2,540}})", ScimGroupHandler, "scim-group", _ALL),
    Route(rf"{BASE}/ServiceProviderConfig", ScimConfigHandler, "scim-config", _READING),
    Route(rf"{BASE}/ResourceTypes", ScimResourceTypesHandler, "scim-resource-types", _READING),
    Route(rf"{BASE}/ResourceTypes/([A-Za-z]{{1,40}})", ScimResourceTypeHandler, "scim-resource-type", _READING),
    Route(rf"{BASE}/Schemas", ScimSchemasHandler, "scim-schemas", _READING),
    Route(rf"{BASE}/Schemas/([A-Za-z0-9.:%]{{1,200}})", ScimSchemaHandler, "scim-schema", _READING),
    Route(rf"{BASE}/(?:Me|Bulk|(?:(?:Users|Groups)/)?\.search)", ScimMissingHandler, "scim-missing", _ALL),
    Route(rf"{BASE}(?:/.*)?", ScimNothingHandler, "scim-nothing", _ALL),
)
