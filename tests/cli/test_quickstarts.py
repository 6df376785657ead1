"""The quickstarts: the blocks that developers and operators paste work."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runtime.arguments import load
from runtime.demo import CREDITS, EMAIL, NAME, PASSWORD
from tests.support.http.driver import Browser, answer_of
from tests.support.processes.processes import QUICK, Server

ROOT = Path(__file__).resolve().parent.parent.parent
ADMINISTRATION = ROOT / "docs" / "operators" / "administration.md"
OPERATING = ROOT / "docs" / "operating.md"
QUICKSTART = ROOT / "docs" / "quickstart.md"
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language on a page, without their indentation."""
    found = FENCE.findall(page.read_text("utf-8"))
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, name, body in found if name == language]


def test_the_configuration_file_for_operators_loads(tmp_path: Path) -> None:
    block, _ = blocks(OPERATING, "toml")
    file = tmp_path / "latchkey.toml"
    file.write_text(block)
    found = load(["--config", str(file)], {})
    assert (found.base_url, found.workers, found.signup) == ("https://id.example.org", 4, "invite")
    assert found.data_dir == Path("/var/lib/latchkey")


async def _allow(address: str) -> str:
    """Returns the code after the demo person signs in and allows: a person does that between two blocks."""
    parts = urlsplit(address)
    browser = Browser(f"{parts.scheme}://{parts.netloc}")
    await browser.sign_in(EMAIL, PASSWORD)
    return answer_of(await browser.consent(address))["code"]


def terminal(tmp_path: Path, server: Server) -> dict[str, str]:
    """The environment of a terminal for pasted blocks, with the environment of a checkout active.

    Two things differ from a developer's: the port, and the interpreter behind `python`.
    """
    for program in ("bash", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine")
    checkout = tmp_path / "a checkout"
    programs = checkout / ".venv" / "bin"
    programs.mkdir(parents=True)
    (checkout / "latchkey").symlink_to(ROOT / "latchkey")
    shutil.copy(ROOT / "cli" / "latchkey", programs)  # as make does
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
    path = f"{tmp_path}:{programs}:{environment['PATH']}"
    return environment | {"PATH": path, "LATCHKEY_DATA_DIR": str(server.data_dir)}


@pytest.mark.slow
def test_what_an_operator_pastes_works(tmp_path: Path) -> None:
    administrator, registered, block, *about_stripe = blocks(OPERATING, "sh")
    assert [len(re.findall("stripe|STRIPE|test_payment", one)) > 0 for one in about_stripe] == [True] * 3
    (made,) = re.findall(r"`python -c '(import secrets; .*?)'`", OPERATING.read_text("utf-8"))
    key = subprocess.check_output([sys.executable, "-c", made], text=True).strip()
    with Server("--demo", "--ops-port", "0", *QUICK, environment={"LATCHKEY_OPERATOR_KEYS": key}) as server:
        environment = {**terminal(tmp_path, server.ready()), "OPERATOR_KEY": key}
        listening = re.search(r"operations on (\S+)$", server.log, re.MULTILINE)
        assert listening
        script = block.replace("http://localhost:8081", listening[1])
        assert script != block
        appointed, done = (
            subprocess.run(
                ["bash", "-euo", "pipefail", "-c", pasted],
                cwd=ROOT,
                env=environment,
                text=True,
                capture_output=True,
                timeout=60,
                check=True,
            )
            for pasted in (administrator + registered, script)
        )
        server.stop()
    assert re.search(r"^role +admin$", appointed.stdout, re.MULTILINE)
    assert re.search(r"^client_secret +lk_cs_", appointed.stdout, re.MULTILINE)
    credited, _, rest = done.stdout.partition("\n")
    assert json.loads(credited)["paid"] == CREDITS + 5_000_000
    assert "amount     -1.000000 USD" in rest
    assert [line.split()[1:3] for line in rest.splitlines()[-3:]] == [
        ["grant", "-1.000000"],
        ["grant", "5.000000"],
        ["grant", "5.000000"],
    ]
    assert done.stderr == ""


@pytest.mark.slow
def test_what_a_developer_pastes_works(tmp_path: Path) -> None:
    pasted = blocks(QUICKSTART, "sh")
    with Server("--demo", *QUICK) as server:
        url = server.ready().url
        assert sum(block.count("http://localhost:8080") for block in pasted) == 1
        script = "".join(f"echo '# {n}'\n{block}" for n, block in enumerate(pasted))
        script = script.replace("http://localhost:8080", url)
        environment = terminal(tmp_path, server)
        complaints = tmp_path / "complaints"
        with complaints.open("w") as file:
            bash = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", script],
                cwd=ROOT,
                env=environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )
        watchdog = threading.Timer(180, bash.kill)
        watchdog.daemon = True
        watchdog.start()
        with bash:
            assert bash.stdin is not None
            assert bash.stdout is not None
            printed = ""
            for line in bash.stdout:
                printed += line
                if line.startswith(f"{url}/oauth/authorize?"):
                    bash.stdin.write(asyncio.run(_allow(line.strip())) + "\n")
                    bash.stdin.flush()
        watchdog.cancel()
        assert (bash.returncode, complaints.read_text()) == (0, ""), printed
        server.stop()
    said = [part.strip() for part in re.split(r"^# \d+\n", printed, flags=re.MULTILINE)][1:]
    registered, _, nothing, exchanged, minted, person, refreshed, kept, paid, revoked = said
    assert registered.startswith("client_id ")
    assert (nothing, minted) == ("", "")
    for response in (exchanged, refreshed):
        answer = json.loads(response)
        assert (answer["token_type"], answer["expires_in"], answer["scope"]) == ("Bearer", 3600, "profile")
    userinfo = json.loads(person)
    assert len(userinfo.pop("sub")) == 32
    assert userinfo.pop("picture").startswith("http://localhost:")
    assert userinfo == {"email": EMAIL, "email_verified": True, "name": NAME}
    assert json.loads(kept) == {"text": "Hello"}
    reply, balance = map(json.loads, paid.splitlines())
    assert reply["content"] == [{"type": "text", "text": "Hello"}]
    assert reply["credits"] == {"charged": CREDITS - balance["spendable"], "remaining": balance["spendable"]}
    assert revoked.split("\n") == ["{}", "401"]


