"""Notifies a receiver about questions: runs a command, or posts to a URL, once for each question.

Threads do this, so that no call waits for it.  A failure is reported and not tried again, because
the receiver may have got the message.  `tcc session pending` lists all open questions.  Text:
docs/ask.md.  Cost: a process or a request for each question; at most 10,000 wait.
"""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.mcp.links.http_client import check_url, is_url

_MOST: Final = 10_000
_SECONDS: Final = 30.0  # the longest time of a command
_ANSWER: Final = 10.0  # seconds, the longest time of a request
_THREADS: Final = 4


class Notifier:
    """Notifies one receiver about questions.

    Args:
        target: an http or https URL, or a command with its arguments.
        note: called with messages for the owner.

    Raises:
        ValueError: the target is neither.
    """

    def __init__(self, target: str, note: Callable[[str], None]) -> None:
        self._note = note
        self._url = ""
        self._command: Sequence[str] = ()
        if is_url(target):
            check_url(target)
            self._url = target
        else:
            self._command = shlex.split(target)
            if not self._command or "\0" in target:
                raise ValueError("neither a URL nor a command")
        self._waiting: queue.Queue[tuple[str, bytes]] = queue.Queue(_MOST)
        self._threads: list[threading.Thread] = []

    def tell(self, question: Pending, session: str) -> None:
        """Queue a notification about a question."""
        message: dict[str, Any] = {"kind": "ask", "session": session, **question.to_json()}
        data = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        try:
            self._waiting.put_nowait((question.id, data))
        except queue.Full:
            self._note(f"--notify: nobody is told of question {question.id}: too many wait")
            return
        if len(self._threads) < _THREADS:
            thread = threading.Thread(target=self._work, name="tcc-notify", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while True:
            question_id, data = self._waiting.get()
            try:
                trouble = self._post(data) if self._url else self._run(data)
            except Exception as error:  # noqa: BLE001  # the thread goes to the next question
                trouble = f"{type(error).__name__}: {error}"
            if trouble:
                self._note(f"--notify: question {question_id}: {trouble}")

    def _run(self, data: bytes) -> str:
        """Run the command with the question at its standard input; return the error, or ''."""
        # Standard output belongs to the client of the gate.  A command that outlives the gate must
        # not keep its standard error open.
        with subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                process.communicate(data, timeout=_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                return f"the command did not end in {_SECONDS:g} s"
        return f"the command ended with {process.returncode}" if process.returncode else ""

    def _post(self, data: bytes) -> str:
        """Post the question; return the error, or ''."""
        import httpx2

        answer = httpx2.post(
            self._url,
            content=data,
            headers={"content-type": "application/json"},
            timeout=_ANSWER,
            follow_redirects=False,
            trust_env=False,
        )
        return "" if answer.is_success else f"the answer has status {answer.status_code}"
