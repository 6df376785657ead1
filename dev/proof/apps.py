"""Requests of an app's back end with its tokens."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from dev.proof.calling import TIMEOUT, Response
from dev.proof.history import Op
from dev.proof.people import AI_INPUT, AI_OUTPUT, CALLBACK, VERIFIER, Hand, Tokens
from store.crypto.seal import TokenKind

COLLECTION = "notes"
_SSE_CREDITS = b'"credits":'


def digest(content: bytes) -> str:
    """A digest that represents the content of a document."""
    return hashlib.sha256(content).hexdigest()[:16]


def cost(output: int) -> int:
    """The cost of an AI call with this number of tokens of output, in micro-dollars."""
    return AI_INPUT + AI_OUTPUT * output


class Backend(Hand):
    """The app's side of a worker."""

    def client(self) -> dict[str, str]:
        """The app's client credentials."""
        secret = {"client_secret": self.app.secret} if self.app.secret else {}
        return {"client_id": self.app.client_id, **secret}

    async def exchange(self, tokens: Tokens, server: int | None = None) -> Op:
        """Trades a code for tokens."""
        form = {
            "grant_type": "authorization_code",
            "code": tokens.code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            **self.client(),
        }
        args = {"family": tokens.family}
        op, answer = await self.call(
            "exchange", args, "POST", "/api/oauth/token", data=form, result=self._issued, server=server
        )
        self._take(tokens, op, answer)
        return op

    async def refresh(self, tokens: Tokens, generation: int, server: int | None = None, kind: str = "refresh") -> Op:
        """Trades a refresh token; the one of this generation, which may be an old one."""
        form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh[generation], **self.client()}
        args = {"family": tokens.family, "generation": generation}
        op, answer = await self.call(
            kind, args, "POST", "/api/oauth/token", data=form, result=self._issued, server=server
        )
        self._take(tokens, op, answer)
        return op

    def _issued(self, answer: Response) -> dict[str, Any]:
        found = answer.json()
        access = self.stage.sealer.open(TokenKind.ACCESS, found["access_token"])
        refresh = self.stage.sealer.open(TokenKind.REFRESH, found["refresh_token"])
        if access is None or refresh is None or access[1:] != refresh[1:]:
            return {"broken": True}
        return {"issued": access.generation, "of": access.id, "user": access.user}

    def _take(self, tokens: Tokens, op: Op, answer: Response) -> None:
        if op.acked and op.result.get("issued", -1) > tokens.generation:
            found = answer.json()
            tokens.generation = op.result["issued"]
            tokens.access[tokens.generation] = found["access_token"]
            tokens.refresh[tokens.generation] = found["refresh_token"]

    async def revoke(self, tokens: Tokens, *, refresh: bool) -> Op:
        """Gives back the access token, or the refresh token with all that came from its code (RFC 7009)."""
        kind = "revoke_refresh" if refresh else "revoke_access"
        token = (tokens.refresh if refresh else tokens.access)[tokens.generation]
        args = {"family": tokens.family, "generation": tokens.generation}
        op, _ = await self.call(kind, args, "POST", "/api/oauth/revoke", data={"token": token, **self.client()})
        return op

    async def resource(
        self,
        kind: str,
        tokens: Tokens,
        method: str,
        path: str,
        args: dict[str, Any] | None = None,
        *,
        generation: int | None = None,
        **options: Any,
    ) -> tuple[Op, Response]:
        """A call with an access token, the newest where no generation is named."""
        generation = tokens.generation if generation is None else generation
        headers = {"Authorization": f"Bearer {tokens.access[generation]}", **options.pop("headers", {})}
        named = {"family": tokens.family, "generation": generation, **(args or {})}
        return await self.call(kind, named, method, path, headers=headers, **options)

    async def userinfo(self, tokens: Tokens, **options: Any) -> Op:
        """Who the person is."""
        op, _ = await self.resource("userinfo", tokens, "GET", "/api/oauth/userinfo", **options)
        return op

    async def usage(self, tokens: Tokens, **options: Any) -> tuple[Op, Response]:
        """What the app keeps; the cheapest way to find out whether a token lives."""
        return await self.resource("usage", tokens, "GET", "/api/v1/data/_meta/usage", **options)

    async def balance(self, tokens: Tokens) -> Op:
        """What the person can spend."""

        def said(answer: Response) -> dict[str, Any]:
            found = answer.json()
            return {name: found[name] for name in ("paid", "held", "spendable")}

        op, _ = await self.resource("balance", tokens, "GET", "/api/v1/credits/balance", result=said)
        return op

    # Documents.

    async def put(self, tokens: Tokens, name: str, if_match: str = "", **options: Any) -> Op:
        """Writes a document that was never written before; over this version only where one is named ("*": none)."""
        content = self.content()
        headers = {"Content-Type": "application/json"}
        if if_match:
            headers.update({"If-None-Match": "*"} if if_match == "*" else {"If-Match": f'"{if_match}"'})
        args = {"name": name, "digest": digest(content), "size": len(content), "if_match": if_match}
        op, _ = await self.resource(
            "put",
            tokens,
            "PUT",
            f"/api/v1/data/{COLLECTION}/{name}",
            args,
            data=content,
            headers=headers,
            done=(200, 201),
            result=lambda answer: {"etag": int(answer.json()["etag"].strip('"'))},
            **options,
        )
        return op

    def content(self) -> bytes:
        """A document like no other."""
        pad = "x" * self.dice.randrange(10, 3000)
        return json.dumps({"by": self.name, "number": self.stage.recorder.number(), "pad": pad}).encode()

    async def get(self, tokens: Tokens, name: str, **options: Any) -> Op:
        """Reads a document; that there is none is an answer, too."""

        def said(answer: Response) -> dict[str, Any]:
            if answer.status == 404:
                return {"absent": True}
            return {"etag": int(answer.headers["ETag"].strip('"')), "digest": digest(answer.body)}

        path = f"/api/v1/data/{COLLECTION}/{name}"
        op, _ = await self.resource("get", tokens, "GET", path, {"name": name}, done=(200, 404), result=said, **options)
        return op

    async def delete(self, tokens: Tokens, name: str) -> Op:
        """Deletes a document."""
        path = f"/api/v1/data/{COLLECTION}/{name}"

        def said(answer: Response) -> dict[str, Any]:
            return {"absent": answer.status == 404}

        op, _ = await self.resource("delete", tokens, "DELETE", path, {"name": name}, done=(204, 404), result=said)
        return op

    async def listing(self, tokens: Tokens) -> tuple[Op, Response]:
        """The collection: names and versions."""

        def said(answer: Response) -> dict[str, Any]:
            return {"items": {item["id"]: int(item["etag"].strip('"')) for item in answer.json()["items"]}}

        return await self.resource("list", tokens, "GET", f"/api/v1/data/{COLLECTION}?limit=200", result=said)

    # Money.

    async def ask(
        self,
        tokens: Tokens,
        number: int,
        *,
        stream: bool,
        key: str = "",
        most: int | None = None,
        output: int = 0,
        **told: Any,
    ) -> Op:
        """An AI call; the app hangs up after `most` bytes. `output`: the tokens of the answer, otherwise its number;
        `told`: more to note of it."""
        output = output or number
        body = {
            "model": f"{output}x{15 if stream else 0}",
            "max_tokens": output + 50,
            "stream": stream,
            "messages": [{"role": "user", "content": "Which key opens every door there is?"}],
        }
        headers = {"Idempotency-Key": key} if key else {}
        args = {"number": number, "cost": cost(output), "stream": stream, "key": key, **told}
        op, answer = self.begin("ai", {"family": tokens.family, "generation": tokens.generation, **args}), Response()
        answer = await self.send(
            "POST",
            "/api/v1/ai/messages",
            json=body,
            headers={"Authorization": f"Bearer {tokens.access[tokens.generation]}", **headers},
            most=most,
        )
        credits = _credits_of(answer)
        if answer.status == 200 and credits is None and not answer.error:
            answer.error = "no charge"  # a stream that ended with an error: what was received may have been charged
        if answer.status in (502, 504, 529) and "X-Should-Retry" in answer.headers:
            answer.error = "charged"  # the model's server had accepted the call
        if answer.error == "hung up" and b"message_start" in answer.body:
            op.args["began"] = True
        replayed = "Idempotent-Replayed" in answer.headers
        return self.finish(op, answer, (200,), lambda _: {**(credits or {}), "replayed": replayed})

    async def top_up(self, key: str, amount: int) -> Op:
        """A payment that the operator's back end books."""
        port = self.dice.choice(self.stage.ops)
        form = {"user": self.person.email, "amount": amount, "key": key, "reason": key}
        headers = {"Authorization": f"Bearer {self.stage.operator_key}"}
        op, _ = await self.call(
            "top_up",
            {"key": key, "amount": amount},
            "POST",
            f"{port}/ops/credits",
            json=form,
            headers=headers,
            patience=TIMEOUT,
            result=lambda answer: {"replayed": answer.json()["replayed"], "spendable": answer.json()["spendable"]},
        )
        return op


def _credits_of(answer: Response) -> dict[str, int] | None:
    """What a reply says of its cost, whole or at the end of a stream."""
    place = answer.body.rfind(_SSE_CREDITS)
    if place < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(answer.body[place + len(_SSE_CREDITS) :].decode("utf-8", "replace"))
        return {"charged": found["charged"], "remaining": found["remaining"]}
    except (ValueError, KeyError, TypeError):
        return None
