"""The unit for systemd, checked by systemd's tools; its command runs."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

from deploy.programs import HERE, ROOT, changed, ran, tool
from settings.declared import Settings

PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
MOST_EXPOSED = 15
"""Of 100, as `systemd-analyze security` counts."""


# systemd.


def unit(tmp_path: Path) -> Path:
    """The unit, for this checkout."""
    path = tmp_path / "latchkey.service"
    path.write_text(changed("latchkey.service", python=sys.executable, root=str(ROOT)))
    return path


def directive(text: str, name: str) -> str:
    """Its value."""
    [found] = re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)
    return str(found)


def test_the_unit_is_one_and_leaves_little_open(tmp_path: Path) -> None:
    path = unit(tmp_path)
    said = ran(tool("systemd-analyze"), "verify", "--man=no", str(path))
    assert path.name not in said.stdout + said.stderr
    threshold = f"--threshold={MOST_EXPOSED}"
    ran(tool("systemd-analyze"), "security", "--offline=true", "--no-pager", threshold, str(path))


def test_the_socket_is_one_of_the_unit(tmp_path: Path) -> None:
    unit(tmp_path)
    path = tmp_path / "latchkey.socket"
    path.write_text((HERE / path.name).read_text())
    said = ran(tool("systemd-analyze"), "verify", "--man=no", str(path))
    assert path.name not in said.stdout + said.stderr
    assert directive(path.read_text(), "ListenStream") == f"127.0.0.1:{Settings().port}"


def test_the_unit_leaves_time_for_the_drain() -> None:
    text, usual = (HERE / "latchkey.service").read_text(), Settings()
    needed = usual.drain_delay + usual.drain_timeout + 2 * usual.redis_timeout + 10
    assert float(directive(text, "TimeoutStopSec")) >= needed
    assert directive(text, "TimeoutStartSec") == "infinity"  # reading a large store is not cut short
    assert directive(text, "KillMode") == "mixed"
    assert directive(text, "ExecReload") == "/bin/kill -HUP $MAINPID"
    assert directive(text, "User") == "latchkey"


def test_the_server_and_the_commands_read_the_data_directory_from_one_file() -> None:
    text = (HERE / "latchkey.service").read_text()
    assert "--data-dir" not in directive(text, "ExecStart")
    assert f'data_dir = "/var/lib/{directive(text, "StateDirectory")}"' in (ROOT / "docs/operating.md").read_text()


def test_the_command_of_the_unit_starts_and_tells_systemd_without_memory_that_is_written_and_run(
    tmp_path: Path,
) -> None:
    text = unit(tmp_path).read_text()
    config = tmp_path / "latchkey.toml"
    config.write_text(f'host = "127.0.0.1"\nport = 0\nworkers = 2\ndata_dir = "{tmp_path / "data"}"\n')
    command = directive(text, "ExecStart").replace("/etc/latchkey/latchkey.toml", str(config))
    libc = ctypes.CDLL(None, use_errno=True)

    def forbid() -> None:
        os.setsid()
        if libc.prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "MDWE")

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address := str(tmp_path / "notify"))
        manager.settimeout(30)
        environment = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": address}
        with (tmp_path / "out").open("wb") as out:
            process = subprocess.Popen(
                shlex.split(command),
                cwd=directive(text, "WorkingDirectory"),
                env=environment,
                stdout=out,
                stderr=out,
                preexec_fn=forbid,
            )
        try:
            assert manager.recv(100) == b"READY=1", (tmp_path / "out").read_text()
            os.kill(process.pid, 1)
            assert manager.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert manager.recv(100) == b"READY=1"
        finally:
            process.terminate()
            status = process.wait(30)
        assert manager.recv(100) == b"STOPPING=1"
    assert status == 0
    assert all(json.loads(line) for line in (tmp_path / "out").read_text().splitlines())
