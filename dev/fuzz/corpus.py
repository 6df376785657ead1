"""Valid requests for mutation: one for each path through the server.

None of them, mutated or not, can change anything. Requests to write carry a dead token or lack the scope, so they are
read to the last byte and then refused by the script that would make the change.
"""

from __future__ import annotations

import hmac
import json
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from dev.fuzz.issued import dead_access, handed_on, hint, hinted
from dev.fuzz.messages import FORM, JSON, Message, message
from dev.fuzz.signed import claims_of_request, signed_request, spent_dpop, spent_proof
from dev.fuzz.target import OPERATOR_KEY, STRIPE_SECRET
from dev.fuzz.tokens import CALLBACK, VERIFIER, Cast
from store.crypto.seal import TokenKind
from store.names import DEVICE_GRANT

BOUNDARY = "----a-boundary"
XSRF = "2|01234567|0123456789abcdef0123456789abcdef|1700000000"
CLOSE = (b"Connection", b"close")
DETAILS = '[{"type":"credits","limit":3000000,"period":"month","models":["latchkey-echo"]}]'
NO_TOKEN = {"Authorization": "Bearer lk_ri_invented"}
METADATA = {
    "redirect_uris": ["https://notes.example/cb", "http://localhost/cb"],
    "client_name": "Notes",
    "token_endpoint_auth_method": "private_key_jwt",
    "jwks": {"keys": [{"kty": "EC", "crv": "P-256", "x": "a", "y": "b"}]},
    "grant_types": ["authorization_code"],
    "dpop_bound_access_tokens": True,
}
"""A registration that nothing allows."""


def as_texts(metadata: dict[str, Any]) -> dict[str, str]:
    """The same as a form has it."""
    return {name: one if isinstance(one, str) else json.dumps(one) for name, one in metadata.items()}


def corpus(cast: Cast) -> list[Message]:
    """All requests."""
    return [*api(cast), *ai(cast), *assistants(cast), *pages(cast), *operations(), payment()]


