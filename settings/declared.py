"""Every setting of Latchkey, declared once: its default, its check and its documentation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

import settings.types as to
from settings.types import EMBEDDED, MEMORY, PREFIX, Network, Setting, SettingsError, declare

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
DAY = 86_400
SCOPES = (
    *("openid", "profile", "email", "groups", "credits:read", "credits:spend", "apps:read", "data:read", "data:write"),
)
"""As in `store/names.py`, which settings don't import."""


@dataclass(frozen=True)
class Settings:
    """The settings of one process. `Settings()` is the defaults; `load` reads, parses and checks."""

    # fmt: off
    host: str = declare("Listening", "HOST", "localhost", to.host,
        "Name or address to listen on; localhost is both loopback addresses.")
    port: int = declare("Listening", "PORT", "8080", to.whole(0, 65535), "TCP port; 0 picks a free one.")
    base_url: str = declare("Listening", "URL", "", to.origin,
        "Origin that browsers and apps see; empty is http://localhost:PORT. Over http:// to any host but loopback, "
        "everybody on the way can read passwords and tokens: put TLS in front and name the https:// origin.", "both")
    trusted_proxies: tuple[Network, ...] = declare("Listening", "NETWORKS", "", to.networks,
        "Addresses and networks, by commas, of the proxies whose forwarded headers are believed; of X-Forwarded-For "
        "the last 20 addresses are read.", many=True, live=True)
    hsts_include_subdomains: bool = declare("Listening", "", "false", to.boolean,
        "Tell browsers to reach the subdomains of the base URL's host over https only, too (HSTS includeSubDomains); "
        "every answer under an https base URL says it for that host.", live=True)
    workers: int = declare("Listening", "N", "1", to.whole(1, 256), "Server processes that share the port.")
    http: str = declare("Listening", "WHICH", "fast", to.one_of("fast", "tornado"),
        "The HTTP server: fast (parses with llhttp, in C, and is the stricter one) or tornado (Tornado's own).")
    connections: int = declare("Listening", "N", "4096", to.whole(16, 1_000_000),
        "Open connections, at most, for each process with the fast HTTP server; then idle ones make room, or new ones "
        "wait.", live=True)
    drain_timeout: float = declare("Listening", "SECONDS", "10", to.seconds(0, 3600),
        "Seconds that running requests get to finish when the server stops.", live=True)
    drain_delay: float = declare("Listening", "SECONDS", "0", to.seconds(0, 3600),
        "Seconds between SIGTERM and the moment the server listens no more: it serves on, and /readyz says 503, so "
        "that balancers take it out first.", live=True)
    reuse_port: bool = declare("Listening", "", "false", to.boolean,
        "Let another server of the same user listen on the port too, if it has this set as well: the new one is "
        "started before the old one is told to stop, and no connection is refused meanwhile (Linux). Only with the "
        "URL of a store, which both use.")
    log_level: str = declare("Listening", "LEVEL", "info", to.one_of("debug", "info", "warning", "error"),
        "Least level that is logged: debug, info, warning or error.", "both", live=True)
    log_format: str = declare("Listening", "FORM", "console", to.one_of("console", "json"),
        "How the server logs: console (for people) or json (one JSON object a line, standard output included).",
        live=True)

    max_head: int = declare("Limits", "BYTES", "65536", to.whole(4096, 2**20),
        "Largest head of a request (its line and its headers, of which there may be 200, with names of 256 bytes at "
        "most), in bytes.", live=True)
    max_body: int = declare("Limits", "BYTES", "65536", to.whole(1024, 2**26), "Largest request body, in bytes.",
        live=True)
    idle_timeout: float = declare("Limits", "SECONDS", "75", to.seconds(1, 3600),
        "Seconds that a connection is kept without a request; longer than a proxy in front keeps one.", live=True)
    head_timeout: float = declare("Limits", "SECONDS", "20", to.seconds(1, 3600),
        "Seconds that the head of a request may take; with the tornado HTTP server it is idle_timeout that counts.",
        live=True)
    body_timeout: float = declare("Limits", "SECONDS", "60", to.seconds(1, 3600),
        "Seconds that the body of a request may take.", live=True)
    write_timeout: float = declare("Limits", "SECONDS", "60", to.seconds(1, 3600),
        "Seconds in which a client takes all that is ready for it, or 64 KiB of it, with the fast HTTP server; else it "
        "is cut.", live=True)
    slow_memory: int = declare("Limits", "BYTES", "134217728", to.whole(2**20, 2**36),
        "Bytes that the fast HTTP server holds in each process for clients that have not sent all of a request, or not "
        "taken all of an answer; beyond it those that have been slow for longest are cut.", live=True)
    requests: int = declare("Limits", "N", "512", to.whole(1, 100_000),
        "Requests at work at once in each process, but for AI calls and downloads under way; more are answered 503.",
        live=True)
    ai_calls: int = declare("Limits", "N", "2048", to.whole(1, 100_000),
        "AI calls under way at once in each process; more are answered 503.", live=True)
    ai_calls_per_person: int = declare("Limits", "N", "32", to.whole(1, 100_000),
        "AI calls that one person may have in progress at once, over all apps and processes, including calls whose app "
        "hung up; more are answered 429. Below ai_calls_per_minute it refuses bursts that this window allows.",
        live=True)
    ai_calls_per_minute: int = declare("Limits", "N", "20", to.whole(1, 1_000_000),
        "AI calls of one person in a minute, over all apps and addresses of the API. An agent makes dozens.", live=True)
    ai_body_memory: int = declare("Limits", "BYTES", "268435456", to.whole(2**20, 2**36),
        "Bytes that AI requests longer than 1 MiB take together in each process, until their calls end; more are "
        "answered 503 before they are read. At least ai_request_size counts.", live=True)
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
        "hundredth of it at once, and may admit that much more.", live=True)
    app_calls_per_minute: int = declare("Limits", "N", "600", to.whole(1, 10_000_000),
        "Calls that one app may make for itself in a minute: client_credentials, and pushed authorization requests "
        "(POST /api/oauth/par). Each process takes a hundredth of it at once, and may admit that much more.", live=True)
    public_app_calls_per_minute: int = declare("Limits", "N", "60", to.whole(1, 10_000_000),
        "The same for a public app, from one address: anybody may call in its name. A network may make up to 16 times "
        "as many.", live=True)

    ops_port: int | None = declare("Operations", "PORT", "", to.optional_port,
        "TCP port of what payment back ends call, apart from everything else; 0 picks a free one, none is off.")
    ops_host: str = declare("Operations", "HOST", "localhost", to.host,
        "Name or address of that port. Whoever holds an operator key can give credits: leave it on loopback or on a "
        "private network.")
    operator_keys: tuple[str, ...] = declare("Operations", "KEYS", "", to.operator_keys,
        "Keys of which a caller of that port shows one, by commas, so that one can be replaced: each 32 characters or "
        "more of A-Z, a-z, 0-9, _ and -.", secret=True, flag=False, many=True, live=True)

    metrics_port: int | None = declare("Metrics", "PORT", "", to.optional_port,
        "TCP port at which Prometheus finds /metrics, apart from everything else; 0 picks a free one, none is off.")
    metrics_host: str = declare("Metrics", "HOST", "localhost", to.host,
        "Name or address of that port. Nobody is asked for a key there: leave it on loopback or on a private network.")

    redis_url: str = declare("Store", "URL", EMBEDDED, to.redis_url,
        "embedded (a private store in the data directory), memory (nothing is kept; for tests), or a URL: redis://HOST "
        "or unix:///PATH of one server, redis+sentinel://HOST,HOST/SERVICE of a replicated set (sentinels, and what "
        "they call it), redis+cluster://HOST,HOST of a cluster (some of its nodes); with TLS rediss. A URL with a "
        "password belongs in the environment or the file, and is refused as a flag.", "both", secret=True)
    data_dir: Path = declare("Store", "DIR", "data", to.path,
        "Directory of the embedded store and of the keys made for it.", "both")
    store_memory: int | None = declare("Store", "BYTES", "", to.optional_whole(64 * 2**20, 2**50),
        "Bytes of memory that the embedded store may take; empty is three quarters of the memory of the machine or the "
        "container. A sixteenth of it is a reserve for ending and freeing things: see docs/operations.md.")
    redis_timeout: float = declare("Store", "SECONDS", "5", to.seconds(0.01, 300),
        "Seconds that one call to the store may take.", "both")
    redis_connections: int = declare("Store", "N", "64", to.whole(1, 10_000),
        "Connections to the store, at most, for each process; of a cluster, to each node.", "both")
    wait_replicas: int = declare("Store", "N", "0", to.whole(0, 100),
        "Replicas that must have a revocation, a rotation or a move of credits before it is answered; with fewer the "
        "answer is 503. 0 waits for none, and a failover may undo what was answered in the last moment: see "
        "docs/replication.md.", "both")
    wait_timeout: float = declare("Store", "SECONDS", "0.5", to.seconds(0.001, 60),
        "Seconds that the replicas get for that.", "both")
    secret_keys: str = declare("Store", "KEYS", "", to.secret_keys,
        "Keys that seal tokens and documents: id:key pairs by commas, newest first. Required with the URL "
        "of a store; else a file in the data directory is made on first start.",
        "both", secret=True, flag=False, many=True, live=True)

    signup: str = declare("Accounts", "WHO", "open", to.one_of("open", "invite", "off"),
        "Who may create an account: open (everybody), invite (who was invited) or off (the operator alone does).",
        live=True)
    app_registration: str = declare("Accounts", "WHO", "everybody", to.one_of("everybody", "operator"),
        "Who may register apps: everybody (who is signed in) or operator (by command alone).", live=True)
    apps_per_person: int = declare("Accounts", "N", "20", to.whole(1, 1000),
        "Apps that one person may have registered, at most.", live=True)
    dynamic_registration: str = declare("Accounts", "WHO", "off", to.one_of("off", "token", "open"),
        "Which apps may register themselves (RFC 7591): off, token (`app registration-token create`) or open (all).",
        live=True)
    client_metadata: str = declare("Accounts", "WHICH", "off", to.one_of("off", "on"),
        "Whether the https URL of a metadata document is a client_id (off, on). The server fetches it.", live=True)
    self_registered_scopes: tuple[str, ...] = declare("Accounts", "SCOPES", "openid profile email", to.words(*SCOPES),
        "Scopes of this server that apps that registered themselves may ask for, by spaces; see docs/agents.md.",
        live=True)
    self_registered_apps: int = declare("Accounts", "N", "10000", to.whole(1, 1_000_000),
        "Apps that registered themselves, at most. Beyond that, one that nobody has allowed makes room.", live=True)
    registrations_per_hour: int = declare("Limits", "N", "20", to.whole(1, 1_000_000),
        "Apps that may register themselves from one address in an hour; from all addresses 50 times that.", live=True)
    client_documents_per_hour: int = declare("Limits", "N", "60", to.whole(1, 1_000_000),
        "Metadata documents fetched in an hour for one address, and from one host; in all 50 times that.", live=True)
    person_grant_limit: int = declare("Accounts", "N", "200", to.whole(1, 500),
        "Apps that one person may have connected, at most, including disconnected ones whose documents are still kept. "
        "Beyond that, consent to another is refused; people who have more keep them.", "both", live=True)
    person_session_limit: int = declare("Accounts", "N", "100", to.whole(1, 200),
        "Browsers that one person may be signed in with, at most. Beyond it a sign-in ends the session idle "
        "the longest.", live=True)
    person_family_limit: int = declare("Accounts", "N", "100", to.whole(1, 400),
        "Sign-ins of one person to one app with live refresh tokens, at most. Beyond it a code exchange ends the one "
        "unused the longest: its refresh token gets invalid_grant, and the others keep working.", "both", live=True)
    refresh_lifetime: int = declare("Accounts", "DAYS", "0", to.whole(0, 3650),
        "Days after which the refresh tokens of a sign-in end, even if they were rotated; 0: never. An app may be "
        "registered with fewer.")
    require_pkce: bool = declare("Accounts", "", "false", to.boolean,
        "Require PKCE of every app, as if each registration had pkceRequired. Off, an app with a secret may leave it "
        "out.", live=True)
    dpop_nonce: str = declare("Accounts", "WHEN", "optional", to.one_of("optional", "required"),
        "Whether a DPoP proof must have a nonce of this server, at most five minutes old: optional (one that is sent "
        "must be right) or required (nobody makes proofs in advance, but a program's first call is sent twice).",
        live=True)
    session_idle: int = declare("Accounts", "SECONDS", str(14 * DAY), to.whole(60, 30 * DAY),
        "Seconds without a request that end a browser session (14 days).")
    session_lifetime: int = declare("Accounts", "SECONDS", str(30 * DAY), to.whole(60, 30 * DAY),
        "Seconds after sign-in that end a browser session, used or not (30 days, and no more), where the person stays "
        "signed in. For others, a day ends it.")
    signing_key_days: int = declare("Accounts", "DAYS", "90", to.whole(0, 3650),
        "Days after which a key that signs tokens gets a successor, which is published a day before it signs; 0: only "
        "by command.", live=True)
    smtp_url: str = declare("Mail", "URL", "", to.smtp_url,
        "Mail server: smtp://USER:PASSWORD@HOST:587?starttls, smtps://HOST, or smtp://HOST without TLS, which takes no "
        "password unless it is on this machine. With it an address must be confirmed before an app sees it; without it "
        "mails are kept in the data directory. A URL with a password belongs in the environment or the file, and is "
        "refused as a flag.",
        secret=True, live=True)
    mail_from: str = declare("Mail", "ADDRESS", "", to.mail_address,
        "Address that mails come from; empty is noreply at the host of the base URL.", live=True)
    smtp_timeout: float = declare("Mail", "SECONDS", "10", to.seconds(0.1, 300),
        "Seconds that one step of handing over a mail may take.", live=True)
    brand: Path | None = declare("Brand", "FILE", "", to.optional_path,
        "TOML file of your own name, logo, colours, links and templates: see docs/operating.md. All of it is checked "
        "at the start.", live=True)
    webhooks: bool = declare("Webhooks", "", "true", to.boolean,
        "Post events to apps that have registered a URL for them; off, they are kept until a server posts again.")
    webhook_posts: int = declare("Webhooks", "N", "64", to.whole(1, 1000),
        "Posts under way at once in each process: of one owner's apps at most a quarter, of one app at most four.")
    webhook_networks: tuple[Network, ...] = declare("Webhooks", "NETWORKS", "", to.networks,
        "Addresses and networks, by commas, that events may be posted to beside those of the public internet: of "
        "receivers in your own network. Whoever registers an app reaches them.", "both", many=True)

    password_memory: int = declare("Passwords", "KIB", "19456", to.whole(8192, 262_144),
        "KiB of memory that one password hash (Argon2id) takes.", "both")
    password_iterations: int = declare("Passwords", "N", "2", to.whole(1, 16), "Passes of one password hash.", "both")
    password_workers: int = declare("Passwords", "N", "2", to.whole(1, 256),
        "Password hashes that run at once in each process; each takes its memory.")
    password_queue: int = declare("Passwords", "N", "32", to.whole(0, 10_000),
        "Password hashes that wait, at most; one more is refused as overload. A quarter of the places is for browsers "
        "that the person signed in with before.")
    password_ranges: str = declare("Passwords", "URL", "", to.range_url,
        "Look up new passwords in a list of breached ones: the server adds the first five hex digits of the SHA-1, and "
        "sends nothing else (k-anonymity), in the form of Have I Been Pwned. If that server is down, the password "
        "is accepted. A URL with a key belongs in the environment or the file.", "both", secret=True, live=True)

    document_size: int = declare("Documents", "BYTES", "262144", to.whole(1024, 2**20),
        "Largest document, in bytes as it was sent.", live=True)
    document_limit: int = declare("Documents", "N", "10000", to.whole(1, 1_000_000),
        "Documents that one app keeps for one person, at most.", live=True)
    collection_limit: int = declare("Documents", "N", "1000", to.whole(1, 5_000),
        "Collections that one app keeps for one person, at most.", live=True)
    storage_limit: int = declare("Documents", "BYTES", "67108864", to.whole(1024, 2**40),
        "Bytes that one app keeps for one person, at most.", live=True)
    person_document_limit: int | None = declare("Documents", "N", "", to.optional_whole(1, 10_000_000),
        "Documents that all apps together keep for one person, at most; empty is four times document_limit.", live=True)
    person_storage_limit: int | None = declare("Documents", "BYTES", "", to.optional_whole(1024, 2**42),
        "Bytes that all apps together keep for one person, at most; empty is four times storage_limit, "
        "at most a 64th of the memory that the store may take, or 4 MiB where that is less.", live=True)
    owner_document_limit: int = declare("Documents", "N", "2000000", to.whole(0, 10**12),
        "Documents that all apps of one owner together keep, over all people, at most (about); 0: no limit. "
        "Apps that the operator registered have no such limit.", live=True)
    owner_storage_limit: int = declare("Documents", "BYTES", str(4 * 2**30), to.whole(0, 2**50),
        "Bytes that all apps of one owner together keep, over all people, at most (about); 0: no limit.",
        live=True)

    ledger_days: int = declare("Credits", "DAYS", "400", to.whole(1, 3650),
        "Days that an entry stands in a person's ledger; older ones are folded into a dated opening balance.", "both")
    stripe_key: str = declare("Payments", "KEY", "", to.stripe_key,
        "Secret or restricted key of your Stripe account, with which people buy credits: see docs/operating.md.",
        secret=True, flag=False, live=True)
    stripe_webhook_secret: tuple[str, ...] = declare("Payments", "SECRETS", "", to.stripe_secrets,
        "Signing secret of the webhook endpoint at Stripe; two by commas while it is rolled.",
        secret=True, flag=False, many=True, live=True)
    purchase_least: int = declare("Payments", "AMOUNT", "5usd", to.price(500_000, 10**11),
        "The least that a person may pay for credits at once, in whole cents: micro-dollars, or dollars such as 5usd. "
        "Stripe takes nothing below 0.50usd.", live=True)
    purchase_most: int = declare("Payments", "AMOUNT", "500usd", to.price(500_000, 10**11),
        "The most that a person may pay for credits at once, in the same form.", live=True)
    stripe_api: str = declare("Payments", "URL", "https://api.stripe.com", to.origin,
        "Origin of Stripe's API; another one is for tests.")
    stripe_page: str = declare("Payments", "URL", "https://checkout.stripe.com", to.origin,
        "Origin of Stripe's payment pages; another one if your Stripe account has a domain of its own for them.")
    ai_config: Path | None = declare("AI calls", "FILE", "", to.optional_path,
        "TOML file of model servers, models and prices; without it there is the built-in model latchkey-echo alone.",
        "both", live=True)
    ai_request_size: int = declare("AI calls", "BYTES", "1048576", to.whole(1024, 2**25),
        "Largest request of an AI call, in bytes.", live=True)

    mcp: str = declare("MCP", "WHEN", "off", to.one_of("off", "on"),
        "Whether assistants reach the documents, credits and AI calls of a person who connects them, at /mcp (Model "
        "Context Protocol): off or on, which needs the extra packages of latchkey[mcp].")
    mcp_scopes: tuple[str, ...] = declare("MCP", "SCOPES", "profile", to.words(*SCOPES),
        "Scopes, by spaces, that an assistant asks for when it connects, so every such app needs them registered; for "
        "others it asks when a tool needs them.")
    mcp_origins: tuple[str, ...] = declare("MCP", "ORIGINS", "", to.origins,
        "Origins, by commas, of web pages whose scripts may use /mcp, in addition to this server's own; others are "
        "refused.", many=True)

    seed: Path | None = declare("First start", "FILE", "", to.optional_path,
        "JSON file of APIs, apps, users and their first credits; what is missing is created, at every start.")
    demo: bool = declare("First start", "", "false", to.boolean,
        "Add a demo user with credits and a demo app, and serve the demo app; on a loopback host only.")
    auto_consent: str = declare("Tests of apps", "EMAIL", "", to.mail_address,
        "Answer every authorization request as if this person were signed in and allowed it; only with the memory "
        "store on a loopback host: see docs/testing.md.")
    # fmt: on

    @property
    def shared_store(self) -> bool:
        """True if other hosts can use the same store, so that they don't share this data directory."""
        return self.redis_url not in (EMBEDDED, MEMORY)

    @property
    def call_seconds(self) -> float:
        """The longest time in seconds of one call to the store. A call that waits for replicas waits for its turn
        too."""
        return self.redis_timeout * (2 if self.wait_replicas else 1)

    @property
    def testable(self) -> bool:
        """True if tests of apps may control the server over HTTP: nothing is kept, and only this machine is served."""
        return self.redis_url == MEMORY and self.here_alone and self.workers == 1 and not self.demo

    @property
    def here_alone(self) -> bool:
        """True if only this machine is served, also not through a proxy. The base URL alone doesn't prove it: without
        one, the default is a loopback address."""
        here = self.host in LOOPBACK_HOSTS and (urlsplit(self.base_url).hostname or "localhost") in LOOPBACK_HOSTS
        return here and not self.trusted_proxies

    def origin(self, port: int) -> str:
        """Return `base_url`, or the default origin for the listening port."""
        return self.base_url or to.origin(f"http://localhost:{port}")

    def sender(self, base_url: str) -> str:
        """Return `mail_from`, or noreply at the host of the base URL."""
        host = urlsplit(base_url).hostname or ""
        literal = f"[IPv6:{host}]" if ":" in host else f"[{host}]" if host.rpartition(".")[2].isdigit() else host
        return self.mail_from or f"noreply@{literal}"

    def require_keys(self) -> None:
        """Raise SettingsError if the store is shared and no secret keys are configured.

        Not part of `load`, because `manage.py keys generate` must run without keys.
        """
        if self.shared_store and not self.secret_keys:
            raise SettingsError(
                "secret_keys must be set with the URL of a store, the same on every host: "
                f"set {PREFIX}SECRET_KEYS to what `manage.py keys generate` prints"
            )


SETTINGS: tuple[Setting, ...] = tuple(Setting(name=item.name, **item.metadata) for item in fields(Settings))
