"""Uses the service over HTTP as people and apps do: a browser with cookies and forms, and an app's back end."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote_plus, urlencode, urljoin, urlsplit

from tornado.httpclient import AsyncHTTPClient, HTTPRequest, HTTPResponse

from handlers.core.auth.challenges import ALGS
from store.apps.registration import Registration
from store.results import Visitor
from store.wiring import Store
from tests.support.http.conformance import interface

EMAIL, PASSWORD, NAME = "ada@example.com", "correct horse battery", "Ada Lovelace"
CALLBACK = "https://app.example/callback"
VERIFIER = "v" * 43
FRESH = quote_plus("/oauth/authorize?prompt=login")
"""A target for which the sign-in page is shown to people who are signed in, too."""
ALL_SCOPES = ("profile", "credits:read", "credits:spend", "apps:read", "data:read", "data:write")


def challenge(verifier: str = VERIFIER) -> str:
    """The S256 challenge of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def bearer_challenge(base_url: str, *more: str) -> str:
    """The `WWW-Authenticate` of a 401 or 403 of the API, with these parameters in the middle."""
    metadata = f'resource_metadata="{base_url}/.well-known/oauth-protected-resource"'
    bearer = "Bearer " + ", ".join(('realm="latchkey"', *more, metadata))
    # RFC 9449 7.2: a 401 names the other scheme too.
    return bearer if 'error="insufficient_scope"' in more else f"{bearer}, DPoP {ALGS}"


async def send(
    url: str,
    method: str = "GET",
    *,
    form: dict[str, str] | None = None,
    body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    described: bool = True,
) -> HTTPResponse:
    """One request without redirects and without exceptions for errors. `form` is sent urlencoded. Checks the answer
    against the OpenAPI document, unless another application gives it."""
    sent = dict(headers or {})
    if form is not None:
        body = urlencode(form)
    if method == "POST" and body is None:
        body = ""
    request = HTTPRequest(
        url, method=method, body=body, headers=sent, follow_redirects=False, allow_nonstandard_methods=True
    )
    response = await AsyncHTTPClient().fetch(request, raise_error=False)
    if described and response.code != 599:  # no answer
        names = {name.lower(): value for name, value in response.headers.get_all()}
        interface().check(method, urlsplit(url).path, response.code, names, response.body)
    return response


async def send_raw(base_url: str, head: bytes, body: bytes = b"") -> tuple[int, bytes]:
    """A request as raw bytes, which no client library would send: its request line and headers without the final empty
    line. Adds Host, Content-Length and Connection. Returns the status and the whole answer."""
    parts = urlsplit(base_url)
    reader, writer = await asyncio.open_connection("127.0.0.1", parts.port)
    added = f"Host: {parts.netloc}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    writer.write(head.rstrip(b"\r\n") + b"\r\n" + added + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(b" ", 2)[1]), answer


def json_of(response: HTTPResponse) -> Any:
    """The JSON body."""
    return json.loads(response.body)


def text_of(page: HTTPResponse) -> str:
    """The words of a page. A place where a long word may break (`<wbr>`) is no space."""
    text = re.sub(r"<[^>]*>", " ", page.body.decode().replace("<wbr>", ""))
    return " ".join(html.unescape(text).split())


def answer_of(response: HTTPResponse) -> dict[str, str]:
    """The parameters of a redirect back to an app."""
    return dict(parse_qsl(urlsplit(response.headers["Location"]).query))


