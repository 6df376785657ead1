"""The route map: one line a route. What each demands stands in `policy.py`."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from tornado.routing import URLSpec

from handlers.account.connected_apps import AppsHandler, HomeHandler, RevokeAppHandler, SpendLimitHandler
from handlers.account.deletion import DeleteAccountHandler, DeletedHandler, DeleteOptionsHandler, DownloadHandler
from handlers.account.email_links import (
    ChangeHandler,
    ConfirmHandler,
    EmailHandler,
    ForgotHandler,
    ResetHandler,
    SendAgainHandler,
    UndoHandler,
)
from handlers.account.factors import (
    AddPasskeyHandler,
    AuthenticatorHandler,
    NewPasskeyOptionsHandler,
    RecoveryHandler,
    RemoveAuthenticatorHandler,
    RemovePasskeyHandler,
    RenamePasskeyHandler,
)
from handlers.account.pictures import PictureHandler
from handlers.account.profile import AccountHandler, RemovePictureHandler, UploadHandler
from handlers.account.reauth_forms import check_posts
from handlers.account.second_step import (
    PasskeyOptionsHandler,
    PasskeySignInHandler,
    SecondOptionsHandler,
    SecondStepHandler,
)
from handlers.account.security import (
    EndOtherSessionsHandler,
    EndSessionHandler,
    ProveHandler,
    ProveOptionsHandler,
    SecurityHandler,
)
from handlers.account.signin import SignInHandler, SignOutHandler, SignUpHandler
from handlers.ai.routes import (
    MessagesHandler,
    ModelsHandler,
    SdkCountHandler,
    SdkMessagesHandler,
    SdkModelHandler,
    SdkModelsHandler,
)
from handlers.core.application import Latchkey
from handlers.core.fallback import FallbackHandler, StaticHandler, files_in, quote_nothing
from handlers.core.policy import NOWHERE, check_policies, policy_of
from handlers.core.security_context import tell_security
from handlers.core.site import Site
from handlers.credits.pages import CreditsHandler
from handlers.developer.apps import (
    EndSecretHandler,
    OwnedAppHandler,
    OwnedAppsHandler,
    RegisterHandler,
    RotateHandler,
    StatusHandler,
)
from handlers.developer.delete import DeleteAppHandler, DeleteAppOptionsHandler
from handlers.developer.try_flow import TryHandler
from handlers.developer.verify import VerifyHandler
from handlers.developer.webhooks import (
    DeliveryHandler,
    ReplayHandler,
    SigningSecretHandler,
    TestEventHandler,
    WebhooksHandler,
)
from handlers.documents.documents import CollectionHandler, DocumentHandler, UsageHandler
from handlers.documents.pages import (
    AppDataHandler,
    DeleteDataHandler,
    DeleteDocumentHandler,
    DocumentPageHandler,
    ExportHandler,
)
from handlers.oauth.authorize import AuthorizeHandler
from handlers.oauth.balance import BalanceHandler, ConnectedAppsHandler
from handlers.oauth.decide import DecideHandler
from handlers.oauth.metadata import MetadataHandler
from handlers.oauth.revoke import RevokeHandler
from handlers.oauth.token import TokenHandler
from handlers.oauth.userinfo import UserinfoHandler
from handlers.openapi.document import OpenApiHandler, document_bytes
from handlers.openapi.viewer import DocsHandler
from handlers.ops.health import HealthHandler, ReadyHandler

HERE = Path(__file__).resolve().parent.parent
_LITERAL = re.compile(r"[/a-z0-9_-]+")
CLIENT, DELIVERY = "([A-Za-z0-9_-]{1,64})", "([A-Za-z0-9_-]{22})"

ROUTES: list[tuple[str, Any, str]] = [
    # Patterns are tried in this order: those that are asked for most stand first.
    (r"/api/v1/data/_meta/usage", UsageHandler, "usage"),
    (r"/api/v1/data/([^/]+)/([^/]+)", DocumentHandler, "document"),
    (r"/api/v1/data/([^/]+)", CollectionHandler, "collection"),
    (r"/", HomeHandler, "home"),
    (r"/oauth/authorize", AuthorizeHandler, "authorize"),
    (r"/api/oauth/authorize", DecideHandler, "decide"),
    (r"/api/oauth/token", TokenHandler, "token"),
    (r"/api/oauth/userinfo", UserinfoHandler, "userinfo"),
    (r"/api/oauth/revoke", RevokeHandler, "revoke"),
    (r"/\.well-known/oauth-authorization-server", MetadataHandler, "metadata"),
    (r"/openapi\.json", OpenApiHandler, "openapi"),
    (r"/docs", DocsHandler, "docs"),
    (r"/api/v1/credits/balance", BalanceHandler, "credits"),
    (r"/api/v1/apps", ConnectedAppsHandler, "apps"),
    (r"/api/v1/ai/messages", MessagesHandler, "ai-messages"),
    (r"/api/v1/ai/models", ModelsHandler, "ai-models"),
    (r"/api/v1/ai/v1/messages", SdkMessagesHandler, "ai-sdk-messages"),
    (r"/api/v1/ai/v1/messages/count_tokens", SdkCountHandler, "ai-sdk-count"),
    (r"/api/v1/ai/v1/models", SdkModelsHandler, "ai-sdk-models"),
    (r"/api/v1/ai/v1/models/([^/]+)", SdkModelHandler, "ai-sdk-model"),
    (r"/signin", SignInHandler, "signin"),
    (r"/signin/second", SecondStepHandler, "signin-second"),
    (r"/signin/second/options", SecondOptionsHandler, "signin-second-options"),
    (r"/signin/passkey", PasskeySignInHandler, "signin-passkey"),
    (r"/signin/passkey/options", PasskeyOptionsHandler, "signin-passkey-options"),
    (r"/signup", SignUpHandler, "signup"),
    (r"/signout", SignOutHandler, "signout"),
    (r"/confirm", ConfirmHandler, "confirm"),
    (r"/forgot", ForgotHandler, "forgot"),
    (r"/reset", ResetHandler, "reset"),
    (r"/account", AccountHandler, "account"),
    (r"/account/email", EmailHandler, "account-email"),
    (r"/account/email/confirm", SendAgainHandler, "account-email-confirm"),
    (r"/account/email/change", ChangeHandler, "account-email-change"),
    (r"/account/email/undo", UndoHandler, "account-email-undo"),
    (r"/account/picture", UploadHandler, "account-picture"),
    (r"/account/picture/remove", RemovePictureHandler, "account-picture-remove"),
    (r"/account/download", DownloadHandler, "account-download"),
    (r"/account/delete", DeleteAccountHandler, "account-delete"),
    (r"/account/delete/options", DeleteOptionsHandler, "account-delete-options"),
    (r"/account/deleted", DeletedHandler, "account-deleted"),
    (r"/picture/([^/]+)", PictureHandler, "picture"),
    (r"/account/apps", AppsHandler, "account-apps"),
    (rf"/account/apps/{CLIENT}/revoke", RevokeAppHandler, "account-app-revoke"),
    (rf"/account/apps/{CLIENT}/limit", SpendLimitHandler, "account-app-limit"),
    (rf"/account/apps/{CLIENT}/data", AppDataHandler, "account-data"),
    (rf"/account/apps/{CLIENT}/data/delete", DeleteDataHandler, "account-data-delete"),
    (rf"/account/apps/{CLIENT}/data/([^/]+)/([^/]+)", DocumentPageHandler, "account-document"),
    (rf"/account/apps/{CLIENT}/data/([^/]+)/([^/]+)/delete", DeleteDocumentHandler, "account-document-delete"),
    (rf"/account/apps/{CLIENT}/export", ExportHandler, "account-export"),
    (r"/account/credits", CreditsHandler, "account-credits"),
    (r"/account/security", SecurityHandler, "account-security"),
    (r"/developer/apps", OwnedAppsHandler, "developer-apps"),
    (r"/developer/register", RegisterHandler, "developer-register"),
    (rf"/developer/apps/{CLIENT}", OwnedAppHandler, "developer-app"),
    (rf"/developer/apps/{CLIENT}/rotate", RotateHandler, "developer-rotate"),
    (rf"/developer/apps/{CLIENT}/end-secret", EndSecretHandler, "developer-end-secret"),
    (rf"/developer/apps/{CLIENT}/status", StatusHandler, "developer-status"),
    (rf"/developer/apps/{CLIENT}/delete", DeleteAppHandler, "developer-delete"),
    (rf"/developer/apps/{CLIENT}/delete/options", DeleteAppOptionsHandler, "developer-delete-options"),
    (rf"/developer/apps/{CLIENT}/try", TryHandler, "developer-try"),
    (rf"/developer/apps/{CLIENT}/verify", VerifyHandler, "developer-verify"),
    (rf"/developer/apps/{CLIENT}/webhooks", WebhooksHandler, "developer-webhooks"),
    (rf"/developer/apps/{CLIENT}/webhooks/rotate", SigningSecretHandler, "developer-webhook-secret"),
    (rf"/developer/apps/{CLIENT}/webhooks/test", TestEventHandler, "developer-webhook-test"),
    (rf"/developer/apps/{CLIENT}/webhooks/{DELIVERY}", DeliveryHandler, "developer-delivery"),
    (rf"/developer/apps/{CLIENT}/webhooks/{DELIVERY}/again", ReplayHandler, "developer-delivery-again"),
    (r"/account/security/confirm", ProveHandler, "account-confirm"),
    (r"/account/security/confirm/options", ProveOptionsHandler, "account-confirm-options"),
    (r"/account/security/sessions/end", EndSessionHandler, "account-session-end"),
    (r"/account/security/sessions/end-others", EndOtherSessionsHandler, "account-sessions-end"),
    (r"/account/security/authenticator", AuthenticatorHandler, "account-authenticator"),
    (r"/account/security/authenticator/remove", RemoveAuthenticatorHandler, "account-authenticator-remove"),
    (r"/account/security/recovery", RecoveryHandler, "account-recovery"),
    (r"/account/security/passkeys", AddPasskeyHandler, "account-passkeys"),
    (r"/account/security/passkeys/options", NewPasskeyOptionsHandler, "account-passkeys-options"),
    (r"/account/security/passkeys/rename", RenamePasskeyHandler, "account-passkeys-rename"),
    (r"/account/security/passkeys/remove", RemovePasskeyHandler, "account-passkeys-remove"),
    (r"/healthz", HealthHandler, "healthz"),
    (r"/readyz", ReadyHandler, "readyz"),
]


def make_application(site: Site) -> Latchkey:
    """The Tornado application. Raises MissingPolicy for a route without a policy."""
    check_policies(name for _, _, name in ROUTES)
    check_posts(ROUTES)
    application = Latchkey(
        [URLSpec(pattern, handler, {"policy": policy_of(name)}, name) for pattern, handler, name in ROUTES],
        default_handler_class=FallbackHandler,
        default_handler_args={"policy": NOWHERE},
        template_path=str(HERE / "templates"),
        static_path=str(HERE / "static"),
        static_handler_class=StaticHandler,
        xsrf_cookies=True,
        xsrf_cookie_name=site.cookie("xsrf"),
        xsrf_cookie_kwargs={"httponly": True, "samesite": "Lax", "secure": site.secure, "path": "/"},
    )
    application.site = site
    application.openapi = document_bytes(ROUTES, site.base_url)
    targets = [(pattern, (handler, {"policy": policy_of(name)})) for pattern, handler, name in ROUTES]
    application.literal = {pattern: target for pattern, target in targets if _LITERAL.fullmatch(pattern)}
    application.patterns = [(re.compile(pattern), target) for pattern, target in targets if "(" in pattern]
    application.files = files_in(HERE / "static")
    logging.getLogger("tornado.general").addFilter(quote_nothing)
    tell_security(application)
    return application
