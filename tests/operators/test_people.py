"""People in the management interface: found, made, changed, suspended, mailed, exported, deleted."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from handlers.core.site import Site
from store import keys
from store.accounts.identities import UpstreamIdentity
from store.operators import people_pages
from store.operators.people_pages import PeoplePages
from store.refused import SignedOut
from store.results import Caller
from tests.operators.conftest import Desk, refused
from tests.support.browser.mailbox import posted
from tests.support.http.driver import EMAIL, NAME, json_of
from tests.support.store.document_app import Keeper
from tests.support.store.world import World

pytestmark = pytest.mark.gen_test
PASSWORD = "correct horse battery"


async def test_a_person_is_found_by_address_and_id(desk: Desk) -> None:
    for query in (EMAIL, EMAIL.upper(), desk.ada, f"%20{desk.ada}%20"):
        page = await desk.get(f"/people?query={query}")
        assert page["nextCursor"] is None
        [one] = page["items"]
        assert (one["id"], one["email"], one["name"], one["status"]) == (desk.ada, EMAIL, NAME, "active")
        assert set(one) == {"id", "email", "email_verified", "name", "status", "createdAt", "lastSignInAt"}
    for query in ("nobody@example.com", "0" * 32, "no%20address", "%00", "a" * 254):
        response = await desk.ask("GET", f"/people?query={query}")
        assert (json_of(response).get("items"), response.code) in (([], 200), (None, 400))
    refused(await desk.ask("GET", "/people?query=" + "a" * 255), 400, "invalid_request")


async def test_the_newest_sign_in_is_shown(desk: Desk) -> None:
    assert (await desk.get(f"/people/{desk.ada}"))["lastSignInAt"] is None
    await desk.sign_in()
    first = (await desk.get(f"/people/{desk.ada}"))["lastSignInAt"]
    assert first
    await desk.store.operator.note(desk.ada, "exported_by_operator")
    assert (await desk.get(f"/people?query={EMAIL}"))["items"][0]["lastSignInAt"] == first


async def _pages(desk: Desk, path: str) -> list[list[str]]:
    found, cursor = [], ""
    while True:
        page = await desk.get(f"{path}&cursor={cursor}" if cursor else path)
        found.append([one["id"] for one in page["items"]])
        cursor = page["nextCursor"]
        if not cursor:
            return found


async def test_everybody_comes_once_page_by_page(desk: Desk) -> None:
    people = sorted([desk.ada, *[await desk.person(f"p{number}@example.com") for number in range(6)]])
    pages = await _pages(desk, "/people?limit=3")
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [one for page in pages for one in page] == people
    await desk.do("POST", f"/people/{people[2]}/suspend", {"reason": "Unpaid"})
    assert [one for page in await _pages(desk, "/people?limit=1&status=suspended") for one in page] == [people[2]]
    await desk.store.operator.set_status(people[4], "disabled")
    disabled = [one for page in await _pages(desk, "/people?limit=1&status=disabled") for one in page]
    assert disabled == [people[2], people[4]]


async def test_a_list_says_how_many_people_it_has_where_that_is_known(desk: Desk) -> None:
    for number in range(6):
        await desk.person(f"p{number}@example.com")
    await desk.store.directory_relay.sweep()
    first = await desk.get("/people?limit=3")
    assert first["total"] == 7
    assert (await desk.get(f"/people?limit=3&cursor={first['nextCursor']}"))["total"] is None
    totals = {"limit=9": 7, "query=p": 6, "query=p&limit=3": None, f"query={EMAIL}": 1, "query=x": 0}
    totals |= {"status=active": 7, "status=active&limit=3": None, "status=suspended": 0}
    assert {query: (await desk.get(f"/people?{query}"))["total"] for query in totals} == totals


async def test_everybody_comes_in_the_order_of_their_addresses(desk: Desk) -> None:
    people = {email: await desk.person(email) for email in ("zoe@example.com", "bea@example.org", "Abe@example.com")}
    unwritten = await desk.get("/people?order=email")
    assert (unwritten["items"], unwritten["total"]) == ([], 4)
    await desk.store.directory_relay.sweep()
    wanted = [people["Abe@example.com"], desk.ada, people["bea@example.org"], people["zoe@example.com"]]
    assert [one for page in await _pages(desk, "/people?order=email&limit=1") for one in page] == wanted
    await desk.store.operator.set_status(wanted[3], "disabled")
    assert await _pages(desk, "/people?order=email&limit=1&status=disabled") == [[wanted[3]]]
    cursor = (await desk.get("/people?order=email&limit=1"))["nextCursor"]
    for wrong in ("order=name", f"cursor={cursor}", f"order=email&status=active&cursor={cursor}"):
        refused(await desk.ask("GET", f"/people?{wrong}"), 400, "invalid_request")


async def test_a_page_reads_a_bounded_number_of_people(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("MOST_LOOKED_AT", "MOST_SEARCHES"):
        monkeypatch.setattr(people_pages, bound, 2)
    for number in range(4):
        await desk.person(f"p{number}@example.com")
    page = await desk.get("/people?status=disabled")
    assert page["items"] == []
    assert page["nextCursor"]
    assert await _pages(desk, "/people?status=disabled") == [[], [], []]
    await desk.store.directory_relay.sweep()
    assert await _pages(desk, "/people?status=disabled&order=email&limit=1") == [[], [], []]


async def test_a_cursor_works_for_its_query_alone(desk: Desk) -> None:
    await desk.person("bea@example.com")
    cursor = (await desk.get("/people?limit=1"))["nextCursor"]
    for path in (
        f"/people?limit=1&status=active&cursor={cursor}",
        f"/people?query={EMAIL}&cursor={cursor}",
        f"/people/{desk.ada}/credits?cursor={cursor}",
        f"/people?cursor={cursor[:-2]}xx",
        f"/people?cursor={await desk.key('admin')}",
        "/people?cursor=0",
    ):
        refused(await desk.ask("GET", path), 400, "invalid_request")
    for query in ("limit=0", "limit=101", "limit=1e1", "state=active", "status=x", "limit=5&limit=5"):
        refused(await desk.ask("GET", f"/people?{query}"), 400, "invalid_request")
    assert (await desk.ask("GET", f"/people?limit=5&cursor={cursor}")).code == 200


async def test_a_prefix_search_takes_its_place(desk: Desk) -> None:
    bea = await desk.person("bea@example.com")

    async def matching(query: str, after: str, limit: int) -> tuple[list[str], str]:
        found = [one for one in sorted((desk.ada, bea)) if one > after][:limit]
        return (found if query == "exam" else []), (found[-1] if len(found) == limit else "")

    pages: PeoplePages = desk.store.people_pages
    pages.matching = matching
    found = [one for page in await _pages(desk, "/people?query=exam&limit=1") for one in page]
    assert found == sorted((desk.ada, bea))
    assert await _pages(desk, f"/people?query={EMAIL}") == [[desk.ada]]


async def test_an_account_is_made_once_for_an_idempotency_key(desk: Desk) -> None:
    new = {"email": "New@Example.com", "name": "New", "groups": ["staff"]}
    key = {"Idempotency-Key": "make-new"}
    first = await desk.ask("POST", "/people", new, headers=key)
    assert first.code == 201
    made = json_of(first)
    assert (made["email"], made["groups"], made["email_verified"]) == ("new@example.com", ["staff"], True)
    await desk.sign_in("new@example.com", made["password"])
    again = await desk.ask("POST", "/people", new, headers=key)
    assert (again.code, again.headers["Idempotent-Replayed"]) == (201, "true")
    assert json_of(again) == {**await desk.get(f"/people/{made['id']}"), "password": None}
    refused(await desk.ask("POST", "/people", {**new, "name": "Other"}, headers=key), 422, "idempotency_mismatch")
    refused(await desk.ask("POST", "/people", new), 400, "invalid_request")
    # Another key of the operator has idempotency keys of its own; what was refused uses up none.
    _, other = await desk.store.operator_keys.create("admin")
    refused(await desk.ask("POST", "/people", new, headers=key, key=other), 400, "invalid_request")
    named = {**new, "email": "third@example.com"}
    assert (await desk.ask("POST", "/people", named, headers=key, key=other)).code == 201


async def test_simultaneous_writes_under_one_key_happen_once(desk: Desk) -> None:
    new, key = {"email": "new@example.com", "name": "New"}, {"Idempotency-Key": "at once"}
    await desk.key("admin")
    answers = await asyncio.gather(*(desk.ask("POST", "/people", new, headers=key) for _ in range(5)))
    codes = sorted(answer.code for answer in answers)
    assert codes[0] == 201
    assert {*codes} <= {201, 409}
    assert len((await desk.get("/people"))["items"]) == 2


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"name": "No address"}, id="no address"),
        pytest.param({"email": "no", "name": "A"}, id="no address of mail"),
        pytest.param({"email": "a@example.com"}, id="no name"),
        pytest.param({"email": "a@example.com", "name": "A", "password": "short"}, id="short password"),
        pytest.param({"email": "a@example.com", "name": "A", "groups": "staff"}, id="groups as text"),
        pytest.param({"email": "a@example.com", "name": "A", "groups": ["x"] * 3 + ["\n"]}, id="a group of no name"),
        pytest.param({"email": "a@example.com", "name": "A", "role": "admin"}, id="unknown field"),
        pytest.param({"email": "a@example.com", "name": "A", "invite": True}, id="name for an invitation"),
        pytest.param({"email": "a@example.com", "invite": "yes"}, id="flag as text"),
        pytest.param({"email": EMAIL, "invite": True}, id="address with an account"),
    ],
)
async def test_what_makes_no_account_is_refused(desk: Desk, body: Any) -> None:
    refused(await desk.ask("POST", "/people", body), 400, "invalid_request")
    assert len((await desk.get("/people"))["items"]) == 1


async def test_an_invitation_is_mailed(desk: Desk, site: Site) -> None:
    sent = posted(site.mail)
    answer = await desk.do("POST", "/people", {"email": "new@example.com", "invite": True})
    assert (answer["invited"], answer["mailed"]) == (True, False)
    assert (await desk.store.people.invited(answer["link"].partition("invite=")[2])) is not None
    assert [(mail.what, mail.to) for mail in sent] == [("signup", "new@example.com")]
    assert answer["link"] in sent[0].text
    site.mail.confirms = True  # a mail server takes them
    assert (await desk.do("POST", "/people", {"email": "other@example.com", "invite": True}))["mailed"] is True


async def test_name_and_groups_change(desk: Desk) -> None:
    path = f"/people/{desk.ada}"
    changed = await desk.do("PATCH", path, {"name": "Ada King", "groups": ["staff", "admins"]})
    assert (changed["name"], changed["groups"]) == ("Ada King", ["admins", "staff"])
    assert (await desk.do("PATCH", path, {"groups": []}))["groups"] == []
    refused(await desk.ask("PATCH", path, {"name": "Bad", "groups": ["\n"]}), 400, "invalid_request")
    shown = await desk.get(path)
    assert shown["name"] == "Ada King"
    assert "name_changed_by_operator" in [entry["event"] for entry in shown["activity"]]


async def test_a_suspension_says_why_and_ends(desk: Desk) -> None:
    path = f"/people/{desk.ada}"
    await desk.sign_in()
    body = {"reason": "Unpaid since May", "note": "Ticket 4711", "until": "2099-01-01"}
    suspended = await desk.do("POST", f"{path}/suspend", body, role="support")
    assert suspended["status"] == "disabled"
    assert suspended["sessions"] == 0
    assert suspended["suspension"] == {**body, "until": "2099-01-01T00:00:00.000Z"}
    for wrong in (
        {},
        {"reason": " "},
        {"reason": "a\nb"},
        {"reason": "x" * 501},
        {"reason": "x", "until": "1999-01-01"},
        # In UTC, and in whole milliseconds, these are in the year 10000, which nobody could read again.
        {"reason": "x", "until": "9999-12-31T23:59:59-23:59"},
        {"reason": "x", "until": "9999-12-31T23:59:59.999999"},
    ):
        refused(await desk.ask("POST", f"{path}/suspend", wrong), 400, "invalid_request")
        assert (await desk.get(path))["suspension"] == suspended["suspension"]
    resumed = await desk.do("POST", f"{path}/resume", {}, role="support")
    assert (resumed["status"], resumed["suspension"]) == ("active", None)
    [event] = [one for one in desk.events if one.event == "suspended_by_operator"]
    assert (event.person, event.actor, event.address) == (desk.ada, "operator", "127.0.0.1")
    assert event.by.startswith("key ")
    assert event.by.endswith(" The support")


async def test_signing_out_ends_sessions_and_no_token(desk: Desk) -> None:
    session = await desk.sign_in()
    app = await desk.store.apps.find("web-app")
    assert app
    tokens = await desk.store.tokens.mint(desk.ada, app, ("profile",))
    assert (await desk.get(f"/people/{desk.ada}"))["sessions"] >= 1
    assert (await desk.do("POST", f"/people/{desk.ada}/sign-out", {}, role="support"))["sessions"] == 0
    with pytest.raises(SignedOut):
        await desk.store.sessions.profile(session)
    token = desk.store.tokens.open_access(tokens.access_token)
    assert token
    caller = Caller.of(token, app.scopes, app.owner, app.sector, "")
    assert (await desk.store.identity.read(caller, "profile"))[0].user == desk.ada
    refused(await desk.ask("POST", f"/people/{'0' * 32}/sign-out", {}), 404, "not_found")


async def test_links_are_mailed(desk: Desk, site: Site) -> None:
    sent = posted(site.mail)
    path = f"/people/{desk.ada}/send-link"
    answer = await desk.do("POST", path, {"kind": "reset"}, role="support")
    assert answer == {"id": desk.ada, "email": EMAIL, "kind": "reset", "sent": True}
    assert "/reset?link=" in sent[0].text
    assert b"link" not in json.dumps(answer).encode().replace(b"send-link", b"")
    refused(await desk.ask("POST", path, {"kind": "confirm"}), 400, "invalid_request")  # confirmed already
    refused(await desk.ask("POST", path, {"kind": "change"}), 400, "invalid_request")


async def test_a_new_role_is_mailed(desk: Desk, site: Site) -> None:
    sent = posted(site.mail)
    path = f"/people/{desk.ada}/role"
    assert await desk.do("PUT", path, {"role": "support"}) == {"id": desk.ada, "role": "support", "before": None}
    await desk.do("PUT", path, {"role": "support"})
    await desk.do("DELETE", path)
    assert [(mail.what, mail.to) for mail in sent] == [("operators/role_changed", EMAIL)] * 2
    assert "Support" in sent[0].text
    assert "no longer have a role" in sent[1].text


async def test_credits_are_given_once_for_a_key(desk: Desk) -> None:
    path, body = f"/people/{desk.ada}/credits", {"amount": 5_000_000, "reason": "Payment 17"}
    refused(await desk.ask("POST", path, body), 400, "invalid_request")
    for replayed in (False, True):
        response = await desk.ask("POST", path, body, role="credits", headers={"Idempotency-Key": "17"})
        answer = json_of(response)
        assert (answer["paid"], answer["replayed"]) == (5_000_000, replayed)
    for number in range(3):
        await desk.ask("POST", path, {"amount": -1}, headers={"Idempotency-Key": f"back {number}"})
    first = await desk.get(f"{path}?limit=3", role="credits")
    assert [entry["amount"] for entry in first["items"]] == [-1, -1, -1]
    rest = await desk.get(f"{path}?limit=3&cursor={first['nextCursor']}")
    assert [entry["amount"] for entry in rest["items"]] == [5_000_000]
    assert rest["nextCursor"] is None


async def test_an_export_has_no_document_unless_an_admin_asks(desk: Desk) -> None:
    scopes = ("data:read", "data:write")
    world = await World.make(desk.store, scopes=scopes)
    await (await Keeper.make(world, scopes=scopes)).put("notes/n1", b'{"a": "a secret of a document"}')
    path = f"/people/{world.user}/export"
    response = await desk.ask("GET", path, role="auditor")
    lines = [json.loads(line) for line in response.body.splitlines()]
    assert lines[0]["email"] == world.email
    assert b"a secret" not in response.body
    assert b"notes/n1" not in (await desk.ask("GET", f"{path}?format=zip")).body
    assert (await desk.ask("GET", f"{path}?format=zip", role="support")).body.startswith(b"PK")
    for role in ("auditor", "support"):
        refused(await desk.ask("GET", f"{path}?documents=true", role=role), 403, "insufficient_role")
    assert b"a secret of a document" in (await desk.ask("GET", f"{path}?documents=true")).body
    refused(await desk.ask("GET", f"{path}?format=xml"), 400, "invalid_request")
    assert "exported_by_operator" in [event.event for event in desk.events]


async def test_a_deletion_can_be_tried_first(desk: Desk) -> None:
    bea = await desk.person("bea@example.com")
    tried = await desk.do("DELETE", f"/people/{bea}?dry_run=true")
    assert (tried["deleted"], tried["dryRun"], tried["email"]) == (False, True, "bea@example.com")
    assert (await desk.get(f"/people/{bea}"))["id"] == bea
    assert (await desk.do("DELETE", f"/people/{bea}"))["deleted"] is True
    refused(await desk.ask("GET", f"/people/{bea}"), 404, "not_found")
    assert (await desk.get("/people?query=bea@example.com"))["items"] == []


async def test_a_deletion_can_wait(desk: Desk, site: Site) -> None:
    sent = posted(site.mail)
    path = f"/people/{desk.ada}"
    for query in ("wait_days=0", "wait_days=91", "wait_days=x", "reason=Why", "wait_days=7&reason=" + "x" * 501):
        refused(await desk.ask("DELETE", f"{path}?{query}"), 400, "invalid_request")
    assert (await desk.do("DELETE", f"{path}?wait_days=7&dry_run=true"))["deletionAt"] is None
    assert sent == []
    planned = await desk.do("DELETE", f"{path}?wait_days=7&reason=Asked+for")
    assert (planned["deleted"], planned["dryRun"]) == (False, False)
    shown = await desk.get(path)
    assert (shown["deletionAt"], shown["status"]) == (planned["deletionAt"], "disabled")
    assert shown["suspension"]["reason"] == "Asked for"
    said = refused(await desk.ask("POST", f"{path}/resume", {}), 400, "invalid_request")
    assert "Cancel the deletion" in said
    kept = await desk.do("POST", f"{path}/cancel-deletion", {})
    assert (kept["deletionAt"], kept["status"], kept["suspension"]) == (None, "active", None)
    refused(await desk.ask("POST", f"{path}/cancel-deletion", {}), 400, "invalid_request")
    assert [mail.what for mail in sent] == ["operators/deletion_planned", "operators/deletion_cancelled"]


async def test_sessions_apps_and_accounts_elsewhere_end_one_by_one(desk: Desk) -> None:
    path, identity = f"/people/{desk.ada}", UpstreamIdentity("https://a.example", "7")
    session = await desk.sign_in()
    [listed] = (await desk.get(f"{path}/sessions"))["items"]
    assert listed["id"] == session.session_id
    assert (await desk.ask("DELETE", f"{path}/sessions/{session.session_id}", role="auditor")).code == 403
    ended = await desk.do("DELETE", f"{path}/sessions/{session.session_id}", role="support")
    assert ended == {"id": session.session_id, "ended": True}
    assert (await desk.get(f"{path}/sessions"))["items"] == []
    refused(await desk.ask("DELETE", f"{path}/grants/web-app"), 404, "not_found")
    await desk.store.client.hset(keys.person(desk.ada)["identities"], identity.name, f"{identity.text}\n1000 0 ada")
    [shown] = (await desk.get(f"{path}/identities"))["items"]
    assert (shown["id"], shown["issuer"], shown["subject"], shown["label"], shown["lastUsedAt"]) == (
        *(identity.name, "https://a.example", "7", "ada"),
        None,
    )
    assert (await desk.do("DELETE", f"{path}/identities/{identity.name}"))["ended"] is True
    refused(await desk.ask("DELETE", f"{path}/identities/{identity.name}"), 404, "not_found")
    for nobody in ("sessions", "identities"):
        refused(await desk.ask("GET", f"/people/{'0' * 32}/{nobody}"), 404, "not_found")
