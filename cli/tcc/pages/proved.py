"""The part of a page in which a proved program checks the artifact again, in the reader's browser.

The page holds the file and the program (``proved.js``, extracted from proofs/checker); ``page.js``
runs it when the page is opened, offline.  Nothing of it was run when the page was written.
Cost: 4/3 of the file; past :data:`MOST` the page says so instead.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Final

from tcc.pages import Page, Section, element, joined, note
from tcc_certs.formats.artifact import read_artifact

MOST: Final = 2 * 1024 * 1024
_DOES = (
    "What it says of a file that it calls VALID is a theorem about the program: the file is, byte "
    "for byte, what the format writes for an automaton whose counts, weights, bounds and digests "
    "are right in every state, no two of whose states have the same plans, and all of whose states "
    "are reached; its calls, costs, tools and limits are those of the grammar inside the file."
)
_DOES_NOT = (
    "That the plans are the grammar's it does not show: tcc check --core does. It reads no ledger. "
    "Trusted are Coq, its extraction, this browser, and the code for bytes, whole numbers and "
    "BLAKE3; and that this page holds the program: the page's bytes are as trustworthy as where "
    "they came from."
)


def with_proof(page: Page, artifact: bytes) -> Page:
    """The page with the artifact and the program that checks it.

    Args:
        artifact: bytes whose certificates hold; on the page of a session, those it is held to.
    """
    whose = "" if page.kind == "artifact" else "This is about the artifact, not the ledger. "
    lead = f"{whose}A second checker, extracted from a machine-checked proof."
    if len(artifact) > MOST:
        body = note(
            f"The artifact has {len(artifact)} bytes, and a page holds {MOST} at most: nothing is "
            "checked here. tcc check --kernel proved checks it."
        )
        return _and(page, Section(name="proved", title="Checked again", lead=lead, body=body))
    digest = read_artifact(artifact, digests=False).digest.hex()
    banner = element(
        "div",
        element("span", "!", class_="sign", aria_hidden="true"),
        element(
            "div",
            element("strong", "NOT CHECKED"),
            element("p", "This page checks itself where scripts are on."),
            class_="said",
        ),
        class_="verdict doubtful",
        role="status",
        id="proved-verdict",
    )
    held = element(
        "data",
        value=base64.b64encode(artifact).decode("ascii"),
        id="proved-file",
        data_digest=digest,
        hidden=True,
    )
    body = joined([banner, element("p", _DOES), element("p", _DOES_NOT), held])
    part = Section(name="proved", title="Checked again", lead=lead, body=body)
    return replace(_and(page, part), programs=("proved.js",))


def _and(page: Page, part: Section) -> Page:
    return replace(page, sections=[*page.sections, part])
