"""`--demo`: its printed instructions work on every store and at every start, on a loopback host only."""

from __future__ import annotations

import asyncio
import html
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dev.lab.engines import wait_until
from runtime import demo
from store.apps.registration import Registration
from store.apps.webhooks import new_webhook_secret
from store.credits.credits import exact_dollars
from store.results import Visitor
from store.wiring import Store
from tests.support.browser.demo_site import Browser as AppBrowser
from tests.support.browser.demo_site import Demo
from tests.support.http.driver import Browser
from tests.support.processes.operator_commands import child
from tests.support.processes.processes import QUICK, Server, children, processes, refused

pytestmark = pytest.mark.slow


def app_of(server: Server) -> str:
    """The address of the demo app, taken from the printed instructions."""
    announced, _, instructions = server.out.partition("\n")
    assert announced == f"Latchkey listening on {server.url}"
    assert demo.EMAIL in instructions
    assert demo.PASSWORD in instructions
    assert "/developer/apps" in instructions
    found = re.search(r"Open (http://localhost:\d+) and sign in", instructions)
    assert found, server.out
    return found[1]


def visit(server: Server) -> list[str]:
    """Signs in to the demo app as instructed; returns the pages on the way, and the app's page."""
    return visited(server)[1]


def visited(server: Server) -> tuple[AppBrowser, list[str]]:
    """The same, with the browser that is signed in now."""
    app = AppBrowser(Demo(app_of(server), Path()))
    assert "Sign in with Latchkey" in app.ask("/")[2]
    address = app.ask("/login")[1]["Location"]
    assert address.startswith(server.url + "/")
    request = address.removeprefix(server.url)
    shown = []

    async def decide() -> str:
        browser = Browser(server.here)
        before = await browser.get(request)
        assert before.headers["Location"].startswith("/signin?")
        signed_in = await browser.sign_in(demo.EMAIL, demo.PASSWORD, next=request)
        assert (signed_in.code, signed_in.headers["Location"]) == (303, request)
        page = await browser.get(request)
        if page.code == 200:
            shown.append("consent")
            page = await browser.consent(request)
        return str(page.headers["Location"])

    back = urlsplit(asyncio.run(decide()))
    assert app.ask(f"{back.path}?{back.query}")[0] == 303
    return app, [*shown, app.ask("/")[2]]


def ask(app: AppBrowser, question: str) -> str:
    """Sends the form that asks, and what the app then shows, as text."""
    token = re.search(r'action="/ask".*?name="form_token" value="([^"]+)"', app.ask("/")[2], re.DOTALL)
    assert token
    status, headers, page = app.ask("/ask", {"form_token": token[1], "question": question})
    assert (status, headers["Location"]) == (303, "/"), page
    return html.unescape(app.ask("/")[2])


def app_process(server: Server) -> int:
    """The process id of the demo app."""
    listed = processes()
    [found] = [pid for pid in children(server.process.pid) if "demo_app.py" in listed[pid][1]]
    return found


def test_the_demo_works_in_memory() -> None:
    secret = {"LATCHKEY_OPERATOR_KEYS": "operator-key_0123456789-abcdefgh"}
    with Server("--demo", "--redis-url", "memory", *QUICK, environment=secret) as server:
        consent, home = visit(server.ready())
        assert consent == "consent"
        assert f"Hello, {demo.NAME}" in home
        app = app_process(server)
        assert "secret" not in processes()[app][1]
        environ = Path(f"/proc/{app}/environ")
        assert not environ.exists() or b"operator-key" not in environ.read_bytes()
        assert server.stop() == 0
        assert app not in processes()
        assert "Traceback" not in server.log


def test_the_demo_works_again_after_a_restart() -> None:
    with Server("--demo", *QUICK) as server:
        assert visit(server.ready())[0] == "consent"
        assert server.stop() == 0
        with Server("--demo", *QUICK, data_dir=server.data_dir) as again:
            *consent, home = visit(again.ready())
            assert f"Hello, {demo.NAME}" in home
            # Consent is remembered for one address: the app has another when somebody took its port.
            assert consent == ([] if app_of(again) == app_of(server) else ["consent"])
            assert again.stop() == 0
        with Server(*QUICK, data_dir=server.data_dir) as plain:
            # A password that everybody knows does not stay behind.
            browser = Browser(plain.ready().here)
            answer = asyncio.run(browser.sign_in(demo.EMAIL, demo.PASSWORD))
            assert answer.code == 403  # suspended: the person of the demo is switched off
            assert plain.stop() == 0
        with Server("--demo", *QUICK, data_dir=server.data_dir) as once_more:
            assert f"Hello, {demo.NAME}" in visit(once_more.ready())[-1]


