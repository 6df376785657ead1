"""Sealed tokens that were tampered with: every bit, every length, every other spelling of the same bytes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import quote, urlencode

from dev.fuzz.target import Target
from dev.fuzz.tokens import CALLBACK, VERIFIER, VISITOR, Cast, bearer
from dev.fuzz.wire import Response, Wrong, answers_in
from store import keys
from store.accounts.signin.second_step import SIGN_IN
from store.crypto.seal import NOBODY, TokenKind, new_id
from store.oauth.authorizations import AuthorizationRequest, Pending
from store.oauth.device_requests import GRANT_TYPE, device_key
from store.oauth.pushed import URN
from store.oauth.tokens import s256
from store.refused import Refused, UnknownUser
from store.results import Window
from tests.support.http.http_servers import request

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
BEHIND = 6
"""Characters of the prefix."""
NOW = 1_700_000_000
"""When the request to an identity provider begins and is opened."""


def flipped(text: str) -> Iterator[str]:
    """Variants with one bit of the seal flipped, including the key id."""
    sealed = base64.urlsafe_b64decode(text[BEHIND:] + "==")
    for bit in range(len(sealed) * 8):
        changed = bytearray(sealed)
        changed[bit // 8] ^= 1 << bit % 8
        yield text[:BEHIND] + base64.urlsafe_b64encode(changed).rstrip(b"=").decode()


def rewritten(text: str) -> Iterator[str]:
    """Variants cut at every character, longer, with spare bits set, in other alphabets, padding, prefixes or cases."""
    yield from (text[:end] for end in range(1, len(text)))
    yield from (text + more for more in ("A", "AA", "AAAA", "=", "==", ".", "~"))
    last = ALPHABET.index(text[-1])
    spare = {2: 16, 3: 4}.get(len(text[BEHIND:]) % 4, 1)  # characters that encode the same bytes
    first = last - last % spare
    yield from (text[:-1] + ALPHABET[one] for one in range(first, first + spare) if one != last)
    standard = text[:BEHIND] + text[BEHIND:].replace("-", "+").replace("_", "/")
    if standard != text:
        yield standard
    yield base64.b32encode(text.encode()).decode().rstrip("=")
    yield base64.urlsafe_b64decode(text[BEHIND:] + "==").hex()
    yield from (
        text.swapcase(),
        text.upper(),
        text[1:],
        text[BEHIND:],
        text[::-1],
        text * 2,
        text.replace("lk_", "LK_"),
    )
    yield from (kind.prefix + text[BEHIND:] for kind in TokenKind if not text.startswith(kind.prefix))


def tampered(text: str) -> list[str]:
    """All variants, each once."""
    return [one for one in dict.fromkeys((*flipped(text), *rewritten(text))) if one != text]


async def team_invitation(cast: Cast) -> str:
    """A live invitation to the team of an app of Ada's."""
    app, _ = await cast.store.apps.fresh("web-app")
    assert app is not None
    await cast.store.apps.create(replace(app, client_id="team-app", owner=cast.ada, secrets=(), secret_notes=()))
    return await cast.store.teams._invitations.make("team-app", "dora@example.com", "viewer", cast.ada)


async def device_code(cast: Cast) -> str:
    """The device code of a request that Ada allowed."""
    store, session = cast.store, cast.session_of()
    app = await store.apps.active("web-app")
    text = (await store.device_requests.begin("web-app", "[]", VISITOR)).device_code
    opened = store.sealer.open(TokenKind.DEVICE_CODE, text)
    assert app and opened
    asked = AuthorizationRequest("web-app", GRANT_TYPE, ("profile",), "", "", app.terms, "", device=opened.id)
    pending = await store.authorizations.begin(session, asked, always_ask=True)
    assert isinstance(pending, Pending)
    decide = partial(store.authorizations.decide, session, app, pending.request_id, allow=True, scopes=None)
    decided = await store.device_requests.decided(opened.id, cast.ada, partial(decide, visitor=VISITOR))
    for key in (keys.code(cast.ada, decided.code_id), device_key(opened.id)):
        await store.client.persist(key)  # the run may take longer than they live
    return text


