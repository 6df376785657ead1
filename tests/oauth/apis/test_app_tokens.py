"""Tokens that apps get for themselves: for which API, with which scopes, and that no person's data answers to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from store import keys
from store.apps.api_record import ApiRegistration
from store.apps.registration import Registration
from store.crypto.seal import TokenKind
from store.fsck.walk import Report
from store.lifetimes import CLIENT
from store.oauth.app_tokens import principal_of
from store.oauth.resources import held_for_itself, meant_api, scopes_at, target_of
from store.refused import Refused
from tests.support.http.api_shop import ADMIN, BILLS, ORDERS, at
from tests.support.http.api_shop import about as told
from tests.support.http.driver import App, Service, json_of, send
from tests.support.lists.offenders import each
from tests.support.processes.engines import FakeClock
from tests.support.store.checked_store import checked

BOTH = (*at(ORDERS, "read", "write"), *at(BILLS, "read"))
CALLBACK = "https://app.example/cb"
MACHINE = Registration("machine", "A Machine", (CALLBACK,), (), api_scopes=BOTH)


@each(
    ("names", "api"),
    [
        (("write",), ORDERS),
        (("write", "read"), ORDERS),
        (("read",), None),
        ((), None),
        (("profile",), None),
        (("write", "profile"), None),
        (("admin",), None),
    ],
    ids=lambda names: " ".join(names) or "no scope",
)
def test_without_a_resource_all_scopes_belong_to_one_api(names: tuple[str, ...], api: ApiRegistration | None) -> None:
    if api:
        assert meant_api(MACHINE, names) == api.client_id
        return
    with pytest.raises(Refused, match="invalid_target"):
        meant_api(MACHINE, names)


def test_without_a_scope_the_only_api_is_meant() -> None:
    app = replace(MACHINE, api_scopes=at(ORDERS, "write", "read"))
    assert meant_api(app, ()) == ORDERS.client_id
    having = held_for_itself(app, ORDERS)
    assert scopes_at(having, ()) == ("read", "write"), "all that it registered for, in the API's order"
    assert scopes_at(held_for_itself(MACHINE, BILLS), ()) == ("read",)


@each(
    ("api", "names"),
    [(ORDERS, ("admin",)), (BILLS, ("admin",)), (BILLS, ("write",)), (ORDERS, ("read", "profile"))],
)
def test_a_scope_that_the_app_did_not_register_is_refused(api: ApiRegistration, names: tuple[str, ...]) -> None:
    with pytest.raises(Refused, match="invalid_scope"):
        scopes_at(held_for_itself(MACHINE, api), names)


async def populated(service: Service) -> tuple[App, dict[str, tuple[str, str]]]:
    """The machine, and the credentials of both APIs by their names."""
    secrets = {}
    for api in (ORDERS, BILLS):
        made, secret = await service.store.apis.create(api)
        secrets[api.name] = (made.client_id, secret)
    registration, own = await service.store.apps.create(MACHINE)
    return App(service.base_url, registration.client_id, own), secrets


async def about(service: Service, token: str, credentials: tuple[str, str]) -> Any:
    """What a caller of introspection learns."""
    return await told(service, token, *credentials)


async def issued(service: Service, resource: str | None = ORDERS.identifier, *names: str) -> str:
    """A token of the machine."""
    app = await service.store.apps.find("machine")
    assert app is not None
    target = target_of([resource] if resource else [], service.base_url)
    return (await service.store.app_tokens.issue(app, target, names, service.base_url)).access_token


@pytest.mark.rfc("7662 4 resource")
@pytest.mark.gen_test
@pytest.mark.trap(51)
async def test_a_token_is_live_at_its_own_api_alone(service: Service) -> None:
    machine, apis = await populated(service)
    now = (await service.store.client.time())[0]
    token = await issued(service)
    facts = await about(service, token, apis["Orders"])
    assert abs(facts["iat"] - now) <= 2
    assert facts == {
        "active": True,
        "client_id": "machine",
        "sub": "machine",
        "scope": "read write",
        "iss": service.base_url,
        "aud": "https://orders.example",
        "exp": facts["iat"] + 300,
        "iat": facts["iat"],
        "token_type": "Bearer",
    }
    assert await about(service, token, apis["Bills"]) == {"active": False}
    assert await about(service, token, (machine.client_id, machine.secret or "")) == facts, "its own app may ask too"
    assert await about(service, token, ("web-app", service.web.secret or "")) == {"active": False}
    assert await about(service, (await service.tokens())["access_token"], apis["Orders"]) == {"active": False}


@pytest.mark.gen_test
@pytest.mark.trap(57)
async def test_no_person_s_data_answers_to_it(service: Service) -> None:
    await populated(service)
    token = await issued(service)
    for path in ("/api/oauth/userinfo", "/api/v1/data/notes", "/api/v1/credits/balance", "/api/v1/apps"):
        response = await send(service.base_url + path, headers={"Authorization": f"Bearer {token}"})
        assert (response.code, json_of(response)["error"]) == (401, "invalid_token"), path


@pytest.mark.gen_test
@pytest.mark.trap(35)
async def test_an_app_with_the_client_id_of_a_deleted_one_has_none_of_its_tokens(
    service: Service, clock: FakeClock
) -> None:
    _, apis = await populated(service)
    old = await issued(service)
    assert (await about(service, old, apis["Orders"]))["active"]
    service.store.apps.settle = 0
    await service.store.apps.delete("machine")
    clock.advance(1)
    machine = await service.add_app("machine", scopes=(), api_scopes=BOTH)
    for asker in (apis["Orders"], ("machine", machine.secret or "")):
        assert await about(service, old, asker) == {"active": False}
    assert (await about(service, await issued(service), apis["Orders"]))["active"]


@pytest.mark.gen_test
@each(
    "end",
    ["expired", "revoked", "app disabled", "api disabled", "scopes withdrawn", "scopes of the API gone", "app deleted"],
)
async def test_a_token_ends(service: Service, end: str) -> None:
    store = service.store
    if await store.apps.find("machine") is None:
        store.apps.settle = 0
        await populated(service)
    await store.apis.update(ORDERS.client_id, status="active", scopes=ORDERS.scopes)
    await store.apps.update("machine", status="active", api_scopes=MACHINE.api_scopes)
    _, secret = await store.apis.rotate_secret(ORDERS.client_id)
    token = await issued(service)
    credentials = (ORDERS.client_id, secret)
    assert (await about(service, token, credentials))["active"] is True
    opened = store.sealer.open(TokenKind.ACCESS, token)
    assert opened is not None
    if end == "expired":
        row = keys.token(opened.user, opened.client, opened.id, 0)["access"]
        assert 299_000 < await store.client.pttl(row) <= 300_000
        await store.client.delete(row)
    elif end == "revoked":
        assert (await send(f"{service.base_url}/api/oauth/revoke", "POST", form={"token": token})).code == 200
    elif end == "app disabled":
        await store.apps.update("machine", status="disabled")
    elif end == "api disabled":
        await store.apis.update(ORDERS.client_id, status="disabled")
        form = {"token": token, "client_id": ORDERS.client_id, "client_secret": secret}
        assert (await send(f"{service.base_url}/api/oauth/introspect", "POST", form=form)).code == 401
        await store.apis.update(ORDERS.client_id, status="active", scopes=(ADMIN,))
    elif end == "scopes withdrawn":
        await store.apps.update("machine", api_scopes=at(BILLS, "read"))
    elif end == "scopes of the API gone":
        await store.apis.update(ORDERS.client_id, scopes=(ADMIN,))
    else:
        await store.apps.delete("machine")
    assert await about(service, token, credentials) == {"active": False}


@pytest.mark.gen_test
async def test_it_has_the_scopes_that_both_still_have(service: Service) -> None:
    _, apis = await populated(service)
    token = await issued(service)
    await service.store.apps.update("machine", api_scopes=at(ORDERS, "write"))
    assert (await about(service, token, apis["Orders"]))["scope"] == "write"


@pytest.mark.gen_test
@each(
    ("resource", "names", "code"),
    [
        ("https://nobody.example", (), "invalid_target"),
        ("http://localhost:1", (), "invalid_target"),
        ("x", (), "invalid_target"),
        (None, (), "invalid_target"),
        (None, ("read",), "invalid_target"),
        (None, ("profile",), "invalid_target"),
        (ORDERS.identifier, ("profile",), "invalid_scope"),
        (ORDERS.identifier, ("admin",), "invalid_scope"),
        (BILLS.identifier, ("write",), "invalid_scope"),
    ],
    ids=str,
)
async def test_a_wrong_target_or_scope_is_refused_and_counted(
    service: Service, resource: str | None, names: tuple[str, ...], code: str
) -> None:
    if await service.store.apps.find("machine") is None:
        await populated(service)
    app = await service.store.apps.find("machine")
    assert app is not None
    target = target_of([resource] if resource else [], service.base_url)
    with pytest.raises(Refused) as refused:
        await service.store.app_tokens.issue(app, target, names, service.base_url)
    assert refused.value.code == code
    assert refused.value.window is not None
    assert refused.value.window.limit == CLIENT.limit


@pytest.mark.gen_test
async def test_an_api_that_the_app_did_not_register_for_is_no_target(service: Service) -> None:
    await populated(service)
    app = await service.store.apps.update("machine", api_scopes=at(ORDERS, "read"))
    with pytest.raises(Refused, match="invalid_target"):
        await service.store.app_tokens.issue(app, BILLS.client_id, (), service.base_url)


@pytest.mark.gen_test
async def test_a_public_app_or_one_without_scopes_of_apis_gets_none(service: Service) -> None:
    await populated(service)
    for client_id in ("native-app", "web-app"):
        app = await service.store.apps.find(client_id)
        assert app is not None
        with pytest.raises(Refused, match="unauthorized_client"):
            await service.store.app_tokens.issue(app, ORDERS.client_id, (), service.base_url)
    app = await service.store.apps.update("native-app", api_scopes=at(ORDERS, "read"))
    with pytest.raises(Refused, match="unauthorized_client"):
        await service.store.app_tokens.issue(app, ORDERS.client_id, (), service.base_url)


@pytest.mark.gen_test
async def test_the_row_is_one_that_a_check_of_the_store_knows(service: Service) -> None:
    await service.store.key_state.check(service.store.keys.ring)
    service.store.fsck.settle = 0
    await populated(service)
    await issued(service)
    row = f"{principal_of('machine')}:access"
    assert [key async for key in service.store.client.scan_iter() if row in str(key)]
    report: Report = await checked(service.store)
    assert {name: tally.found for name, tally in report.tallies.items() if tally.found} == {}


@pytest.mark.rfc("8707 2.2 grants")
@pytest.mark.gen_test
async def test_the_token_endpoint_gives_a_token_and_no_refresh_token(service: Service) -> None:
    machine, apis = await populated(service)
    response = await machine.token(grant_type="client_credentials", resource=ORDERS.identifier, scope="read")
    assert response.code == 200
    assert (response.headers["Cache-Control"], response.headers["Pragma"]) == ("no-store", "no-cache")
    assert response.headers["X-Ratelimit-Limit"] == str(CLIENT.limit)
    answer = json_of(response)
    token = answer.pop("access_token")
    assert answer == {"token_type": "Bearer", "expires_in": 300, "scope": "read"}
    assert (await about(service, token, apis["Orders"]))["scope"] == "read"
    without = json_of(await machine.token(grant_type="client_credentials", scope="write"))
    assert (await about(service, without["access_token"], apis["Orders"]))["aud"] == ORDERS.identifier


@pytest.mark.gen_test
@each(
    ("fields", "status", "code"),
    [
        ({"resource": "https://nobody.example"}, 400, "invalid_target"),
        ({"resource": BILLS.identifier, "scope": "write"}, 400, "invalid_scope"),
        ({"scope": "read"}, 400, "invalid_target"),
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"client_id": "native-app", "client_secret": None}, 400, "unauthorized_client"),
    ],
    ids=str,
)
async def test_the_token_endpoint_refuses(
    service: Service, fields: dict[str, str | None], status: int, code: str
) -> None:
    if await service.store.apps.find("machine") is None:
        app, _ = await populated(service)
    secret = (await service.store.apps.rotate_secret("machine"))[1]
    app = App(service.base_url, "machine", secret)
    response = await app.token(grant_type="client_credentials", **fields)
    assert (response.code, json_of(response)["error"]) == (status, code)


@pytest.mark.rfc("9068 2.2 app")
@pytest.mark.rfc("7662 4 signature")
@pytest.mark.gen_test
@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_a_jwt_says_what_introspection_says(service: Service, algorithm: str) -> None:
    _, apis = await populated(service)
    await service.store.apis.update(ORDERS.client_id, token_format="jwt", signing_alg=algorithm)
    token = await issued(service)
    found = await service.store.signing_keys.verify(token, types=("at+jwt",))
    assert (found.header["typ"], found.header["alg"]) == ("at+jwt", algorithm)
    assert found.claims["sub"] == found.claims["client_id"] == "machine"
    facts = await about(service, token, apis["Orders"])
    assert {"active": True, "token_type": "Bearer", **found.claims} == {**facts, "jti": found.claims["jti"]}
    assert await about(service, token, apis["Bills"]) == {"active": False}
    head, body, signature = token.split(".")
    forged = f"{head}.{body}.{signature[:-4]}{'AAAA' if signature[-4:] != 'AAAA' else 'BBBB'}"
    assert await about(service, forged, apis["Orders"]) == {"active": False}
    other = await service.store.app_tokens.issue(MACHINE, ORDERS.client_id, (), "https://other.example")
    assert await about(service, other.access_token, apis["Orders"]) == {"active": False}, "another issuer's"
    signer = await service.store.signing_keys.for_signing(algorithm)
    for typ in ("JWT", "logout+jwt"):
        assert await about(service, signer.sign(found.claims, typ), apis["Orders"]) == {"active": False}, typ
    row = service.store.sealer.open(TokenKind.ACCESS, str(found.claims["jti"]))
    assert row is not None
    await service.store.client.delete(keys.token(row.user, row.client, row.id, 0)["access"])
    assert await about(service, token, apis["Orders"]) == {"active": False}, "its row is asked, too"
    refused = await send(f"{service.base_url}/api/oauth/userinfo", headers={"Authorization": f"Bearer {token}"})
    assert refused.code == 401