def test_a_question_costs_the_demo_person_what_the_ledger_says() -> None:
    with Server("--demo", *QUICK) as server:
        app, pages = visited(server.ready())
        assert "5.000000 USD to spend" in pages[-1]
        page = ask(app, "Is <b>this</b> read aloud?")
        price = re.search(r"It cost you (0\.0000\d\d) USD; (4\.9999\d\d) USD left\.", page)
        assert price, page
        assert page.count("Is <b>this</b> read aloud?") == 2  # the question, and its echo
        assert f"{price[2]} USD to spend" in page
        page = app.ask("/")[2]
        assert page.count(price[0]) == 1, "it is still there, and was not asked again"
        assert "<b>" not in page
        shown = child(server.data_dir, "credits", "show", demo.EMAIL, "--json").json
        charged, given = shown["entries"]
        assert (charged["client_id"], charged["model"]) == (demo.CLIENT_ID, "latchkey-echo")
        assert (exact_dollars(-charged["amount"]), exact_dollars(charged["paid"])) == (price[1], price[2])
        assert (given["amount"], given["reason"]) == (demo.CREDITS, "To try things out")
        assert app.ask("/ask", {"form_token": "guessed", "question": "What?"})[0] == 403

        child(server.data_dir, "credits", "grant", demo.EMAIL, str(-shown["spendable"]), "--json")
        assert "Your Latchkey credits do not cover this." in ask(app, "And now?")
        assert "0.000000 USD to spend" in app.ask("/")[2]
        for _ in range(60):  # places come free while it asks
            page = ask(app, "And now?")
            if "rate_limited" in page:
                break
        assert re.search(r"answered rate_limited: .* Try again in \d+ seconds\.", page), page
        assert server.stop() == 0
        with Server("--demo", *QUICK, data_dir=server.data_dir) as again:  # who has spent them gets no more
            assert "0.000000 USD to spend" in visit(again.ready())[-1]
            assert again.stop() == 0


def test_a_port_taken_at_the_last_moment_does_not_prevent_the_start() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        options = ["--latchkey", "http://127.0.0.1:1", "--client-id", "an-app"]
        assert asyncio.run(demo._start(options, port, "a-secret", new_webhook_secret())) is None
        process, url = asyncio.run(demo._start(options, 0, "a-secret", new_webhook_secret())) or (None, "")
        assert process is not None
        assert url.startswith("http://localhost:")
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_disconnected_person_can_ask_nothing_more() -> None:
    with Server("--demo", "--redis-url", "memory", *QUICK) as server:
        app, pages = visited(server.ready())
        token = re.search(r'name="form_token" value="([^"]+)"', pages[-1])
        assert token

        async def disconnect() -> None:
            browser = Browser(server.here)
            await browser.sign_in(demo.EMAIL, demo.PASSWORD)
            page = await browser.get("/account/apps")
            await browser.submit(page, f"/account/apps/{demo.CLIENT_ID}/revoke")

        asyncio.run(disconnect())
        wait_until(lambda: "204 POST /webhooks" in server.log)
        assert "told of grant.revoked" in server.log
        status, _, page = app.ask("/ask", {"form_token": token[1], "question": "Still there?"})
        assert status == 401
        assert "no longer connected" in page
        assert "Sign in with Latchkey" in app.ask("/")[2]


def test_the_demo_runs_next_to_several_workers_and_ends_with_them() -> None:
    with Server("--demo", "--workers", "2", *QUICK) as server:
        assert f"Hello, {demo.NAME}" in visit(server.ready())[-1]
        app = app_process(server)
        assert f"{server.url}/inbox" in server.out
        asyncio.run(mailed(Browser(server.here)))
        assert server.stop() == 0
        assert app not in processes()


async def mailed(browser: Browser) -> None:
    """Asks for a new password, until each worker's inbox has the mail."""
    await browser.submit(await browser.get("/forgot"), "/forgot", email=demo.EMAIL)
    async with asyncio.timeout(30):
        for _ in range(10):
            while demo.EMAIL.encode() not in (await browser.get("/inbox")).body:
                await asyncio.sleep(0.1)


def test_the_demo_app_ends_with_a_server_that_is_killed() -> None:
    with Server("--demo", "--redis-url", "memory", *QUICK) as server:
        server.ready()
        app = app_process(server)
        server.kill()
        wait_until(lambda: app not in processes())


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        pytest.param(("--host", "0.0.0.0"), 2, "demo needs one of the hosts localhost", id="all addresses"),
        pytest.param(
            ("--base-url", "https://id.example.org"), 1, "it runs on a loopback base URL only", id="a public base URL"
        ),
    ],
)
def test_the_demo_is_refused(options: tuple[str, ...], status: int, said: str) -> None:
    ended, log = refused("--demo", "--redis-url", "memory", *options)
    assert ended == status
    assert said in log
    assert "Traceback" not in log


@pytest.mark.gen_test
@pytest.mark.parametrize(("password", "status"), [(demo.PASSWORD, "disabled"), ("a password of their own", "active")])
async def test_only_the_demo_person_is_removed_whatever_happened_to_the_app(
    memory_store: Store, password: str, status: str
) -> None:
    await memory_store.people.create(
        demo.EMAIL, "Somebody", password, verified=True, event="created_by_operator", visitor=Visitor()
    )
    await memory_store.apps.create(Registration(demo.CLIENT_ID, "My own", ("https://mine.example/cb",), ("profile",)))
    await demo.Demo.put_away(memory_store)
    assert (await memory_store.operator.find(demo.EMAIL)).status == status
    assert await memory_store.apps.active(demo.CLIENT_ID)


def test_the_demo_is_refused_on_a_shared_store() -> None:
    said = refused("--demo", "--redis-url", "redis://127.0.0.1:1")
    assert "demo needs the embedded or the memory store" in str(said)
