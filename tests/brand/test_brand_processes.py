"""Server processes with a brand: the example starts with the demo, a mistake ends the start, workers share a reload."""

from __future__ import annotations

import signal
import urllib.request
from pathlib import Path

import pytest

from dev.lab.engines import wait_until
from tests.support.data.brands import ROOT, write_brand
from tests.support.processes.processes import QUICK, Server

EXAMPLE = str(ROOT / "examples" / "brand" / "brand.toml")


def page_of(server: Server, path: str = "/signin") -> str:
    with urllib.request.urlopen(f"{server.here}{path}", timeout=10) as answer:  # noqa: S310  # our own server
        return str(answer.read().decode())


def test_the_demo_starts_with_the_example(tmp_path: Path) -> None:
    with Server("--demo", "--brand", EXAMPLE, *QUICK) as running:
        assert "One account for every berth." in page_of(running.ready(), "/")
        assert running.stop() == 0


def test_a_start_with_an_unreadable_colour_says_what_to_do(tmp_path: Path) -> None:
    path = write_brand(tmp_path, color="#ffcc00")
    with Server("--brand", str(path)) as running:
        assert running.wait() == 2
        (line,) = running.log.splitlines()
        assert "color must be readable on our light surfaces" in line
        assert "1.37:1" in line
        assert "choose a darker one, such as #876c00" in line
        assert str(path) in line
        assert not running.data_dir.exists()


@pytest.mark.slow
def test_workers_have_one_brand_after_a_reload(tmp_path: Path) -> None:
    path = write_brand(tmp_path, name="Acme", color="#1f4fd8")
    with Server("--brand", str(path), "--workers", "2", *QUICK) as running:
        running.ready()
        assert all("· Acme</title>" in page_of(running) for _ in range(8))
        write_brand(tmp_path, name="Ajax")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: all("· Ajax</title>" in page_of(running) for _ in range(12)))
        write_brand(tmp_path, name="Atlas", color="#ffcc00")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "reload failed" in running.log)
        assert "1.37:1" in running.log
        assert all("· Ajax</title>" in page_of(running) for _ in range(12))
        assert running.stop() == 0
