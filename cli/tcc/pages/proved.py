"""The part of a page in which a proved program checks again, in the reader's browser.

The page holds the artifact, on that of a session the ledger, and the program (``proved.js``,
extracted from proofs/checker); ``page.js`` runs it when the page is opened, offline.  Nothing of it
was run when the page was written.
Cost: 4/3 of the files; past :data:`MOST` the page says so instead.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Final

from tcc.pages import Html, Page, Section, element, joined, note
from tcc_certs.formats.artifact import read_artifact

MOST: Final = 2 * 1024 * 1024
_DOES = (
    "What it says of a file that it calls VALID is a theorem about the program: the file is, byte "
    "for byte, what the format writes for an automaton whose counts, weights, bounds and digests "
    "are right in every state (counts of derivations, where a call repeats in a state; the least "
    "of their bits that are enough, where they are rounded); all of its states are reached, and no "
    "two have the same plans or, where a call repeats, the same graph below; its calls, costs, "
    "tools and limits are those of the grammar inside the file."
)
_OF_LEDGERS = (
    "What it says of a ledger, VALID or INCOMPLETE, over such an artifact: the file is, byte for "
    "byte, the chain of its records; whatever happened to calls of unknown outcome, the calls done "
    "are the beginning of a plan, until an answer leads nowhere, after which nothing is done, and "
    "with Conformant they are a whole plan; in every world of what is not known they meet each "
    "require and forbid over open values, and each limit of uses per value, of version 1.1, values "
    "told apart by their digests. DECLINED is no sign of a fault: the ledger has a form of which "
    "there is no theorem; docs/proved.md lists them."
)
_NOT_OF_LEDGERS = (
    "Of a ledger it does not show what the first section lists as its writer's word, such as that "
    "every call was recorded; nor does it look at MACs and at what digests are of, which takes the "
    "key: tcc validate --key does. "
)
_DOES_NOT = (
    "That the plans are the grammar's it does not show: tcc check --core does. {}"
    "Trusted are Coq, its extraction, this browser, and the code for bytes, whole numbers and "
    "BLAKE3; and that this page holds the program: the page's bytes are as trustworthy as where "
    "they came from."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLedger:
    """The ledger of a session, for the page that is about it.

    Attributes:
        data: the lines that were validated; None where they are more than a page holds.
        head: of the chain at their end, hex.
        due: the verdict and the claim of the validation, such as ``VALID: Conformant``.
    """

    data: bytes | None
    head: str
    due: str


def with_proof(page: Page, artifact: bytes, ledger: HeldLedger | None = None) -> Page:
    """The page with the artifact, and the ledger of a session over it, and the program that checks
    them.

    Args:
        artifact: bytes whose certificates hold.
    """
    lead = "A second checker, extracted from a machine-checked proof."
    if len(artifact) > MOST:
        verb = "check" if ledger is None else "validate"
        body: Html = note(
            f"The artifact has {len(artifact)} bytes, and a page holds {MOST} at most: nothing is "
            f"checked here. tcc {verb} --kernel proved checks it."
        )
        return _and(page, Section(name="proved", title="Checked again", lead=lead, body=body))
    digest = read_artifact(artifact, digests=False).digest.hex()
    parts: list[object] = [_banner("proved-verdict")]
    if ledger is not None:
        parts = [
            element("h3", "The ledger"), *_of_ledger(ledger), element("h3", "The artifact"), *parts
        ]  # fmt: skip
    parts += [
        element("h3", "What that says") if ledger is not None else "",
        element("p", _DOES),
        element("p", _OF_LEDGERS) if ledger is not None else "",
        element("p", _DOES_NOT.format(_NOT_OF_LEDGERS if ledger else "It reads no ledger. ")),
        _held(artifact, id="proved-file", data_digest=digest),
    ]
    part = Section(name="proved", title="Checked again", lead=lead, body=joined(parts))
    return replace(_and(page, part), programs=("proved.js",))


def _of_ledger(ledger: HeldLedger) -> list[Html]:
    if ledger.data is None:
        return [
            note(
                f"With the artifact it has more than the {MOST} bytes that a page holds: it is not "
                "checked here. tcc validate --kernel proved checks it."
            )
        ]
    held = _held(ledger.data, id="proved-ledger", data_head=ledger.head, data_due=ledger.due)
    return [_banner("proved-session"), held]


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
