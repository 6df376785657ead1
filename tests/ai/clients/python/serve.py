"""What tests/ai/clients/driving.py speaks with: a line of JSON for each call, and one for each answer. A call names a
client, what it does, the server, a token, a model, and whether it streams."""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

# Otherwise litellm asks the network for prices, and both libraries write what they do.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LANGSMITH_TRACING": "false"}
warnings.simplefilter("ignore")

import frameworks  # noqa: E402  # reads the environment
import official  # noqa: E402  # reads it too

CLIENTS: dict[str, Any] = {**official.CLIENTS, **frameworks.CLIENTS}


def told(error: BaseException) -> dict[str, Any]:
    """An error as the app sees it."""
    status = getattr(error, "status_code", None)
    return {"error": type(error).__name__, "status": status, "said": str(error)}


def main() -> None:
    """Answers calls until there are no more."""
    answers, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps(sorted(CLIENTS)), file=answers, flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = {"value": getattr(CLIENTS[job["client"]], job["call"])(job)}
        except Exception as error:
            answer = told(error)
            if os.environ.get("CLIENTS_LOUD"):
                sys.excepthook(type(error), error, error.__traceback__)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
