"""What an agent does that hands tokens on (RFC 8693): grows trees of tokens, calls with any of them, ends branches and
replays, with several requests at the same time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from dev.proof.apps import Backend
from dev.proof.calling import Response
from dev.proof.history import Op
from dev.proof.people import JSON, Tokens
from store.crypto.seal import TokenKind

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"
PACE = 0.5
"""Seconds between two steps."""
MOST_NODES = 60
"""Live tokens of a tree, fewer than a grant may have."""
MOST_OUTPUT = 60
"""Output tokens of a call."""
CENT = 10_000
CROWD = 100
"""Calls at the same moment on a cent. They would cost more."""
TRIES = 3


class Node(Tokens):
    """A token of a tree. `part`: what it may spend in micro-dollars; 0: what the tokens above it may."""

    def __init__(self, family: str, code: str = "", above: Node | None = None, part: int = 0) -> None:
        super().__init__(family, code)
        self.above, self.part, self.ended = above, part, False

    @property
    def works(self) -> bool:
        """Whether nobody has ended it or a token above it, as far as the planner knows."""
        return not self.ended and (self.above is None or self.above.works)

    @property
    def room(self) -> int:
        """The smallest part that bounds it."""
        above = self.above.room if self.above else 0
        return min(self.part, above) if self.part and above else self.part or above


class Planner(Backend):
    """One app of one person. `nodes` are all tokens of the present tree, the root first; `grown` those of all trees."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.nodes: list[Node] = []
        self.grown: list[Node] = []
        self.calls = 0
        self.leaving = False

    async def work(self, done: asyncio.Event) -> None:
        """Takes step after step until the end."""
        while not done.is_set():
            await self.step()
            await self.pause(PACE)

    async def step(self) -> None:
        """Signs in, has a tree planted, or does something with it, often at several places at the same time."""
        if not self.session:
            await self.sign_in()
        elif not self.nodes or not self.nodes[0].works:
            await self.plant()
        else:
            way = self.dice.random()
            if self.leaving or way < 0.04:
                await self.end_tree(self.nodes[0])
            elif way < 0.10:
                await self.crowd()
            elif way < 0.18:
                await self.siblings()
            else:
                await asyncio.gather(*(self.act() for _ in range(self.dice.randrange(1, 6))))

    async def plant(self) -> None:
        """The person decides on a budget, and the app exchanges the code: the root of a new tree."""
        budget = self.dice.randrange(20_000, 60_000)
        op, tokens = await self.consent(budget)
        if tokens is None:
            if op.status == 401:
                self.session = ""
            return
        root = Node(tokens.family, tokens.code, part=budget)
        for _ in range(TRIES):
            op = await self.exchange(root)
            if not op.unknown and op.sent:
                break
            await self.pause(PACE)
        if root.live:
            self.nodes = [root]
            self.grown.append(root)

    async def act(self) -> None:
        """One of the things that an agent or one of its helpers does."""
        alive = [node for node in self.nodes if node.works]
        if not alive:
            return
        node = self.dice.choice(alive)
        acts: dict[Callable[[Node], Awaitable[Any]], float] = {
            self.hand_on: 8,
            self.spend: 8,
            self.call_again: 2,
            self.stream: 1,
            self.hang_up: 0.5,
            self.userinfo: 2,
            self.counted: 2,
            self.look_back: 2,
            self.end_branch: 0.8,
            self.give_back: 0.8,
            self.rotate: 0.6,
            self.replay: 0.1,
        }
        (act,) = self.dice.choices(list(acts), list(acts.values()))
        await act(node)

    async def finish_up(self) -> None:
        """Ends a branch, which a short run may not have done, reads what each token of the last tree has spent, and
        tries all that ended."""
        if not self.nodes or not self.nodes[0].works:
            await self.plant()
        if self.nodes and (child := await self.hand_on(self.nodes[0])):
            await self.end_branch(child)
        for node in self.nodes:
            await self.counted(node, last=True)
        for node in self.grown:
            await self.userinfo(node)

    # Trees.

    async def hand_on(self, node: Node, part: int | None = None, server: int | None = None) -> Node | None:
        """Exchanges a token for a smaller one, sometimes without a part of its own."""
        if part is None:
            part = self.dice.choice((0, self.dice.randrange(500, max(501, node.room))))
            if self.dice.random() < 0.05:
                part = node.room + 1  # wider than allowed
        form = {
            "grant_type": GRANT_TYPE,
            "subject_token": node.access[node.generation],
            "subject_token_type": ACCESS,
            "name": "A helper",
            **self.client(),
        }
        if part:
            form["authorization_details"] = json.dumps([{"type": "llm-inference", "budget": part}])
        args = {"family": node.family, "generation": node.generation, "part": part}
        made: list[Node] = []

        def said(answer: Response) -> dict[str, Any]:
            found = answer.json()
            token = self.stage.sealer.open(TokenKind.ACCESS, found["access_token"])
            if token is None:
                return {"broken": True}
            child = Node(token.id, above=node, part=part)
            child.generation, child.access = 0, {0: found["access_token"]}
            made.append(child)
            return {"child": token.id, "user": token.user}

        await self.call("hand_on", args, "POST", "/api/oauth/token", data=form, result=said, server=server)
        if len(self.nodes) >= MOST_NODES:
            self.nodes = [self.nodes[0], *(one for one in self.nodes[1:] if one.works)]
        if made and len(self.nodes) < MOST_NODES:
            self.nodes += made
            self.grown += made
        return made[0] if made else None

    async def end_branch(self, node: Node) -> None:
        """The person ends a token on the page of connected apps."""
        if node.above is None:
            return
        await self.send("GET", "/account/apps", browser=True)
        path, form = f"/account/apps/{self.app.client_id}/end", {"helper": node.family}
        args = {"family": node.family}
        op, _ = await self.call("end_branch", args, "POST", path, done=(303,), browser=True, headers=JSON, data=form)
        await self._ended(node, op)

    async def give_back(self, node: Node) -> None:
        """The app revokes a token that came from another."""
        if node.above is not None:
            await self._ended(node, await self.revoke(node, refresh=False))

    async def end_tree(self, root: Node) -> None:
        """Ends the root in one of several ways, and with it everything below. Repeated until it is certain, so that the
        calls of one tree never count for the budget of the next."""
        self.leaving = True
        way = self.dice.random()
        if way < 0.4 and root.refresh:
            op = await self.revoke(root, refresh=True)
        elif way < 0.8:
            op = await self.disconnect()
        else:
            op = await self.exchange(root)  # the code again: a replay
        if op.acked or (op.kind == "exchange" and op.status == 400):
            self.nodes, self.leaving = [], False
            for node in self.dice.sample(self.grown, min(3, len(self.grown))):
                await self.userinfo(node)
        elif op.status == 401:
            self.session = ""

    async def rotate(self, node: Node) -> None:
        """Refreshes the root. Tokens that came from its earlier access token stay."""
        root = self.nodes[0]
        if root.refresh:
            op = await self.refresh(root, root.generation)
            root.ended = op.refused and op.status == 400
            if op.unknown:
                root.refresh.clear()  # once more could be a replay

    async def replay(self, node: Node) -> None:
        """Presents an old refresh token of the root: the whole tree ends."""
        root = self.nodes[0]
        if root.generation >= 2 and root.refresh:
            op = await self.refresh(root, root.generation - 2)
            root.ended = op.refused and op.status == 400
            await self.userinfo(self.dice.choice(self.nodes))

    async def _ended(self, node: Node, op: Op) -> None:
        # Without an answer, it may have ended.
        node.ended = not op.refused
        if op.acked:
            below = [one for one in self.grown if not one.works]
            await self.userinfo(self.dice.choice(below))

    async def look_back(self, node: Node) -> None:
        """Tries a token that may have ended long ago."""
        old = self.dice.choice(self.grown)
        if old not in self.nodes:
            await self.userinfo(old)
        elif self.dice.random() < 0.5:
            await self.spend(old)
        else:
            await self.hand_on(old)

    async def userinfo(self, tokens: Tokens, **options: Any) -> Op:
        """Who the person is; a refusal shows that the token has ended."""
        op = await super().userinfo(tokens, **options)
        if op.status == 401 and isinstance(tokens, Node):
            tokens.ended = True
        return op

    # Money.

    def _next(self) -> dict[str, Any]:
        self.calls += 1
        return {"number": self.calls, "output": self.dice.randrange(1, MOST_OUTPUT + 1), "tree": True}

    async def spend(self, node: Node) -> None:
        """An AI call."""
        self._heard(node, await self.ask(node, stream=False, **self._next()))

    async def call_again(self, node: Node) -> None:
        """An AI call with an idempotency key, repeated until there is an answer, and sometimes once more."""
        call = self._next()
        for _ in range(TRIES):
            op = self._heard(node, await self.ask(node, stream=False, key=f"{self.name}-{call['number']}", **call))
            if not op.unknown and op.status != 409 and self.dice.random() < 0.7:
                return
            await self.pause(PACE)

    async def stream(self, node: Node) -> None:
        """A stream, read to its end."""
        self._heard(node, await self.ask(node, stream=True, **self._next()))

    async def hang_up(self, node: Node) -> None:
        """A stream that the app leaves."""
        self._heard(node, await self.ask(node, stream=True, most=self.dice.randrange(100, 3000), **self._next()))

    async def crowd(self) -> None:
        """100 calls at the same moment, at all servers, with a token that may spend a cent."""
        node = await self.hand_on(self.nodes[0], part=min(CENT, self.nodes[0].room))
        if node is not None:
            await asyncio.gather(*(self.spend(node) for _ in range(CROWD)))
            await self.counted(node)

    async def siblings(self) -> None:
        """Helpers, each of which may spend all that their common parent may, race."""
        part = self.dice.randrange(300, 2000)
        parent = await self.hand_on(self.nodes[0], part=part)
        if parent is None:
            return
        made = await asyncio.gather(*(self.hand_on(parent, part=part, server=number) for number in range(4)))
        await asyncio.gather(*(self.spend(one) for one in made if one is not None for _ in range(6)))
        await self.counted(parent)

    def _heard(self, node: Node, op: Op) -> Op:
        if op.status == 401:
            node.ended = True
        return op

    async def counted(self, node: Node, *, last: bool = False) -> Op:
        """What the server says that a token has spent of its part, or of the nearest part above it."""

        def said(answer: Response) -> dict[str, Any]:
            found = answer.json()
            if not found["active"]:
                return {"active": False}
            (detail,) = found["authorization_details"]
            return {"active": True, "used": found["budget_used"], "part": detail["budget"]}

        args = {"family": node.family, "generation": node.generation, "last": last}
        form = {"token": node.access[node.generation], **self.client()}
        op, _ = await self.call("counted", args, "POST", "/api/oauth/introspect", data=form, result=said)
        return op
