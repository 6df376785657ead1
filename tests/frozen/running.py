"""Servers at work, driven from outside: what they log, measure and post, and what tests of apps send and get.

One server has all in memory and takes the calls of the test kit; the other stands on a Valkey that is filled, lacks a
replica and holds a row of nonsense, so that it shows what goes wrong.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from unittest import mock

from prometheus_client.parser import text_string_to_metric_families
from tornado.httpclient import HTTPResponse

from latchkey.testing import App as KitApp
from latchkey.testing import Latchkey, LatchkeyError, Person
from tests.frozen.answers import EMAIL
from tests.frozen.interface import allowed
from tests.frozen.shapes import shape
from tests.support.http.driver import ALL_SCOPES, App, Browser, answer_of, json_of, send
from tests.support.http.receiver import Receiver, answering
from tests.support.processes.engines import Engine
from tests.support.processes.processes import QUICK, Server

OPERATOR = "operator-key_0123456789-abcdefgh"
OTHER_PORTS = {"operations": ("/ops/credits", "/healthz", "/readyz"), "metrics": ("/metrics", "/healthz")}
"""Ports beside the first, and what is asked for there; where no route is, nothing is allowed."""
PORTS = ("--metrics-port", "0", "--ops-port", "0", "--log-format", "json")
ALONE = ("latchkey.access", "latchkey.security")
"""Loggers whose lines have fields of their own."""
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
MESSAGES = {"model": "latchkey-echo", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello there."}]}


def started(*options: str, **environment: str) -> Server:
    """A server that says all there is to say."""
    return Server(*PORTS, *QUICK, *options, environment={"LATCHKEY_OPERATOR_KEYS": OPERATOR, **environment})


def port_of(server: Server, name: str) -> int:
    """The number of another port, as the log names it."""
    found = re.search(rf'"message":"{name} on http://localhost:(\d+)', server.log)
    assert found, server.log
    return int(found[1])


def get(port: int, path: str) -> str:
    """The body of a GET."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


class Watched(http.client.HTTPConnection):
    """A connection of the test kit, whose requests and answers are noted in `seen`."""

    seen: set[str]

    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **options: Any) -> None:
        self._at = f"{method} {url.partition('?')[0]}"
        fields = [f"query {one.partition('=')[0]}" for one in url.partition("?")[2].split("&") if one]
        sent = [f"body {line}" for line in shape(json.loads(body or "{}")) if body not in (None, "{}")]
        for name, value in (headers or {}).items():
            if name.startswith("Latchkey-"):
                sent += [f"header {name} {line}" for line in shape(json.loads(value))]
        if url.startswith("/testing/"):
            sent += fields
        self.seen |= {f"{self._at} takes {line}" for line in sent}
        super().request(method, url, body, headers or {}, **options)

    def getresponse(self) -> http.client.HTTPResponse:
        response = super().getresponse()
        body = response.read()
        if self._at.partition(" ")[2].startswith("/testing/"):
            kept = [line for line in shape(json.loads(body)) if line != "object"] or ["nothing"]
            self.seen |= {f"{self._at} answers {response.status} {line}" for line in kept}
        response.read = lambda *_: body  # type: ignore[method-assign]  # once more for the kit
        return response


class Seen:
    """What was seen, as lines: of the interface of tests, webhooks, the operations port, refusals in redirects."""

    def __init__(self) -> None:
        self.testing: set[str] = set()
        self.webhooks: set[str] = set()
        self.operations: set[str] = set()
        self.errors: set[str] = set()
        self.secrets: set[str] = set()
        self.channels: set[str] = set()

    def keep(self, browser: Browser, *tokens: str) -> None:
        """Notes the names of cookies, and what sealed strings begin with."""
        self.secrets |= {f"cookie {name}" for name in browser.cookies}
        found = (re.match(r"lk_[a-z]+_", one) for one in (*browser.cookies.values(), *tokens))
        self.secrets |= {f"begins with {one[0]}" for one in found if one}

    def refused(self, answer: HTTPResponse) -> None:
        """Notes how a request was refused."""
        if answer.code in (302, 303):
            self.errors.add(f"redirect {answer_of(answer)['error']}")
        else:
            self.errors.add(f"{answer.code} {json_of(answer)['error']}")


