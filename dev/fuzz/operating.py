"""Valid requests, for mutation, of operators: the management interface, SCIM, and the console's pages.

They read with the key of an auditor or as an admin in a browser, or act on nobody as an admin: no person has the id in
them, and no dry run the token. So each is read to its end, and changes nothing.
"""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import urlencode

from dev.fuzz.corpus import XSRF, cookies
from dev.fuzz.messages import FORM, JSON, Message, message
from dev.fuzz.tokens import Cast

NOBODY = "0" * 31 + "1"
API, SCIM, CONSOLE = "/api/admin/v1", "/scim/v2", "/admin"
SCIM_JSON = "application/scim+json"


def operating(cast: Cast) -> list[Message]:
    """All of these requests."""
    return [*management(cast), *directories(cast), *console(cast)]


def management(cast: Cast) -> list[Message]:
    """Calls of a program."""
    who = {"Authorization": f"Bearer {cast.operator_key}"}
    person, ada = f"{API}/people/{NOBODY}", f"{API}/people/{cast.ada}"
    gets = (
        *(f"{API}/people?query=a%40example&status=active&limit=10&cursor=a.b", ada, f"{ada}/sessions"),
        *(f"{ada}/identities", f"{API}/credits?person={cast.ada}&limit=3", f"{API}/roles"),
        *(f"{API}/apps?query=web&limit=2", f"{API}/apps/web-app", f"{API}/apps/web-app/log", f"{API}/apis"),
        *(f"{API}/audit?event=signed_in&since=2026-01-01T00%3A00%3A00Z&limit=9", f"{API}/keys", f"{API}/settings"),
        *(f"{API}/webhooks/deliveries?limit=3&state=failed", f"{API}/people/bulk/{'t' * 22}", f"{API}/health"),
    )
    suspension = {"reason": "Unpaid", "note": "Ticket 4711", "until": "2027-01-31T00:00:00Z"}
    writes: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("POST", f"{person}/suspend", {**suspension}),
        ("POST", f"{person}/resume", {}),
        ("POST", f"{person}/sign-out", {}),
        ("POST", f"{person}/send-link", {"kind": "reset"}),
        ("PATCH", person, {"name": "Ada", "email": "x@nowhere.test", "groups": ["a", "b"], "wayBack": False}),
        ("PUT", f"{person}/role", {"role": "support"}),
        ("POST", f"{person}/credits", {"amount": 5, "reason": "a top-up"}),
        ("POST", f"{API}/people/bulk", {"act": "suspend", "token": "t" * 22}),
        ("PATCH", f"{API}/apps/nobodys-app", {"name": "App", "scopes": ["profile"]}),
    )
    made = [
        # A mutant may have another method.
        *(message("GET", target, {"Authorization": f"Bearer {cast.auditor_key}"}) for target in gets),
        message("DELETE", f"{person}?wait_days=7&reason=Asked", who),
        message("DELETE", f"{person}/sessions/{'s' * 22}", who),
        *(message(method, to, who | {"Content-Type": JSON}, json.dumps(body)) for method, to, body in writes),
        message("POST", f"{person}/suspend", who | {"Content-Type": FORM}, urlencode(suspension)),
        message("POST", f"{person}/suspend", {"Content-Type": JSON}, json.dumps(suspension)),
    ]
    return [replace(one, ops=True) for one in made]


def directories(cast: Cast) -> list[Message]:
    """Calls of a directory."""
    who = {"Authorization": f"Bearer {cast.operator_key}"}
    sent = who | {"Content-Type": SCIM_JSON}
    person = f"{SCIM}/Users/{NOBODY}"
    user = {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "userName": "x@nowhere.test",
        "externalId": "4711",
        "name": {"formatted": "Ada Lovelace", "givenName": "Ada", "familyName": "Lovelace"},
        "emails": [{"value": "x@nowhere.test", "primary": True, "type": "work"}],
        "active": True,
    }
    patch = {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [
            {"op": "replace", "path": "active", "value": False},
            {"op": "Replace", "value": {"name.formatted": "Ada", 'emails[type eq "work"].value': "x@nowhere.test"}},
        ],
    }
    finds = {"attributes": "userName,emails.value", "excludedAttributes": "name"}
    made = [
        # No lists without a filter: these ask all 4,096 shards, which costs more than a request may here.
        message("GET", f"{person}?{urlencode(finds)}", who),
        *(message("GET", f"{SCIM}/{name}", who) for name in ("Schemas", "ServiceProviderConfig")),
        message("PUT", person, sent, json.dumps(user)),
        message("PATCH", person, sent, json.dumps(patch)),
        message("DELETE", person, who),
    ]
    return [replace(one, ops=True) for one in made]


def console(cast: Cast) -> list[Message]:
    """Pages for an admin, for a person without a role, and for somebody who is signed out by now; forms about nobody.
    The pages come without the token of forms, so no mutant of them is a form."""
    reads, acts = cookies(session=cast.admin), cookies(session=cast.admin, xsrf=XSRF)
    without_role, over = cookies(session=cast.session), cookies(session=cast.ended, xsrf=XSRF)
    form = {"Content-Type": FORM, "Origin": "http://localhost"}
    person, nobody = f"{CONSOLE}/people/{cast.ada}", f"{CONSOLE}/people/{NOBODY}"
    gets = (
        *(CONSOLE, f"{CONSOLE}/people?query=a%40example&status=active&after=a.b", person, f"{CONSOLE}/search?q=ada"),
        *(f"{CONSOLE}/people/bulk?act=suspend&person_{cast.ada}=yes", f"{CONSOLE}/apps/web-app", f"{CONSOLE}/apis"),
        *(f"{CONSOLE}/audit?event=signed_in&since=2026-01-01", f"{CONSOLE}/settings?query=smtp&show=all&after=host"),
    )
    suspension = {"_xsrf": XSRF, "reason": "Unpaid", "note": "", "until": "2027-01-31"}
    many = {"_xsrf": XSRF, "act": "delete", "at_once": "yes", "number": "1", f"person_{cast.ada}": "yes"}
    forms: dict[str, dict[str, str]] = {
        "suspend": suspension,
        "resume": {},
        "sign-out": {},
        "role": {"role": "support"},
        "credits": {"amount": "5.00", "reason": "a top-up", "key": "k" * 22},
        "email": {"email": "x@nowhere.test"},
        "send-link": {"kind": "reset"},
        "delete": {"address": "x@nowhere.test"},
    }
    return [
        *(message("GET", target, reads) for target in gets),
        message("GET", CONSOLE, without_role),
        *(
            message("POST", f"{nobody}/{name}", acts | form, urlencode({"_xsrf": XSRF, **fields}))
            for name, fields in forms.items()
        ),
        message("POST", f"{person}/suspend", over | form, urlencode(suspension)),
        message("POST", f"{CONSOLE}/people/bulk", over | form, urlencode(many)),
    ]
