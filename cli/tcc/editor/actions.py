"""Code actions: the safe fixes of lints, each shown to keep the plans, and allowing a lint.

Cost: that of compiling the fixed text, once for each, within the limits of the diagnostics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lsprotocol import types

from tcc.config_file import LINTS
from tcc.editor.diagnosing import Diagnosed, ends, front_of
from tcc.editor.positions import Places
from tcc.editor.texts import Document, Texts
from tcc.linting import has_plans
from tcc_compiler.editing.allowing import allowance
from tcc_compiler.language.source import Source
from tcc_compiler.lint.finding import Finding
from tcc_compiler.lint.fixing import mended

MOST = 4  # findings of one question that are compiled anew
_ALL = -1
_SECONDS = 3.0


def code_actions(
    document: Document, diagnosed: Diagnosed, texts: Texts, params: types.CodeActionParams
) -> list[types.CodeAction]:
    """What an editor may offer for a range of a document that was diagnosed as it stands."""
    linted = diagnosed.linted
    source = None if linted is None else _source(document, diagnosed, texts)
    if linted is None or source is None or source.text != document.text:
        return []
    places = texts.places(document.text)
    low, high = places.offset(params.range.start), places.offset(params.range.end)
    numbered = [
        (number, finding)
        for number, finding in enumerate(linted.findings)
        if _touches(finding, source, low, high)
    ]
    only = params.context.only
    made: list[types.CodeAction] = []
    if _wanted("quickfix", only):
        made += _fixes(numbered, document, diagnosed, places)
        made += _allowances(numbered, source, document, places)
    if _wanted("source.fixAll.tcc", only):
        made += _fix_all(document, diagnosed, places)
    return made


def _wanted(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    return only is None or any(kind == str_of(o) or kind.startswith(f"{str_of(o)}.") for o in only)


def str_of(kind: types.CodeActionKind | str) -> str:
    """The text of a kind."""
    return kind.value if isinstance(kind, types.CodeActionKind) else kind


def _source(document: Document, diagnosed: Diagnosed, texts: Texts) -> Source | None:
    linted = diagnosed.linted
    for source in () if linted is None else linted.sources.values():
        if texts.uri(source, diagnosed.document) == document.uri:
            return source
    return None


def _touches(finding: Finding, source: Source, low: int, high: int) -> bool:
    span = finding.diagnostic.span
    if span is None:
        return low == 0
    if span.file != source.name:
        return False
    start, end = ends(source, span)
    return start <= high and low <= end


def _fixes(
    numbered: Sequence[tuple[int, Finding]],
    document: Document,
    diagnosed: Diagnosed,
    places: Places,
) -> Iterator[types.CodeAction]:
    if document.uri != diagnosed.document.uri:
        return
    for number, finding in [item for item in numbered if item[1].fix][:MOST]:
        text = _fixed(number, [finding], diagnosed)
        if text is not None:
            title = f"Fix {finding.diagnostic.code}: the plans stay the same"
            edit = changed_part(document.text, text, places)
            yield _action(title, types.CodeActionKind.QuickFix, document, edit)


def _allowances(
    numbered: Sequence[tuple[int, Finding]], source: Source, document: Document, places: Places
) -> Iterator[types.CodeAction]:
    seen: set[tuple[str, int]] = set()
    for _, finding in numbered:
        made = allowance(source, finding.diagnostic, LINTS)
        if made is None or (finding.diagnostic.code, made.start) in seen:
            continue
        seen.add((finding.diagnostic.code, made.start))
        edit = types.TextEdit(range=places.range(made.start, made.end), new_text=made.text)
        title = f"Allow {finding.diagnostic.code} here"
        yield _action(title, types.CodeActionKind.QuickFix, document, edit)


def _fix_all(
    document: Document, diagnosed: Diagnosed, places: Places
) -> Iterator[types.CodeAction]:
    linted = diagnosed.linted
    if linted is None or document.uri != diagnosed.document.uri:
        return
    found = [finding for finding in linted.findings if finding.fix]
    text = _fixed(_ALL, found, diagnosed) if found else None
    if text is not None:
        edit = changed_part(document.text, text, places)
        title = "Fix all lints that can be fixed: the plans stay the same"
        yield _action(title, "source.fixAll.tcc", document, edit)


def _fixed(number: int, found: Sequence[Finding], diagnosed: Diagnosed) -> str | None:
    """The text after some fixes, where it was compiled and has the same plans."""
    linted = diagnosed.linted
    if linted is None or linted.text is None or linted.root_state is None:
        return None
    if number not in diagnosed.fixes:
        text = mended(linted.text, found)
        options = replace(diagnosed.options, timeout=_SECONDS)
        front = front_of(diagnosed.document, text, diagnosed.texts)
        diagnosed.fixes[number] = text if has_plans(front, linted, options) else None
    return diagnosed.fixes[number]


def changed_part(before: str, after: str, places: Places) -> types.TextEdit:
    """One edit that makes one text of another, without what both begin and end with."""
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    most -= start
    end = next((at for at in range(most) if before[-1 - at] != after[-1 - at]), most)
    # No place of the protocol is between a CR and its LF.
    start -= before[start - 1 : start + 1] == "\r\n"
    end -= end > 0 and before[len(before) - end - 1 : len(before) - end + 1] == "\r\n"
    where = places.range(start, len(before) - end)
    return types.TextEdit(range=where, new_text=after[start : len(after) - end])


def _action(
    title: str, kind: types.CodeActionKind | str, document: Document, edit: types.TextEdit
) -> types.CodeAction:
    changes = types.WorkspaceEdit(changes={document.uri: [edit]})
    return types.CodeAction(title=title, kind=kind, edit=changes)
