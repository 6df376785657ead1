"""What moves on the demo app's page: the answer of a model as it arrives, the balance, and the end of the access.

With JavaScript, that is; without it, the same question is answered as a whole, and the rest is there after a reload.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from typing import Any, cast

from demo_pages import NOT_CONNECTED, Page, Session
from oauth_client import Trouble
from paid_client import Answer, ask, ask_streamed
from tornado.iostream import StreamClosedError

LONGEST_QUESTION = 500
LOOK_SECONDS = 2.0
# Without credits:read it is userinfo that is asked, whose window all apps of the person share.
LOOK_SELDOM_SECONDS = 10.0


class Ask(Page):
    """Asks a model a question, which the person pays for. The front page shows the answer, so reloading it asks and
    costs nothing."""

    async def post(self) -> None:
        session = self.checked_session()
        question = self.question()
        try:
            async with session.lock:
                tokens = await self.live_tokens(session)
            if tokens is None:
                raise Trouble(NOT_CONNECTED, 401)
            if question:
                session.answer = await ask(self.client, tokens, question)
        except Trouble as trouble:
            raise self.ended(session, trouble) from None
        self.redirect("/", status=303)

    def question(self) -> str:
        """What is asked; may be empty."""
        return self.get_body_argument("question", "").strip()[:LONGEST_QUESTION]


class AskStreamed(Ask):
    """The same for the page's script: a line of JSON for each piece of the answer, and one for what it cost."""

    async def post(self) -> None:
        session = self.checked_session()
        answer = Answer(self.question())
        self.set_header("Content-Type", "application/x-ndjson")
        try:
            async with session.lock:
                tokens = await self.live_tokens(session)
            if tokens is None:
                raise Trouble(NOT_CONNECTED, 401)
            if not answer.question:
                raise Trouble("There is nothing to ask.", 400)
            async with aclosing(cast(Any, ask_streamed(self.client, tokens, answer))) as pieces:
                async for piece in pieces:
                    await self.say(text=piece)
        except Trouble as trouble:
            outcome = self.ended(session, trouble)
            return await self.say(trouble=outcome.message, ended=session.tokens is None)
        except StreamClosedError:  # the page is gone
            return
        session.answer = answer
        with suppress(StreamClosedError):
            await self.say(charged=answer.charged, remaining=answer.remaining, trouble=answer.trouble)

    async def say(self, **words: Any) -> None:
        """Sends a line."""
        self.write(json.dumps(words) + "\n")
        await self.flush()


class Events(Page):
    """Tells the page, as server-sent events, of a changed balance and of the end of the access. It looks every few
    seconds while a page is open, and at once when the server has told that something ended."""

    async def get(self) -> None:
        session = self.session()
        if session is None or session.tokens is None:
            self.set_status(204)  # to a browser: do not come again
            return
        self.stirred, self.gone = asyncio.Event(), False
        session.pages.add(self.stirred)
        self.set_header("Content-Type", "text/event-stream")
        try:
            with suppress(StreamClosedError):
                await self.follow(session)
        finally:
            session.pages.discard(self.stirred)

    async def follow(self, session: Session) -> None:
        """Looks, and tells, until the access has ended or the page is gone."""
        shown = ""
        while not self.gone:
            try:
                words, seconds = await self.look(session)
            except Trouble as trouble:
                outcome = self.ended(session, trouble)
                if outcome is not trouble:
                    session.notice = outcome.message  # this page may have been left, and nobody reads it
                if session.tokens is None:
                    return await self.tell("ended", outcome.message)
                words, seconds = shown, LOOK_SELDOM_SECONDS  # the server is away, or has enough of us
            if words and words != shown:
                await self.tell("balance", words)
                shown = words
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stirred.wait(), seconds)
            self.stirred.clear()

    async def look(self, session: Session) -> tuple[str, float]:
        """The balance in words, and when to look again. Raises Trouble."""
        async with session.lock:
            tokens = await self.live_tokens(session)
        if tokens is None:
            raise Trouble(NOT_CONNECTED, 401)
        if tokens.may("credits:read"):
            return await self.balance(tokens), LOOK_SECONDS
        await self.client.person(tokens)
        return "", LOOK_SELDOM_SECONDS

    async def tell(self, event: str, words: str) -> None:
        """Sends an event; JSON has no line breaks in it."""
        self.write(f"event: {event}\ndata: {json.dumps(words)}\n\n")
        await self.flush()

    def on_connection_close(self) -> None:
        """The page is gone."""
        self.gone = True
        if stirred := getattr(self, "stirred", None):
            stirred.set()
