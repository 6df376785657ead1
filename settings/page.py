"""docs/settings.md, made of the declarations."""

from __future__ import annotations

from collections.abc import Sequence

from settings.types import Setting

_PREFACE = """\
# Settings

<!-- Made by `make docs` from settings/declared.py; do not edit. -->

A setting comes from its flag, else from its environment variable, else from the configuration file, else it has its
default. An environment variable that is empty counts as not set. A relative path starts at the working directory.

`--config FILE` (or `LATCHKEY_CONFIG`) names a TOML file. Its keys are the flags without dashes in front and with `_`
for `-`; lists by commas may be arrays; an unknown key is an error. One file serves the server and `manage.py`, which
passes over what it does not read. Keep it readable by the server's user only when it holds keys or passwords:

```toml
base_url = "https://id.example.org"
trusted_proxies = ["127.0.0.1", "10.0.0.0/8"]
redis_url = "unix:///run/redis/redis.sock"
```

On SIGHUP a running server reads the file anew, and what the environment and flags do not say better. *SIGHUP* marks the
settings of which it takes up another value then; the others need a new start. See [operations.md](operations.md).

`--demo` and `--webhooks` have counterparts `--no-demo` and `--no-webhooks`; in the environment and the file, true is
`true`, `1`, `yes` or `on`.

In Kubernetes, a Service named `latchkey` makes the cluster set `LATCHKEY_PORT` to an address, one named `latchkey-ops`
`LATCHKEY_OPS_PORT`, which is refused here: set `enableServiceLinks: false` in the pod, or name the Service otherwise.
"""


def rendered(settings: Sequence[Setting]) -> str:
    """Return the page."""
    parts = [_PREFACE]
    for group in dict.fromkeys(item.group for item in settings):
        parts.append(
            f"\n## {group}\n\n| Flag | Environment | Default | Meaning | Taken up on |\n|---|---|---|---|---|\n"
        )
        parts += [_row(item) for item in settings if item.group == group]
    return "".join(parts)


def _row(item: Setting) -> str:
    flag = f"`{item.option}{' ' if item.metavar else ''}{item.metavar}`" if item.flag else "none"
    meaning = item.meaning + (" Also read by `manage.py`." if item.where == "both" else "")
    taken = "SIGHUP" if item.live else "start"
    return (
        f"| {flag} | `{item.environment}` | {f'`{item.default}`' if item.default else 'none'} | {meaning} | {taken} |\n"
    )
