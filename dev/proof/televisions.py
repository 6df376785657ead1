"""What a device without a browser and its person do (RFC 8628): codes, decisions and polls, sometimes two at once."""

from __future__ import annotations

import asyncio
from typing import Any

from dev.proof.apps import Backend
from dev.proof.calling import Response
from dev.proof.history import Op
from dev.proof.people import JSON, SCOPES, Tokens, request_in
from store.crypto.seal import TokenKind
from store.lifetimes import DEVICE_CLAIM, SECOND
from store.oauth.device_requests import GRANT_TYPE, INTERVAL

PACE = 0.5
"""Seconds between two steps."""
OPEN_AGAIN = DEVICE_CLAIM // SECOND
"""Seconds after which a decision that nobody confirmed counts no more, and the person can decide once more."""
PATIENCE = 40.0
"""Seconds more until the proof says that it does not: the time of a few faults."""


class Television(Backend):
    """One app of one person on a device: it gets codes, and the person types the code and decides."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.device = ""
        self.device_code = self.user_code = ""
        self.tokens: Tokens | None = None
        self.decided = self.tried = False
        self.unsure = self.polled = 0.0

    async def work(self, done: asyncio.Event) -> None:
        """Takes step after step until the end."""
        while not done.is_set():
            await self.step()
            await self.pause(PACE)

    async def finish_up(self) -> None:
        """Brings the request that waits to its end."""
        self.address = f"203.0.113.{self.dice.randrange(1, 255)}"
        while self.device:
            await self.step()
            await self.pause(PACE)

    async def step(self) -> None:
        """The next thing that is to be done for the device."""
        if not self.session:
            await self.sign_in()
        elif self.tokens is not None:
            await self.use(self.tokens)
        elif not self.device:
            await self.begin_request()
        elif self.decided:
            await self.poll()
        else:
            await self.decide()

    async def begin_request(self) -> None:
        """The device asks for its codes."""

        def said(answer: Response) -> dict[str, Any]:
            token = self.stage.sealer.open(TokenKind.DEVICE_CODE, answer.json()["device_code"])
            return {"device": token.id} if token else {"broken": True}

        form = {"scope": SCOPES, **self.client()}
        op, answer = await self.call(
            "device_begin", {}, "POST", "/api/oauth/device_authorization", data=form, result=said
        )
        if op.acked:
            found = answer.json()
            self.device, self.device_code, self.user_code = (
                op.result["device"],
                found["device_code"],
                found["user_code"],
            )
            self.decided, self.unsure, self.polled = False, 0.0, 0.0

    async def decide(self) -> None:
        """The person types the code and decides, sometimes twice at the same moment. After a decision without an answer
        the device polls, and the person tries again."""
        if self.unsure and await self.heard():
            return
        await self.send("GET", "/device", browser=True)
        op = self.begin("device_type", {"device": self.device})
        page = await self.send("POST", "/device", browser=True, data={"user_code": self.user_code})
        found = request_in(page)
        self.finish(op, page, (200,) if found else (0,))
        if not found:
            if op.status == 401:
                self.session = ""
            elif op.status == 400 and not self.unsure:
                self.forget()  # the request is over
            return
        decisions = ["allow" if self.dice.random() < 0.8 else "deny"]
        if self.dice.random() < 0.3:
            decisions.append(self.dice.choice(("allow", "deny")))
        ops = await asyncio.gather(*(self.answer(found, decision, n) for n, decision in enumerate(decisions)))
        if any(op.acked for op in ops):
            self.decided = True
        elif any(op.unknown for op in ops):
            self.unsure = self.stage.now()
        elif self.unsure and self.stage.now() > self.unsure + OPEN_AGAIN + PATIENCE:
            self.note("device_stuck")

    async def answer(self, request: str, decision: str, server: int) -> Op:
        """One decision."""
        form = {"request_id": request, "decision": decision}
        op, _ = await self.call(
            "device_decide",
            {"device": self.device, "decision": decision},
            "POST",
            "/api/oauth/authorize",
            browser=True,
            json=form,
            headers=JSON,
            server=server,
        )
        return op

    async def heard(self) -> bool:
        """Whether a poll says that a decision without an answer was carried out."""
        await self.poll()
        return self.decided or not self.device

    async def poll(self) -> None:
        """The device polls, as often as it may, sometimes twice at the same moment once it may get tokens."""
        wait = self.polled + INTERVAL - self.stage.now()
        if wait > 0 and not self.decided:
            await asyncio.sleep(wait)
        self.polled = self.stage.now()
        twice = self.decided and self.dice.random() < 0.3
        tokens = Tokens(self.device, "")
        ops = await asyncio.gather(*(self.fetch(tokens, server) for server in range(1 + twice)))
        errors = {op.error for op in ops}
        if tokens.live:
            self.tokens, self.decided = tokens, True
        elif errors & {"access_denied", "expired_token", "invalid_grant"}:
            self.forget()
        elif self.decided and errors & {"authorization_pending", "slow_down"}:
            # A failover has lost the decision.
            self.decided, self.unsure = False, self.stage.now()

    async def fetch(self, tokens: Tokens, server: int) -> Op:
        """One poll."""
        form = {"grant_type": GRANT_TYPE, "device_code": self.device_code, **self.client()}
        args = {"device": self.device}
        op, answer = await self.call(
            "device_poll", args, "POST", "/api/oauth/token", data=form, result=self._issued, server=server
        )
        if op.acked and "of" in op.result:
            tokens.family = op.result["of"]
        self._take(tokens, op, answer)
        return op

    async def use(self, tokens: Tokens) -> None:
        """Calls with the tokens, and gives them back; sometimes polls with the used code before, which is a replay."""
        await self.userinfo(tokens)
        if self.dice.random() < 0.3:
            await self.fetch(Tokens("", ""), 0)
            await self.userinfo(tokens)
        for _ in range(3):
            if (await self.revoke(tokens, refresh=True)).acked:
                break
            await self.pause(PACE)
        await self.userinfo(tokens)
        self.forget()

    def forget(self) -> None:
        """The device begins again."""
        self.device, self.tokens, self.decided, self.unsure = "", None, False, 0.0

    def note(self, kind: str) -> None:
        """Records that nothing more will come of the request."""
        op = self.begin(kind, {"device": self.device})
        op.outcome, op.end = "refused", op.start
        self.stage.recorder.op(op)
        self.forget()
