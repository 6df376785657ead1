"""What a person's credits pay for: the balance, and a question to a model. This part is Latchkey's own.

Any SDK of the Anthropic Messages API would do for the question: base URL `ISSUER/api/v1/ai`, the access token as
`auth_token`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from oauth_client import OAuthClient, Tokens, Trouble

MODEL = "latchkey-echo"
MOST_TOKENS, LONGEST_REPLY = 300, 4000
SECONDS = 60
WORDS = {
    "insufficient_credits": "Your Latchkey credits do not cover this. Whoever runs the server can give you more.",
    "app_spend_limit": "This app has reached its spending limit. You can see it in your Latchkey account.",
    "budget_exhausted": "You allowed no more than this.",
    "person_spend_limit": "You have reached the spending limit for today. Try again tomorrow.",
    "insufficient_scope": "You did not allow this app to do that. Disconnect, and allow it when you sign in again.",
}


@dataclass
class Answer:
    """A question, and what came of it: a reply with its price and what is left, or why there is none."""

    question: str
    reply: str = ""
    charged: str = ""
    remaining: str = ""
    trouble: str = ""


@dataclass
class Spent:
    """A number of questions, what they cost in micro-dollars, and why the next one was refused, if it was."""

    asked: int = 0
    charged: int = 0
    refusal: str = ""


async def read_balance(client: OAuthClient, tokens: Tokens) -> str:
    """What the person can spend, in words. Raises Trouble."""
    found = await client.call(tokens, f"{client.issuer}/api/v1/credits/balance")
    words = f"{dollars(found['spendable'])} to spend"
    limit = found.get("appLimit")
    if limit:
        words += f"; in this app {dollars(max(0, limit['limit'] - limit['used']))} more this month"
    return words


async def ask(client: OAuthClient, tokens: Tokens, question: str) -> Answer:
    """The model's reply, which the person pays. Raises Trouble("invalid_token"); any other trouble is the answer."""
    answer = Answer(question)
    async for _ in ask_streamed(client, tokens, answer):
        pass
    return answer


async def spend_until_refused(client: OAuthClient, tokens: Tokens, question: str, most: int) -> Spent:
    """Asks the same `question` again and again, at most `most` times. Raises Trouble("invalid_token")."""
    body = {"model": MODEL, "max_tokens": LONGEST_REPLY, "messages": [{"role": "user", "content": question}]}
    spent = Spent()
    while spent.asked < most:
        try:
            answer = await client.call(tokens, f"{client.issuer}/api/v1/ai/messages", body, SECONDS)
        except Trouble as trouble:
            if trouble.code == "invalid_token":
                raise
            spent.refusal = WORDS.get(trouble.code, trouble.message)
            break
        spent.asked += 1
        spent.charged += answer["credits"]["charged"]
    return spent


async def ask_streamed(client: OAuthClient, tokens: Tokens, answer: Answer) -> AsyncIterator[str]:
    """The model's reply to `answer.question` as it arrives, piece by piece; when it ends, `answer` says it all. Raises
    as `ask` does."""
    message = {"role": "user", "content": answer.question}
    body = {"model": MODEL, "max_tokens": MOST_TOKENS, "messages": [message], "stream": True}
    arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
    url = f"{client.issuer}/api/v1/ai/messages"
    call = asyncio.ensure_future(client.stream(tokens, url, body, arrived.put_nowait, SECONDS))
    call.add_done_callback(lambda _: arrived.put_nowait(None))
    rest = b""
    try:
        while (piece := await arrived.get()) is not None:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                text = read_line(line, answer)
                if text:
                    yield text
        await call
    except Trouble as trouble:
        if trouble.code == "invalid_token":
            raise
        answer.trouble = WORDS.get(trouble.code, trouble.message)
    finally:
        call.cancel()  # where nobody listens any more: the model stops, and what it has said is paid


def read_line(line: bytes, answer: Answer) -> str:
    """Notes in `answer` what a line of the event stream says; the text it adds."""
    if not line.startswith(b"data:"):
        return ""
    event: dict[str, Any] = json.loads(line.removeprefix(b"data:"))
    if event["type"] == "error":
        answer.trouble = event["error"]["message"]
    if "credits" in event:
        credits = event["credits"]
        answer.charged = dollars(credits["charged"])
        # Only a token with credits:read gets the remaining credits.
        answer.remaining = dollars(credits["remaining"]) if "remaining" in credits else ""
    text = str(event["delta"].get("text", "")) if event["type"] == "content_block_delta" else ""
    answer.reply += text
    return text


def dollars(amount: int) -> str:
    """Micro-dollars in words, to the last place: one question costs far less than a cent."""
    return f"{amount // 10**6}.{amount % 10**6:06} USD"
