"""Posts events to apps: takes due events from the store, a few at a time, and records the outcome.

Each server process has one sender. It leases the events that it takes for a minute. If it doesn't settle one by then,
for example because it was killed, any process may take the event again. So each event is posted at least once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from urllib.parse import urlsplit

from observability.spans import working
from outbound.address_policy import asking
from outbound.webhooks.channels import Channel, EventChannel, LogoutChannel, SignLogout, Verdict
from outbound.webhooks.errors import NO_TARGET, NOT_SIGNED, OWN_ERROR
from outbound.webhooks.posting import HEADERS, Poster, PostResult
from store.apps.webhooks import Target
from store.errors import StoreError, StoreUnavailable
from store.keyed_semaphore import PART, FairSemaphore, KeyedSemaphore, share
from store.webhooks.attempts import NO_EXCHANGE, WebhookExchange
from store.webhooks.deliveries import SESSION_ENDED, Deliveries, Delivery

log = logging.getLogger("latchkey.webhooks")

LOOK_SECONDS = 1.0
"""How often the sender asks the store for due events."""
AWAY_SECONDS = 5.0
"""The pause after the store did not answer."""
LEASE_SECONDS = 60
"""The lease of a taken event: longer than its wait, the post and the settlement together."""
TURN_SECONDS = 20.0
PUT_BACK_SECONDS, SPACED_SECONDS = 5.0, 0.05
"""When an event that was put back is due again, and the time between two such events of one owner."""
EACH_APP, EACH_HOST = 4, 16
"""The limits of posts in progress. A slow receiver delays only its own events."""
LINE = 16 * EACH_APP
"""The limit of one app's events in a process. Further events are put back, and so are those beyond the owner's share of
all events that a process may take."""
TAKEN = 16
"""Events that a process takes for each post that may be in progress. Most of them wait in an app's line."""
AT_ONCE = 100
CLAIM_SECONDS = 2.0
"""How long a stop waits for a claim in progress."""
SETTLING = (0.5, 2.0, 5.0)
"""Seconds before each retry of a settlement whose answer was lost."""


def unwatched(event: str, outcome: str) -> None:
    """Ignores the outcome."""


