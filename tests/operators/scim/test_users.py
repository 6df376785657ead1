"""People, provisioned by a directory over SCIM 2.0."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from store.accounts.external_ids import key_of, name_of
from store.operations import Suspension
from store.refused import Refused, SignedOut, Suspended
from tests.operators.scim.conftest import USER, Provisioner
from tests.support.http.driver import EMAIL, json_of
from tests.support.store.checked_store import broken, checked

pytestmark = pytest.mark.gen_test

OKTA = {
    "schemas": [USER],
    "userName": "Test.User@Example.com",
    "name": {"givenName": "Test", "familyName": "User"},
    "emails": [{"primary": True, "value": "test.user@example.com", "type": "work"}],
    "displayName": "Test User",
    "locale": "en-US",
    "externalId": "00ujl29u0le5T6Aj10h7",
    "groups": [],
    "password": "1mz050nq",
    "active": True,
}
ENTRA = {
    "schemas": [USER, "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
    "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    "userName": "abisola@example.com",
    "active": True,
    "emails": [{"primary": True, "type": "work", "value": "abisola@example.com"}],
    "meta": {"resourceType": "User"},
    "name": {"formatted": "Abisola Ade", "familyName": "Ade", "givenName": "Abisola"},
    "roles": [],
    "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "Sales"},
}


@pytest.mark.parametrize(("sent", "name"), [(OKTA, "Test User"), (ENTRA, "Abisola Ade")], ids=["Okta", "Entra"])
async def test_a_person_is_made_as_directories_send_them(scim: Provisioner, sent: dict[str, Any], name: str) -> None:
    response = await scim.ask("POST", "/Users", sent)
    made = json_of(response)
    assert response.code == 201, made
    assert response.headers["Location"] == made["meta"]["location"] == f"{scim.desk.url}/scim/v2/Users/{made['id']}"
    email = sent["userName"].lower()
    assert made["emails"] == [{"value": email, "type": "work", "primary": True}]
    assert (made["userName"], made["displayName"], made["active"]) == (email, name, True)
    assert made["externalId"] == sent["externalId"]
    person = await scim.store.operator.find(email)
    assert (person.user, person.email_verified, person.external_id) == (made["id"], True, sent["externalId"])
    # No password that a directory sends works.
    assert await scim.store.people.verify(email, sent.get("password", "x")) is None
    assert scim.noted == [("created_by_operator", scim.noted[0][1])]
    assert "The scim" in scim.noted[0][1]
    again = await scim.ask("POST", "/Users", sent)
    await scim.refused(again, 409, "uniqueness")
    other = await scim.ask("POST", "/Users", {**sent, "userName": "other@example.com"})
    assert "externalId" in await scim.refused(other, 409, "uniqueness")
    assert await scim.store.people.find("other@example.com") is None


async def test_an_inactive_person_is_never_active(scim: Provisioner) -> None:
    made = await scim.make(active=False, externalId="one")
    assert made["active"] is False
    person = await scim.store.operator.find(made["id"])
    assert person.suspension == Suspension("Your organization has disabled this account.", "SCIM")
    assert (await json_body(scim, made["id"], {"op": "replace", "path": "active", "value": True}))["active"] is True
    assert (await scim.store.operator.find(made["id"])).suspension is None


async def json_body(scim: Provisioner, user: str, *operations: dict[str, Any]) -> Any:
    """The person after operations that succeed."""
    response = await scim.patch(user, *operations)
    assert response.code == 200, response.body
    return json_of(response)


@pytest.mark.parametrize(
    ("off", "on"),
    [
        pytest.param(
            {"op": "Replace", "path": "active", "value": "False"},
            {"op": "Replace", "path": "active", "value": "True"},
            id="Entra",
        ),
        pytest.param(
            {"op": "replace", "value": {"active": False}}, {"op": "replace", "value": {"active": True}}, id="Okta"
        ),
        pytest.param(
            {"OP": "add", "Path": f"{USER}:Active", "Value": False},
            {"op": "add", "path": "ACTIVE", "value": True},
            id="other spelling",
        ),
    ],
)
async def test_an_inactive_person_loses_sessions_and_tokens(
    scim: Provisioner, off: dict[str, Any], on: dict[str, Any]
) -> None:
    ada, session = scim.desk.ada, await scim.desk.sign_in()
    assert (await json_body(scim, ada, off))["active"] is False
    with pytest.raises(SignedOut):
        await scim.store.sessions.live(session)
    with pytest.raises(Suspended, match="access_denied"):
        await scim.store.people.verify(EMAIL, "correct horse battery")
    assert (await scim.store.operator.find(ada)).status == "disabled"
    assert [event for event, _ in scim.noted] == ["suspended_by_operator"]
    assert (await json_body(scim, ada, on))["active"] is True
    with pytest.raises(SignedOut):
        await scim.store.sessions.live(session)
    await scim.desk.sign_in()
    assert [event for event, _ in scim.noted] == ["suspended_by_operator", "enabled_by_operator"]


async def test_only_an_operator_ends_the_suspension_of_an_operator(scim: Provisioner) -> None:
    ada, theirs = scim.desk.ada, Suspension("Unpaid")
    await scim.store.operator.suspend(ada, theirs)
    await json_body(scim, ada, {"op": "replace", "path": "active", "value": False})
    response = await scim.patch(
        ada, {"op": "replace", "path": "displayName", "value": "X"}, {"op": "replace", "path": "active", "value": True}
    )
    await scim.refused(response, 403)
    person = await scim.store.operator.find(ada)
    assert (person.suspension, person.name) == (theirs, "Ada Lovelace")


async def test_people_with_a_role_are_out_of_reach(scim: Provisioner) -> None:
    ada = scim.desk.ada
    await scim.store.role_holders.give(ada, "auditor")
    for role in ("scim", "admin"):
        for response in (
            await scim.ask("DELETE", f"/Users/{ada}", role=role),
            await scim.ask("PUT", f"/Users/{ada}", {"userName": EMAIL, "displayName": "X"}, role=role),
            await scim.patch(ada, {"op": "replace", "path": "active", "value": False}),
            await scim.patch(ada, {"op": "add", "path": "externalId", "value": "x"}),
        ):
            assert "role auditor" in await scim.refused(response, 403)
    person = await scim.store.operator.find(ada)
    assert (person.status, person.name, person.external_id) == ("active", "Ada Lovelace", "")


async def test_put_keeps_what_is_left_out(scim: Provisioner) -> None:
    made = await scim.make(externalId="one", active=False)
    path = f"/Users/{made['id']}"
    sent = {
        "schemas": [USER],
        "id": "other",
        "userName": "BEA@example.com",
        "name": {"givenName": "B", "familyName": "K"},
    }
    changed = json_of(await scim.ask("PUT", path, sent))
    assert (changed["displayName"], changed["externalId"], changed["active"]) == ("B K", "one", False)
    changed = json_of(await scim.ask("PUT", path, {**sent, "displayName": "Bee", "externalId": None, "active": True}))
    assert (changed["displayName"], changed.get("externalId"), changed["active"]) == ("Bee", None, True)
    assert await scim.store.client.get(key_of(name_of("one"))) is None
    events = [event for event, _ in scim.noted]
    assert sorted(events[2:]) == [
        *("enabled_by_operator", "external_id_changed_by_operator"),
        *("name_changed_by_operator", "name_changed_by_operator"),
    ]


async def test_nobody_gets_another_address_password_or_group(scim: Provisioner) -> None:
    made = await scim.make()
    user, path = made["id"], f"/Users/{made['id']}"
    mutability = (
        {"op": "replace", "path": "userName", "value": "thief@example.com"},
        {"op": "replace", "value": {"userName": "thief@example.com", "displayName": "X"}},
        {"op": "replace", "path": 'emails[type eq "work"].value', "value": "thief@example.com"},
        {"op": "add", "path": "emails", "value": [{"value": "thief@example.com"}]},
        {"op": "replace", "path": "password", "value": "correct horse battery"},
        {"op": "add", "path": "groups", "value": [{"value": "YWRtaW5z"}]},
        {"op": "remove", "path": "userName"},
        {"op": "remove", "path": "active"},
        {"op": "remove", "path": "displayName"},
        {"op": "replace", "path": "id", "value": "0" * 32},
    )
    for operation in mutability:
        await scim.refused(await scim.patch(user, operation), 400, "mutability")
    sent = {"userName": "thief@example.com", "displayName": "X"}
    await scim.refused(await scim.ask("PUT", path, sent), 400, "mutability")
    # The address that the person has, in any case, is no change.
    await json_body(scim, user, {"op": "replace", "path": 'emails[type eq "work"].value', "value": "Bea@Example.com"})
    assert await scim.get(path) == made
    groups = {"userName": "bea@example.com", "groups": [{"value": "YWRtaW5z"}], "password": "correct horse battery"}
    assert json_of(await scim.ask("PUT", path, groups)) == made
    assert await scim.store.people.verify("bea@example.com", "correct horse battery") is None


@pytest.mark.parametrize(
    ("operations", "kind"),
    [
        pytest.param([{"op": "remove"}], "noTarget", id="remove without path"),
        pytest.param([{"op": "replace", "value": "x"}], "noTarget", id="no path and no object"),
        pytest.param([{"op": "move", "path": "active", "value": True}], "invalidSyntax", id="another op"),
        pytest.param([{"op": "replace", "path": "shoeSize", "value": 42}], "invalidPath", id="unknown attribute"),
        pytest.param([{"op": "replace", "path": "a b", "value": 42}], "invalidPath", id="no path"),
        pytest.param([{"op": "replace", "path": "x" * 300, "value": 42}], "invalidPath", id="long path"),
        pytest.param([{"op": "replace", "path": "active", "value": "yes"}], "invalidValue", id="no boolean"),
        pytest.param([{"op": "replace", "path": "displayName", "value": 42}], "invalidValue", id="no text"),
        pytest.param([{"op": "replace", "path": "displayName", "value": "\u202e"}], "invalidValue", id="hidden name"),
        pytest.param([{"op": "add", "path": "externalId", "value": "x" * 256}], "invalidValue", id="long externalId"),
        pytest.param([], "invalidSyntax", id="no operation"),
        pytest.param([{"op": "remove", "path": "title"}] * 101, "invalidSyntax", id="many operations"),
        pytest.param(["active"], "invalidSyntax", id="no object"),
    ],
)
async def test_a_wrong_patch_changes_nothing(scim: Provisioner, operations: list[Any], kind: str) -> None:
    ada, before = scim.desk.ada, await scim.get(f"/Users/{scim.desk.ada}")
    # A right operation before the wrong one is not carried out either.
    first = [] if kind == "invalidSyntax" else [{"op": "replace", "path": "active", "value": False}]
    await scim.refused(await scim.patch(ada, *first, *operations), 400, kind)
    assert await scim.get(f"/Users/{ada}") == before


async def test_attributes_that_are_not_kept_are_accepted(scim: Provisioner) -> None:
    before = await scim.get(f"/Users/{scim.desk.ada}")
    enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
    after = await json_body(
        scim,
        scim.desk.ada,
        {"op": "Add", "path": "title", "value": "Countess"},
        {"op": "Add", "path": f"{enterprise}:department", "value": "Sales"},
        {"op": "Replace", "path": 'phoneNumbers[type eq "work"].value', "value": "1"},
        {"op": "Replace", "path": "name.familyName", "value": "King"},
        {"op": "Remove", "path": "name.familyName"},
        {"op": "Remove", "path": 'addresses[type eq "work"].locality'},
    )
    assert after == before


async def test_filters_find_one_person(scim: Provisioner) -> None:
    made = await scim.make(externalId='a "b" \\ é')
    for text in (
        'userName eq "bea@example.com"',
        'USERNAME EQ "BEA@EXAMPLE.COM"',
        f'{USER}:userName eq "bea@example.com"',
        'emails[type eq "work"].value eq "bea@example.com"',
        r'externalId eq "a \"b\" \\ é"',
        f'id eq "{made["id"]}"',
    ):
        found = await scim.get(f"/Users?filter={quote(text)}&startIndex=1&count=1")
        assert (found["totalResults"], found["Resources"]) == (1, [made]), text
    for text in ('userName eq "nobody@example.com"', 'userName eq "no address"', 'externalId eq "A"', 'id eq "x"'):
        found = await scim.get(f"/Users?filter={quote(text)}")
        assert (found["totalResults"], found["Resources"], found["itemsPerPage"]) == (0, [], 0)
    for text in (
        *('userName sw "b"', 'userName eq "a" or id eq "b"', "userName eq 1", 'password eq "x"', "userName", " "),
        *('userName eq "\\x"', f'userName eq "{"a" * 1000}"', 'not (userName eq "a")'),
    ):
        await scim.refused(await scim.ask("GET", f"/Users?filter={quote(text)}"), 400, "invalidFilter")


async def test_everybody_comes_once_page_by_page(scim: Provisioner) -> None:
    people = sorted([scim.desk.ada, *[(await scim.make(f"p{one}@example.com"))["id"] for one in range(6)]])
    pages = [await scim.get(f"/Users?startIndex={start}&count=3") for start in (1, 4, 7, 8)]
    assert [page["totalResults"] for page in pages] == [7] * 4
    assert [page["itemsPerPage"] for page in pages] == [3, 3, 1, 0]
    assert [one["id"] for page in pages for one in page["Resources"]] == people
    assert [
        len((await scim.get(f"/Users?{query}"))["Resources"]) for query in ("count=0", "count=-1", "count=1000")
    ] == [*(0, 0, 7)]
    assert [one["id"] for one in (await scim.get("/Users?startIndex=-5&count=1"))["Resources"]] == people[:1]
    for query in ("count=x", "startIndex=1e3", "count=" + "9" * 30):
        await scim.refused(await scim.ask("GET", f"/Users?{query}"), 400, "invalidValue")


async def test_attributes_are_chosen(scim: Provisioner) -> None:
    made = await scim.make(externalId="one")
    path = f"/Users/{made['id']}"
    assert set(await scim.get(f"{path}?attributes=userName,{USER}:active")) == {"schemas", "id", "userName", "active"}
    assert await scim.get(f"{path}?attributes=EMAILS.value") == {
        "schemas": [USER],
        "id": made["id"],
        "emails": [{"value": "bea@example.com"}],
    }
    left = await scim.get(f"{path}?excludedAttributes=id,groups,name.formatted,meta")
    assert (set(made) - set(left), left["name"]) == ({"groups", "meta"}, {})
    listed = await scim.get("/Users?attributes=userName")
    assert all(set(one) == {"schemas", "id", "userName"} for one in listed["Resources"])


async def test_a_deleted_person_is_gone_with_the_external_id(scim: Provisioner) -> None:
    made = await scim.make(externalId="one")
    path = f"/Users/{made['id']}"
    response = await scim.ask("DELETE", path)
    assert (response.code, response.body) == (204, b"")
    for method in ("GET", "DELETE"):
        await scim.refused(await scim.ask(method, path), 404)
    assert ("account_deleted", scim.noted[0][1]) in scim.noted
    assert await scim.store.client.get(key_of(name_of("one"))) is None
    assert (await scim.make(externalId="one"))["id"] != made["id"]
    scim.store.fsck.settle = 0
    assert broken(await checked(scim.store)) == set()


async def test_an_external_id_is_one_persons(scim: Provisioner) -> None:
    bea, cal = [(await scim.make(f"{one}@example.com"))["id"] for one in ("bea", "cal")]
    add = {"op": "add", "path": "externalId", "value": "one"}
    answers = await asyncio.gather(scim.patch(bea, add), scim.patch(cal, add))
    assert sorted(answer.code for answer in answers) == [200, 409]
    [owner] = (await scim.get("/Users?filter=" + quote('externalId eq "one"')))["Resources"]
    other = cal if owner["id"] == bea else bea
    await json_body(scim, owner["id"], {"op": "replace", "path": "externalId", "value": "two"})
    await json_body(scim, other, add)
    await json_body(scim, other, {"op": "remove", "path": "externalId"})
    assert (await scim.get("/Users?filter=" + quote('externalId eq "one"')))["totalResults"] == 0
    scim.store.fsck.settle = 0
    assert broken(await checked(scim.store)) == set()


@pytest.mark.parametrize(
    ("body", "headers", "status", "kind"),
    [
        pytest.param("{", {}, 400, "invalidSyntax", id="no JSON"),
        pytest.param("[]", {}, 400, "invalidSyntax", id="no object"),
        pytest.param('{"userName":"a@b.example","userName":"c@d.example"}', {}, 400, "invalidSyntax", id="repeated"),
        pytest.param("{}", {}, 400, "invalidValue", id="nothing"),
        pytest.param('{"userName":"no address","displayName":"A"}', {}, 400, "invalidValue", id="no address"),
        pytest.param('{"userName":"a@example.com"}', {}, 400, "invalidValue", id="no name"),
        pytest.param('{"userName":5,"displayName":"A"}', {}, 400, "invalidValue", id="a number"),
        pytest.param(
            "userName=a%40example.com", {"Content-Type": "application/x-www-form-urlencoded"}, 415, None, id="form"
        ),
        pytest.param('{"a":"' + "x" * 70_000 + '"}', {}, 413, None, id="long"),
        pytest.param('{"a":[' + "1," * 6000 + "1]}", {}, 400, "invalidSyntax", id="many values"),
    ],
)
async def test_what_makes_no_person_is_refused(
    scim: Provisioner, body: str, headers: dict[str, str], status: int, kind: str | None
) -> None:
    await scim.refused(await scim.ask("POST", "/Users", body, headers=headers), status, kind)
    assert (await scim.get("/Users"))["totalResults"] == 1


async def test_json_is_taken_too(scim: Provisioner) -> None:
    new = {"userName": "new@example.com", "displayName": "New"}
    response = await scim.ask("POST", "/Users", new, headers={"Content-Type": "application/json; charset=utf-8"})
    assert response.code == 201


async def test_other_roles_and_wrong_keys_are_refused(scim: Provisioner) -> None:
    for path in ("/Users", f"/Users/{scim.desk.ada}", "/Groups", "/Schemas", "/ServiceProviderConfig", "/nothing", ""):
        for role in ("support", "auditor", "credits"):
            await scim.refused(await scim.ask("GET", path, role=role), 403)
        response = await scim.ask("GET", path, headers={"Authorization": "Bearer lk_ok_wrong"})
        await scim.refused(response, 401)
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert (await scim.ask("GET", "/Users", role="admin")).code == 200
    with pytest.raises(Refused, match="insufficient_role"):
        await scim.desk.store.people_acts.delete(await actor(scim), scim.desk.ada)


async def actor(scim: Provisioner) -> Any:
    """The directory, as the store sees it."""
    key = await scim.store.operator_keys.open(await scim.desk.key("scim"), "127.0.0.1")
    assert key
    return key.actor


async def test_what_is_left_out_of_scim_is_said(scim: Provisioner) -> None:
    for path in ("/Bulk", "/Me", "/.search", "/Users/.search"):
        await scim.refused(await scim.ask("POST", path, {}), 501)
    config = await scim.get("/ServiceProviderConfig")
    assert {name for name, value in config.items() if isinstance(value, dict) and value.get("supported")} == {
        *("patch", "filter"),
    }
    for path in ("/Users/1", "/Nothing", "", "/Users/" + "0" * 32, "/Schemas/urn:x", "/ResourceTypes/Device"):
        await scim.refused(await scim.ask("GET", path), 404)
    await scim.refused(await scim.ask("GET", "/Schemas?filter=" + quote('id eq "a"')), 403)
    response = await scim.ask("POST", "/Schemas", {})
    await scim.refused(response, 405)
    assert response.headers["Allow"] == "GET, HEAD"
