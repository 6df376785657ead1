"""Sample data of the console's pages about the whole server: webhooks of all apps."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace as Sample
from typing import Any

from handlers.admin.console.person import KINDS
from handlers.admin.console.server import ShownSetting
from handlers.admin.console.webhooks import STATES, filtered
from handlers.admin.credits import FILTERS
from handlers.admin.server_health import ServerHealth
from handlers.charts.chart import Series, chart_of, days_until
from handlers.charts.scale import MONEY
from store.credits.credits import LedgerEntry
from store.engine.memory import Room
from store.operators.bulk_acts import BulkOrder, BulkPlan
from store.operators.delivery_pages import FailingEndpoint, FailingEndpoints
from store.operators.health import DAY_MS, OLD_KEY_DAYS, KeyAges, Replica, Saved, StoreHealth
from store.operators.jobs import OperatorJob
from store.operators.memory_sample import KindShare, MemoryEstimate
from tests.support.browser.english import SPOKEN
from tests.support.browser.portal_samples import NOW

RARE_AT_DESK = frozenset(
    (
        *("admin/webhooks.html next", "admin/webhooks.html away", "admin/delivery.html gone"),
        *("admin/health.html old", "admin/settings.html pages"),
        *(f"admin/credits.html {state}" for state in ("running", "stopped", "next", "agreed")),
        *("admin/bulk_progress.html running", "admin/bulk_progress.html stopped", "admin/bulk.html number wrong"),
        *("admin/event.html key", "admin/people.html unwritten", "admin/people.html next"),
    )
)
"""States without a stop on the tour."""


def desk_pages(text: str, frame: dict[str, Any], portal: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The values of these templates. `frame`: those of every page of the console; `portal`: the portal's pages."""
    shown = {"state": "failing", "app": text, "type": "ping"}
    failing = FailingEndpoints((FailingEndpoint(text, "events", 1), FailingEndpoint(text, "logout", 1)), 2)
    hooks: dict[str, Any] = {
        **{**frame, "chosen": shown, "states": STATES, "types": ("ping",), "failing": failing, "names": {text: text}},
        **{"deliveries": portal["developer/webhooks.html"]["deliveries"], "posting": True, "filtered": filtered},
        **{"first": text, "onward": text},
    }
    nothing = {**hooks, "failing": FailingEndpoints((), 0), "deliveries": [], "first": "", "onward": ""}
    delivery = {**portal["developer/delivery.html"], **frame, "app_name": text}
    gone = {**portal["developer/delivery.html failed"], **frame, "app_name": text, "url": ""}
    app = Sample(client_id=text, name=text)
    replica, saved = Replica(text, "online", 5, 1), Saved(1, False, True)
    ages = KeyAges(OLD_KEY_DAYS * DAY_MS * 2, 1, 1)
    store = StoreHealth(text, text, 1, 1, 5, 0.5, Room(5, 9), 0, (replica, replica._replace(state=text)), saved)
    server = ServerHealth(True, text, text, 2, store, ages, False, None, {})
    estimate = MemoryEstimate(1, 2, 3, (KindShare(text, 2, 300),))
    health: dict[str, Any] = {
        **{**frame, "server": server, "health": store, "saved_at": NOW, "secret": NOW, "signing": NOW},
        **{"memory": estimate, "sampled_at": NOW, "kinds": estimate.kinds, "queues": [(text, 2)]},
    }
    young = server._replace(stopping=False, version="", ages=KeyAges(1, 0, 0), room=True)
    bare = StoreHealth("", "", 1, 0, 5, 0.5, None, 0, (), Saved(0, True, False))
    shown_settings = [
        ShownSetting(text, "", "default", True, text, "", text, False),
        ShownSetting(text, text, text, False, text, text, text, True),
        ShownSetting(text, "", "default", False, text, text, text, False),
    ]
    settings = {**frame, "typed": text, "show": "all", "settings": shown_settings, "first": "", "onward": ""}
    report = {"people": 2, "paid": 5, "ledger": 4, "different": 1, "more": True, "days": {}}
    report["differences"] = [{"person": text, "paid": 5, "ledger": 4}]
    row = {"person": text, "id": text, "client_id": text, "amount": 5}
    report["found"] = [{**row, "kind": kind} for kind in ("grant", text)]
    days = days_until(NOW.date(), 3)
    chart = chart_of(days, [Series(text, (1, 2, 3)), Series(text, (0, 0, 5))], MONEY, SPOKEN)
    ledger = OperatorJob(text, "credits", text, {}, 3, 2, "done", report, 1)
    entry = LedgerEntry(text, NOW, "grant", 5, 5, text, text, payment=text)
    credits: dict[str, Any] = {
        **{**frame, "chosen": dict.fromkeys(("person", *FILTERS), text), "error": "", "email": "", "entries": []},
        **{
            "kinds": KINDS,
            "job": ledger,
            "asked": [text],
            "report": report,
            "chart": chart,
        },
        **{
            "csv": "/admin/credits/days",
            "found": report["found"],
            "names": {text: text},
            "first": "",
            "onward": "",
            "people": {},
        },
    }
    quiet = {"people": 0, "days": {}, "found": []}
    agreed = {**credits, "job": replace(ledger, report=quiet), "report": quiet, "found": [], "chart": None}
    person = {**agreed, "job": None, "email": text, "onward": text}
    plan = BulkPlan(text, "suspend", 2, 1, ((text, text),))
    order = BulkOrder("suspend", [text], reason=text, note=text, until=text)
    bulk: dict[str, Any] = {
        **{**frame, "act": "suspend", "act_name": text, "order": order, "plan": plan, "boxes": [text]},
        **{
            "people": {text: text},
            "refusals": [(text, text)],
            "error": "",
            "wrong": "",
            "days": text,
            "at_once": False,
        },
    }
    job = OperatorJob(text, "bulk", text, {}, 3, 2, "running", {}, 1)
    progress = {**frame, "act_name": text, "job": job, "changed": 1, "refused": 1, "refusals": [[text, text]]}
    progress["people"] = {}
    return {
        "admin/credits.html": credits,
        "admin/credits.html agreed": agreed,
        "admin/credits.html none": {**agreed, "job": None, "report": {}, "asked": []},
        "admin/credits.html running": {**agreed, "job": replace(ledger, state="running")},
        "admin/credits.html stopped": {**agreed, "job": replace(ledger, state="stopped"), "asked": []},
        "admin/credits.html wrong": {**agreed, "error": text},
        "admin/credits.html person": {**person, "entries": [entry], "first": text},
        "admin/credits.html nothing": {**person, "onward": ""},
        "admin/credits.html next": person,
        "admin/bulk.html": bulk,
        "admin/bulk.html wrong": {**bulk, "error": text, "wrong": "until"},
        "admin/bulk.html delete": {**bulk, "act": "delete", "plan": plan._replace(refused=0, refusals=())},
        "admin/bulk.html delete wrong": {**bulk, "act": "delete", "error": text},
        "admin/bulk.html number wrong": {**bulk, "act": "delete", "error": text, "at_once": True},
        "admin/bulk.html nobody": {**bulk, "plan": plan._replace(people=0)},
        "admin/bulk_progress.html": {**progress, "job": replace(job, state="done", done=3)},
        "admin/bulk_progress.html planned": {**progress, "job": replace(job, state="done", order={"days": 7})},
        "admin/bulk_progress.html running": progress,
        "admin/bulk_progress.html stopped": {**progress, "job": replace(job, state="stopped"), "refusals": []},
        "admin/health.html": {**health, "server": young, "health": bare, "saved_at": None, "secret": None}
        | {"signing": None, "memory": None, "kinds": ()},
        "admin/health.html old": health,
        "admin/settings.html": settings,
        "admin/settings.html set": {**settings, "show": "changed", "typed": "", "settings": []},
        "admin/settings.html nothing": {**settings, "settings": []},
        "admin/settings.html pages": {**settings, "first": text, "onward": text},
        "admin/webhooks.html": hooks,
        "admin/webhooks.html empty": {**nothing, "chosen": dict.fromkeys(shown, "")},
        "admin/webhooks.html next": {**hooks, "deliveries": []},
        "admin/webhooks.html away": {**nothing, "posting": False},
        "admin/delivery.html": delivery,
        "admin/delivery.html auditor": {**delivery, "may": lambda act: False},
        "admin/delivery.html gone": gone,
        "admin/send_failed.html": {**frame, "app": app, "count": 2},
        "admin/send_failed.html none": {**frame, "app": app, "count": 0},
    }
