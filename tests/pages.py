"""The templates rendered with sample data, and a reader that gives a page as its elements."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace as Sample
from typing import Any

from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.web import Application, RequestHandler

from handlers.account_credits import by_app
from handlers.scopes import SCOPE_WORDS
from handlers.spending_plot import plot_of
from store.credits import Account, Entry, Holding, Spending

ROOT = Path(__file__).parent.parent
NOW = datetime(2026, 3, 5, 14, 7, 9, 250_000, tzinfo=UTC)
VOID = {"meta", "link", "input", "img", "br"}


def pages(text: str) -> dict[str, dict[str, Any]]:
    """What each template is given, with `text` wherever a stranger may have chosen the words."""
    person = Sample(name=text, email=text)
    app = Sample(client_id=text, name=text, homepage="javascript:" + text, logo=text, connected_at=NOW)
    used = Sample(
        **{
            **vars(app),
            "scopes": [SCOPE_WORDS["credits:spend"]._replace(title=text), SCOPE_WORDS["profile"]],
            "domains": [text, "a.example"],
            "last_used_at": NOW,
            "homepage": "https://a.example/?" + text,
            "documents": 2,
            "bytes": 3000,
            "spending": Sample(spent=1, limit=5_000_000, text=text, error=text),
        }
    )
    free = Sample(**{**vars(used), "spending": Sample(spent=0, limit=None, text="", error="")})
    unused = Sample(
        **{**vars(app), "scopes": [], "domains": [], "last_used_at": None, "documents": 0, "bytes": 0, "spending": None}
    )
    revoked = Sample(**vars(app), data_until=NOW, documents=1, bytes=1)
    document = Sample(collection="notes", document_id=text, size=5, created_at=NOW, updated_at=NOW)
    usage = Sample(documents=2, bytes=10, collections=[("notes", 1, 5), (text, 1, 5)])
    charge = Entry("2-0", NOW, "charge", -150, 4_999_850, "", text, text, 1200, 30, text, "a-hold")
    grants = [Entry("1-0", NOW, "grant", 5_000_000, 5_000_000, text), Entry("0-1", NOW, "grant", -1, 0)]
    holds = (Holding(text, 20_000, NOW),)
    credits = Account(4_999_850, 20_000, 1, NOW, holds, ())
    nothing = Account(0, 0, 0, None, (), ())
    entry = Sample(at=NOW, text=text, app=text, address=text, agent=text)
    bare = Sample(at=NOW, text=text, app=None, address="", agent="")
    scopes = [Sample(name=n, **w._asdict(), granted_before=n == "profile") for n, w in SCOPE_WORDS.items()]
    account = Sample(user=text, name=text, email=text, email_verified=False, picture=text)
    plain = Sample(**{**vars(account), "email_verified": True, "picture": ""})
    spent = Spending(NOW.date(), False, tuple((NOW.date(), str(number), 5 - number) for number in range(5)))
    plot: dict[str, Any] = {"plot": plot_of(spent, defaultdict(lambda: text))}
    no_plot: dict[str, Any] = {"plot": None}
    stranger: dict[str, Any] = {"signed_in": None, "next": text}
    sign_up: dict[str, Any] = {**stranger, "email": text, "name": text, "min_password": 10}
    message: dict[str, Any] = {**stranger, "heading": text, "text": text}
    known: dict[str, Any] = {"signed_in": person}
    profile: dict[str, Any] = {**known, "profile": account, "picture": "/picture/x.svg", "name": text, "max_name": 100}
    leaving: dict[str, Any] = {**known, "apps": 1, "documents": 2, "paid": 1, "typed": text}
    return {
        "signin.html": {**stranger, "email": text, "error": text, "signup_open": True, "next_query": "?next=%2F"},
        "signin.html first": {**stranger, "email": "", "error": None, "signup_open": False, "next_query": ""},
        "signup.html": {**sign_up, "error": None, "invite": None},
        "signup.html invited": {**sign_up, "error": text, "invite": text},
        "consent.html": {
            **known,
            "request_id": text,
            "app": app,
            "app_domain": text,
            "scopes": scopes,
            "next": text,
            "spend_limit": 5_000_000,
        },
        "account.html": {**profile, "name_error": text, "picture_error": text, "notice": None},
        "account.html changed": {**profile, "profile": plain, "name_error": "", "picture_error": "", "notice": text},
        "account_delete.html": {**leaving, "email_error": text, "password_error": text},
        "account_delete.html first": {
            **leaving,
            "apps": 0,
            "documents": 0,
            "paid": 0,
            "email_error": "",
            "password_error": "",
        },
        "account_apps.html": {**known, "apps": [used, free, unused], "revoked": [revoked], "wrong": True},
        "account_apps.html empty": {**known, "apps": [], "revoked": [], "wrong": False},
        "account_credits.html": {
            **known,
            "account": credits,
            "names": {text: text},
            "entries": (charge, *grants),
            "by_app": by_app((charge,)),
            "before": "",
            "onward": None,
            **plot,
        },
        "account_credits.html older": {
            **known,
            "account": credits,
            "names": {text: text},
            "entries": (charge,),
            "by_app": [],
            "before": "3-0",
            "onward": "2-0",
            **no_plot,
        },
        "account_credits.html empty": {
            **known,
            "account": nothing,
            "names": {},
            "entries": (),
            "by_app": [],
            "before": "",
            "onward": None,
            **no_plot,
        },
        "account_app_data.html": {
            **known,
            "app": app,
            "data_until": NOW,
            "usage": usage,
            "collection": "notes",
            "after": text,
            "groups": [("notes", [document])],
            "onward": text,
        },
        "account_app_data.html empty": {
            **known,
            "app": app,
            "data_until": None,
            "usage": Sample(documents=0, bytes=0, collections=[]),
            "collection": "",
            "after": "",
            "groups": [],
            "onward": None,
        },
        "account_document.html": {**known, "app": app, "found": document, "text": text},
        "account_security.html": {**known, "error": text, "notice": None, "activity": [entry, bare]},
        "account_security.html changed": {**known, "error": None, "notice": text, "activity": []},
        "message.html": {**message, "status": 400},
        "message.html short": {**message, "status": 200},
        "home.html": {**stranger},
        "home.html signed in": known,
    }


class Element:
    """An element of a page: its tag, attributes, ancestors and the text inside."""

    def __init__(self, tag: str, attributes: dict[str, str | None], parents: list[Element]) -> None:
        self.tag, self.attributes, self.parents, self.text = tag, attributes, parents, ""

    def get(self, name: str) -> str:
        return self.attributes.get(name) or ""


class Page(HTMLParser):
    """A page as its elements; a tag that is not closed in its place fails."""

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
        return [element for element in self.elements if element.tag in tags]

    def inside(self, parent: Element, *tags: str) -> list[Element]:
        return [element for element in self.all(*tags) if parent in element.parents]


class Connection:
    """Where a rendered page would be written; nothing is."""

    def set_close_callback(self, callback: Any) -> None: ...


def render(name: str, text: str = "Ada & Co", **changes: Any) -> Page:
    """The page of `pages(text)[name]`, with `changes` to what the template is given."""
    app = Application([], template_path=str(ROOT / "templates"), static_path=str(ROOT / "static"))
    connection: Any = Connection()
    start, headers = RequestStartLine("GET", "/", "HTTP/1.1"), HTTPHeaders({"Host": "localhost"})
    request = HTTPServerRequest(connection=connection, start_line=start, headers=headers)
    handler = RequestHandler(app, request)
    values = {"product": "Latchkey", "title": text, **pages(text)[name], **changes}
    return Page(handler.render_string(name.split()[0], **values).decode())