async def one_of_each(cast: Cast) -> dict[TokenKind, str]:
    """A live token of each kind."""
    store = cast.store
    ada, email = cast.ada, "ada@example.com"
    tokens = await cast.mint("web-app", ("profile", "data:read"))
    profile = await store.sessions.profile(cast.session_of())
    code = await cast.code()
    opened = store.sealer.open(TokenKind.CODE, code)
    assert opened
    await store.client.persist(keys.code(ada, opened.id))  # a code lives a minute; the run may take longer
    links = {
        TokenKind.CONFIRM: await store.links.to_confirm(await cast.unconfirmed(), "cleo@example.com"),
        TokenKind.RESET: await store.links.to_reset(ada, email),
        TokenKind.CHANGE: await cast.change_link(cast.session_of(), email, "ada@example.org"),
        TokenKind.UNDO: await cast.undo_link(),
    }
    proven = {"code_challenge": s256(VERIFIER), "code_challenge_method": "S256", "state": "a-state"}
    asked = {"client_id": "web-app", "redirect_uri": CALLBACK, "response_type": "code", "scope": "profile", **proven}
    pushed = urlencode(asked)
    return {
        TokenKind.CODE: code,
        TokenKind.ACCESS: tokens.access_token,
        TokenKind.REFRESH: tokens.refresh_token,
        TokenKind.SESSION: cast.session,
        TokenKind.REQUEST: await cast.pending(),
        TokenKind.INVITE: await store.people.invite("dora@example.com"),
        TokenKind.SECOND_STEP: await cast.half_signed_in(),
        TokenKind.CHALLENGE: await store.second_step.challenge(None),
        TokenKind.PICTURE: store.profiles.address(profile).partition(".")[0],
        TokenKind.DEVICE: await store.devices.renew(None, ada),
        TokenKind.DPOP_NONCE: store.proofs.nonce(),
        TokenKind.PROGRESS: store.progress.mark("sign-in", "a-digest", ada),
        TokenKind.PUSHED: (await store.pushed.push("web-app", pushed, Window(600, 599, 0))).removeprefix(URN),
        TokenKind.DEVICE_CODE: await device_code(cast),
        TokenKind.BROWSER: store.pushed.cookie_of(new_id()),
        TokenKind.TEAM: await team_invitation(cast),
        TokenKind.LISTED: store.listed_accounts.with_account((), ada, email),
        TokenKind.CURSOR: store.cursors.seal("apps", "web-app"),
        TokenKind.UPSTREAM: store.upstream_flows.begin("google", NOW, "/account", user=ada, session_id=new_id()).text,
        **{kind: link.text for kind, link in links.items() if link is not None},
    }


