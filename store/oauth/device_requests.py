"""Authorization requests of devices: a person types the device's code, the device polls for the tokens. RFC 8628."""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from store import keys
from store.apps.registration import Registration
from store.crypto.dpop import DpopProof
from store.crypto.keyring import KeyRing, Keys
from store.crypto.seal import NOBODY, Sealer, Token, TokenKind, new_id
from store.engine.scripts import Reply, Scripts
from store.lifetimes import CODE, DEVICE_CLAIM, DEVICE_REQUEST, SECOND
from store.limits import RateLimits
from store.names import DEVICE_GRANT
from store.oauth.authorizations import Decision
from store.oauth.tokens import TokenResponse, Tokens
from store.phrases import Phrase
from store.refused import Refused, SignedOut, UnknownUser
from store.results import Visitor

GRANT_TYPE = DEVICE_GRANT
"""The grant type, and in place of a redirect URI what the rows of such a request have: no app can
register it, so no authorization code fits them."""
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""RFC 8628 6.1: no vowels, so no words."""
LENGTH = 8
INTERVAL, STEP = 5, 5
"""Seconds between two polls, and by how much an early poll lengthens that (RFC 8628 3.2, 3.5)."""
SLACK = 500
"""ms that a poll may come early."""
DRAWS = 8
MOST_TYPED = 64
"""Characters of a typed code that are read: people paste spaces and dashes along."""
_BETWEEN = re.compile(r"[\s.\-\u2010-\u2015]+")
_CODE = re.compile(f"[{LETTERS}]+")
_NAME_BYTES = 8


class BegunRequest(NamedTuple):
    """The answer to a device. Both codes live for `expires_in` seconds."""

    device_code: str
    user_code: str
    expires_in: int
    interval: int


class DeviceRequest(NamedTuple):
    """A device's request. `record`: what the device asks for, as it was kept; `address` and `agent`: where the device
    is, and what it calls itself; `age` in ms."""

    id: str
    record: str
    address: str
    agent: str
    age: int


class Claim(NamedTuple):
    """The right to decide on a request once."""

    request: str
    id: str


def typed_code(text: str) -> str | None:
    """The user code in what a person typed, without dashes and spaces; None if it can be none."""
    if len(text) > MOST_TYPED:
        return None
    code = _BETWEEN.sub("", text)
    code = code.upper() if code.isascii() else ""
    return code if len(code) == LENGTH and _CODE.fullmatch(code) else None


def shown_code(code: str) -> str:
    """The user code as people read it: WDJB-MJHT."""
    return f"{code[:4]}-{code[4:]}"


class DeviceRequests:
    """Requests of devices, each in a slot of its own: nobody knows whose a request is until it is answered.

    The name of a row is a digest of its user code under a secret key, so a copy of the store gives nobody a code. The
    id of a request begins with this name and continues with random bytes: device code and decision name the row and
    this one request, even if another one draws the same user code later.
    """

    def __init__(self, scripts: Scripts, sealer: Sealer, keys: Keys, limits: RateLimits, tokens: Tokens) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._keys = keys
        self._limits = limits
        self._tokens = tokens
        self._digesters: tuple[KeyRing, list[bytes]] | None = None

    async def begin(self, client: str, record: str, device: Visitor) -> BegunRequest:
        """Keeps a checked request. `device`: where it comes from. Raises StoreUnavailable."""
        for _ in range(DRAWS):
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            one = _id_of(self._names(self._keys.ring, code)[0])
            reply = await self._scripts.run(
                "begin_device_request",
                {"device": device_key(one)},
                id=one,
                client=client,
                params=record,
                **device.fields(),
                interval=INTERVAL,
                kept=DEVICE_REQUEST,
            )
            if reply.word == "ok":
                device_code = self._sealer.seal(Token(TokenKind.DEVICE_CODE, NOBODY, client, one, 0))
                return BegunRequest(device_code, code, DEVICE_REQUEST // SECOND, INTERVAL)
        raise Refused("temporarily_unavailable", retry_after=1)

    async def typed(self, user: str, address: str, code: str) -> DeviceRequest:
        """The request with this user code, which a person typed at this address. Wrong codes count (RFC 8628 5.1).
        Raises Refused("invalid_grant") if there is none, Refused("rate_limited")."""
        taken = await self._limits.device_code(user, address)
        for ring in self._keys.rings():
            for name in self._names(ring, code):
                reply = await self._find(keys.device_request(name))
                if reply.word == "ok":
                    await self._limits.give_back(taken)
                    return _request_of(reply)
        raise gone()

    async def read(self, one: str) -> DeviceRequest:
        """The request with this id. Raises Refused("invalid_grant") if it is over."""
        reply = await self._find(device_key(one), one)
        if reply.word == "gone":
            raise gone()
        return _request_of(reply)

    def has_code(self, one: str, code: str) -> bool:
        """Whether this is the user code of the request with this id. No I/O."""
        names = (name for ring in self._keys.rings() for name in self._names(ring, code))
        return any(hmac.compare_digest(name, _name_in(one)) for name in names)

    @asynccontextmanager
    async def claimed(self, one: str) -> AsyncIterator[Claim]:
        """Claims the request with this id for the block, which decides on it: of several decisions one counts. The
        request is open again if the block refuses, and otherwise a minute later, unless it was answered. Raises
        Refused("invalid_request")."""
        claim = await self.claim(one)
        try:
            yield claim
        except (Refused, SignedOut):
            await self.reopen(claim)
            raise

    async def claim(self, one: str) -> Claim:
        """Claims the request with this id. Raises Refused("invalid_request") if it is over, or somebody decides on it
        at this moment."""
        claim = Claim(one, new_id())
        reply = await self._scripts.run(
            "claim_device_request", {"device": device_key(one)}, id=one, claim=claim.id, lasts=DEVICE_CLAIM
        )
        if reply.word != "ok":
            raise _over()
        return claim

    async def reopen(self, claim: Claim) -> None:
        """Opens a claimed request again, whose decision was refused."""
        await self._scripts.run("reopen_device_request", {"device": device_key(claim.request)}, claim=claim.id)

    async def decided(self, one: str, user: str, decide: Callable[[], Awaitable[Decision]]) -> Decision:
        """Claims the request with this id, lets `decide` write the person's decision, and writes the answer for the
        device's next poll. If the server dies in between, the person can enter the code again a minute later. Raises
        as `decide` and `claimed`."""
        async with self.claimed(one) as claim:
            decision = await decide()
        await self.answer(claim, user, decision.code_id)
        return decision

    async def answer(self, claim: Claim, user: str, code_id: str) -> None:
        """Writes the decision: the person and the id of the code, or an empty id for a denial. Raises
        Refused("invalid_request") if the claim has ended meanwhile."""
        reply = await self._scripts.run(
            "answer_device_request",
            {"device": device_key(claim.request)},
            claim=claim.id,
            answer="allowed" if code_id else "denied",
            user=user if code_id else "",
            code=code_id,
            kept=CODE,
        )
        if reply.word == "gone":
            raise _over()

    async def exchange(
        self,
        app: Registration,
        device_code: str,
        proof: DpopProof | None,
        *,
        target: str = "",
        issuer: str = "",
        details: str = "",
    ) -> TokenResponse:
        """Answers a poll of a device: tokens if the person allowed it, as `Tokens.exchange`. Raises as that and as
        `poll`."""
        code = await self.poll(app.client_id, device_code)
        facts = {"target": target, "issuer": issuer, "details": details}
        return await self._tokens.exchange(app, code, GRANT_TYPE, None, proof, **facts)

    async def poll(self, client: str, device_code: str) -> str:
        """The code that waits in the person's slot for the device of this app; it never leaves this server. Raises
        Refused("authorization_pending", "device_denied" or "expired_token") (RFC 8628 3.5), and UnknownUser for a poll
        that comes too early and for a code that is not this app's: they count for the address."""
        token = self._sealer.open(TokenKind.DEVICE_CODE, device_code)
        if token is None or token.client != client:
            raise UnknownUser(Refused("invalid_grant", "The device code is not one of this app's."))
        reply = await self._scripts.run(
            "poll_device_request",
            {"device": device_key(token.id)},
            id=token.id,
            slack=SLACK,
            step=STEP,
            longest=DEVICE_REQUEST // SECOND,
        )
        if reply.word == "slow_down":
            raise UnknownUser(Refused("slow_down"))
        if reply.word == "pending":
            raise Refused("authorization_pending")
        if reply.word == "denied":
            raise Refused("device_denied")
        if reply.word == "expired":
            raise Refused("expired_token")
        return self._sealer.seal(Token(TokenKind.CODE, reply.text("user"), client, reply.text("code"), 0))

    async def _find(self, key: str, one: str = "") -> Reply:
        return await self._scripts.run("find_device_request", {"device": key}, id=one)

    def _names(self, ring: KeyRing, code: str) -> list[str]:
        """The names that a row with this user code may have: under the present key first, then under the others."""
        if self._digesters is None or self._digesters[0] is not ring:
            found = [ring.front, *(key for key in ring.keys if key is not ring.front)]
            self._digesters = ring, [key.derive(b"user-code", 32) for key in found]
        return [hmac.digest(key, code.encode(), "sha256")[:_NAME_BYTES].hex() for key in self._digesters[1]]


def gone() -> Refused:
    """The refusal of a user code that is wrong or too old, or that was answered."""
    return Refused("invalid_grant", Phrase("That code isn’t right, or it has expired. Check the code on your device."))


def _over() -> Refused:
    return Refused(
        "invalid_request",
        Phrase("This code has expired or was already used. Ask for a new code on your device."),
    )


def _id_of(name: str) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(name) + os.urandom(16 - _NAME_BYTES)).rstrip(b"=").decode()


def _name_in(one: str) -> str:
    return base64.urlsafe_b64decode(one + "==")[:_NAME_BYTES].hex()


def device_key(one: str) -> str:
    """The key of the request with this id."""
    return keys.device_request(_name_in(one))


def _request_of(reply: Reply) -> DeviceRequest:
    return DeviceRequest(
        reply.text("id"),
        reply.text("params"),
        reply.text("address"),
        reply.text("agent"),
        reply.number("age"),
    )
