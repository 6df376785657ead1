"""Apps and APIs in the console: teams, status, secrets."""

from __future__ import annotations

import re

import pytest

from store.apps.api_record import ApiRegistration, ApiScope
from tests.admin.conftest import Console
from tests.admin.test_console_people import proved, shown
from tests.support.http.driver import EMAIL

pytestmark = pytest.mark.gen_test(timeout=60)
APP = "/admin/apps/web-app"
API = ApiRegistration("https://orders.example", "<b>Orders</b>", (ApiScope("orders:read", "See <i>orders</i>"),))


async def test_a_team_is_changed_from_the_page_of_an_app(console: Console) -> None:
    admin, _ = await proved(console)
    bea = await console.person("bea@example.com")
    done = await admin.do(f"{APP}/team", email="ADA@example.com", role="owner")
    assert "The team was changed" in shown(await admin.open(done.headers["Location"]))
    await admin.do(f"{APP}/team", email="bea@example.com", role="viewer")
    text = shown(await admin.open(APP))
    assert EMAIL in text
    assert "bea@example.com" in text
    await admin.do(f"{APP}/team-remove", user=bea)
    assert "bea@example.com" not in shown(await admin.open(APP))
    left = await admin.send(f"{APP}/team-remove", user=console.service.ada)
    assert left.code >= 400, "an owner stays"
    assert EMAIL in shown(await admin.open(APP))


@pytest.mark.parametrize(
    ("act", "fields", "code"),
    [
        ("team", {"email": "nobody@example.com", "role": "owner"}, 404),
        ("team", {"email": "no address", "role": "owner"}, 400),
        ("team", {"email": EMAIL, "role": "king"}, 400),
        ("team", {"role": "owner"}, 400),
        ("team-remove", {"user": "../x"}, 404),
    ],
)
async def test_a_wrong_member_changes_nothing(console: Console, act: str, fields: dict[str, str], code: int) -> None:
    admin, _ = await proved(console)
    before = await console.store.apps.find("web-app")
    assert (await admin.send(f"{APP}/{act}", **fields)).code == code
    console.store.apps.forget("web-app")
    assert await console.store.apps.find("web-app") == before


async def test_an_app_without_an_owner_says_so(console: Console) -> None:
    admin, _ = await proved(console)
    await console.service.add_app("stray")
    answer = await admin.send("/admin/apps/stray/team", email=EMAIL, role="viewer")
    assert answer.code == 400
    assert "The app has no owner. Add one first." in shown(answer.body.decode())


async def test_an_app_gets_rules_and_limits(console: Console) -> None:
    admin, _ = await proved(console)
    given = {"second_step": "on", "calls_per_minute": "5", "introspections_per_minute": "", "spend_per_day": "2.50"}
    done = await admin.do(f"{APP}/rules", **given)
    text = shown(await admin.open(done.headers["Location"]))
    for words in ("Saved.", "Required by the operator", "Calls per minute 5", "$2.50"):
        assert words in text, words
    for wrong, words in (
        ({"calls_per_minute": "many"}, "Calls per minute"),
        ({"introspections_per_minute": "99999999"}, "Introspections per minute"),
        ({"spend_per_day": "-1"}, "amount in dollars"),
    ):
        answer = await admin.send(f"{APP}/rules", **{**given, **wrong})
        assert answer.code == 400, wrong
        assert words in shown(answer.body.decode()), wrong
    app = await console.store.apps.find("web-app")
    assert app
    limits = app.calls_per_minute, app.introspections_per_minute, app.spend_per_day
    assert (app.second_step, limits) == (True, (5, 0, 2_500_000))
    await admin.do(f"{APP}/rules", calls_per_minute="", introspections_per_minute="", spend_per_day="")
    app = await console.store.apps.find("web-app")
    assert app
    assert (app.second_step, app.calls_per_minute, app.spend_per_day) == (False, 0, 0)


async def test_owners_read_why_their_app_is_disabled(console: Console) -> None:
    admin, _ = await proved(console)
    await admin.do(f"{APP}/team", email=EMAIL, role="owner")
    await admin.do(f"{APP}/status", status="disabled", reason="It <b>asked</b> for passwords.")
    text = await admin.open(APP)
    assert "It <b>asked</b> for passwords." in shown(text)
    assert "<b>asked" not in text
    for link in ("/admin/webhooks?app=web-app", "/admin/audit?app=web-app"):
        assert f'href="{link}"' in text, link
    owner = await console.service.signed_in()
    page = (await owner.get("/developer/apps/web-app")).body.decode()
    assert "The operator of this server has disabled this app: It <b>asked</b> for passwords." in shown(page)
    assert (await admin.send(f"{APP}/status", status="disabled", reason="x" * 501)).code == 400
    await admin.do(f"{APP}/status", status="active")
    app = await console.store.apps.find("web-app")
    assert app
    assert app.suspended_reason == ""


async def test_an_api_is_shown_switched_off_and_on(console: Console) -> None:
    admin, _ = await proved(console)
    made, _ = await console.store.apis.create(API)
    await console.store.apps.update("web-app", api_scopes=(f"{made.client_id}/orders:read",))
    page = f"/admin/apis/{made.client_id}"
    text = await admin.open(page)
    for words in ("https://orders.example", "orders:read", "Opaque", "1 active secret", "Web App", "the operator"):
        assert words in shown(text), words
    assert "<b>Orders" not in text
    assert "<i>orders" not in text
    found = await admin.browser.get(f"/admin/search?q={made.client_id}")
    assert found.headers["Location"] == page
    done = await admin.do(f"{page}/status", status="disabled")
    assert "Disabled by the operator" in shown(await admin.open(done.headers["Location"]))
    assert (await admin.send(f"{page}/status", status="off")).code == 400
    await admin.do(f"{page}/status", status="active")
    assert "Enabled" in shown(await admin.open(page))
    for path in ("/admin/apis/web-app", "/admin/apis/nothing"):
        assert (await admin.browser.get(path)).code == 404
        assert (await admin.send(f"{path}/status", status="disabled")).code == 404


async def test_a_secret_of_an_api_is_replaced_and_shown_once(console: Console) -> None:
    admin, _ = await proved(console)
    made, old = await console.store.apis.create(API)
    page = f"/admin/apis/{made.client_id}"
    console.events.clear()
    answer = await admin.send(f"{page}/secret")
    assert answer.code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    new = re.search(r"<pre[^>]* data-copy=[^>]*>([^<]+)</pre>", answer.body.decode())
    assert new
    present = await console.store.apis.fresh(made.client_id)
    assert present
    assert (present.secret_matches(new[1]), present.secret_matches(old)) == (True, False)
    assert new[1] not in await admin.open(page)
    [event] = console.events
    assert (event.event, event.client, event.by) == (
        "api_secret_made_by_operator",
        made.client_id,
        f"person {admin.user}",
    )
