"""Commands load only the libraries they need: each of these takes as long as most commands."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import takewhile

from tests.support.processes.operator_commands import Home, clean_environment
from tests.support.processes.processes import ROOT

HEAVY = {
    *("OpenSSL", "PIL", "aiohttp", "aiosmtplib", "handlers", "prometheus_client", "pyasn1", "rich", "runtime.http"),
    *("shtab", "testkit", "tornado", "uvloop", "webauthn"),
}
UNUSED = {
    *("store.accounts.signin.factors", "store.credits.calls", "store.directory.search", "store.documents.documents"),
    *(
        "store.apps.apps",
        "store.crypto.jose",
        "store.fsck.walk",
        "store.oauth.tokens",
        "store.operators.people_acts",
        "store.webhooks.outbox",
    ),
}
"""Parts of the store that `user show` does not use."""
LOADED = """
import json, sys
from importlib import import_module
from pathlib import Path
{first}
print(json.dumps(sorted(sys.modules)))
"""


def heavy(first: str, *words: str) -> set[str]:
    """The heavy libraries that a process has loaded after `first`."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(first=first), *words],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    return {name for name in HEAVY | UNUSED if name in loaded}


def test_user_show_loads_nothing_heavy(home: Home) -> None:
    home.user("ada@example.com")
    words = ("--data-dir", str(home.data_dir), "user", "show", "ada@example.com")
    assert "ada@example.com" in home.words(*words).out
    assert heavy("import manage; assert manage.main(sys.argv[1:]) == 0", *words) == set()


def test_commands_load_heavy_modules_only_when_needed() -> None:
    program = "for path in Path('cli/commands').glob('*.py'): import_module(f'cli.commands.{path.stem}')"
    assert heavy(f"{program}\nimport cli.run") & HEAVY == set()
    assert heavy(f"{program}\nimport webauthn, PIL") & HEAVY == {"webauthn", "PIL", "OpenSSL", "pyasn1"}


def test_the_server_loads_the_passkey_modules_before_it_serves() -> None:
    """No request waits for the import, and workers share its memory."""
    command = [sys.executable, "-X", "importtime", "server.py", "--port", "0", "--redis-url", "memory"]
    server = subprocess.Popen(
        command, cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert server.stdout
    try:
        before = list(takewhile(lambda line: "http://" not in line, server.stdout))
        assert any(line.endswith(" store.accounts.signin.passkey_checks\n") for line in before)
    finally:
        server.kill()
        server.communicate()
