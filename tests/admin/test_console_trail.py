"""The console's pages of events, apps and APIs."""

from __future__ import annotations

import json
import re
from unittest.mock import patch
from urllib.parse import parse_qsl, urlencode

import pytest

from store.accounts.audit.security_log import Origin
from store.apps.api_record import ApiRegistration, ApiScope
from tests.admin.conftest import Console
from tests.admin.test_console_people import proved, shown
from tests.support.http.driver import EMAIL, PASSWORD

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_events_are_filtered_and_exported(console: Console) -> None:
    admin, path = await proved(console)
    await admin.do(f"{path}/suspend", reason="Unpaid")
    await admin.do(f"{path}/resume")
    await console.store.security.flush()
    auditor = await console.operator("auditor")
    everything = shown(await auditor.open("/admin/audit"))
    assert f"by {admin.email}" in everything
    user = console.service.ada
    theirs = (await auditor.browser.get(f"/admin/audit/export?person={EMAIL}")).body.decode()
    events = [json.loads(line) for line in theirs.splitlines()]
    assert len(events) >= 3
    assert {event["person"] for event in events} == {user}
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    one = events[-1]
    for query, count in (
        (f"request={one['request_id']}", 1),
        (f"person={user}&event={one['event']}", 1),
        ("event=no_such_event", 0),
        ("since=2099-01-01", 0),
        ("until=2020-01-01", 0),
        (f"until=2099-01-01&request={one['request_id']}", 1),
        (f"app=web-app&person={user}", 0),
    ):
        lines = (await auditor.browser.get(f"/admin/audit/export?{query}")).body.splitlines()
        assert len(lines) == count, query
        text = await auditor.open(f"/admin/audit?{query}")
        assert len(re.findall(r'<th scope="row">', text)) == count, query
    for wrong in ("since=yesterday", "until=tomorrow", "person=nobody", "cursor=x"):
        assert (await auditor.browser.get(f"/admin/audit?{wrong}")).code == 400
    for page in ("audit", "credits"):
        answer = await auditor.browser.get(f"/admin/{page}?since=yesterday", **{"Accept-Language": "de"})
        assert "„Seit“ muss ein Datum" in shown(answer.body.decode()), page


async def test_events_are_downloaded_in_the_forms_of_other_programs(console: Console) -> None:
    auditor = await console.operator("auditor")
    await console.store.security.flush()
    page = await auditor.open("/admin/audit")
    for form, begins in (("cef", b"CEF:0|Latchkey|"), ("otlp", b'{"resourceLogs":['), ("jsonl", b'{"at":"')):
        assert f"format={form}" in page
        found = await auditor.browser.get(f"/admin/audit/export?format={form}")
        assert found.body.startswith(begins)
        assert re.search(rf"audit-[0-9-]+\.(?:otlp\.jsonl|{form})", found.headers["Content-Disposition"])
    exports = [one for one in console.events if one.event == "trail_exported_by_operator"]
    assert [(one.detail, one.by) for one in exports] == [
        (n, f"person {auditor.user}") for n in ("cef", "otlp", "jsonl")
    ]
    assert (await auditor.browser.get("/admin/audit/export?format=xml")).code == 400


async def test_the_log_goes_on_page_by_page(console: Console) -> None:
    auditor = await console.operator("auditor")
    for number in range(60):
        console.store.security.note("operator_key_revoked_by_operator", detail=f"key {number}")
    await console.store.security.flush()
    page = await auditor.open("/admin/audit?event=operator_key_revoked_by_operator")
    onward = re.search(r'href="(/admin/audit\?[^"]*cursor=[^"]*)"', page)
    assert onward
    following = await auditor.open(onward[1].replace("&amp;", "&"))
    assert [len(re.findall(r'<th scope="row">', one)) for one in (page, following)] == [30, 30]


async def test_a_full_page_of_an_operators_acts_has_less_than_40_kb_of_html(console: Console) -> None:
    auditor = await console.operator("auditor")
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    origin = Origin("203.0.113.77", agent=agent, actor="operator", by=f"person {auditor.user}")
    with patch.object(console.store.security, "origin", lambda: origin):
        for _ in range(50):
            console.store.security.note(
                "exported_by_operator", person=console.service.ada, client="web-app", detail="d" * 80
            )
    await console.store.security.flush()
    page = await auditor.open(f"/admin/audit?operator={auditor.user}")
    assert page.count('<th scope="row">') == 30
    assert len(page.encode()) < 40_000