def api(cast: Cast) -> list[Message]:
    """Requests of apps."""
    reader, dead = cast.bearers["all scopes"] | {"Authorization": f"Bearer {cast.reader}"}, cast.bearers["expired"]
    client = {"client_id": "web-app", "client_secret": cast.secret}
    exchange = {
        "grant_type": "authorization_code",
        "code": cast.sealed(TokenKind.CODE, "web-app"),
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
    }
    refresh = {
        "grant_type": "refresh_token",
        "refresh_token": cast.sealed(TokenKind.REFRESH, "web-app"),
        "scope": "profile data:read",
        "resource": cast.base_url,
    }
    device = {"scope": "profile", "resource": cast.base_url, "dpop_jkt": "j" * 43}
    poll = {"grant_type": DEVICE_GRANT, "device_code": cast.sealed(TokenKind.DEVICE_CODE, "web-app")}
    ended = {"token": cast.sealed(TokenKind.ACCESS, "web-app"), "token_type_hint": "access_token"}
    as_json, as_form = {"Content-Type": JSON}, {"Content-Type": FORM}
    basic = {"Authorization": "Basic d2ViLWFwcDpub3QtdGhlLXNlY3JldA=="}
    keyed = {"Authorization": f"DPoP {cast.reader}"}
    document = json.dumps({"title": "Grüße", "list": [1, 2.5, None, True, {"a": "\ud83d\ude00"}]})
    return [
        message("POST", "/api/oauth/token", as_form, urlencode({**exchange, **client})),
        message("POST", "/api/oauth/token", as_json, json.dumps({**exchange, **client})),
        message("POST", "/api/oauth/token", as_form, urlencode({**refresh, **client})),
        message("POST", "/api/oauth/token", as_json, json.dumps({**refresh, **client})),
        message("POST", "/api/oauth/token", {**as_form, **basic}, urlencode(exchange)),
        message(
            "POST",
            "/api/oauth/token",
            as_form | spent_dpop(cast, "POST", "/api/oauth/token"),
            urlencode({**refresh, **client}),
        ),
        message("POST", "/api/oauth/revoke", as_form, urlencode({**ended, **client})),
        message("POST", "/api/oauth/revoke", as_json, json.dumps(ended)),
        message("POST", "/api/oauth/token", as_form, urlencode({**exchange, **spent_proof(cast)})),
        message("POST", "/api/oauth/introspect", as_json, json.dumps({**ended, **spent_proof(cast)})),
        message("POST", "/api/oauth/par", as_form, urlencode({**signed_request(cast), **spent_proof(cast)})),
        message(
            "POST",
            "/api/oauth/par",
            as_json,
            json.dumps({**claims_of_request(cast), "client_id": "web-app", "client_secret": "w"}),
        ),
        message("POST", "/api/oauth/device_authorization", as_form, urlencode({**device, **client, "scope": "admin"})),
        message("POST", "/api/oauth/device_authorization", as_json, json.dumps({**device, "client_id": "nobody"})),
        *(message("POST", "/api/oauth/token", as_form, urlencode({**f, **client})) for f in (poll, *handed_on(cast))),
        message("POST", "/api/oauth/introspect", as_form, urlencode({**ended, **client})),
        message("POST", "/api/oauth/register", as_json | NO_TOKEN, json.dumps(METADATA)),
        message("POST", "/api/oauth/register", as_form | NO_TOKEN, urlencode(as_texts(METADATA))),
        message("PUT", "/api/oauth/register/web-app", as_json | NO_TOKEN, json.dumps({**METADATA, "client_id": "a"})),
        message("GET", "/api/oauth/register/web-app", NO_TOKEN),
        message("POST", "/api/oauth/introspect", {**as_json, **basic}, json.dumps(ended)),
        message("POST", "/api/oauth/introspect", as_form, urlencode({**client, "token": dead_access(cast)})),
        message("POST", "/api/oauth/revoke", as_json, json.dumps({"token": dead_access(cast)})),
        message("GET", "/api/oauth/userinfo", {"Authorization": f"Bearer {dead_access(cast)}"}),
        message("GET", "/api/oauth/userinfo", reader),
        message("POST", "/api/oauth/userinfo", reader | as_form, "a=b"),
        message("GET", "/api/oauth/userinfo", keyed | spent_dpop(cast, "GET", "/api/oauth/userinfo", cast.reader)),
        message("HEAD", "/api/oauth/userinfo", reader),
        message("OPTIONS", "/api/oauth/token", {"Origin": "https://app.example"}),
        message("GET", "/api/v1/data/notes/n1", reader | {"If-None-Match": '"1"'}),
        message("PUT", "/api/v1/data/notes/n1", reader | as_json | {"If-Match": '"1", W/"2", *'}, document),
        message("PUT", "/api/v1/data/notes/n~@:1", dead | as_json | {"If-None-Match": "*"}, document),
        message("DELETE", "/api/v1/data/notes/n1", reader | {"If-Match": '"1"'}),
        message("GET", "/api/v1/data/notes?prefix=n&limit=10&cursor=bjE&include=data", reader),
        message("GET", "/api/v1/data/_meta/usage", reader),
        message("GET", "/api/v1/credits/balance", reader),
        message("GET", "/api/v1/credits/usage?from=2026-01-01&to=2026-01-31&group=model", reader),
        message("GET", "/api/v1/apps", reader),
        message("GET", "/.well-known/oauth-authorization-server"),
        message("GET", "/.well-known/oauth-protected-resource"),
        message("GET", "/.well-known/jwks.json"),
        message("GET", "/openapi.json", {"Accept": "*/*"}),
        message("GET", "/readyz"),
        message("GET", "/api/nothing/here"),
    ]


def ai(cast: Cast) -> list[Message]:
    """AI calls of a person without credits: read, counted and refused."""
    reader = {"Authorization": f"Bearer {cast.reader}"}
    question = {
        "model": "latchkey-echo",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"a": [1, "b"]}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "c"}]},
        ],
        "tools": [{"name": "n", "input_schema": {"type": "object"}}],
        "metadata": {"user_id": "u"},
        "stream": True,
    }
    fields = {name: value if isinstance(value, str) else json.dumps(value) for name, value in question.items()}
    function = {"name": "n", "parameters": {"type": "object"}}
    call = {"id": "t", "type": "function", "function": {"name": "n", "arguments": '{"a": [1, "b"]}'}}
    chat = {
        "model": "latchkey-echo",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t", "content": "c"},
        ],
        "tools": [{"type": "function", "function": function}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    response = {
        "model": "latchkey-echo",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "function_call", "call_id": "t", "name": "n", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t", "output": "c"},
        ],
        "tools": [{"type": "function", **function}],
        "reasoning": {"effort": "low"},
    }
    keyed = {"Content-Type": JSON, "Idempotency-Key": "a-key"}
    return [
        message("POST", "/api/v1/ai/messages", reader | keyed, json.dumps(question)),
        message("POST", "/api/v1/ai/messages", reader | {"Content-Type": FORM}, urlencode(fields)),
        message("POST", "/api/v1/ai/v1/messages", reader | keyed, json.dumps(question)),
        message("POST", "/api/v1/ai/v1/messages/count_tokens", reader | {"Content-Type": JSON}, json.dumps(question)),
        message("POST", "/api/v1/ai/v1/chat/completions", reader | keyed, json.dumps(chat)),
        message("POST", "/api/v1/ai/v1/responses", reader | {"Content-Type": JSON}, json.dumps(response)),
        message("GET", "/api/v1/ai/v1/responses/resp_1", reader),
        message("DELETE", "/api/v1/ai/v1/responses/resp_1", reader),
        message("GET", "/api/v1/ai/models", reader),
        message("GET", "/api/v1/ai/v1/models/latchkey-echo", reader),
    ]


