"""The operations port, for payment back ends: a separate application, which shares only the health routes."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Iterable
from typing import cast

from handlers.core.application import Latchkey
from handlers.core.base import BaseHandler
from handlers.core.fallback import quote_nothing
from handlers.core.params import Params
from handlers.core.policy import NOWHERE, OPEN, Policy
from handlers.core.route import Route
from handlers.core.site import Site
from handlers.ops.health import HealthHandler
from store.credits.credits import CURRENCY, SCALE
from store.operations import person_named
from store.refused import Refused


class Operations(Latchkey):
    """The application. `keys` are the SHA-256 digests of the operator keys."""

    keys: tuple[bytes, ...] = ()

    def take_keys(self, keys: Iterable[str]) -> None:
        """Replaces the operator keys."""
        self.keys = tuple(_digest(key) for key in keys)


class OpsHandler(BaseHandler):
    """A call by the operator's own programs. No browser calls it, so there is no CORS."""

    def prepare(self) -> None:
        """Raises Refused("invalid_token") without an operator key, before the rest of the request is read."""
        if self.policy.operator and not self.shows_a_key():
            self.store.security.note("operator_key_refused")
            raise Refused("invalid_token", "The operator key is missing or wrong.")
        super().prepare()

    def shows_a_key(self) -> bool:
        """Whether the request has one of the keys. Compares all digests, in constant time."""
        header = self.request.headers.get_list("Authorization")
        scheme, _, presented = (header[0] if len(header) == 1 else "").partition(" ")
        digest = _digest(presented.strip())
        fits = [hmac.compare_digest(digest, key) for key in cast(Operations, self.application).keys]
        return scheme.lower() == "bearer" and any(fits)


class GrantCreditsHandler(OpsHandler):
    """POST /ops/credits."""

    async def post(self) -> None:
        """Adds or removes credits of a person, once for each idempotency key."""
        params = self.body()
        who, amount = _person(params.require("user")), params.whole("amount")
        reason, key = params.get("reason") or "", self.idempotency_key(params)
        person, granted = await self.store.operator.credit(who, amount, reason=reason, key=key)
        self.write_json(
            {
                "sub": person.user,
                "amount": amount,
                "paid": granted.balance.paid,
                "held": granted.balance.held,
                "spendable": granted.balance.spendable,
                "currency": CURRENCY,
                "scale": SCALE,
                "replayed": granted.replayed,
            }
        )

    def idempotency_key(self, params: Params) -> str:
        """The header `Idempotency-Key` or the field `key`. Raises Refused("invalid_request")."""
        sent = {value for value in self.request.headers.get_list("Idempotency-Key") if value}
        field = params.get("key")
        if not all(value.isascii() for value in sent):
            # Header bytes have no agreed encoding, so the same key in the field could differ.
            raise Refused("invalid_request", "A key with characters outside ASCII goes into the field key.")
        sent |= {field} if field is not None else set()
        if len(sent) != 1:
            raise Refused("invalid_request", "Send one Idempotency-Key, so that a retry is not a second payment.")
        return sent.pop()


class NothingHandler(OpsHandler):
    """404 for everything else."""

    def prepare(self) -> None:
        """Raises Refused("not_found")."""
        raise Refused("not_found")


OPS_ROUTES: tuple[Route, ...] = (
    Route(r"/ops/credits", GrantCreditsHandler, "ops-credits", Policy(operator=True)),
    Route(r"/healthz", HealthHandler, "healthz", OPEN),
)


def make_ops_application(site: Site, keys: Iterable[str]) -> Operations:
    """The Tornado application of the operations port."""
    application = Operations(
        [route.spec() for route in OPS_ROUTES],
        default_handler_class=NothingHandler,
        default_handler_args={"policy": NOWHERE},
    )
    application.site = site
    application.take_keys(keys)
    logging.getLogger("tornado.general").addFilter(quote_nothing)
    return application


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _person(text: str) -> str:
    try:
        return person_named(text)
    except ValueError as error:
        raise Refused("invalid_request", str(error)) from None