async def test_a_filter_of_any_length_is_cut(console: Console) -> None:
    auditor = await console.operator("auditor")
    for name, most in (("app", 254), ("request", 254), ("event", 2000)):
        page = await auditor.open(f"/admin/audit?{name}={'x' * 2500}")
        assert max(map(len, re.findall("x+", page))) == most, name


async def test_each_filter_in_force_is_a_chip_that_links_to_the_list_without_it(console: Console) -> None:
    auditor, user = await console.operator("auditor"), console.service.ada
    for path, query, chips in (
        ("audit", {"person": user, "event": "a,b", "until": "2020-01-01"}, ["Person", "Event", "Until"]),
        ("audit", {"since": "yesterday", "app": "web-app"}, ["App", "Since"]),
        ("people", {"query": "ada", "status": "active"}, ["Search term", "Status"]),
        ("webhooks", {"state": "failed", "type": "ping"}, ["Status", "Event"]),
        ("credits", {"person": user, "kind": "grant"}, ["Person", "Kind"]),
        ("apps", {"query": "mine"}, ["Search term"]),
        ("apis", {"query": "orders"}, ["Search term"]),
        ("settings", {"query": "lifetime", "show": "all"}, ["Search term"]),
        ("audit", {}, []),
    ):
        page = (await auditor.browser.get(f"/admin/{path}?{urlencode(query)}")).body.decode()
        listed = re.findall(r'<li><span>([^:]+): <bdi>.*?</bdi></span>\s*<a href="([^"]+)"', page)
        assert [label for label, _ in listed] == chips, path
        for _, link in listed:
            left = dict(parse_qsl(link.replace("&amp;", "&").partition("?")[2]))
            assert left.items() < query.items()
            assert len(left) == len(query) - 1
        assert ("Clear all" in page) is (len(chips) > 1), path


async def test_an_event_has_a_page_that_links_to_whom_and_what_it_concerns(console: Console) -> None:
    auditor, user = await console.operator("auditor"), console.service.ada
    for by in (f"person {auditor.user}", "key 00ff Helpdesk", ""):
        origin = Origin(actor="operator", by=by, request_id="a8727c85c1cbdb99")
        with patch.object(console.store.security, "origin", lambda origin=origin: origin):
            console.store.security.note("exported_by_operator", person=user, client="web-app", detail="all of it")
    await console.store.security.flush()
    for operator in (auditor.user, auditor.email, "00ff"):
        listed = await auditor.open(f"/admin/audit?{urlencode({'operator': operator})}")
        (page,) = re.findall(r'<th scope="row"><a href="(/admin/audit/[^"]+)">', listed)
        text = await auditor.open(page)
        filters = dict(parse_qsl("&".join(re.findall(r'"/admin/audit\?([^"]+)"', text))))
        acted = operator if operator == "00ff" else auditor.user
        asked = {"event": "exported_by_operator", "person": user, "app": "web-app", "request": "a8727c85c1cbdb99"}
        assert filters == {**asked, "operator": acted}
        links = [f"/admin/people/{user}", "/admin/apps/web-app"]
        links += [f"/admin/people/{acted}"] if acted == auditor.user else []
        assert all(f'href="{link}"' in text for link in links)
        assert "all of it" in text
    for wrong in ("1-1", f"{'9' * 13}-{'9' * 15}", f"{'9' * 13}-{'9' * 20}", f"{page.rpartition('/')[2]}0", "1-"):
        assert (await auditor.browser.get(f"/admin/audit/{wrong}")).code == 404


async def test_an_outcome_is_a_tag_only_where_the_sentence_of_the_event_does_not_say_it(console: Console) -> None:
    auditor = await console.operator("auditor")
    for event, tag in (("operator_refused", ""), ("registration_refused", "refused"), ("events_lost", "failed")):
        console.store.security.note(event)
        await console.store.security.flush()
        listed = await auditor.open(f"/admin/audit?event={event}")
        (page,) = re.findall(r'<th scope="row"><a href="(/admin/audit/[^"]+)">', listed)
        for text in (listed, await auditor.open(page)):
            assert re.findall('<span class="tag care">(.*?)</span>', text) == [tag] * bool(tag), event


async def test_an_error_of_a_filter_is_at_its_field(console: Console) -> None:
    auditor = await console.operator("auditor")
    for name, value, words in (
        ("operator", "nobody@example.com", "No account has this address now. Give the operator’s user ID."),
        ("operator", "a@b@c", "must have one @"),
        ("person", "ada", "must have one @"),
        ("since", "yesterday", "must be a date"),
    ):
        answer = await auditor.browser.get(f"/admin/audit?{urlencode({name: value, 'app': 'web-app'})}")
        text = answer.body.decode()
        assert answer.code == 400, name
        assert words in shown(text), name
        (field,) = re.findall(r'<input [^>]*aria-invalid="true"[^>]*>', text)
        assert f'id="{name}"' in field
        assert f'value="{value}"' in field
        assert 'value="web-app"' in text
    assert (await auditor.browser.get("/admin/audit/export?operator=nobody@example.com")).code == 400
    # An address without an account still finds what strangers typed.
    assert (await auditor.browser.get("/admin/audit?person=nobody@example.com")).code == 200


