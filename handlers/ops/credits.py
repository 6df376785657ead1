"""The operations port, for programs of the operator: a separate application, which shares only the health route."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from handlers.admin.interface_document import AdminOpenApiHandler, admin_document_bytes
from handlers.admin.routes import ROUTES as ADMIN
from handlers.admin.scim.routes import ROUTES as SCIM
from handlers.core.fallback import quote_nothing
from handlers.core.params import Params
from handlers.core.policy import NOWHERE, OPEN, Policy
from handlers.core.route import Route
from handlers.core.site import Site
from handlers.ops.health import HealthHandler
from handlers.ops.operations import NothingHandler, Operations, OpsHandler
from store.credits.credits import CURRENCY, SCALE
from store.operations import person_named
from store.operators.roles import check_act
from store.refused import Refused


class GrantCreditsHandler(OpsHandler):
    """POST /ops/credits."""

    async def prepare(self) -> None:  # type: ignore[override]  # Tornado waits for it
        """Raises Refused("invalid_token") without an operator key of the settings or the store, and
        Refused("insufficient_role") for a key of the store that may not give credits."""
        if not self.shows_a_key():
            check_act(await self.identify(), "credits.give")
        super().prepare()

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


OPS_ROUTES: tuple[Route, ...] = (
    Route(r"/ops/credits", GrantCreditsHandler, "ops-credits", Policy(operator=True)),
    Route(r"/healthz", HealthHandler, "healthz", OPEN),
    Route(r"/openapi\.json", AdminOpenApiHandler, "admin-openapi", OPEN),
    *ADMIN,
    *SCIM,
)


def make_ops_application(site: Site, keys: Iterable[str]) -> Operations:
    """The Tornado application of the operations port."""
    application = Operations(
        [route.spec() for route in OPS_ROUTES],
        default_handler_class=NothingHandler,
        default_handler_args={"policy": NOWHERE},
    )
    application.site = site
    targets = [(route.pattern, (route.handler, route.facts)) for route in OPS_ROUTES]
    application.openapi = admin_document_bytes(ADMIN, "/")
    application.literal = {pattern.replace(r"\.", "."): target for pattern, target in targets if "(" not in pattern}
    application.patterns = [(re.compile(pattern), target) for pattern, target in targets if "(" in pattern]
    application.take_keys(keys)
    logging.getLogger("tornado.general").addFilter(quote_nothing)
    return application


def _person(text: str) -> str:
    try:
        return person_named(text)
    except ValueError as error:
        raise Refused("invalid_request", str(error)) from None
