"""GET /oauth/authorize: checks in the order in which RFC 6749 4.1.1 lets them fail. SPEC 4.1."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import urlencode

from handlers.core import mails
from handlers.core.amounts import DEFAULT_SPEND_LIMIT
from handlers.core.page import PageHandler
from handlers.core.params import Params, once, parse_pairs
from handlers.core.scopes import SCOPE_WORDS
from store.apps.lookalikes import looks_like_a_brand
from store.apps.redirect_uris import display_origin, is_interceptable, is_own_origin, match_redirect_uri, with_params
from store.apps.registration import Registration
from store.names import SCOPES, parse_scope
from store.oauth.authorizations import AuthorizationRequest, Pending
from store.refused import Refused, SignedOut
from store.results import Profile

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
PROMPTS = {"none", "login", "consent", "select_account"}
MAX_STATE = 2000


class Mark(NamedTuple):
    """Who vouches for an app: the operator, or a domain that the app has proven; empty if nobody does.

    `brand` is a well-known brand that the name resembles. A domain never vouches for such a name, because whoever
    registers `evil.example` can prove that domain. So a mark with a brand has no domain.
    """

    by_operator: bool
    domain: str
    brand: str


class AuthorizeHandler(PageHandler):
    """The address to which an app sends a person's browser."""

    async def get(self) -> None:
        """Redirects with a code or to the sign-in page, or shows the consent page."""
        pairs = parse_pairs(self.request.query)
        # Until app and redirect URI are known to belong together, errors are pages: nothing is redirected.
        app = await self.check_client(pairs)
        redirect_uri = self.own_try_page(app, pairs) or check_redirect_uri(app, pairs, self.site.base_url)
        try:
            params = once(pairs)
            request = check_request(app, redirect_uri, params, self.site.require_pkce)
            prompts = check_prompt(params)
            await self.begin(app, request, prompts, pairs)
        except Refused as refusal:
            if refusal.code == "rate_limited":
                raise
            await self.answer_error(app, redirect_uri, refusal, pairs)

    async def check_client(self, pairs: list[tuple[str, str]]) -> Registration:
        """The app, if it is registered and active."""
        client_id = once([pair for pair in pairs if pair[0] == "client_id"]).get("client_id")
        app = await self.store.apps.active(client_id) if client_id else None
        if app is None:
            raise Refused("invalid_request", "The app that sent you here is not known to this server.")
        return app

    def own_try_page(self, app: Registration, pairs: list[tuple[str, str]]) -> str | None:
        """Our page on which the owner tries the app, if the request returns there. For anybody else it is no redirect
        URI: the code goes to the browser of the one person who may open the page, for that person."""
        page, session = try_page(self.site.base_url, app.client_id), self.session()
        asked = [value for name, value in pairs if name == "redirect_uri"]
        return page if asked == [page] and session is not None and app.owner == session.user else None

    async def begin(
        self, app: Registration, request: AuthorizationRequest, prompts: set[str], pairs: list[tuple[str, str]]
    ) -> None:
        """Continues for a person who is signed in; sends others to sign in and back."""
        session = self.session()
        quiet = "none" in prompts
        if session is None or "login" in prompts:
            return self.sign_in_first(pairs, quiet)
        # RFC 8252 8.6: only the consent page proves which app listens at a loopback port or a custom scheme.
        always_ask = "consent" in prompts or (app.public and is_interceptable(request.redirect_uri))
        try:
            begun = await self.store.authorizations.begin(session, request, always_ask=always_ask)
        except SignedOut:
            return self.sign_in_first(pairs, quiet)
        if not isinstance(begun, Pending):
            return self.send_back(app, request.redirect_uri, {"code": begun.code}, request.state)
        if quiet:
            raise Refused("consent_required", "The person has to consent.")
        if self.site.mail.confirms and not begun.profile.email_verified:
            return await self.confirm_first(app, begun.profile)
        self.show_consent(app, request, begun)

    async def answer_error(
        self, app: Registration, redirect_uri: str, refusal: Refused, pairs: list[tuple[str, str]]
    ) -> None:
        """Sends the error to the app (RFC 6749 4.1.2.1). If anybody may have registered the app, nobody is redirected
        before signing in (RFC 9700 4.11.2), and `prompt=none` gets a page, against Core 3.1.2.6."""
        answer = {"error": refusal.code, "error_description": refusal.description}
        state = _first(pairs, "state")
        if app.from_operator:
            return self.send_back(app, redirect_uri, answer, state)
        if any(name == "prompt" and "none" in value.split() for name, value in pairs):
            return await self.show_target(app, redirect_uri, answer, state)
        if await self.profile() is None:
            return self.sign_in_first(pairs, quiet=False)
        self.send_back(app, redirect_uri, answer, state)

    async def show_target(
        self, app: Registration, redirect_uri: str, answer: dict[str, str], state: str | None
    ) -> None:
        """A page that names the address, and lets the person decide to go there."""
        self.render(
            "leaving.html",
            title=f"Go to {app.name}?",
            signed_in=await self.profile(),
            app=app,
            app_domain=display_origin(redirect_uri),
            mark=mark_of(app, redirect_uri),
            target=answer_url(app, self.site.base_url, redirect_uri, answer, state),
        )

    def sign_in_first(self, pairs: list[tuple[str, str]], quiet: bool) -> None:
        """Redirects to the sign-in page and back here. Removes `login` from `prompt` for the way back, or this would
        never end."""
        if quiet:
            raise Refused("login_required", "The person has to sign in.")
        again = []
        for name, value in pairs:
            if name == "prompt":
                value = " ".join(word for word in value.split() if word != "login")
            if name != "prompt" or value:
                again.append((name, value))
        self.to_sign_in(f"/oauth/authorize?{urlencode(again)}")

    async def confirm_first(self, app: Registration, profile: Profile) -> None:
        """Asks for a confirmed address first: no app sees one that nobody confirmed. The mail's link leads back
        here."""
        target = self.request.uri or "/"
        await mails.confirmation(self.site, profile.user, profile.email, self.counted_address, target, again=False)
        self.render("confirm_first.html", title="Confirm your address", signed_in=profile, app=app, next=target)

    def show_consent(self, app: Registration, request: AuthorizationRequest, pending: Pending) -> None:
        """The consent page."""
        self.uses_scripts = True
        self.allow_form_to(request.redirect_uri)
        self.render(
            "consent.html",
            title=f"Allow {app.name}?",
            signed_in=pending.profile,
            request_id=pending.request_id,
            app=app,
            app_domain=display_origin(request.redirect_uri),
            mark=mark_of(app, request.redirect_uri),
            scopes=[
                SimpleNamespace(name=name, granted_before=name in pending.granted, **SCOPE_WORDS[name]._asdict())
                for name in request.scopes
            ],
            kept=[SCOPE_WORDS[name].title for name in SCOPES if name in pending.granted - {*request.scopes}],
            spend_limit=offered_limit(pending),
            next=self.request.uri,
        )

    def send_back(self, app: Registration, redirect_uri: str, answer: dict[str, str], state: str | None) -> None:
        """Redirects to the app with the answer, its `state`, and `iss` (RFC 9207)."""
        self.see_other(answer_url(app, self.site.base_url, redirect_uri, answer, state))


