"""Calls of the API from the OpenAPI document's examples: a new operation is called without a new test."""

from __future__ import annotations

import json

from tornado.httpclient import HTTPResponse

from handlers.core.route import Route
from handlers.openapi.document import path_of
from handlers.openapi.examples import BY_SCHEMA, OF_PARAMETERS
from handlers.openapi.operations import OPERATIONS
from tests.support.http.driver import Service, send


async def call(service: Service, route: Route, method: str, access: str, scheme: str = "Bearer") -> HTTPResponse:
    """The answer to the first example of an operation, with an access token."""
    headers = {"Authorization": f"{scheme} {access}", "Content-Type": "application/json"}
    operation = OPERATIONS[route.name][method]
    path = path_of(route.pattern, operation).format_map(OF_PARAMETERS)
    body = json.dumps(next(iter(BY_SCHEMA[operation.body].values()))) if operation.body else None
    return await send(service.base_url + path, method.upper(), body=body, headers=headers)
