"""What a person's credits pay for: the balance, and a question to a model. This part is Latchkey's own.

Any SDK of the Anthropic Messages API would do for the question: base URL `ISSUER/api/v1/ai`, the access token as
`auth_token`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oauth_client import OAuthClient, Tokens, Trouble

MODEL = "latchkey-echo"
MOST_TOKENS = 300
SECONDS = 60
WORDS = {
    "insufficient_credits": "Your Latchkey credits do not cover this. Whoever runs the server can give you more.",
    "app_spend_limit": "You let this app spend no more this month. You can change that in your Latchkey account.",
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
    message = {"role": "user", "content": question}
    body = {"model": MODEL, "max_tokens": MOST_TOKENS, "messages": [message]}
    try:
        said = await client.call(tokens, f"{client.issuer}/api/v1/ai/messages", body, SECONDS)
    except Trouble as trouble:
        if trouble.code == "invalid_token":
            raise
        return Answer(question, trouble=WORDS.get(trouble.code, trouble.message))
    credits: dict[str, Any] = said.get("credits", {})
    reply = "".join(block.get("text", "") for block in said.get("content", []))
    return Answer(question, reply, dollars(credits.get("charged", 0)), dollars(credits.get("remaining", 0)))


def dollars(amount: int) -> str:
    """Micro-dollars in words, to the last place: one question costs far less than a cent."""
    return f"{amount // 10**6}.{amount % 10**6:06} USD"