def assistants(cast: Cast) -> list[Message]:
    """Messages to the MCP server that only read or lack a scope."""
    who = {"Authorization": f"Bearer {cast.assistant}", "Content-Type": JSON, "Accept": "application/json, */*"}
    facts = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in facts.items()}
    new = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?c2F2ZV9kb2N1?="}
    note = {"collection": "notes", "id": "n1", "content": {"a": [1, "b"]}, "if_match": '"1"', "cursor": "bjE"}
    bodies = [{"name": name, "arguments": note, "_meta": meta} for name in ("save_document", "list_documents")]
    rpc = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": body}) for body in bodies]
    metadata = message("GET", "/.well-known/oauth-protected-resource/mcp")
    return [metadata, message("POST", "/mcp", who | new, rpc[0]), *(message("POST", "/mcp", who, one) for one in rpc)]


def operations() -> list[Message]:
    """Requests of an operator's program about an unknown person."""
    who = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    paid = {"user": "nobody@nowhere.test", "amount": 5_000_000, "reason": "a top-up"}
    as_form = urlencode({**paid, "key": "a-key"})
    made = [
        message("POST", "/ops/credits", who | {"Content-Type": JSON, "Idempotency-Key": "a-key"}, json.dumps(paid)),
        message("POST", "/ops/credits", who | {"Content-Type": FORM}, as_form),
        message("POST", "/ops/credits", {"Content-Type": FORM, "Authorization": "Bearer another"}, as_form),
    ]
    return [replace(one, ops=True) for one in made]


def payment() -> Message:
    """A signed event about a payment of nobody, at another site."""
    named = {"latchkey_user": "0" * 32, "latchkey_site": "https://other.test"}
    facts = {"payment_intent": "pi_1", "amount_refunded": 500, "currency": "usd", "metadata": named}
    event = {"object": "event", "type": "charge.refunded", "created": 1_700_000_000, "livemode": False}
    body = json.dumps({**event, "data": {"object": facts}})
    at = int(time.time())
    digest = hmac.new(STRIPE_SECRET.encode(), f"{at}.{body}".encode(), "sha256").hexdigest()
    fields = {"Content-Type": JSON, "Stripe-Signature": f"t={at},v1={digest}"}
    return message("POST", "/api/payments/stripe", fields, body)


def cookies(**values: str) -> dict[str, str]:
    """The Authorization header."""
    return {"Cookie": "; ".join(f"latchkey_{name}={value}" for name, value in values.items())}


