"""The routes of the OAuth endpoints: the API, and both ends of an authorization."""

from __future__ import annotations

from handlers.core.person_posts import ACTIVITY, NOTHING_LASTS, PERSON, UNSPENT, PersonPost
from handlers.core.policy import LAST_PAGE, OPEN, PAGE, Policy
from handlers.core.route import Route
from handlers.oauth.authorize import AuthorizeHandler
from handlers.oauth.balance import BalanceHandler, ConnectedAppsHandler
from handlers.oauth.decide import DecideHandler
from handlers.oauth.device.authorization import DeviceAuthorizationHandler
from handlers.oauth.device.page import DeviceHandler
from handlers.oauth.introspect import IntrospectHandler
from handlers.oauth.logout import LogoutHandler
from handlers.oauth.metadata import KeySetHandler, MetadataHandler, OpenIdConfigurationHandler
from handlers.oauth.push import PushHandler
from handlers.oauth.register import ClientConfigurationHandler, RegisterClientHandler
from handlers.oauth.resource_metadata import ResourceMetadataHandler
from handlers.oauth.revoke import RevokeHandler
from handlers.oauth.token import TokenHandler
from handlers.oauth.userinfo import UserinfoHandler
from store.lifetimes import SPENDING_MAIL

ROUTES: tuple[Route, ...] = (
    # Other sites post here, and the answer only redirects: nothing needs an XSRF token.
    Route(r"/oauth/authorize", AuthorizeHandler, "authorize", OPEN),
    Route(
        r"/api/oauth/authorize",
        DecideHandler,
        "decide",
        Policy(window="oauth", xsrf=True, finishes=True),
        PersonPost("decide what an app can do", tells=(ACTIVITY, PERSON), undo=UNSPENT, windows=(SPENDING_MAIL,)),
    ),
    Route(
        r"/oauth/logout",
        LogoutHandler,
        "logout",
        LAST_PAGE,
        PersonPost("sign out", session=False, tells=(ACTIVITY,), undo="sign in"),
    ),
    Route(r"/device", DeviceHandler, "device", PAGE, PersonPost("enter the code of a device", undo=NOTHING_LASTS)),
    Route(
        r"/api/oauth/device_authorization",
        DeviceAuthorizationHandler,
        "device-authorization",
        Policy(window="client"),
    ),
    Route(r"/api/oauth/par", PushHandler, "push", Policy(window="client")),
    Route(r"/api/oauth/token", TokenHandler, "token", Policy(window="oauth", finishes=True)),
    Route(r"/api/oauth/userinfo", UserinfoHandler, "userinfo", Policy(scope="openid profile", window="oauth")),
    Route(r"/api/oauth/revoke", RevokeHandler, "revoke", Policy(window="oauth", finishes=True)),
    Route(r"/api/oauth/introspect", IntrospectHandler, "introspect", Policy(window="introspect")),
    Route(
        r"/api/oauth/register", RegisterClientHandler, "register", Policy(window="register-client", registration=True)
    ),
    Route(
        r"/api/oauth/register/([A-Za-z0-9_-]{1,64})",
        ClientConfigurationHandler,
        "client-configuration",
        Policy(window="public-client", registration=True),
    ),
    Route(r"/\.well-known/oauth-protected-resource", ResourceMetadataHandler, "resource-metadata", OPEN),
    Route(r"/\.well-known/oauth-authorization-server", MetadataHandler, "metadata", OPEN),
    Route(r"/\.well-known/jwks\.json", KeySetHandler, "jwks", OPEN),
    Route(r"/\.well-known/openid-configuration", OpenIdConfigurationHandler, "openid-configuration", OPEN),
    Route(r"/api/v1/credits/balance", BalanceHandler, "credits", Policy(scope="credits:read", window="credits-read")),
    Route(r"/api/v1/apps", ConnectedAppsHandler, "apps", Policy(scope="apps:read", window="apps-read")),
)
