"""AI calls on a person's credits: hold the most a call can cost, and settle its real cost or release. SPEC 4.6."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NoReturn

import msgpack

from store import keys
from store.app_stats import AppStats
from store.credits.credits import Bookkeeping
from store.credits.daily import DailyLimits, Leases
from store.credits.notices import Notices
from store.credits.prices import Price, TokenCounts
from store.credits.request_digests import RequestDigests, request_digest
from store.credits.usage import MOST_ROWS
from store.crypto.cipher import Cipher
from store.crypto.seal import fingerprint, new_id
from store.engine.scripts import Reply, Scripts
from store.lifetimes import AI_MODELS, AI_REPLY, USAGE
from store.oauth.guard import admitted, check_token
from store.rates import Rates
from store.refused import Refused
from store.results import Caller, Window

MAX_REPLY_BYTES = 2**20
MAX_REPLIES_BYTES = 16 * 2**20
CROWDED_SECONDS = 2
"""When to retry with too many calls in progress: a call usually takes seconds."""
MAX_COST = 2**53 - 1
"""Micro-dollars that Lua represents exactly; more than any hold."""


# Not frozen, nor is Hold: each call makes both, and a frozen one takes three times as long.
@dataclass(slots=True)
class CallEstimate:
    """The estimate of a call before its hold. `input_tokens` is an upper bound; a call with fewer than `least_output`
    tokens is useless; `lasts` is the time in ms after which the hold expires, longer than a call may take. `key` is the
    idempotency key, `body` its request or `digest` the digest of it, and `dialect` the API of that: in another one, the
    same bytes may mean another call. `fee`: the most, in micro-dollars, that calls of the server's tools cost."""

    model: str
    price: Price
    input_tokens: int
    output_tokens: int
    least_output: int
    lasts: int
    key: str | None = None
    body: bytes = b""
    digest: str = ""
    dialect: str = ""
    fee: int = 0
    hold_id: str = field(default_factory=new_id)


@dataclass(slots=True)
class Hold:
    """A placed hold. `output_tokens`: the most the call may use, cut to what the person can afford; `amount` is in
    micro-dollars; `reads_credits`: the app may know what is left; `leased`: the app has a daily limit."""

    user: str
    client: str
    estimate: CallEstimate
    output_tokens: int
    amount: int
    window: Window
    reads_credits: bool = False
    leased: bool = False

    @property
    def hold_id(self) -> str:
        """The id of the hold, and of its charge in the ledger."""
        return self.estimate.hold_id

    @property
    def keyed(self) -> bool:
        """Whether the call has an idempotency key."""
        return self.estimate.key is not None


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of a call, and what is left to spend, in micro-dollars."""

    charged: int
    remaining: int


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A reply in two parts, bytes of the media type; the charge goes between `head` and `tail`."""

    media_type: str
    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """The earlier reply for the same idempotency key; it is not charged again."""

    stored: StoredReply
    charge: Charge
    window: Window
    reads_credits: bool = False


