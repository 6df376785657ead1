"""The base class of the API's endpoints: JSON, CORS without credentials, bearer tokens, client authentication."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

from tornado.httputil import HTTPServerRequest

from handlers.core.auth.client_credentials import ClientCredentials, read_credentials, why_refused
from handlers.core.auth.dpop import read_proof
from handlers.core.base import ALLOWED_HEADERS, ALLOWED_METHODS, EXPOSED, BaseHandler
from handlers.core.params import Params
from handlers.core.policy import Policy
from handlers.core.reading import LONG_BODY
from handlers.core.server_state import ServerState
from runtime.http.tornado_private import LeanHandler
from store.apps.api_record import ApiRegistration
from store.apps.client_ids import is_api_id, is_document_url
from store.apps.client_secrets import secret_digest, secret_mark, secret_matches
from store.apps.registration import Registration
from store.clock import wall
from store.crypto.dpop import DpopProof
from store.crypto.jose.refusal import JoseError
from store.oauth.client_assertions import Proof, check_assertion
from store.oauth.proofs import for_call, may_present
from store.refused import Refused
from store.results import Caller, Window

T = TypeVar("T")


class ApiHandler(LeanHandler, BaseHandler):
    """An endpoint under /api/."""

    allowed_headers = ALLOWED_HEADERS

    # CORS on every response, errors too. The origin is never reflected, and cookies mean nothing here.
    constant_headers = (
        *BaseHandler.constant_headers,
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Expose-Headers", EXPOSED),
    )

    lean = only_json = True
    gone = False
    begins = False
    """Whether an authorization begins here, by an app that may never have come before."""
    proven = False
    """Whether the request came with a DPoP proof, or needs one: every answer to it has a nonce (RFC 9449 8.2)."""

    def __init__(self, application: ServerState, request: HTTPServerRequest, *, policy: Policy) -> None:
        self.begin_request(application, request)  # in place of Tornado's own
        self.initialize(policy)

    def on_connection_close(self) -> None:
        """Called when the client closes the connection before it has an answer."""
        self.gone = True

    def options(self, *args: str) -> None:
        """Answers a preflight. The wildcard does not cover Authorization, so the headers are listed."""
        self.set_header("Access-Control-Allow-Methods", ALLOWED_METHODS)
        self.set_header("Access-Control-Allow-Headers", self.allowed_headers)
        self.set_header("Access-Control-Max-Age", "86400")
        self.set_status(204)
        self.finish()

    def set_default_headers(self) -> None:
        """Runs again before an error, which clears the headers."""
        if self.proven:
            self.set_header("DPoP-Nonce", self.store.proofs.nonce())

    async def caller(self) -> Caller:
        """The person and app that the request acts for. A forged token is refused without a store call; the script of
        the call checks a real one, and its key. Raises Refused("invalid_token", "dpop_proof_refused" or
        "dpop_nonce_required")."""
        header = self.request.headers.get_list("Authorization")
        scheme, _, presented = (header[0] if len(header) == 1 else "").partition(" ")
        presented, scheme = presented.strip(), scheme.lower()
        token = self.store.tokens.open_access(presented) if scheme in ("bearer", "dpop") else None
        if scheme == "dpop":
            self.expect_proof()
        app = await self.store.apps.active(token.client) if token is not None else None
        # A token that was issued before the app had to bind its tokens is refused, too.
        self.calling = app
        if token is None or app is None or not (scheme == "dpop" or may_present(app, "")):
            raise Refused("invalid_token")
        self.counted_app = token.client
        proof = ""
        if scheme == "dpop":
            proof = for_call(token.user, read_proof(self.request, self.site, app.rules, presented))
        return Caller.of(token, app.scopes, app.owner, app.sector, proof)

    def expect_proof(self) -> None:
        """From here on, each answer to this request has a nonce."""
        self.proven = True
        self.set_default_headers()

    def sent_proof(self, app: Registration, *, required: bool = False) -> DpopProof | None:
        """The DPoP proof of an app's request to the token endpoint, or of a pushed request; None if there is none,
        unless it is `required`. The caller must use it up. Raises Refused("invalid_dpop_proof" or "use_dpop_nonce")."""
        if not required and "DPoP" not in self.request.headers:
            return None
        self.expect_proof()
        return read_proof(self.request, self.site, app.rules)

    async def read_body(
        self, person: str, read: Callable[[], T], check: Callable[[], Awaitable[Window]], window: Window | None = None
    ) -> tuple[T, Window | None]:
        """The result of `read` for the body, and the window's figures if the request was already counted.

        Only a caller with a live token and room in the window learns what is wrong with a body. Otherwise refused
        bodies would be free of charge, however many there are. So `check` looks up both before a long body is read, and
        before a short one is refused. A correct short body costs no extra round trip. `window`: both were already
        looked up. Raises Refused, with the window.
        """
        long = len(self.request.body) > LONG_BODY
        if long and window is None:
            window = await check()
        try:
            if window is None or not long:
                return read(), window
            self.step_aside()
            return await self.site.readers.run(person, window, read, lambda: self.gone), window
        except Refused as refusal:
            refusal.window = refusal.window or window or await check()
            raise

    async def refuse_unknown(self, refusal: Refused) -> NoReturn:
        """Refuses a request whose user is unknown. It counts against the client's address and no user's window. Raises
        the refusal, or Refused("rate_limited")."""
        await self.store.limits.unknown_user(self.counted_address)
        raise refusal

    async def authenticate(self, params: Params, *, optional: bool = False) -> Registration | None:
        """The app that sends the request, as `recognise`; its assertion, if it sent one, is used up."""
        app, proof = await self.recognise(params, optional=optional)
        if app is not None and proof is not None:
            await self._use(app, proof)
        return app

    async def recognise(self, params: Params, *, optional: bool = False) -> tuple[Registration | None, Proof | None]:
        """The app that sends the request, which proves itself in the one way it registered (SPEC 5.1, RFC 6749 2.3, RFC
        7523 2.2); and its assertion, which the caller must use up. If `optional`, the proof may be missing; without any
        client the result is None. Raises Refused("invalid_client" or "invalid_request")."""
        sent = self._credentials(params)
        if sent.client_id is None:
            if optional and sent.secret is None:
                return None, None
            raise Refused("invalid_request", "client_id is missing.")
        app = await self._client(sent.client_id)
        proof, why = await self._proof(app, sent) if sent.assertion is not None else (None, "")
        authentic = proof is not None or _is_authentic(app, sent)
        if app is None or not (authentic or (optional and sent.has_no_proof)):
            self.store.security.note("client_refused", client=app.client_id if app else "")
            self.logged_app = app.client_id if app and not app.origin else ""
            await self.refuse_unknown(Refused("invalid_client", why))
        elif authentic and not app.origin:  # without a proof, anybody may send any app's client_id
            self.counted_app = app.client_id
            if proof is None and sent.secret:
                self.store.app_stats.used_secret(app.client_id, secret_mark(secret_digest(sent.secret)))
        return app, proof

    async def authenticate_asker(self, params: Params) -> Registration | ApiRegistration:
        """The API, or the confidential app, that asks about a token (RFC 7662 2.1). Raises Refused("invalid_client" or
        "invalid_request")."""
        sent = self._credentials(params)
        asker: Registration | ApiRegistration | None = None
        proof, why = None, ""
        if sent.client_id is not None and is_api_id(sent.client_id):
            asker = await self.store.apis.active(sent.client_id)
        elif sent.client_id is not None:
            app = asker = await self._client(sent.client_id)
            if sent.assertion is not None:
                proof, why = await self._proof(app, sent)
        # A public app proves nothing, so it is nobody here.
        matches = proof is not None or secret_matches(sent.secret or "", asker.secrets if asker else ())
        if asker is None or not matches:
            self.basic_tried = True  # RFC 6749 5.2: the challenge names the scheme, also for a request without one
            self.store.security.note("client_refused", client=asker.client_id if asker else "")
            await self.refuse_unknown(Refused("invalid_client", why))
        if isinstance(asker, Registration):
            self.counted_app = asker.client_id
            if proof is None and sent.secret:
                self.store.app_stats.used_secret(asker.client_id, secret_mark(secret_digest(sent.secret)))
            if proof is not None:
                await self._use(asker, proof)
        else:
            self.counted_api = asker.client_id
        return asker

    async def _client(self, client_id: str) -> Registration | None:
        """The app with this client id. A metadata document that is over is read again; one that was never read, only
        where an authorization begins. Raises Refused("invalid_client")."""
        app = await self.store.apps.active(client_id)
        if app is not None and not app.document_url:
            return app
        if app is not None:
            asker = self.site.asker(self.counted_address)
            return await self.site.client_documents.standing(self.store, app, asker)
        if self.begins and self.store.apps.documents and is_document_url(client_id):
            try:
                return await self.site.client_documents.current(
                    self.store, client_id, self.site.asker(self.counted_address)
                )
            except Refused as refusal:
                if refusal.code in ("rate_limited", "temporarily_unavailable"):
                    raise
                await self.refuse_unknown(Refused("invalid_client", refusal.description))
        return None

    def client_id_of(self, params: Params) -> str | None:
        """The client id that the request names; nothing is proven yet. Raises Refused("invalid_request")."""
        return self._credentials(params).client_id

    def _credentials(self, params: Params) -> ClientCredentials:
        header = self.request.headers.get_list("Authorization")
        self.basic_tried = bool(header) and header[0].partition(" ")[0].lower() == "basic"
        return read_credentials(params, header)

    async def _proof(self, app: Registration | None, sent: ClientCredentials) -> tuple[Proof | None, str]:
        """The assertion that was sent, if it is a valid one of this app; otherwise why it is not, for people."""
        if sent.assertion is None or app is None or not app.private_key_jwt:
            return None, ""
        text, client, base, rules = sent.assertion, app.wire_id, self.site.base_url, app.rules
        audiences = {base} if rules.issuer_alone else {base, f"{base}/api/oauth/token", f"{base}{self.request.path}"}
        now = wall.time()
        try:
            return await self.site.client_keys.verified(
                app, lambda known: check_assertion(text, known, client, audiences, now, rules)
            ), ""
        except JoseError as error:
            return None, f"The assertion is refused: {why_refused(error, rules)}."

    async def _use(self, app: Registration, proof: Proof) -> None:
        """Uses an assertion up. Raises Refused("invalid_client" or "rate_limited"), StoreUnavailable."""
        try:
            await self.store.client_assertions.use(app.client_id, proof)
        except Refused as refusal:
            self.store.security.note("client_refused", client=app.client_id)
            self.logged_app = app.client_id
            await self.refuse_unknown(refusal)


def _is_authentic(app: Registration | None, sent: ClientCredentials) -> bool:
    """SPEC 5.1: a confidential app proves itself with its secret; a public app has none, only its client_id. An unknown
    app costs as much work as a wrong secret."""
    if app is not None and app.public:
        return sent.has_no_proof
    return sent.secret is not None and secret_matches(sent.secret, app.secrets if app is not None else ())
