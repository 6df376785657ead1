"""Forms that ask the person to re-authenticate, before the form's handler runs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from handlers.account.reauth import ReauthPage
from handlers.core import mails
from handlers.core.errors import REAUTH_FIRST
from handlers.core.params import Params
from handlers.core.person_posts import PersonPost, ReauthRule
from handlers.core.policy import Policy
from handlers.core.route import Route, WrongRoute
from runtime.http.tornado_private import renew_xsrf_token
from store.accounts.signin.factors import Factors
from store.accounts.signin.reauth import ReauthFailed
from store.accounts.signin.sessions import Session
from store.phrases import Phrase
from store.refused import Refused

PASSWORD, CODE, CREDENTIAL = "confirm_password", "confirm_code", "credential"
_TABS = {
    "": "/settings",
    "/status": "/settings",
    "/rotate": "/credentials",
    "/end-secret": "/credentials",
    "/webhooks": "/webhooks",
    "/team": "/team",
}
"""The tabs of an app whose forms have these addresses."""
WRITING = ("post", "put", "patch", "delete")


class GuardedPage(ReauthPage):
    """A page whose forms may require re-authentication. Without a recent one, the person gets a page that asks for it,
    keeps what was typed, and sends the form again."""

    uses_scripts = False
    _moved: Session | None = None

    def initialize(self, policy: Policy) -> None:
        """Keeps the route's policy and the rules of its form."""
        super().initialize(policy)
        self.guard = policy.post or PersonPost("")

    def session(self) -> Session | None:
        """The session in the cookie, or its successor after a re-authentication with this form."""
        return self._moved or super().session()

    async def prepare(self) -> None:  # type: ignore[override]  # Tornado awaits it
        """Asks for the re-authentication that the form's rules require. After it, the handler runs."""
        super().prepare()
        if self.request.method == "POST" and self.guard.reauth in (ReauthRule.RECENT, ReauthRule.CURRENT):
            self.check_same_origin()
            await self.reauth_first(self.require_session(), self.body())

    async def reauth_first(self, session: Session, params: Params) -> None:
        """Accepts the re-authentication in the form, or asks for one. Raises SignedOut, Refused."""
        if self.guard.excuses(params.get):
            return
        if self.has_reauth(params):
            try:
                cookie = await self.take_reauth(session, params)
            except ReauthFailed as wrong:
                mails.codes_guessed(self.site, session.user, wrong.notice, self.visitor)
                return await self.ask(await self.store.factors.of(session), params, wrong)
            return self.move_to(cookie)
        factors = await self.store.factors.of(session)
        demanded = factors.second or not factors.has_password or self.guard.reauth is ReauthRule.RECENT
        if demanded and not factors.proved:
            await self.ask(factors, params)

    def has_reauth(self, params: Params) -> bool:
        """Whether the form comes from the page that asks for re-authentication."""
        return bool(params.get(PASSWORD) or params.get(CREDENTIAL) or params.get(CODE))

    async def take_reauth(self, session: Session, params: Params) -> str:
        """The cookie of the re-authenticated session. Raises ReauthFailed, Refused("rate_limited"), HasherBusy."""
        reauth = self.store.reauth
        if params.get(CREDENTIAL):
            return await reauth.with_passkey(session, *self.read_passkey(params), self.visitor)
        return await reauth.with_password(session, params.get(PASSWORD) or "", params.get(CODE) or "", self.visitor)

    def move_to(self, cookie: str) -> None:
        """Moves the session to a new cookie. Forms in the answer get a matching XSRF token."""
        self.write_session(cookie)
        self._moved = self.store.sessions.open(cookie)
        renew_xsrf_token(self)

    def came_back_to(self) -> str:
        """The page of the form: the tab of an app, the longest start of the address that is a page, or the address."""
        if found := re.fullmatch(r"(/developer/apps/[^/]+)(/[a-z-]+)?", self.request.path):
            return found[1] + _TABS.get(found[2] or "", "")
        found = re.match(
            r"/developer/apps/[^/]+/(?:webhooks|team)|/developer/apis/[^/]+|/account/apps(?:/[^/]+/data)?",
            self.request.path,
        )
        return found[0] if found else self.request.path

    async def ask(self, factors: Factors, params: Params, wrong: ReauthFailed | None = None) -> None:
        """The page that asks for re-authentication. Keeps what was typed, except secrets."""
        if self.wants_json():
            raise Refused("access_denied", wrong.text if wrong else REAUTH_FIRST)
        self.uses_scripts = True
        self.allow_form_to()
        self.set_status(400 if wrong else 403)
        self.render(
            "account/confirm_yourself.html",
            title=Phrase("Confirm it’s you"),
            signed_in=factors,
            factors=factors,
            confirm_with=self.confirm_with(factors),
            link_key=self.link_key(),
            does=Phrase.known(self.guard.does),
            action=self.request.path,
            back=self.came_back_to(),
            kept=[(name, params.get(name) or "") for name in params.names() if self.guard.kept(name)],
            error=wrong.text if wrong else None,
            wrong=wrong.part if wrong else "",
            passkeys_offered=self.site.relying_party is not None,
        )


def check_posts(routes: Iterable[Route]) -> None:
    """Raises WrongRoute unless every form of a page has its rules, and no other row has any."""
    for route in routes:
        writes = any(method in vars(kind) for kind in route.handler.__mro__[:-2] for method in WRITING)
        if route.post is None:
            if route.policy.xsrf and writes:
                raise WrongRoute(f"{route.name}: a form without its rules")
            continue
        if not (route.policy.xsrf and writes):
            raise WrongRoute(f"{route.name}: rules without a form")
        if route.post.mailed != bool(route.post.windows):
            raise WrongRoute(f"{route.name}: mailed about without a window, or a window without mails")
        if route.post.reauth in (ReauthRule.RECENT, ReauthRule.CURRENT) and not issubclass(route.handler, GuardedPage):
            raise WrongRoute(f"{route.name}: demands re-authentication, and its handler asks for none")