def play(url: str, seen: Seen) -> tuple[KitApp, Person]:
    """Every call of the test kit; the app and the person that are left."""
    Watched.seen = seen.testing
    with mock.patch("http.client.HTTPConnection", Watched):
        kit = Latchkey(url)
        full: dict[str, Any] = {"redirect_uris": ["https://app.example/callback"], "scopes": ALL_SCOPES}
        kit.app("Kit", webhook_url="http://localhost:9/", client_id="kit", client_secret="s" * 40, **full)
        public = kit.app(public=True, pkce_required=True, scopes="profile")
        app = kit.app("Web", hosted_storage=True, refresh_retry_seconds=0, client_id="web", **full)
        ada = kit.person("Ada", email="ada@example.com", password="correct horse battery", credits=1_000_000)
        kit.token(ada, app, ALL_SCOPES)
        tokens_and_keys(kit, ada)
        kit.consents(person=ada, scopes="profile", spend_limit=5)
        request = App(url, "web", app.client_secret).authorize_url(scope="profile credits:spend")
        kit.consents(url + request, person=ada, scopes=["profile"], spend_limit=5)
        kit.denies(url + request, person=ada)
        kit.shows_pages()
        kit.credit(ada, 5)
        kit.balance(ada)
        kit.travel(weeks=1, days=1, hours=1, minutes=1, seconds=1)
        kit.exhausts("data-write", ada, app)
        kit.revoke(ada, app)
        try:
            kit.travel(days=-1)
        except LatchkeyError as refused:
            seen.errors.add(f"{refused.status} {refused.error}")
        kit.deletes_account(kit.person())
        with kit.unavailable():
            assert public.public
        kit.travel(days=1)
    return app, ada


def tokens_and_keys(kit: Latchkey, ada: Person) -> None:
    """Tokens of each kind, and the keys of apps and of the service."""
    key = kit.key()
    api = kit.api("https://api.example", scopes={"read": "Read"}, client_secret="s" * 40, token_lifetime=60)
    more: dict[str, Any] = {"id_token_alg": "ES256", "subject_type": "pairwise", "dpop_required": True}
    keyed = kit.app("Keyed", scopes="openid read", auth_method="private_key_jwt", jwks=[key], **more)
    kit.app("Strict", jwks=[key], profile="fapi2")
    more = {"jwks_uri": "http://localhost:9/", "backchannel_logout_uri": "http://localhost:9/"}
    kit.app("Pushed", auth_method="client_secret", require_pushed=True, **more)
    token = kit.token(ada, keyed, resource=api, dpop=key, nonce="n")
    kit.proof(key, "GET", "https://api.example/", token, "n")
    kit.rotate_keys(now=True)
    kit.signs_out(ada)
    kit.jwks()


async def use(server: Server, seen: Seen) -> None:
    """What people, apps and payment back ends do with a server in memory."""
    url = server.url
    app, ada = await asyncio.to_thread(play, url, seen)
    hooks = Receiver(script=[answering(204), answering(500), answering(410)])
    await hooks.start()
    try:
        kit = Latchkey(url)
        hooked = await asyncio.to_thread(kit.app, "Hooked", scopes=" ".join(ALL_SCOPES), webhook_url=hooks.url)
        web = App(url, app.client_id, app.client_secret)
        await pages(url, ada, web, seen)
        own = App(url, hooked.client_id, hooked.client_secret, hooked.redirect_uri)
        tokens = await asyncio.to_thread(kit.token, ada, hooked, hooked.scopes)
        await calls(url, own, tokens.access_token, tokens.refresh_token, seen)
        await asyncio.to_thread(kit.revoke, ada, hooked)
        await hooks.count(1)
        for posted in hooks.posted:
            names = {name for name in posted.headers if name.startswith("webhook-")} | {"content-type", "user-agent"}
            seen.webhooks |= {f"header {name}" for name in names & set(posted.headers)}
            body = json.loads(posted.body)
            seen.webhooks |= {f"body {line}" for line in shape(body)}
            seen.webhooks |= {f"type {body['type']}", f"reason {body['data'].get('reason', 'none')}"}
        await pay(port_of(server, "operations"), ada, seen)
        for name, paths in OTHER_PORTS.items():
            port = port_of(server, name)
            seen.operations |= {
                f"{name} {path} allows {await asyncio.to_thread(allowed, port, path)}" for path in paths
            }
        with kit.unavailable():
            seen.refused(await web.userinfo(tokens.access_token))
    finally:
        await hooks.close()


