"""/account: what a person sees and changes of the account."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

from handlers.amounts import typed_limit
from handlers.format import money_field
from handlers.page import PRODUCT, PageHandler
from handlers.scopes import allowed
from store.grants import Grant
from store.redirect_uris import display_origin
from store.refused import Refused

EVENTS = {
    "signed_up": "Account created",
    "created_by_operator": "Account created by the operator",
    "signed_in": "Signed in",
    "signed_in_by_passkey": "Signed in with a passkey",
    "signed_in_by_recovery": "Signed in with a recovery code",
    "signed_out": "Signed out",
    "session_ended": "Another device signed out",
    "other_sessions_ended": "All other devices signed out",
    "totp_enabled": "Authenticator app added",
    "totp_disabled": "Authenticator app removed",
    "passkey_added": "Passkey added",
    "passkey_renamed": "Passkey renamed",
    "passkey_removed": "Passkey removed",
    "passkey_copied": "A passkey that may have been copied was refused",
    "recovery_renewed": "New recovery codes made",
    "codes_guessed": "Several wrong codes, with the right password",
    "factors_reset_by_operator": "Authenticator app, passkeys and recovery codes removed by the operator",
    "name_changed": "Name changed",
    "picture_changed": "Picture changed",
    "picture_removed": "Picture removed",
    "account_downloaded": "Everything about the account downloaded",
    "password_changed": "Password changed; other sessions ended",
    "password_reset": "Password set by a mailed link; all sessions ended",
    "address_claimed": "Address confirmed by a new password; second step, passkeys and connected apps of before ended",
    "email_confirmed": "E-mail address confirmed",
    "email_changed": "E-mail address changed",
    "password_set_by_operator": "Password set by the operator; all sessions ended",
    "consent_given": "App connected",
    "consent_denied": "App refused",
    "app_disconnected": "App disconnected",
    "documents_downloaded": "Documents of an app downloaded",
    "documents_deleted": "All documents of an app deleted",
    "document_deleted": "Document of an app deleted",
    "spend_limit_set": "Monthly spending limit of an app changed",
    "credit_added": "Credits added",
    "credit_taken": "Credits taken back",
    "app_registered": "App registered by you",
    "app_changed": "Your app changed",
    "app_disabled": "Your app switched off",
    "app_enabled": "Your app switched on",
    "app_secret_made": "New client secret made for your app",
    "app_webhook_changed": "Webhook URL of your app changed",
    "app_webhook_secret_made": "New signing secret made for the webhook of your app",
    "app_secret_ended": "A client secret of your app ended",
    "app_deleted": "Your app deleted",
    "app_given_by_operator": "App given to you by the operator",
    "exported_by_operator": "Account exported by the operator",
    "tokens_revoked": "App gave back its access",
    "token_minted": "Access given by the operator",
    "code_replayed": "A used code was presented again; the access it gave was ended",
    "refresh_replayed": "A used token was presented again; the app's access was ended",
    "disabled_by_operator": "Account disabled by the operator",
    "enabled_by_operator": "Account enabled by the operator",
}


class HomeHandler(PageHandler):
    """The front page."""

    async def get(self) -> None:
        """Shows what this is."""
        signup_open = self.site.signup == "open"
        self.render("home.html", title=PRODUCT, signed_in=await self.profile(), signup_open=signup_open)


class Mistyped(NamedTuple):
    """What was typed as the limit of an app, and why it is none."""

    client: str
    text: str
    refusal: Refused


class AppsPage(PageHandler):
    """The connected apps."""

    async def show(self, mistyped: Mistyped | None = None) -> None:
        """What each may do, and those whose data is still kept; with what was mistyped beside its field."""
        profile, grants = await self.store.grants.list(self.require_session())
        apps: list[SimpleNamespace] = []
        revoked: list[SimpleNamespace] = []
        for grant in grants:
            app = await self.store.apps.find(grant.client)
            known = SimpleNamespace(
                client_id=grant.client,
                name=app.name if app else "An app that no longer exists",
                homepage=app.homepage if app else "",
                # An app chooses its name, but not the addresses it was registered with.
                domains=sorted({display_origin(uri) for uri in app.redirect_uris}) if app else [],
                scopes=allowed(grant.scopes, grant.spend_limit),
                connected_at=grant.connected_at,
                last_used_at=grant.last_used_at,
                data_until=grant.data_until,
                documents=grant.documents,
                bytes=grant.bytes,
                spending=spending_of(grant, mistyped),
            )
            (revoked if grant.data_until else apps).append(known)
        wrong = any(app.spending and app.spending.error for app in apps)
        if mistyped and not wrong:
            raise mistyped.refusal  # there is no such field to show it beside
        self.render(
            "account_apps.html", title="Connected apps", signed_in=profile, apps=apps, revoked=revoked, wrong=wrong
        )


def spending_of(grant: Grant, mistyped: Mistyped | None) -> SimpleNamespace | None:
    """What an app spent and may spend, in micro-dollars, and its field; None for one that may not spend."""
    if "credits:spend" not in grant.scopes or grant.data_until:
        return None
    if mistyped and mistyped.client == grant.client:
        text, error = mistyped.text, mistyped.refusal.description
    else:
        text, error = money_field(grant.spend_limit), ""
    return SimpleNamespace(spent=grant.spent, limit=grant.spend_limit, text=text, error=error)


class AppsHandler(AppsPage):
    """The page of the connected apps."""

    async def get(self) -> None:
        """Shows it."""
        await self.show()


class SpendLimitHandler(AppsPage):
    """What an app may spend in a month."""

    async def post(self, client_id: str) -> None:
        """Sets the limit, or takes it off where the field is empty. A wrong amount is said beside the field."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        try:
            limit = typed_limit(params, "dollars")
        except Refused as refusal:
            if self.wants_json():
                raise
            self.set_status(400)
            return await self.show(Mistyped(client_id, params.get("dollars") or "", refusal))
        await self.store.credits.set_spend_limit(session, client_id, limit, self.visitor)
        self.see_other("/account/apps")


class RevokeAppHandler(PageHandler):
    """Disconnects an app. SPEC 3.1."""

    async def post(self, client_id: str) -> None:
        """Every token of the app for this person dies at once; its data is kept 30 days."""
        self.check_same_origin()
        await self.store.grants.revoke(self.require_session(), client_id, self.visitor)
        self.store.numbers.disconnected(client_id)
        self.see_other("/account/apps")
