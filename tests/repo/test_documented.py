"""Everything that exists is documented: routes, errors, limits, scopes, keys of the store."""

from __future__ import annotations

import re
from pathlib import Path

from tornado.web import RequestHandler

from dev.tables import DOCUMENTS as TABLED
from dev.tables import TABLES, renewed
from handlers.core.errors import CATALOGUE
from handlers.core.route import DELIVERY
from handlers.ops.credits import OPS_ROUTES
from handlers.ops.metrics import METRICS_ROUTES
from handlers.routes import ROUTES
from store import keys, lifetimes
from store.names import SCOPES

ROOT = Path(__file__).resolve().parent.parent.parent
ARCHITECTURE = ROOT / "docs" / "architecture.md"
NAMES = {"/models/": (":model",), "/responses/": (":response",)}
"""How the docs name the one group of a path; others are about documents."""
HTTP = (ROOT / "docs" / "http.md").read_text("utf-8")
CONSOLE = (ROOT / "docs" / "operators" / "console.md").read_text("utf-8")
ADMINISTRATION = (ROOT / "docs" / "operators" / "administration.md").read_text("utf-8")
SCIM = (ROOT / "docs" / "operators" / "scim.md").read_text("utf-8")
SCIM_PARTS = {":group": "([A-Za-z0-9_-]{2,540})", ":name": "([A-Za-z]{1,40})", ":urn": "([A-Za-z0-9.:%]{1,200})"}
"""How the docs name the last part of a path of SCIM."""
SCIM_REST = ("scim-missing", "scim-nothing")
"""Routes for what is left out."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def test_tables_generated_from_routes_are_current() -> None:
    """`make docs` writes them."""
    texts = {path.name: path.read_text("utf-8") for path in TABLED}
    assert [name for name, text in texts.items() if renewed(text) != text] == []
    assert all(f"<!-- table of {name} -->" in "".join(texts.values()) for name in TABLES)


def _implements(handler: type[RequestHandler], method: str) -> bool:
    return getattr(handler, method.lower()) is not getattr(RequestHandler, method.lower())


HAVE_IDS = "people|operator-keys|webhooks/deliveries|sessions|identities"
"""Parts of addresses before an id."""


def test_exactly_the_routes_are_documented() -> None:
    documented = set(re.findall(rf"({'|'.join(METHODS)}) (/[^\s`?]*)", HTTP + ADMINISTRATION + CONSOLE + SCIM))
    served: dict[str, type[RequestHandler]] = {}
    for route in (*ROUTES, *OPS_ROUTES, *METRICS_ROUTES):
        if route.name in SCIM_REST:
            continue
        pattern = route.pattern
        for name, part in SCIM_PARTS.items():
            pattern = pattern.replace(part, name) if "/scim/" in pattern else pattern
        pattern = re.sub(r"admin/audit/\(.*?\)", "admin/audit/:entry", pattern)
        path = re.sub(r"people/bulk/\(.*?\)", "people/bulk/:token", pattern)
        path = re.sub(rf"({HAVE_IDS})/\(.*?\)", r"\1/:id", path).replace("([0-9a-f]{32})", ":user")
        path = re.sub(r"\(\[A-Z.*?\)", ":client_id", path.replace(DELIVERY, ":delivery")).replace("\\", "")
        path = path.replace("/picture/([^/]+)", "/picture/:address").replace("/brand/([^/]+)", "/brand/:file")
        path = path.replace("/:delivery.webp", "/:logo.webp").replace("([a-z0-9-]{1,32})", ":provider")
        path = path.replace("/guides/:client_id/:client_id", "/guides/:guide/:section")
        path = path.replace("/guides/:client_id", "/guides/:guide")
        for name in next((names for part, names in NAMES.items() if part in path), (":collection", ":docId")):
            path = path.replace("([^/]+)", name, 1)
        for one in [path.replace("(suspend|resume)", act) for act in ("suspend", "resume")]:
            served[one] = route.handler
            assert any(one == known for _, known in documented), f"{one} is not in docs/http.md"
    for method, path in documented - {("GET", "/static/…")}:
        assert path in served, f"{method} {path} is documented, but no route"
        assert _implements(served[path], method), f"{method} {path} is documented, but not a method of the route"


def test_exactly_the_error_codes_are_documented_with_their_status() -> None:
    table = dict(re.findall(r"^\| `(\w+)` \| (\d{3}) \|", HTTP, re.MULTILINE))
    assert table == {code: str(entry.status) for code, entry in CATALOGUE.items()}


def test_documented_limits_and_lifetimes_match_the_code() -> None:
    assert f"| `/api/oauth/*` | {lifetimes.OAUTH.limit} a minute (`--oauth-per-minute`) | the person" in HTTP
    assert f"failed | {lifetimes.ADDRESS.limit} a minute | the address" in HTTP
    assert f"sign-in | {lifetimes.SIGN_IN_ADDRESS.limit} a minute | the address" in HTTP
    assert f"`POST /api/oauth/device_authorization` | {lifetimes.CLIENT.limit} a minute (`--app-c" in HTTP
    public = f"{lifetimes.PUBLIC_CLIENT.limit} a minute (`--public-app-calls-per-minute`)"
    assert f"par` of a public app | {public} | the app and the address |" in HTTP
    assert f"introspect` | {lifetimes.INTROSPECT.limit} a minute (`--introspections-per-minute`)" in HTTP
    minutes = lifetimes.SIGN_IN_ACCOUNT.period // lifetimes.MINUTE
    assert f"sign-in | {lifetimes.SIGN_IN_ACCOUNT.limit} in {minutes} minutes | the account" in HTTP
    minutes = lifetimes.OWN_PASSWORD.period // lifetimes.MINUTE
    assert f"delete the account | {lifetimes.OWN_PASSWORD.limit} in {minutes} minutes; " in HTTP
    assert f"; {lifetimes.OWN_PASSWORDS.limit} in {minutes} minutes in all sessions of the person | the session" in HTTP
    assert lifetimes.OWN_PASSWORDS.period == lifetimes.OWN_PASSWORD.period
    minutes = lifetimes.OWN_PASSKEY.period // lifetimes.MINUTE
    assert f"re-authenticates with a passkey | {lifetimes.OWN_PASSKEY.limit} in {minutes} minutes, wrong" in HTTP
    minutes = lifetimes.FACTOR.period // lifetimes.MINUTE
    assert f"in a row | {lifetimes.FACTOR.limit}, then a pause of {minutes} minutes" in HTTP
    assert f"a day; {lifetimes.FACTOR_MOST} until" in HTTP
    assert f"sign-up | {lifetimes.SIGN_UP_ADDRESS.limit} an hour | the address" in HTTP
    assert f"forgotten password | {lifetimes.FORGOT_ADDRESS.limit} an hour | the address" in HTTP
    assert f"| {lifetimes.MAIL_TO.limit} an hour each from one network" in HTTP
    assert f"of IPv6), {lifetimes.MAIL_TO_ALL.limit} from all | the e-mail address" in HTTP
    devices = lifetimes.MAIL_DEVICE, lifetimes.MAIL_DEVICES
    assert (
        f"| {devices[0].limit} an hour; {devices[1].limit} an hour in all browsers of the person | the browser" in HTTP
    )
    assert f"change an e-mail address | {lifetimes.MAIL.limit} an hour each | the person" in HTTP
    hourly = (lifetimes.FORGOT_ADDRESS, lifetimes.MAIL_TO, lifetimes.MAIL_TO_ALL, lifetimes.MAIL, *devices)
    assert {group.period for group in hourly} == {60 * lifetimes.MINUTE}
    assert lifetimes.SIGN_UP_ADDRESS.period == 60 * lifetimes.MINUTE
    assert f"A person can register at most {lifetimes.REGISTER_APP.limit} apps an hour" in " ".join(HTTP.split())
    assert f"| {lifetimes.CHANGE_APP.limit} an hour; switching an app off, ending" in HTTP
    assert f"with another name | {lifetimes.RENAME.limit} an hour | the person" in HTTP
    assert {group.period for group in (lifetimes.CHANGE_APP, lifetimes.RENAME)} == {60 * lifetimes.MINUTE}
    assert lifetimes.REGISTER_APP.period == 60 * lifetimes.MINUTE
    assert f"at most {lifetimes.WEBHOOK_SENT.limit} events an hour posted by hand." in " ".join(HTTP.split())
    assert lifetimes.WEBHOOK_SENT.period == 60 * lifetimes.MINUTE
    assert f"picture` | {lifetimes.PICTURE.limit} an hour | the person" in HTTP
    assert lifetimes.PICTURE.period == 60 * lifetimes.MINUTE
    code, refresh = lifetimes.CODE // lifetimes.SECOND, lifetimes.REFRESH_TOKEN // lifetimes.DAY
    lives = f"A code lives {code} seconds, an access token 1 hour, a refresh token {refresh} days."
    assert lives in " ".join(HTTP.split())


def test_every_scope_is_documented() -> None:
    assert [scope for scope in SCOPES if f"`{scope}`" not in HTTP] == []


def test_the_table_of_keys_matches_the_code() -> None:
    text = ARCHITECTURE.read_text("utf-8")
    rows = text.split("\n## Keys\n")[1].split("\n## ")[0]
    table = {key for row in re.findall(r"^\| (`.*?`) \|", rows, re.MULTILINE) for key in re.findall(r"`([^`]+)`", row)}
    user, client, one_id, shard = "<user>", "<client>", "<id>", "<shard>"
    keys_in_code = {
        keys.APPS,
        *(keys.ROLE_HOLDERS, f"{keys.OPERATOR_JOBS}{one_id}", keys.operator_reply("<digest>")),
        *keys.operator_key(one_id).values(),
        *(keys.UNUSED_APPS, keys.USED_APPS, keys.INITIAL_TOKENS, keys.fetching(client), keys.APIS),
        keys.api(client),
        keys.api_apps(client),
        keys.KEYRING,
        keys.SIGNING,
        keys.DELETIONS,
        *keys.app_stats(client).values(),
        keys.assertion(client, "<digest>"),
        *keys.pushed(client, one_id).values(),
        keys.device_request("<digest>"),
        *(key.replace("<us", shard) for key in keys.lease(user, client).values()),
        keys.email("<address>"),
        keys.identity(one_id),
        keys.identity(one_id, "external"),
        keys.importing(one_id),
        keys.HASH_PRICES,
        keys.invite("<address>"),
        keys.window("<group>", "<what>"),
        keys.session(user, one_id),
        f"{keys.session(user, one_id)}:ended",
        keys.used_challenge(user, one_id),
        keys.request(user, one_id),
        keys.settled(user, one_id),
        keys.redeemed(user, one_id),
        keys.link(user, "<purpose>"),
        keys.code(user, one_id),
        keys.dpop(one_id, "<thumbprint>", user),
        keys.dpop(one_id, "<thumbprint>"),
        keys.grant(user, client),
        keys.limit(user, "<group>"),
        keys.presented(user, "<fingerprint>"),
        keys.shard_users(shard),
        keys.shard_app_users(shard, client),
        *keys.outbox_keys(shard).values(),
        keys.RELAYED,
        *keys.directory_relay(shard).values(),
        keys.directory_family("<family>"),
        keys.directory_section("<family>", "<section>")["listed"],
        keys.directory_section("<family>", "<section>")["bucket"] + "<beginning>",
        keys.DIRECTORY_REBUILD,
        keys.DIRECTORY_SWEPT,
        keys.APPS_SWEPT,
        *keys.OLD_TRAIL.values(),
        *(keys.trail(0)[stream].replace(":0}", ":<n>}") for stream in (*keys.OLD_TRAIL, "sizes")),
        *(f"{keys.trail(0)[noun]}:<day>".replace(":0}", ":<n>}") for noun in ("figures", "active")),
        keys.trail(0)["people"].replace(":0}", ":<n>}").replace("people", "<stream>:<day>"),
        keys.TRAIL_SWEPT,
        *keys.AUDIT_EXPORT.values(),
        keys.TRAIL_WRITER + "<process>",
        keys.recorded(shard),
        *keys.delivery(one_id).values(),
        keys.DELIVERIES_NEWEST,
        keys.ENDPOINTS_FAILING,
        *keys.deliveries(client).values(),
        *keys.person(user).values(),
        *keys.hosted(user, client).values(),
        *keys.idempotency(user, client, "<fingerprint>").values(),
        *keys.token(user, client, one_id, "<generation>").values(),  # type: ignore[arg-type]  # as the table has it
    }
    keys_in_code = {key.replace(keys.prefix(user), "u:") for key in keys_in_code} - {keys.shard_users(user[:3])}
    assert table == keys_in_code
    assert f"`{keys.APPS_CHANNEL}`" in text
