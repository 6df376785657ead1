"""The OpenAPI document compared with running handlers: the parameters they read, the errors they raise.

`tests/support/http/conformance.py` compares answers with the document in every HTTP test.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
from tornado.httputil import HTTPHeaders

from handlers.ai import call as ai_call
from handlers.ai import request
from handlers.core import amounts
from handlers.core.params import Params
from handlers.core.site import Site
from handlers.oauth import authorize, requests
from handlers.openapi.document import codes_of, document, operation_id
from handlers.openapi.operations import OPERATIONS
from handlers.openapi.schemas import SCHEMAS
from handlers.routes import ROUTES
from store.names import ASSERTION_GRANT
from store.oauth.assertions.issuers import TrustedIssuers
from store.oauth.device_requests import GRANT_TYPE
from store.wiring import Store
from tests.oauth.exchange.exchanging import TYPE, form_of
from tests.support.calls.assertions import trusted_for
from tests.support.http import driver
from tests.support.http.documented import call
from tests.support.http.dpop_app import BoundApp
from tests.support.http.driver import ALL_SCOPES, Service, challenge, fields_of
from tests.support.http.self_registered import NATIVE, register

DOCUMENT = document(ROUTES, "http://localhost:8080")
FORM = "application/x-www-form-urlencoded"
# Parameters that every request may have.
OF_ALL = {"Authorization", "Content-Type", "User-Agent", "X-Forwarded-For", "Origin", "Accept", "Host", "Cookie"}
OF_ALL |= {"X-Xsrftoken", "X-Csrftoken", "Sec-Fetch-Mode", "Connection", "Content-Length", "Content-Encoding"}
# Fields of the page's own form, which stand for `scopes` and `spend_limit`.
OF_THE_PAGE = {"boxes", "spend_dollars"}


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    """A server with everything that is off by default."""
    return Site(memory_store, base_url, dynamic_registration="open")


class Reads(NamedTuple):
    """The parameters and headers that handlers asked for."""

    parameters: set[str]
    headers: set[str]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """What is read from here on."""
    found = Reads(set(), set())

    def noted(name: str, into: set[str], method: Callable[..., Any]) -> Callable[..., Any]:
        def read(self: Any, name: str, *rest: Any) -> Any:
            into.add(name)
            return method(self, name, *rest)

        return read

    for name in ("get", "several", "whole", "texts", "value", "structured"):
        monkeypatch.setattr(Params, name, noted(name, found.parameters, getattr(Params, name)))

    def first_read(pairs: list[tuple[str, str]], name: str, first: Callable[..., Any] = requests.first_of) -> Any:
        found.parameters.add(name)
        return first(pairs, name)

    monkeypatch.setattr(authorize, "first_of", first_read)
    plain = HTTPHeaders.get_list

    def listed(self: HTTPHeaders, name: str) -> list[str]:
        if sys._getframe(1).f_globals["__name__"].startswith("handlers."):
            found.headers.add(name)
        return plain(self, name)

    monkeypatch.setattr(HTTPHeaders, "get_list", listed)
    return found


def described(identity: str) -> Reads:
    """What the document says of an operation."""
    operation = next(
        one for methods in DOCUMENT["paths"].values() for one in methods.values() if one["operationId"] == identity
    )
    parameters = [
        DOCUMENT["components"]["parameters"][one["$ref"].rpartition("/")[2]] for one in operation.get("parameters", ())
    ]
    names = {one["name"] for one in parameters if one["in"] == "query"}
    content = operation.get("requestBody", {}).get("content", {})
    if FORM in content:  # a document is read as a whole
        schema = DOCUMENT["components"]["schemas"][content[FORM]["schema"]["$ref"].rpartition("/")[2]]
        names |= {field for one in schema.get("oneOf", [schema]) for field in one["properties"]}
    return Reads(names, {one["name"] for one in parameters if one["in"] == "header"})


DEVICE = "/api/oauth/device_authorization"
FORMS = {
    "ai-messages": "/api/v1/ai/messages",
    "ai-sdk-messages": "/api/v1/ai/v1/messages",
    "ai-sdk-count": "/api/v1/ai/v1/messages/count_tokens",
}


async def ask_each(service: Service) -> dict[str, list[Callable[[], Awaitable[Any]]]]:
    """What has an operation read all that it reads: mostly the call that the document shows."""
    browser, everything = await service.signed_in(), " ".join(ALL_SCOPES)
    tokens = await service.tokens(browser=browser, scope=everything)
    code = await service.code(browser=browser, scope=everything, prompt="consent")
    page = await browser.get(service.web.authorize_url(scope=everything, prompt="consent"))
    hidden = fields_of(page, "/api/oauth/authorize")
    decision = {name: hidden[name] for name in ("_xsrf", "request_id")} | {"decision": "allow", "next": "/"}
    decision |= {"scopes": json.dumps(ALL_SCOPES), "spend_limit": "5"}
    asserted = {"client_assertion", "client_assertion_type"}
    proof = {"client_id": service.web.client_id, "client_secret": service.web.secret or ""}
    plain, signed = SCHEMAS["PushedRequest"]["oneOf"]
    pushed = dict.fromkeys(plain["properties"].keys() - asserted, "1") | proof
    signed = dict.fromkeys(signed["properties"].keys() - asserted, "1") | proof
    asked = {"scope": "data:read", "resource": service.base_url, "dpop_jkt": "1"} | proof
    shown: dict[str, list[Callable[[], Awaitable[Any]]]] = {
        operation_id(route.name, method): [
            partial(call, service, route, method, tokens["access_token"]),
            *([partial(call, service, route, method, tokens["access_token"], "DPoP")] * bool(route.policy.scope)),
        ]
        for route in ROUTES
        for method in OPERATIONS.get(route.name, {})
    }
    # JSON for a model is read as a whole, and a form field by field.
    model, access = {"model": "latchkey-echo", "max_tokens": "1"}, {"Authorization": f"Bearer {tokens['access_token']}"}
    for identity, path in FORMS.items():
        shown[identity].append(partial(driver.send, service.base_url + path, "POST", form=model, headers=access))
    registered = await register(service.base_url)
    changed = {**NATIVE, "client_id": registered.client_id}
    return {
        **shown,
        "authorize": [lambda: browser.get(service.web.authorize_url(prompt="consent", code_challenge=challenge()))],
        "decide": [lambda: browser.send("/api/oauth/authorize", "POST", form=decision)],
        "token": [
            lambda: service.web.exchange(code),
            lambda: service.web.refresh(tokens["refresh_token"]),
            lambda: service.web.token(grant_type="client_credentials"),
            lambda: service.web.token(grant_type=GRANT_TYPE, device_code="x"),
            lambda: service.web.token(**form_of("x", actor_token="x", actor_token_type=TYPE)),
            lambda: service.web.token(grant_type=ASSERTION_GRANT, assertion="x"),
            lambda: BoundApp(service.web).refresh("lk_rt_unknown"),
        ],
        "device-authorization": [
            lambda: driver.send(f"{service.base_url}{DEVICE}", "POST", form=asked),
            lambda: driver.send(f"{service.base_url}{DEVICE}", "POST", form=asked, headers={"DPoP": "x"}),
        ],
        "push": [
            lambda: driver.send(f"{service.base_url}/api/oauth/par", "POST", form=pushed),
            lambda: driver.send(f"{service.base_url}/api/oauth/par", "POST", form=signed),
            lambda: driver.send(f"{service.base_url}/api/oauth/par", "POST", form=pushed, headers={"DPoP": "x"}),
        ],
        "client-configuration-get": [lambda: registered.manage("GET")],
        "client-configuration-put": [lambda: registered.manage("PUT", changed)],
        "client-configuration-delete": [lambda: registered.manage("DELETE")],
        "revoke": [lambda: service.web.revoke("lk_rt_unknown")],
    }


@pytest.mark.gen_test
async def test_each_handler_reads_exactly_its_documented_parameters(service: Service, site: Site, reads: Reads) -> None:
    object.__setattr__(site, "issuers", TrustedIssuers((trusted_for("web-app", service.base_url),)))
    by_operation = await ask_each(service)
    assert set(by_operation) == {
        operation_id(name, method) for name, methods in OPERATIONS.items() for method in methods
    }
    for identity, calls in by_operation.items():
        reads.parameters.clear()
        reads.headers.clear()
        for ask in calls:
            await ask()
        expected = described(identity)
        if identity == "authorize":  # of the pairs of the query, before they are parameters
            # The sign-in page reads the hint, and every page the languages. The rest is refused, or our own mark.
            reads.parameters.update({"client_id", "login_hint", "ui_locales"})
            reads.parameters.difference_update({"request_uri", "registration", "progress"})
        if identity == "push":
            reads.parameters.discard("request_uri")  # which is refused
        assert reads.parameters - OF_THE_PAGE == expected.parameters, identity
        # If-None-Match is looked at on every write, to refuse it where it has no meaning.
        others = {"If-None-Match"} if identity == "document-delete" else set()
        # A token may be there instead: a security scheme, as Authorization is.
        others |= {"X-Api-Key"} if identity.startswith("ai-") else set()
        assert reads.headers - OF_ALL - others == expected.headers, identity


HELPERS = (amounts, ai_call, request)


def raised_in(module: Any) -> set[str]:
    """The codes that a module, or one of those that only read and count for it, raises."""
    text = inspect.getsource(module)
    codes = set(re.findall(r'Refused\(\s*"(\w+)"', text))
    for helper in HELPERS:
        if f"from {helper.__name__} import" in text and helper is not module:
            codes |= raised_in(helper)
    return codes


def test_every_error_raised_by_a_handler_is_documented() -> None:
    served = {route.name: route for route in ROUTES}
    known: dict[Any, set[str]] = {}
    for name, methods in OPERATIONS.items():
        module = sys.modules[served[name].handler.__module__]
        codes = known.setdefault(module, set())
        for method, operation in methods.items():
            codes |= set(codes_of(served[name], method, operation))
    # What authorization refuses goes back to the app in a redirect, and the text of the operation names it.
    redirected = raised_in(authorize) - {"invalid_request"}
    words = DOCUMENT["paths"]["/oauth/authorize"]["get"]["description"]
    assert [code for code in redirected if f"`{code}`" not in words] == []
    found = {module.__name__: raised_in(module) - codes for module, codes in known.items()}
    assert any(raised_in(module) for module in known)
    assert {name: codes for name, codes in found.items() if codes} == {"handlers.oauth.authorize": redirected}
