"""A process between start and end: serves, reacts to signals, and drains."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import AsyncExitStack, suppress

from handlers.core.application import Latchkey
from handlers.ops.credits import make_ops_application
from handlers.ops.inbox import add_inbox
from handlers.routes import make_application
from outbound.webhooks.poster import WebhookSender
from runtime import garbage, notify
from runtime.listening import Listening, body_bounds, drain
from runtime.measuring import measured
from runtime.memory_watch import RoomWatch
from runtime.outbound_wiring import open_audit_export, open_webhooks
from runtime.process_state import Runtime
from runtime.reload import Reloads
from runtime.site_wiring import open_site
from runtime.starting import STOPPED, STOPPING, announce, prepare, tell_of_missing_keys
from runtime.store_keeper import StoreKeeper
from runtime.tracing_wiring import tracing
from runtime.wiring import open_store
from settings.declared import Settings
from store.crypto.keyring import KeyRingError
from store.errors import StartupError, StoreError
from store.wiring import Store

log = logging.getLogger("latchkey")

KEY_CHECK_SECONDS = 3600.0
KEY_FILE_SECONDS = 1.0
LEAST_MAIL_SECONDS = 1.0


async def serve(runtime: Runtime, *, alone: bool) -> None:
    """Serves until a signal, then lets requests in progress finish. `alone`: there is no supervisor that seeds and
    announces."""
    signals = Signals(runtime)
    stop, settings = signals.stop, runtime.settings
    if stop.is_set():
        signals.no_more()
        return
    opened = open_store(runtime.settings, runtime.store_url, runtime.keys)
    async with (
        opened as store,
        store.announcements.following(),
        store.app_stats.flushing(),
        store.app_log.flushing(),
        store.hosting.flushing(),
        store.security.flushing(),
        store.recorded_events.keeping(),
        tracing(lambda: runtime.settings, store),
    ):
        store.wire_all()
        demo = await prepare(runtime, store) if alone else None
        webhooks = open_webhooks(settings, store, runtime.base_url)
        site = open_site(runtime, store, webhooks)
        largest, bodies = body_bounds(settings)
        application = make_application(site)
        if site.inbox:
            add_inbox(application)
        if settings.testable:
            rehearse(application, settings, webhooks)
        listening = [Listening.start(application, runtime.sockets, settings, largest)]
        if runtime.ops_sockets:
            operations = make_ops_application(site, settings.operator_keys)
            listening.append(Listening.start(operations, runtime.ops_sockets, settings, bodies))
        room = RoomWatch(tells=runtime.number == 0)
        exporter = open_audit_export(lambda: runtime.settings, store)
        measuring = None
        if runtime.metrics_sockets:
            measuring = measured(runtime, site, webhooks, listening, bodies, room, exporter)
        watching = asyncio.ensure_future(room.watch(store))
        reloads = Reloads(runtime, store, listening, alone=alone)
        watch = asyncio.ensure_future(watch_over(runtime, store, stop))
        follow = asyncio.ensure_future(reloads.follow(signals.reload))
        relaying = AsyncExitStack()
        if settings.webhooks:
            await relaying.enter_async_context(store.outbox.relaying(store.webhooks.wants, webhooks.wake))
            webhooks.start()
        await relaying.enter_async_context(store.directory_relay.relaying())
        await relaying.enter_async_context(store.directory_rebuild.continuing())
        garbage.settle()
        # Look the site up at each call: a reload replaces it.
        store.app_sweep.fetch = lambda url, most: application.site.fetcher.fetch(url, most)
        await relaying.enter_async_context(store.app_sweep.sweeping())
        await relaying.enter_async_context(store.planned_deletions.deleting())
        if exporter:
            await relaying.enter_async_context(exporter.exporting())
        if alone:
            announce(runtime, demo)
        try:
            await stop.wait()
            follow.cancel()
            settings, site = runtime.settings, application.site
            if alone:
                notify.notify_stopping()
                log.info(STOPPING)
            for one in listening:
                one.wind_down()
            site.watches.close()
            await signals.delay(settings.drain_delay)
            await asyncio.gather(*(one.leave(shared=settings.reuse_port) for one in listening))
            await webhooks.stop()
            ends = asyncio.get_running_loop().time() + settings.drain_timeout
            await drain(listening, settings.drain_timeout)
            for one in listening:
                await one.server.close_all_connections()
            for end in tuple(site.endings):
                end()
            # The cut streams now settle what they have delivered.
            await drain(listening, settings.call_seconds)
            left = max(LEAST_MAIL_SECONDS, ends - asyncio.get_running_loop().time())
            await asyncio.gather(site.mail.close(left), webhooks.close(left))
            if alone:
                log.info(STOPPED)
        finally:
            watch.cancel()
            follow.cancel()
            if measuring:
                measuring.cancel()
            watching.cancel()
            await reloads.close()
            await relaying.aclose()
            await webhooks.close(0)
            await application.site.models.close()
            application.site.long_bodies.close()
            if demo:
                demo.stop()
            signals.no_more()


def rehearse(application: Latchkey, settings: Settings, webhooks: WebhookSender) -> None:
    """Lets the tests of apps control this server. Other servers never load the code for it."""
    from testkit.rehearsal import Rehearsal
    from testkit.routes import add_to

    add_to(application, Rehearsal(application.site, webhooks, settings.seed, settings.auto_consent))
    log.info("tests of apps may control this server: its data is not kept")


class Signals:
    """Signals that a serving process receives: SIGTERM and SIGINT set `stop`, SIGHUP sets `reload`."""

    def __init__(self, runtime: Runtime) -> None:
        self.stop, self.reload = asyncio.Event(), asyncio.Event()
        self._at_leisure = False
        self._hurry = asyncio.Event()
        self._hangup = runtime.hangup
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGTERM, self._stop_at_leisure)
        self._loop.add_signal_handler(signal.SIGINT, self._stop_now)
        self._loop.add_signal_handler(signal.SIGHUP, self._hung_up)
        if runtime.hangup.asked:
            self.reload.set()
        if runtime.early.asked:
            self.stop.set()

    def _stop_at_leisure(self) -> None:
        self._at_leisure = True
        self.stop.set()

    def _stop_now(self) -> None:
        self._hurry.set()
        self.stop.set()

    def _hung_up(self) -> None:
        (self.stop if self._hangup.is_meant() else self.reload).set()

    async def delay(self, seconds: float) -> None:
        """After SIGTERM, waits for `seconds` or until a SIGINT."""
        if self._at_leisure and seconds:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), seconds)

    def no_more(self) -> None:
        """Ignores further signals, because the loop is closing and can't handle them."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)


