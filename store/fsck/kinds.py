"""The rules for each kind of key, as data: its type, its longest lifetime, the form of its row."""

from __future__ import annotations

from dataclasses import dataclass, field

from store import lifetimes
from store.accounts.audit.activity_figures import KEPT_DAYS
from store.accounts.audit.export_turn import LEASE_MS
from store.accounts.audit.recorded import DEAD_MS, OLD_TRAIL_MS, SWEEP_MS
from store.app_log import KEPT_MS as KEPT_MS_OF_REFUSALS
from store.app_stats import DAYS_KEPT, MODEL, NAMES, USED
from store.directory.relay import IDLE
from store.directory.relay import SWEEP_SECONDS as DIRECTORY_SWEEP_SECONDS
from store.fsck.budgets import BUDGET
from store.lifetimes import (
    ACCESS_TOKEN,
    AI_REPLY,
    APPS_SWEEP,
    ASSERTION,
    ATTEMPT,
    CHALLENGE,
    CHANGE_LINK,
    CODE,
    CONFIRM_LINK,
    DAY,
    DELIVERY,
    DPOP_MARK,
    MAIL,
    MINUTE,
    REFRESH_TOKEN,
    REQUEST,
    RESET_LINK,
    UNDO_LINK,
    USAGE,
    Group,
)
from store.oauth.budgets import BUDGET_TYPES
from store.parsed_keys import ParsedKey
from store.webhooks.outbox import SWEEP_SECONDS

SLACK = MINUTE
"""ms that the clocks of two hosts may differ, if one took over from the other."""
SESSION_MOST = 30 * DAY  # the longest that a setting allows
FIGURES_MOST, TRAIL_MOST = (KEPT_DAYS + 1) * DAY, 3651 * DAY
HOLD_MOST = DAY
"""Longer than any AI call may take."""

PERIODS = {group.name: group.period for group in vars(lifetimes).values() if isinstance(group, Group)}
PERIODS |= {f"{MAIL.name}-{purpose}": MAIL.period for purpose in ("confirm", "reset", "change")}
LINKS = {"confirm": CONFIRM_LINK, "reset": RESET_LINK, "change": CHANGE_LINK}

NUMBER, TEXT, ANY = rb"[0-9]{1,19}", rb".+", rb".*"
EPOCH = rb"[0-9]{1,20}"
_API, _NAME = rb"api_[A-Za-z0-9]{15}[0-9]{0,6}", rb"[!#-<>-\[\]-~]{1,64}"
_RESOURCE = rb"(?:" + _API + rb"|mcp)"
API_TOKEN = rb"(?:!" + _API + rb"|@" + _RESOURCE + rb") [0-9]+( " + _NAME + rb")+"
_SCOPE = rb"(?:[a-z]+(?::[a-z]+)?|" + _API + rb"/" + _NAME + rb")"
SCOPES = _SCOPE + rb"(?: " + _SCOPE + rb")*"
_ROW = SCOPES + rb"|" + API_TOKEN
_COUNTED = rb"[tm][0-9]{1,16} [0-9]{1,16}"
_USED_ROW = r"[0-9]+ [A-Za-z0-9_-]{0,64} .*"
_JKT = rb"[A-Za-z0-9_-]{43}"
_ID = rb"[A-Za-z0-9_-]{22}"
_PLACES = rb"[0-9]{1,16}-[0-9]{1,16}(?: [0-9]{1,16}-[0-9]{1,16}){4}"
_UP = _ID + rb":[0-9]{1,10}(?: " + _ID + rb":[0-9]{1,10}){0,4}"
"""The tokens above a delegated one, the nearest first."""
_ACT = rb"[A-Za-z0-9_-]{1,64}(?: [A-Za-z0-9_-]{1,64}){0,4}"
_DELEGATED = _ID + rb":[0-9]{1,16}(?: " + _ID + rb":[0-9]{1,16}){0,99}"
_ACCESS = rb"1|" + _ROW + rb"|\*[A-Za-z0-9_-]{43}( (" + _ROW + rb"))?"
"""An access token: its scopes or those of its family; one that is bound to a key begins with that."""


@dataclass(frozen=True, slots=True)
class KeyKind:
    """The rules for a kind. `lasts`: the longest lifetime in ms; None: no expiry; 0: checked with the key's owner.
    `fields`: the required fields of a row; `value`: the form of a string; `others`: the form of every other field's
    name (None: any); `forms`: the forms of some of these fields, where they are. `outlives`: the key may outlive its
    person, because it expires."""

    type: str
    lasts: int | None = None
    fields: dict[str, bytes] = field(default_factory=dict)
    value: bytes | None = None
    others: str | None = None
    outlives: bool = False
    forms: dict[str, bytes] = field(default_factory=dict)


