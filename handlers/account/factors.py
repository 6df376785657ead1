"""/account/security/…: the person's authenticator app, recovery codes and passkeys."""

from __future__ import annotations

import segno

from handlers.account.security import SecurityPage
from handlers.account.signin import CHALLENGE_COOKIE
from handlers.core import mails
from handlers.core.errors import REAUTH_FIRST
from handlers.core.params import Params
from store.accounts.links import Link
from store.accounts.signin.factors import Factors
from store.accounts.signin.passkeys import MOST_NAME, options_for_new, read_answer
from store.accounts.signin.totp import in_base32, in_fours, key_uri
from store.clock import wall
from store.lifetimes import CHALLENGE
from store.phrases import Phrase
from store.refused import Refused, Unproved


class FactorsPage(SecurityPage):
    """Shared by these pages. Recovery codes are shown when they are made, and never again."""

    def tell(self, factors: Factors, what: str, undo: Link | None = None) -> None:
        """Mails a notice of the change, with a link that undoes it if there is one."""
        mails.factors_changed(self.site, factors.user, factors.warned, what, self.visitor, undo)

    def show_codes(self, factors: Factors, codes: list[str], notice: str, onward: str = "/account/security") -> None:
        """The page of new recovery codes; `onward`: the next page."""
        self.render(
            "account/recovery.html",
            title=Phrase("Your recovery codes"),
            signed_in=factors,
            codes=codes,
            about=Phrase(
                "Recovery codes for %(email)s at %(product)s, created on %(day)s",
                email=factors.email,
                product=self.site.brand.name,
                day=self.wording(factors.preferences).day(wall.utc()),
            ),
            notice=notice,
            onward=onward,
        )


class AuthenticatorHandler(FactorsPage):
    """Sets up an authenticator app."""

    async def get(self) -> None:
        """Shows a new secret, as a QR code and as text."""
        factors = await self.store.factors.of(self.require_session())
        if factors.secret is not None:
            return self.see_other("/account/security")
        if not factors.proved:
            return await self.show_unproved()
        self.show_secret(factors, self.store.factors.new_secret(factors.user))

    def show_secret(self, factors: Factors, sealed: str, error: str | None = None) -> None:
        """The page with this secret, and the error if there is one."""
        secret = self.store.factors.open_secret(factors.user, sealed)
        uri = key_uri(secret, self.site.brand.name, factors.email)
        self.render(
            "account/authenticator.html",
            title=Phrase("Set up an authenticator app"),
            signed_in=factors,
            sealed=sealed,
            uri=uri,
            secret=in_fours(in_base32(secret)),
            picture=authenticator_picture(uri),
            error=error,
        )

    async def post(self) -> None:
        """Switches the app on if the code is right."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        factors, sealed = await self.store.factors.of(session), params.require("secret")
        try:
            with mails.undoable(self.site, session.user, "second_step", self.visitor):
                added = await self.store.factors.enable_totp(session, sealed, params.get("code") or "", self.visitor)
                self.tell(factors, Phrase("An authenticator app was added to your account"), added.undo)
        except Unproved:
            return await self.show_unproved()
        except Refused as refusal:
            if refusal.code != "access_denied" or self.wants_json():
                raise
            self.set_status(400)
            return self.show_secret(factors, sealed, refusal.description)
        if not added.codes:
            return self.see_done("/account/security?app")
        self.show_codes(factors, added.codes, Phrase("Your authenticator app is set up."))


class RemoveAuthenticatorHandler(FactorsPage):
    """Removes the authenticator app."""

    async def post(self) -> None:
        """Makes its codes worthless at once."""
        self.check_same_origin()
        session = self.require_session()
        factors = await self.store.factors.of(session)
        try:
            await self.store.factors.disable_totp(session, self.visitor)
        except Unproved:
            return await self.show_unproved()
        if factors.secret is not None:
            self.tell(factors, Phrase("The authenticator app was removed from your account"))
        self.see_done("/account/security?app-removed")


class RecoveryHandler(FactorsPage):
    """Makes recovery codes."""

    async def post(self) -> None:
        """Makes new codes. The earlier ones stop working."""
        self.check_same_origin()
        session = self.require_session()
        factors = await self.store.factors.of(session)
        try:
            codes = await self.store.factors.renew_recovery(session, self.visitor)
        except Unproved:
            return await self.show_unproved()
        except Refused as refusal:
            return await self.show_refusal("recovery", refusal)
        self.tell(factors, Phrase("New recovery codes were created for your account"))
        self.show_codes(factors, codes, Phrase("Your previous recovery codes no longer work."))


class NewPasskeyOptionsHandler(FactorsPage):
    """WebAuthn options for a new passkey."""

    async def post(self) -> None:
        """Answers with JSON, and sets the challenge in a cookie."""
        self.check_same_origin()
        session = self.require_session()
        if self.site.relying_party is None:
            raise Refused("invalid_request", Phrase("Passkeys don’t work at this address."))
        factors = await self.store.factors.of(session)
        try:
            challenge = await self.store.factors.challenge(session)
        except Unproved:
            raise Refused("access_denied", REAUTH_FIRST) from None
        self.write_cookie(CHALLENGE_COOKIE, challenge, CHALLENGE)
        present = [passkey.credential for passkey in factors.passkeys]
        name = factors.name or factors.email
        product = self.site.brand.name
        options = options_for_new(
            self.site.relying_party, product, factors.user, factors.email, name, challenge, present
        )
        self.write_json({"publicKey": options})


class AddPasskeyHandler(FactorsPage):
    """Adds a passkey."""

    async def post(self) -> None:
        """Registers the passkey that the browser made."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        if self.site.relying_party is None:
            raise Refused("invalid_request", Phrase("Passkeys don’t work at this address."))
        challenge = self.read_cookie(CHALLENGE_COOKIE)
        self.write_cookie(CHALLENGE_COOKIE, None)
        factors = await self.store.factors.of(session)
        try:
            name = name_of(params) or self.visitor.agent
            answer = read_answer(params.get("credential") or "")
            with mails.undoable(self.site, session.user, "second_step", self.visitor):
                added = await self.store.factors.add_passkey(
                    session, self.site.relying_party, challenge, answer, name, self.visitor
                )
                self.tell(factors, Phrase("A passkey was added to your account"), added.undo)
        except Unproved:
            return await self.show_unproved()
        except Refused as refusal:
            return await self.show_refusal("passkeys", refusal)
        if not added.codes:
            return self.see_done("/account/security?passkey")
        self.show_codes(factors, added.codes, Phrase("Your passkey was added."))