def openers(cast: Cast) -> dict[TokenKind, Callable[[str], Awaitable[bool]]]:
    """For each kind of token, whether the store accepts a text without asking Redis."""
    store = cast.store
    session = cast.session_of()

    async def refused(call: Awaitable[object]) -> bool:
        try:
            return await call is not None
        except (Refused, UnknownUser):
            return False

    async def known(value: object) -> bool:
        return value is not None

    async def challenge(text: str) -> bool:
        try:
            return bool(store.second_step._challenges.open(NOBODY, SIGN_IN, text))
        except Refused:
            return False

    async def pushed(text: str) -> bool:
        try:
            return bool(store.pushed.id_of("web-app", URN + text))
        except Refused:
            return False

    async def cursor(text: str) -> bool:
        try:
            return bool(store.cursors.open("apps", text))
        except Refused:
            return False

    async def kept(text: str) -> bool:
        return store.pushed.browser_of(text) is not None

    return {
        TokenKind.ACCESS: lambda text: known(store.tokens.open_access(text)),
        TokenKind.REFRESH: lambda text: refused(store.tokens.refresh(cast.app, text, ())),
        TokenKind.CODE: lambda text: refused(store.tokens.exchange(cast.app, text, CALLBACK, VERIFIER)),
        TokenKind.SESSION: lambda text: known(store.sessions.open(text)),
        TokenKind.REQUEST: lambda text: known(store.authorizations.awaited(session, text)),
        TokenKind.INVITE: lambda text: refused(store.people.invited(text)),
        TokenKind.SECOND_STEP: lambda text: known(store.second_step.open(text)),
        TokenKind.CHALLENGE: challenge,
        TokenKind.CONFIRM: lambda text: refused(store.links.look(TokenKind.CONFIRM, text)),
        TokenKind.RESET: lambda text: refused(store.links.look(TokenKind.RESET, text)),
        TokenKind.CHANGE: lambda text: refused(store.links.look(TokenKind.CHANGE, text)),
        TokenKind.UNDO: lambda text: refused(store.undoing.look(text)),
        TokenKind.PICTURE: lambda text: refused(store.profiles.picture(f"{text}.svg")),
        TokenKind.DEVICE: lambda text: known(store.devices.open(text)),
        TokenKind.DPOP_NONCE: lambda text: known(store.proofs.is_recent(text) or None),
        TokenKind.PROGRESS: lambda text: known(store.progress.open(text, "a-digest")),
        TokenKind.PUSHED: pushed,
        TokenKind.DEVICE_CODE: lambda text: refused(store.device_requests.poll("web-app", text)),
        TokenKind.BROWSER: kept,
        TokenKind.TEAM: lambda text: refused(store.teams.look(text)),
        TokenKind.LISTED: lambda text: known(store.listed_accounts.open(text) or None),
        TokenKind.CURSOR: cursor,
        TokenKind.UPSTREAM: lambda text: known(store.upstream_flows.open(text, NOW)),
    }


@dataclass(frozen=True, slots=True)
class Presented:
    """How a token is presented over HTTP. `status` is the answer to a tampered one. `windows` are the store calls that
    remain: they count a request of an unknown person, by its address or by the string."""

    sent: Callable[[str], bytes]
    status: int
    windows: int = 0