_WINDOW = KeyKind("string", 0, value=rb"[0-9]+ [0-9]+ [0-9]+", outlives=True)
_REQUESTED = {"redirect_uri": TEXT, "scope": SCOPES, "challenge": ANY, "terms": TEXT}

KINDS: dict[str, KeyKind] = {
    "registration": KeyKind("string", 0),
    "days": KeyKind(
        "hash", DAYS_KEPT * DAY, others=rf"[0-9]+:({'|'.join(NAMES)}|{MODEL}.+)|pruned|{USED}[0-9a-f]{{8}}"
    ),
    "people": KeyKind("string", value=rb"-?[0-9]+"),
    "refusals": KeyKind("hash", KEPT_MS_OF_REFUSALS, others=r"\[.+\t.*"),
    "logo": KeyKind("string"),
    "invitations": KeyKind("hash", lifetimes.TEAM_INVITATION, others=r"[A-Za-z0-9_-]{22}"),
    "assertion": KeyKind("string", ASSERTION, value=b"1"),
    "pushed": KeyKind("hash", REQUEST, fields={"params": TEXT}, others="browser|ended|network"),
    "device-request": KeyKind(
        "hash",
        lifetimes.DEVICE_REQUEST + MINUTE,
        {"id": rb"[A-Za-z0-9_-]{22}", "client": rb"[A-Za-z0-9_-]{1,64}", "interval": NUMBER, "created_at": NUMBER},
        others="params|address|agent|polled_at|claim|claimed_at|answer|user|code",
        forms={
            **{"answer": rb"allowed|denied", "user": rb"[0-9a-f]{32}", "polled_at": NUMBER, "claimed_at": NUMBER},
            **dict.fromkeys(("code", "claim"), rb"[A-Za-z0-9_-]{22}"),
        },
    ),
    "app-spending": KeyKind("hash", lifetimes.SPENDING, fields={"day": NUMBER, "leased": NUMBER}, others=""),
    "all-pushed": KeyKind("zset", REQUEST),
    "all-apps": KeyKind("zset"),
    "unused-apps": KeyKind("zset"),
    "used-apps": KeyKind("zset"),
    "initial-tokens": KeyKind("hash", others="[0-9a-f]{64}"),
    "role-holders": KeyKind("hash", others="[0-9a-f]{32}"),
    "operator-keys": KeyKind("zset"),
    "operator-key": KeyKind(
        "hash",
        0,
        {
            **{"digest": rb"[0-9a-f]{64}", "role": rb"admin|support|auditor|credits|scim", "name": ANY},
            **{"network": rb"[0-9a-f.:/]*", "made_at": NUMBER, "ends_at": NUMBER},
        },
        others="used_at|used_from",
    ),
    "operator-job": KeyKind(
        "hash",
        lifetimes.OPERATOR_JOB,
        {**dict.fromkeys(("kind", "actor", "order", "state", "report"), TEXT), "total": NUMBER, "done": NUMBER},
        others="beat",
    ),
    "operator-reply": KeyKind("string", lifetimes.OPERATOR_REPLY, value=rb"[A-Za-z0-9_-]{16,32} [0-9]{1,3} .*"),
    "fetching": KeyKind("string", lifetimes.DOCUMENT_PAUSE, value=ANY),
    "api": KeyKind("string"),
    "api-apps": KeyKind("zset"),
    "all-apis": KeyKind("zset"),
    "all-leaving": KeyKind("zset"),
    "keyring": KeyKind("hash"),
    "signing": KeyKind("hash", others=r"[A-Za-z0-9_-]{43}:(?:state|public|private)"),
    "email": KeyKind("string", 0, value=rb"[0-9a-f]{32}"),
    "identity": KeyKind("string", 0, value=rb"[0-9a-f]{32}"),
    "external-id": KeyKind("string", 0, value=rb"[0-9a-f]{32}"),
    "importing": KeyKind(
        "hash",
        lifetimes.IMPORT,
        {
            **{"seed": rb"[A-Za-z0-9_-]{22}", "digest": rb"[0-9a-f]{64}", "listed": rb"\[.*\]"},
            **dict.fromkeys(("line", "created", "updated", "refused"), NUMBER),
        },
        others="",
    ),
    "hash-prices": KeyKind("hash", fields={"salt": _ID, "imported": NUMBER}, others="[a-z0-9-]+( [0-9]+)+"),
    "invite": KeyKind("string", lifetimes.INVITE, value=rb"[A-Za-z0-9_-]{22} .*"),
    "window": _WINDOW,
    "dpop-token": KeyKind("string", DPOP_MARK, value=b"1"),
    "users": KeyKind("set"),
    "app-users": KeyKind("set", 0),
    "lease": KeyKind(
        "hash",
        lifetimes.SPENDING,
        fields={"day": NUMBER, "leased": NUMBER},
        others=r"spent|[A-Za-z0-9_-]{22}",
    ),
    "outbox": KeyKind("stream"),
    "due": KeyKind("zset"),
    "changed": KeyKind("hash", others="[0-9a-f]{29}"),
    "relaying": KeyKind("string", IDLE, value=rb"[A-Za-z0-9_-]{22}"),
    **{"directory-family": KeyKind("zset"), "directory-section": KeyKind("zset")},
    "directory-bucket": KeyKind("list"),
    "directory-rebuild": KeyKind("string", value=rb"[0-9]{1,4}"),
    "directory-swept": KeyKind("string", int(DIRECTORY_SWEEP_SECONDS * 1000), value=b"1"),
    "apps-swept": KeyKind("string", APPS_SWEEP, value=b"1"),
    "relayed": KeyKind("string", int(SWEEP_SECONDS * 1000), value=b"1"),
    "delivery": KeyKind(
        "hash",
        DELIVERY,
        {
            **{
                "client": rb"[A-Za-z0-9_-]{1,64}",
                "type": TEXT,
                "sub": ANY,
                "details": TEXT,
                "state": rb"pending|delivered|failed",
            },
            **dict.fromkeys(("occurred_at", "created_at", "attempts", "tries"), NUMBER),
        },
        others="(next|last)_attempt_at|last_status|last_error",
    ),
    "deliveries": KeyKind("zset", DELIVERY),
    "attempts": KeyKind("stream", ATTEMPT),
    "deliveries-due": KeyKind("zset"),
    "deliveries-newest": KeyKind("zset", DELIVERY),
    "endpoints-failing": KeyKind("zset"),
    "security-events": KeyKind("stream", OLD_TRAIL_MS),
    "trail": KeyKind("stream", TRAIL_MOST),
    **{"trail-days": KeyKind("zset", TRAIL_MOST), "trail-sizes": KeyKind("hash", TRAIL_MOST)},
    **{"trail-figures": KeyKind("hash", FIGURES_MOST), "trail-active": KeyKind("string", FIGURES_MOST)},
    **{"trail-writer": KeyKind("string", DEAD_MS), "trail-swept": KeyKind("string", SWEEP_MS)},
    "audit-exporter": KeyKind("string", LEASE_MS, value=_ID),
    "audit-exported": KeyKind("hash", fields={"position": _PLACES}, others="at|by", forms={"at": NUMBER}),
    "recorded": KeyKind("hash", others=r"[0-9a-f]{9,24}:[0-9]{1,4}"),
    "user": KeyKind(
        "hash",
        fields={
            "status": rb"active|disabled",
            "epoch": EPOCH,
            "email": TEXT,
            "name": TEXT,
            "password": TEXT,
            "created_at": NUMBER,
        },
        others=r"delete_(?:at|was|until)|suspended_(?:reason|note|until)|verified|picture|passkey_offer|credit_mails|groups|"
        r"language|zone|stored|hosted|devices|external_id|(?:app|kept_out):[A-Za-z0-9_-]{1,64}",
    ),
    "leaving": KeyKind("hash", outlives=True),
    "undos": KeyKind("hash", UNDO_LINK, others=r"[A-Za-z0-9_-]{22}"),
    "picture": KeyKind("string"),
    "identities": KeyKind("hash", others=r"[A-Za-z0-9_-]{22}"),
    "factors": KeyKind("hash", fields={"secret": TEXT, "step": NUMBER, "since": NUMBER}),
    "passkeys": KeyKind("hash", others=r"[knc]:.+"),
    "recovery": KeyKind("set"),
    "guesses": KeyKind("hash", others=r"(count|until)(:[A-Za-z0-9_-]{22})?|known|shared|lifted"),
    "sessions": KeyKind("zset"),
    "audit": KeyKind("string"),
    "activity": KeyKind("string"),
    "apps": KeyKind("zset"),
    "teams": KeyKind("zset"),
    "balance": KeyKind(
        "hash",
        fields={"paid": rb"-?[0-9]+"},
        others="opening|opening_at|reply_bytes|reversed|spent_day|day_spent|day_told|oldest_at",
    ),
    "holds": KeyKind("hash", 0),
    "settled": KeyKind("string", HOLD_MOST, value=rb"s[0-9]{1,16} [0-9]{1,16} [A-Za-z0-9_-]{1,64}", outlives=True),
    "ledger": KeyKind("stream"),
    "used": KeyKind("hash", USAGE, others=_USED_ROW),
    "searches": KeyKind("hash", USAGE, others=_USED_ROW),
    "payments": KeyKind("hash", others=r"[A-Za-z0-9_]{1,100}"),
    "replies": KeyKind("zset", AI_REPLY),
    "session": KeyKind(
        "hash",
        SESSION_MOST,
        {"epoch": EPOCH, "created_at": NUMBER, "seen_at": NUMBER, "ends_at": NUMBER, "address": ANY, "agent": ANY},
        others=r"(proved|shown|recovered|elsewhere)_at|method|sid|rp:[A-Za-z0-9_-]{1,64}",
        outlives=True,
    ),
    "ended": KeyKind("string", CODE, value=b"1", outlives=True),
    # The mark outlives the challenge, so a clock that steps back does no harm.
    "challenge": KeyKind("string", CHALLENGE + MINUTE, value=b"1", outlives=True),
    "link": KeyKind(
        "hash",
        0,
        {"id": TEXT, "email": TEXT, "epoch": EPOCH, "target": ANY, "mailed": b"[01]"},
        others="used|shown|born",
    ),
    "request": KeyKind(
        "hash",
        REQUEST,
        {**_REQUESTED, "state": ANY},
        others=r"place|nonce|acr|mode|earliest|methods|pushed|api|jkt|details|paused",
        outlives=True,
        forms={"api": _RESOURCE, "jkt": _JKT},
    ),
    "code": KeyKind(
        "hash",
        lifetimes.DEVICE_REQUEST,  # the longest-lived codes are those of devices, which fetch them by polling
        {**_REQUESTED, "epoch": EPOCH},
        others="nonce|signed|api|jkt",
        outlives=True,
        forms={"api": _RESOURCE, "jkt": _JKT},
    ),
    "family": KeyKind(
        "hash",
        REFRESH_TOKEN,
        {"generation": NUMBER, "scope": SCOPES, "epoch": EPOCH},
        others="revoked|replayed|born|signed|api|jkt|up|act|name|used|budget:(?:credits|llm-inference)",
        outlives=True,
        forms={
            **{"api": _RESOURCE, "jkt": _JKT + rb"( [1-9][0-9]{0,9})?", "born": NUMBER, "up": _UP, "act": _ACT},
            **{"used": NUMBER, **{f"budget:{kind}": BUDGET for kind in BUDGET_TYPES}},
        },
    ),
    "access": KeyKind("string", ACCESS_TOKEN, value=_ACCESS, outlives=True),
    "dpop": KeyKind("string", DPOP_MARK, value=b"1", outlives=True),
    "redeemed": KeyKind("string", lifetimes.ID_JAG, value=b"1", outlives=True),
    "presented": _WINDOW,
    "limit": _WINDOW,
    "idem": KeyKind("hash", 0, {"digest": rb"[0-9a-f]{32}"}, others="state|hold|charged|left", outlives=True),
    "reply": KeyKind("string", AI_REPLY, outlives=True),
    # These are checked together, as a pair of person and app.
    "grant": KeyKind(
        "hash",
        0,
        {"epoch": EPOCH, "scope": SCOPES, "connected_at": NUMBER},
        others=r"last_used_at|revoked_at|paused_at|resumed|app_deleted|spend_limit|raised|grown_at|spend_month|limit_told|spent|"
        r"to:(?:[A-Za-z0-9_-]{16}){1,2}|f:[A-Za-z0-9_-]{22}|delegated|issuer(?:_limit)?|left_out|(?:budget|used):(?:credits|llm-inference)",
        forms={
            **{f"budget:{kind}": BUDGET for kind in BUDGET_TYPES},
            **{f"used:{kind}": _COUNTED for kind in BUDGET_TYPES},
            "delegated": _DELEGATED,
            "left_out": SCOPES,
        },
    ),
    "usage": KeyKind("hash", 0),
    "docs": KeyKind("hash", 0),
    "meta": KeyKind("hash", 0),
    "index": KeyKind("zset", 0),
}
PAIR = ("grant", "usage", "docs", "meta", "index")
"""The first existing one of these represents the pair."""


REMEMBERED, MOST_REMEMBERED = rb"[1-9][0-9]{0,15} " + SCOPES, 8
"""The form and the most fields of remembered consent in a grant, as in `lua/include/remembered.lua`."""


def lifetime(at: ParsedKey) -> int | None:
    """The longest lifetime of a key in ms; None: unlimited; 0: checked with the key's owner."""
    match at.kind:
        case "window" | "limit":
            return PERIODS[at.name]
        case "presented":
            return lifetimes.OAUTH.period
        case "link":
            return LINKS[at.name]
        case "idem":
            return AI_REPLY if at.client else lifetimes.CREDIT_KEY
    return KINDS[at.kind].lasts


def is_known(at: ParsedKey) -> bool:
    """Whether the window's group or the link's purpose exists."""
    if at.kind in ("window", "limit"):
        return at.name in PERIODS
    return at.kind != "link" or at.name in LINKS
