"""Which libraries are tested, and what of it each does itself: the table of docs/clients.md."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
LOCK = ROOT / "requirements-dev.lock"

CAPABILITIES = {
    "discovery": "discovery",
    "pkce": "PKCE",
    "iss": "checks `iss`",
    "exchange": "exchange",
    "userinfo": "userinfo",
    "refresh": "refresh",
    "automatic": "refreshes by itself",
    "revocation": "revocation",
    "errors": "reads errors",
}
"""The columns. Each is a test of every library, which fails where it does not work: by the library, or by the lines of
the example that do it in the library's place."""

BASIC, POST, NONE = "client_secret_basic", "client_secret_post", "none"


@dataclass(frozen=True)
class Library:
    """One of them. `file` is its example; `package` what is installed; `by_hand` the columns that the example does and
    the library does not; `methods` how it can authenticate an app; `needs` what has to be set."""

    name: str
    title: str
    package: str
    file: str
    methods: tuple[str, ...]
    by_hand: str
    needs: str

    @property
    def path(self) -> Path:
        return HERE / self.file

    @property
    def version(self) -> str:
        """The one that the tests run with: of package.json or the lock file; of what is installed, until that has been
        made anew."""
        if self.path.suffix == ".mjs":
            wanted = json.loads((HERE / "node" / "package.json").read_text("utf-8"))["dependencies"]
            return str(wanted[self.package])
        locked = re.search(rf"^{re.escape(self.package.lower())}==(\S+)", LOCK.read_text("utf-8"), re.MULTILINE)
        return locked[1] if locked else metadata.version(self.package)


ALL = (BASIC, POST, NONE)
LIBRARIES = (
    Library(
        "authlib/requests",
        "Authlib, `OAuth2Session`",
        "authlib",
        "authlib_requests.py",
        ALL,
        by_hand="discovery iss",
        needs="`code_challenge_method`, `token_endpoint`, `update_token`; no `scope` on the session",
    ),
    Library(
        "authlib/httpx",
        "Authlib, `AsyncOAuth2Client`",
        "authlib",
        "authlib_httpx.py",
        ALL,
        by_hand="discovery iss",
        needs="the same",
    ),
    Library(
        "requests-oauthlib",
        "requests-oauthlib",
        "requests-oauthlib",
        "requests_oauthlib_session.py",
        ALL,
        by_hand="discovery iss revocation",
        needs="`auto_refresh_url`, `token_updater`; no `scope` on the session that refreshes",
    ),
    Library(
        "httpx-oauth",
        "httpx-oauth",
        "httpx-oauth",
        "httpx_oauth_client.py",
        ALL,
        by_hand="pkce iss automatic",
        needs="the address of the document, `base_scopes`",
    ),
    Library(
        "openid-client",
        "openid-client",
        "openid-client",
        "node/openid-client.mjs",
        ALL,
        by_hand="automatic",
        needs='`algorithm: "oauth2"`, a `state`',
    ),
    Library(
        "simple-oauth2",
        "simple-oauth2",
        "simple-oauth2",
        "node/simple-oauth2.mjs",
        ALL,
        by_hand="discovery pkce iss userinfo automatic",
        needs="all paths",
    ),
    Library(
        "passport-oauth2",
        "passport-oauth2",
        "passport-oauth2",
        "node/passport-oauth2.mjs",
        (POST, NONE),
        by_hand="discovery iss refresh automatic revocation",
        needs="`pkce`, `state`, `useAuthorizationHeaderforGET`",
    ),
    Library(
        "@auth/core",
        "Auth.js",
        "@auth/core",
        "node/auth-core.mjs",
        ALL,
        by_hand="discovery refresh automatic revocation",
        needs='`type: "oauth"`, `issuer`, `checks: ["pkce", "state"]`',
    ),
)


def cell(library: Library, capability: str) -> str:
    """What stands in the table."""
    return "by hand" if capability in library.by_hand.split() else "yes"


def table() -> str:
    """The table, as Markdown."""
    columns = list(CAPABILITIES)
    head = ["library", "tested", *CAPABILITIES.values(), "authentication", "what it needs set"]
    rows = [head, ["---"] * len(head)]
    for library in LIBRARIES:
        anchor = re.sub(r"[^\w\- ]", "", library.title.lower()).replace(" ", "-")
        methods = ", ".join(method.removeprefix("client_secret_") for method in library.methods)
        cells = [cell(library, column) for column in columns]
        rows.append([f"[{library.title}](#{anchor})", library.version, *cells, methods, library.needs])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
