"""The routes of the pages on which people register and manage their own apps."""

from __future__ import annotations

from dataclasses import replace

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
from handlers.developer.usage_page import AppUsageHandler, ModelUsageFileHandler, UsageFileHandler
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
        PersonPost(
            "change your app",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            AGAIN,
            keeps=APP_FORM,
            windows=CHANGES,
            act="change",
        ),
        act="see",
    ),
    Route(rf"/developer/apps/{CLIENT}/settings", SettingsHandler, "developer-settings", PAGE, act="see"),
    Route(rf"/developer/apps/{CLIENT}/credentials", CredentialsHandler, "developer-credentials", PAGE, act="change"),
    Route(rf"/developer/apps/{CLIENT}/log", LogHandler, "developer-log", PAGE, act="see"),
    Route(rf"/developer/apps/{CLIENT}/usage", AppUsageHandler, "developer-usage", PAGE, act="see"),
    Route(rf"/developer/apps/{CLIENT}/usage\.csv", UsageFileHandler, "developer-usage-file", PAGE, act="see"),
    Route(
        rf"/developer/apps/{CLIENT}/model-usage\.csv",
        ModelUsageFileHandler,
        "developer-model-usage-file",
        PAGE,
        act="see",
    ),
    Route(
        rf"/developer/apps/{CLIENT}/rotate",
        RotateHandler,
        "developer-rotate",
        PAGE,
        PersonPost(
            "create a new client secret", ReauthRule.RECENT, (ACTIVITY, OWNER), "end it", windows=CHANGES, act="change"
        ),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/end-secret",
        EndSecretHandler,
        "developer-end-secret",
        PAGE,
        PersonPost(
            "revoke a client secret",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            keeps=("mark",),
            windows=CHANGES,
            act="change",
        ),
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
            act="change",
        ),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/delete",
        DeleteAppHandler,
        "developer-delete",
        PAGE,
        PersonPost("delete your app", ReauthRule.THERE, (ACTIVITY, OWNER), windows=(REGISTER_APP,), act="delete"),
        act="delete",
    ),
    Route(
        rf"/developer/apps/{CLIENT}/delete/options",
        DeleteAppOptionsHandler,
        "developer-delete-options",
        PAGE,
        replace(BY_PASSKEY, act="delete"),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/try",
        TryHandler,
        "developer-try",
        PAGE,
        PersonPost("try your app", undo=NOTHING_LASTS, act="change"),
        act="change",
    ),
    Route(
        rf"/developer/apps/{CLIENT}/logo",
        ChangeLogoHandler,
        "developer-logo",
        PAGE,
        PersonPost("change the logo of your app", tells=(ACTIVITY, OWNER), undo=AGAIN, windows=CHANGES, act="change"),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/logo/remove",
        RemoveLogoHandler,
        "developer-logo-remove",
        PAGE,
        PersonPost(
            "remove the logo of your app",
            tells=(ACTIVITY, OWNER),
            undo="upload it again",
            windows=CHANGES,
            act="change",
        ),
    ),
    Route(rf"/logo/{CLIENT}/([A-Za-z0-9_-]{{22}})\.webp", LogoHandler, "logo", OPEN),
    Route(
        rf"/developer/apps/{CLIENT}/verify",
        VerifyHandler,
        "developer-verify",
        PAGE,
        PersonPost("verify a domain of your app", tells=(ACTIVITY,), undo="change the app", act="change"),
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
            act="change",
        ),
        act="change",
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
            act="change",
        ),
    ),
    Route(
        rf"/developer/apps/{CLIENT}/webhooks/test",
        TestEventHandler,
        "developer-webhook-test",
        PAGE,
        PersonPost("send a test event", undo=NOTHING_LASTS, act="change"),
    ),
    Route(rf"/developer/apps/{CLIENT}/webhooks/{DELIVERY}", DeliveryHandler, "developer-delivery", PAGE, act="change"),
    Route(
        rf"/developer/apps/{CLIENT}/webhooks/{DELIVERY}/again",
        ReplayHandler,
        "developer-delivery-again",
        PAGE,
        PersonPost("send an event again", undo=NOTHING_LASTS, act="change"),
        act="change",
    ),
)