class Calls:
    """The steps of a hold, with one script each."""

    def __init__(
        self,
        scripts: Scripts,
        cipher: Cipher,
        digests: RequestDigests,
        books: Bookkeeping,
        rates: Rates,
        app_stats: AppStats | None = None,
    ) -> None:
        self._rates = rates
        self._app_stats = app_stats
        self._scripts = scripts
        self._cipher = cipher
        self._digests = digests
        self._books = books
        self.daily = DailyLimits()
        self._leases = Leases(scripts)
        self.notices = Notices()
        self.most_each = 10**9
        """The most calls that one person may have in progress, over all processes; the server's settings replace this
        default."""

    async def check(self, caller: Caller, needed: str) -> Window:
        """Admits a free request about models. Raises Refused("invalid_token", "insufficient_scope" or
        "rate_limited")."""
        return await check_token(self._scripts, caller, needed, AI_MODELS, caller.client)

    async def check_call(self, caller: Caller, needed: str) -> Window:
        """Admits and counts a call before its body is read; tell `hold` that it was `counted`. Raises Refused as
        `check`."""
        return await check_token(self._scripts, caller, needed, self._rates.ai)

    async def hold(
        self, caller: Caller, needed: str, estimate: CallEstimate, *, counted: bool = False
    ) -> Hold | ReplayedCall:
        """Admits a call and holds the most it can cost, or returns the earlier reply. Raises Refused("invalid_token",
        "insufficient_scope", "rate_limited", "insufficient_credits", "app_spend_limit", "person_spend_limit",
        "budget_exhausted", "model_not_allowed", "idempotency_in_progress", "idempotency_mismatch" or
        "idempotency_reply_gone"), StoreUnavailable; a hold that was placed all the same expires. "rate_limited" also
        means that the person has `most_each` calls in progress. `counted`: `check_call` has counted this call."""
        group, per_day = self._rates.ai, await self.daily.of_app(caller.client)
        final = self._leases.used_up(caller.client, per_day)
        digests = "" if estimate.key is None else self._digests.known(*_request(caller, estimate))
        reply = await self._place(caller, needed, estimate, digests, per_day, counted=counted, final=final)
        if reply.word == "lease":
            reply = await self._place_leased(caller, needed, estimate, digests, per_day, reply)
        window = admitted(reply, group, needed)
        if reply.word == "replayed":
            charge = Charge(reply.number("charged"), reply.number("left"))
            stored = self._open(caller, estimate.key or "", reply.raw("sealed"))
            return ReplayedCall(stored, charge, window, reply.number("reads") == 1)
        if reply.word in ("app_spend_limit", "person_spend_limit"):
            self.notices.send(caller.user, caller.client, reply)
        if reply.word != "held":
            if reply.word == "mismatch" and self._digests.renewed(*_request(caller, estimate)) != digests:
                return await self.hold(caller, needed, estimate, counted=True)  # the secret keys have changed
            _refuse(reply, window)
        if estimate.body:  # frees the long request: only its digest was needed
            estimate = replace(estimate, body=b"")
        output, amount, reads = reply.number("output"), reply.number("amount"), reply.number("reads") == 1
        return Hold(caller.user, caller.client, estimate, output, amount, window, reads, per_day > 0)

    async def _place_leased(
        self, caller: Caller, needed: str, estimate: CallEstimate, digests: str, per_day: int, reply: Reply
    ) -> Reply:
        """Places a hold for which the shard's lease was too small, with one more slice of the app's daily limit."""
        async with self._leases.turn(caller.user, caller.client) as waited:
            if waited:
                final = self._leases.used_up(caller.client, per_day)
                reply = await self._place(caller, needed, estimate, digests, per_day, counted=True, final=final)
                if reply.word != "lease":
                    return reply
            day = reply.number("day")
            taken = await self._leases.take(caller.client, day, reply.number("missing"), per_day)
            return await self._place(caller, needed, estimate, digests, per_day, counted=True, final=day, taken=taken)

    async def _place(
        self,
        caller: Caller,
        needed: str,
        estimate: CallEstimate,
        digests: str,
        per_day: int,
        *,
        counted: bool,
        final: int,
        taken: int = 0,
    ) -> Reply:
        """Runs the script of a hold. `per_day`: the app's limit, or 0; `final`: the day on which there is no further
        slice; `taken`: a slice for that day, which the lease gets."""
        group = self._rates.ai
        return await self._scripts.run(
            "place_hold",
            keys.hold(caller.user, caller.client, caller.family, caller.generation, group.name, _mark(estimate.key)),
            needed=caller.demands(needed),
            limit=group.limit,
            period=group.period,
            proof=caller.proof,
            client=caller.client,
            hold=estimate.hold_id,
            input=estimate.input_tokens,
            least=estimate.least_output,
            output=estimate.output_tokens,
            # The upstream may report any kind for the input.
            input_price=estimate.price.dearest_input,
            output_price=estimate.price.output,
            fee=estimate.fee,
            hold_ttl=estimate.lasts,
            most=self.most_each,
            reads=caller.may("credits:read"),
            digests=digests,
            counted="1" if counted else "",
            person_day=self.daily.per_person,
            leasing="1" if per_day else "",
            slice=taken,
            final=final,
            mails=self.notices.wanted,
            model=estimate.model,
            family_id=caller.family,
        )

    async def settle(self, hold: Hold, tokens: TokenCounts, reply: StoredReply | None = None) -> Charge | None:
        """Charges the used tokens, never more than was held, and keeps the reply under the call's key, if any. Returns
        None, without a charge, if the hold has expired. May be called again if the answer was lost."""
        estimate, key, tokens = hold.estimate, _mark(hold.estimate.key), tokens.bounded
        answer = await self._scripts.run(
            "settle_hold",
            keys.settlement(hold.user, hold.client, hold.hold_id, key),
            client=hold.client,
            hold=hold.hold_id,
            model=estimate.model,
            input=tokens.input,
            output=tokens.output,
            cache_read=tokens.cache_read,
            cache_write=tokens.cache_write,
            cache_write_1h=tokens.cache_write_1h,
            web_search=tokens.web_search,
            cost=min(estimate.price.cost(tokens), MAX_COST),
            price_version=estimate.price.version,
            keyed="1" if hold.keyed else "",
            sealed=self._seal(hold, reply) if reply and hold.keyed else b"",
            name=f"{hold.client}:{key}",
            reply_prefix=keys.reply_prefix(hold.user),
            keep=AI_REPLY,
            max_reply_bytes=MAX_REPLIES_BYTES,
            retention=self._books.retention,
            most=self._books.entries,
            leased="1" if hold.leased else "",
            usage_lasts=USAGE,
            usage_most=MOST_ROWS,
            mails=self.notices.wanted,
            low=self.notices.low,
            person_day=self.daily.per_person,
            prefix=keys.prefix(hold.user),
        )
        if answer.word == "ended":
            return None
        charge = Charge(answer.number("charged"), answer.number("left"))
        self.notices.send(hold.user, hold.client, answer)
        if self._app_stats is not None and any(tokens):
            self._app_stats.spent(hold.client, charge.charged, estimate.model, tokens.counted)
        return charge

    async def release(self, hold: Hold) -> None:
        """Ends a hold without a charge; its idempotency key is free again. May be called again."""
        await self._release(hold.user, hold.client, hold.estimate, leased=hold.leased)

    async def abandon(self, caller: Caller, estimate: CallEstimate) -> None:
        """Ends the hold of a call whose answer was lost, if it was placed."""
        await self._release(caller.user, caller.client, estimate, leased=await self.daily.of_app(caller.client) > 0)

    async def _release(self, user: str, client: str, estimate: CallEstimate, *, leased: bool) -> None:
        await self._scripts.run(
            "release_hold",
            {
                **keys.credits(user),
                **keys.idempotency(user, client, _mark(estimate.key)),
                "lease": keys.lease(user, client)["lease"],
            },
            hold=estimate.hold_id,
            leased="1" if leased else "",
        )

    def _seal(self, hold: Hold, reply: StoredReply) -> bytes:
        packed: bytes = msgpack.packb([reply.media_type, reply.head, reply.tail])
        if len(packed) > MAX_REPLY_BYTES:
            return b""
        return self._cipher.seal(hold.user, hold.client, _address(hold.estimate.key or ""), packed)

    def _open(self, caller: Caller, key: str, sealed: bytes) -> StoredReply:
        packed = self._cipher.open(caller.user, caller.client, _address(key), sealed)
        return StoredReply(*msgpack.unpackb(packed))


