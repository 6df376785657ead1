"""Settings of what the server offers to people and apps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import settings.collectors as otlp
import settings.types as to
from settings.collectors import Header
from settings.serving import Serving
from settings.types import Network, declare

DAY = 86_400
SCOPES = (
    *("openid", "profile", "email", "groups", "credits:read", "credits:spend", "apps:read", "data:read", "data:write"),
)
"""As in `store/names.py`, which settings don't import."""
LANGUAGES = ("en", "de", "fr", "es", "pt", "ja")
"""As in `handlers/core/words/table.py`, which settings don't import."""


@dataclass(frozen=True)
class Offers(Serving):
    """Accounts, mail, documents, credits, AI calls, and what is made at the first start."""

    # fmt: off
    signup: str = declare("Accounts", "WHO", "open", to.one_of("open", "invite", "upstream", "off"),
        "Who may create an account: open (everybody), invite (invited people), upstream (people from an identity "
        "provider that may create accounts) or off (only the operator creates accounts).", live=True)
    second_step: str = declare("Accounts", "WHO", "off", to.one_of("off", "owners", "all"),
        "Who must have a second step to sign in: off (nobody; people with an operator role always need one to use "
        "it), owners (people who own an app or an API, or are in the team of an app) or all (everybody). People "
        "without one set it up at the next sign-in: see docs/operating/second-step.md.", live=True)
    second_step_scopes: tuple[str, ...] = declare("Accounts", "SCOPES", "", to.words(*SCOPES, none=True),
        "Scopes of this server, separated by spaces, that an app gets only from people who used a second step; by "
        "default none. APIs and apps have their own rules: see docs/operating/second-step.md.", live=True)
    allowed_domains: tuple[str, ...] = declare("Accounts", "DOMAINS", "", to.domains,
        "Domains, separated by commas, whose e-mail addresses may be used to create an account; empty is every "
        "domain. Invitations by the operator work for any domain.", many=True, live=True)
    identity_config: Path | None = declare("Accounts", "FILE", "", to.optional_path,
        "TOML file of identity providers (OpenID Connect, GitHub, Google, Microsoft, Apple, LDAP) with which people "
        "sign in: see docs/operating/identity-providers.md.", "both", live=True)
    app_registration: str = declare("Accounts", "WHO", "everybody", to.one_of("everybody", "operator"),
        "Who may register apps: everybody (who is signed in) or operator (only the operator).", live=True)
    apps_per_person: int = declare("Accounts", "N", "20", to.whole(1, 1000),
        "Most apps that one person may register.", live=True)
    dynamic_registration: str = declare("Accounts", "WHO", "off", to.one_of("off", "token", "open"),
        "Which apps may register themselves (RFC 7591): off, token (`app registration-token create`) or open (all).",
        live=True)
    client_metadata: str = declare("Accounts", "WHICH", "off", to.one_of("off", "on"),
        "Whether apps may use the https URL of a metadata document as client_id (off, on). The server fetches the "
        "document.", live=True)
    self_registered_scopes: tuple[str, ...] = declare("Accounts", "SCOPES", "openid profile email", to.words(*SCOPES),
        "Scopes of this server, separated by spaces, that apps may ask for that registered themselves; see "
        "docs/agents.md.",
        live=True)
    self_registered_apps: int = declare("Accounts", "N", "10000", to.whole(1, 1_000_000),
        "Most apps that registered themselves. Beyond that, a new app replaces one that nobody has allowed.", live=True)
    registrations_per_hour: int = declare("Limits", "N", "20", to.whole(1, 1_000_000),
        "Apps that may register themselves from one address in an hour; from all addresses 50 times that.", live=True)
    client_documents_per_hour: int = declare("Limits", "N", "60", to.whole(1, 1_000_000),
        "Metadata documents fetched in an hour for one address, and from one host; in all 50 times that.", live=True)
    person_grant_limit: int = declare("Accounts", "N", "200", to.whole(1, 500),
        "Most apps that one person may have connected, including disconnected ones whose documents are still kept. "
        "Beyond that, consent to another is refused; people who have more keep them.", "both", live=True)
    person_session_limit: int = declare("Accounts", "N", "100", to.whole(1, 200),
        "Most browsers that one person may be signed in with. Beyond that, a sign-in ends the session that has been "
        "idle the longest.", live=True)
    person_family_limit: int = declare("Accounts", "N", "100", to.whole(1, 400),
        "Most sign-ins of one person to one app with live refresh tokens. Beyond that, a code exchange ends the one "
        "unused the longest: its refresh token gets invalid_grant, and the others keep working.", "both", live=True)
    refresh_lifetime: int = declare("Accounts", "DAYS", "0", to.whole(0, 3650),
        "Days after which the refresh tokens of a sign-in end, even if they were rotated; 0: never. An app may be "
        "registered with fewer.")
    require_pkce: bool = declare("Accounts", "", "false", to.boolean,
        "Require PKCE of every app, as if each registration had pkceRequired. By default, an app with a secret may "
        "leave it out.", live=True)
    dpop_nonce: str = declare("Accounts", "WHEN", "optional", to.one_of("optional", "required"),
        "Whether a DPoP proof must have a nonce of this server, at most five minutes old: optional (a nonce that is "
        "sent must be valid) or required (prevents proofs made in advance, but a program has to send its first call "
        "twice).",
        live=True)
    session_idle: int = declare("Accounts", "SECONDS", str(14 * DAY), to.whole(60, 30 * DAY),
        "Seconds without a request that end a browser session (14 days).")
    session_lifetime: int = declare("Accounts", "SECONDS", str(30 * DAY), to.whole(60, 30 * DAY),
        "Seconds after sign-in that end a browser session, used or not (at most 30 days), if the person chose to stay "
        "signed in. Otherwise a day ends it.")
    signing_key_days: int = declare("Accounts", "DAYS", "90", to.whole(0, 3650),
        "Days after which a key that signs tokens gets a successor, which is published a day before it signs; 0: only "
        "by command.", live=True)
    smtp_url: str = declare("Mail", "URL", "", to.smtp_url,
        "Mail server: smtp://USER:PASSWORD@HOST:587?starttls, smtps://HOST, or smtp://HOST without TLS, which takes no "
        "password unless it is on this machine. With it an address must be confirmed before an app sees it; without it "
        "mails are kept in the data directory. A URL with a password belongs in the environment or the file, and is "
        "refused as a flag.",
        "both", secret=True, live=True)
    mail_from: str = declare("Mail", "ADDRESS", "", to.mail_address,
        "Address that mails come from; empty is noreply at the host of the base URL.", "both", live=True)
    smtp_timeout: float = declare("Mail", "SECONDS", "10", to.seconds(0.1, 300),
        "Seconds that one step of sending a mail may take.", "both", live=True)
    brand: Path | None = declare("Brand", "FILE", "", to.optional_path,
        "TOML file of your own name, logo, colours, links and templates: see docs/operating.md. The server checks all "
        "of it at the start.", "both", live=True)
    languages: tuple[str, ...] = declare("Brand", "CODES", " ".join(LANGUAGES), to.words(*LANGUAGES),
        "Languages of pages and mails, separated by spaces. People who ask for none of them get the first.", live=True)
    webhooks: bool = declare("Webhooks", "", "true", to.boolean,
        "Post events to apps that have registered a URL for them. If off, events wait until a server posts again.")
    webhook_posts: int = declare("Webhooks", "N", "64", to.whole(1, 1000),
        "Most posts in progress in each process: at most a quarter to one owner's apps, and four to one app.")
    webhook_networks: tuple[Network, ...] = declare("Webhooks", "NETWORKS", "", to.networks,
        "Private addresses and networks, separated by commas, that events may be posted to in addition to the public "
        "internet. Everybody who registers an app can reach them.", "both", many=True)

    password_memory: int = declare("Passwords", "KIB", "19456", to.whole(8192, 262_144),
        "KiB of memory that one password hash (Argon2id) takes.", "both")
    password_iterations: int = declare("Passwords", "N", "2", to.whole(1, 16), "Passes of one password hash.", "both")
    password_workers: int = declare("Passwords", "N", "2", to.whole(1, 256),
        "Password hashes that run at once in each process; each takes its memory.")
    password_queue: int = declare("Passwords", "N", "32", to.whole(0, 10_000),
        "Most password hashes that wait; more are refused as overload. A quarter of the places is for browsers in "
        "which the person signed in before.")
    password_ranges: str = declare("Passwords", "URL", "", to.range_url,
        "Look up new passwords in a list of breached ones: the server adds the first five hex digits of the SHA-1, and "
        "sends nothing else (k-anonymity), in the form of Have I Been Pwned. If that server is down, the password "
        "is accepted. A URL with a key belongs in the environment or the file.", "both", secret=True, live=True)

    document_size: int = declare("Documents", "BYTES", "262144", to.whole(1024, 2**20),
        "Largest document, in bytes as it was sent.", live=True)
    document_limit: int = declare("Documents", "N", "10000", to.whole(1, 1_000_000),
        "Most documents that one app may keep for one person.", live=True)
    collection_limit: int = declare("Documents", "N", "1000", to.whole(1, 5_000),
        "Most collections that one app may keep for one person.", live=True)
    storage_limit: int = declare("Documents", "BYTES", "67108864", to.whole(1024, 2**40),
        "Most bytes that one app may keep for one person.", live=True)
    person_document_limit: int | None = declare("Documents", "N", "", to.optional_whole(1, 10_000_000),
        "Most documents that all apps together may keep for one person; empty is four times document_limit.", live=True)
    person_storage_limit: int | None = declare("Documents", "BYTES", "", to.optional_whole(1024, 2**42),
        "Most bytes that all apps together may keep for one person; empty is four times storage_limit, but at most a "
        "64th of the memory that the store may take (at least 4 MiB).", live=True)
    owner_document_limit: int = declare("Documents", "N", "2000000", to.whole(0, 10**12),
        "Most documents (about) that all apps of one owner together may keep, over all people; 0: no limit. "
        "Apps that the operator registered have no such limit.", live=True)
    owner_storage_limit: int = declare("Documents", "BYTES", str(4 * 2**30), to.whole(0, 2**50),
        "Most bytes (about) that all apps of one owner together may keep, over all people; 0: no limit.",
        live=True)

    audit_days: int = declare("Security log", "DAYS", "90", to.whole(1, 3650),
        "Days before today (UTC) that the security log in the store keeps; older ones are removed.",
        "both", live=True)
    audit_bytes: int = declare("Security log", "BYTES", str(2**26), to.whole(2**20, 2**36),
        "Most bytes (about) that the security log takes in the store; beyond that, its oldest day is removed.",
        "both", live=True)
    audit_otlp: str = declare("Security log", "URL", "", otlp.collector_url("/v1/logs"),
        "Send new events of the security log to this OpenTelemetry collector (OTLP over HTTP): https, or http on "
        "loopback; without a path /v1/logs is added. See docs/operations.md.")
    audit_otlp_header: Header | None = declare("Security log", "HEADER", "", otlp.header,
        "A header of these requests, such as Authorization: Bearer abc.", secret=True, flag=False,
        live=True)
    ledger_days: int = declare("Credits", "DAYS", "400", to.whole(1, 3650),
        "Days that an entry stays in a person's ledger; older ones are folded into a dated opening balance.", "both")
    stripe_key: str = declare("Payments", "KEY", "", to.stripe_key,
        "Secret or restricted key of your Stripe account, with which people buy credits: see docs/operating.md.",
        secret=True, flag=False, live=True)
    stripe_webhook_secret: tuple[str, ...] = declare("Payments", "SECRETS", "", to.stripe_secrets,
        "Signing secret of the webhook endpoint at Stripe; while you rotate it, both, separated by a comma.",
        secret=True, flag=False, many=True, live=True)
    purchase_least: int = declare("Payments", "AMOUNT", "5usd", to.price(500_000, 10**11),
        "The least that a person may pay for credits at once, in whole cents: micro-dollars, or dollars such as 5usd. "
        "Stripe accepts nothing below 0.50usd.", live=True)
    purchase_most: int = declare("Payments", "AMOUNT", "500usd", to.price(500_000, 10**11),
        "The most that a person may pay for credits at once, in the same form.", live=True)
    stripe_api: str = declare("Payments", "URL", "https://api.stripe.com", to.origin,
        "Origin of Stripe's API; change it only for tests.")
    stripe_page: str = declare("Payments", "URL", "https://checkout.stripe.com", to.origin,
        "Origin of Stripe's payment pages; change it if your Stripe account has its own domain for them.")
    ai_config: Path | None = declare("AI calls", "FILE", "", to.optional_path,
        "TOML file of model servers, models and prices; without it there is only the built-in model latchkey-echo.",
        "both", live=True)
    ai_request_size: int = declare("AI calls", "BYTES", "1048576", to.whole(1024, 2**25),
        "Largest request of an AI call, in bytes.", live=True)

    assertion_issuers: Path | None = declare("Agents", "FILE", "", to.optional_path,
        "TOML file of identity providers whose assertions (ID-JAG) connect apps for people: see docs/agents/"
        "enterprise.md.", live=True)

    mcp: str = declare("MCP", "WHEN", "off", to.one_of("off", "on"),
        "Whether assistants reach the documents, credits and AI calls of a person who connects them, at /mcp (Model "
        "Context Protocol): off or on, which needs the extra packages of latchkey[mcp].")
    mcp_scopes: tuple[str, ...] = declare("MCP", "SCOPES", "profile", to.words(*SCOPES),
        "Scopes, separated by spaces, that an assistant asks for when it connects, so every assistant must be "
        "registered for them. It asks for others when a tool needs them.")
    mcp_origins: tuple[str, ...] = declare("MCP", "ORIGINS", "", to.origins,
        "Origins, separated by commas, of web pages whose scripts may use /mcp, in addition to this server's own; "
        "others are refused.", many=True)

    seed: Path | None = declare("First start", "FILE", "", to.optional_path,
        "JSON file of APIs, apps, users and initial credits; every start creates those that are missing.")
    demo: bool = declare("First start", "", "false", to.boolean,
        "Add a demo user with credits and a demo app, and serve the demo app; on a loopback host only.")
    auto_consent: str = declare("Tests of apps", "EMAIL", "", to.mail_address,
        "Answer every authorization request as if this person were signed in and allowed it; only with the memory "
        "store on a loopback host: see docs/testing.md.")
    # fmt: on
