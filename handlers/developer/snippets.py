"""Ready-made code with an app's own values: the whole flow in curl, Python and JavaScript."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlencode

from store.apps.registration import Registration
from store.phrases import Phrase

PLACEHOLDER = "YOUR_CLIENT_SECRET"
_END = "END_OF_TRY"
_FIRST_CALL = 4
_DOCUMENT = "/api/v1/data/starter/hello"
# No program answers at a redirect URI that is registered ahead of the app, so the browser shows an error there.
_ASKED = "Paste the address that your browser shows afterwards, even if the page does not load:"
# RFC 9207 2.4: before the code goes anywhere.
_ELSEWHERE = "This answer comes from another server."
_ASKING = """\
Ask a model. The person pays for the call. SDKs work too, with the access token and a base URL:
OpenAI SDK: base_url SERVER/api/v1/ai/v1, api_key ACCESS_TOKEN.
Anthropic SDK: base_url SERVER/api/v1/ai, auth_token ACCESS_TOKEN."""


class Snippet(NamedTuple):
    """A piece of code. `language` is shown to people, `name` is used in addresses."""

    name: str
    language: str
    needs: str
    code: str


class FirstCall(NamedTuple):
    """A request with the access token. `about`: the lines of the comment above it. `body`: JSON without apostrophes."""

    about: str
    method: str
    path: str
    body: str = ""


def snippets_of(app: Registration, base_url: str, secret: str | None, model: str = "") -> list[Snippet]:
    """The flow in three languages. `secret` is known only once; without it, the code has a placeholder. `model` is the
    id of a model to ask; empty if there is none. No snippets for an app that signs or pushes its requests, which takes
    a library, and for one without scopes of this server."""
    if app.private_key_jwt or app.dpop_required or app.require_pushed or not app.scopes:
        return []
    values = {
        "base_url": base_url,
        "client_id": app.client_id,
        "client_secret": "" if app.public else secret or PLACEHOLDER,
        "redirect_uri": app.redirect_uris[0],
        "scope": " ".join(app.scopes),
    }
    calls = _calls(app.scopes, model)
    iss = app.iss_in_response
    return [
        Snippet(
            "curl",
            "curl",
            Phrase("Paste it into a terminal. It needs bash, curl and openssl."),
            _curl(values, calls, iss),
        ),
        Snippet(
            "python",
            "Python",
            Phrase("Save it as try.py, or paste it into Python 3.9 or newer. There’s nothing to install."),
            _python(values, calls, iss),
        ),
        Snippet(
            "javascript",
            "JavaScript",
            Phrase("Save it as try.mjs, and run it with Node 18 or newer."),
            _javascript(values, calls, iss),
        ),
    ]


def _calls(scopes: Collection[str], model: str) -> list[FirstCall]:
    """The first calls of an app with these scopes."""
    calls = []
    if "profile" in scopes:
        calls.append(FirstCall("Who the person is.", "GET", "/api/oauth/userinfo"))
    if "data:write" in scopes:
        calls.append(FirstCall("Store a document for the person.", "PUT", _DOCUMENT, '{"text": "Hello"}'))
    if {"data:read", "data:write"} <= set(scopes):
        calls.append(FirstCall("Read the document back.", "GET", _DOCUMENT))
    if "credits:read" in scopes:
        calls.append(FirstCall("The credits of the person, in micro-dollars.", "GET", "/api/v1/credits/balance"))
    if "credits:spend" in scopes and model:
        question = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
        calls.append(FirstCall(_ASKING, "POST", "/api/v1/ai/v1/chat/completions", json.dumps(question)))
    return calls


def _curl(values: dict[str, str], calls: list[FirstCall], iss: bool) -> str:
    quoted = {name: shlex.quote(value) for name, value in values.items()}
    secret = ' \\\n  --data-urlencode "client_secret=$CLIENT_SECRET"' if values["client_secret"] else ""
    parameters = {name: values[name] for name in ("client_id", "redirect_uri", "scope")}
    page = f"{values['base_url']}/oauth/authorize?{urlencode({'response_type': 'code', **parameters})}"
    checked = ""
    if iss:
        checked = f"""
