"""The section of a page in which a proved program checks the artifact again, in the browser.

The page contains the artifact and the program (``proved.js``, extracted from proofs/checker).
``page.js`` runs the program offline when a reader opens the page; it does not run when the page is
written.  Cost: 4/3 of the artifact's size.  For an artifact above :data:`MOST` bytes the section
only says that it is too large.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Final

from tcc.pages import Html, Page, Section, element, joined, note
from tcc_certs.formats.artifact import read_artifact

MOST: Final = 2 * 1024 * 1024
_DOES = (
    "What it says of a file that it calls VALID is a theorem about the program: the file is, byte "
    "for byte, what the format writes for an automaton whose counts, weights, bounds and digests "
    "are right in every state (counts of derivations, where a call repeats in a state; the least "
    "of their bits that are enough, where they are rounded); all of its states are reached, and no "
    "two have the same plans or, where a call repeats, the same graph below; its calls, costs "
    "and tools are those of the grammar inside the file."
)
_DOES_NOT = (
    "That the plans are those of the grammar it does not show: tcc check --core does. It reads no "
    "statement and no ledger. Trusted are Coq, its extraction, this browser, and the code for "
    "bytes, whole numbers and BLAKE3; and that this page holds the program: the page's bytes are "
    "as trustworthy as where they came from."
)


def with_proof(page: Page, artifact: bytes) -> Page:
    """Return the page with a section that contains the artifact and its checker.

    Args:
        artifact: the bytes of an artifact whose certificates are valid.
    """
    lead = "A second checker, extracted from a machine-checked proof."
    if len(artifact) > MOST:
        body: Html = note(
            f"The artifact has {len(artifact)} bytes, and a page holds {MOST} at most: nothing is "
            f"checked here. tcc check --kernel proved checks it."
        )
        return _and(page, Section(name="proved", title="Checked again", lead=lead, body=body))
    digest = read_artifact(artifact, digests=False).digest.hex()
    parts = [
        _banner("proved-verdict"),
        element("h3", "What that says"),
        element("p", _DOES),
        element("p", _DOES_NOT),
        _held(artifact, id="proved-file", data_digest=digest),
    ]
    part = Section(name="proved", title="Checked again", lead=lead, body=joined(parts))
    return replace(_and(page, part), programs=("proved.js",))


def _banner(name: str) -> Html:
    return element(
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
        id=name,
    )


def _held(data: bytes, **attributes: str) -> Html:
    value = base64.b64encode(data).decode("ascii")
    return element("data", value=value, hidden=True, **attributes)


def _and(page: Page, part: Section) -> Page:
    return replace(page, sections=[*page.sections, part])
