"""Settings of how the server listens, what it accepts, and where its store is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import settings.collectors as otlp
import settings.types as to
from settings.collectors import Header
from settings.types import EMBEDDED, Network, declare


@dataclass(frozen=True)
class Serving:
    """How the server listens, what it accepts, its other ports and its store."""

    # fmt: off
    host: str = declare("Listening", "HOST", "localhost", to.host,
        "Name or address to listen on; localhost is both loopback addresses.")
    port: int = declare("Listening", "PORT", "8080", to.whole(0, 65535), "TCP port; 0 picks a free one.")
    base_url: str = declare("Listening", "URL", "", to.origin,
        "Origin that browsers and apps see; empty is http://localhost:PORT. Over http:// to any host but loopback, "
        "everybody on the way can read passwords and tokens: put TLS in front and name the https:// origin.", "both")
    trusted_proxies: tuple[Network, ...] = declare("Listening", "NETWORKS", "", to.networks,
        "Addresses and networks, separated by commas, of the proxies whose forwarded headers are trusted; the last 20 "
        "addresses of X-Forwarded-For are read.", many=True, live=True)
    hsts_include_subdomains: bool = declare("Listening", "", "false", to.boolean,
        "Tell browsers to use only https for subdomains of the base URL's host too (HSTS includeSubDomains); for that "
        "host, every answer under an https base URL does.", live=True)
    workers: int = declare("Listening", "N", "1", to.whole(1, 256), "Server processes that share the port.")
    http: str = declare("Listening", "WHICH", "fast", to.one_of("fast", "tornado"),
        "The HTTP server: fast (our own, stricter, with the C parser llhttp) or tornado (Tornado's own).")
    connections: int = declare("Listening", "N", "4096", to.whole(16, 1_000_000),
        "Most open connections of each process, with the fast HTTP server; beyond that idle ones are closed, or new "
        "ones wait.", live=True)
    drain_timeout: float = declare("Listening", "SECONDS", "10", to.seconds(0, 3600),
        "Seconds that requests in progress get to finish when the server stops.", live=True)
    drain_delay: float = declare("Listening", "SECONDS", "0", to.seconds(0, 3600),
        "Seconds after SIGTERM in which the server keeps serving while /readyz says 503, so that load balancers take "
        "it out first.", live=True)
    reuse_port: bool = declare("Listening", "", "false", to.boolean,
        "Let another server of the same user listen on the same port, if it has this setting too: start the new "
        "server before you stop the old one, and no connection is refused (Linux). Only with the URL of a store that "
        "both use.")
    log_level: str = declare("Listening", "LEVEL", "info", to.one_of("debug", "info", "warning", "error"),
        "Lowest level that is logged: debug, info, warning or error.", "both", live=True)
    log_format: str = declare("Listening", "FORM", "console", to.one_of("console", "json"),
        "How the server logs: console (for people) or json (one JSON object a line, standard output included).",
        live=True)

    max_head: int = declare("Limits", "BYTES", "65536", to.whole(4096, 2**20),
        "Largest head of a request (its line and its headers, of which there may be 200, with names of 256 bytes at "
        "most), in bytes.", live=True)
    max_body: int = declare("Limits", "BYTES", "65536", to.whole(1024, 2**26), "Largest request body, in bytes.",
        live=True)
    idle_timeout: float = declare("Limits", "SECONDS", "75", to.seconds(1, 3600),
        "Seconds that a connection is kept open without a request; should be longer than in the proxy in front.",
        live=True)
    head_timeout: float = declare("Limits", "SECONDS", "20", to.seconds(1, 3600),
        "Seconds that the head of a request may take; the tornado HTTP server uses idle_timeout instead.",
        live=True)
    body_timeout: float = declare("Limits", "SECONDS", "60", to.seconds(1, 3600),
        "Seconds that the body of a request may take.", live=True)
    write_timeout: float = declare("Limits", "SECONDS", "60", to.seconds(1, 3600),
        "Seconds in which a client must read everything that is ready for it, or 64 KiB of it, with the fast HTTP "
        "server; otherwise it is cut.", live=True)
    slow_memory: int = declare("Limits", "BYTES", "134217728", to.whole(2**20, 2**36),
        "Bytes that the fast HTTP server holds in each process for incomplete requests and unread answers; beyond "
        "that, the clients that have been slow for longest are cut.", live=True)
    requests: int = declare("Limits", "N", "512", to.whole(1, 100_000),
        "Most requests in progress in each process, without AI calls and downloads; more are answered 503.",
        live=True)
    ai_calls: int = declare("Limits", "N", "2048", to.whole(1, 100_000),
        "Most AI calls in progress in each process; more are answered 503.", live=True)
    ai_calls_per_person: int = declare("Limits", "N", "32", to.whole(1, 100_000),
        "AI calls that one person may have in progress at once, over all apps and processes, including calls whose "
        "app hung up; more are answered 429. A number below ai_calls_per_minute refuses bursts that the window of a "
        "minute allows.",
        live=True)
    ai_calls_per_minute: int = declare("Limits", "N", "20", to.whole(1, 1_000_000),
        "AI calls of one person in a minute, over all apps and addresses of the API. An agent makes dozens.", live=True)
    ai_body_memory: int = declare("Limits", "BYTES", "268435456", to.whole(2**20, 2**36),
        "Bytes that AI requests longer than 1 MiB take together in each process, until their calls end; more are "
        "answered 503 before they are read. It is never less than ai_request_size.", live=True)
    ai_spend_per_person_day: int = declare("Limits", "AMOUNT", "0", to.amount(10**12),
        "What AI calls of one person may cost in a day (UTC), over all apps: micro-dollars, or dollars such as 5usd; "
        "0: no limit. Calls in progress count with the most they can cost.", live=True)
    ai_spend_per_app_day: int = declare("Limits", "AMOUNT", "0", to.amount(10**12),
        "What AI calls of one app may cost in a day (UTC), over all people; 0: no limit. It is never exceeded, but may "
        "refuse some people early: see docs/models.md.", live=True)
    low_credits: int = declare("Limits", "AMOUNT", "1usd", to.amount(10**12),
        "People get a mail when their credits fall below this: micro-dollars, or dollars such as 5usd; 0: none.",
        live=True)
    data_reads_per_minute: int = declare("Limits", "N", "300", to.whole(1, 1_000_000),
        "Documents that one app may read for one person in a minute.", live=True)
    data_writes_per_minute: int = declare("Limits", "N", "60", to.whole(1, 1_000_000),
        "Documents that one app may write and delete for one person in a minute.", live=True)
    data_lists_per_minute: int = declare("Limits", "N", "60", to.whole(1, 1_000_000),
        "Collections that one app may list for one person in a minute.", live=True)
    oauth_per_minute: int = declare("Limits", "N", "100", to.whole(1, 1_000_000),
        "Requests to /api/oauth/* for one person in a minute, over all apps.", live=True)
    downloads: int = declare("Limits", "N", "32", to.whole(1, 10_000),
        "Downloads of people's data that may run at once in each process; more are answered 503.", live=True)
    downloads_per_person: int = declare("Limits", "N", "2", to.whole(1, 10_000),
        "Downloads that one person may run at once in each process; more are answered 429.", live=True)

    introspections_per_minute: int = declare("Limits", "N", "6000", to.whole(1, 10_000_000),
        "Tokens that one app or API may ask about in a minute (POST /api/oauth/introspect). Each process takes a "
        "hundredth of this number at a time, and may admit that much more.", live=True)
    app_calls_per_minute: int = declare("Limits", "N", "600", to.whole(1, 10_000_000),
        "Calls that one app may make for itself in a minute: client_credentials, and pushed authorization requests "
        "(POST /api/oauth/par). Each process takes a hundredth of this number at a time, and may admit that much "
        "more.", live=True)
    public_app_calls_per_minute: int = declare("Limits", "N", "60", to.whole(1, 10_000_000),
        "The same for a public app, from one address: anybody may call in its name. A network may make up to 16 times "
        "as many.", live=True)

    ops_port: int | None = declare("Operations", "PORT", "", to.optional_port,
        "Separate TCP port of the management interface and of calls from payment back ends; 0 picks a free one, none "
        "is off.")
    ops_host: str = declare("Operations", "HOST", "localhost", to.host,
        "Name or address of that port. Whoever holds an operator key can change people and apps: leave it on loopback "
        "or on a private network.")
    operator_keys: tuple[str, ...] = declare("Operations", "KEYS", "", to.operator_keys,
        "Keys for POST /ops/credits only, separated by commas so that one can be replaced: each has 32 characters or "
        "more of A-Z, a-z, 0-9, _ and -. Keys of `operator-key create` need no setting.",
        secret=True, flag=False, many=True, live=True)

    metrics_port: int | None = declare("Metrics", "PORT", "", to.optional_port,
        "Separate TCP port for Prometheus, with /metrics; 0 picks a free one, none is off.")
    metrics_host: str = declare("Metrics", "HOST", "localhost", to.host,
        "Name or address of that port. It asks for no key: leave it on loopback or on a private network.")

    trace_otlp: str = declare("Traces", "URL", "", otlp.collector_url("/v1/traces"),
        "Send spans of requests to this OpenTelemetry collector (OTLP over HTTP), in the form of audit_otlp; needs the "
        "extra packages of latchkey[tracing]. See docs/operating/tracing.md.")
    trace_otlp_header: Header | None = declare("Traces", "HEADER", "", otlp.header,
        "A header of these requests, such as Authorization: Bearer abc.", secret=True, flag=False,
        live=True)
    trace_ratio: float = declare("Traces", "RATIO", "0.1", otlp.ratio,
        "The fraction of traces begun here that is sent, from 0 to 1.")
    trace_parents: tuple[Network, ...] = declare("Traces", "NETWORKS", "", to.networks,
        "Addresses and networks, separated by commas, of the peers (proxies, gateways) whose traceparent a request "
        "continues; it also decides whether spans are sent. Empty: none, so each request begins a trace.", many=True)

    redis_url: str = declare("Store", "URL", EMBEDDED, to.redis_url,
        "embedded (a private store in the data directory), memory (nothing is kept; for tests), or a URL: "
        "redis://HOST or unix:///PATH of one server, redis+sentinel://HOST,HOST/SERVICE of sentinels and the name of "
        "their service, redis+cluster://HOST,HOST of some nodes of a cluster; for TLS write rediss. A URL with a "
        "password belongs in the environment or the file, and is refused as a flag.", "both", secret=True)
    data_dir: Path = declare("Store", "DIR", "data", to.path,
        "Directory of the embedded store and of the keys made for it.", "both")
    store_memory: int | None = declare("Store", "BYTES", "", to.optional_whole(64 * 2**20, 2**50),
        "Bytes of memory that the embedded store may take; empty is three quarters of the memory of the machine or "
        "the container. A sixteenth of that is a reserve, so that a full store can still end and free things: see "
        "docs/operations.md.")
    redis_timeout: float = declare("Store", "SECONDS", "5", to.seconds(0.01, 300),
        "Seconds that one call to the store may take.", "both")
    redis_connections: int = declare("Store", "N", "64", to.whole(1, 10_000),
        "Most connections of each process to the store, or to each node of a cluster.", "both")
    wait_replicas: int = declare("Store", "N", "0", to.whole(0, 100),
        "Replicas that must confirm a revocation, a rotation or a change of credits before it is answered; with fewer "
        "the answer is 503. With 0, a failover may undo changes of the last moment: see docs/replication.md.", "both")
    wait_timeout: float = declare("Store", "SECONDS", "0.5", to.seconds(0.001, 60),
        "Seconds that the replicas have to confirm.", "both")
    secret_keys: str = declare("Store", "KEYS", "", to.secret_keys,
        "Keys that seal tokens and documents: id:key pairs separated by commas, newest first. Required with the URL "
        "of a store; otherwise the first start makes a file in the data directory.",
        "both", secret=True, flag=False, many=True, live=True)
    # fmt: on