def try_page(base_url: str, client_id: str) -> str:
    """The address of the page on which an owner tries the app."""
    return f"{base_url}/developer/apps/{client_id}/try"


def answer_url(app: Registration, issuer: str, redirect_uri: str, answer: dict[str, str], state: str | None) -> str:
    """The address that brings an authorization response to the app."""
    answer = {name: value for name, value in answer.items() if value}
    if state is not None:
        answer["state"] = state
    if app.iss_in_response:
        answer["iss"] = issuer
    return with_params(redirect_uri, answer)


def mark_of(app: Registration, redirect_uri: str) -> Mark:
    """The mark of an app that uses this redirect URI."""
    brand = looks_like_a_brand(app.name) or ""
    return Mark(app.verified, "" if brand else app.proven_for(redirect_uri), brand)


def offered_limit(pending: Pending) -> int | None:
    """The page's default for the monthly limit, in micro-dollars: the limit of an earlier consent, if there was one."""
    if pending.spend_limit is None and "credits:spend" not in pending.granted:
        return DEFAULT_SPEND_LIMIT
    return pending.spend_limit


def check_redirect_uri(app: Registration, pairs: list[tuple[str, str]], base_url: str) -> str:
    """SPEC 4.1: a registered redirect URI, but never one of this server."""
    redirect_uri = once([pair for pair in pairs if pair[0] == "redirect_uri"]).get("redirect_uri")
    if redirect_uri is None or not match_redirect_uri(app.redirect_uris, redirect_uri):
        raise Refused("invalid_request", f"{app.name} did not register the address it wants you to go back to.")
    # The base URL may have changed since the registration.
    if is_own_origin(redirect_uri, base_url):
        raise Refused("invalid_request", f"{app.name} wants you to go back to this server, which is no app's address.")
    return redirect_uri


