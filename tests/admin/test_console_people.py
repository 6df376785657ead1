"""People in the console: found by one field, shown, suspended, helped, paid, exported, deleted."""

from __future__ import annotations

import html
import re
from urllib.parse import quote

import pytest

from handlers.core.format import MINUS
from store import keys
from store.operators.roles import OperatorRole
from tests.admin.conftest import Console, Operator
from tests.support.http.driver import EMAIL, NAME, PASSWORD
from tests.support.store.many_documents import stock

pytestmark = pytest.mark.gen_test(timeout=60)

MARKUP = "<script>alert(1)</script>\"'<b>"


async def proved(console: Console) -> tuple[Operator, str]:
    """An admin who re-authenticated a moment ago, and the address of Ada's page."""
    admin, path = await console.operator("admin"), f"/admin/people/{console.service.ada}"
    await admin.do(f"{path}/sign-out", confirm_password=PASSWORD)
    return admin, path


def shown(text: str) -> str:
    """The words of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text.partition("<main")[2])).split())


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        pytest.param(EMAIL, "/admin/people/ADA", id="an address"),
        pytest.param("ADA@Example.com ", "/admin/people/ADA", id="an address, typed otherwise"),
        pytest.param("ADA", "/admin/people/ADA", id="a user id"),
        pytest.param("nobody@example.com", "/admin/people?query=nobody%40example.com", id="an unknown address"),
        pytest.param("0" * 32, "/admin/people?query=" + "0" * 32, id="an unknown user id"),
        pytest.param("web-app", "/admin/apps/web-app", id="an app"),
        pytest.param("signed_in", "/admin/audit?event=signed_in", id="an event"),
        pytest.param("a8727c85c1cbdb99", "/admin/audit?request=a8727c85c1cbdb99", id="a request"),
        pytest.param("//evil.example/", "/admin/people?query=%2F%2Fevil.example%2F", id="an address of elsewhere"),
        pytest.param("", "/admin/people?query=", id="nothing"),
        pytest.param("x" * 4000, "/admin/people?query=" + "x" * 254, id="a long text"),
        pytest.param("a\r\nSet-Cookie: b", "/admin/people?query=a%0D%0ASet-Cookie%3A+b", id="a second header"),
    ],
)
async def test_one_field_leads_to_what_was_typed(console: Console, typed: str, place: str) -> None:
    support, ada = await console.operator("support"), console.service.ada
    asked = ada if typed == "ADA" else typed
    answer = await support.browser.get(f"/admin/search?q={quote(asked)}")
    assert (answer.code, answer.headers["Location"]) == (303, place.replace("ADA", ada))


async def test_everybody_is_listed_page_by_page_and_by_status(console: Console) -> None:
    admin, path = await proved(console)
    people = [await console.person(f"p{number:02}@example.com") for number in range(60)]
    seen: list[str] = []
    page = await admin.open("/admin/people")
    assert "62 people in all" in shown(page)
    assert "isn’t ready yet" in shown(page)
    await console.store.directory_relay.sweep()
    page = await admin.open("/admin/people")
    while True:
        assert "62 people in all" in shown(page)
        seen += re.findall(r'href="/admin/people/([0-9a-f]{32})"', page)
        onward = re.search(r'href="(/admin/people\?[^"]*cursor=[^"]*)"', page)
        if not onward:
            break
        page = await admin.open(html.unescape(onward[1]))
    everybody = sorted([*people, console.service.ada, admin.user])
    assert sorted(seen) == everybody
    assert [one for one in seen if one in people] == people
    first = re.findall(r'href="/admin/people/([0-9a-f]{32})"', await admin.open("/admin/people?order=id"))
    assert first == everybody[: len(first)]
    assert "1 person found" in shown(await admin.open("/admin/people?query=p01"))
    await admin.do(f"{path}/suspend", reason="Unpaid")
    assert re.findall(r"people/([0-9a-f]{32})", await admin.open("/admin/people?status=suspended")) == [
        console.service.ada
    ]
    await admin.do(f"{path}/resume")
    assert "Nobody has this status" in shown(await admin.open("/admin/people?status=suspended&query="))
    for wrong in ("status=x", "order=x", "cursor=x", "query=" + "a" * 255):
        assert (await admin.browser.get(f"/admin/people?{wrong}")).code == 400


async def test_people_with_a_status_are_listed_before_the_index_has_them(console: Console) -> None:
    admin, user = await console.operator("admin"), await console.person("grace@example.com")
    await console.store.operator.set_status(user, "disabled")
    assert user in await admin.open("/admin/people?status=disabled")
    assert user in await admin.open("/admin/people?status=disabled&order=email")


async def test_a_person_is_shown_with_sizes_but_no_content(console: Console) -> None:
    service, auditor = console.service, await console.operator("auditor")
    await service.tokens()
    await stock(service.store, service.ada, "web-app", {"notes/a": b'"a secret text"', "notes/b": b"2"})
    await service.store.operator.credit(service.ada, 5_000_000, reason="A gift")
    text = shown(await auditor.open(f"/admin/people/{service.ada}"))
    for words in (NAME, EMAIL, service.ada, "Web App", "notes · 2 documents, ", "$5.00", "A gift", "Active"):
        assert words in text, words
    assert "secret text" not in text


async def test_a_suspension_has_a_reason_a_note_and_an_end(console: Console) -> None:
    admin, path = await proved(console)
    done = await admin.do(f"{path}/suspend", reason="Unpaid", note="Ticket 4711", until="2099-01-31")
    text = shown(await admin.open(done.headers["Location"]))
    for words in ("Suspended", "The account is suspended", "Unpaid", "Ticket 4711", "31 January 2099"):
        assert words in text, words
    assert (await console.store.operator.find(EMAIL)).status == "disabled"
    await admin.do(f"{path}/resume")
    assert "Active" in shown(await admin.open(path))


@pytest.mark.parametrize(
    ("act", "fields", "words"),
    [
        ("suspend", {"reason": ""}, "Give a reason"),
        ("suspend", {"reason": "x" * 501}, "at most 500"),
        ("suspend", {"reason": "Unpaid", "until": "tomorrow"}, "must be a date"),
        ("suspend", {"reason": "Unpaid", "until": "2001-01-01"}, "must be in the future"),
        ("credits", {"amount": "much", "key": "k" * 22}, "amount in dollars"),
        ("credits", {"amount": "0", "key": "k" * 22}, "isn’t zero"),
        ("credits", {"amount": "1e3", "key": "k" * 22}, "amount in dollars"),
        ("credits", {"amount": "5"}, "Part of the form is missing"),
        ("role", {"role": "credits"}, "Part of the form"),
        ("send-link", {"kind": "login"}, "Part of the form"),
        ("delete", {"address": "bea@example.com"}, "Nothing was deleted"),
        ("delete", {}, "Nothing was deleted"),
        ("export", {"format": "exe"}, "Part of the form"),
    ],
)
async def test_a_wrong_form_says_what_to_do_and_changes_nothing(
    console: Console, act: str, fields: dict[str, str], words: str
) -> None:
    admin, path = await proved(console)
    before = await console.store.people_acts.view(console.service.ada)
    answer = await admin.send(f"{path}/{act}", **fields)
    assert (answer.code, words in shown(answer.body.decode())) == (400, True), answer.body.decode()
    for value in fields.values():
        if act in ("suspend", "credits"):
            assert f'value="{html.escape(value)}"' in answer.body.decode(), "what was typed is kept"
    assert await console.store.people_acts.view(console.service.ada) == before
    assert (await console.store.credits.show(console.service.ada)).paid == 0


@pytest.mark.parametrize(
    ("act", "fields", "wrong"),
    [
        ("suspend", {"reason": "Unpaid", "note": "Ticket 4711", "until": "tomorrow"}, "until"),
        ("suspend", {"reason": "", "note": "Ticket 4711", "until": "2099-01-31"}, "reason"),
        ("suspend", {"reason": "Unpaid", "note": "x" * 501}, "note"),
        ("credits", {"amount": "much", "reason": "Thanks", "key": "k" * 22}, "amount"),
        ("credits", {"amount": "5", "reason": "x" * 201, "key": "k" * 22}, "why"),
        ("plan-deletion", {"days": "91", "reason": "Asked for"}, "days"),
        ("plan-deletion", {"days": "7", "reason": "x" * 501}, "because"),
        ("email", {"email": "nobody"}, "email"),
    ],
)
async def test_only_the_field_with_the_mistake_is_marked_and_other_forms_stay_empty(
    console: Console, act: str, fields: dict[str, str], wrong: str
) -> None:
    admin, path = await proved(console)
    text = (await admin.send(f"{path}/{act}", **fields)).body.decode()
    inputs = {found[1]: found[0] for found in re.finditer(r'<input id="(\w+)"[^>]*>', text)}
    assert [name for name, one in inputs.items() if "autofocus" in one] == [wrong]
    assert [name for name, one in inputs.items() if 'aria-invalid="true"' in one] == [wrong]
    assert [name for name, one in inputs.items() if "-error" in one] == [wrong]
    [form] = re.findall(rf'<details open>((?:(?!<details).)*?action="{path}/{act}".*?)</details>', text, re.DOTALL)
    for name, value in filter(all, fields.items()):
        assert re.search(rf'name="{name}"[^>]*value="{value}"', form, re.DOTALL)
        assert text.count(f'value="{value}"') == form.count(f'value="{value}"')


async def test_credits_are_given_once_for_each_form(console: Console) -> None:
    admin, path = await proved(console)
    for _ in range(3):
        await admin.do(f"{path}/credits", amount="12.50", reason="Sorry", key="k" * 22)
    assert "Credits changed by $12.50. The balance is now $12.50." in shown(await admin.open(f"{path}?credits"))
    await admin.do(f"{path}/credits", amount="-2", reason="Too much", key="l" * 22)
    assert f"Credits changed by {MINUS}$2.00. The balance is now $10.50." in shown(await admin.open(f"{path}?credits"))
    assert (await console.store.credits.show(console.service.ada)).paid == 10_500_000


async def test_acts_are_noted_with_the_operator(console: Console) -> None:
    admin, path = await proved(console)
    console.events.clear()
    await admin.do(f"{path}/suspend", reason="Unpaid")
    await admin.do(f"{path}/resume")
    await admin.do(f"{path}/reset-factors")
    await admin.do(f"{path}/role", role="support")
    await admin.do(f"{path}/role", role="none")
    export = await admin.send(f"{path}/export", format="jsonl")
    assert export.code == 200
    await admin.do(f"{path}/delete", address=EMAIL.upper())
    theirs = [event for event in console.events if event.person == console.service.ada]
    assert {event.by for event in theirs} == {f"person {admin.user}"}
    assert {event.stream for event in theirs} == {"operator"}
    assert {event.event for event in theirs} >= {
        "exported_by_operator",
        "role_given_by_operator",
        "role_taken_by_operator",
    }
    assert len({event.event for event in theirs}) >= 6
    assert await console.store.people.find(EMAIL) is None


async def test_a_wrong_password_is_the_persons_own_failure(console: Console) -> None:
    admin, path = await console.operator("admin"), f"/admin/people/{console.service.ada}"
    answer = await admin.send(f"{path}/suspend", reason="Unpaid", confirm_password="not this one")
    assert answer.code == 400
    theirs = [event for event in console.events if event.event == "confirmation_refused"]
    assert [(event.person, event.by) for event in theirs] == [(admin.user, "")]


async def test_documents_leave_only_with_an_admin(console: Console) -> None:
    service = console.service
    await service.tokens()
    await stock(service.store, service.ada, "web-app", {"notes/a": b'"a secret text"'})
    path = f"/admin/people/{service.ada}/export"
    asked: list[tuple[OperatorRole, str, bool]] = [("admin", "yes", True), ("admin", "", False), ("support", "", False)]
    for role, documents, there in asked:
        one = await console.operator(role, f"{role}{documents}@example.com")
        answer = await one.send(path, format="jsonl", documents=documents, confirm_password=PASSWORD)
        assert (answer.code, b"a secret text" in answer.body) == (200, there)
        assert answer.headers["Content-Disposition"] == f'attachment; filename="person-{service.ada}.jsonl"'
        assert answer.headers["Cache-Control"] == "no-store"
    roles: tuple[OperatorRole, ...] = ("support", "auditor")
    for role in roles:
        one = await console.operator(role, f"greedy-{role}@example.com")
        answer = await one.send(path, format="jsonl", documents="yes", confirm_password=PASSWORD)
        assert (answer.code, b"a secret text" in answer.body) == (403, False)


async def test_the_last_admin_stays(console: Console) -> None:
    admin = await console.operator("admin")
    mine = f"/admin/people/{admin.user}"
    for path, fields in (
        (f"{mine}/role", {"role": "none"}),
        (f"{mine}/suspend", {"reason": "Gone"}),
        (f"{mine}/delete", {"address": admin.email}),
        (f"{mine}/reset-factors", {}),
    ):
        answer = await admin.confirm(path, **fields)
        assert answer.code == 403, path
        assert "Back to the console" in answer.body.decode()
    assert await console.store.role_holders.of(admin.user) == "admin"


async def test_markup_of_strangers_is_shown_as_text(console: Console) -> None:
    service, auditor = console.service, await console.operator("auditor")
    await service.add_app("marked", name="<i>Marked</i>")
    browser = service.browser()
    browser.agent = f"Mozilla/5.0 {MARKUP}"
    await browser.sign_in(EMAIL)
    person = keys.person(service.ada)["user"]
    await service.store.client.hset(person, "name", MARKUP)
    await service.tokens(service.web)
    for path in ("/admin/people", f"/admin/people/{service.ada}", f"/admin/people?query={MARKUP}"):
        text = await auditor.open(path)
        assert "<script>alert" not in text
        assert "<i>Marked" not in text


@pytest.mark.parametrize("user", ["0" * 32, "0" * 31 + "g", "..%2f..%2f", "0" * 33])
async def test_an_id_of_nobody_is_404(console: Console, user: str) -> None:
    admin, _ = await proved(console)
    for act in ("", "/suspend", "/delete", "/credits", "/role", "/export"):
        path = f"/admin/people/{user}{act}"
        answer = await (
            admin.send(path, reason="x", amount="1", key="k" * 22, role="none") if act else admin.browser.get(path)
        )
        assert answer.code == 404, path
