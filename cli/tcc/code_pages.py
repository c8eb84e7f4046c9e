"""What a code means, wherever its page is: title, text, and a link to it.

The pages of grammars' codes are in the catalogue of the compiler, those of the kernel's in
:mod:`tcc.codes`, those of the pipeline beside it.  A link leads below TCC_DOCS_URL, the folder
`docs` of a checkout as a forge or a site shows it; without that the code is named, by a name that
leads nowhere.
"""

from __future__ import annotations

import os
import re

from tcc.codes import explain_code, page_of, title
from tcc_certs.errors import Code
from tcc_compiler.language.catalogue import CATALOGUE, explain
from tcc_experiments.pipeline.codes import TEXTS as OF_PIPELINE

DOCS = "TCC_DOCS_URL"


def text_of(code: str) -> str | None:
    """The page of a code as plain text; None where there is no such code."""
    return explain(code) or explain_code(code) or _of_pipeline(code)


def _of_pipeline(code: str) -> str | None:
    found = next((known for known in OF_PIPELINE if known.value == code), None)
    if found is None:
        return None
    return f"{code}: {title(found)}\n\n{OF_PIPELINE[found]}\n\nThe call failed; docs/pipeline.md."


def titles() -> dict[str, str]:
    """Every code with what is wrong, in a few words."""
    pages = {code: entry.title for code, entry in CATALOGUE.items()}
    return pages | {code.value: title(code) for code in (*Code, *OF_PIPELINE)}


def link_of(code: str) -> str:
    """Where the page of a code is, a URI."""
    base = os.environ.get(DOCS, "").rstrip("/")
    if not re.fullmatch(r"https?://[!-~]+", base):
        return f"urn:tcc:code:{code}"
    entry = CATALOGUE.get(code)
    if entry is None and _of_pipeline(code) is not None:
        return f"{base}/pipeline.md"
    if entry is None:
        return f"{base}/{re.split(' |,', page_of(Code(code)))[0].removeprefix('docs/')}"
    anchor = re.sub(r"[^a-z0-9_ -]", "", f"{code}: {entry.title}".lower()).replace(" ", "-")
    return f"{base}/errors.md#{anchor}"
