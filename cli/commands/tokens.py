"""`token`: tokens that the operator issues."""

from __future__ import annotations

from argparse import Namespace

from cli.commands.apps import find_app
from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from store.apps.registration import Registration
from store.crypto.dpop import is_thumbprint
from store.names import UnknownScope, normalise_email, parse_scope
from store.oauth.resources import (
    MCP,
    RequestedAccess,
    apart,
    ordered_at,
    plain_names,
    scopes_of_apis,
    targets_of,
    wanted_at,
)
from store.refused import Refused


async def mint_token(context: Context, args: Namespace) -> CommandResult:
    """Grants and issues tokens, like a consent and an exchange. A live grant keeps its other scopes. SPEC 2.2, RFC
    8707, RFC 9449. Raises Refused, ValueError."""
    person = await context.store.operator.find(normalise_email(args.user))
    app = await find_app(context.store, args.client_id)
    base_url, jkt = context.settings.base_url, args.dpop_jkt or ""
    if not app.active:
        raise Refused("access_denied", "This app is disabled.")
    if person.status != "active":
        raise Refused("access_denied", "This person is disabled.")
    if jkt and not is_thumbprint(jkt):
        raise ValueError("--dpop-jkt is the SHA-256 thumbprint of a key, in base64url.")
    wanted = _wanted(app, args.scopes, args.resource, base_url)
    if wanted.api not in ("", MCP):
        api = await context.store.apis.active(wanted.api)
        if api is None:
            raise Refused("invalid_target", "The API is disabled, or not there any more.")
        if api.jwt_alg and not base_url:
            raise ValueError("This API takes JWTs, which name their issuer: set --base-url.")
        wanted = RequestedAccess(ordered_at(api, wanted.scopes), wanted.api)
    await context.store.self_registered.keep(app)
    tokens = await context.store.tokens.mint(person.user, app, wanted.scopes, api=wanted.api, jkt=jkt, issuer=base_url)
    return CommandResult(
        {
            "access_token": tokens.access_token,
            "token_type": "DPoP" if jkt else "Bearer",
            "expires_in": tokens.expires_in,
            "refresh_token": tokens.refresh_token,
            "scope": tokens.scope,
        }
    )


def _wanted(app: Registration, text: str, resource: str | None, base_url: str) -> RequestedAccess:
    """The scopes in the options, as an authorization request has them. Raises Refused, UnknownScope."""
    own, others = apart(text.split())
    # A misspelt name is unknown, whether the app has scopes of APIs or not.
    known = plain_names(scopes_of_apis(app))
    if unknown := [name for name in others if name not in known]:
        raise UnknownScope(unknown[0])
    own = parse_scope(" ".join(own)) if own or not others else ()
    if missing := [scope for scope in own if scope not in app.grantable]:
        raise Refused("invalid_scope", f"The app did not register {' '.join(missing)}.")
    wanted = wanted_at(app, own, others, targets_of([resource] if resource else [], base_url))
    if app.hosted_storage and not wanted.api and not Registration.data_scopes(own):
        raise Refused("invalid_scope", "An app with hosted storage asks for data:read or data:write.")
    return wanted
