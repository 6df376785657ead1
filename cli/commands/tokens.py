"""`token`: tokens that the operator issues."""

from __future__ import annotations

from argparse import Namespace

from cli.commands.apps import find_app
from cli.commands.context import Context
from cli.terminal.outcome import CommandResult
from store.apps.registration import Registration
from store.names import normalise_email, parse_scope
from store.refused import Refused


async def mint_token(context: Context, args: Namespace) -> CommandResult:
    """Grants and issues tokens, like a consent and an exchange. A live grant keeps its other scopes. SPEC 2.2. Raises
    Refused, ValueError."""
    person = await context.store.operator.find(normalise_email(args.user))
    app = await find_app(context.store, args.client_id)
    scopes = parse_scope(" ".join(args.scopes.split()))
    if not app.active:
        raise Refused("access_denied", "This app is disabled.")
    if person.status != "active":
        raise Refused("access_denied", "This person is disabled.")
    if missing := [scope for scope in scopes if scope not in app.scopes]:
        raise Refused("invalid_scope", f"The app did not register {' '.join(missing)}.")
    if app.hosted_storage and not Registration.data_scopes(scopes):
        raise Refused("invalid_scope", "An app with hosted storage asks for data:read or data:write.")
    tokens = await context.store.tokens.mint(person.user, app, scopes)
    return CommandResult(
        {
            "access_token": tokens.access_token,
            "token_type": "Bearer",
            "expires_in": tokens.expires_in,
            "refresh_token": tokens.refresh_token,
            "scope": tokens.scope,
        }
    )
