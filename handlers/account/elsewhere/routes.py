"""The routes of sign-in from elsewhere."""

from __future__ import annotations

from handlers.account.elsewhere.callback import CallbackHandler
from handlers.account.elsewhere.connected import ConfirmElsewhereHandler, ConnectHandler, RemoveIdentityHandler
from handlers.account.elsewhere.directory import DirectoryHandler
from handlers.account.elsewhere.start import StartHandler
from handlers.core.person_posts import ACTIVITY, PERSON, SIGN_INS, PersonPost, factor
from handlers.core.policy import LAST_PAGE, PAGE, Policy
from handlers.core.route import Route

_NAME = r"([a-z0-9-]{1,32})"

ROUTES: tuple[Route, ...] = (
    Route(rf"/signin/with/{_NAME}", StartHandler, "signin-elsewhere", LAST_PAGE),
    # Providers post here, and the answer only redirects: nothing needs an XSRF token.
    Route(rf"/signin/with/{_NAME}/callback", CallbackHandler, "signin-callback", Policy(finishes=True)),
    Route(
        rf"/signin/with/{_NAME}/password",
        DirectoryHandler,
        "signin-directory",
        LAST_PAGE,
        PersonPost("sign in", session=False, tells=(ACTIVITY, PERSON), undo="sign out", windows=SIGN_INS),
    ),
    Route(rf"/account/security/accounts/add/{_NAME}", ConnectHandler, "account-identity-add", PAGE),
    Route(rf"/account/security/confirm/with/{_NAME}", ConfirmElsewhereHandler, "account-confirm-elsewhere", PAGE),
    Route(
        r"/account/security/accounts/remove",
        RemoveIdentityHandler,
        "account-identity-remove",
        PAGE,
        factor("disconnect an account at another site", "connect it again"),
    ),
)
