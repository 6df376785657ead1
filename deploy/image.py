"""Builds the image and proves it: a base by debootstrap, the build, and people and an app against the container.

    python -m deploy.image base                 # a Debian 12 from the distribution's archive, imported as BASE
    python -m deploy.image build --base BASE    # deploy/Dockerfile on that base, or on the published one
    python -m deploy.image test                 # with the embedded store and with a Redis

Needs podman or docker; `base` also needs mmdebstrap. Exit status 1: the image breaks a promise.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.container import Engine, ran, say
from deploy.image_proof import prove_embedded, prove_external
from deploy.programs import HERE, ROOT, tool

OWN_BASE = "localhost/latchkey-base:12"
TAG = "localhost/latchkey"
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*")


def options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m deploy.image", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("base", "build", "test"))
    parser.add_argument("--engine", default="podman", metavar="COMMAND", help="default: podman")
    parser.add_argument("--base", default="", metavar="IMAGE", help="the base to build on (default: the published one)")
    parser.add_argument("--tag", default=TAG, metavar="IMAGE", help=f"the name of the image (default {TAG})")
    parser.add_argument("--more", default="", metavar="FLAGS", help="more flags for the engine's build or run")
    return parser.parse_args(argv)


def base(engine: Engine) -> None:
    """A minimal Debian 12, without documentation, as Debian's own slim image is."""
    with tempfile.TemporaryDirectory(prefix="latchkey-base-") as directory:
        rootfs = Path(directory) / "base.tar"
        slim = [f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT]
        slim.append("--dpkgopt=path-include=/usr/share/doc/*/copyright")
        ran(tool("mmdebstrap"), "--variant=minbase", "--include=ca-certificates", *slim, "bookworm", str(rootfs))
        ran(*engine.command, "import", str(rootfs), OWN_BASE)
    say(f"{OWN_BASE} is there")


def build(engine: Engine, on: str, tag: str, more: Sequence[str]) -> None:
    """Builds the image. Podman needs the format of Docker: that of OCI has no health check."""
    docker = ["--format", "docker"] if "podman" in engine.command[0] else []
    on_base = ["--build-arg", f"BASE={on}"] if on else []
    command = [*engine.command, "build", *docker, *on_base, *more, "--file", str(HERE / "Dockerfile"), "--tag", tag]
    # Podman 4.3 doesn't look for Dockerfile.dockerignore, Docker does.
    ignored = ["--ignorefile", str(HERE / "Dockerfile.dockerignore")] if docker else []
    subprocess.run([*command, *ignored, str(ROOT)], check=True, env={**os.environ, "DOCKER_BUILDKIT": "1"})
    say(f"{tag}: {engine.size(tag) / 1e6:.0f} MB")


def main(argv: Sequence[str] | None = None) -> int:
    """Does one of the three."""
    given = options(argv)
    engine, more = Engine(shlex.split(given.engine)), shlex.split(given.more)
    if given.what == "base":
        base(engine)
    elif given.what == "build":
        build(engine, given.base, given.tag, more)
    else:
        asyncio.run(prove_embedded(engine, given.tag, more))
        asyncio.run(prove_external(engine, given.tag, more))
        say("The image keeps its promises.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (AssertionError, subprocess.CalledProcessError) as error:
        say(str(error))
        sys.exit(1)
