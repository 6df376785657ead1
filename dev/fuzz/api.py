"""Every endpoint with valid and invalid requests from its description, sent by every kind of caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dev.fuzz.cost import TRIES, Cost
from dev.fuzz.target import Target
from dev.fuzz.tokens import CALLBACK, Cast
from dev.fuzz.wire import Wrong
from handlers.openapi.document import path_of
from handlers.openapi.operations import OPERATIONS
from handlers.routes import POLICIES, ROUTES
from outbound.ai.echo import ECHO

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
FEW = ("none", "all scopes", "garbage", "a session cookie")
"""Callers for operations that need no token."""
NAMES = {"collection": "notes", "docId": "n1", "model": ECHO, "response": "resp_1", "registered": "web-app"}


def operations() -> Iterator[tuple[str, str, str]]:
    """Every operation: the name of its route, its method, its address."""
    for route in ROUTES:
        for method, operation in OPERATIONS.get(route.name, {}).items():
            yield route.name, method, path_of(route.pattern, operation)


class Api:
    """Sends requests generated from a target's OpenAPI document, or from another one."""

    def __init__(self, target: Target, cast: Cast, document: dict[str, Any] | None = None) -> None:
        self.target, self.cast = target, cast
        self.statuses: dict[int, int] = {}
        described = document or json.loads(target.application.openapi)
        self._schema: Any = schemathesis.openapi.from_dict(described)
        self._session = requests.Session()
        self._session.trust_env = False
        self._url = f"http://127.0.0.1:{target.port}"

    def close(self) -> None:
        """Closes the connection."""
        self._session.close()

    def fuzz(self, name: str, method: str, path: str, *, examples: int, seed: int) -> None:
        """Sends `examples` valid and as many invalid cases of an operation, as each kind of caller. Raises Wrong, and
        schemathesis's own errors."""
        operation = self._schema[path][method.upper()]
        self._run(name, method, operation.as_strategy(generation_mode=GenerationMode.POSITIVE), examples, seed)
        ours = OPERATIONS[name][method]
        # Otherwise no request could be invalid.
        if ours.parameters or ours.body or set(ours.path) - {"model", "response"}:
            self._run(name, method, operation.as_strategy(generation_mode=GenerationMode.NEGATIVE), examples, seed)
        if self.target.log.heard:
            raise Wrong("the log: " + "\n".join(self.target.log.heard[:5]))

    def _run(self, name: str, method: str, cases: Any, examples: int, seed: int) -> None:
        callers = self.cast.bearers if POLICIES[name].scope else {who: self.cast.bearers[who] for who in FEW}

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases, known=st.booleans())
        def send(case: Any, known: bool) -> None:
            if known:
                self._name_what_is_there(case)
            for who, headers in callers.items():
                self._call(case, name, method, who, headers)

        send()

    def _name_what_is_there(self, case: Any) -> None:
        """A case that names nothing the server knows is refused for that."""
        for part in case.path_parameters:
            case.path_parameters[part] = NAMES[part]
        if isinstance(case.body, dict):
            there = {"client_id": "web-app", "client_secret": self.cast.secret, "redirect_uri": CALLBACK, "model": ECHO}
            case.body.update({field: value for field, value in there.items() if field in case.body})

    def _weighed(self, case: Any, method: str, name: str, headers: dict[str, str]) -> requests.Response:
        """The answer. Raises Wrong if it takes the event loop too long each time."""
        meter, over = self.target.meter, ""
        for _ in range(TRIES):
            before = meter.total
            made = case.call(base_url=self._url, session=self._session, headers=headers, allow_redirects=False)
            sent = made.request
            over = Cost(meter.total - before).over(len(sent.body or b"") + len(sent.url))
            if not over:
                response: requests.Response = made
                return response
        raise Wrong(f"{method} {name}: {over} of processor\n{case!r}"[:3000])

    def _call(self, case: Any, name: str, method: str, who: str, headers: dict[str, str]) -> None:
        response = self._weighed(case, method, name, headers)
        self.statuses[response.status_code] = self.statuses.get(response.status_code, 0) + 1
        if "x-request-id" not in {field.lower() for field in response.headers}:
            # The HTTP server refused it as malformed: outside the document.
            if response.status_code not in (400, 431):
                raise Wrong(f"{who}: {response.status_code} without an id of the request")
            return
        policy = POLICIES[name]
        needed = ((method != "get" and policy.write_scope) or policy.scope).split()
        if needed and not {*needed} & {*self.cast.carries.get(who, ())} and response.status_code < 400:
            raise Wrong(f"{method} {name}: {who} got {response.status_code}")
        if case.operation.path.count("/") == case.formatted_path.count("/"):  # otherwise it was another address
            case.validate_response(response, checks=CHECKS)
