"""Sites that sign people in, each with a program that others wrote, on a port of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from flask import Flask
from werkzeug.serving import make_server

from dev.lab.engines import wait_until
from dev.lab.ports import free_port
from tests.oauth.clients.driving import NODE
from tests.oauth.relying_parties.flask_authlib import make_site
from tests.support.http.raw_http import status_of
from tests.support.processes.npm import packages

HERE = Path(__file__).resolve().parent
MODULES = Path("/usr/lib/apache2/modules")
SECRET = "a secret of the site, long enough to seal its cookies"


@dataclass(frozen=True)
class Client:
    """What a site is told about Latchkey, and nothing else."""

    issuer: str
    client_id: str
    client_secret: str


class Site(ABC):
    """A program. `callback` is the path of its redirect URI; `/private` shows who signed in."""

    name: str
    callback: str = "/callback"

    @abstractmethod
    def serve(self, client: Client, port: int) -> Iterator[None]:
        """Serves until it is closed."""

    @contextmanager
    def run(self, client: Client, port: int = 0) -> Iterator[str]:
        """The site's address, while it serves."""
        port = port or free_port()
        with contextmanager(self.serve)(client, port):
            yield f"http://127.0.0.1:{port}"


@dataclass(frozen=True)
class NodeSite(Site):
    """A site in Node: an example of `tests/oauth/clients/node/relying_parties`."""

    name: str
    callback: str = "/callback"

    def serve(self, client: Client, port: int) -> Iterator[None]:
        packages(NODE)
        settings = {"issuer": client.issuer, "clientId": client.client_id, "clientSecret": client.client_secret}
        command = [str(shutil.which("node")), "relying_parties/serve.mjs", self.name, str(port)]
        with subprocess.Popen(
            command, cwd=NODE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            json.dump({**settings, "secret": SECRET}, process.stdin)
            process.stdin.close()
            assert process.stdout.readline() == "listening\n"
            try:
                yield
            finally:
                process.kill()


@contextmanager
def serving(site: Flask, port: int) -> Iterator[None]:
    """A site in Flask, while it serves."""
    server = make_server("127.0.0.1", port, site, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class FlaskSite(Site):
    """A site in Flask."""

    name = "Authlib"

    def serve(self, client: Client, port: int) -> Iterator[None]:
        site = make_site(client.issuer, client.client_id, client.client_secret, SECRET)
        with serving(site, port):
            yield


class ApacheSite(Site):
    """Apache with mod_auth_openidc."""

    name = "mod_auth_openidc"
    callback = "/private/callback"

    def serve(self, client: Client, port: int) -> Iterator[None]:
        apache = shutil.which("apache2", path=os.pathsep.join((os.environ["PATH"], "/usr/sbin")))
        if apache is None or not (MODULES / "mod_auth_openidc.so").exists():
            pytest.skip("there is no apache2 with mod_auth_openidc on this machine")
        with tempfile.TemporaryDirectory(prefix="apache-", dir="/tmp") as directory:
            root = Path(directory)
            root.chmod(0o755)  # Apache's processes are another user's
            (root / "private").write_text("a private page")
            (root / "apache.conf").write_text(self._settings(client, port, root))
            command = [apache, "-f", str(root / "apache.conf"), "-DFOREGROUND"]
            with subprocess.Popen(command, start_new_session=True) as process:
                try:
                    wait_until(lambda: _listens(port))
                    yield
                finally:
                    os.killpg(process.pid, signal.SIGTERM)

    def _settings(self, client: Client, port: int, root: Path) -> str:
        text = (HERE / "apache.conf").read_text()
        for before, after in {
            "@root@": str(root),
            "@port@": str(port),
            "@user@": "www-data" if os.getuid() == 0 else f"#{os.getuid()}",
            "@modules@": str(MODULES),
            "https://id.example.org": client.issuer,
            "https://wiki.example.org": f"http://127.0.0.1:{port}",
            "OIDCClientID wiki": f"OIDCClientID {client.client_id}",
            "CLIENT_SECRET": client.client_secret,
            "LONG_RANDOM_VALUE": SECRET.replace(" ", ""),
        }.items():
            assert before in text
            text = text.replace(before, after)
        return text


def _listens(port: int) -> bool:
    try:
        return status_of(port, "/") > 0
    except OSError:
        return False


SITES: tuple[Site, ...] = (
    FlaskSite(),
    ApacheSite(),
    NodeSite("openid-client-express"),
    NodeSite("openid-client-passport"),
    NodeSite("express-openid-connect"),
    NodeSite("auth-express", "/auth/callback/latchkey"),
)
