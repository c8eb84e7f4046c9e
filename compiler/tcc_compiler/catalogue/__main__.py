"""``python -m tcc_compiler.catalogue FILE`` writes the page of all codes."""

from __future__ import annotations

import sys
from pathlib import Path

from tcc_compiler.catalogue import page

Path(sys.argv[1]).write_text(page(), "utf-8")
