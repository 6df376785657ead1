"""Forms with a file: who may send one, and how its body is read."""

from __future__ import annotations

from typing import Any, cast

from tornado.httputil import HTTPFile, HTTPInputError, parse_body_arguments
from tornado.web import stream_request_body

from handlers.core.page import PageHandler
from handlers.core.pictures.image_upload import MOST_UPLOAD
from handlers.core.policy import Policy
from store.phrases import Phrase
from store.refused import Refused

# A file that is too large is read to its end, so that the browser shows the answer, but not kept.
PASSED_OVER = 4
ROUND_IT = 8192
"""Bytes of the form in addition to the file."""


@stream_request_body
class Upload(PageHandler):
    """A form with a picture. Its body may be longer than any other form's. So the sender must be signed in before the
    body is read, takes one of the process's places, and sends one file at a time. `field`: the name of the file;
    `most`: its size in bytes."""

    field = "picture"
    most = MOST_UPLOAD
    too_large: str = Phrase("That file is too large. A picture can have up to 5 MiB.")

    def initialize(self, policy: Policy) -> None:
        """Keeps the route's policy."""
        super().initialize(policy)
        self.pieces: list[bytes] = []
        self.size = 0
        self.complete = self.over = False
        self.uploader = ""  # the user whose place this request has

    def check_xsrf_cookie(self) -> None:
        """Does nothing: the token is in the body, and `file` checks it."""

    async def prepare(self) -> None:  # type: ignore[override]  # Tornado awaits it
        """Admits a person who is signed in: one upload at a time, within the hourly limit and the places of the
        process."""
        if self.request.method != "POST":
            return
        connection = cast(Any, self.request.connection)  # those of both servers have the method
        connection.set_max_body_size(PASSED_OVER * self.most)
        self.check_same_origin()
        session = self.require_session()
        await self.store.sessions.profile(session)
        if self.over:
            return  # the client is gone, and would never free a place
        self.enter(session.user)
        await self.store.limits.picture(session.user)

    def enter(self, user: str) -> None:
        """Takes a place for a person. Raises Refused("temporarily_unavailable")."""
        self.site.image_upload.enter(user)
        self.uploader = user

    def leave(self) -> None:
        """Frees the place, if this request has one."""
        if self.uploader:
            self.site.image_upload.leave(self.uploader)
            self.uploader = ""

    def data_received(self, chunk: bytes) -> None:
        """Keeps at most as many bytes as a file may have."""
        self.size += len(chunk)
        if self.size <= self.most + ROUND_IT:
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
        self.leave()
        super().on_finish()

    def shows(self, refusal: Refused) -> bool:
        """Whether the page shows a refusal in its field; sets the status."""
        if refusal.code not in ("invalid_request", "payload_too_large") or self.wants_json():
            return False
        self.set_status(413 if refusal.code == "payload_too_large" else 400)
        return True

    def typed(self, name: str) -> str:
        """The text of another field, after `file`; empty if it is missing or not UTF-8."""
        return self.request.body_arguments.get(name, [b""])[-1].decode("utf-8", "ignore").strip()

    def file(self) -> bytes:
        """The file in the form; empty if none was chosen. Checks the XSRF token. Raises Refused("payload_too_large",
        "invalid_request", "unsupported_media_type" or "access_denied")."""
        self.complete = True
        if self.size > self.most + ROUND_IT:
            raise Refused("payload_too_large", self.too_large)
        kind = self.request.headers.get("Content-Type", "")
        if not kind.startswith("multipart/form-data"):
            raise Refused("unsupported_media_type", Phrase("Send the picture as a form does: multipart/form-data."))
        files: dict[str, list[HTTPFile]] = {}
        try:
            parse_body_arguments(kind, b"".join(self.pieces), self.request.body_arguments, files)
        except (HTTPInputError, ValueError):  # bad UTF-8 raises ValueError
            raise Refused(
                "invalid_request", Phrase("We couldn't read the form. Reload the page and try again.")
            ) from None
        finally:
            self.pieces = []
        for name, values in self.request.body_arguments.items():
            self.request.arguments.setdefault(name, []).extend(values)
        super().check_xsrf_cookie()
        sent = files.get(self.field, [])
        if len(sent) > 1:
            raise Refused("invalid_request", Phrase("We couldn't read the form. Reload the page and try again."))
        if sent and len(sent[0]["body"]) > self.most:
            raise Refused("payload_too_large", self.too_large)
        return cast(bytes, sent[0]["body"]) if sent else b""