@dataclass
class Browser:
    """A browser that keeps and sends cookies and fills in forms."""

    base_url: str
    cookies: dict[str, str] = field(default_factory=dict)
    agent: str = "Testing/1.0"

    async def send(
        self,
        path: str,
        method: str = "GET",
        form: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        body: str | bytes | None = None,
    ) -> HTTPResponse:
        """One request with the browser's cookies."""
        sent = {"User-Agent": self.agent, "Accept": "text/html", **(headers or {})}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        response = await send(urljoin(self.base_url, path), method, form=form, headers=sent, body=body)
        for line in response.headers.get_list("Set-Cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
            if not self.cookies[name]:
                del self.cookies[name]
        if b"<script src" in (response.body or b""):
            assert "script-src 'self'" in response.headers["Content-Security-Policy"], f"{path} can't load its scripts"
        return response

    async def get(self, path: str, **headers: str) -> HTTPResponse:
        """A page."""
        return await self.send(path, headers=headers)

    async def submit(self, page: HTTPResponse, action: str, **values: str | None) -> HTTPResponse:
        """Sends the page's form with this action: its hidden fields, checked boxes and the given values (None leaves a
        field out)."""
        form = {**fields_of(page, action), **values}
        sent = {name: value for name, value in form.items() if value is not None}
        return await self.send(action, "POST", form=sent)

    async def sign_in(self, email: str = EMAIL, password: str = PASSWORD, next: str = "/") -> HTTPResponse:
        """Signs in through the page, in place of a person who is signed in already."""
        page = await self.get(f"/signin?next={quote_plus(next)}")
        if page.code == 303:
            page = await self.get(f"/signin?next={FRESH}")
        return await self.submit(page, "/signin", email=email, password=password, next=next, keep="1")

    async def consent(self, url: str, decision: str = "allow", untick: tuple[str, ...] = ()) -> HTTPResponse:
        """Opens an authorization URL while signed in, and decides on the page if there is one. Returns the redirect."""
        page = await self.get(url)
        if page.code == 303:
            return page
        assert page.code == 200, (page.code, page.body)
        form = fields_of(page, "/api/oauth/authorize")
        for scope in untick:
            del form[f"scope:{scope}"]
        return await self.send("/api/oauth/authorize", "POST", form={**form, "decision": decision})


def fields_of(page: HTTPResponse, action: str) -> dict[str, str]:
    """The hidden fields and checked boxes of a form on a page."""
    return form_fields(page.body.decode(), action)


def form_fields(text: str, action: str) -> dict[str, str]:
    """The hidden fields and checked boxes of a form in this HTML, and the first of its buttons elsewhere on the
    page."""
    form = re.search(rf'<form[^>]*action="{re.escape(action)}"[^>]*>(.*?)</form>', text, re.S)
    assert form, f"no form for {action} on the page: {text[:2000]}"
    found = {}
    for tag in re.findall(r"<input[^>]*>", form[1]):
        attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        kind = attributes.get("type")
        if kind == "hidden" or (kind == "checkbox" and " checked" in tag):
            found[html.unescape(attributes["name"])] = html.unescape(attributes.get("value", "on"))
    if named := re.search(r'\bid="([^"]*)"', form[0].partition(">")[0]):
        button = re.search(rf'<button[^>]* form="{re.escape(named[1])}" name="([^"]*)" value="([^"]*)"', text)
        found |= {html.unescape(button[1]): html.unescape(button[2])} if button else {}
    return found


@dataclass
class App:
    """A registered app and its back end."""

    base_url: str
    client_id: str
    secret: str | None
    redirect_uri: str = CALLBACK

    def authorize_url(self, **changes: str | None) -> str:
        """An authorization request with PKCE; a change to None leaves a parameter out."""
        params: dict[str, str | None] = {
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "response_type": "code",
            "scope": "profile data:read data:write",
            "state": "a-state",
            "code_challenge": challenge(),
            "code_challenge_method": "S256",
            **changes,
        }
        if "code_challenge" in changes and changes["code_challenge"] is None:
            params["code_challenge_method"] = changes.get("code_challenge_method")
        return "/oauth/authorize?" + urlencode({name: value for name, value in params.items() if value is not None})

    async def token(self, **fields: str | None) -> HTTPResponse:
        """POST /api/oauth/token with the app's credentials in the body; None leaves a field out."""
        form: dict[str, str | None] = {"client_id": self.client_id, "client_secret": self.secret, **fields}
        kept = {name: value for name, value in form.items() if value is not None}
        return await send(f"{self.base_url}/api/oauth/token", "POST", form=kept)

    async def exchange(self, code: str, **changes: str | None) -> HTTPResponse:
        """Exchanges a code; a change to None leaves a field out."""
        fields: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": VERIFIER,
        }
        return await self.token(**{**fields, **changes})

    async def refresh(self, refresh_token: str, **changes: str | None) -> HTTPResponse:
        """Rotates a refresh token."""
        fields: dict[str, str | None] = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return await self.token(**{**fields, **changes})

    async def userinfo(self, access_token: str) -> HTTPResponse:
        """GET /api/oauth/userinfo."""
        return await send(f"{self.base_url}/api/oauth/userinfo", headers={"Authorization": f"Bearer {access_token}"})

    async def revoke(self, token: str, **fields: str) -> HTTPResponse:
        """POST /api/oauth/revoke, without credentials unless given."""
        return await send(f"{self.base_url}/api/oauth/revoke", "POST", form={"token": token, **fields})


