"""/account: the person's profile for apps: name and picture."""

from __future__ import annotations

from handlers.core.page import PageHandler
from handlers.core.pictures.uploads import Upload
from store.names import check_person_name
from store.phrases import Phrase
from store.refused import Refused, reason_of

NOTICES = {
    "name": Phrase("Your name was changed."),
    "confirmed": Phrase("Your e-mail address is confirmed."),
    "ready": Phrase("Your account is ready."),
    "welcome": Phrase("Your account is ready. We e-mailed you a link: open it to confirm your address."),
    "picture": Phrase("Your picture was changed."),
    "removed": Phrase("Your picture was removed."),
    "passkey-offer": Phrase("We won’t offer you a passkey again. You can add one under Security."),
    "preferences": Phrase("Your language and time zone are saved."),
}
ZONE_NOTICES = {**NOTICES, "preferences": Phrase("Your time zone is saved.")}
"""Where there is one language, so nobody chose it."""


class ProfilePage(PageHandler):
    """The page of the profile."""

    async def show(self, *, name: str | None = None, name_error: str = "", picture_error: str = "") -> None:
        """The page, with what was typed and its errors."""
        profile = await self.store.sessions.profile(self.require_session())
        has_languages = len(self.site.languages.all) > 1
        self.render(
            "account/profile.html",
            title=Phrase("Your account"),
            signed_in=profile,
            profile=profile,
            picture=f"/picture/{self.store.profiles.address(profile)}",
            name=profile.name if name is None else name,
            name_error=name_error,
            picture_error=picture_error,
            notice=self.notice(NOTICES if has_languages else ZONE_NOTICES),
            has_languages=has_languages,
            passkey_offer=profile.passkey_offer and self.site.relying_party is not None,
        )


class AccountHandler(ProfilePage):
    """The profile page."""

    async def get(self) -> None:
        """Shows the profile."""
        await self.show()

    async def post(self) -> None:
        """Changes the name. Apps see the new name from now on."""
        self.check_same_origin()
        session, typed = self.require_session(), self.body().get("name") or ""
        try:
            name = check_person_name(typed)
        except ValueError as error:
            self.set_status(400)
            return await self.show(name=typed, name_error=reason_of(error))
        await self.store.profiles.rename(session, name, self.visitor)
        self.see_done("/account?name")


class HidePasskeyOfferHandler(PageHandler):
    """Hides the offer of a passkey, for good."""

    async def post(self) -> None:
        """Takes one click. Passkeys can be added under Security as before."""
        self.check_same_origin()
        await self.store.profiles.hide_passkey_offer(self.require_session())
        self.see_done("/account?passkey-offer")


class RemovePictureHandler(PageHandler):
    """Removes the picture."""

    async def post(self) -> None:
        """Replaces it with a generated one."""
        self.check_same_origin()
        await self.store.profiles.save_picture(self.require_session(), b"", self.visitor)
        self.see_done("/account?removed")


class UploadHandler(Upload, ProfilePage):
    """Receives a picture."""

    async def post(self) -> None:
        """Makes a picture from the file and shows it, or an error in the field."""
        session = self.require_session()
        try:
            file = self.file()
            if not file:
                raise Refused("invalid_request", Phrase("Choose a picture first."))
            image = await self.site.image_upload.make(file)
        except Refused as refusal:
            if not self.shows(refusal):
                raise
            return await self.show(picture_error=refusal.description)
        await self.store.profiles.save_picture(session, image, self.visitor)
        self.see_done("/account?picture")
