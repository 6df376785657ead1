"""The routes of the pages on which people manage their own APIs."""

from __future__ import annotations

from handlers.core.person_posts import (
    ACTIVITY,
    AGAIN,
    API_FORM,
    BY_PASSKEY,
    CHANGES,
    OWNER,
    REAUTH_WINDOWS,
    PersonPost,
    ReauthRule,
)
from handlers.core.policy import PAGE
from handlers.core.route import CLIENT, Route
from handlers.developer.apis import (
    ApiStatusHandler,
    EndApiSecretHandler,
    OwnedApiHandler,
    OwnedApisHandler,
    RotateApiHandler,
)
from handlers.developer.delete_api import DeleteApiHandler, DeleteApiOptionsHandler

ROUTES: tuple[Route, ...] = (
    Route(r"/developer/apis", OwnedApisHandler, "developer-apis", PAGE),
    Route(
        rf"/developer/apis/{CLIENT}",
        OwnedApiHandler,
        "developer-api",
        PAGE,
        PersonPost("change your API", ReauthRule.RECENT, (ACTIVITY, OWNER), AGAIN, keeps=API_FORM, windows=CHANGES),
    ),
    Route(
        rf"/developer/apis/{CLIENT}/rotate",
        RotateApiHandler,
        "developer-api-rotate",
        PAGE,
        PersonPost(
            "create a new client secret of your API", ReauthRule.RECENT, (ACTIVITY, OWNER), "end it", windows=CHANGES
        ),
    ),
    Route(
        rf"/developer/apis/{CLIENT}/end-secret",
        EndApiSecretHandler,
        "developer-api-end-secret",
        PAGE,
        PersonPost(
            "revoke a client secret of your API",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            keeps=("mark",),
            windows=CHANGES,
        ),
    ),
    Route(
        rf"/developer/apis/{CLIENT}/status",
        ApiStatusHandler,
        "developer-api-status",
        PAGE,
        PersonPost(
            "switch your API on",
            ReauthRule.RECENT,
            (ACTIVITY, OWNER),
            AGAIN,
            excused=("status", "off"),
            keeps=("status",),
            windows=CHANGES,
        ),
    ),
    Route(
        rf"/developer/apis/{CLIENT}/delete",
        DeleteApiHandler,
        "developer-api-delete",
        PAGE,
        PersonPost("delete your API", ReauthRule.THERE, (ACTIVITY, OWNER), windows=REAUTH_WINDOWS),
    ),
    Route(
        rf"/developer/apis/{CLIENT}/delete/options",
        DeleteApiOptionsHandler,
        "developer-api-delete-options",
        PAGE,
        BY_PASSKEY,
    ),
)
