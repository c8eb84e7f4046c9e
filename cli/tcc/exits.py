"""Exit codes, the same for every command."""

from __future__ import annotations

CLEAN = 0
FINDINGS = 1
BAD_USAGE = 2
DECLINED = 2
INTERNAL = 3
