"""The pages of an account: profile, e-mail address, connected apps, deletion."""

from __future__ import annotations

from handlers.account.address_pages import ChangeHandler, EmailHandler, UndoHandler
from handlers.account.connected_apps import (
    AppsHandler,
    EndHandedOnHandler,
    HomeHandler,
    PauseAppHandler,
    ResumeAppHandler,
    RevokeAppHandler,
    SpendLimitHandler,
)
from handlers.account.deletion import DeleteAccountHandler, DeletedHandler, DeleteOptionsHandler, DownloadHandler
from handlers.account.email_links import SendAgainHandler
from handlers.account.language import LanguageHandler
from handlers.account.live import LiveAppsHandler
from handlers.account.pictures import PictureHandler
from handlers.account.profile import AccountHandler, HidePasskeyOfferHandler, RemovePictureHandler, UploadHandler
from handlers.core.brand.assets import BrandHandler
from handlers.core.person_posts import (
    ACTIVITY,
    AGAIN,
    BY_PASSKEY,
    NOTHING_LASTS,
    PERSON,
    REAUTH_WINDOWS,
    UNSPENT,
    PersonPost,
    ReauthRule,
)
from handlers.core.policy import LAST_PAGE, OPEN, PAGE
from handlers.core.route import CLIENT, Route
from store.lifetimes import MAIL, MAIL_RESET, SPENDING_MAIL

ROUTES: tuple[Route, ...] = (
    Route(r"/", HomeHandler, "home", PAGE),
    Route(r"/account", AccountHandler, "account", PAGE, PersonPost("change your name", tells=(ACTIVITY,), undo=AGAIN)),
    Route(
        r"/account/passkey-offer",
        HidePasskeyOfferHandler,
        "account-passkey-offer",
        PAGE,
        PersonPost("hide the passkey offer", undo="add a passkey under Security"),
    ),
    Route(
        r"/account/language",
        LanguageHandler,
        "account-language",
        PAGE,
        PersonPost("change your language and time zone", tells=(ACTIVITY,), undo=AGAIN),
    ),
    Route(
        r"/account/email",
        EmailHandler,
        "account-email",
        PAGE,
        PersonPost(
            "change your e-mail address", ReauthRule.CURRENT, (ACTIVITY,), NOTHING_LASTS, keeps=("email",), once=True
        ),
    ),
    Route(
        r"/account/email/confirm",
        SendAgainHandler,
        "account-email-confirm",
        PAGE,
        PersonPost("get the e-mail again", tells=(PERSON,), undo=NOTHING_LASTS, windows=(MAIL,)),
    ),
    Route(
        r"/account/email/change",
        ChangeHandler,
        "account-email-change",
        PAGE,
        PersonPost(
            "change your e-mail address with an e-mailed link",
            tells=(ACTIVITY, PERSON),
            undo="the link mailed to the old address, for 7 days",
            windows=(MAIL,),
        ),
    ),
    Route(
        r"/account/email/undo",
        UndoHandler,
        "account-email-undo",
        LAST_PAGE,
        PersonPost(
            "take your account back with an e-mailed link",
            session=False,
            tells=(ACTIVITY, PERSON),
            undo="change it again",
            windows=(MAIL_RESET,),
        ),
    ),
    Route(
        r"/account/picture",
        UploadHandler,
        "account-picture",
        PAGE,
        PersonPost("change your picture", tells=(ACTIVITY,), undo=AGAIN),
    ),
    Route(
        r"/account/picture/remove",
        RemovePictureHandler,
        "account-picture-remove",
        PAGE,
        PersonPost("remove your picture", tells=(ACTIVITY,), undo="upload it again"),
    ),
    Route(r"/account/download", DownloadHandler, "account-download", PAGE),
    Route(
        r"/account/delete",
        DeleteAccountHandler,
        "account-delete",
        PAGE,
        PersonPost("delete your account", ReauthRule.THERE, (PERSON,), windows=REAUTH_WINDOWS),
    ),
    Route(
        r"/account/delete/options",
        DeleteOptionsHandler,
        "account-delete-options",
        PAGE,
        BY_PASSKEY,
    ),
    Route(r"/account/deleted", DeletedHandler, "account-deleted", PAGE),
    Route(r"/picture/([^/]+)", PictureHandler, "picture", OPEN),
    Route(r"/brand/([^/]+)", BrandHandler, "brand", OPEN),
    Route(r"/account/apps", AppsHandler, "account-apps", PAGE),
    Route(r"/account/apps/live", LiveAppsHandler, "account-apps-live", PAGE),
    Route(
        rf"/account/apps/{CLIENT}/revoke",
        RevokeAppHandler,
        "account-app-revoke",
        PAGE,
        PersonPost("disconnect an app", tells=(ACTIVITY,), undo="connect it again within 30 days"),
    ),
    Route(
        rf"/account/apps/{CLIENT}/end",
        EndHandedOnHandler,
        "account-app-end",
        PAGE,
        PersonPost("end access that an app handed on", tells=(ACTIVITY,), undo="the app hands it on again"),
    ),
    Route(
        rf"/account/apps/{CLIENT}/pause",
        PauseAppHandler,
        "account-app-pause",
        PAGE,
        PersonPost("pause an app", tells=(ACTIVITY,), undo="resume it"),
    ),
    Route(
        rf"/account/apps/{CLIENT}/resume",
        ResumeAppHandler,
        "account-app-resume",
        PAGE,
        PersonPost("resume an app", tells=(ACTIVITY,), undo="pause it"),
    ),
    Route(
        rf"/account/apps/{CLIENT}/limit",
        SpendLimitHandler,
        "account-app-limit",
        PAGE,
        PersonPost(
            "change an app’s spending limit",
            ReauthRule.RECENT,
            (ACTIVITY, PERSON),
            UNSPENT,
            keeps=("dollars", "page"),
            windows=(SPENDING_MAIL,),
        ),
    ),
)
