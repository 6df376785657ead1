"""The files of this folder, with what each operator puts in, and the programs that they are for.

`make test-deploy` runs the tests of them: it needs Debian's packages nginx-light, caddy, haproxy, systemd and openssl,
and Node.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def tool(name: str) -> str:
    """Where a program is; without it nothing is checked, which must not look like a pass."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=path)
    assert found, f"{name} is not on this machine: see .ci/run"
    return found


def ran(*command: str, **given: Any) -> subprocess.CompletedProcess[str]:
    """A command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **given)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done


def changed(file: str, **instead: str) -> str:
    """A file of this folder, with what each operator puts in: every name must be there to be replaced."""
    text = (HERE / file).read_text()
    for before, after in PLACES[file].items():
        assert before in text, f"{before} is not in {file}"
        text = text.replace(before, instead[after])
    return text


PLACES = {
    "latchkey.service": {"/opt/latchkey/.venv/bin/python": "python", "/opt/latchkey": "root"},
    "nginx.conf": {
        "127.0.0.1:8080": "backend",
        "listen 80;": "plain",
        "listen [::]:80;": "nothing",
        "listen 443 ssl http2;": "tls",
        "listen [::]:443 ssl http2;": "nothing",
        "id.example.org;": "name",
        "/etc/ssl/certs/id.example.org.pem": "certificate",
        "/etc/ssl/private/id.example.org.key": "key",
    },
    "Caddyfile": {"127.0.0.1:8080": "backend", "id.example.org {": "site"},
    "haproxy.cfg": {
        "/run/haproxy/admin.sock": "socket",
        "bind :80\n": "plain",
        "bind :443 ssl crt /etc/haproxy/certs/id.example.org.pem": "tls",
        "http-request redirect scheme https code 308 unless { ssl_fc }": "redirect",
        "server host1 10.0.0.11:8080": "first",
        "server host2 10.0.0.12:8080": "second",
        "default-server check inter 1s fastinter 500ms fall 2 rise 2": "checks",
    },
}


def accepts(port: int) -> bool:
    """Whether somebody listens."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
