"""``python -m tcc.outputs FOLDER``: write the published copies of the schemas."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tcc.outputs import DOCUMENTS, schema_of


def text_of(name: str) -> str:
    """The published text of a schema."""
    return json.dumps(schema_of(name), indent=1) + "\n"


if __name__ == "__main__":
    for name in DOCUMENTS:
        (Path(sys.argv[1]) / f"{name}.json").write_text(text_of(name), "utf-8")
