"""Checks of authorization requests. SPEC 4.1, OpenID Connect Core 3.1.2."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from handlers.core.params import Params, decode_json, once
from handlers.core.scopes import CLAIM_SCOPES
from handlers.oauth.details import Offered, check_details, nothing_offered
from store.apps.apis import Apis
from store.apps.redirect_uris import is_own_origin
from store.apps.registration import Registration
from store.crypto.dpop import DpopProof, is_thumbprint
from store.names import SCOPES, parse_scope
from store.oauth.authorizations import AuthorizationRequest
from store.oauth.budgets import SPEND
from store.oauth.resources import MCP, RequestedAccess, apart, default_scope, ordered_at, targets_of, wanted_at
from store.oauth.second_steps import demands_step
from store.oauth.sign_in import LEVELS, known_levels
from store.phrases import Phrase
from store.refused import Refused

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
PROMPTS = ("none", "login", "consent", "select_account", "create")
_PROMPTS = frozenset(PROMPTS)
_NO_WORDS: frozenset[str] = frozenset()
RESPONSE_MODES = ("query", "form_post")
MAX_STATE = 2000
MAX_NONCE = 512
MAX_CLAIMS = 4096
MAX_SCOPE = 8192
"""In bytes, at the token endpoint: more than all scopes that an app can register."""
_USERINFO = re.compile("//[^/?#]*@")
_MAX_AGE = re.compile(r"[0-9]{1,9}")
SIGN_IN = "The person has to sign in."
IGNORED = "offline_access"
"""A scope that every client may name: every code exchange gives a refresh token anyway."""


class Interaction(NamedTuple):
    """What the app wants the person to go through. `max_age`: the greatest age of the sign-in in seconds, or None;
    `subjects`: the values of `sub` of which the person must have one, None if the app names none; `hint`: an
    `id_token_hint`, unchecked."""

    prompts: frozenset[str]
    max_age: int | None = None
    subjects: frozenset[str] | None = None
    hint: str = ""

    @property
    def quiet(self) -> bool:
        """Whether no page may be shown."""
        return "none" in self.prompts

    @property
    def anew(self) -> bool:
        """Whether the person must sign in for this very request."""
        return "login" in self.prompts or self.max_age == 0

    @property
    def guesses(self) -> bool:
        """Whether the app names a person without an ID token. Anybody can do that, so the answer must not tell who is
        signed in."""
        return self.subjects is not None and not self.hint

    def quietly(self, refusal: Refused) -> Refused:
        """The answer to `prompt=none` for a person who is signed in, but may not have been named by chance."""
        return Refused("login_required", SIGN_IN) if self.guesses else refusal

    @property
    def oldest(self) -> int | None:
        """How old a sign-in may be that was not for this request, in ms; None if age does not matter."""
        return self.max_age * 1000 if self.max_age and not self.anew else None


def check_redirect_uri(app: Registration, pairs: list[tuple[str, str]], base_url: str) -> str:
    """SPEC 4.1: a registered redirect URI, but never one of this server."""
    redirect_uri = once([pair for pair in pairs if pair[0] == "redirect_uri"]).get("redirect_uri")
    if redirect_uri is None or not app.may_return_to(redirect_uri):
        description = Phrase("%(app)s did not register the address that it wants to send you back to.", app=app.name)
        raise Refused("invalid_request", description, value=_USERINFO.sub("//", redirect_uri or "", 1))
    # The base URL may have changed since the registration.
    if is_own_origin(redirect_uri, base_url):
        raise Refused(
            "invalid_request",
            Phrase("%(app)s wants to send you back to this server, not to an address of its own.", app=app.name),
        )
    return redirect_uri


def check_mode(pairs: Iterable[tuple[str, str]]) -> None:
    """Core 3.1.2.6: an unknown response mode gets a page, because nobody knows how to answer the app. Raises
    Refused("invalid_request")."""
    if any(name == "response_mode" and value not in ("", *RESPONSE_MODES) for name, value in pairs):
        raise Refused("invalid_request", f"response_mode is one of {', '.join(RESPONSE_MODES)}.")


def check_request(
    app: Registration,
    redirect_uri: str,
    params: Params,
    base_url: str,
    require_pkce: bool = False,
    offered: Offered = nothing_offered,
    at_mcp: Sequence[str] = (),
) -> tuple[AuthorizationRequest, Interaction]:
    """Checks the rest of the request, except that its API is there. Raises Refused, which goes back to the app.
    `require_pkce`: see `check_pkce`; `offered` finds the models of budgets; `at_mcp`: see `check_scope`."""
    refuse_objects(params)
    # RFC 6749 3.1.1
    response_type = params.require("response_type")
    if response_type != "code":
        raise Refused("unsupported_response_type", "The only response type is code.")
    state = check_state(app, params)
    claims, nonce = read_claims(params), bounded(params, "nonce", MAX_NONCE)
    details = check_details(params, offered)
    wanted = check_scope(app, params, base_url, claims, spends=bool(details), at_mcp=at_mcp)
    challenge = check_pkce(app, params, require_pkce)
    request = AuthorizationRequest(
        app.client_id,
        redirect_uri,
        wanted.scopes,
        state,
        challenge,
        app.terms,
        app.place(redirect_uri),
        nonce=nonce if "openid" in wanted.scopes else "",
        acr=wanted_levels(params, claims),
        mode="form_post" if params.get("response_mode") == "form_post" else "",
        api=wanted.api,
        jkt=check_key(params),
        details=details,
        allowed=app.members_of,
    )
    return request, check_interaction(params, claims)


async def check_api(apis: Apis, app: Registration, request: AuthorizationRequest) -> AuthorizationRequest:
    """The app's request, with the scopes of its API in the API's order, and whether it demands a second step. Raises
    Refused("invalid_target" or "invalid_scope"), StoreUnavailable."""
    if not request.api or (request.api == MCP and apis.mcp):
        return request._replace(second_step=demands_step(app, request.scopes, apis.stepped))
    api = await apis.active(request.api)
    if api is None:
        raise Refused("invalid_target", "The resource is not there any more.")
    if not app.rules.allows(api.jwt_alg):
        raise Refused("invalid_target", "The app's profile excludes how tokens for this resource are signed.")
    demands = demands_step(app, request.scopes, apis.stepped, api)
    return request._replace(scopes=ordered_at(api, request.scopes), second_step=demands)


def check_state(app: Registration, params: Params) -> str:
    """SPEC 5.3: required. OpenID Connect only recommends it (Core 3.1.2.1), and some of its programs leave it to PKCE,
    which protects the answer as well (RFC 9700 2.1): then it may be missing, and is empty here. So it may for apps that
    registered themselves, which always use PKCE."""
    signs_in = bool(app.origin) or "openid" in (params.get("scope") or "").split(" ")
    if not signs_in or not params.get("code_challenge"):
        params.require("state")
    return bounded(params, "state", MAX_STATE)


def refuse_objects(params: Params) -> None:
    """Core 3.1.2.6, 6.1: parameters that are not supported have errors of their own."""
    if params.get("request") is not None:
        raise Refused("request_not_supported")
    if params.get("request_uri") is not None:
        raise Refused("request_uri_not_supported")
    if params.get("registration") is not None:
        raise Refused("registration_not_supported")


def bounded(params: Params, name: str, most: int) -> str:
    """A parameter as text, empty if it is missing. Raises Refused("invalid_request") beyond `most` bytes."""
    value = params.get(name)
    if value is None:
        return ""
    if len(value.encode()) > most:
        raise Refused("invalid_request", f"{name} is longer than {most} bytes.")
    return value


def check_key(params: Params, proof: DpopProof | None = None) -> str:
    """RFC 9449 10: the thumbprint of the key that the code is bound to, from `dpop_jkt` or the proof of a pushed
    request (10.1); empty without either. Raises Refused("invalid_request", or "invalid_dpop_proof" if the two
    differ)."""
    named = params.get("dpop_jkt")
    if named is not None and not is_thumbprint(named):
        raise Refused("invalid_request", "dpop_jkt is the SHA-256 thumbprint of a key, in base64url.")
    if proof is not None and named not in (None, proof.jkt):
        raise Refused("invalid_dpop_proof", "dpop_jkt names another key than that of the DPoP proof.")
    return proof.jkt if proof else named or ""


def read_claims(params: Params) -> Mapping[str, Any]:
    """Core 5.5: the parameter `claims`; without members if it is missing. Raises Refused("invalid_request")."""
    text = bounded(params, "claims", MAX_CLAIMS)
    if not text:
        return {}
    claims = decode_json(text.encode())
    if not isinstance(claims, dict) or not all(
        isinstance(claims.get(place, {}), dict) for place in ("userinfo", "id_token")
    ):
        raise Refused("invalid_request", "claims is an object with the members userinfo and id_token.")
    return claims


def check_scope(
    app: Registration,
    params: Params,
    base_url: str,
    claims: Mapping[str, Any] | None = None,
    *,
    spends: bool = False,
    at_mcp: Sequence[str] = (),
) -> RequestedAccess:
    """SPEC 7: every scope registered by the app; RFC 8707 2.1: at most one API; SPEC 2.4: a data scope for an app with
    hosted storage, unless it wants to call an API. Each requested claim adds the scope that gives it, if the app
    registered that: claims are voluntary (Core 5.5.1). An app that registered itself may leave `scope` out: at the MCP
    server that means `at_mcp`. An app that asks for a budget (`spends`) asks for the scope that it bounds (RFC 9396
    3.1)."""
    targets, named = targets_of(params.several("resource"), base_url), params.get("scope") or ""
    if spends and SPEND not in named.split(" "):
        named = f"{named} {SPEND}".lstrip()
    own, others = requested_scopes(app, named or default_scope(app, targets, at_mcp) or params.require("scope"))
    if claims and "openid" in own:
        claimed = {name for place in ("userinfo", "id_token") for name in claims.get(place, {})}
        if also := {CLAIM_SCOPES[name] for name in claimed & CLAIM_SCOPES.keys()} & set(app.grantable):
            own = tuple(scope for scope in SCOPES if scope in also or scope in own)
    wanted = wanted_at(app, own, others, targets)
    if app.hosted_storage and not wanted.api and not Registration.data_scopes(own):
        raise Refused("invalid_scope", "An app with hosted storage asks for data:read or data:write.")
    return wanted


def requested_scopes(app: Registration, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The scopes of a parameter `scope`: Latchkey's own, which the app registered, and other names. Raises
    Refused("invalid_scope")."""
    return _requested_of(app.scopes, app.grantable, text)


