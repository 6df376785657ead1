"""Sample data of the operators' console."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from types import SimpleNamespace as Sample
from typing import Any

from handlers.admin.console.audit import FILTERS, LONGEST, RESULTS, ShownEvent
from handlers.admin.console.chips import chips_of
from handlers.admin.console.figures import charts_of
from handlers.admin.console.overview import ChecklistRow
from handlers.admin.console.people import ORDER_NAMES, STATUS_NAMES
from handlers.admin.console.person import KINDS, ON_PEOPLE
from handlers.core.lists.paging import ListPart, part_of
from handlers.developer.log import LogEntry
from outbound.identity.providers import Providers
from store.accounts.audit.activity_figures import DayFigures
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.identities import LinkedIdentity, UpstreamIdentity
from store.app_log import Cause, LoggedRefusal
from store.app_stats import AppFigures
from store.credits.credits import Account, LedgerEntry
from store.documents.documents import Usage
from store.engine.memory import Room
from store.oauth.grants import Grant
from store.operations import Suspension
from store.operators.health import StoreHealth
from tests.support.admin.desk_samples import RARE_AT_DESK, desk_pages
from tests.support.browser.english import SPOKEN
from tests.support.browser.portal_samples import NOW, portal_pages

RARE = RARE_AT_DESK
"""States without a stop on the tour."""


def of_several(*rows: Any) -> ListPart[Any]:
    """The middle one of three parts of a list."""
    return part_of(rows * 3, len(rows), 2, "/admin/apps?query=x", "page", "list")


def console_pages(text: str, known: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The values of these templates, as `pages` has them. `known`: those of a person who is signed in."""
    frame: dict[str, Any] = {**known, "role": text, "query": text, "here": "/admin/people", "may": lambda act: True}
    frame["notice"] = text
    frame["chips"] = chips_of("/admin/people", {"query": text, "status": text})
    one = Sample(
        **{"user": text, "email": text, "name": text, "status": "active", "suspended": False, "created_at": NOW},
        **{"email_verified": False, "signed_in_at": NOW, "delete_at": None},
    )
    suspended = Sample(**{**vars(one), "suspended": True, "signed_in_at": None, "email_verified": True})
    disabled = Sample(**{**vars(one), "status": "disabled", "name": ""})
    people = {**frame, "statuses": STATUS_NAMES, "status": "active", "whole": False, "first": text, "onward": text}
    people |= {"orders": ORDER_NAMES, "order": "id", "total": 1_000_000}
    people["acts"] = [("suspend", text)]
    people["people"] = [one, suspended, disabled, Sample(**{**vars(disabled), "delete_at": NOW})]
    passkey = Sample(name=text, created_at=NOW, used_at=NOW)
    security = Sample(app_since=NOW, codes=3, passkeys=[passkey, Sample(**{**vars(passkey), "used_at": None})])
    elsewhere = LinkedIdentity(UpstreamIdentity("https://a.example", text), NOW, NOW, text)
    security.identities = [elsewhere, elsewhere._replace(linked_at=None, used_at=None, label="")]
    grant = Grant(text, (text, "profile"), NOW, NOW, None, None)
    entries = tuple(
        LedgerEntry(f"{number}-0", NOW, kind, 5, 5, text, text) for number, kind in enumerate((*KINDS, text))
    )
    person = Sample(
        **{"user": text, "email": text, "name": text, "status": "disabled", "email_verified": False},
        **{"created_at": NOW, "groups": (text,), "suspension": Suspension(text, text, NOW), "registered": (text,)},
        delete_at=None,
        grants=[grant, Grant(text, (), NOW, None, NOW, NOW), Grant(text, (), NOW, None, None, None, paused_at=NOW)],
    )
    page: dict[str, Any] = {
        **{**frame, "view": Sample(security=security, role="support"), "person": person, "summary": one},
        **{"status_name": text, "role_here": text, "roles": [("support", text)], "itself": False},
        **{"offers": frozenset(ON_PEOPLE), "account": Account(5, 2, 1, None, (), entries), "kinds": KINDS},
        "hosted": of_several((text, text, Usage(2, 3000, tuple((text, 1, 5) for _ in range(11))))),
        **{"passkeys": of_several(*security.passkeys), "accounts": of_several(*security.identities)},
        **{"grants": of_several(*person.grants), "registered": of_several(text)},
        "names": {text: text},
        "sessions": of_several(text),
        "signed_in_at": [Sample(id=text, device=text, address=text, since=NOW, seen=NOW)],
        "entries": [Sample(at=NOW, text=text, app=text, address=text, device=text)],
        **{"part": "", "error": "", "wrong": "", "nonce": text, "usual_days": 7, "providers": Providers()},
        "typed": lambda form, field: text,
    }
    none: ListPart[Any] = part_of((), 1, 1, "")
    bare = Sample(app_since=None, codes=0, passkeys=[], identities=[])
    plain = Sample(**{**vars(person), "suspension": None, "registered": (), "grants": [], "groups": ()})
    plain.status, plain.email_verified = "active", True
    quiet: dict[str, Any] = {
        **{**page, "person": plain, "view": Sample(security=bare, role=None), "role_here": "", "signed_in_at": []},
        **dict.fromkeys(("sessions", "hosted", "passkeys", "accounts", "grants", "registered"), none),
        **{"entries": [], "account": Account(0, 0, 0, None, (), ())},
        **{"offers": frozenset(("people.export",)), "summary": suspended},
    }
    logged = AuditEvent("signed_in", "failed", "info", "operator", "1", person=text, client=text, address=text, count=2)
    signed: list[tuple[str, tuple[str, str]]] = [
        ("", ("", "")),
        (text, ("", "")),
        ("0" * 32, ("", "")),
        ("", (text, text)),
    ]
    events = [ShownEvent(NOW, text, logged, text, text, *who) for who in signed]
    events.append(
        ShownEvent(NOW, text, replace(logged, person="0" * 32, detail=text, agent=text), text, text, *signed[1])
    )
    audit: dict[str, Any] = {**frame, "chosen": dict.fromkeys(FILTERS, text)}
    audit |= {"error": "", "wrong": "", "people": {text: text}, "days": 90}
    audit |= {"first": text, "onward": text, "longest": LONGEST}
    days = [DayFigures(date(2026, 11, one), 5, 2, 1, 3) for one in (25, 26)]
    plots = {"charts": charts_of(days, SPOKEN), "csv": "/admin/sign-ins"}
    no_plots = {"charts": charts_of([DayFigures(date(2026, 11, 26))], SPOKEN), "csv": "/admin/sign-ins"}
    whole_event = replace(logged, detail=text, agent=text, request_id=text, by=text)
    event = {**frame, "at": NOW, "people": {text: text}, "app": text, "app_page": text, "device": text}
    event |= {
        **{"outcome": text, "result": text},
        "key": ("", ""),
        "results": RESULTS,
        "filtered": lambda **chosen: "/admin/audit?person=x",
    }
    audit["files"] = [(text, "/admin/audit/export")]
    app = Sample(
        **{"client_id": text, "wire_id": text, "name": text, "redirect_uris": (text,), "scopes": (text,)},
        **{"api_scopes": (text,), "owner": text, "homepage": text, "status": "active", "active": True},
        **{"second_step": True, "owner_second_step": True, "demands_step": True, "suspended_reason": text},
        **{"calls_per_minute": 5, "introspections_per_minute": 6, "spend_per_day": 7_000_000},
        verified=False,
    )
    off = Sample(**{**vars(app), "status": "disabled", "active": False, "verified": True, "owner": "", "homepage": ""})
    off.demands_step = off.second_step = off.owner_second_step = False
    off.calls_per_minute = off.introspections_per_minute = off.spend_per_day = 0
    off.suspended_reason = ""
    listed = {**frame, "people": {text: text}, "made": lambda app: NOW, "first": text, "onward": text}
    cause = Cause("token", "invalid_grant", text, text)
    refused = LogEntry(LoggedRefusal(cause, 2, NOW, NOW), text, text, text)
    shown: dict[str, Any] = {**frame, "app": app, "made": NOW, "figures": AppFigures(2, ()), "entries": [refused]}
    shown |= {"spend_field": "7.00", "part": of_several(refused)}
    shown["role_names"] = {"owner": text}
    shown["team"] = [(Sample(user=text, role="owner"), Sample(email=text)), (Sample(user=text, role="viewer"), None)]
    api = Sample(client_id=text, identifier=text, name=text, owner=text, active=True, scopes=(Sample(name=text),))
    api.status = "active"
    scope = Sample(name=text, title=text, detail=text, care=True)
    facts = {"token_format": "jwt", "signing_alg": text, "token_lifetime": 600, "secrets": (b"",), "status": "active"}
    named = Sample(**{**vars(api), **facts, "scopes": (scope,)})
    using = Sample(apps=(Sample(client_id=text, name=text, scopes=(text,)),), more=2)
    whole = {**frame, "api": named, "made": NOW, "owner": Sample(email=text), "using": using, "secret": ""}
    whole["part"] = of_several(*using.apps)
    return {
        **desk_pages(text, frame, portal_pages(text, known)),
        "admin/audit.html": {**audit, "events": events},
        "admin/audit.html wrong": {**audit, "events": [], "error": text, "wrong": "person", "first": "", "onward": ""},
        "admin/audit.html empty": {
            **{**audit, "events": [], "chosen": {}, "first": "", "onward": ""},
            "chips": chips_of("/admin/audit", {"app": text}),
        },
        "admin/audit.html next": {**audit, "events": []},
        "admin/event.html": {**event, "event": replace(whole_event, typed=text), "operator": text},
        "admin/event.html key": {**event, "event": whole_event, "operator": "", "key": (text, "name")},
        "admin/apps.html": {**listed, "apps": [app, off]},
        "admin/apps.html empty": {**listed, "apps": [], "first": "", "onward": ""},
        "admin/app.html": shown,
        "admin/app.html off": {**shown, "app": off, "entries": [], "team": []},
        "admin/app.html auditor": {**shown, "may": lambda act: False},
        "admin/api.html": whole,
        "admin/api.html off": {**whole, "api": Sample(**{**vars(named), "status": "disabled", "active": False})},
        "admin/api.html secret": {**whole, "secret": text, "using": Sample(apps=(), more=0), "made": None},
        "admin/api.html auditor": {**whole, "may": lambda act: False, "owner": None},
        "admin/apis.html": {
            **frame,
            "people": {},
            "apis": of_several(api, Sample(**{**vars(api), "active": False, "owner": ""})),
        },
        "admin/apis.html empty": {**frame, "people": {}, "apis": part_of((), 1, 1, "")},
        "admin/overview.html": {
            **{
                **frame,
                "checks": [ChecklistRow(text, True, text), ChecklistRow(text, False, text)],
                "queues": [(text, 2)],
            },
            **{"health": StoreHealth(text, text, 1, 0, 5, 0.5, Room(5, 9), 0), "room": True, "saved_at": NOW, **plots},
        },
        "admin/overview.html full": {
            **{
                **frame,
                "checks": [],
                "queues": [],
                "health": StoreHealth("", "", 1, 0, 5, 0.5, None, 0),
                "room": False,
                "saved_at": None,
                **no_plots,
            },
        },
        "admin/people.html": people,
        "admin/people.html first": {**people, "first": "", "onward": "", "whole": True},
        "admin/people.html unwritten": {**people, "people": [], "first": "", "onward": "", "query": "", "status": ""},
        "admin/people.html empty": {**people, "people": [], "first": "", "onward": "", "query": "", "total": 0},
        "admin/people.html nobody": {**people, "people": [], "onward": "", "whole": True},
        "admin/people.html next": {**people, "people": []},
        "admin/person.html": page,
        "admin/person.html plain": quiet,
        "admin/person.html to be deleted": {
            **{**page, "person": Sample(**{**vars(plain), "delete_at": NOW})},
            "offers": frozenset(("people.delete", "people.export")),
        },
        "admin/person.html own acts": {**page, "itself": True, "offers": frozenset(("credits.give",))},
        "admin/person.html apart": {**page, "offers": frozenset(("people.export",))},
        **{
            f"admin/person.html wrong {part}": {
                **page,
                "part": part,
                "error": text,
                "wrong": "reason" if part == "suspend" else "",
            }
            for part in (
                "suspend",
                "email",
                "credits",
                "role",
                "send-link",
                "delete",
                "plan-deletion",
                "resume",
                "unlink",
            )
        },
    }
