"""The routes to sign in and out, and of the pages that change how a person signs in."""

from __future__ import annotations

from handlers.account.activity import ActivityHandler
from handlers.account.chooser import ChooserHandler, UnlistHandler
from handlers.account.email_links import ConfirmHandler, ForgotHandler, ResetHandler
from handlers.account.factors import (
    AddPasskeyHandler,
    AuthenticatorHandler,
    NewPasskeyOptionsHandler,
    RecoveryHandler,
    RemoveAuthenticatorHandler,
    RemovePasskeyHandler,
    RenamePasskeyHandler,
)
from handlers.account.second_step import (
    PasskeyOptionsHandler,
    PasskeySignInHandler,
    SecondOptionsHandler,
    SecondStepHandler,
)
from handlers.account.security import (
    EndOtherSessionsHandler,
    EndSessionHandler,
    ReauthHandler,
    ReauthOptionsHandler,
    SecurityHandler,
)
from handlers.account.setup.page import SetUpAppHandler, SetUpOptionsHandler, SetUpPasskeyHandler
from handlers.account.signin import SignInHandler, SignUpHandler
from handlers.account.signout import SignOutHandler
from handlers.core.person_posts import (
    ACTIVITY,
    AGAIN,
    BY_PASSKEY,
    FIRST_UNDO,
    NOTHING_LASTS,
    PERSON,
    SIGN_INS,
    PersonPost,
    ReauthRule,
    factor,
)
from handlers.core.policy import LAST_PAGE, PAGE
from handlers.core.route import Route
from store.lifetimes import MAIL_RESET, OWN_PASSWORDS, SIGN_IN_ADDRESS

_SET_UP = PersonPost(
    "set up two-step verification",
    session=False,
    tells=(ACTIVITY, PERSON),
    undo=FIRST_UNDO,
    windows=(SIGN_IN_ADDRESS,),
)

