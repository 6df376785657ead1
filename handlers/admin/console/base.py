"""The base class of the console: session, role, second step, and what every page shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tornado.web import HTTPError

from handlers.account.reauth_forms import WRITING, GuardedPage
from handlers.admin.operator_mails import ROLE_NAMES
from handlers.core.page import Onward
from handlers.core.params import Params, once, parse_pairs
from handlers.core.person_posts import ReauthRule
from handlers.core.route import Route, WrongRoute
from store.accounts.signin.sessions import Session
from store.names import is_user_id
from store.operators.roles import ALLOWED, PEOPLES_ROLES, OperatorAct, OperatorActor, OperatorRole, check_act, may
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile

CONSOLE = "/admin"
BACK = Onward(CONSOLE, Phrase("Back to the console"))
SET_UP = Onward("/account/security", Phrase("Set up two-step verification"))
SECOND_STEP = Phrase(
    "Your role works only with two-step verification. Set up a passkey or an authenticator app, and sign in with it."
)
SIGN_IN_AGAIN = Phrase(
    "Your role works only when you sign in with two-step verification. Sign out, then sign in with it."
)
ROLE_TOO_LOW = Phrase("Your role, %(role)s, doesn’t allow this. Ask someone with the role %(needed)s.")
ADMIN_ONLY = Phrase("This person has a role too, so only an administrator may do this.")


class ConsolePage(GuardedPage):
    """A page for people with a role. The route's policy names the act of each method, which the table in
    `store/operators/roles.py` gives to roles. To everybody else the page does not exist."""

    came_from = CONSOLE
    actor: OperatorActor
    """Who is signed in, with the role of this moment."""
    person: Profile
    """The profile of the same person."""

    def check_xsrf_cookie(self) -> None:
        """Does nothing yet: a stranger's form must get the answer of an unknown path. `prepare` checks the token."""

    async def prepare(self) -> None:  # type: ignore[override]  # Tornado awaits it
        """Raises SignedOut; Refused("not_found") for people without a role; Refused("access_denied") without a second
        step; Refused("insufficient_role"); HTTPError for a method without an act. Then asks for the re-authentication
        that a form requires."""
        session = self.require_session()
        self.person = await self.store.sessions.profile(session)
        found = await self.store.role_holders.in_session(session)
        if found is None:
            raise Refused("not_found")
        if not found.works:
            await self._refuse_one_step(session)
        self.actor = OperatorActor("person", session.user, found.role)
        self.onward = BACK
        act = self.policy.act_of(self.request.method or "")
        if act is None:
            raise HTTPError(405)
        try:
            check_act(self.actor, act)
        except Refused:
            self._sign()
            self.store.security.note("operator_refused", detail=f"{act} {self.policy.route}")
            raise
        if self.request.method not in ("GET", "HEAD"):
            super().check_xsrf_cookie()
        await super().prepare()
        # What came before is the person's own act: a wrong password is not noted as an operator's.
        self._sign()

    def _sign(self) -> None:
        """What this request does from here on is noted with the operator's name."""
        self.request.latchkey_operator = self.actor  # type: ignore[attr-defined]  # our own attribute

    async def _refuse_one_step(self, session: Session) -> None:
        if (await self.store.factors.of(session)).second:
            self.sign_out_to = CONSOLE
            raise Refused("access_denied", SIGN_IN_AGAIN)
        self.onward = SET_UP
        raise Refused("access_denied", SECOND_STEP)

    def may(self, act: OperatorAct) -> bool:
        """Whether the role allows an act."""
        return may(self.actor.role, act)

    def asked(self) -> Params:
        """The parameters of the address."""
        return once(parse_pairs(self.request.query))

    def came_back_to(self) -> str:
        """The page of the form: its address without the last part."""
        return self.request.path.rpartition("/")[0]

    def words_for(self, refusal: Refused) -> str:
        """The text of an error page: who may do it, if this role may not."""
        if refusal.code != "insufficient_role":
            return with_role_names(super().words_for(refusal))
        act = self.policy.act_of(self.request.method or "")
        if act is None or self.may(act):
            return ADMIN_ONLY
        allowed = [role for role in PEOPLES_ROLES if role in ALLOWED[act]]
        return ROLE_TOO_LOW.filled(role=role_name(self.actor.role), needed=role_name(allowed[0]))

    async def names_of(self, ids: Iterable[str]) -> dict[str, str]:
        """The names of apps and APIs by their client ids; the id of one that is gone."""
        found: dict[str, str] = {}
        for client_id in dict.fromkeys(filter(None, ids)):
            app = await self.store.apps.remembered(client_id) or await self.store.apis.find(client_id)
            found[client_id] = app.name if app else client_id
        return found

    async def addresses_of(self, users: Iterable[str]) -> dict[str, str]:
        """The e-mail addresses by user id, of those who still have an account. Reads all at once."""
        wanted = dict.fromkeys(user for user in users if is_user_id(user))
        return {one.user: one.email for one in await self.store.teams.persons(wanted)}

    def show_page(self, template: str, here: str, title: str, *, scripts: bool = False, **values: Any) -> None:
        """Renders a page of the console. `here`: the address of its entry in the navigation; `scripts`: it has scripts
        of ours. Only here, so that strangers cannot tell such a page from one that does not exist."""
        if scripts:
            self.uses_scripts = True
            self.allow_form_to()
        known = {"signed_in": self.person, "here": here, "title": title, "notice": None}
        frame = {"role": role_name(self.actor.role), "may": self.may, "query": ""}
        self.render(template, **{**known, **frame, **values})


def role_name(role: OperatorRole) -> str:
    """The name of a role that people have."""
    return ROLE_NAMES[role]


def with_role_names(text: str) -> str:
    """The text, with the name of a role as people know it."""
    if not isinstance(text, Phrase) or text.values.get("role") not in PEOPLES_ROLES:
        return text
    return text.filled(**{**text.values, "role": role_name(text.values["role"])})


def check_console(routes: Iterable[Route]) -> None:
    """Raises WrongRoute unless each page of the console names the act of every method that it answers, asks for the
    role, and confirms every form."""
    for route in routes:
        if not (route.pattern == CONSOLE or route.pattern.startswith(f"{CONSOLE}/")):
            continue
        if not issubclass(route.handler, ConsolePage):
            raise WrongRoute(f"{route.name}: a page of the console, and its handler asks for no role")
        methods = {
            name.upper()
            for name in ("get", *WRITING)
            if any(name in vars(kind) for kind in route.handler.__mro__[:-2] if kind.__module__.startswith(_HERE))
        }
        if methods != dict(route.policy.acts).keys():
            raise WrongRoute(f"{route.name}: a page of the console names the act of each of its methods")
        if route.post and route.post.reauth is not ReauthRule.RECENT:
            raise WrongRoute(f"{route.name}: a form of the console needs a recent re-authentication")


_HERE = __name__.rpartition(".")[0]