class RemovePasskeyHandler(FactorsPage):
    """Removes a passkey."""

    async def post(self) -> None:
        """The passkey no longer signs in, although the browser may still offer it."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        factors = await self.store.factors.of(session)
        try:
            await self.store.factors.remove_passkey(session, params.require("credential"), self.visitor)
        except Unproved:
            return await self.show_unproved()
        self.tell(factors, Phrase("A passkey was removed from your account"))
        self.see_done("/account/security?passkey-removed")


class RenamePasskeyHandler(FactorsPage):
    """Renames a passkey."""

    async def post(self) -> None:
        """The name is the person's own note. The browser may show another."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        try:
            name = name_of(params)
            if not name:
                raise Refused("invalid_request", Phrase("Enter a name for the passkey."))
        except Refused as refusal:
            return await self.show_refusal("passkeys", refusal)
        try:
            await self.store.factors.rename_passkey(session, params.require("credential"), name, self.visitor)
        except Unproved:
            return await self.show_unproved()
        self.see_done("/account/security?passkey-renamed")


def authenticator_picture(uri: str) -> str:
    """The QR code of an authenticator's secret, as SVG."""
    picture: str = segno.make(uri, error="m", micro=False).svg_inline(
        scale=5, border=3, dark="#000", light="#fff", omitsize=True
    )
    return picture


def name_of(params: Params) -> str:
    """The typed name of a passkey, on one line; may be empty. Raises Refused("invalid_request")."""
    name = " ".join((params.get("name") or "").split())
    if len(name) > MOST_NAME:
        raise Refused(
            "invalid_request", Phrase("A passkey's name can have at most %(most)s characters.", most=MOST_NAME)
        )
    return name