def check_request(
    app: Registration, redirect_uri: str, params: Params, require_pkce: bool = False
) -> AuthorizationRequest:
    """Checks the rest of the request. Raises Refused, which goes back to the app. `require_pkce`: see `check_pkce`."""
    # RFC 6749 3.1.1
    response_type = params.require("response_type")
    if response_type != "code":
        raise Refused("unsupported_response_type", "The only response type is code.")
    state = params.require("state")
    if len(state.encode()) > MAX_STATE:
        raise Refused("invalid_request", f"state is longer than {MAX_STATE} bytes.")
    scopes, challenge = check_scope(app, params), check_pkce(app, params, require_pkce)
    return AuthorizationRequest(
        app.client_id, redirect_uri, scopes, state, challenge, app.terms, app.place(redirect_uri)
    )


def check_scope(app: Registration, params: Params) -> tuple[str, ...]:
    """SPEC 7: every scope registered by the app; SPEC 2.4: a data scope for an app with hosted storage."""
    try:
        scopes = parse_scope(params.require("scope"))
    except ValueError:
        raise Refused("invalid_scope", "A scope is unknown.") from None
    if not set(scopes) <= set(app.scopes):
        raise Refused("invalid_scope", "The app did not register all of these scopes.")
    if app.hosted_storage and not Registration.data_scopes(scopes):
        raise Refused("invalid_scope", "An app with hosted storage asks for data:read or data:write.")
    return scopes


def check_pkce(app: Registration, params: Params, require_pkce: bool) -> str:
    """SPEC 5.2, RFC 7636 4.3: S256, or nothing if both the app and the server (`require_pkce`) allow it."""
    challenge, method = params.get("code_challenge"), params.get("code_challenge_method")
    if challenge is None:
        if method is not None:
            raise Refused("invalid_request", "code_challenge is missing.")
        if require_pkce:
            raise Refused("invalid_request", "Every app of this server must use PKCE: code_challenge is missing.")
        if app.needs_pkce:
            raise Refused("invalid_request", "This app must use PKCE: code_challenge is missing.")
        return ""
    if method != "S256":
        raise Refused("invalid_request", "code_challenge_method must be S256.")
    if not CHALLENGE.fullmatch(challenge):
        raise Refused("invalid_request", "code_challenge must be 43 base64url characters.")
    return challenge


def check_prompt(params: Params) -> set[str]:
    """OpenID Connect Core 3.1.2.1: what the app wants the person to see."""
    prompts = set((params.get("prompt") or "").split())
    if not prompts <= PROMPTS or ("none" in prompts and len(prompts) > 1):
        raise Refused("invalid_request", "prompt is one of none, login, consent, or several but none.")
    return prompts


def _first(pairs: list[tuple[str, str]], name: str) -> str | None:
    """A parameter's value for an error response. A repeated parameter is not echoed."""
    values = [value for key, value in pairs if key == name]
    return values[0] if len(values) == 1 and len(values[0].encode()) <= MAX_STATE else None
