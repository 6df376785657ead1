"""How an event is posted, and what the answer means: as a webhook (Standard Webhooks), or as a logout token (OpenID
Connect Back-Channel Logout 1.0)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import urlencode

from outbound.webhooks.errors import NO_SUCCESS, TOKEN_REFUSED
from outbound.webhooks.posting import PostResult
from outbound.webhooks.retries import pause_after
from outbound.webhooks.signing import body_of, signed
from store.apps.webhooks import Target
from store.lifetimes import DAY, SECOND
from store.webhooks.deliveries import Delivery

LOGOUT_SECONDS = DAY // SECOND
"""How long a logout token is retried."""

SignLogout = Callable[[Delivery, Target, int], Awaitable[str]]
"""Signs a logout token for an attempt at this time (epoch seconds)."""


class Message(NamedTuple):
    """The headers and the body of one attempt, and the body as it is recorded."""

    headers: Mapping[str, str]
    body: bytes
    recorded: bytes


class Verdict(NamedTuple):
    """What an answer means. `again`: the seconds until the next attempt, or None if this was the last one."""

    delivered: bool
    again: float | None
    error: str


class Channel(Protocol):
    """One way to post events."""

    async def message(self, delivery: Delivery, target: Target) -> Message:
        """Composes an attempt. Raises StoreError, StoreUnavailable."""

    def verdict(self, delivery: Delivery, answer: PostResult) -> Verdict:
        """Reads the answer to an attempt."""


class EventChannel:
    """Posts events as JSON, signed with the app's own secrets."""

    async def message(self, delivery: Delivery, target: Target) -> Message:
        """The body is the same for each attempt."""
        body = body_of(delivery.type, delivery.occurred_at, delivery.client_id, delivery.sub, delivery.details)
        # The host's time: an app that did not travel checks this stamp against its own clock.
        return Message(signed(delivery.id, int(time.time()), body, target.secrets), body, body)

    def verdict(self, delivery: Delivery, answer: PostResult) -> Verdict:
        """Any 2xx is success, and after 410 the app gets no more of it."""
        final = answer.delivered or answer.gone
        return Verdict(
            answer.delivered, None if final else pause_after(delivery.tries, answer.retry_after), answer.error
        )


class LogoutChannel:
    """Posts logout tokens, each signed for its attempt."""

    def __init__(self, sign: SignLogout) -> None:
        self._sign = sign

    async def message(self, delivery: Delivery, target: Target) -> Message:
        """A form with a new token (2.5). It is recorded without its signature, because the store keeps no token that
        somebody could use."""
        # The host's time, as above.
        token = await self._sign(delivery, target, int(time.time()))
        body, unsigned = (urlencode({"logout_token": one}).encode() for one in (token, token.rpartition(".")[0] + "."))
        return Message({"content-type": "application/x-www-form-urlencoded"}, body, unsigned)

    def verdict(self, delivery: Delivery, answer: PostResult) -> Verdict:
        """200 and 204 are success, 400 is final (2.8). Anything else is retried for a day, the last time at its end."""
        if answer.status in (200, 204):
            return Verdict(True, None, "")
        if answer.status == 400:
            return Verdict(False, None, TOKEN_REFUSED)
        told = answer.status is None or 300 <= answer.status < 400
        error = answer.error if told else NO_SUCCESS.filled(status=str(answer.status))
        return Verdict(False, again_within_a_day(delivery, answer.retry_after), error)


def again_within_a_day(delivery: Delivery, retry_after: float | None) -> float | None:
    """The seconds until the next attempt at a logout token; None a day after its session has ended, by the store's
    clock."""
    left = LOGOUT_SECONDS - ((delivery.last_attempt_at or delivery.created_at) - delivery.created_at) / SECOND
    pause = pause_after(delivery.tries, retry_after)
    return None if left <= 0 or pause is None else min(pause, left)
