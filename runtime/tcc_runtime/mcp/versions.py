"""The two ways in which MCP is spoken, and what of each the relay and the line server say.

Until 2025-11-25 a connection begins with `initialize`; since 2026-07-28 every request carries its
version and its client's capabilities in `_meta`, and there is no handshake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_LISTED_FOR_MS = 300_000


def envelope(version: str) -> dict[str, Any]:
    """The `_meta` of a stateless request of ours: no capabilities, so no server may ask back."""
    return {
        VERSION_KEY: STATELESS,
        CAPABILITIES_KEY: {},
        CLIENT_KEY: {"name": "tcc", "version": version},
    }


def stamped(result: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """`result` with what a stateless answer carries beside it."""
    return {**result, "resultType": "complete", "_meta": {SERVER_KEY: dict(server)}}


def cacheable(result: Mapping[str, Any]) -> dict[str, Any]:
    """`result` with the hint that it holds for as long as the process does."""
    return {**result, "ttlMs": _LISTED_FOR_MS, "cacheScope": "private"}