ISSUER=$(printf %b "$(parameter iss | sed 's/%/\\\\x/g')")
[ "$ISSUER" = "$SERVER" ] || {{ echo "{_ELSEWHERE}"; exit 1; }}"""
    # A terminal hands over a paste line by line. So bash must have read all lines before it asks for the code.
    text = f"bash <(cat <<'{_END}'\nSERVER={quoted['base_url']}\nCLIENT_ID={quoted['client_id']}\n"
    if secret:
        text += f"CLIENT_SECRET={quoted['client_secret']}\n"
    text += f"""\
REDIRECT_URI={quoted["redirect_uri"]}
AUTHORIZE={shlex.quote(page)}

# 1. New for each sign-in: state ties the answer to this browser, the verifier ties the code to this app (PKCE).
random() {{ openssl rand -base64 48 | tr '+/' '-_' | tr -d '=\\n'; }}
STATE=$(random)
VERIFIER=$(random)
CHALLENGE=$(printf %s "$VERIFIER" | openssl dgst -sha256 -binary | openssl base64 -A | tr '+/' '-_' | tr -d '=')

# 2. Where the person's browser is sent.
echo "Open this address, sign in and allow:"
echo "$AUTHORIZE&state=$STATE&code_challenge=$CHALLENGE&code_challenge_method=S256"

# 3. The browser comes back to your redirect URI. Within 60 seconds, the code is exchanged for tokens.
echo {shlex.quote(_ASKED)}
ANSWER=
while [ -z "$ANSWER" ]; do read -r ANSWER || exit; done
parameter() {{ printf %s "$ANSWER" | tr '?&' '\\n\\n' | sed -n "s/^$1=//p" | tail -n 1; }}
[ "$(parameter state)" = "$STATE" ] || {{ echo "This is not the answer to this sign-in."; exit 1; }}{checked}
CODE=$(parameter code)
[ -n "$CODE" ] || {{ echo "The answer has no code: $ANSWER"; exit 1; }}
TOKENS=$(curl -sS "$SERVER/api/oauth/token" -d grant_type=authorization_code -d "code=$CODE" \\
  --data-urlencode "redirect_uri=$REDIRECT_URI" -d "code_verifier=$VERIFIER" -d "client_id=$CLIENT_ID"{secret})
