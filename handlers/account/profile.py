"""/account: the person's profile for apps: name and picture."""

from __future__ import annotations

from typing import cast

from tornado.httputil import HTTPConnection, HTTPFile, HTTPInputError, parse_body_arguments
from tornado.web import stream_request_body

from handlers.core.image_upload import MOST_UPLOAD
from handlers.core.page import PageHandler
from handlers.core.policy import Policy
from store.names import check_person_name
from store.phrases import Phrase
from store.refused import Refused, reason_of

# A picture that is too large is read to its end, so that the browser shows the answer, but not kept.
PASSED_OVER = 4
ROUND_IT = 8192
"""Bytes of the form in addition to the file."""

NOTICES = {
    "name": Phrase("Your name was changed."),
    "picture": Phrase("Your picture was changed."),
    "removed": Phrase("Your picture was removed."),
    "preferences": Phrase("Your language and time zone were changed."),
}


class ProfilePage(PageHandler):
    """The page of the profile."""

    async def show(self, *, name: str | None = None, name_error: str = "", picture_error: str = "") -> None:
        """The page, with what was typed and its errors."""
        profile = await self.store.sessions.profile(self.require_session())
        self.render(
            "account/profile.html",
            title=Phrase("Your account"),
            signed_in=profile,
            profile=profile,
            picture=f"/picture/{self.store.profiles.address(profile)}",
            name=profile.name if name is None else name,
            name_error=name_error,
            picture_error=picture_error,
            notice=self.notice(NOTICES),
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


class RemovePictureHandler(PageHandler):
    """Removes the picture."""

    async def post(self) -> None:
        """Replaces it with a generated one."""
        self.check_same_origin()
        await self.store.profiles.save_picture(self.require_session(), b"", self.visitor)
        self.see_done("/account?removed")


@stream_request_body
class UploadHandler(ProfilePage):
    """Receives a picture. Its body may be longer than any other form's. So the sender must be signed in before the body
    is read, takes one of the process's places, and sends one picture at a time."""

    def initialize(self, policy: Policy) -> None:
        """Keeps the route's policy."""
        super().initialize(policy)
        self.pieces: list[bytes] = []
        self.size = 0
        self.complete = self.over = False
        self.uploader = ""  # the user whose place this request has

    def check_xsrf_cookie(self) -> None:
        """Does nothing: the token is in the body, and `post` checks it."""

    async def prepare(self) -> None:  # type: ignore[override]  # Tornado awaits it
        """Admits a person who is signed in: one upload at a time, within the hourly limit and the places of the
        process."""
        if self.request.method != "POST":
            return
        connection = cast(HTTPConnection, self.request.connection)
        # All connections of servers have this method.
        connection.set_max_body_size(PASSED_OVER * MOST_UPLOAD)  # type: ignore[attr-defined]
        self.check_same_origin()
        session = self.require_session()
        await self.store.sessions.profile(session)
        if self.over:
            return  # the client is gone, and would never free a place
        self.site.image_upload.enter(session.user)
        self.uploader = session.user
        await self.store.limits.picture(session.user)

    def data_received(self, chunk: bytes) -> None:
        """Keeps at most as many bytes as a picture may have."""
        self.size += len(chunk)
        if self.size <= MOST_UPLOAD + ROUND_IT:
            self.pieces.append(chunk)
        else:
            self.pieces.clear()

    def on_connection_close(self) -> None:
        """Ends a request whose body never arrived in full: nobody will answer it."""
        super().on_connection_close()
        if not self.complete:
            self.on_finish()

    def on_finish(self) -> None:
        """Frees the place, once."""
        if self.over:
            return
        self.over = True
        self.pieces = []
        if self.uploader:
            self.site.image_upload.leave(self.uploader)
        super().on_finish()

    async def post(self) -> None:
        """Makes a picture from the file and shows it, or an error in the field."""
        self.complete = True
        session = self.require_session()
        try:
            file = self.file()
            super().check_xsrf_cookie()
            image = await self.site.image_upload.make(file)
        except Refused as refusal:
            if refusal.code not in ("invalid_request", "payload_too_large") or self.wants_json():
                raise
            self.set_status(413 if refusal.code == "payload_too_large" else 400)
            return await self.show(picture_error=refusal.description)
        await self.store.profiles.save_picture(session, image, self.visitor)
        self.see_done("/account?picture")

    def file(self) -> bytes:
        """The file in the form. Raises Refused("payload_too_large", "invalid_request" or "unsupported_media_type")."""
        if self.size > MOST_UPLOAD + ROUND_IT:
            raise Refused("payload_too_large", _TOO_LARGE)
        kind = self.request.headers.get("Content-Type", "")
        if not kind.startswith("multipart/form-data"):
            raise Refused("unsupported_media_type", Phrase("Send the picture as a form does: multipart/form-data."))
        files: dict[str, list[HTTPFile]] = {}
        try:
            parse_body_arguments(kind, b"".join(self.pieces), self.request.body_arguments, files)
        except (HTTPInputError, ValueError):  # bad UTF-8 raises ValueError
            raise Refused("invalid_request", Phrase("The form is broken.")) from None
        finally:
            self.pieces = []
        for name, values in self.request.body_arguments.items():
            self.request.arguments.setdefault(name, []).extend(values)
        sent = files.get("picture", [])
        if len(sent) != 1 or not sent[0]["body"]:
            raise Refused("invalid_request", Phrase("Choose a picture first."))
        if len(sent[0]["body"]) > MOST_UPLOAD:
            raise Refused("payload_too_large", _TOO_LARGE)
        return cast(bytes, sent[0]["body"])


_TOO_LARGE = Phrase("That file is too large: a picture may have 5 MiB at most.")
