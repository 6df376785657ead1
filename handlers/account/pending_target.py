"""Where a sign-in leads: the page that waits, why the person is asked to sign in for it, and whose address it names.

Whoever makes the link chooses the target. So all that the sign-in page says of it is ours: the registered name of an
app, words of this module, or an address from a text that this server sealed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from handlers.account.authorize_address import LOGIN_HINT, PROGRESS, pairs_at, pairs_of, request_print, shows_sign_in
from handlers.core.params import Params, once, parse_pairs
from store.accounts.links import Links
from store.apps.lookalikes import mistaken_for
from store.apps.redirect_uris import display_origin
from store.apps.registration import Registration
from store.crypto.seal import TokenKind
from store.names import MAX_EMAIL_BYTES
from store.oauth.progress import SETS_UP, RequestProgress
from store.phrases import Phrase
from store.refused import Refused
from store.wiring import Store

ACCOUNT_PAGE = "/account"
_BY_REFERENCE = ("request", "request_uri")
_REASONS = {
    "/confirm": Phrase("to confirm your address"),
    "/account/email/change": Phrase("to change your address"),
    "/developer/apps": Phrase("to manage your apps"),
    "/device": Phrase("to connect a device"),
    "/developer/invitation": Phrase("to join the team of an app"),
}


class Reason(NamedTuple):
    """Why somebody is asked to sign in: the name of an app, or a text. Both are empty without a reason."""

    app: str = ""
    text: str = ""


class PendingTarget(NamedTuple):
    """The target of a sign-in, with the app whose authorization request it is, and where its answer goes."""

    path: str
    app: Registration | None = None
    redirect_uri: str = ""

    def reason(self, own: str) -> Reason:
        """Why to sign in. `own`: the server's name. An app whose name looks like somebody else's is called by its host,
        because a password is typed on this page."""
        if self.app is None:
            return Reason(text=_REASONS.get(urlsplit(self.path).path, ""))
        if self.app.from_operator or not mistaken_for(self.app.name, own):
            return Reason(app=self.app.name)
        return Reason(app=display_origin(self.redirect_uri)) if self.redirect_uri else Reason()


def landing(target: str) -> str:
    """The page after a sign-in: the target, or the account if there is none."""
    return target if target != "/" else ACCOUNT_PAGE


def must_set_up(progress: RequestProgress, target: str) -> bool:
    """Whether the target lets nobody in without a second step, as its mark says."""
    pairs = pairs_at(target)
    mark = next((value for name, value in pairs if name == PROGRESS), "")
    step = progress.open(mark, request_print(pairs)) if mark else None
    return step is not None and step.done == SETS_UP


def goes_on(target: str) -> bool:
    """Whether a person who is signed in already need not sign in for this target. An authorization request that may
    demand a new or stronger sign-in would send them back here."""
    return not (shows_sign_in(pairs_of(target)) or any(name == PROGRESS for name, _ in pairs_at(target)))


async def pending(store: Store, target: str) -> PendingTarget:
    """The target, with its app if that is active and the answer goes to one of its redirect URIs."""
    try:
        params = once(pairs_of(target))
        client_id, redirect_uri = params.get("client_id"), params.get("redirect_uri")
        app = await store.apps.active(client_id) if client_id else None
    except Refused:
        return PendingTarget(target)
    if app and redirect_uri and app.may_return_to(redirect_uri):
        return PendingTarget(target, app, redirect_uri)
    if app and any(params.get(name) for name in _BY_REFERENCE):
        return PendingTarget(target, app)
    return PendingTarget(target)


def email_for(links: Links, target: str, link: str | None) -> str:
    """The address to begin with: that of a mailed `link` that was used, of a mailed link that waits, or the one that an
    authorization request names (OpenID Connect Core 3.1.2.1). Empty without any."""
    if link and (email := links.mailed_to(TokenKind.RESET, link)):
        return email
    with suppress(Refused):
        parts = urlsplit(target)
        if parts.path == "/confirm":
            waiting: Params = once(parse_pairs(parts.query))
            return links.mailed_to(TokenKind.CONFIRM, waiting.get("link") or "")
        hint = once(pairs_of(target)).get(LOGIN_HINT) or ""
        return hint if len(hint) <= MAX_EMAIL_BYTES else ""
    return ""
