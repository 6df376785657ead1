"""docs/settings.md, generated from the declarations."""

from __future__ import annotations

from collections.abc import Sequence

from settings.types import Setting

_PREFACE = """\
# Settings

<!-- Made by `make docs` from settings/serving.py and settings/offers.py; do not edit. -->

Set a value by its flag, its environment variable or the configuration file; the first of these counts. An empty
environment variable counts as not set. Relative paths start at the working directory.

`--config FILE` (or `LATCHKEY_CONFIG`) names a TOML file. Its keys are the flags without leading dashes and with `_` for
`-`; comma-separated lists may be arrays; an unknown key is an error. One file serves the server and `latchkey`, which
ignores the settings that it doesn't read. If the file has keys or passwords, only the server's user may read it:

```toml
base_url = "https://id.example.org"
trusted_proxies = ["127.0.0.1", "10.0.0.0/8"]
redis_url = "unix:///run/redis/redis.sock"
```

On SIGHUP a running server reads the file again; flags and environment still come first. Settings marked *SIGHUP* take
effect then, the others need a restart. See [operations.md](operations.md#reloading).

`--demo` and `--webhooks` have the counterparts `--no-demo` and `--no-webhooks`. In the environment and the file, write
true as `true`, `1`, `yes` or `on`.

In Kubernetes, a Service named `latchkey` makes the cluster set `LATCHKEY_PORT` to an address, and one named
`latchkey-ops` sets `LATCHKEY_OPS_PORT`. Latchkey refuses these values: set `enableServiceLinks: false` in the pod, or
give the Service another name.
"""


def rendered(settings: Sequence[Setting]) -> str:
    """Return the page."""
    parts = [_PREFACE]
    for group in dict.fromkeys(item.group for item in settings):
        parts.append(
            f"\n## {group}\n\n| Flag | Environment | Default | Meaning | Takes effect on |\n|---|---|---|---|---|\n"
        )
        parts += [_row(item) for item in settings if item.group == group]
    return "".join(parts)


def _row(item: Setting) -> str:
    flag = f"`{item.option}{' ' if item.metavar else ''}{item.metavar}`" if item.flag else "none"
    meaning = item.meaning + (" Also read by `latchkey`." if item.where == "both" else "")
    taken = "SIGHUP" if item.live else "start"
    return (
        f"| {flag} | `{item.environment}` | {f'`{item.default}`' if item.default else 'none'} | {meaning} | {taken} |\n"
    )
