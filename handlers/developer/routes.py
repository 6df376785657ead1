"""The routes of the pages on which people register and manage their own apps."""

from __future__ import annotations

from handlers.core.person_posts import (
    ACTIVITY,
    AGAIN,
    APP_FORM,
    BY_PASSKEY,
    CHANGES,
    NOTHING_LASTS,
    OWNER,
    PersonPost,
    ReauthRule,
)
from handlers.core.policy import OPEN, PAGE
from handlers.core.route import CLIENT, DELIVERY, Route
from handlers.developer.app_settings import OwnedAppHandler, SettingsHandler, StatusHandler
from handlers.developer.apps import OwnedAppsHandler
from handlers.developer.credentials import CredentialsHandler, EndSecretHandler, RotateHandler
from handlers.developer.delete import DeleteAppHandler, DeleteAppOptionsHandler
from handlers.developer.delivery import DeliveryHandler, ReplayHandler
from handlers.developer.log import LogHandler
from handlers.developer.logo import ChangeLogoHandler, LogoHandler, RemoveLogoHandler
from handlers.developer.overview import RegisterHandler
from handlers.developer.try_flow import TryHandler
from handlers.developer.usage_page import AppUsageHandler, UsageFileHandler
from handlers.developer.verify import VerifyHandler
from handlers.developer.webhooks import FORM, SigningSecretHandler, TestEventHandler, WebhooksHandler
from store.lifetimes import REGISTER_APP

ROUTES: tuple[Route, ...] = (
    Route(r"/developer/apps", OwnedAppsHandler, "developer-apps", PAGE),
    Route(
        r"/developer/register",
        RegisterHandler,
        "developer-register",
        PAGE,
        PersonPost("register an app", tells=(ACTIVITY,), undo="delete it"),
    ),
    Route(
        rf"/developer/apps/{CLIENT}",
        OwnedAppHandler,
        "developer-app",
        PAGE,
        PersonPost("change your app", ReauthRule.RECENT, (ACTIVITY, OWNER), AGAIN, keeps=APP_FORM, windows=CHANGES),
    ),
    Route(rf"/developer/apps/{CLIENT}/settings", SettingsHandler, "developer-settings", PAGE),
    Route(rf"/developer/apps/{CLIENT}/credentials", CredentialsHandler, "developer-credentials", PAGE),
    Route(rf"/developer/apps/{CLIENT}/log", LogHandler, "developer-log", PAGE),
    Route(rf"/developer/apps/{CLIENT}/usage", AppUsageHandler, "developer-usage", PAGE),
    Route(rf"/developer/apps/{CLIENT}/usage\.csv", UsageFileHandler, "developer-usage-file", PAGE),
    Route(
        rf"/developer/apps/{CLIENT}/rotate",
        RotateHandler,
        "developer-rotate",
        PAGE,
        PersonPost("create a new client secret", ReauthRule.RECENT, (ACTIVITY, OWNER), "end it", windows=CHANGES),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/end-secret",
        EndSecretHandler,
        "developer-end-secret",
        PAGE,
        PersonPost("revoke a client secret", ReauthRule.RECENT, (ACTIVITY, OWNER), keeps=("mark",), windows=CHANGES),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/status",
        StatusHandler,
        "developer-status",
        PAGE,
        PersonPost(
            "switch your app on",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            AGAIN,
            excused=("status", "off"),
            keeps=("status",),
            windows=CHANGES,
        ),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/delete",
        DeleteAppHandler,
        "developer-delete",
        PAGE,
        PersonPost("delete your app", ReauthRule.THERE, (ACTIVITY, OWNER), windows=(REGISTER_APP,)),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/delete/options",
        DeleteAppOptionsHandler,
        "developer-delete-options",
        PAGE,
        BY_PASSKEY,
    ),
    Route(
        rf"/developer/apps/{CLIENT}/try",
        TryHandler,
        "developer-try",
        PAGE,
        PersonPost("try your app", undo=NOTHING_LASTS),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/logo",
        ChangeLogoHandler,
        "developer-logo",
        PAGE,
        PersonPost("change the logo of your app", tells=(ACTIVITY, OWNER), undo=AGAIN, windows=CHANGES),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/logo/remove",
        RemoveLogoHandler,
        "developer-logo-remove",
        PAGE,
        PersonPost("remove the logo of your app", tells=(ACTIVITY, OWNER), undo="upload it again", windows=CHANGES),
    ),
    Route(rf"/logo/{CLIENT}/([A-Za-z0-9_-]{{22}})\.webp", LogoHandler, "logo", OPEN),
    Route(
        rf"/developer/apps/{CLIENT}/verify",
        VerifyHandler,
        "developer-verify",
        PAGE,
        PersonPost("verify a domain of your app", tells=(ACTIVITY,), undo="change the app"),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/webhooks",
        WebhooksHandler,
        "developer-webhooks",
        PAGE,
        PersonPost(
            "change where events of your app go",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            AGAIN,
            keeps=FORM,
            windows=CHANGES,
        ),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/webhooks/rotate",
        SigningSecretHandler,
        "developer-webhook-secret",
        PAGE,
        PersonPost(
            "create a new signing secret",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            "make another",
            keeps=("mark", "ends"),
            windows=CHANGES,
        ),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/webhooks/test",
        TestEventHandler,
        "developer-webhook-test",
        PAGE,
        PersonPost("send a test event", undo=NOTHING_LASTS),
    ),
    Route(rf"/developer/apps/{CLIENT}/webhooks/{DELIVERY}", DeliveryHandler, "developer-delivery", PAGE),
    Route(
        rf"/developer/apps/{CLIENT}/webhooks/{DELIVERY}/again",
        ReplayHandler,
        "developer-delivery-again",
        PAGE,
        PersonPost("send an event again", undo=NOTHING_LASTS),
    ),
)
