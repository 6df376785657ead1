"""Tools about the person: who they are, and the credits that they can spend."""

from __future__ import annotations

from handlers.core.format import iso
from handlers.mcp.tool import NUMBER, TEXT, Tool, ToolAnswer, ToolCall
from store.credits.credits import CURRENCY, SCALE
from store.oauth.id_tokens import claims_of


async def who_am_i(call: ToolCall) -> ToolAnswer:
    """The claims of the userinfo endpoint."""
    store, caller = call.request.store, call.caller
    profile, scopes, window = await store.identity.read(caller, call.needed)
    sub = await store.subjects.of(caller.client, caller.sector, caller.user)
    call.request.write_window(window)
    picture = f"{call.request.site.base_url}/picture/{store.profiles.address(profile)}"
    return ToolAnswer({"sub": sub, **claims_of(profile, caller.sees(scopes), picture)})


async def get_balance(call: ToolCall) -> ToolAnswer:
    """The person's credits, and the app's limit."""
    balance, window = await call.request.store.credits.balance(call.caller, call.needed)
    call.request.write_window(window)
    limit = balance.app_limit
    amounts = {"spendable": balance.spendable, "held": balance.held, "currency": CURRENCY, "scale": SCALE}
    app_limit = limit and {"limit": limit.limit, "used": limit.used, "resetsAt": iso(limit.resets_at)}
    return ToolAnswer({**amounts, "appLimit": app_limit})


TOOLS = (
    Tool(
        "who_am_i",
        "See who you act for",
        "Says who the person is for whom you act: their ID here and, if they allowed it, name, e-mail address and "
        "picture.",
        "profile",
        who_am_i,
        {"sub": TEXT},
        others=("openid",),
        reads=True,
    ),
    Tool(
        "get_balance",
        "See the credit balance",
        "Says how much the person can still spend on calls of AI models, and how much of it this app may spend this "
        "month. Amounts are whole numbers: divide by 10 to the power of `scale` to get an amount in the currency.",
        "credits:read",
        get_balance,
        {
            "spendable": NUMBER,
            "held": NUMBER,
            "currency": TEXT,
            "scale": NUMBER,
            "appLimit": {"type": ["object", "null"], "properties": {"limit": NUMBER, "used": NUMBER, "resetsAt": TEXT}},
        },
        reads=True,
    ),
)
