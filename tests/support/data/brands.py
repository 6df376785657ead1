"""Files of brands, harmless and hostile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent.parent
LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 40"><path d="M0 0h120v40z" fill="#1f4fd8"/></svg>'


def write_brand(folder: Path, **table: Any) -> Path:
    """A brand's file in this folder. JSON's texts and numbers are TOML's too."""
    path = folder / "brand.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items()), "utf-8")
    return path
