"""The base class of the management interface: key, role, idempotency, lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
from tornado.web import HTTPError

from handlers.core.params import Params, once, parse_pairs
from handlers.ops.operations import OpsHandler
from store.errors import StoreError
from store.operators.cursors import MOST_AT_ONCE, USUAL
from store.operators.replies import KeptReply
from store.operators.roles import check_act
from store.refused import Refused

Record = dict[str, Any]


class AdminHandler(OpsHandler):
    """A call with an operator key of the store. The route's policy names the act of each method."""

    async def prepare(self) -> None:  # type: ignore[override]  # Tornado waits for it
        """Raises Refused("invalid_token", "rate_limited" or "insufficient_role") before anything is read, and HTTPError
        for a method without an act."""
        self.actor = await self.identify()
        act = self.policy.act_of(self.request.method or "")
        if act is None:
            raise HTTPError(405)
        try:
            check_act(self.actor, act)
        except Refused:
            self.store.security.note("operator_refused", detail=f"{act} {self.policy.route}")
            raise
        super().prepare()

    def query(self, *known: str) -> Params:
        """The parameters of the query. Raises Refused("invalid_request") for one that is not in `known`: a mistyped
        filter must not look like a whole list."""
        return _only(once(parse_pairs(urlsplit(self.request.uri or "").query)), known)

    def fields(self, *known: str) -> Params:
        """The parameters of the body. Raises Refused("invalid_request") for one that is not in `known`."""
        return _only(self.body(), known)

    def page(self, params: Params) -> tuple[int, str]:
        """`limit` and `cursor`. Raises Refused("invalid_request")."""
        text = params.get("limit") or str(USUAL)
        if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MOST_AT_ONCE):
            raise Refused("invalid_request", f"limit is 1 to {MOST_AT_ONCE}.")
        return int(text), params.get("cursor") or ""

    def write_page(self, items: list[Record], cursor: str, **also: bool | int | None) -> None:
        """Writes a page of a list. `also`: what else the list says, such as `more`, for a list without end: whether its
        next page has something by now."""
        self.write_json({"items": items, "nextCursor": cursor or None, **also})

    async def answer_once(
        self,
        work: Callable[[], Awaitable[Record]],
        status: int = 200,
        hidden: Collection[str] = (),
        again: Callable[[str], Awaitable[Record]] | None = None,
    ) -> None:
        """Writes the result of `work`, which an `Idempotency-Key` lets happen once: a repeated request gets the same
        answer, with null in the place of the members `hidden`. An answer with personal data needs `again`, which makes
        it from its `id`, "" without one: only the id is kept, so deleting the person leaves nothing of them. Raises
        Refused as `OperatorReplies.claim`."""
        key = self.idempotency_key()
        if key is None:
            with valid():
                record = await work()
            return self.write_json(record, status)
        replies, request = self.store.operator_replies, self.request
        asked = f"{request.method} {request.uri}\n".encode("utf-8", "surrogatepass") + request.body
        claimed = await replies.claim(self.actor, key, asked)
        if isinstance(claimed, KeptReply):
            return await self._repeat(claimed, hidden, again)
        try:
            with valid():
                record = await work()
        except StoreError:
            raise  # nobody knows whether it was done
        except BaseException:
            await replies.drop(claimed)
            raise
        kept = {
            name: None if name in hidden else value
            for name, value in record.items()
            if again is None or name == "id" or name in hidden
        }
        await replies.keep(claimed, status, orjson.dumps(kept))
        self.write_json(record, status)

    async def _repeat(
        self, kept: KeptReply, hidden: Collection[str], again: Callable[[str], Awaitable[Record]] | None
    ) -> None:
        if not kept.body:
            raise Refused("idempotency_reply_gone")
        body = kept.body
        if again is not None:
            known = orjson.loads(body)
            record = await again(known.get("id") or "")
            body = orjson.dumps({**record, **{name: None for name in hidden if name in known}})
        self.set_status(kept.status)
        self.write_whole(body, {"Idempotent-Replayed": "true"})

    def idempotency_key(self) -> str | None:
        """The header `Idempotency-Key`; None without one. Raises Refused("invalid_request")."""
        sent = self.request.headers.get_list("Idempotency-Key")
        if not sent:
            return None
        if len({*sent}) > 1 or not sent[0].isascii() or not sent[0]:
            raise Refused("invalid_request", "Send one Idempotency-Key, in ASCII.")
        return sent[0]

    @staticmethod
    def flag(params: Params, name: str) -> bool:
        """A parameter that is true or false; false without one. Raises Refused("invalid_request")."""
        value = params.value(name)
        if value in (None, "", False, "false"):
            return False
        if value in (True, "true"):
            return True
        raise Refused("invalid_request", f"{name} is true or false.")


@contextmanager
def valid() -> Iterator[None]:
    """Turns the ValueError of a check into Refused("invalid_request")."""
    try:
        yield
    except ValueError as error:
        raise Refused("invalid_request", cast(str, error.args[0] if error.args else "")) from None


def _only(params: Params, known: Collection[str]) -> Params:
    for name in params.names():
        if name not in known:
            takes = f"It takes {', '.join(known)}." if known else "It takes none."
            raise Refused("invalid_request", f"There is no parameter {name[:40]!r} here. {takes}")
    return params
