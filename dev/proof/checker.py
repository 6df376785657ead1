"""The promises, each a sentence and a function, and the verdict of a history on them."""

from __future__ import annotations

from dev.proof.checks import devices, documents, full, money, tokens, trees
from dev.proof.history import History
from dev.proof.verdict import Found, Invariant, Verdict, judge

_ANSWERS = {
    "sign_in": (303, 400, 429),
    "sign_up": (303, 400, 429),
    "sign_out": (303, 403),
    "erase": (303, 400, 401, 403, 429),
    "page": (200, 401),
    "consent": (200, 303, 400, 403, 429),
    "exchange": (200, 400, 429),
    "refresh": (200, 400, 429),
    "revoke_access": (200, 429),
    "revoke_refresh": (200, 429),
    "disconnect": (303, 401, 403, 404),
    "userinfo": (200, 401, 429),
    "balance": (200, 401, 429),
    "put": (200, 201, 401, 412, 429),
    "get": (200, 401, 404, 429),
    "delete": (204, 401, 404, 429),
    "list": (200, 401, 429),
    "usage": (200, 401, 429),
    "ai": (200, 401, 409, 429, 502, 504, 529),
    "hand_on": (200, 400, 429),
    "end_branch": (303, 401, 403, 404),
    "counted": (200, 429),
    "device_begin": (200, 429),
    "device_type": (200, 303, 400, 401, 403, 429),
    "device_decide": (200, 400, 401, 403, 429),
    "device_poll": (200, 400, 429),
    "top_up": (200,),
    "download": (200, 401),
}


def answers(history: History) -> Found:
    """Every answer is one that the API defines for the request; 503 if the store is away; never 500."""
    found = Found()
    for op in history.of(*_ANSWERS):
        found.checked += op.status != 0
        allowed = [0, 503, *_ANSWERS[op.kind]]
        allowed += [402] if op.args.get("tree") else []
        allowed += [507] if op.kind == "put" and full.may_be_full(history, op) else []
        if op.status not in allowed or op.result.get("broken"):
            found.wrong(f"an answer that the interface does not have: {op} {op.error}", op.person)
    return found


def all_went_on(history: History) -> Found:
    """When everything is mended, everybody can sign in, connect the app and read everything."""
    found = Found(history.run.get("went_on", 0))
    if stuck := history.run.get("stuck"):
        found.wrong(stuck)
    return found


def fsck(history: History) -> Found:
    """`manage.py fsck` finds nothing wrong."""
    found = Found()
    if history.fsck is not None:
        found.checked = 1
        if history.fsck.get("status"):
            faults = [one for one in history.fsck["findings"] if one["severity"] == "error"]
            # An address is in another slot than its person: a failover may lose one and keep the other.
            across = all(one["invariant"] == "address" for one in faults)
            made = [op for op in history.of("sign_up") if op.acked] if across else []
            found.wrong(f"fsck finds {len(faults)} faults: {str(faults[:5])[:1000]}", "", *made)
    return found


INVARIANTS = (
    Invariant("codes", "No authorization code is accepted twice.", "codes", tokens.codes_once),
    Invariant("rotations", "No refresh token is accepted twice.", "refresh tokens", tokens.generations_once),
    Invariant(
        "revocations",
        "No token works after an acknowledged revocation or a refused replay.",
        "revocations and replays",
        tokens.dead_stay_dead,
    ),
    Invariant("tokens", "No token is lost that nothing ended.", "calls", tokens.living_live),
    Invariant("sessions", "A session lives until it is signed out, and no longer.", "pages", tokens.sessions),
    Invariant("accounts", "Whoever has an account can sign in.", "sign-ins", tokens.accounts),
    Invariant(
        "full", "A full store lets everybody sign in, sign out, revoke and delete.", "endings", full.ends_all_the_same
    ),
    Invariant("documents", "No acknowledged write or deletion is lost.", "reads", documents.not_lost),
    Invariant("whole", "No document is torn or mixed up.", "reads", documents.not_torn),
    Invariant("versions", "No ETag is given twice, no version replaced twice.", "writes", documents.versions_once),
    Invariant("usage", "Usage equals a recount.", "apps of people", documents.usage_is_recount),
    Invariant("ledger", "Every balance is the sum of its ledger.", "entries", money.ledger_adds_up),
    Invariant("payments", "No payment is lost, made up or booked twice.", "payments", money.payments_once),
    Invariant("charges", "No AI call is charged twice, or otherwise than it cost.", "AI calls", money.charges_once),
    Invariant("holds", "No hold is left.", "people", money.no_hold_left),
    Invariant("spendable", "Nobody has less than nothing to spend.", "answers", money.never_below_zero),
    Invariant(
        "parts",
        "No delegated token spends more than its part, nor all below a token more than its own.",
        "tokens",
        trees.parts_bound,
    ),
    Invariant(
        "branches",
        "Nothing works below a token that has ended.",
        "revocations and replays",
        trees.nothing_below_the_ended,
    ),
    Invariant("handed-on", "No delegated token is lost that nothing ended.", "calls", trees.branches_live),
    Invariant(
        "ancestors",
        "What is charged below a token counts at every token above it.",
        "tokens",
        trees.charges_count_above,
    ),
    Invariant("decisions", "One decision on a device's request counts.", "decisions", devices.decisions_once),
    Invariant("devices", "A device gets tokens once, if somebody allows it.", "devices", devices.tokens_once),
    Invariant("recovery", "When all is mended, everybody can go on.", "clients", all_went_on),
    Invariant("answers", "Every answer is one that the interface has; none is 500.", "answers", answers),
)
FSCK = Invariant("fsck", "The store is sound, by `latchkey fsck`.", "store", fsck)


def check(history: History) -> list[Verdict]:
    """The verdict on every promise."""
    return [judge(history, one) for one in (*INVARIANTS, FSCK)]


def kept(verdicts: list[Verdict]) -> bool:
    """Whether every promise was kept."""
    return all(not verdict.broken for verdict in verdicts)