def multipart(file: bytes) -> bytes:
    """The form with a picture."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="_xsrf"\r\n\r\n{XSRF}\r\n'.encode(),
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="picture"; filename="a.png"\r\n'.encode(),
        b"Content-Type: image/png\r\n\r\n" + file + b"\r\n",
        f"--{BOUNDARY}--\r\n".encode(),
    ]
    return b"".join(parts)


def pages(cast: Cast) -> list[Message]:
    """Requests of browsers. Those that would change something are signed out by now."""
    live = cookies(session=cast.session, done="name")
    over = cookies(session=cast.ended, xsrf=XSRF)
    signed_out = cookies(xsrf=XSRF)
    form = {"Content-Type": FORM, "Origin": "http://localhost"}
    ask = urlencode(
        {
            "client_id": "web-app",
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "scope": "profile data:read",
            "state": "a-state",
            "code_challenge": "c" * 43,
            "code_challenge_method": "S256",
            "prompt": "consent login",
        }
    )
    # Nobody gets past the wrong hint, not even a person who is signed in.
    ask_openid = urlencode(
        {
            **{"client_id": "web-app", "redirect_uri": CALLBACK, "response_type": "code", "state": "a-state"},
            **{"scope": "openid profile", "code_challenge": "c" * 43, "code_challenge_method": "S256"},
            **{"nonce": "n-0S6_WzA2Mj", "max_age": "60", "prompt": "select_account consent", "acr_values": "phr 2"},
            **{"login_hint": "ada@example.com", "ui_locales": "fr-CA en", "response_mode": "form_post"},
            "claims": '{"userinfo":{"email":null},"id_token":{"acr":{"essential":true,"values":["2"]}}}',
            "id_token_hint": "a.b.c",
            "progress": cast.sealed(TokenKind.PROGRESS, "sign-in 1 digest"),
            "resource": cast.base_url,
            "authorization_details": DETAILS,
        }
    )
    leave = urlencode(hinted(cast, "/oauth/logout", hint(cast)))
    decision = {
        "request_id": cast.sealed(TokenKind.REQUEST, "web-app"),
        "decision": "allow",
        "boxes": "1",
        "scope:profile": "on",
        **{"spend_dollars": "5.00", "budget_credits": "3.00", "asked_credits": "3000000", "budgets_last": "3600"},
    }
    as_json = {"request_id": decision["request_id"], "decision": "allow", "scopes": ["profile"], "spend_limit": 5}
    credential = json.dumps({"id": "YQ", "rawId": "YQ", "type": "public-key", "response": {"clientDataJSON": "e30"}})
    half, challenge = cast.sealed(TokenKind.SECOND_STEP, "abc 1"), cast.sealed(TokenKind.CHALLENGE, "signin 1")

    def post(path: str, who: dict[str, str], **fields: str) -> Message:
        return message("POST", path, who | form, urlencode({"_xsrf": XSRF, **fields}))

    gets = [
        *("/", "/signin?next=%2Faccount", "/account", "/account/apps", "/account/security", "/developer/apps"),
        *("/account/credits?before=1-1", "/account/apps/all-scopes/data?collection=notes&after=notes%2Fn1"),
        *("/account/apps/all-scopes/data/notes/n1", "/developer/apps/web-app", "/static/latchkey.css?v=1"),
        "/account/delete",
    ]
    picture = message(
        "POST",
        "/account/picture",
        cookies(session=cast.session, xsrf=XSRF) | {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"},
        multipart(b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
    )
    return [
        *(message("GET", target, live) for target in gets),
        # The activity log has downloads.
        message("GET", "/account/apps/all-scopes/export?format=zip", over),
        message("GET", "/account/download?format=jsonl", over),
        *(message("GET", f"/oauth/authorize?{ask}", *by) for by in ((), (over,))),
        message("GET", f"/oauth/authorize?{ask_openid}", over),
        message("GET", f"/oauth/authorize?{urlencode(signed_request(cast))}", over),
        message("POST", "/oauth/authorize", over | form, ask_openid),
        message("GET", f"/oauth/authorize?{urlencode(hinted(cast, '/oauth/authorize', hint(cast)))}", over),
        message("GET", f"/oauth/logout?{leave}", over),
        message("POST", "/oauth/logout", over | form, leave),
        post("/oauth/logout", over, client_id="web-app", id_token_hint="a.b.c", state="a-state"),
        message("GET", f"/picture/{cast.sealed(TokenKind.PICTURE, 'AL')}.svg"),
        message("GET", f"/confirm?link={cast.sealed(TokenKind.CONFIRM, 'ada@example.com')}"),
        message("GET", f"/reset?link={cast.sealed(TokenKind.RESET, 'ada@example.com')}"),
        *(message("GET", f"/signin/{page}?next=%2F", cookies(half=half)) for page in ("second", "setup")),
        post("/signin", signed_out, email="nobody@nowhere.test", password="a wrong one", next="/account"),
        post("/signin/second", cookies(xsrf=XSRF, half=half), code="123456", next="/"),
        post("/signin/setup", cookies(xsrf=XSRF, half=half), code="123456", secret="a", next="/"),
        post("/signin/passkey", cookies(xsrf=XSRF, challenge=challenge), credential=credential, next="/"),
        post("/signup", signed_out, email="nobody@nowhere.test", name="N", password="a long enough one", invite="i"),
        post("/forgot", signed_out, email="nobody@nowhere.test", next="/account"),
        post(
            "/reset", signed_out, link=cast.sealed(TokenKind.RESET, "ada@example.com"), new_password="a long enough one"
        ),
        post("/account", over, name="Somebody Else"),
        post("/account/security", over, current_password="a wrong one", new_password="a long enough one"),
        post("/account/apps/all-scopes/limit", over, dollars="5.00", budget_credits="3"),
        post("/account/apps/all-scopes/data/notes/n1/delete", over),
        post("/account/delete", over, email="ada@example.com", password="a wrong one"),
        post("/account/security/passkeys", over, credential=credential, name="A key"),
        post("/developer/apps/web-app/team", over, email="bob@example.com", role="viewer"),
        post("/developer/apps/web-app/team/role", over, member=cast.ada, role="owner"),
        post("/developer/apps/web-app/team/remove", over, member=cast.bea),
        post("/developer/apps/web-app/team/withdraw", over, invitation="A" * 22),
        post("/developer/invitation", over, link="lk_ti_" + "A" * 90),
        post("/developer/register", over, name="App", redirect_uris="https://a.example/cb", kind="public", nonce="n"),
        post("/api/oauth/authorize", over, **decision),
        post("/device", over, user_code="BCDF-GHJK"),
        message("GET", "/device?user_code=BCDF-GHJK", over),
        message(
            "POST",
            "/api/oauth/authorize",
            over | {"Content-Type": JSON, "X-Xsrftoken": XSRF, "Origin": "http://localhost"},
            json.dumps(as_json),
        ),
        replace(picture, busy=True),
    ]
