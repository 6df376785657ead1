"""Changes of an app's team: each takes a registration and returns the changed one, or refuses.

A registration names its first owner in `owner`, whose quotas the app uses, and everybody else in `members`. One write
changes both, so of two owners who remove each other at the same time, the second one is refused.

An owner is settled a week after they became one: as long as the link in a mail can take a stolen account back. At
least one owner must be settled. So a thief who makes themselves an owner cannot keep the app. An owner who gave a role
in that time does not leave, because taking an account back clears only the teams that the person is in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from store.apps.owners.roles import MOST_MEMBERS, Act, Member, Role, may
from store.apps.registration import Registration
from store.lifetimes import UNDO_LINK
from store.phrases import Phrase
from store.refused import Refused

SETTLED = UNDO_LINK
"""How long after becoming an owner somebody counts as the owner that an app must have, in ms."""
IN_TEAM = Phrase("This person is in the team already.")


def team_of(app: Registration) -> tuple[Member, ...]:
    """Everybody in the team, the first owner first; nobody for an app of the operator's."""
    first = (Member(app.owner, "owner", app.created_at),) if app.owner else ()
    return (*first, *app.members)


def role_of(app: Registration, user: str) -> Role | None:
    """The role of a person in the team of an app; None for everybody else."""
    return next((one.role for one in team_of(app) if one.user == user), None)


def owners_of(app: Registration) -> tuple[str, ...]:
    """The user ids of all owners, the first owner first."""
    return tuple(one.user for one in team_of(app) if one.role == "owner")


def check_may(app: Registration, user: str, act: Act) -> None:
    """Raises Refused("not_found") for somebody who is not in the team, and Refused("access_denied") if their role does
    not allow this."""
    role = role_of(app, user)
    if role is None:
        raise Refused("not_found", Phrase("You have no such app."))
    if not may(role, act):
        raise Refused(
            "access_denied", Phrase("Your role in this app’s team doesn’t allow this. Ask one of its owners.")
        )


def joined(app: Registration, new: Member) -> Registration:
    """The registration with a new member. Raises Refused("invalid_request") for somebody who is in the team, and for a
    full team."""
    if role_of(app, new.user) is not None:
        raise Refused("invalid_request", IN_TEAM)
    if len(team_of(app)) >= MOST_MEMBERS:
        raise Refused("invalid_request", Phrase("The team is full."))
    return replace(app, members=(*app.members, new))


def with_role(app: Registration, user: str, role: Role, by: str, now: int) -> Registration:
    """The registration in which a member has another role, given by an owner, or by the operator (empty), at `now`
    (epoch ms). Raises Refused as `without`."""
    if role_of(app, user) == role:
        return app
    changed = Member(user, role, now, by)
    _check_known(app, user)
    if role_of(app, user) == "owner":
        _check_owner_may_go(app, user, by, now)
    if user == app.owner:
        handed = _handed_on(app, user, now)
        return replace(handed, members=(*handed.members, changed))
    return replace(app, members=tuple(changed if one.user == user else one for one in app.members))


def without(app: Registration, user: str, by: str, now: int) -> Registration:
    """The registration without a member, who leaves (`by` themselves), or is removed by an owner or by the operator
    (empty), at `now` (epoch ms). If the first owner goes, the longest settled other owner is the first one. Raises
    Refused("invalid_request" for somebody who is not in the team, or "access_denied" if no settled owner would be left,
    or if an owner who is not settled would remove one who is)."""
    _check_known(app, user)
    if role_of(app, user) == "owner":
        _check_owner_may_go(app, user, by, now)
    return _handed_on(app, user, now)


def bereft(app: Registration, users: Sequence[str], now: int) -> Registration:
    """The registration after the accounts of members are deleted. If no other owner is left, the app keeps the deleted
    one as its first owner."""
    for user in users:
        if user != app.owner or any(one != user for one in owners_of(app)):
            app = _handed_on(app, user, now)
    return app


def without_given(app: Registration, user: str, since: int) -> Registration:
    """The registration without the members whose role may come from this person's account at `since` (epoch ms) or
    later, while somebody else may have had the account. A role given from then on stays if the operator gave it, or
    somebody whose own role stays, but not this person: members can give each other roles, and leave."""
    team = team_of(app)
    trusted = {one.user for one in team if one.user != user and (one.since < since or not one.by)}
    while found := {one.user for one in team if one.user != user and one.by in trusted} - trusted:
        trusted |= found
    own = next((one for one in team if one.user == user), None)
    if own is None or (own.role != "owner" and (own.since < since or not own.by or own.by in trusted)):
        return app  # the account could give no role
    kept = tuple(one for one in app.members if one.user == user or one.user in trusted)
    return app if kept == app.members else replace(app, members=kept)


def given_to(app: Registration, user: str) -> Registration:
    """The registration with another first owner, whom the operator chose. The one before leaves the team."""
    if user == app.owner:
        return app
    others = tuple(one for one in app.members if one.user != user)
    return replace(app, owner=user, members=others, member_scopes=app.owner_scopes)


def _check_known(app: Registration, user: str) -> None:
    if role_of(app, user) is None:
        raise Refused("invalid_request", Phrase("This person is no longer in the team."))


def _check_owner_may_go(app: Registration, user: str, by: str, now: int) -> None:
    settled = _settled(app, now)
    if not any(one != user for one in settled):
        raise Refused(
            "access_denied",
            Phrase(
                "An app must keep an owner who has been one for at least 7 days. Make someone else an owner, and "
                "try again when they have been one for 7 days."
            ),
        )
    if by == user and without_given(app, user, now - SETTLED + 1) != app:
        raise Refused(
            "access_denied",
            Phrase(
                "You gave someone a role in the last 7 days, or someone who has left did. Remove the person with "
                "that role first, or wait, or ask another owner to remove you."
            ),
        )
    if by not in ("", user) and user in settled and by not in settled:
        raise Refused(
            "access_denied", Phrase("You can change the role of this owner when you have been one for 7 days yourself.")
        )


def _settled(app: Registration, now: int) -> Collection[str]:
    """The owners who have been owners for a week, or whom the operator chose, the longest first."""
    owners = [one for one in team_of(app) if one.role == "owner"]
    return [one.user for one in owners if one.user == app.owner or not one.by or one.since + SETTLED <= now]


def _handed_on(app: Registration, user: str, now: int) -> Registration:
    others = tuple(one for one in app.members if one.user != user)
    if user != app.owner:
        return replace(app, members=others)
    owners = [one for one in owners_of(app) if one != user]
    heir = next((one for one in _settled(app, now) if one != user), owners[0])
    # The API of the new owner gives this app nothing that the new owner did not choose.
    return replace(
        app,
        owner=heir,
        members=tuple(one for one in others if one.user != heir),
        member_scopes=app.owner_scopes,
    )
