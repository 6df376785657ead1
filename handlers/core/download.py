"""What is downloaded piece by piece, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from tornado.iostream import StreamClosedError

from handlers.core.page import PageHandler


class DownloadPage(PageHandler):
    """A page that may answer with a file."""

    async def send_file(self, name: str, media_type: str, pieces: AsyncGenerator[bytes, None]) -> None:
        """Sends the pieces as a file of this name; a piece is made when the one before is on its way. What goes wrong
        before the first one is answered as on any page; afterwards the connection is cut, so that half a download is
        not taken for a whole one. Raises SignedOut, Refused where as many are under way as may be."""
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
        """All but the end of the answer."""
        async with aclosing(pieces):
            async for piece in pieces:
                if not self._headers_written:
                    self.step_aside()
                    self.set_header("Content-Type", media_type)
                    self.set_header("Content-Disposition", f'attachment; filename="{name}"')
                self.streamed += len(piece)
                self.write(piece)
                await self.flush()
