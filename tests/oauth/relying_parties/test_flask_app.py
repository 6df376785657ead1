"""examples/flask_app.py works as written: tokens are kept and rotated, a document is written, a model is asked."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import requests

from dev.lab.ports import free_port
from tests.oauth.clients.driving import SECRET
from tests.oauth.relying_parties.sites import serving
from tests.oauth.relying_parties.test_sites import Visit
from tests.support.http.driver import EMAIL, NAME, PASSWORD
from tests.support.processes.processes import QUICK, Server

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "flask_app.py"
CLIENT = "notes"


def loaded(monkeypatch: pytest.MonkeyPatch, server: Server, site: str) -> ModuleType:
    """The example, with its values in the environment."""
    for name, value in {"LATCHKEY": server.url, "SITE": site, "CLIENT_ID": CLIENT, "CLIENT_SECRET": SECRET}.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location("flask_app", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def test_the_whole_app_in_flask_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    site = f"http://localhost:{port}"
    scopes = "openid profile data:read data:write credits:spend"
    app = {"client_id": CLIENT, "client_secret": SECRET, "name": "Notes", "scopes": scopes}
    person = {"email": EMAIL, "name": NAME, "password": PASSWORD, "credits": 1_000}
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps({"apps": [{**app, "redirect_uris": [f"{site}/callback"]}], "users": [person]}))
    with Server("--redis-url", "memory", "--seed", str(seed), *QUICK) as server:
        example = loaded(monkeypatch, server.ready(), site)
        with serving(example.site, port):
            visit = Visit()

            def ask(question: str) -> requests.Response:
                return visit.session.post(f"{site}/ask", {"question": question}, timeout=20)

            page = visit.submit(visit.get(site), "/signin", email=EMAIL, password=PASSWORD)
            page = visit.submit(page, "/api/oauth/authorize", decision="allow")
            assert page.url == f"{site}/"
            assert f"Hello {NAME}" in page.text
            assert "Nothing yet." in page.text
            assert "Last answer: Say &lt;this&gt;" in ask("Say <this>").text
            # A refresh gives a new refresh token, and the site keeps it for the next one.
            ((sub, before),) = example.TOKENS.items()
            used = {before["refresh_token"]}
            for _ in range(2):
                example.TOKENS[sub]["expires_at"] = 0
                assert "Say &lt;this&gt;" in visit.get(site).text
                used.add(example.TOKENS[sub]["refresh_token"])
            assert len(used) == 3
            # Without credits the person reads why.
            refused = ask("word " * 2000)
            assert refused.status_code == 402
            assert "credits" in refused.text
            # Once the connection has ended, the person signs in again; another server's answer is refused.
            token = example.TOKENS[sub]["refresh_token"]
            requests.post(f"{server.url}/api/oauth/revoke", {"token": token}, auth=(CLIENT, SECRET), timeout=20)
            assert visit.get(site).url == f"{site}/"
            assert example.TOKENS[sub]["refresh_token"] not in used
            assert visit.get(f"{site}/callback?code=x&state=x&iss=https://other.example").status_code == 400
            # A link that somebody else made signs nobody out.
            assert visit.get(f"{site}/callback?error=access_denied&iss={server.url}").status_code == 403
            assert sub in example.TOKENS
            assert f"Hello {NAME}" in visit.get(site).text
