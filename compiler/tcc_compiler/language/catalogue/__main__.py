"""``python -m tcc_compiler.language.catalogue FILE`` writes the page with all codes."""

from __future__ import annotations

import sys
from pathlib import Path

from tcc_compiler.language.catalogue import page

Path(sys.argv[1]).write_text(page(), "utf-8")
