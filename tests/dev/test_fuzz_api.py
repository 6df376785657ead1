"""Every endpoint with valid and invalid requests from every kind of caller; a fixed set here, others with `make
fuzz`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from schemathesis.core.failures import FailureGroup

from dev.fuzz.api import Api, operations
from dev.fuzz.target import Target
from dev.fuzz.tokens import Cast
from store.names import SCOPES
from store.results import Caller
from tests.support.http import http_servers
from tests.support.store.document_app import Keeper

pytestmark = pytest.mark.slow

EXAMPLES = 6
SEED = 20_261
CALLS = [pytest.param(*one, id=f"{one[1]} {one[0]}") for one in operations()]


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with Target(http_servers.CHOSEN) as target:
        cast = target.run(Cast.make(target))
        made = Api(target, cast)
        yield made
        made.close()


@pytest.fixture(scope="module")
def registered(api: Api) -> dict[bytes, object]:
    """What no app call may change: people, sessions, addresses, apps, their secrets."""
    return kept(api)


def kept(api: Api) -> dict[bytes, object]:
    parts = (b":user", b":session", b"{email:", b"{app", b":factors", b":passkeys", b":audit")
    found = {key: value for key, value in api.target.content().items() if any(part in key for part in parts)}
    for value in found.values():
        if isinstance(value, dict):
            value.pop(b"stored", None)  # how much all apps keep for the person
    return found


def test_callers_of_every_kind_are_there(api: Api) -> None:
    assert set(SCOPES) < set(api.cast.bearers)
    assert set(api.cast.carries) < set(api.cast.bearers)
    assert len(api.cast.bearers) > 15


@pytest.mark.spec("5.4")
@pytest.mark.parametrize(("name", "method", "path"), CALLS)
def test_an_operation_answers_everybody_as_it_is_described(
    api: Api, registered: dict[bytes, object], name: str, method: str, path: str
) -> None:
    api.fuzz(name, method, path, examples=EXAMPLES, seed=SEED)
    assert kept(api) == registered


@pytest.mark.parametrize(
    ("route", "change"),
    [
        pytest.param(("credits", "get"), lambda said: said["responses"].pop("401"), id="a status"),
        pytest.param(
            ("credits", "get"),
            lambda said: said["responses"]["401"].update({"$ref": "#/components/responses/not_found"}),
            id="a code",
        ),
        pytest.param(("credits", "get"), lambda said: said["responses"]["200"].update(said["lie"]), id="a field"),
    ],
)
def test_a_wrong_description_is_detected(
    api: Api, route: tuple[str, str], change: Callable[[dict[str, Any]], object]
) -> None:
    """The fuzzer detects it."""
    path = next(path for name, method, path in operations() if (name, method) == route)
    document = json.loads(api.target.application.openapi)
    said = document["paths"][path][route[1]]
    said["lie"] = {"content": {"application/json": {"schema": {"type": "object", "required": ["nothing"]}}}}
    change(said)
    del said["lie"]
    liar = Api(api.target, api.cast, document)
    with pytest.raises(FailureGroup):
        liar.fuzz(*route, path, examples=1, seed=SEED)
    liar.close()


def test_calls_have_come_through_and_what_is_kept_adds_up(api: Api, registered: dict[bytes, object]) -> None:
    """Runs last: the calls were no mere refusals, and every document is accounted for."""
    assert {200, 201, 204, 400, 401, 403, 404} <= set(api.statuses)
    session = api.cast.session_of()

    async def count() -> int:
        found = 0
        for client in ("all-scopes", "another-app", "only-data-write"):
            tokens = await api.cast.mint(client, SCOPES)
            token = api.target.store.tokens.open_access(tokens.access_token)
            assert token
            assert token.user == session.user
            found += (await Keeper(api.target.store, Caller.of(token, SCOPES)).recount()).documents
        return found

    assert api.target.run(count()) > 0
