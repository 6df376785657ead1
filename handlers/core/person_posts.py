"""The rules of each form for people: its confirmation, its notices and how to undo it. The server refuses to start
while a form of a page has no row here, and tests send each with a stolen cookie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from store.lifetimes import (
    CHANGE_APP,
    MAIL,
    MAIL_RESET,
    OWN_PASSKEY,
    OWN_PASSWORDS,
    REGISTER_APP,
    SIGN_IN_ACCOUNT,
    SIGN_IN_ADDRESS,
    SIGN_IN_DEVICES,
    SPENDING_MAIL,
    Group,
)


class Confirm(Enum):
    """How a form makes sure of the person, beyond the session."""

    NONE = "none"
    RECENT = "recent"
    """The person typed the password again within 10 minutes, or confirmed with the second step where they have one."""
    CURRENT = "current password"
    """The form carries the current password; a person with a second step also confirmed with it, as for RECENT."""
    THERE = "then and there"
    """The form itself carries everything that a sign-in takes."""


ACTIVITY, PERSON, OWNER = "activity", "mail to the person", "mail to the owner"


@dataclass(frozen=True, slots=True)
class PersonPost:
    """`does` says what the form does, as in "you asked to …". `session`: False where it works signed out, by what is in
    the form. `tells`: where the person, or the owner of the app, learns of it. `undo`: how it is undone, empty where
    nobody can. `excused`: a field and the value with which no confirmation is needed. `keeps`: the fields that stay
    while the person confirms, a star for every ending; never a secret. `once`: with a second step, a confirmation is
    good for one such change. `windows`: each mail about the form took a place in one of these, so they bound the
    mails; every row that tells by mail has some."""

    does: str
    confirm: Confirm = Confirm.NONE
    tells: tuple[str, ...] = ()
    undo: str = ""
    session: bool = True
    excused: tuple[str, str] | None = None
    keeps: tuple[str, ...] = ()
    once: bool = False
    windows: tuple[Group, ...] = ()

    @property
    def mailed(self) -> bool:
        """Whether the form has a mail sent."""
        return bool({PERSON, OWNER} & set(self.tells))

    def excuses(self, get: Callable[[str], str | None]) -> bool:
        """Whether a form needs no confirmation; `get` reads its fields."""
        return self.excused is not None and get(self.excused[0]) == self.excused[1]

    def kept(self, name: str) -> bool:
        """Whether a field stays while the person confirms."""
        return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in self.keeps)


SIGN_INS = (SIGN_IN_ACCOUNT, SIGN_IN_DEVICES)
CONFIRMATIONS = (OWN_PASSWORDS, OWN_PASSKEY)
CHANGES = (CHANGE_APP,)
"""Of an app. To switch one off and to end a secret take no place: what they end took one."""
NOTHING_LASTS = "nothing lasts"
AGAIN = "change it back"
FIRST_UNDO = "remove it; a first second step also by the mailed link, for 7 days"
UNSPENT = "disconnect the app; what it spent is spent"
APP_FORM = (
    "name",
    "homepage",
    "redirect_uris",
    "pkce_required",
    "hosted_storage",
    "omit_iss",
    "refresh_retry_seconds",
    "refresh_lifetime_days",
    "scope:*",
)


def _factor(does: str, undo: str, tells: tuple[str, ...] = (ACTIVITY, PERSON)) -> PersonPost:
    windows = CONFIRMATIONS if PERSON in tells else ()
    return PersonPost(does, Confirm.RECENT, tells, undo, once=True, windows=windows)


POSTS: dict[str, PersonPost] = {
    # Signing in and out, and links: what is in the form is the authority.
    "signin": PersonPost("sign in", session=False, tells=(ACTIVITY, PERSON), undo="sign out", windows=SIGN_INS),
    "signin-second": PersonPost("sign in", session=False, tells=(ACTIVITY, PERSON), undo="sign out", windows=SIGN_INS),
    "signin-second-options": PersonPost("use a passkey", session=False, undo=NOTHING_LASTS),
    "signin-passkey": PersonPost(
        "sign in", session=False, tells=(ACTIVITY, PERSON), undo="sign out", windows=(SIGN_IN_ADDRESS,)
    ),
    "signin-passkey-options": PersonPost("use a passkey", session=False, undo=NOTHING_LASTS),
    "signup": PersonPost("sign up", session=False, tells=(ACTIVITY,), undo="delete the account"),
    "signout": PersonPost("sign out", session=False, tells=(ACTIVITY,), undo="sign in"),
    "forgot": PersonPost(
        "have a link mailed that sets a password",
        session=False,
        tells=(PERSON,),
        undo=NOTHING_LASTS,
        windows=(MAIL_RESET,),
    ),
    "reset": PersonPost(
        "set a password by a mailed link",
        session=False,
        tells=(ACTIVITY, PERSON),
        undo="set another",
        windows=(MAIL_RESET,),
    ),
    "confirm": PersonPost("confirm your e-mail address", tells=(ACTIVITY,)),
    # Apps of others.
    "decide": PersonPost("decide what an app may do", tells=(ACTIVITY, PERSON), undo=UNSPENT, windows=(SPENDING_MAIL,)),
    "account-app-revoke": PersonPost("disconnect an app", tells=(ACTIVITY,), undo="connect it again within 30 days"),
    "account-app-limit": PersonPost(
        "change what an app may spend",
        Confirm.RECENT,
        (ACTIVITY, PERSON),
        UNSPENT,
        keeps=("dollars", "page"),
        windows=(SPENDING_MAIL,),
    ),
    "account-data-delete": PersonPost("delete all documents of an app", Confirm.RECENT, (ACTIVITY,)),
    "account-document-delete": PersonPost("delete a document", Confirm.RECENT, (ACTIVITY,)),
    # The account.
    "account": PersonPost("change your name", tells=(ACTIVITY,), undo=AGAIN),
    "account-picture": PersonPost("change your picture", tells=(ACTIVITY,), undo=AGAIN),
    "account-picture-remove": PersonPost("remove your picture", tells=(ACTIVITY,), undo="upload it again"),
    "account-email": PersonPost(
        "change your e-mail address", Confirm.CURRENT, (ACTIVITY,), NOTHING_LASTS, keeps=("email",), once=True
    ),
    "account-email-confirm": PersonPost(
        "have a link mailed again", tells=(PERSON,), undo=NOTHING_LASTS, windows=(MAIL,)
    ),
    "account-email-change": PersonPost(
        "change your e-mail address by a mailed link",
        tells=(ACTIVITY, PERSON),
        undo="the link mailed to the old address, for 7 days",
        windows=(MAIL,),
    ),
    "account-email-undo": PersonPost(
        "take your account back by a mailed link",
        session=False,
        tells=(ACTIVITY, PERSON),
        undo="change it again",
        windows=(MAIL_RESET,),
    ),
    "account-delete": PersonPost("delete your account", Confirm.THERE, (PERSON,), windows=CONFIRMATIONS),
    "account-delete-options": PersonPost("use a passkey", undo=NOTHING_LASTS),
    # How a person signs in.
    "account-security": PersonPost(
        "change your password",
        Confirm.CURRENT,
        (ACTIVITY, PERSON),
        "set another by a mailed link",
        once=True,
        windows=(OWN_PASSWORDS,),
    ),
    "account-confirm": PersonPost("confirm it’s you", Confirm.THERE, undo=NOTHING_LASTS),
    "account-confirm-options": PersonPost("use a passkey", undo=NOTHING_LASTS),
    "account-session-end": PersonPost("sign a device out", tells=(ACTIVITY,), undo="sign in there again"),
    "account-sessions-end": PersonPost("sign all other devices out", tells=(ACTIVITY,), undo="sign in there again"),
    "account-authenticator": _factor("set up an authenticator app", FIRST_UNDO),
    "account-authenticator-remove": _factor("remove the authenticator app", "set it up again"),
    "account-recovery": _factor("make new recovery codes", "make others"),
    "account-passkeys": _factor("add a passkey", FIRST_UNDO),
    "account-passkeys-options": PersonPost("add a passkey", Confirm.RECENT, undo=NOTHING_LASTS),
    "account-passkeys-rename": _factor("rename a passkey", AGAIN, (ACTIVITY,)),
    "account-passkeys-remove": _factor("remove a passkey", "add it again"),
    # Apps of the person's own.
    "developer-register": PersonPost("register an app", tells=(ACTIVITY,), undo="delete it"),
    "developer-app": PersonPost(
        "change your app", Confirm.RECENT, (ACTIVITY, OWNER), AGAIN, keeps=APP_FORM, windows=CHANGES
    ),
    "developer-rotate": PersonPost(
        "make a new client secret", Confirm.RECENT, (ACTIVITY, OWNER), "end it", windows=CHANGES
    ),
    "developer-end-secret": PersonPost(
        "end a client secret", Confirm.RECENT, (ACTIVITY, OWNER), keeps=("mark",), windows=CHANGES
    ),
    "developer-status": PersonPost(
        "switch your app on",
        Confirm.RECENT,
        (ACTIVITY, OWNER),
        AGAIN,
        excused=("status", "off"),
        keeps=("status",),
        windows=CHANGES,
    ),
    "developer-delete": PersonPost("delete your app", Confirm.THERE, (ACTIVITY, OWNER), windows=(REGISTER_APP,)),
    "developer-delete-options": PersonPost("use a passkey", undo=NOTHING_LASTS),
    "developer-try": PersonPost("try your app", undo=NOTHING_LASTS),
    "developer-verify": PersonPost("prove a domain of your app", tells=(ACTIVITY,), undo="change the app"),
    "developer-webhooks": PersonPost(
        "change where events of your app go", Confirm.RECENT, (ACTIVITY, OWNER), AGAIN, keeps=("url",), windows=CHANGES
    ),
    "developer-webhook-secret": PersonPost(
        "make a new signing secret",
        Confirm.RECENT,
        (ACTIVITY, OWNER),
        "make another",
        keeps=("mark", "ends"),
        windows=CHANGES,
    ),
    "developer-webhook-test": PersonPost("send a test event", undo=NOTHING_LASTS),
    "developer-delivery-again": PersonPost("send an event again", undo=NOTHING_LASTS),
}
