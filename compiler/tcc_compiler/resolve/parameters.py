"""Parameters of tools: their names and places, and the listed ones with their domains.

Normative text: docs/spec/language.md, sections 2 and 5.  A domain is made only after its size is
known to be small enough.  Cost: linear in the values and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tcc_certs.errors import hidden_in
from tcc_certs.formats.codec import MAX_NAME, written
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Region
from tcc_compiler.language.syntax.words import BLOCK_WORDS, OTHER_TYPES
from tcc_compiler.language.values import REST


def declared_name(
    name: ast.Word, taken: Mapping[str, Region], report: Report, *, inside: bool = False
) -> bool:
    """Whether a parameter may have this name, which none of `taken` has; else it is reported.

    Args:
        inside: it is a field of a record, where no word begins an attribute.
    """
    if name.text in BLOCK_WORDS and not name.quoted and not inside:
        message = f"{quote(name.text)} begins an attribute, and cannot name a parameter"
        report.error("TCC208", name.region, message, f'write "{name.text}" in quotes')
        return False
    if name.text in taken:
        message = f"parameter {quote(name.text)} is declared twice"
        note = [("first declared here", taken[name.text])]
        report.error("TCC201", name.region, message, "take one away, or rename it", note)
        return False
    return plain_name(name, report)


def plain_name(name: ast.Word, report: Report) -> bool:
    """Whether a name is short enough, and shows all of its characters; else reported."""
    hidden = hidden_in(name.text)
    if not name.text:
        message = "a name in quotes has a character at least"
        hint = "write its name between the quotes"
    elif len(name.text) > MAX_NAME:
        message = f"this name has {len(name.text)} characters; {MAX_NAME} are the most"
        hint = "choose a shorter one"
    elif hidden is not None:
        message = f"this name holds U+{ord(hidden):04X}, a control or hidden character"
        hint = "leave it out: a name is shown on terminals and in logs"
    else:
        return True
    report.error("TCC113", name.region, message, hint)
    return False


# Listed parameters: their domains as lists of distinct values.

MAX_CALLS = 1 << 16
_LIST = "list other values: (k: 0.5 | 1 | 1.5)"


@frozen
class ResolvedParameter:
    """A parameter with its values.

    Attributes:
        values: canonical texts, in declared order; the empty text, which may be the first, stands
            for a parameter that is left out.
        numbers: the same as numbers, None where a value is none.
        index: the place of each canonical text that can be written.
        numeric: all values that can be written are numbers.
        observed: the world chooses the value, and not who makes the call.
        region: where its values are listed.
        at: the pointer to its place, None where it is the member of its name.
    """

    name: str
    values: tuple[str, ...]
    numbers: tuple[Fraction | None, ...]
    index: Mapping[str, int]
    numeric: bool
    observed: bool = False
    region: Region | None = None
    at: str | None = None

    @property
    def optional(self) -> bool:
        """Whether a call may leave this parameter out."""
        return self.values[0] == ""


def parameters_of(tool: ast.ToolStatement, report: Report) -> tuple[ResolvedParameter, ...] | None:
    """The listed and then the observed parameters of a tool, None after an error."""
    parameters: dict[str, ResolvedParameter] = {}
    names: dict[str, Region] = {}
    sound = True
    if not _few_enough(tool, report):
        return None
    for place, declared in enumerate((*tool.parameters, *tool.observed)):
        name = declared.name
        sound &= declared_name(name, names, report)
        names.setdefault(name.text, name.region)
        observed = place >= len(tool.parameters)
        values = _values(declared.domain, report)
        at = pointer_of(declared.at, name.text, report)
        fits = _fits_listed(declared, observed, report)
        if values is None or at is False or not fits or _type_alone(declared, observed, report):
            sound = False
            continue
        parameters[name.text] = _parameter(declared, values, observed, at or None)
    return tuple(parameters.values()) if sound else None


def _fits_listed(declared: ast.ParameterDeclaration, observed: bool, report: Report) -> bool:
    """Whether a listed field has no part that only others have; else reported."""
    rest = declared.domain.rest
    if rest is not None and not observed:
        message = "`*` stands for answers that are not listed, and this is an argument"
        hint = "list its values, or declare it with a type behind the semicolon"
        report.error("TCC317", rest, message, hint)
        return False
    if declared.nullable is not None:
        message = "a listed field takes null as one of its values"
        report.error("TCC317", declared.nullable, message, "list it: yes | no | null")
        return False
    return True


def pointer_of(at: ast.Text | None, name: str, report: Report) -> str | bool | None:
    """The pointer to a place; None for the member of the field's name, False after an error."""
    if at is None:
        return None
    text = at.value
    steps = text.split("/")
    sound = not steps[0] and len(steps) <= MAX_STEPS_OF_POINTER
    if not sound or not all(_STEP.fullmatch(step) for step in steps[1:]):
        message = f"{quote(text)} is no pointer of RFC 6901"
        hint = 'write "/member/*/id"; `~0` stands for `~` in a name, `~1` for `/`'
        report.error("TCC317", at.region, message, hint)
        return False
    own = "/" + name.replace("~", "~0").replace("/", "~1")
    return None if text == own else text


