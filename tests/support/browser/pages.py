"""Renders the templates with sample data, and parses a page into its elements."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace as Sample
from typing import Any

from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.web import Application, RequestHandler

from handlers.account.pending_target import Reason
from handlers.core.fallback import StaticHandler
from handlers.core.lists.paging import ListPart, part_of
from handlers.core.page import Onward
from handlers.core.scopes import SCOPE_WORDS
from handlers.core.words.zones import places
from handlers.credits.pages import by_app
from handlers.credits.spending import chart_of_spending
from handlers.oauth.answers import Mark, WayBack
from handlers.ops.inbox import LinkedText
from outbound.mail.inbox import SpooledMail
from runtime import demo
from store.accounts.undoing import Undo
from store.apps.registration import DYNAMIC
from store.credits.credits import Account, LedgerEntry, OpenHold, Spending
from store.credits.prices import TokenCounts
from store.credits.used import Total
from store.results import NO_CHOICE, Preferences
from tests.support.admin.console_samples import console_pages
from tests.support.browser.consent_samples import budgets_of, consent_pages, handed_on_samples
from tests.support.browser.english import AUTOESCAPE, ENGLISH, SPOKEN
from tests.support.browser.portal_samples import LOGO, NOW, portal_pages
from tests.support.browser.security_samples import PROVIDERS, security_pages
from tests.support.data.deletion_samples import deletion_pages

ROOT = Path(__file__).parent.parent.parent.parent
VOID = {"meta", "link", "input", "img", "br", "wbr"}


def pages(text: str) -> dict[str, dict[str, Any]]:
    """The values of each template, by template and state. `text` stands for every word that a stranger may choose."""
    person = Sample(name=text, email=text)
    app = Sample(client_id=text, name=text, homepage="javascript:" + text, logo=LOGO, connected_at=NOW, refresh_days=0)
    used = Sample(
        **{
            **vars(app),
            "scopes": [SCOPE_WORDS["credits:spend"]._replace(title=text), SCOPE_WORDS["profile"]],
            "domains": [text, "a.example"],
            "shown_id": text,
            "origin": "",
            "last_used_at": NOW,
            "refresh_days": 7,
            "paused_at": None,
            "issuer": text,
            "issuer_host": text,
            "doing": text,
            "homepage": "https://a.example/?" + text,
            "documents": 2,
            "bytes": 3000,
            **{"handed_on": handed_on_samples(text), "tree": part_of(range(9), 3, 2, "/account", "helpers", "one")},
            "spending": Sample(spent=1, limit=5_000_000, text=text, error=text, budgets=budgets_of(text)),
        }
    )
    itself: dict[str, Any] = {"shown_id": text, "origin": DYNAMIC}
    itself["tree"] = ListPart(range(3), 0, 1, 9, "helpers", "/account/apps", "other")
    free = Sample(**{**vars(used), **itself, "spending": Sample(spent=0, limit=None, text="", error="", budgets=[])})
    unused = Sample(
        **{
            **{**vars(app), "shown_id": text, "origin": "", "scopes": [], "domains": [], "last_used_at": None},
            **{"documents": 0, "bytes": 0, "spending": None, "paused_at": NOW, "doing": "", "handed_on": []},
            "tree": part_of((), 3, 1, "/account/apps"),
            "issuer": "",
        }
    )
    revoked = Sample(**vars(app), data_until=NOW, documents=1, bytes=1, app_deleted=True)
    document = Sample(collection="notes", document_id=text, size=5, created_at=NOW, updated_at=NOW)
    usage = Sample(documents=2, bytes=10, collections=[("notes", 1, 5), (text, 1, 5)])
    charge = LedgerEntry("2-0", NOW, "charge", -150, 4_999_850, "", text, text, 1200, 30, text, "a-hold")
    grants = [LedgerEntry("1-0", NOW, "grant", 5_000_000, 5_000_000, text), LedgerEntry("0-1", NOW, "grant", -1, 0)]
    paid = [
        *(LedgerEntry(f"0-{n}", NOW, "reversal", n - 3, -9, payment=text, cause="refund") for n in (2, 4)),
        *(LedgerEntry(f"0-{n}", NOW, "reversal", n - 6, -9, payment=text, cause="dispute") for n in (5, 7)),
        LedgerEntry("0-8", NOW, "purchase", 20_000_000, 9, payment=text),
    ]
    buying: dict[str, Any] = {"purchases": (5_000_000, 500_000_000), "typed": text, "purchase_error": text}
    unsold: dict[str, Any] = {"purchases": None, "typed": "", "purchase_error": ""}
    holds = (OpenHold(text, 20_000, NOW),)
    credits = Account(-4_999_850, 20_000, 1, NOW, holds, ())
    nothing = Account(0, 0, 0, None, (), ())
    account = Sample(user=text, name=text, email=text, email_verified=False, picture=text, preferences=NO_CHOICE)
    plain = Sample(**{**vars(account), "email_verified": True, "picture": ""})
    spent = Spending(NOW.date(), False, tuple((NOW.date(), str(number), 5 - number) for number in range(5)))
    ranges: dict[str, Any] = {"whole": False, "range_here": 30, "ranges": [(7, text), (30, text)], "csv": text}
    plot: dict[str, Any] = {"chart": chart_of_spending(spent, defaultdict(lambda: text), 30, SPOKEN), **ranges}
    no_plot: dict[str, Any] = {"chart": None, **ranges, "range_here": 7}
    total = Total(2, 150, TokenCounts(1200, 30, 10, 20, 5, web_search=2))
    listed = part_of([(text, total), ("", total)] * 3, 2, 2, "/account/credits/usage?days=30", "apps_page", "apps")
    used_by = {"by_model": listed, "by_app": listed, "by_day": listed}
    shown_part = {"text": text, "part": part_of("abc", 1, 2, "/account/apps/x/data/notes/a")}
    unused_by: dict[str, Any] = dict.fromkeys(used_by, part_of((), 2, 1, ""))
    stranger = {"signed_in": None, "next": text, "next_query": "?next=%2F", "why": Reason(app=text), "keep": True}
    sign_up: dict[str, Any] = {**stranger, "email": text, "name": text, "min_password": 10}
    leaving: dict[str, Any] = {"app": app, "app_domain": text, "target": text}
    to_app: dict[str, Any] = {"app": app, "app_domain": text, "back": WayBack(text, {})}
    by_form = {"back": WayBack(text, {"state": text})}
    message: dict[str, Any] = {**stranger, "heading": text, "text": text, "onward": None, "sign_out_to": ""}
    known: dict[str, Any] = {"signed_in": person}
    elsewhere: dict[str, Any] = {"providers": PROVIDERS, "next_query": ""}
    choosing = {"others": [Sample(id="an-entry", email=text)], "next": text, "creates": "1"}
    stepping: dict[str, Any] = {**known, **to_app, "passkey": True, "again": text}
    mail_sent = {**stranger, "email": text, "lasts": "1 hour", "onward": "/account", "if_account": True}
    mail_sent["mail_reaches_people"] = False
    mail = SpooledMail("1-a", NOW, text, text, text)
    profile = {**known, "profile": account, "picture": "/picture/x.svg", "name": text, "passkey_offer": True}
    profile["has_languages"] = True
    return {
        "signin/signin.html": {
            **stranger,
            "email": text,
            "error": text,
            "passkey_error": text,
            "passkeys": True,
            "signup_open": True,
            "choosable": True,
            "next_query": "?next=%2F",
            **{"hint": text, "trouble": text, "providers": PROVIDERS, "last_provider": PROVIDERS[0].name},
        },
        "signin/signin.html first": {
            **stranger,
            "email": "",
            "error": None,
            "passkey_error": None,
            **{"passkeys": False, "signup_open": False, "choosable": False},
            **{"next_query": "", "hint": "", "trouble": "", "providers": [], "last_provider": ""},
        },
        "signin/second_step.html": {**stranger, "error": text, "has_app": True, "has_passkey": True},
        "signin/second_step.html recovery": {**stranger, "error": None, "has_app": False, "has_passkey": False},
        "signin/signup.html": {**sign_up, **elsewhere, "error": None, "invite": None},
        "signin/signup.html invited": {**sign_up, "error": text, "invite": text, "providers": []},
        **consent_pages(text, known, Sample(**vars(app), logo_path=LOGO)),
        "oauth/form_post.html": {**known, "app": app, "app_domain": text, "action": text, "fields": {"state": text}},
        "signin/choose.html": {**known, **choosing, "app": app, "onward_to": text},
        "signin/choose.html nobody": {**stranger, **choosing, "app": None, "onward_to": ""},
        **{f"oauth/keep_out.html{how}": {**stepping, **back} for how, back in (("", {}), (" form_post", by_form))},
        "oauth/step_up.html": stepping,
        "oauth/step_up.html second step": {**stepping, "passkey": False},
        "oauth/step_up.html form_post": {**stepping, **by_form},
        "account/profile.html": {**profile, "name_error": text, "picture_error": text, "notice": None},
        "account/profile.html changed": {
            **profile,
            "profile": plain,
            "name_error": "",
            "picture_error": "",
            "notice": text,
        },
        **deletion_pages(text, known),
        "account/apps.html": {
            **known,
            "apps": [used, free, unused],
            "revoked": [revoked],
            "notice": text,
            "wrong": True,
            "number": 2,
            "pages": 3,
        },
        "account/apps.html issuer": {
            **known,
            "apps": [Sample(**{**vars(used), "spending": None})],
            "revoked": [],
            "notice": None,
            "wrong": False,
            "number": 1,
            "pages": 1,
        },
        "account/apps.html empty": {
            **known,
            "apps": [],
            "revoked": [],
            "notice": None,
            "wrong": False,
            "number": 1,
            "pages": 1,
        },
        "account/credits.html": {
            **known,
            **buying,
            "mails": True,
            "notice": text,
            "account": credits,
            "names": {text: text},
            "entries": (charge, *grants, *paid),
            "by_app": by_app((charge,)),
            "before": "",
            "onward": None,
            **plot,
        },
        "account/usage.html": {**known, **plot, "names": {}, **used_by},
        "account/usage.html empty": {**known, **no_plot, "names": {}, **unused_by},
        "account/credits.html older": {
            **known,
            **unsold,
            "mails": None,
            "notice": None,
            "account": credits,
            "names": {text: text},
            "entries": (charge,),
            "by_app": [],
            "before": "3-0",
            "onward": "2-0",
            **no_plot,
        },
        "account/credits.html empty": {
            **known,
            **unsold,
            "mails": None,
            "notice": None,
            "account": nothing,
            "names": {},
            "entries": (),
            "by_app": [],
            "before": "",
            "onward": None,
            **no_plot,
        },
        "account/credits.html mails": {
            **known,
            **buying,
            "purchase_error": "",
            "mails": True,
            "notice": text,
            "account": nothing,
            "names": {},
            "entries": (),
            "by_app": [],
            "before": "",
            "onward": None,
            **no_plot,
        },
        "account/app_data.html": {
            **known,
            "app": app,
            "notice": text,
            "data_until": NOW,
            "usage": usage,
            "collections": part_of(usage.collections * 3, 2, 2, "/account/apps/x/data", "collections"),
            "collection": "notes",
            "after": text,
            "groups": [("notes", [document])],
            "onward": text,
        },
        "account/app_data.html empty": {
            **known,
            "app": app,
            "notice": None,
            "data_until": None,
            "usage": Sample(documents=0, bytes=0, collections=[]),
            "collections": part_of((), 2, 1, ""),
            "collection": "",
            "after": "",
            "groups": [],
            "onward": None,
        },
        "account/document.html": {**known, "app": app, "found": document, **shown_part},
        **{**portal_pages(text, known), **security_pages(text, known), **console_pages(text, known)},
        "account/language.html": {
            **known,
            "languages": [("en", "en", text), ("pt", "pt-BR", text)],
            "regions": places("en_GB"),
            "chosen": Preferences("pt", "Europe/Berlin"),
        },
        "account/email.html": {
            **known,
            "profile": account,
            "second": False,
            "email": text,
            "error": text,
            "wrong": "email",
        },
        "account/email.html confirmed": {
            **known,
            "profile": Sample(name=text, email=text, email_verified=True),
            "second": True,
            "email": "",
            "error": None,
            "wrong": "",
        },
        "oauth/logout.html": {**known, **leaving, "asked": {"client_id": text, "state": text}},
        "oauth/logout.html nobody": {**known, "app": None, "app_domain": "", "target": "", "asked": {}},
        "oauth/signed_out.html": {**stranger, "app": None, "app_domain": "", "target": ""},
        "oauth/signed_out.html onward": {**stranger, **leaving},
        "oauth/leaving.html": {**known, **to_app, "mark": Mark(True, "", "")},
        "oauth/leaving.html signed out": {**stranger, **to_app, "mark": Mark(False, "", text)},
        "oauth/leaving.html form_post": {**known, **to_app, **by_form, "mark": Mark(True, "", "")},
        "oauth/confirm_first.html": {**known, "app": app, "next": text},
        "links/confirm.html": {**known, "email": text, "link": text},
        "links/change.html": {**known, "old": text, "new": text, "link": text},
        "links/undo.html": {**stranger, "undo": Undo(text, text, text, False, False), "link": text},
        "links/undo.html second step": {**stranger, "undo": Undo(text, text, f"{text}.", False, True), "link": text},
        "links/reset.html": {**stranger, "email": text, "link": text, "error": text, "min_password": 10},
        "signin/forgot.html": {**stranger, "email": text, "error": text},
        "signin/signup_address.html": {**stranger, **elsewhere, "next": text, "email": text, "error": text},
        "links/mail_sent.html": mail_sent,
        "links/mail_sent.html demo": {**mail_sent, "demo_inbox": True},
        "links/inbox.html": {**known, "mails": [mail]},
        "links/inbox.html empty": {**stranger, "mails": []},
        "links/inbox_mail.html": {**known, "mail": mail, "parts": [LinkedText(text), LinkedText(text, text)]},
        "links/done.html": {**stranger, "heading": text, "text": text, "onward": Onward("/signin", text)},
        "base/message.html": {**message, "status": 400, "onward": Onward("/account", text), "session_here": True},
        "base/message.html other": {**message, "status": 403, "sign_out_to": text},
        "base/message.html short": {**message, "status": 200},
        "base/docs.html": {**stranger, "base_url": text},
        "base/home.html": {**stranger, "signup_open": True},
        "base/home.html closed": {**stranger, "signup_open": False},
        "base/home.html demo": {**stranger, "signup_open": True, "demo_inbox": True, "demo": demo.FACTS},
        "base/home.html signed in": {**known, "signup_open": True},
    }


class Element:
    """An element of a page: its tag, attributes, ancestors and the text inside."""

    def __init__(self, tag: str, attributes: dict[str, str | None], parents: list[Element]) -> None:
        self.tag, self.attributes, self.parents, self.text = tag, attributes, parents, ""

    def get(self, name: str) -> str:
        """The value of an attribute; empty if there is none."""
        return self.attributes.get(name) or ""


class Page(HTMLParser):
    """The elements of a page, in order. Fails on a tag that isn't closed in its place."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> is repeated: {attrs}"
        element = Element(tag, dict(attrs), list(self._open))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, *tags: str) -> list[Element]:
        """The elements with one of these tags."""
        return [element for element in self.elements if element.tag in tags]

    def sending(self, form: Element) -> list[Element]:
        """The buttons elsewhere on the page that send a form."""
        name = form.get("id")
        return [one for one in self.all("button") if name and one.get("form") == name]

    def inside(self, parent: Element, *tags: str) -> list[Element]:
        """The elements with one of these tags inside another element."""
        return [element for element in self.all(*tags) if parent in element.parents]


class Connection:
    """A connection for a handler that only renders. Nothing is written."""

    def set_close_callback(self, callback: Any) -> None: ...


@cache
def render(name: str, text: str = "Ada & Co", **changes: Any) -> Page:
    """The page for `pages(text)[name]`, with `changes` to its values."""
    static: dict[str, Any] = {"static_path": str(ROOT / "static"), "static_handler_class": StaticHandler}
    static["autoescape"] = AUTOESCAPE
    app = Application([], template_path=str(ROOT / "templates"), **static)
    connection: Any = Connection()
    start, headers = RequestStartLine("GET", "/", "HTTP/1.1"), HTTPHeaders({"Host": "localhost"})
    request = HTTPServerRequest(connection=connection, start_line=start, headers=headers)
    handler = RequestHandler(app, request)
    values = {**ENGLISH, "title": text, **pages(text)[name], **changes}
    try:
        return Page(handler.render_string(name.split()[0], **values).decode())
    except NameError as error:
        missing = f"template {name} reads `{error.name}`: add it to the sample values in tests/support/browser/pages.py"
        raise NameError(missing, name=error.name) from error
