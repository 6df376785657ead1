"""/inbox: the mails that the demo would send, and /demo, which leads to its app. No part of the product's map: only
`--demo` adds these routes."""

from __future__ import annotations

import asyncio
import re
from typing import NamedTuple
from urllib.parse import urljoin

from handlers.core.application import Latchkey
from handlers.core.at_home import is_at_home, is_forwarded
from handlers.core.page import PageHandler
from handlers.core.policy import PAGE
from handlers.core.route import Route
from outbound.mail.inbox import Inbox, SpooledMail
from outbound.mail.message import flowing
from store.phrases import Phrase
from store.refused import Refused

_ENDINGS = ".,;:!?)"


class LinkedText(NamedTuple):
    """A piece of a mail's text; `href` for a link to this server."""

    text: str
    href: str = ""


class InboxPage(PageHandler):
    """A page with mails, whose links open accounts: for the person at this machine alone."""

    def inbox(self) -> Inbox:
        """The mails. Raises Refused("not_found") once mail goes to a server, and Refused("access_denied") for a proxy
        and for a foreign name of this machine."""
        inbox = self.site.demo_inbox
        if inbox is None:
            raise Refused("not_found")
        if not is_at_home(self.request) or is_forwarded(self.request):
            raise Refused(
                "access_denied", Phrase("Open the demo on the machine that runs it, and not through a proxy.")
            )
        return inbox


class InboxHandler(InboxPage):
    """The list of mails."""

    async def get(self) -> None:
        """Lists the newest mails of all processes."""
        mails = await asyncio.to_thread(self.inbox().newest)
        title = Phrase("Demo inbox")
        self.render("links/inbox.html", title=title, signed_in=await self.profile_if_known(), mails=mails)


class MailHandler(InboxPage):
    """One mail."""

    async def get(self, name: str) -> None:
        """Shows its text, with links to this server."""
        mail: SpooledMail | None = await asyncio.to_thread(self.inbox().find, name)
        if mail is None:
            raise Refused("not_found")
        self.render(
            "links/inbox_mail.html",
            title=mail.subject,
            signed_in=await self.profile_if_known(),
            mail=mail,
            parts=parts_of(flowing(mail.text), self.site.base_url),
        )


class DemoAppHandler(PageHandler):
    """The way to the demo app, whose port is chosen at each start."""

    async def get(self) -> None:
        """303 to the front page of the app. Raises Refused("not_found") without it."""
        app = await self.store.apps.find(self.site.demo.client_id) if self.site.demo else None
        if app is None or not app.active or not app.redirect_uris:
            raise Refused("not_found")
        self.redirect(urljoin(app.redirect_uris[0], "/"), status=303)


def parts_of(text: str, base_url: str) -> list[LinkedText]:
    """The text of a mail in parts. Only addresses of this server become links: owners choose names of apps."""
    parts, done = [], 0
    for found in re.finditer(re.escape(base_url) + r"/[!-~]*", text):
        link = found[0].rstrip(_ENDINGS)
        parts += [LinkedText(text[done : found.start()]), LinkedText(link, link)]
        done = found.start() + len(link)
    return [part for part in [*parts, LinkedText(text[done:])] if part.text]


ROUTES = (
    Route(r"/inbox", InboxHandler, "demo-inbox", PAGE),
    Route(r"/demo", DemoAppHandler, "demo-app", PAGE),
    Route(r"/inbox/([0-9]{20}-[0-9a-f]{8})", MailHandler, "demo-inbox-mail", PAGE),
)


def add_inbox(application: Latchkey) -> None:
    """Adds the routes to the application of a demo."""
    *literal, one = ROUTES
    added = {route.pattern: (route.handler, route.facts) for route in literal}
    application.literal = {**application.literal, **added}
    application.patterns = [*application.patterns, (re.compile(one.pattern), (one.handler, one.facts))]