class WebhookSender:
    """The sender of webhooks and logout tokens of a process. `target` gives the destination of an app's events of one
    type; `most` limits posts in progress; `sign_logout` signs logout tokens."""

    def __init__(
        self,
        deliveries: Deliveries,
        target: Callable[[str, str], Awaitable[Target | None]],
        poster: Poster,
        most: int,
        sign_logout: SignLogout,
    ) -> None:
        self._deliveries = deliveries
        self._target = target
        self._poster = poster
        self._events, self._logouts = EventChannel(), LogoutChannel(sign_logout)
        self._semaphore = FairSemaphore(most)
        self._taken_most = TAKEN * most
        self._tasks: set[asyncio.Task[None]] = set()
        self._apps, self._hosts = KeyedSemaphore(EACH_APP), KeyedSemaphore(EACH_HOST, PART)
        self._apps_lines: Counter[str] = Counter()
        self._lines: Counter[str] = Counter()
        self._again_at: dict[str, float] = {}
        self._look = asyncio.Event()
        self._claiming = asyncio.Lock()
        self._stopping = False
        self.takes_all = False
        """Whether any number of events may wait here, so that none is put back for lack of room."""
        self.watch: Callable[[str, str], None] = unwatched
        """Called for each settled attempt, with the event's type and the outcome."""
        self._runner: asyncio.Task[None] | None = None

    @property
    def queue(self) -> int:
        """The number of events taken: in progress or waiting."""
        return len(self._tasks)

    def start(self) -> None:
        """Starts, also again after `leave_off`."""
        self._stopping = False
        self._runner = asyncio.get_running_loop().create_task(self._run())

    def wake(self) -> None:
        """Notes that an event is due."""
        self._look.set()

    async def stop(self) -> None:
        """Takes no more events, and puts waiting ones back. Posts in progress continue."""
        self._stopping = True
        self.wake()
        if self._runner:
            # Let the claim finish: nobody would have its events until their lease ends.
            await asyncio.wait({self._runner}, timeout=CLAIM_SECONDS)
            await _cancel({self._runner})

    async def leave_off(self, seconds: float) -> None:
        """Gives posts in progress `seconds` to end. Other processes post the rest when the leases end."""
        await self.stop()
        if self._tasks:
            _, late = await asyncio.wait(tuple(self._tasks), timeout=seconds)
            await _cancel(late)

    async def close(self, seconds: float) -> None:
        """Like `leave_off`, for good."""
        await self.leave_off(seconds)
        await self._poster.close()

    async def bring_out(self, seconds: float) -> None:
        """Posts what is due, and waits for it at most `seconds`; does not wait for later attempts. Raises
        StoreUnavailable."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds
        await self._take()
        while self._tasks and (left := ends - loop.time()) > 0:
            await asyncio.wait(tuple(self._tasks), timeout=left)
            await self._take()

    async def _run(self) -> None:
        while not self._stopping:
            pause = LOOK_SECONDS
            try:
                pause = 0 if await self._take() else LOOK_SECONDS
            except StoreUnavailable:
                log.debug("webhooks paused: the store is away")
                pause = AWAY_SECONDS
            except Exception:  # whatever it is, the server continues, and retries this
                log.exception("webhooks: due events could not be taken")
                pause = AWAY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._look.wait()
            self._look.clear()

    async def _take(self) -> bool:
        """Takes events if there is room. Returns whether more may be due now."""
        # One claim at a time: its events become tasks only when it is answered.
        async with self._claiming:
            room = min(AT_ONCE, self._taken_most - len(self._tasks))
            if room <= 0:
                return False  # a task that ends wakes the loop
            taken = await self._deliveries.claim(room, LEASE_SECONDS)
            for delivery in taken:
                task = asyncio.get_running_loop().create_task(self._guarded(delivery))
                self._tasks.add(task)
                task.add_done_callback(self._ended)
            return len(taken) == room

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if len(self._tasks) == self._taken_most - 1:
            self.wake()

    async def _guarded(self, delivery: Delivery) -> None:
        """Posts the event, or puts it back."""
        try:
            target = await self._found(delivery)
            if target:
                with self._line(delivery.client_id, target.payer) as fits:
                    if not fits or not await self._in_turn(delivery, target):
                        await self._give_back(delivery, target.payer)
        except StoreUnavailable:
            log.debug("webhook %s of %s is not settled: the store is away", delivery.id, delivery.client_id)
        except Exception:  # as in `_run`; it may recur, so it counts as an attempt
            log.exception("webhook %s of %s could not be posted", delivery.id, delivery.client_id)
            with contextlib.suppress(StoreError):
                await self._settle_own_error(delivery, OWN_ERROR)

    async def _found(self, delivery: Delivery) -> Target | None:
        """The destination; None if there is none, which settles the event."""
        try:
            target = await self._target(delivery.client_id, delivery.type)
        except StoreUnavailable:
            raise
        except StoreError as error:
            log.error("webhook %s of %s: %s", delivery.id, delivery.client_id, error)
            await self._settle_own_error(delivery, NOT_SIGNED)
            return None
        if target is None:
            await self._settle(delivery, None, Verdict(False, None, NO_TARGET))
        return target

    def _channel(self, delivery: Delivery) -> Channel:
        return self._logouts if delivery.type == SESSION_ENDED else self._events

    async def _settle_own_error(self, delivery: Delivery, error: str) -> None:
        await self._settle(delivery, None, self._channel(delivery).verdict(delivery, PostResult(None, error)))

    @contextlib.contextmanager
    def _line(self, app: str, payer: str) -> Iterator[bool]:
        """Counts an event as waiting or in progress. Yields whether there is room for it."""
        fits = self.takes_all or (
            self._apps_lines[app] < LINE
            and self._lines[payer] < share(self._taken_most, self._lines.total(), self._lines[payer])
        )
        self._apps_lines[app] += fits
        self._lines[payer] += fits
        try:
            yield fits
        finally:
            self._apps_lines[app] -= fits
            self._lines[payer] -= fits
            if not self._apps_lines[app]:
                del self._apps_lines[app]
            if not self._lines[payer]:
                del self._lines[payer]
                self._again_at.pop(payer, None)

    async def _give_back(self, delivery: Delivery, payer: str) -> None:
        now = asyncio.get_running_loop().time()
        again_at = max(now + PUT_BACK_SECONDS, self._again_at.get(payer, 0.0) + SPACED_SECONDS)
        self._again_at[payer] = again_at
        await self._deliveries.put_back(delivery.id, delivery.attempts, again_at - now)

    async def _in_turn(self, delivery: Delivery, target: Target) -> bool:
        """Posts the event in its turn; returns False if the turn doesn't come soon."""
        host = urlsplit(target.url).hostname or ""
        app, payer = delivery.client_id, target.payer
        places = (self._apps.place(app), self._hosts.place(host, payer), self._semaphore.place(payer))
        async with contextlib.AsyncExitStack() as turn:
            try:
                async with asyncio.timeout(TURN_SECONDS):
                    for place in places:
                        await turn.enter_async_context(place)
            except TimeoutError:
                return False
            if self._stopping:
                return False
            asking.set(payer)
            with working("deliver webhook", delivery.type) as span:
                status, verdict, exchange = await self._post(delivery, target)
                if span and not verdict.delivered:
                    span.fail()
        await self._settle(delivery, status, verdict, exchange)
        return True

    async def _post(self, delivery: Delivery, target: Target) -> tuple[int | None, Verdict, WebhookExchange]:
        channel = self._channel(delivery)
        message = await channel.message(delivery, target)
        answer = await self._poster.post(target.url, message.headers, message.body)
        verdict = channel.verdict(delivery, answer)
        outcome = "delivered" if verdict.delivered else verdict.error
        log.debug("webhook %s of %s, attempt %d: %s", delivery.id, delivery.client_id, delivery.attempts, outcome)
        sent = tuple((HEADERS | dict(message.headers)).items())
        exchange = WebhookExchange(target.url, sent, message.recorded, answer.answer, answer.milliseconds)
        return answer.status, verdict, exchange

    async def _settle(
        self, delivery: Delivery, status: int | None, verdict: Verdict, exchange: WebhookExchange = NO_EXCHANGE
    ) -> None:
        """Settles the event. Repeats the call if the answer was lost: the store recognizes the attempt."""
        for pause in (*SETTLING, None):
            try:
                await self._deliveries.settle(
                    delivery.id,
                    delivery.attempts,
                    delivered=verdict.delivered,
                    status=status,
                    error=verdict.error,
                    retry_in=verdict.again,
                    exchange=exchange,
                )
                outcome = "delivered" if verdict.delivered else "failed" if verdict.again is None else "again"
                self.watch(delivery.type, outcome)
                return
            except StoreUnavailable:
                if pause is None:
                    raise
                await asyncio.sleep(pause)


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    """Cancels repeatedly, because the driver swallows a cancellation while it connects."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.05)
