"""Sign-in at real providers: another Latchkey, and oidc-provider. Each server is a process of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest

from dev.lab.ports import free_port
from tests.support.http.driver import EMAIL, Browser, Service, fields_of, send
from tests.support.processes.npm import packages
from tests.support.processes.processes import QUICK, Server

pytestmark = pytest.mark.gen_test(timeout=120)

HERE = Path(__file__).resolve().parent.parent.parent / "support" / "elsewhere"
SECRET = "a-secret-of-the-provider"
TRUSTED = 'secret_env = "OUR_SECRET"\ntrust_email = true\ncreate = true\n'


@contextmanager
def trusting(folder: Path, port: int, issuer: str, client_id: str, secret: str) -> Iterator[Server]:
    """A server whose people come from this issuer."""
    file = folder / "providers.toml"
    file.write_text(f'[[provider]]\nname = "partner"\nissuer = "{issuer}"\nclient_id = "{client_id}"\n{TRUSTED}')
    options = ("--redis-url", "memory", "--signup", "upstream", "--identity-config", str(file), *QUICK)
    with Server(*options, port=port, environment={"OUR_SECRET": secret}) as server:
        yield server.ready()


async def test_people_of_one_latchkey_sign_in_to_another(service: Service, tmp_path: Path) -> None:
    port = free_port()
    callback = f"http://localhost:{port}/signin/with/partner/callback"
    scopes = ("openid", "profile", "email")
    app = await service.add_app("another-latchkey", name="Another", redirect_uris=(callback,), scopes=scopes)
    assert app.secret
    with trusting(tmp_path, port, service.base_url, app.client_id, app.secret) as server:
        base = f"http://localhost:{port}"
        there, here = await service.signed_in(), Browser(base)
        assert "Continue with Partner" in (await send(f"{base}/signin", described=False)).body.decode()
        page = await here.get(f"/signin/with/partner?next={quote('/account/security', safe='')}")
        back = await there.consent(page.headers["Location"])
        done = await here.get(back.headers["Location"])
        assert (done.code, done.headers["Location"]) == (303, "/account/security"), server.log
        assert EMAIL in (await here.get("/account")).body.decode()
        again = Browser(base)
        page = await again.get("/signin/with/partner")
        back = await there.consent(page.headers["Location"])
        assert (await again.get(back.headers["Location"])).code == 303
        page = await Browser(base).get("/signin/with/partner?next=%2Foauth%2Fauthorize%3Fprompt%3Dlogin")
        assert "prompt=login" in page.headers["Location"], "a new sign-in is asked for there too"


@contextmanager
def oidc_provider(port: int, callback: str) -> Iterator[str]:
    """oidc-provider with one person, on a port."""
    node = shutil.which("node")
    assert node
    modules = packages(HERE)
    script = HERE / "oidc_provider.mjs"
    command = [node, str(script), str(port), callback, SECRET]
    process = subprocess.Popen(command, cwd=modules.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout
        said = iter(process.stdout.readline, "")
        assert any("listening" in line for line in said), "it ended"
        yield f"http://localhost:{port}"
    finally:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


async def through(browser: Browser, url: str, ends: str) -> str:
    """Follows redirects and submits oidc-provider's own forms for sign-in and consent, until the address has `ends`."""
    for _ in range(12):
        page = await browser.get(url)
        for _ in range(3):
            if page.code not in (302, 303):
                break
            url = urljoin(url, page.headers["Location"])
            if ends in url:
                return url
            page = await browser.get(url)
        if page.code in (302, 303):
            continue
        action = re.search(r'action="([^"]+)"', page.body.decode())
        assert action, page.body
        form = {**fields_of(page, action[1]), "login": "ada", "password": "any"}
        posted = await browser.send(action[1], "POST", form=form)
        url = urljoin(url, posted.headers["Location"])
        if ends in url:
            return url
    raise AssertionError(url)


@pytest.mark.slow
async def test_people_of_oidc_provider_sign_in(tmp_path: Path) -> None:
    port, theirs = free_port(), free_port()
    callback = f"http://localhost:{port}/signin/with/partner/callback"
    with oidc_provider(theirs, callback) as issuer, trusting(tmp_path, port, issuer, "latchkey", SECRET) as server:
        here, there = Browser(f"http://localhost:{port}"), Browser(issuer)
        page = await here.get("/signin/with/partner")
        assert page.code == 303, (page.body, server.log)
        back = await through(there, page.headers["Location"], "/signin/with/partner/callback")
        parts = urlsplit(back)
        done = await here.get(f"{parts.path}?{parts.query}")
        assert (done.code, done.headers.get("Location")) == (303, "/account"), server.log
        assert "ada@elsewhere.example" in (await here.get("/account")).body.decode()
