"""/developer/apps and /developer/register: a person's own apps, and the form for a new one."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from handlers.account.reauth_forms import GuardedPage
from handlers.core.lists.paging import part_of
from handlers.core.params import Params
from handlers.core.scopes import SCOPE_WORDS
from handlers.developer.api_boxes import ApiBoxes, api_boxes, scopes_of
from handlers.developer.app_form import AppForm
from handlers.developer.team import team_mails
from handlers.developer.team.acts import TeamPage
from handlers.developer.team.role_names import ROLE_NAMES
from store.accounts.signin.sessions import Session
from store.apps.owners.owned import Owned
from store.apps.registration import Registration
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile

PAGE = 25
"""Own apps, and those of teams, on a page."""
NOTICES = {
    "left": Phrase("You left the team."),
    "deleted": Phrase("The app was deleted. For 30 days, people can view and download what it stored for them."),
}


class DeveloperPage(GuardedPage, TeamPage):
    """Shared by the pages of the portal. The scripts copy values and show the numbers of charts."""

    uses_scripts = True

    async def reauth_first(self, session: Session, params: Params) -> None:
        """Checks the person's role before asking them to re-authenticate. Raises SignedOut, Refused."""
        if self.act:
            await self.own(self.path_args[0])
        await super().reauth_first(session, params)

    def tell_owner(self, profile: Profile, app: Registration, *lines: str) -> None:
        """Mails the changes to all owners and to whoever made them. `app` is the registration before the change."""
        self.site.in_background(team_mails.changed(self.site, profile, (app, app), lines, self.visitor))

    async def offered(self, app: Registration | None = None) -> list[ApiBoxes]:
        """The scopes of APIs that this app, or a new one, may have."""
        return api_boxes(await self.store.apis.every(), scopes_of(app), self.require_session().user)

    def may_register(self) -> bool:
        """Whether this person may register apps."""
        return self.site.app_registration == "everybody"


class OwnedAppsHandler(DeveloperPage):
    """The list of apps."""

    async def get(self) -> None:
        """Shows the person's own apps."""
        owned = await self.store.owned.list(self.require_session())
        self.render(
            "developer/apps.html",
            title=Phrase("Your apps"),
            signed_in=owned.profile,
            owned=owned,
            listed=part_of(own_rows(owned), PAGE, self.page_asked("apps"), "/developer/apps", "apps", "list"),
            joined=part_of(owned.joined, PAGE, self.page_asked("teams"), "/developer/apps", "teams", "teams"),
            role_names=ROLE_NAMES,
            open=self.may_register(),
            full=len(owned) >= self.site.apps_per_person,
            most=self.site.apps_per_person,
            most_days=self.store.tokens.refresh_days,
            apis=await self.store.owned_apis.of(owned.profile.user),
            notice=self.notice(NOTICES),
        )


def own_rows(owned: Owned) -> list[tuple[str, Any]]:
    """A person's own apps as the list shows them, each with its kind."""
    kinds: tuple[tuple[str, Sequence[Any]], ...] = (
        ("app", owned.apps),
        ("deleting", owned.deleting),
        ("deleted", owned.deleted),
    )
    return [(kind, one) for kind, rows in kinds for one in rows]


class FormPage(DeveloperPage):
    """The page with the form for a new app."""

    async def prepare(self) -> None:  # type: ignore[override]  # Tornado awaits it
        """Raises Refused("access_denied") if only the operator registers apps."""
        await super().prepare()
        if not self.may_register():
            raise Refused(
                "access_denied",
                Phrase("Only the operator of this server can register apps. Ask them to register yours."),
            )

    async def get(self) -> None:
        """Shows the form."""
        profile = await self.store.sessions.profile(self.require_session())
        self.show_form(profile, AppForm(nonce=secrets.token_urlsafe(16)), await self.offered())

    def show_form(self, profile: Profile, form: AppForm, apis: list[ApiBoxes]) -> None:
        """The form, with errors in their fields."""
        if form.errors:
            self.set_status(400)
        self.render(
            "developer/register.html",
            title=Phrase("Register an app"),
            signed_in=profile,
            form=form,
            words=SCOPE_WORDS,
            apis=apis,
            kind_open=True,
            must_pkce=self.site.require_pkce,
        )