class Service:
    """The running service: a person, Ada, a confidential app and a public one, and shortcuts through the flow."""

    def __init__(self, base_url: str, store: Store) -> None:
        self.base_url = base_url
        self.store = store
        self.ada = ""
        self.web: App
        self.native: App

    async def populate(self) -> None:
        """Creates the person and the apps."""
        self.ada = await self.add_person(EMAIL, NAME)
        self.web = await self.add_app("web-app")
        self.native = await self.add_app(
            "native-app", public=True, redirect_uris=("http://127.0.0.1/cb", "com.example.app:/cb")
        )

    async def add_person(self, email: str, name: str = "Somebody", password: str = PASSWORD) -> str:
        """A person with a confirmed address; returns the user id."""
        return await self.store.people.create(
            email, name, password, verified=True, event="created_by_operator", visitor=Visitor()
        )

    async def add_app(self, client_id: str, **fields: Any) -> App:
        """A registered app; `fields` are those of Registration."""
        facts: dict[str, Any] = {
            "name": client_id.replace("-", " ").title(),
            "redirect_uris": (CALLBACK,),
            "scopes": ALL_SCOPES,
            "device_grant": True,
            **fields,
        }
        registration, secret = await self.store.apps.create(Registration(client_id, **facts))
        return App(self.base_url, client_id, secret, registration.redirect_uris[0])

    def browser(self) -> Browser:
        """A new browser without cookies."""
        return Browser(self.base_url)

    async def signed_in(self, email: str = EMAIL, password: str = PASSWORD) -> Browser:
        """A browser where the person is signed in."""
        browser = self.browser()
        response = await browser.sign_in(email, password)
        assert response.code == 303, response.body
        return browser

    async def confirmed(self, email: str = EMAIL, password: str = PASSWORD) -> Browser:
        """A browser where the person is signed in and has just re-authenticated."""
        browser = await self.signed_in(email, password)
        page = await browser.get("/account/security")
        response = await browser.submit(page, "/account/security/confirm", password=password)
        assert response.code == 303, response.body
        return browser

    async def code(self, app: App | None = None, browser: Browser | None = None, **changes: str | None) -> str:
        """An authorization code, with Ada's consent on the page."""
        app = app or self.web
        browser = browser or await self.signed_in()
        redirect = await browser.consent(app.authorize_url(**changes))
        return answer_of(redirect)["code"]

    async def tokens(
        self, app: App | None = None, browser: Browser | None = None, **changes: str | None
    ) -> dict[str, Any]:
        """A token response, after the whole flow from the authorization request."""
        app = app or self.web
        response = await app.exchange(await self.code(app, browser, **changes))
        assert response.code == 200, response.body
        parsed: dict[str, Any] = json_of(response)
        return parsed


def query_of(url: str) -> dict[str, list[str]]:
    """The query of a URL."""
    return parse_qs(urlsplit(url).query)
