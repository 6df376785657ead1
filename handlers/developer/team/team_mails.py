"""The mails about an app that several people see: invitations to its team, and changes by one of them."""

from __future__ import annotations

from collections.abc import Sequence

from handlers.core import mails
from handlers.core.site import Site
from store.apps.owners.members import owners_of
from store.apps.owners.team import Team
from store.apps.registration import Registration
from store.phrases import Phrase
from store.results import NO_CHOICE, Profile, Visitor


def called(person: Profile | None) -> str:
    """How mails name a member of a team."""
    return person.email if person else Phrase("A deleted account")


async def invite(site: Site, team: Team, email: str, link: str, asker: str) -> None:
    """Mails an invitation. Its text names the app by its id, because its owners choose the name, and the inviter by an
    address that is confirmed."""
    known = await site.store.people.credentials(email)
    wording = mails.spoken(site, known.preferences if known else NO_CHOICE)
    address = f"{site.base_url}/developer/invitation?link={link}"
    who, user = team.profile.email, team.profile.user
    mails.write(site, "team_invitation", email, user, wording, asker, link=address, who=who, client=team.app.client_id)


async def changed(
    site: Site,
    profile: Profile,
    apps: tuple[Registration, Registration],
    lines: Sequence[str],
    visitor: Visitor,
    also: Sequence[Profile] = (),
) -> None:
    """Tells all owners of an app, before and after, and some others, what one of its team changed, in lines. Whoever
    changed it also learns from where: it may have been somebody else."""
    if not lines:
        return
    mails.app_changed(site, profile, apps[0], lines, visitor)
    owners = dict.fromkeys(user for app in apps for user in owners_of(app))
    told = {one.user: one for one in also} | {
        one.user: one for one in await site.store.teams.persons(user for user in owners if user != profile.user)
    }
    told.pop(profile.user, None)
    for person in told.values():
        _tell(site, person, profile, apps[0], lines, visitor)


async def deleted(site: Site, by: str, app: Registration, visitor: Visitor) -> None:
    """Tells the other owners of an app that one of them, the user `by`, deleted it."""
    others = [user for user in owners_of(app) if user != by]
    if others and (profile := await site.store.teams.person(by)):
        for person in await site.store.teams.persons(others):
            _tell(site, person, profile, app, [Phrase("Deleted")], visitor)


def _tell(site: Site, person: Profile, by: Profile, app: Registration, lines: Sequence[str], visitor: Visitor) -> None:
    listing = mails.listed(mails.spoken(site, person.warned.preferences), lines)
    values = {"who": by.email, "name": app.name, "client": app.client_id, "lines": listing}
    mails.tell(site, "app_changed", person.warned, by.user, visitor, **values)