async def test_an_app_is_found_disabled_and_verified(console: Console) -> None:
    admin = await console.operator("admin")
    await console.service.add_app("mine", owner=console.service.ada)
    for query in ("Mine", "mine", console.service.ada):
        listed = await admin.open(f"/admin/apps?query={query}")
        assert re.findall(r'href="/admin/apps/([^"?]+)"', listed) == ["mine"], query
    path = "/admin/apps/mine"
    assert EMAIL in await admin.open(path) or console.service.ada in await admin.open(path)
    assert (await admin.send(f"{path}/status", status="disabled")).code == 403
    await admin.do(f"{path}/status", status="disabled", confirm_password=PASSWORD)
    app = await console.store.apps.find("mine")
    assert app
    assert app.status == "disabled"
    assert "Disabled by the operator" in await admin.open(path)
    await admin.do(f"{path}/status", status="active")
    await admin.do(f"{path}/verify", verified="yes")
    app = await console.store.apps.find("mine")
    assert app
    assert (app.status, app.verified) == ("active", True)
    noted = [event for event in console.events if event.event == "app_changed_by_operator"]
    assert {(event.client, event.by) for event in noted} == {("mine", f"person {admin.user}")}
    assert len(noted) == 3
    assert (await admin.send(f"{path}/status", status="x")).code == 400
    for act in ("status", "verify"):
        answer = await admin.send(f"/admin/apps/nothing/{act}", status="disabled", verified="yes")
        assert answer.code == 404, act
    assert (await admin.browser.get("/admin/apps/nothing")).code == 404


async def test_lists_name_people_by_their_addresses(console: Console) -> None:
    """Owners of apps and APIs, the people of events, operators and their keys; a deleted person keeps the id."""
    auditor, user, gone = await console.operator("auditor"), console.service.ada, "ab" * 16
    for client_id, owner in (("mine", user), ("theirs", gone)):
        await console.service.add_app(client_id, owner=owner)
        api = ApiRegistration(f"https://{client_id}.example", "Orders", (ApiScope("read", "Read"),), owner=owner)
        await console.store.apis.create(api)
    for by in (f"person {auditor.user}", f"person {gone}", "key 00ff Helpdesk", "key 00ee"):
        origin = Origin(actor="operator", by=by)
        with patch.object(console.store.security, "origin", lambda origin=origin: origin):
            console.store.security.note("exported_by_operator", person=gone if "key" in by else user)
    await console.store.security.flush()
    links = {path: await auditor.open(f"/admin/{path}") for path in ("apps", "apis", "audit")}
    for path, text in links.items():
        assert f'<a href="/admin/people/{user}" title="{user}"><bdi>{EMAIL}</bdi></a>' in text, path
        assert f"<code>{gone}</code>" in text, path
        assert f'href="/admin/people/{gone}"' not in text, path
        assert text.count(user) == 2 * text.count(f'title="{user}"'), path
    assert (
        f'by <a href="/admin/people/{auditor.user}" title="{auditor.user}"><bdi>{auditor.email}</bdi>' in links["audit"]
    )
    assert f"by {gone}" in links["audit"]
    assert 'by the key <bdi title="00ff">Helpdesk</bdi>' in links["audit"]
    assert 'by the key <bdi title="00ee">00ee</bdi>' in links["audit"]


async def test_apis_are_listed(console: Console) -> None:
    auditor = await console.operator("auditor")
    await console.store.apis.create(ApiRegistration("https://a.example", "Orders", (ApiScope("read", "Read"),)))
    assert "Orders" in await auditor.open("/admin/apis?query=orders")
    assert "No APIs found" in await auditor.open("/admin/apis?query=invoices")


async def test_the_overview_says_what_is_left_to_do(console: Console) -> None:
    admin = await console.operator("admin")
    before = await admin.open("/admin")
    assert "Give someone else the role" in before
    option = 'set <span class="whole">--b</span>ase<span class="whole">-u</span>rl to its address'
    assert option in before, "no line ends within the name of an option"
    await console.store.role_holders.give(console.service.ada, "admin")
    assert "Give someone else the role" not in shown(await admin.open("/admin"))
