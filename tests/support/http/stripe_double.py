"""A double of Stripe: the calls of its HTTP API that a server makes, its payment page, and the events that it signs."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

KEY, SECRET = "sk_test_" + "a" * 24, "whsec_" + "b" * 32
Data = dict[str, Any]


def signed(body: bytes, secret: str = SECRET, at: int | None = None, scheme: str = "v1") -> str:
    """The header `Stripe-Signature` for these bytes."""
    at = int(time.time()) if at is None else at
    digest = hmac.new(secret.encode(), str(at).encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={at},{scheme}={digest}"


class StripeDouble:
    """Stripe, at `url`. `asked`: method, path, form and headers of each call; `failing`: the status of every answer, if
    not 0; `hanging`: calls get no answer until it is cleared."""

    def __init__(self) -> None:
        self.sessions: dict[str, Data] = {}
        self.intents: dict[str, Data] = {}
        self.refunds: list[Data] = []
        self.asked: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        self.failing = 0
        self.answering = threading.Event()
        self.answering.set()
        self._numbers = itertools.count(1)
        self._server = _Server(("127.0.0.1", 0), _Answers)
        self._server.daemon_threads = True
        self._server.double = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Ends it."""
        self.answering.set()
        self._server.shutdown()
        self._server.server_close()

    def create(self, form: dict[str, str]) -> Data:
        """A payment page for what a server asked."""
        number = next(self._numbers)
        named = {name[9:-1]: value for name, value in form.items() if name.startswith("metadata[")}
        kept = "payment_intent_data[metadata]["
        intent = {name[len(kept) : -1]: value for name, value in form.items() if name.startswith(kept)}
        price = "line_items[0][price_data]"
        session: Data = {
            "id": f"cs_test_{number}",
            "object": "checkout.session",
            "mode": form["mode"],
            "amount_total": int(form[f"{price}[unit_amount]"]) * int(form["line_items[0][quantity]"]),
            "currency": form[f"{price}[currency]"],
            "client_reference_id": form["client_reference_id"],
            "metadata": named,
            "payment_intent": None,
            "payment_status": "unpaid",
            "status": "open",
            "success_url": form["success_url"],
            "cancel_url": form["cancel_url"],
            "url": f"{self.url}/c/pay/cs_test_{number}",
        }
        self.sessions[session["id"]] = session
        self.intents[f"pi_{number}"] = {"id": f"pi_{number}", "object": "payment_intent", "metadata": intent}
        return session

    def event(self, kind: str, about: Data, at: int | None = None, **changes: Any) -> bytes:
        """The bytes of an event about the present state of an object."""
        number = next(self._numbers)
        facts: Data = {
            "id": f"evt_{number}",
            "object": "event",
            "type": kind,
            "created": 1_790_000_000 + number if at is None else at,
            "livemode": False,
            "api_version": "2026-09-30.endive",
            "data": {"object": about},
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
        }
        return json.dumps({**facts, **changes}, indent=2).encode()

    def pay(self, session: str, status: str = "paid", **changes: Any) -> bytes:
        """The person pays; `unpaid`: by a method that takes days."""
        about = self.sessions[session]
        about |= {"payment_intent": "pi_" + session.rpartition("_")[2], "payment_status": status, "status": "complete"}
        return self.event("checkout.session.completed", about, **changes)

    def arrived(self, session: str, *, well: bool = True) -> bytes:
        """The end of a payment that took days."""
        about = self.sessions[session]
        about["payment_status"] = "paid" if well else "unpaid"
        return self.event(f"checkout.session.async_payment_{'succeeded' if well else 'failed'}", about)

    def charge(self, session: str, refunded: int, **changes: Any) -> Data:
        """The charge of a payment, with the sum of its refunds in cents."""
        about, number = self.sessions[session], session.rpartition("_")[2]
        intent = self.intents[f"pi_{number}"]
        named = {"amount": about["amount_total"], "currency": about["currency"], "metadata": dict(intent["metadata"])}
        facts = {"id": f"ch_{number}", "object": "charge", "payment_intent": intent["id"], "amount_refunded": refunded}
        return {**facts, **named, **changes}

    def refund(self, session: str, cents: int, **changes: Any) -> bytes:
        """The operator refunds a part."""
        intent = "pi_" + session.rpartition("_")[2]
        number = next(self._numbers)
        facts = {"id": f"re_{number}", "object": "refund", "payment_intent": intent, "currency": "usd"}
        self.refunds.append({**facts, "amount": cents, "status": "succeeded"})
        return self.event("charge.refunded", self.charge(session, self.refunded(intent)), **changes)

    def refunded(self, intent: str) -> int:
        """The sum of refunds in cents."""
        standing = (one["amount"] for one in self.refunds if one["payment_intent"] == intent)
        return sum(standing)

    def fail_refund(self, number: int, **changes: Any) -> bytes:
        """A refund does not reach the person."""
        self.refunds[number]["status"] = "failed"
        return self.event("refund.failed", dict(self.refunds[number]), **changes)

    def dispute(self, session: str, what: str, cents: int, dispute: str = "dp_1", **changes: Any) -> bytes:
        """What happens in a dispute: `created`, `funds_withdrawn`, `funds_reinstated` or `closed`."""
        facts: Data = {"id": dispute, "object": "dispute", "payment_intent": "pi_" + session.rpartition("_")[2]}
        facts |= {"currency": "usd", "metadata": {}, "status": "needs_response"}
        return self.event(f"charge.dispute.{what}", {**facts, "amount": cents}, **changes)


