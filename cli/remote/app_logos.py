"""The logo in the options of `app create` and `app update`, against a server elsewhere."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from cli.remote.client import RemoteServer, part


def set_logo(server: RemoteServer, client_id: str, args: Namespace) -> dict[str, Any]:
    """Sets the logo that this machine read and made small, or removes it. Returns the app; nothing without the
    option."""
    logo: bytes | None = getattr(args, "logo_file", None)
    if logo is None:
        return {}
    path = f"/apps/{part(client_id)}/logo"
    record: dict[str, Any] = server.upload(path, logo, "image/webp") if logo else server.do("DELETE", path)
    return record
