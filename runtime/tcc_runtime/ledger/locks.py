"""Locks on open files, where the system has them; they end with the file, or with the process.

Cost: a system call.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":

    def locked(handle: int) -> bool:
        """There is nothing to lock with."""
        return True
else:
    import fcntl

    def locked(handle: int) -> bool:
        """Locks an open file until it is closed; False where another one has it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # a file system without locks
        return True
