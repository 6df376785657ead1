"""Requests under 64 KiB, and documents of the maximum size, that are made to cost a server time. Each sender is signed
in, or has a live token, and gets as far as possible: these requests may change the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import parse_qsl, quote_from_bytes, urlencode

from dev.fuzz.corpus import BOUNDARY, XSRF, api, cookies, corpus
from dev.fuzz.hostile_values import DOCUMENTS, LARGE, MOST, TEXTS, cbor, fields, uploads
from dev.fuzz.issued import hostile_access, hostile_hints
from dev.fuzz.messages import FORM, JSON, Message, message
from dev.fuzz.signed import hostile_proofs, hostile_tokens
from dev.fuzz.target import Target
from dev.fuzz.tokens import CALLBACK, PASSWORD, VISITOR, Cast
from handlers.account.authorize_address import MAX_ADDRESS
from store.accounts.signin.factors import REGISTER
from store.accounts.signin.passkeys import RelyingParty, encode, options_for_new, read_answer, relying_party_of
from store.accounts.signin.second_step import SIGN_IN
from store.apps.api_record import ApiRegistration, ApiScope
from store.crypto.seal import NOBODY, Token, TokenKind, new_id
from store.refused import SignedOut
from tests.support.store.authenticator import Authenticator

NONCE = "n" * 20
ORDERS = "https://orders.example/of-ada"
IN_PATHS = (
    *("/", "/static/", "/static/vendor/", "/api/v1/data/", "/api/v1/data/notes/", "/picture/", "/api/v1/ai/v1/models/"),
    *("/account/apps/", "/account/apps/all-scopes/data/", "/developer/apps/", "/docs", "/favicon.ico"),
)
TAILS = {
    "segments": "a/" * (MOST // 2),
    "empty segments": "/" * MOST,
    "dots": "../" * (MOST // 3),
    "escapes": "%41" * (MOST // 3),
    "escaped slashes": "%2f" * (MOST // 3),
    "broken escapes": "%4" * (MOST // 2),
    "one name": "a" * MOST,
    "addresses": "a@b/" * (MOST // 4),
    "questions": "?" * MOST,
}


@dataclass
class Stage:
    """The senders: Ada, who owns the app `app` and the API `api`, and Bea, who has the passkey `key`."""

    target: Target
    cast: Cast
    app: str
    api: str
    key: Authenticator

    @classmethod
    async def make(cls, target: Target, cast: Cast) -> Self:
        """The senders on a target, with its cast."""
        relying_party = relying_party_of(target.base_url)
        assert relying_party
        facts = {"name": "Notes", "redirect_uris": (CALLBACK,), "scopes": ("profile",)}
        made = await cast.store.owned.register(cast.session_of(), NONCE, VISITOR, most=20, **facts)
        scopes = (ApiScope("orders:read", "See your orders"),)
        api, _ = await cast.store.apis.create(ApiRegistration(ORDERS, "Orders", scopes, owner=cast.ada))
        key = Authenticator(target.base_url, relying_party.rp_id)
        await cls._add(cast, relying_party, key)
        return cls(target, cast, made.registration.client_id, api.client_id, key)

    @staticmethod
    async def _add(cast: Cast, relying_party: RelyingParty, key: Authenticator) -> None:
        session = cast.store.sessions.open(await cast.sign_in("bea@example.com"))
        assert session
        challenge = await cast.store.factors.challenge(session)
        answer = read_answer(
            key.create(options_for_new(relying_party, "Latchkey", cast.bea, "bea", "Bea", challenge, []))
        )
        await cast.store.factors.add_passkey(session, relying_party, challenge, answer, "A key", VISITOR)

    def all(self) -> Iterator[Message]:
        """All requests."""
        yield from self.forms()
        yield from self.tokens()
        yield from self.issued()
        yield from self.proofs()
        yield from self.documents()
        yield from self.large()
        yield from self.passkeys()
        yield from self.pictures()
        yield from self.paths()
        yield from self.queries()
        yield from self.heads()
        yield from self.framed()

    def who(self, **more: str) -> dict[str, str]:
        """Ada's cookies; of a new session if one of these requests has ended the last."""
        cast = self.cast

        async def renew() -> None:
            try:
                await cast.store.sessions.profile(cast.session_of())
            except SignedOut:
                cast.session = await cast.sign_in("ada@example.com")

        self.target.run(renew())
        return cookies(session=cast.session, xsrf=XSRF, **more)

    def forms(self) -> Iterator[Message]:
        """Every field of every form with every text, and forms with many fields."""
        half, shape = self.cast.sealed(TokenKind.SECOND_STEP, "abc 1"), {"Content-Type": FORM}
        for target, known in self._forms().items():
            for field in known:
                headers = self.who(half=half) | shape
                for what, text in TEXTS.items():
                    raw = text.encode().replace(b"&", b"%26").replace(b"+", b"%2B")
                    rest = [
                        f"{name}={quote_from_bytes(value.encode())}" for name, value in known.items() if name != field
                    ]
                    body = "&".join([f"_xsrf={XSRF}", *rest, f"{field}="]).encode() + raw
                    yield _named(f"POST {target}, {field}: {what}", message("POST", target, headers, body))
        for what, body in {
            "many fields": b"&".join(b"%d=" % number for number in range(9_000)),
            "one field many times": b"a=b&" * (MOST // 4),
            "fields without names": b"&" * MOST,
            "escapes": b"name=" + b"%41" * (MOST // 3),
            "broken escapes": b"name=" + b"%4" * (MOST // 2),
            "percent signs": b"name=" + b"%" * MOST,
            "fields of percent signs": b"%&" * (MOST // 2),
            "names and values of percent signs": b"%=%&" * (MOST // 4),
            "names and values of pluses": b"+=+&" * (MOST // 4),
        }.items():
            for target in ("/account", "/signin", "/api/oauth/token", "/api/v1/ai/messages", "/account/picture"):
                made = message("POST", target, self.who() | shape, b"_xsrf=" + XSRF.encode() + b"&" + body)
                yield _named(f"POST {target}: {what}", made)

    def _forms(self) -> dict[str, dict[str, str]]:
        """Valid forms, by address: those of the corpus, and those that need preparation."""
        app, of_api = f"/developer/apps/{self.app}", f"/developer/apis/{self.api}"
        found = {
            "/signup": {"email": "nobody@nowhere.test", "name": "N", "password": PASSWORD, "next": "/"},
            "/developer/register": {
                **{"name": "App", "redirect_uris": CALLBACK, "homepage": "", "kind": "public", "nonce": NONCE},
                **{"scope:profile": "on", "refresh_retry_seconds": "0"},
            },
            app: {"name": "App", "redirect_uris": CALLBACK, "homepage": "", "scope:profile": "on"},
            f"{app}/delete": {"confirm": "a"},
            of_api: {
                **{"name": "Orders", "token_format": "jwt", "signing_alg": "ES256", "token_lifetime": "600"},
                **{"scope_0_name": "orders:read", "scope_0_title": "T", "scope_0_detail": "D"},
            },
            f"{of_api}/delete": {"confirm": "a"},
            f"{of_api}/status": {"status": "a"},
            f"{of_api}/end-secret": {"mark": "a"},
            f"{app}/webhooks": {"url": "a", "chosen": "a", "event_user.deleted": "a"},
            f"{app}/status": {"status": "a"},
            "/account/email/change": {"email": "a", "password": PASSWORD},
            "/account/security/confirm": {"password": PASSWORD, "code": "a"},
            "/account/security/authenticator": {"secret": "a", "code": "a"},
            "/signin/setup": {"secret": "a", "code": "a"},
            "/signin/setup/passkey": {"credential": "a"},
            "/account/security/passkeys/rename": {"credential": "a", "name": "a"},
            "/account/security/sessions/end": {"session": "a"},
            "/account/security/passkeys/remove": {"credential": "a"},
            "/account/security/accounts/remove": {"identity": "a"},
            "/signin/with/idp/callback": {"code": "a", "state": "a", "iss": "a", "error": "a", "user": "a"},
            "/signin/with/company/password": {"login": "a", "password": PASSWORD},
            "/account/email": {"email": "a@example.com", "current_password": PASSWORD},
            "/account/language": {"language": "en", "zone": "Europe/Berlin"},
            "/account/credits/mails": {"wanted": "yes"},
            "/account/credits/checkout": {"dollars": "20"},
            "/account/email/confirm": {"next": "/"},
            "/account/email/undo": {"link": "a"},
            "/confirm": {"link": "a"},
            "/signin/choose/remove": {"account": "a", "next": "/", "create": "1"},
            f"{app}/verify": {"domain": "a.example"},
            f"{app}/end-secret": {"mark": "a"},
            f"{app}/webhooks/rotate": {"mark": "a", "ends": "a"},
        }
        for one in corpus(self.cast):
            known = {name: value for name, value in parse_qsl(one.body.decode("latin-1")) if name != "_xsrf"}
            if one.value(b"Content-Type") == FORM.encode() and not one.ops:
                found.setdefault(one.target.decode(), known)
        return found

    def tokens(self) -> Iterator[Message]:
        """Signed tokens of an app with a key."""
        for what, target, params in hostile_tokens(self.cast):
            yield _named(f"POST {target}: {what}", message("POST", target, {"Content-Type": FORM}, urlencode(params)))
            if target == "/oauth/authorize":
                address = f"{target}?{urlencode(params)}"
                if len(address) < MAX_ADDRESS:
                    yield _named(f"GET {target}: {what}", message("GET", address))

    def issued(self) -> Iterator[Message]:
        """Signed tokens of the server: ID tokens as hints, and JWT access tokens."""
        form = {"Content-Type": FORM}
        for what, target, params in hostile_hints(self.cast):
            yield _named(f"POST {target}, a hint: {what}", message("POST", target, self.who() | form, params))
            if len(f"{target}?{params}") < MAX_ADDRESS:
                yield _named(f"GET {target}, a hint: {what}", message("GET", f"{target}?{params}", self.who()))
        for what, target, params, bearer in hostile_access(self.cast):
            sent = message("POST", target, form, params) if params else message("GET", target, bearer)
            yield _named(f"{target}, an access token: {what}", sent)

    def proofs(self) -> Iterator[Message]:
        """DPoP proofs."""
        refresh = (
            b"grant_type=refresh_token&client_id=web-app&refresh_token=a&client_secret=" + self.cast.secret.encode()
        )
        for what, method, target, headers in hostile_proofs(self.cast):
            form = {"Content-Type": FORM} if method == "POST" else {}
            sent = message(method, target, {**headers, **form}, refresh if form else b"")
            yield _named(f"{method} {target}, a proof: {what}", sent)

    def documents(self) -> Iterator[Message]:
        """JSON in every endpoint that reads it."""
        live = {"Authorization": f"Bearer {self.cast.everything}", "Content-Type": JSON}
        page = self.who() | {"Content-Type": JSON, "X-Xsrftoken": XSRF}
        called = {"model": "latchkey-echo", "max_tokens": 1, "messages": [{"role": "user", "content": "a"}]}
        calls = "/api/v1/ai/messages"
        for what, body in DOCUMENTS.items():
            yield _named(f"a document: {what}", message("PUT", "/api/v1/data/notes/hostile", live, body))
            for target, headers in (("/api/oauth/token", live), ("/api/oauth/authorize", page)):
                yield _named(f"POST {target}: {what}", message("POST", target, headers, body))
            for field in ("messages", "system", "tools", "metadata"):
                mark = json.dumps({**called, field: "the mark"}).encode()
                yield _named(
                    f"an AI call, {field}: {what}", message("POST", calls, live, mark.replace(b'"the mark"', body))
                )
        block, user = {"type": "text", "text": "a"}, {"role": "user"}
        preconditions: dict[str, dict[str, Any]] = {
            "many turns": {"messages": [{**user, "content": [block]}] * 900},
            "many blocks": {"messages": [{**user, "content": [block] * 1_700}]},
            "many tools": {"tools": [{"name": f"n{number}", "input_schema": {}} for number in range(1_300)]},
            "many words": {"messages": [{**user, "content": "a " * (MOST // 2)}]},
            "many signs": {"messages": [{**user, "content": "\u0344" * 9_000}]},
        }
        for what, more in preconditions.items():
            for target in (calls, "/api/v1/ai/v1/messages/count_tokens", "/api/v1/ai/v1/chat/completions"):
                yield _named(f"POST {target}: {what}", message("POST", target, live, json.dumps(called | more)))

    def large(self) -> Iterator[Message]:
        """Documents of the maximum size."""
        live = {"Authorization": f"Bearer {self.cast.everything}", "Content-Type": JSON}
        for what, body in LARGE.items():
            yield _named(f"a large document: {what}", message("PUT", "/api/v1/data/notes/hostile", live, body))
            page = message("GET", "/account/apps/all-scopes/data/notes/hostile", self.who(), b"")
            yield _named(f"the page of a large document: {what}", page)

    def passkeys(self) -> Iterator[Message]:
        """CBOR at registration and at sign-in."""
        for what, raw in cbor().items():
            data = bytes(32) + b"\xc5" + bytes(4) + bytes(16) + b"\0\1a" + raw
            whole = b"\xa3cfmtdnonegattStmt\xa0hauthData\x59" + len(data).to_bytes(2) + data
            for field, value in {"the attestation": raw, "the key": whole}.items():
                yield _named(f"a new passkey, {field}: {what}", self._new(value))
            signed = bytes(32) + b"\x85" + bytes(4) + raw
            yield _named(f"a passkey, the extensions: {what}", self._use(signed))

    def _new(self, attestation: bytes) -> Message:
        challenge = self._challenge(self.cast.ada, REGISTER)
        answer = self._answer("webauthn.create", challenge, "YQ", {"attestationObject": encode(attestation)})
        return self._send("/account/security/passkeys", challenge, answer)

    def _use(self, data: bytes) -> Message:
        challenge = self._challenge(NOBODY, SIGN_IN)
        said = {"authenticatorData": encode(data), "signature": "AA", "userHandle": self.key.user}
        answer = self._answer("webauthn.get", challenge, self.key.credential, said)
        return self._send("/signin/passkey", challenge, answer)

    def _challenge(self, user: str, purpose: str) -> str:
        return self.cast.store.sealer.seal(Token(TokenKind.CHALLENGE, user, f"{purpose} 1", new_id(), 0))

    def _answer(self, kind: str, challenge: str, credential: str, said: dict[str, str]) -> str:
        client = {"type": kind, "challenge": encode(challenge.encode()), "origin": self.target.base_url}
        response = {"clientDataJSON": encode(json.dumps(client).encode()), **said}
        return json.dumps({"id": credential, "rawId": credential, "type": "public-key", "response": response})

    def _send(self, target: str, challenge: str, answer: str) -> Message:
        body = f"_xsrf={XSRF}&name=a&credential=" + answer.replace("+", "%2B")
        return message("POST", target, self.who(challenge=challenge) | {"Content-Type": FORM}, body)

    def pictures(self) -> Iterator[Message]:
        """Pictures, and the form that carries one."""
        kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", "X-Xsrftoken": XSRF}
        for what, body in uploads().items():
            for target in ("/account/picture", "/account"):
                yield _named(f"POST {target}: {what}", message("POST", target, self.who() | kind, body))
            target = f"/developer/apps/{self.app}/logo"
            body = body.replace(b'name="picture"', b'name="logo"')
            yield _named(f"POST {target}: {what}", message("POST", target, self.who() | kind, body))

    def paths(self) -> Iterator[Message]:
        """Long paths."""
        bearer = {"Authorization": f"Bearer {self.cast.everything}"}
        for start in IN_PATHS:
            live = bearer | self.who()
            for what, tail in TAILS.items():
                yield _named(f"GET {start}…: {what}", message("GET", start + tail, live))

    def queries(self) -> Iterator[Message]:
        """Every parameter of every query with every text, and queries with many parameters."""
        live = {"Authorization": f"Bearer {self.cast.everything}"} | self.who()
        by_path = {one.target.partition(b"?")[0].decode(): one for one in (*corpus(self.cast), *api(self.cast))}
        for path, one in by_path.items():
            known = dict(parse_qsl(one.target.partition(b"?")[2].decode()))
            if not known:
                continue
            for name in known:
                rest = "&".join(f"{other}={value}" for other, value in known.items() if other != name)
                for what, text in TEXTS.items():
                    value = "%" + text.encode()[: MOST // 3].hex("%")
                    yield _named(f"GET {path}, {name}: {what}", message("GET", f"{path}?{rest}&{name}={value}", live))
            for what, query in {
                "many fields": "a=b&" * (MOST // 4),
                "many names": "&".join(map(str, range(9_000))),
            }.items():
                yield _named(f"GET {path}: {what}", message("GET", f"{path}?{query}", live))

    def framed(self) -> Iterator[Message]:
        """Bodies in chunks of one byte: as long as other requests here, and of the maximum length."""
        head = message("POST", "/api/oauth/token", {"Content-Type": JSON, "Transfer-Encoding": "chunked"})
        fields = tuple(one for one in head.fields if one[0] != b"Content-Length")
        for target in (b"/api/oauth/token", b"/api/v1/ai/messages", b"/signin", b"/account/picture"):
            sent = replace(head, target=target, fields=fields, body=b"1\r\na\r\n" * (MOST // 6) + b"0\r\n\r\n")
            yield _named(f"POST {target.decode()}: chunks of a byte", sent)
            yield _named(f"POST {target.decode()}: two megabytes of them", replace(sent, body=sent.body[:-5] * 35))

    def heads(self) -> Iterator[Message]:
        """Request fields."""
        trace = {"Traceparent": f"00-{'1' * 32}-{'1' * 16}-01"}
        basis = self.who() | {"Authorization": f"Bearer {self.cast.reader}"} | trace
        form = {"Content-Type": FORM}
        wheres: tuple[tuple[str, str, dict[str, str], bytes], ...] = (
            ("GET", "/account", {}, b""),
            ("GET", "/static/latchkey.css", {}, b""),
            ("GET", "/api/oauth/userinfo", {}, b""),
            ("PUT", "/api/v1/data/notes/hostile", {"Content-Type": JSON}, b"{}"),
            ("POST", "/api/v1/ai/messages", {"Content-Type": JSON}, b"{}"),
            ("POST", "/signin", form, f"_xsrf={XSRF}&email=a&password=a".encode()),
            ("POST", "/api/oauth/token", form, b"grant_type=refresh_token&refresh_token=a"),
            ("POST", "/account/picture", {}, b"a"),
        )
        known = fields()
        for method, target, own, body in wheres:
            made = message(method, target, {**basis, **own}, body)
            for name, values in known.items():
                for what, value in values.items():
                    sent = made.with_field(name.encode(), value.encode())
                    yield _named(f"{method} {target}, {name}: {what}", sent)
            room = range(199 - len(made.fields))
            for what, names in {
                "many fields": [b"a%d" % number for number in room],
                "one field many times": [b"a"] * len(room),
                "many cookies": [b"Cookie"] * len(room),
                "long names": [b"a%d" % number + b"-a" * 130 for number in room],
                "a long name": [b"a-" * (MOST // 2) + b"a"],
            }.items():
                more = tuple((name, b"a=b") for name in names)
                yield _named(f"{method} {target}: {what}", replace(made, fields=(*made.fields, *more)))


def _named(name: str, made: Message) -> Message:
    return replace(made, name=name, busy=True)