echo "$TOKENS"
ACCESS_TOKEN=$(printf %s "$TOKENS" | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')
[ -n "$ACCESS_TOKEN" ] || exit 1
"""
    for number, call in enumerate(calls, _FIRST_CALL):
        sent = (
            f" \\\n  -X {call.method} -H 'Content-Type: application/json' -d {shlex.quote(call.body)}"
            if call.body
            else ""
        )
        text += f'''
# {number}. {call.about.replace(chr(10), chr(10) + "# ")}
curl -sS "$SERVER{call.path}" -H "Authorization: Bearer $ACCESS_TOKEN"{sent} -w '\\n'
'''
    return f"{text}{_END}\n)\n"


def _python(values: dict[str, str], calls: list[FirstCall], iss: bool) -> str:
    secret = ', "client_secret": CLIENT_SECRET' if values["client_secret"] else ""
    checked = f'\n    assert answer.get("iss") == SERVER, "{_ELSEWHERE}"' if iss else ""
    # Python's prompt ends a block at a blank line, and runs nothing before the block has ended.
    text = f"""\
import base64, hashlib, json, secrets
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

{_constants(values, "", chr(10))}
def ask(path, body=None, method=None, headers={{}}):
    request = Request(SERVER + path, body and body.encode(), headers, method=method)
    try:
        with urlopen(request) as response:
            return json.load(response)
    except HTTPError as error:
        raise SystemExit(f"{{error.code}} {{error.read().decode()}}") from None

def main():
    # 1. New for each sign-in: state ties the answer to this browser, the verifier ties the code to this app (PKCE).
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    # 2. Where the person's browser is sent.
    print("Open this address, sign in and allow:")
    print(SERVER + "/oauth/authorize?" + urlencode({{
        "response_type": "code", "client_id": CLIENT_ID, "redirect_uri": REDIRECT_URI, "scope": SCOPE,
        "state": state, "code_challenge": challenge, "code_challenge_method": "S256",
    }}), flush=True)
    # 3. The browser comes back to your redirect URI. Within 60 seconds, the code is exchanged for tokens.
    came_back = ""
    while not came_back:
        came_back = input({json.dumps(_ASKED + chr(10))}).strip()
    answer = {{name: found[0] for name, found in parse_qs(urlsplit(came_back).query).items()}}
    assert answer.get("state") == state, "This is not the answer to this sign-in."{checked}
    assert "code" in answer, answer
    form = {{
        "grant_type": "authorization_code", "code": answer["code"], "redirect_uri": REDIRECT_URI,
        "code_verifier": verifier, "client_id": CLIENT_ID{secret},
    }}
    tokens = ask("/api/oauth/token", urlencode(form))
    print(tokens)
"""
    if calls:
        text += (
            '    headers = {"Authorization": "Bearer " + tokens["access_token"], "Content-Type": "application/json"}\n'
        )
    for number, call in enumerate(calls, _FIRST_CALL):
        sent = f"{call.body!r}, {json.dumps(call.method)}, " if call.body else ""
        text += f"""\
    # {number}. {call.about.replace(chr(10), chr(10) + "    # ")}
    print(ask({json.dumps(call.path)}, {sent}headers=headers))
"""
    return f"{text}\nmain()\n"


def _javascript(values: dict[str, str], calls: list[FirstCall], iss: bool) -> str:
    secret = ", client_secret: CLIENT_SECRET" if values["client_secret"] else ""
    checked = f'\nif (answer.iss !== SERVER) throw new Error("{_ELSEWHERE}");' if iss else ""
    text = f"""\
import {{ createHash, randomBytes }} from "node:crypto";
import {{ createInterface }} from "node:readline/promises";

{_constants(values, "const ", ";" + chr(10))}
async function ask(path, options) {{
  const response = await fetch(SERVER + path, options);
  if (!response.ok) throw new Error(response.status + " " + await response.text());
  return response.json();
}}

// 1. New for each sign-in: state ties the answer to this browser, the verifier ties the code to this app (PKCE).
const state = randomBytes(32).toString("base64url");
const verifier = randomBytes(48).toString("base64url");
const challenge = createHash("sha256").update(verifier).digest("base64url");

// 2. Where the person's browser is sent.
console.log("Open this address, sign in and allow:");
console.log(SERVER + "/oauth/authorize?" + new URLSearchParams({{
  response_type: "code", client_id: CLIENT_ID, redirect_uri: REDIRECT_URI, scope: SCOPE,
  state, code_challenge: challenge, code_challenge_method: "S256",
}}));

// 3. The browser comes back to your redirect URI. Within 60 seconds, the code is exchanged for tokens.
const terminal = createInterface({{ input: process.stdin, output: process.stdout }});
const cameBack = new URL((await terminal.question({json.dumps(_ASKED + chr(10))})).trim());
terminal.close();
const answer = Object.fromEntries(cameBack.searchParams);
if (answer.state !== state) throw new Error("This is not the answer to this sign-in.");{checked}
if (!answer.code) throw new Error(JSON.stringify(answer));
const tokens = await ask("/api/oauth/token", {{
  method: "POST",
  body: new URLSearchParams({{
    grant_type: "authorization_code", code: answer.code, redirect_uri: REDIRECT_URI,
    code_verifier: verifier, client_id: CLIENT_ID{secret},
  }}),
}});
console.log(tokens);
"""
    if calls:
        text += (
            'const headers = { Authorization: "Bearer " + tokens.access_token, "Content-Type": "application/json" };\n'
        )
    for number, call in enumerate(calls, _FIRST_CALL):
        sent = f"method: {json.dumps(call.method)}, body: {call.body!r}, " if call.body else ""
        text += f"""
// {number}. {call.about.replace(chr(10), chr(10) + "// ")}
console.log(await ask({json.dumps(call.path)}, {{ {sent}headers }}));
"""
    return text


def _constants(values: dict[str, str], before: str, behind: str) -> str:
    """The app's values as constants. A JSON string in ASCII is valid in Python and in JavaScript."""
    names = {"base_url": "SERVER"}
    lines = {names.get(name, name.upper()): json.dumps(value) for name, value in values.items() if value}
    return "".join(f"{before}{name} = {value}{behind}" for name, value in lines.items())