async def watch_over(runtime: Runtime, store: Store, stop: asyncio.Event) -> None:
    """Reloads a changed key file, tells the store hourly which key seals, starts an embedded store again, stops when
    the supervisor ends."""
    keeper = StoreKeeper(runtime.embedded, stop.is_set) if runtime.embedded and runtime.supervisor is None else None
    next_check, noted = asyncio.get_running_loop().time() + KEY_CHECK_SECONDS, runtime.keys.ring
    while True:
        await asyncio.sleep(KEY_FILE_SECONDS)
        if runtime.supervisor is not None and os.getppid() != runtime.supervisor:
            stop.set()
        if keeper and keeper.due():
            await asyncio.to_thread(keeper.start)
        try:
            runtime.keys.reload()
        except KeyRingError as error:
            log.error("secret keys: %s", error)
        # Noted even after an error: a server that cannot read the new file continues to seal with the old key.
        # A call may have read the file first.
        if runtime.keys.ring is not noted or asyncio.get_running_loop().time() >= next_check:
            next_check, noted = asyncio.get_running_loop().time() + KEY_CHECK_SECONDS, runtime.keys.ring
            try:
                await store.key_state.check(noted)
                tell_of_missing_keys(store)
            except (StartupError, StoreError) as error:
                log.error("secret keys: %s", error)