async def pages(url: str, ada: Person, web: App, seen: Seen) -> None:
    """A person who signs in, is refused, consents, changes this and that."""
    browser = Browser(url)
    await browser.sign_in(ada.email, "a wrong password")
    await browser.sign_in("nobody@example.com", "a wrong password")
    seen.refused(await browser.get(web.authorize_url(prompt="none")))
    await browser.sign_in(ada.email, ada.password)
    seen.refused(await browser.get(web.authorize_url(response_type="token")))
    seen.refused(await browser.get(web.authorize_url(prompt="none", scope="profile data:read")))
    seen.refused(await browser.consent(web.authorize_url(scope="profile data:read", prompt="consent"), "deny"))
    back = await browser.consent(web.authorize_url(scope="profile data:read"))
    assert "code" in answer_of(back), back.headers["Location"]
    code = answer_of(back)["code"]
    tokens = json_of(await web.exchange(code))
    seen.keep(browser, code, *map(str, tokens.values()))
    seen.refused(await web.exchange(code))
    seen.refused(await web.refresh(tokens["refresh_token"]))
    seen.refused(await web.exchange("x", client_secret="a wrong secret"))
    await browser.submit(await browser.get("/forgot"), "/forgot", email=ada.email)
    await browser.submit(await browser.get("/account"), "/account", name="Ada L.")
    await browser.submit(await browser.get("/account/apps"), "/account/apps/web/revoke")
    await browser.submit(await browser.get("/account"), "/signout")
    await browser.get("/nothing/here")


async def calls(url: str, app: App, access: str, refresh: str, seen: Seen) -> None:
    """An app that keeps documents, asks a model and refreshes."""
    bearer = {"Authorization": f"Bearer {access}", "Content-Type": "application/json", "traceparent": TRACE}
    await send(f"{url}/api/v1/data/notes/n1", "PUT", body='{"text": "Ferns"}', headers=bearer)
    for path in ("data/notes/n1", "data/notes", "data/_meta/usage", "credits/balance", "apps", "ai/models"):
        await send(f"{url}/api/v1/{path}", headers=bearer)
    await send(f"{url}/api/v1/ai/messages", "POST", body=json.dumps(MESSAGES), headers=bearer)
    await send(f"{url}/api/v1/ai/v1/messages", "POST", body=json.dumps({**MESSAGES, "stream": True}), headers=bearer)
    await send(f"{url}/api/v1/data/notes/n1", "DELETE", headers=bearer)
    await app.userinfo(access)
    seen.refused(await app.userinfo("lk_at_invented"))
    seen.refused(await send(f"{url}/api/v1/apps", "POST", body="{}", headers=bearer))
    seen.refused(await send(f"{url}/api/v1/data/notes/none", headers=bearer))
    renewed = json_of(await app.refresh(refresh))
    await app.revoke(renewed["access_token"])
    await app.refresh(refresh)


async def pay(port: int, ada: Person, seen: Seen) -> None:
    """A payment on the operations port."""
    body = json.dumps({"user": ada.email, "amount": 5, "reason": "Payment 1", "key": "payment-1"})
    for key in (OPERATOR, "wrong"):
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        answer = await send(f"http://127.0.0.1:{port}/ops/credits", "POST", body=body, headers=headers, described=False)
        seen.operations |= {f"POST /ops/credits answers {answer.code} {line}" for line in shape(json_of(answer))}
    seen.operations |= {f"POST /ops/credits takes {line}" for line in shape(json.loads(body))}


async def break_(server: Server, engine: Engine, password: str, seen: Seen) -> None:
    """A store that lacks a replica, is full, and holds nonsense, as the owner of the app `web` meets it."""
    browser = Browser(server.url)
    await browser.sign_in(EMAIL, password)
    page = await browser.get("/developer/apps/web/webhooks")
    await browser.submit(page, "/developer/apps/web/webhooks/test")
    with engine.client() as direct:
        seen.channels = {one.decode() for one in direct.pubsub_channels()}
        answers = [await browser.submit(await browser.get("/account"), "/signout")]
        direct.config_set("maxmemory", "1")
        form = {"email": "new@example.com", "name": "New", "password": password}
        answers.append(await browser.submit(await browser.get("/signup"), "/signup", **form))
        direct.config_set("maxmemory", "0")
        direct.set("{app:broken}", b"nonsense")
        answers.append(await browser.get(App(server.url, "broken", None).authorize_url()))
    assert [answer.code for answer in answers] == [503, 503, 500]


def logged(*servers: Server) -> Iterator[str]:
    """A line for each field of the log, whatever the value."""
    for server in servers:
        for text in (server.out + server.log).splitlines():
            line = json.loads(text)
            kind = line["logger"] if line["logger"] in ALONE else "any other logger"
            yield from (f"{kind}: {field}" for field in shape(line))


Measured = dict[str, tuple[str, dict[str, set[str]]]]


def measured(*servers: Server) -> Measured:
    """Every metric: its type, and the labels of its samples with their values."""
    found: Measured = {}
    for server in servers:
        text = get(port_of(server, "metrics"), "/metrics")
        for line in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
            found.setdefault(line[0], (line[1], defaultdict(set)))
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                for name, value in sample.labels.items():
                    for metric, (_, labels) in found.items():
                        if sample.name in (metric, f"{metric}_bucket", f"{metric}_sum", f"{metric}_count"):
                            labels[name].add(value)
    return found