MAX_STEPS_OF_POINTER = 64
_STEP = re.compile(r"(?:[^~/\x00-\x1f]|~[01])*")


def _parameter(
    declared: ast.ParameterDeclaration,
    values: Sequence[ast.Value],
    observed: bool,
    at: str | bool | None,
) -> ResolvedParameter:
    absent = 1 if declared.optional else 0
    rest = declared.domain.rest
    if rest is not None:
        values = (*values, ast.Value(REST, None, rest))
    return ResolvedParameter(
        name=declared.name.text,
        values=("",) * absent + tuple(value.text for value in values),
        numbers=(None,) * absent + tuple(value.number for value in values),
        index={value.text: i + absent for i, value in enumerate(values)},
        numeric=all(value.number is not None for value in values),
        observed=observed,
        region=declared.domain.region,
        at=at if isinstance(at, str) else None,
    )


def _type_alone(declared: ast.ParameterDeclaration, observed: bool, report: Report) -> bool:
    """Whether the name of a type stands where values are listed; that is reported."""
    values = declared.domain.values
    if len(values) != 1 or values[0].quoted or values[0].text not in OTHER_TYPES:
        return False
    name, value = written(declared.name.text), values[0].text
    kind = OTHER_TYPES[value]
    hint = f"for any value of a type write it behind a semicolon: (..; {name}: {kind})"
    if observed:
        hint = f"list the values that may be observed: gives ({name}: yes | no)"
    elif kind == "flag":
        hint += f", or list both values: {name}: true | false"
    report.error(
        "TCC316",
        values[0].region,
        f"{quote(value)} is the name of a type, and would be the only value of {quote(name)}",
        f'{hint}; if the one value {value} is meant, write "{value}"',
    )
    return True


def _few_enough(tool: ast.ToolStatement, report: Report) -> bool:
    """Whether the tool has no more calls than a grammar may have; computed from sizes alone."""
    listed = (*tool.parameters, *tool.observed)
    sizes = [_domain_size(declared.domain) + declared.optional for declared in listed]
    for declared, size in zip(listed, sizes, strict=True):
        if size > MAX_CALLS:
            message = f"this domain has {_size(size)} values; a grammar has {MAX_CALLS} calls"
            report.error("TCC303", declared.domain.region, message, "use fewer or coarser values")
    if max(sizes, default=1) > MAX_CALLS:
        return False
    calls = 1
    for size in sizes:
        calls *= max(size, 1)
        if calls > MAX_CALLS:
            message = f"tool {quote(tool.name.text)} has more than {MAX_CALLS} calls"
            report.error("TCC303", tool.name.region, message, "use fewer or coarser values")
            return False
    return True


def _domain_size(domain: ast.Domain) -> int:
    """How many values a domain has; computed before the values are made or checked."""
    if domain.ends is None:
        return len(domain.values) + (domain.rest is not None)
    return int(domain.ends[1].value - domain.ends[0].value) + 1


def _size(count: int) -> str:
    return str(count) if count.bit_length() < 200 else f"2^{count.bit_length() - 1} or more"


def _values(domain: ast.Domain, report: Report) -> tuple[ast.Value, ...] | None:
    if domain.ends is not None:
        return _range(domain, *domain.ends, report)
    first: dict[str, ast.Value] = {}
    sound = True
    for value in domain.values:
        known = first.setdefault(value.text, value)
        if known is not value:
            report.error(
                "TCC301", value.region, f"{quote(value.text)} stands twice in this domain",
                "take one of them away",
                notes=[("first here", known.region)],
            )  # fmt: skip
            sound = False
    return domain.values if sound else None


def _range(
    domain: ast.Domain, low: ast.Number, high: ast.Number, report: Report
) -> tuple[ast.Value, ...] | None:
    for end in (low, high):
        if end.value.denominator != 1:
            report.error("TCC302", end.region, "the ends of a range are integers", _LIST)
            return None
    first, last = low.value.numerator, high.value.numerator
    if first > last:
        message = "this range is empty: its first end is above its last"
        report.error("TCC302", domain.region, message, "write the smaller number first")
        return None
    return tuple(ast.Value(str(n), Fraction(n), domain.region) for n in range(first, last + 1))