@pytest.mark.slow
def test_what_an_administrator_pastes_works(tmp_path: Path) -> None:
    served, variables, first, key_commands, *others = blocks(ADMINISTRATION, "sh")
    assert "serve --ops-port" in served
    dry_run = next(n for n, script in enumerate(others) if script.startswith("TOKEN="))
    # The act takes the token of the dry run from the same terminal.
    pasted = [first, *others[:dry_run], "".join(others[dry_run : dry_run + 2]), *others[dry_run + 2 :]]
    with Server("--ops-port", "0", *QUICK) as server:
        environment = terminal(tmp_path, server.ready()) | {"PYTHONPATH": str(ROOT)}
        listening = re.search(r"operations on (\S+)$", server.log, re.MULTILINE)
        assert listening

        def run(script: str) -> str:
            done = subprocess.run(
                ["bash", "-euc", script],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
            return done.stdout

        made = json.loads(
            run(key_commands.splitlines()[0].replace("support", "admin").partition(" --address")[0] + " --json")
        )
        ada = json.loads(run("latchkey user create --email ada@example.com --name Ada --json"))
        # Without this flag, curl succeeds whatever a server answers.
        curl = shutil.which("curl")
        (tmp_path / "curl").write_text(f'#!/bin/sh\nexec {curl} --fail-with-body -sS "$@"\n')
        (tmp_path / "curl").chmod(0o755)
        for example, value in (
            ("http://localhost:8081", listening[1]),
            ("lk_ok_…", made["key"]),
            ("PERSON=…", f"PERSON={ada['sub']}"),
        ):
            assert example in variables
            variables = variables.replace(example, value)
        assert len(pasted) > 12
        for script in pasted:
            run(variables + script)