class _Server(ThreadingHTTPServer):
    """The server of a double."""

    double: StripeDouble


class _Answers(BaseHTTPRequestHandler):
    """Answers the API's calls, and serves the payment page."""

    protocol_version = "HTTP/1.1"

    @property
    def double(self) -> StripeDouble:
        """The double."""
        return cast(_Server, self.server).double

    def do_GET(self) -> None:
        """Reads of the API, and the payment page."""
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        self.note(path, {name: values[0] for name, values in query.items()})
        if path.startswith("/c/pay/"):
            page = '<!doctype html><title>Pay</title><h1>Pay</h1><form method="post"><button>Pay</button></form>'
            return self.answer(200, page.encode(), "text/html")
        if self.refused():
            return None
        if path.startswith("/v1/payment_intents/"):
            intent = self.double.intents.get(path.rpartition("/")[2])
            return self.tell(intent) if intent else self.wrong(404, "No such payment_intent")
        if path == "/v1/refunds":
            found = [one for one in self.double.refunds if one["payment_intent"] == query["payment_intent"][0]]
            return self.tell({"object": "list", "data": found, "has_more": False, "url": path})
        return self.wrong(404, "Unrecognized request URL")

    def do_POST(self) -> None:
        """A payment page is made, or paid on."""
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = {name: values[0] for name, values in parse_qs(sent).items()}
        self.note(self.path, form)
        if self.path.startswith("/c/pay/"):
            session = self.double.sessions[self.path.rpartition("/")[2]]
            self.send_response(303)
            self.send_header("Location", session["success_url"])
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if not self.refused():
            self.tell(self.double.create(form))
        return None

    def note(self, path: str, form: dict[str, str]) -> None:
        """Keeps the call."""
        self.double.answering.wait(30)
        self.double.asked.append((self.command, path, form, dict(self.headers)))

    def refused(self) -> bool:
        """Whether the call is refused: its key is wrong, or every call fails."""
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            self.wrong(401, f"Invalid API Key provided: {self.headers.get('Authorization')}")
        elif self.double.failing:
            self.wrong(self.double.failing, "Something is wrong with the API")
        else:
            return False
        return True

    def wrong(self, status: int, message: str) -> None:
        """An error, as the API has them."""
        body = json.dumps({"error": {"type": "invalid_request_error", "message": message}}).encode()
        self.answer(status, body, "application/json")

    def tell(self, value: Data) -> None:
        """An object."""
        self.answer(200, json.dumps(value).encode(), "application/json")

    def answer(self, status: int, body: bytes, kind: str) -> None:
        """An answer."""
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Request-Id", "req_1")):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def standing() -> Iterator[StripeDouble]:
    """A double, for a fixture."""
    double = StripeDouble()
    yield double
    double.close()