def presented(cast: Cast) -> dict[str, tuple[TokenKind, Presented]]:
    """Every way to present a token."""
    cookie = f"Cookie: latchkey_session={cast.session}"
    client = {"client_id": "web-app", "client_secret": cast.secret}

    def form(path: str, **fields: str) -> bytes:
        return request("POST", path, "Content-Type: application/x-www-form-urlencoded", body=urlencode(fields).encode())

    def get(path: str, *fields: str) -> bytes:
        return request("GET", path, *fields)

    def decide(text: str) -> bytes:
        xsrf = "2|01234567|0123456789abcdef0123456789abcdef|1700000000"
        who = f"Cookie: latchkey_session={cast.session}; latchkey_xsrf={xsrf}"
        body = json.dumps({"request_id": text, "decision": "allow"}).encode()
        return request(
            "POST", "/api/oauth/authorize", who, f"X-Xsrftoken: {xsrf}", "Content-Type: application/json", body=body
        )

    exchange = {"grant_type": "authorization_code", "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    return {
        "as bearer": (
            TokenKind.ACCESS,
            Presented(lambda text: get("/api/oauth/userinfo", f"Authorization: {bearer(text)['Authorization']}"), 401),
        ),
        "for a document": (
            TokenKind.ACCESS,
            Presented(lambda text: get("/api/v1/data/notes/n1", f"Authorization: Bearer {text}"), 401),
        ),
        "for a refresh": (
            TokenKind.REFRESH,
            Presented(
                lambda text: form("/api/oauth/token", grant_type="refresh_token", refresh_token=text, **client), 400, 1
            ),
        ),
        "for an exchange": (
            TokenKind.CODE,
            Presented(lambda text: form("/api/oauth/token", code=text, **exchange, **client), 400, 1),
        ),
        "for a poll": (
            TokenKind.DEVICE_CODE,
            Presented(lambda text: form("/api/oauth/token", grant_type=GRANT_TYPE, device_code=text, **client), 400, 1),
        ),
        "access token to revoke": (
            TokenKind.ACCESS,
            Presented(lambda text: form("/api/oauth/revoke", token=text), 200, 1),
        ),
        "refresh token to revoke": (
            TokenKind.REFRESH,
            Presented(lambda text: form("/api/oauth/revoke", token=text), 200, 1),
        ),
        "session": (
            TokenKind.SESSION,
            Presented(lambda text: get("/account", f"Cookie: latchkey_session={text}"), 303),
        ),
        "decision": (TokenKind.REQUEST, Presented(decide, 400)),
        "pushed request": (
            TokenKind.PUSHED,
            Presented(
                lambda text: get(f"/oauth/authorize?{urlencode({'client_id': 'web-app', 'request_uri': URN + text})}"),
                400,
            ),
        ),
        "invitation": (TokenKind.INVITE, Presented(lambda text: get(f"/signup?invite={quote(text)}"), 400)),
        "second step": (
            TokenKind.SECOND_STEP,
            Presented(lambda text: get("/signin/second", f"Cookie: latchkey_half={text}"), 303),
        ),
        "confirmation": (TokenKind.CONFIRM, Presented(lambda text: get(f"/confirm?link={quote(text)}"), 400)),
        "reset": (TokenKind.RESET, Presented(lambda text: get(f"/reset?link={quote(text)}"), 400)),
        "change": (TokenKind.CHANGE, Presented(lambda text: get(f"/account/email/change?link={quote(text)}"), 400)),
        "team": (
            TokenKind.TEAM,
            Presented(lambda text: get(f"/developer/invitation?link={quote(text)}", cookie), 400),
        ),
        "undo": (TokenKind.UNDO, Presented(lambda text: get(f"/account/email/undo?link={quote(text)}"), 400)),
        "picture": (TokenKind.PICTURE, Presented(lambda text: get(f"/picture/{quote(text, safe='')}.svg"), 404)),
    }


AT_ONCE = 40
"""Tokens presented between two looks at the store's counters. So few take less time than the server's own work in the
background pauses, on a busy machine too."""


async def statuses(port: int, requests: list[bytes], at_once: int = 20) -> list[int]:
    """The statuses of requests sent one after another on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found: list[int] = []
    try:
        for begin in range(0, len(requests), at_once):
            batch = requests[begin : begin + at_once]
            writer.write(b"".join(batch))
            received = b""
            answers: list[Response] = []
            while len(answers) < len(batch):
                data = await asyncio.wait_for(reader.read(2**16), 10)
                if not data:
                    raise Wrong(f"closed after {received[-500:]!r}")
                received += data
                answers = [answer for answer in answers_in(received) if answer.whole]
            found += [answer.status for answer in answers]
    finally:
        writer.close()
    return found


def try_way(target: Target, way: Presented, text: str) -> None:
    """Presents tampered tokens. Raises Wrong if one is accepted, or if the store is asked for more than windows."""
    target.run(statuses(target.port, [way.sent("garbage")]))  # absorbs first-time work
    variants = tampered(text)
    for begin in range(0, len(variants), AT_ONCE):
        _try_some(target, way, variants[begin : begin + AT_ONCE])


def _try_some(target: Target, way: Presented, variants: list[str]) -> None:
    for last in (*[False] * 7, True):
        before = target.commands().get("evalsha", 0), sum(target.commands().values())
        found = target.run(statuses(target.port, [way.sent(one) for one in variants]))
        calls = target.commands().get("evalsha", 0) - before[0]
        commands = sum(target.commands().values()) - before[1]
        taken = [one for one, status in zip(variants, found, strict=True) if status != way.status]
        if taken:
            raise Wrong(f"answered otherwise than {way.status}: {taken[:3]}")
        if calls == way.windows * len(variants) and (way.windows or not commands):
            break
        if last:  # earlier, it may have been the server's own work in the background
            raise Wrong(f"{len(variants)} tokens, {calls} calls of scripts, {commands} commands in all")