def _request(caller: Caller, estimate: CallEstimate) -> tuple[str, str, str]:
    """Person, app and bare digest of a request."""
    return caller.user, caller.client, estimate.digest or request_digest(estimate.dialect, estimate.body)


def _mark(key: str | None) -> str:
    """The fingerprint of an idempotency key, or that of a call without one."""
    return fingerprint(key) if key else _NO_KEY


_NO_KEY = fingerprint("")


def _address(key: str) -> str:
    """The name of a reply for the cipher. No document has such a name: collections never begin with an underscore."""
    return f"_reply/{fingerprint(key)}"


def _refuse(reply: Reply, window: Window) -> NoReturn:
    code, description = _REFUSALS[reply.word]
    retry = CROWDED_SECONDS if reply.word == "crowded" else None
    if "retry" in reply.fields:
        retry = reply.number("retry") or None  # a budget that never starts again has none
    raise Refused(code, description, window=window, retry_after=retry)


_REFUSALS = {
    "crowded": ("rate_limited", "This person already has the most AI calls that may run at once."),
    "running": ("idempotency_in_progress", "The call with this Idempotency-Key is still in progress."),
    "mismatch": ("idempotency_mismatch", "This Idempotency-Key was used with another request."),
    "reply_gone": (
        "idempotency_reply_gone",
        "The call with this Idempotency-Key was made and charged, but its reply is no longer kept.",
    ),
    "insufficient_credits": ("insufficient_credits", "The person's credits do not cover this call."),
    "app_spend_limit": ("app_spend_limit", "This app has reached the person's spending limit for this month."),
    "app_day_limit": ("app_spend_limit", "This app has reached its spending limit for today (UTC)."),
    "budget_exhausted": ("budget_exhausted", "The budget that the person granted this app does not cover this call."),
    "model_not_allowed": ("model_not_allowed", "The person granted this app a budget for other models."),
    "person_spend_limit": ("person_spend_limit", "This person has reached the spending limit for today (UTC)."),
}
