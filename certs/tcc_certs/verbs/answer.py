"""What a verb hands back to be printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcc_certs.codec import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An exit code, a text for people, and a document for programs."""

    exit_code: int
    text: str
    document: Mapping[str, Json]
