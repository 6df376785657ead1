"""The routes of the pages about the team of an app."""

from __future__ import annotations

from handlers.core.person_posts import ACTIVITY, AGAIN, CHANGES, OWNER, PersonPost, ReauthRule
from handlers.core.policy import PAGE
from handlers.core.route import CLIENT, Route
from handlers.developer.team.invitation import InvitationHandler
from handlers.developer.team.members import LeaveTeamHandler, RemoveHandler, RoleHandler, TeamHandler, WithdrawHandler
from store.lifetimes import INVITE_MEMBER

TEAM = rf"/developer/apps/{CLIENT}/team"

ROUTES: tuple[Route, ...] = (
    Route(
        TEAM,
        TeamHandler,
        "developer-team",
        PAGE,
        PersonPost(
            "invite someone to the team of your app",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            "withdraw it",
            keeps=("email", "role"),
            windows=(INVITE_MEMBER, *CHANGES),
            act="team",
        ),
        act="see",
    ),
    Route(
        rf"{TEAM}/role",
        RoleHandler,
        "developer-team-role",
        PAGE,
        PersonPost(
            "change a role in the team of your app",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            AGAIN,
            keeps=("member", "role"),
            windows=CHANGES,
            act="team",
        ),
    ),
    Route(
        rf"{TEAM}/remove",
        RemoveHandler,
        "developer-team-remove",
        PAGE,
        PersonPost(
            "remove someone from the team of your app",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            "invite them again",
            keeps=("member",),
            windows=CHANGES,
            act="team",
        ),
    ),
    Route(
        rf"{TEAM}/withdraw",
        WithdrawHandler,
        "developer-team-withdraw",
        PAGE,
        PersonPost("withdraw an invitation", tells=(ACTIVITY,), undo="invite them again", act="team"),
    ),
    Route(
        rf"{TEAM}/leave",
        LeaveTeamHandler,
        "developer-team-leave",
        PAGE,
        PersonPost("leave the team of an app", ReauthRule.RECENT, (ACTIVITY, OWNER), windows=CHANGES, act="leave"),
    ),
    Route(
        r"/developer/invitation",
        InvitationHandler,
        "developer-invitation",
        PAGE,
        PersonPost("join the team of an app", tells=(ACTIVITY, OWNER), undo="leave it", windows=CHANGES),
    ),
)