ROUTES: tuple[Route, ...] = (
    Route(
        r"/signin",
        SignInHandler,
        "signin",
        PAGE,
        PersonPost("sign in", session=False, tells=(ACTIVITY, PERSON), undo="sign out", windows=SIGN_INS),
    ),
    Route(
        r"/signin/second",
        SecondStepHandler,
        "signin-second",
        LAST_PAGE,
        PersonPost("sign in", session=False, tells=(ACTIVITY, PERSON), undo="sign out", windows=SIGN_INS),
    ),
    Route(
        r"/signin/setup",
        SetUpAppHandler,
        "signin-setup",
        LAST_PAGE,
        _SET_UP,
    ),
    Route(
        r"/signin/setup/passkey",
        SetUpPasskeyHandler,
        "signin-setup-passkey",
        LAST_PAGE,
        _SET_UP,
    ),
    Route(
        r"/signin/setup/passkey/options",
        SetUpOptionsHandler,
        "signin-setup-options",
        LAST_PAGE,
        PersonPost("add a passkey", session=False, undo=NOTHING_LASTS),
    ),
    Route(
        r"/signin/second/options",
        SecondOptionsHandler,
        "signin-second-options",
        LAST_PAGE,
        PersonPost("use a passkey", session=False, undo=NOTHING_LASTS),
    ),
    Route(
        r"/signin/passkey",
        PasskeySignInHandler,
        "signin-passkey",
        LAST_PAGE,
        PersonPost("sign in", session=False, tells=(ACTIVITY, PERSON), undo="sign out", windows=(SIGN_IN_ADDRESS,)),
    ),
    Route(
        r"/signin/passkey/options",
        PasskeyOptionsHandler,
        "signin-passkey-options",
        PAGE,
        PersonPost("use a passkey", session=False, undo=NOTHING_LASTS),
    ),
    Route(
        r"/signup",
        SignUpHandler,
        "signup",
        PAGE,
        PersonPost("sign up", session=False, tells=(ACTIVITY,), undo="delete the account"),
    ),
    Route(
        r"/signin/choose",
        ChooserHandler,
        "signin-choose",
        LAST_PAGE,
        PersonPost("choose an account", session=False, tells=(ACTIVITY,), undo="sign in"),
    ),
    Route(
        r"/signin/choose/remove",
        UnlistHandler,
        "signin-choose-remove",
        LAST_PAGE,
        PersonPost("remove an account from this browser’s list", session=False, undo="sign in with it"),
    ),
    Route(
        r"/signout",
        SignOutHandler,
        "signout",
        LAST_PAGE,
        PersonPost("sign out", session=False, tells=(ACTIVITY,), undo="sign in"),
    ),
    Route(
        r"/confirm", ConfirmHandler, "confirm", LAST_PAGE, PersonPost("confirm your e-mail address", tells=(ACTIVITY,))
    ),
    Route(
        r"/forgot",
        ForgotHandler,
        "forgot",
        PAGE,
        PersonPost(
            "get a link to reset your password",
            session=False,
            tells=(PERSON,),
            undo=NOTHING_LASTS,
            windows=(MAIL_RESET,),
        ),
    ),
    Route(
        r"/reset",
        ResetHandler,
        "reset",
        LAST_PAGE,
        PersonPost(
            "reset your password with an e-mailed link",
            session=False,
            tells=(ACTIVITY, PERSON),
            undo="set another",
            windows=(MAIL_RESET,),
        ),
    ),
    Route(r"/account/security/activity", ActivityHandler, "account-activity", PAGE),
    Route(
        r"/account/security",
        SecurityHandler,
        "account-security",
        PAGE,
        PersonPost(
            "change your password",
            ReauthRule.CURRENT,
            (ACTIVITY, PERSON),
            "set another by a mailed link",
            once=True,
            windows=(OWN_PASSWORDS,),
        ),
    ),
    Route(
        r"/account/security/confirm",
        ReauthHandler,
        "account-confirm",
        PAGE,
        PersonPost("confirm it’s you", ReauthRule.THERE, undo=NOTHING_LASTS),
    ),
    Route(
        r"/account/security/confirm/options",
        ReauthOptionsHandler,
        "account-confirm-options",
        PAGE,
        BY_PASSKEY,
    ),
    Route(
        r"/account/security/sessions/end",
        EndSessionHandler,
        "account-session-end",
        PAGE,
        PersonPost("sign a device out", tells=(ACTIVITY,), undo="sign in there again"),
    ),
    Route(
        r"/account/security/sessions/end-others",
        EndOtherSessionsHandler,
        "account-sessions-end",
        PAGE,
        PersonPost("sign all other devices out", tells=(ACTIVITY,), undo="sign in there again"),
    ),
    Route(
        r"/account/security/authenticator",
        AuthenticatorHandler,
        "account-authenticator",
        PAGE,
        factor("set up an authenticator app", FIRST_UNDO),
    ),
    Route(
        r"/account/security/authenticator/remove",
        RemoveAuthenticatorHandler,
        "account-authenticator-remove",
        PAGE,
        factor("remove the authenticator app", "set it up again"),
    ),
    Route(
        r"/account/security/recovery",
        RecoveryHandler,
        "account-recovery",
        PAGE,
        factor("create new recovery codes", "make others"),
    ),
    Route(
        r"/account/security/passkeys", AddPasskeyHandler, "account-passkeys", PAGE, factor("add a passkey", FIRST_UNDO)
    ),
    Route(
        r"/account/security/passkeys/options",
        NewPasskeyOptionsHandler,
        "account-passkeys-options",
        PAGE,
        PersonPost("add a passkey", ReauthRule.RECENT, undo=NOTHING_LASTS),
    ),
    Route(
        r"/account/security/passkeys/rename",
        RenamePasskeyHandler,
        "account-passkeys-rename",
        PAGE,
        factor("rename a passkey", AGAIN, (ACTIVITY,)),
    ),
    Route(
        r"/account/security/passkeys/remove",
        RemovePasskeyHandler,
        "account-passkeys-remove",
        PAGE,
        factor("remove a passkey", "add it again"),
    ),
)