@lru_cache(maxsize=256)
def _requested_of(
    registered: tuple[str, ...], grantable: tuple[str, ...], text: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    own, others = apart([word for word in text.split(" ") if word != IGNORED])
    own = without_ungiven(registered, grantable, parse_scope(" ".join(own)) if own else ())
    if missing := [scope for scope in own if scope not in grantable]:
        description = Phrase("The app did not register these scopes: %(scopes)s.", scopes=", ".join(missing))
        raise Refused("invalid_scope", description, value=text)
    if not own and not others:
        raise Refused("invalid_scope", "A scope is unknown, or the app did not register it.", value=text)
    return own, others


def without_ungiven(
    registered: tuple[str, ...], grantable: tuple[str, ...], scopes: tuple[str, ...]
) -> tuple[str, ...]:
    """The scopes without `email` if the app signs people in and registered nothing that gives an address. Programs
    request it by default, and the app of a careful owner still works."""
    if "email" not in grantable and "openid" in registered:
        return tuple(scope for scope in scopes if scope != "email")
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


def check_interaction(params: Params, claims: Mapping[str, Any]) -> Interaction:
    """Core 3.1.2.1: what the app wants the person to go through."""
    prompts = words_of(params.get("prompt"))
    if not prompts <= _PROMPTS or ("none" in prompts and len(prompts) > 1):
        raise Refused("invalid_request", f"prompt is one of {', '.join(PROMPTS)}, or several without none.")
    age = params.get("max_age")
    if age is not None and not _MAX_AGE.fullmatch(age):
        raise Refused("invalid_request", "max_age is a number of seconds.")
    return Interaction(prompts, int(age) if age else None, wanted_subjects(claims), params.get("id_token_hint") or "")


def wanted_subjects(claims: Mapping[str, Any]) -> frozenset[str] | None:
    """The values of `sub` of which the person must have one (Core 3.1.2.2, 5.5.1); None if the app names none."""
    if not claims:
        return None
    named = [_values(claims, place, "sub") for place in ("id_token", "userinfo")]
    wanted = [frozenset(values) for values in named if values is not None]
    return frozenset.intersection(*wanted) if wanted else None


def wanted_levels(params: Params, claims: Mapping[str, Any]) -> tuple[str, ...]:
    """The levels of which the sign-in must satisfy one, best first: those known here of `acr_values` and of an
    essential claim `acr` (Core 5.5.1.1). Raises Refused("unmet_authentication_requirements") if an essential one names
    only unknown levels."""
    voluntary = known_levels(bounded(params, "acr_values", 255))
    if not claims:
        return voluntary
    values = _values(claims, "id_token", "acr") or []
    if _member(claims, "id_token", "acr").get("essential") is not True:
        return voluntary
    known = tuple(dict.fromkeys(value for value in values if value in LEVELS))
    if values and not known:
        raise Refused("unmet_authentication_requirements", "No sign-in here has the requested level.")
    return known or voluntary


def words_of(text: str | None) -> frozenset[str]:
    """The words of a list with single spaces between them (Core 14)."""
    return frozenset(filter(None, text.split(" "))) if text else _NO_WORDS


def _member(claims: Mapping[str, Any], place: str, name: str) -> Mapping[str, Any]:
    """What was requested of a claim at a place; null asks for nothing special."""
    if not isinstance(value := claims.get(place, {}).get(name), dict | None):
        raise Refused("invalid_request", f"The claim {name} is requested by an object or null.")
    return value or {}


def _values(claims: Mapping[str, Any], place: str, name: str) -> list[str] | None:
    """The requested values of a claim; None if any will do."""
    member = _member(claims, place, name)
    values = member.get("values", [member["value"]] if "value" in member else None)
    if values is not None and not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
        raise Refused("invalid_request", f"The values of the claim {name} are texts.")
    return values


def first_of(pairs: Iterable[tuple[str, str]], name: str) -> str | None:
    """A parameter's value for an error response. A repeated or overlong parameter is not echoed."""
    values = [value for key, value in pairs if key == name]
    return values[0] if len(values) == 1 and len(values[0].encode()) <= MAX_STATE else None
