"""/developer/apps/:client_id/try: an app's owner runs the flow in the browser, with every step shown.

The page takes the app's part: it starts an authorization with PKCE that returns here, exchanges the code, reads
userinfo, and revokes the tokens. Its address is a redirect URI for the owner only: see `AuthorizeHandler.own_try_page`.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlencode

import segno

from handlers.core.auth.client_credentials import ASSERTION_TYPE
from handlers.core.errors import CATALOGUE
from handlers.core.params import Params, once, parse_pairs
from handlers.developer.apps import DeveloperPage
from handlers.oauth.authorize import try_page
from handlers.oauth.device.authorization import DEVICE, check_device_grant, complete_address, device_record
from handlers.oauth.introspect import facts_of
from handlers.oauth.pushed_record import PushedRecord, rules_of, write_record
from store.apps.api_record import ApiRegistration
from store.apps.api_scopes import parse_qualified
from store.apps.registration import Registration
from store.clock import wall
from store.crypto.dpop import DpopProof
from store.crypto.seal import new_id
from store.oauth.device_requests import shown_code
from store.oauth.id_tokens import claims_of
from store.oauth.proofs import for_call
from store.oauth.resources import registered_at
from store.oauth.tokens import s256
from store.phrases import Phrase
from store.refused import Refused, UnknownUser
from store.results import Caller, Profile

LASTS = timedelta(minutes=10)
SHOWN = 14
SECRET = ("code", "state")
_COOKIE = re.compile(r"([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})")


class Step(NamedTuple):
    """A step of the flow: its name, the request and the response."""

    title: str
    words: str
    sent: str
    answer: str


class TryHandler(DeveloperPage):
    """The page of a try."""

    async def get(self, client_id: str) -> None:
        """Shows what a try does, or after a try, its steps."""
        profile, app = await self.own(client_id)
        params = once(parse_pairs(self.request.query))
        steps: list[Step] = []
        wrong: str | None = None
        if params.get("state") is not None:
            started = self.started(client_id)
            self.clear_cookie(self.site.cookie("try"), **self.flags())
            if started is None or not secrets.compare_digest(started[0].encode(), (params.get("state") or "").encode()):
                wrong = Phrase("This test has expired, or you started it in another browser. Start again.")
            elif not app.active:
                wrong = Phrase("The app is switched off.")
            else:
                steps, wrong = await self.walk(app, params, started[1])
        if wrong:
            self.set_status(400)
        self.show(profile, app, steps, wrong)

    def show(
        self,
        profile: Profile,
        app: Registration,
        steps: Sequence[Step] = (),
        wrong: str | None = None,
        device: SimpleNamespace | None = None,
    ) -> None:
        """The page, with the steps of a try or the code of a device."""
        title = Phrase("Try %(name)s", name=app.name)
        shown = {"steps": steps, "wrong": wrong, "device": device}
        self.render("developer/try.html", title=title, signed_in=profile, app=app, **shown)

    async def post(self, client_id: str) -> None:
        """Starts a try: makes state and verifier, keeps them in this browser, and redirects it like an app."""
        self.check_same_origin()
        profile, app = await self.own(client_id)
        if not app.active:
            raise Refused("invalid_request", Phrase("The app is switched off."))
        if self.body().get("device"):
            return self.show(profile, app, device=await self.device_code(app))
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        ends = wall.utc() + LASTS
        value = f"{client_id}.{state}.{verifier}"
        self.set_cookie(self.site.cookie("try"), value, expires=ends, **self.flags())
        parameters = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": try_page(self.site.base_url, client_id),
            **await self.wanted(app),
            "state": state,
            "code_challenge": s256(verifier),
            "code_challenge_method": "S256",
            "prompt": "consent",
        }
        if app.require_pushed:
            window = await self.store.client_windows.take(client_id, app.calls_per_minute)
            address = self.counted_address if app.public else None
            record = write_record(PushedRecord([*parameters.items()], rules_of(app, self.site)))
            request_uri = await self.store.pushed.push(client_id, record, window, address)
            parameters = {"client_id": client_id, "request_uri": request_uri}
        self.see_other(f"/oauth/authorize?{urlencode(parameters)}")

    async def device_code(self, app: Registration) -> SimpleNamespace:
        """A code as a device of the app shows it, also as a QR code. Nobody polls for it, so it gives no tokens."""
        check_device_grant(app)
        window = await self.store.client_windows.take(app.client_id, app.calls_per_minute)
        try:
            record = await device_record(self.site, app, Params(await self.wanted(app)))
            begun = await self.store.device_requests.begin(app.client_id, record, self.visitor)
        except Refused as refusal:
            refusal.window = window
            raise
        code, base = shown_code(begun.user_code), self.site.base_url
        picture = segno.make(complete_address(base, code), error="m", micro=False)
        svg = picture.svg_inline(scale=5, border=3, dark="#000", light="#fff", omitsize=True)
        return SimpleNamespace(code=code, page=f"{base}{DEVICE}", picture=svg)

    async def wanted(self, app: Registration) -> dict[str, str]:
        """The parameters that say what the app asks for: its scopes here, or if it has none, those at one API."""
        if app.scopes:
            return {"scope": " ".join(app.scopes)}
        api = await self.only_api(app)
        if api is None:
            raise Refused("invalid_request", Phrase("The API whose scopes this app has is switched off or deleted."))
        return {"scope": " ".join(registered_at(app, api)), "resource": api.identifier}

    async def only_api(self, app: Registration) -> ApiRegistration | None:
        """The first API of an app without scopes here, if it is there."""
        first = None if app.scopes else parse_qualified(app.api_scopes[0]).api
        return await self.store.apis.active(first) if first else None

    def flags(self) -> dict[str, Any]:
        """The attributes of the cookie that ties a try to this browser."""
        return {"path": "/", "httponly": True, "samesite": "Lax", "secure": self.site.secure}

    def started(self, client_id: str) -> tuple[str, str] | None:
        """State and verifier of the try that this browser began for this app."""
        found = _COOKIE.fullmatch(self.get_cookie(self.site.cookie("try")) or "")
        return (found[2], found[3]) if found and found[1] == client_id else None

    async def walk(self, app: Registration, params: Params, verifier: str) -> tuple[list[Step], str | None]:
        """Does the work of an app's back end. It needs no app secret, which the server does not have: the signed-in
        person owns the app. All tokens that it gets are revoked."""
        names = ("code", "error", "error_description", "state", "iss")
        got = {name: params.get(name) for name in names}
        came = [f"{name}={shortened(text) if name in SECRET else text}" for name, text in got.items() if text]
        code = params.get("code")
        words = Phrase(
            "The browser came back to the redirect URI. Your app compares state with the one it made, and iss with "
            "%(issuer)s.",
            issuer=self.site.base_url,
        )
        steps = [Step(Phrase("The response"), words, "", "\n".join(came))]
        if code is None:
            if got["error"] == "access_denied":
                return steps, Phrase("Access was denied. Your app gets an error instead of a code.")
            reason = got["error_description"] or got["error"] or ""
            return steps, Phrase("There is no code. %(reason)s", reason=reason)
        page = try_page(self.site.base_url, app.client_id)
        form = {
            "grant_type": "authorization_code",
            "code": shortened(code),
            "redirect_uri": page,
            "code_verifier": shortened(verifier),
            "client_id": app.client_id,
        }
        if app.has_secret:
            form |= {"client_secret": "…"}
        elif app.private_key_jwt:
            form |= {"client_assertion_type": ASSERTION_TYPE, "client_assertion": "…"}
        proves = "DPoP: …\n" if app.dpop_required else ""
        sent = f"POST /api/oauth/token\n{proves}" + "\n".join(f"{name}={value}" for name, value in form.items())
        words = Phrase("Your app’s server exchanges the code for tokens, once and within 60 seconds.")
        # Bound to a key that nobody has: these tokens never leave the server.
        jkt = secrets.token_urlsafe(32) if app.dpop_required else ""
        proof = a_proof(jkt)
        try:
            tokens = await self.store.tokens.exchange(app, code, page, verifier, proof, issuer=self.site.base_url)
        except (Refused, UnknownUser) as error:
            refusal = error.refusal if isinstance(error, UnknownUser) else error
            if refusal.code == "rate_limited":
                raise
            text = refusal.description or CATALOGUE[refusal.code].description
            answer = pretty({"error": refusal.code, "error_description": text})
            return [*steps, Step(Phrase("The tokens"), words, sent, answer)], text
        scheme = "DPoP" if proof else "Bearer"
        answer = pretty(
            {
                "access_token": shortened(tokens.access_token),
                "token_type": scheme,
                "expires_in": tokens.expires_in,
                "refresh_token": shortened(tokens.refresh_token),
                "scope": tokens.scope,
            }
        )
        steps.append(Step(Phrase("The tokens"), words, sent, answer))
        try:
            opened = self.store.tokens.open_access(tokens.access_token)
            if opened is not None and "profile" in tokens.scope.split():
                mark = for_call(opened.user, proof) if (proof := a_proof(jkt)) else ""
                caller = Caller.of(opened, app.scopes, sector=app.sector, proof=mark)
                steps.append(await self.read_userinfo(caller, tokens.access_token, scheme))
            elif api := await self.only_api(app):
                steps += await self.call_api(api, tokens.access_token, scheme)
        finally:
            await self.store.tokens.revoke(app, tokens.refresh_token)
        words = Phrase("Your app revokes its tokens when a person signs out of it. We just revoked these.")
        sent = f"POST /api/oauth/revoke\ntoken={shortened(tokens.refresh_token)}"
        return [*steps, Step(Phrase("The end"), words, sent, "200 OK")], None

    async def call_api(self, api: ApiRegistration, access_token: str, scheme: str) -> list[Step]:
        """What the API learns when the app calls it."""
        found = await self.store.introspection.by_api(api, access_token, self.site.base_url)
        if found is None:
            return []
        words = Phrase(
            "Your app calls %(api)s with the access token. The API asks this server what the token allows.",
            api=api.name,
        )
        if api.jwt_alg:
            words = Phrase(
                "Your app calls %(api)s with the access token, a signed JWT. The API reads this from it.", api=api.name
            )
        sent = f"GET {api.identifier}\nAuthorization: {scheme} {shortened(access_token)}"
        return [Step(Phrase("The API"), words, sent, pretty(facts_of(found, self.site.base_url)))]

    async def read_userinfo(self, caller: Caller, access_token: str, scheme: str) -> Step:
        """Reads userinfo as the app would."""
        found, scopes, _ = await self.store.identity.read(caller, "profile")
        picture = f"{self.site.base_url}/picture/{self.store.profiles.address(found)}"
        sent = f"GET /api/oauth/userinfo\nAuthorization: {scheme} {shortened(access_token)}"
        words = Phrase(
            "With the access token, your app asks who the person is. Store your records under sub, which never changes."
        )
        sub = await self.store.subjects.of(caller.client, caller.sector, caller.user)
        answer = {"sub": sub, **claims_of(found, caller.sees(scopes), picture)}
        return Step(Phrase("The person"), words, sent, pretty(answer))


def a_proof(jkt: str) -> DpopProof | None:
    """A proof with this key, as if the app had sent it; None for no key."""
    return DpopProof(jkt, new_id(), None) if jkt else None


def shortened(secret: str) -> str:
    """The beginning of a secret or long text, so that a screenshot gives nothing away."""
    return secret if len(secret) <= SHOWN else f"{secret[:SHOWN]}…"


def pretty(answer: dict[str, Any]) -> str:
    """Indented JSON."""
    return json.dumps(answer, indent=2, ensure_ascii=False)
