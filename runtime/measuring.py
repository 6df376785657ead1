"""The metrics of a process: what it counts, and the port that serves the counts of all workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from handlers.core.site import Site
from latchkey import __version__
from observability.metrics import rows as of
from observability.metrics.keeping import keep
from observability.metrics.rows import RowFamily
from outbound.audit_export import AuditExport
from outbound.webhooks.poster import WebhookSender
from runtime.listening import Listening
from runtime.memory_watch import RoomWatch
from runtime.process_state import Runtime
from settings.declared import LOOPBACK_HOSTS


def measured(
    runtime: Runtime,
    site: Site,
    webhooks: WebhookSender,
    listening: list[Listening],
    max_body: int,
    room: RoomWatch,
    exporter: AuditExport | None = None,
) -> asyncio.Future[None]:
    """Connects the counters to the applications, the store, the mailer and the webhooks, and opens the metrics port.
    Returns the background task, for the caller to cancel at the end."""
    # Slow to import, and needed only with a metrics port.
    from handlers.ops.metrics import make_metrics_application
    from observability.metrics.exposition import Exposition, build

    for one in listening:
        one.application.measures = site.measures
    site.store.observed_by(site.measures.took)
    site.store.security.watch = site.measures.secured
    site.store.security.watch_failure = site.measures.sign_in_failed
    site.store.security.trail.watch = site.measures.trail_cut
    site.measures.scripts = site.store.answers
    site.mail.watch = site.measures.mailed
    webhooks.watch = site.measures.posted
    levels = dict(levels_of(tuple(listening), webhooks, room))
    if exporter:
        exporter.watch = site.measures.exported
        levels[of.AUDIT_BEHIND] = lambda: exporter.behind
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    exposition = Exposition(runtime.memory, build(__version__, runtime.settings.http, loop))
    hosts = LOOPBACK_HOSTS if runtime.settings.metrics_host in LOOPBACK_HOSTS else ()
    application = make_metrics_application(site, exposition, hosts)
    listening.append(Listening.start(application, runtime.metrics_sockets, runtime.settings, max_body))
    return asyncio.ensure_future(keep(site.measures, levels))


def levels_of(
    listening: Sequence[Listening], webhooks: WebhookSender, room: RoomWatch
) -> Mapping[RowFamily, Callable[[], float]]:
    """Functions that return the present levels. They ask the first application for its site each time, because a reload
    replaces the site."""
    service = listening[0].application
    return {
        of.CONNECTIONS: lambda: sum(one.connections for one in listening),
        of.REQUESTS: lambda: sum(one.application.in_flight for one in listening),
        of.AI_CALLS: lambda: service.site.ai_calls.taken,
        of.AI_BODIES: lambda: service.site.long_bodies.memory.taken,
        of.DOWNLOADS: lambda: service.site.downloads.taken,
        of.LIVE_PAGES: lambda: service.site.watches.places.taken,
        of.STORE_QUEUE: lambda: service.site.store.queue,
        of.MAIL_QUEUE: lambda: service.site.mail.queue,
        of.WEBHOOK_QUEUE: lambda: webhooks.queue,
        of.STORE_MEMORY: lambda: room.seen.used,
        of.STORE_MEMORY_LIMIT: lambda: room.seen.limit,
    }
