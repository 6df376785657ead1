"""Streamed downloads, whose size does not affect memory use."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from tornado.iostream import StreamClosedError

from handlers.core.page import PageHandler


class DownloadPage(PageHandler):
    """A page that may answer with a file."""

    async def send_file(self, name: str, media_type: str, pieces: AsyncGenerator[bytes, None]) -> None:
        """Sends the pieces as a file of this name. Each piece is made once the previous one is on its way. An error
        before the first piece gets an error page. After that the connection is cut, so that nobody takes half a
        download for a whole one. Raises SignedOut, and Refused if too many downloads are in progress."""
        try:
            with self.site.downloads.place(self.require_session().user):
                await self.send_pieces(name, media_type, pieces)
            await self.finish()
        except StreamClosedError:
            self.finish()
        except BaseException:
            if self._headers_written:
                cast(Any, self.request.connection).stream.close()
            raise

    async def send_pieces(self, name: str, media_type: str, pieces: AsyncGenerator[bytes, None]) -> None:
        """Sends all pieces, but does not end the answer."""
        async with aclosing(pieces):
            async for piece in pieces:
                if not self._headers_written:
                    self.step_aside()
                    self.set_header("Content-Type", media_type)
                    self.set_header("Content-Disposition", f'attachment; filename="{name}"')
                self.streamed += len(piece)
                self.write(piece)
                await self.flush()
