"""The rules of each form for people: re-authentication, notices and undo. Each row of the route map with a form names
its rules. The server refuses to start if a form has none, and tests send each form with a stolen cookie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from store.apps.owners.roles import Act
from store.lifetimes import (
    CHANGE_APP,
    OWN_PASSKEY,
    OWN_PASSWORDS,
    SIGN_IN_ACCOUNT,
    SIGN_IN_DEVICES,
    Group,
)


class ReauthRule(Enum):
    """How a form makes sure of the person's identity, in addition to the session."""

    NONE = "none"
    RECENT = "recent"
    """The person entered the password within the last 10 minutes, or used the second step if they have
    one."""
    CURRENT = "current password"
    """The form has the current password. A person with a second step also used it, as for RECENT."""
    THERE = "re-authentication in the form"
    """The form itself has everything that a sign-in needs."""


ACTIVITY, PERSON, OWNER = "activity", "mail to the person", "mail to the owner"


@dataclass(frozen=True, slots=True)
class PersonPost:
    """`does` says what the form does, as in "you asked to …". `session`: False if the form works signed out, with what
    it contains. `tells`: where the person, or the owner of the app, learns of it. `undo`: how to undo it, empty if
    nobody can. `excused`: a field and the value that makes re-authentication unnecessary. `keeps`: the fields that are
    kept while the person re-authenticates, a star for any ending; never a secret. `once`: with a second step, a
    re-authentication is good for one such change. `windows`: each mail about the form took a place in one of these, so
    they limit the mails; a form that tells by mail has at least one. `act`: what the form does to an app, for the roles
    of its team."""

    does: str
    reauth: ReauthRule = ReauthRule.NONE
    tells: tuple[str, ...] = ()
    undo: str = ""
    session: bool = True
    excused: tuple[str, str] | None = None
    keeps: tuple[str, ...] = ()
    once: bool = False
    windows: tuple[Group, ...] = ()
    act: Act | None = None

    @property
    def mailed(self) -> bool:
        """Whether the form causes a mail."""
        return bool({PERSON, OWNER} & set(self.tells))

    def excuses(self, get: Callable[[str], str | None]) -> bool:
        """Whether the form needs no re-authentication. `get` reads its fields."""
        return self.excused is not None and get(self.excused[0]) == self.excused[1]

    def kept(self, name: str) -> bool:
        """Whether a field is kept while the person re-authenticates."""
        return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in self.keeps)


SIGN_INS = (SIGN_IN_ACCOUNT, SIGN_IN_DEVICES)
REAUTH_WINDOWS = (OWN_PASSWORDS, OWN_PASSKEY)
CHANGES = (CHANGE_APP,)
"""The window of changes to an app. To disable an app or to end a secret takes no place: what they end took one."""
NOTHING_LASTS = "nothing lasts"
AGAIN = "change it back"
FIRST_UNDO = "remove it; a first second step also by the mailed link, for 7 days"
UNSPENT = "disconnect the app; what it spent is spent"
APP_FORM = (
    "name",
    "homepage",
    "redirect_uris",
    "auth_method",
    "jwks",
    "jwks_uri",
    "pkce_required",
    "require_pushed",
    "dpop_required",
    "owner_second_step",
    "device_grant",
    "id_token_alg",
    "subject_type",
    "hosted_storage",
    "omit_iss",
    "refresh_retry_seconds",
    "apis",
    "had",
    "refresh_lifetime_days",
    "post_logout_redirect_uris",
    "backchannel_logout_uri",
    "scope:*",
)
API_FORM = ("name", "token_format", "signing_alg", "token_lifetime", "scope_*", "scopes")


BY_PASSKEY = PersonPost("use a passkey", undo=NOTHING_LASTS)
"""The challenge for a passkey, which a script on the page requests."""


def factor(does: str, undo: str, tells: tuple[str, ...] = (ACTIVITY, PERSON)) -> PersonPost:
    """The rules of a form that changes how a person signs in."""
    windows = REAUTH_WINDOWS if PERSON in tells else ()
    return PersonPost(does, ReauthRule.RECENT, tells, undo, once=True, windows=windows)


def operators_form(does: str, undo: str = "", keeps: tuple[str, ...] = ()) -> PersonPost:
    """The rules of a form of operators. The person whom it concerns sees it in their activity."""
    return PersonPost(does, ReauthRule.RECENT, (ACTIVITY,), undo, keeps=keeps)
