"""Parameters: their domains as lists of distinct values.

Normative text: docs/spec/language.md, section 5.  A domain is made only after its size is known to
be small enough.  Cost: linear in the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from tcc_certs.formats.names import written
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.leaves import Number, Value
from tcc_compiler.language.ast.statements import ToolStatement
from tcc_compiler.language.ast.tools import Domain, ParameterDeclaration
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.words import OTHER_TYPES
from tcc_compiler.resolve.declared import declared_name

MAX_CALLS = 1 << 16
_LIST = "list other values: (k: 0.5 | 1 | 1.5)"


@frozen
class Parameter:
    """A parameter with its values.

    Attributes:
        values: canonical texts, in declared order; the empty text, which may be the first, stands
            for a parameter that is left out.
        numbers: the same as numbers, None where a value is none.
        index: the place of each canonical text that can be written.
        numeric: all values that can be written are numbers.
        observed: the world chooses the value, and not who makes the call.
        region: where its values are listed.
    """

    name: str
    values: tuple[str, ...]
    numbers: tuple[Fraction | None, ...]
    index: Mapping[str, int]
    numeric: bool
    observed: bool = False
    region: Region | None = None

    @property
    def optional(self) -> bool:
        """Whether a call may leave this parameter out."""
        return self.values[0] == ""


def parameters_of(tool: ToolStatement, report: Report) -> tuple[Parameter, ...] | None:
    """The listed and then the observed parameters of a tool, None after an error."""
    parameters: dict[str, Parameter] = {}
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
        if values is None or _type_alone(declared, observed, report):
            sound = False
            continue
        parameters[name.text] = _parameter(declared, values, observed)
    for declared in tool.observed:
        if declared.optional:
            message = f"{quote(declared.name.text)} is observed, and cannot be left out"
            hint = "list a value for the answer that says nothing, and take the `?` away"
            report.error("TCC319", declared.name.region, message, hint)
            sound = False
    return tuple(parameters.values()) if sound else None


def _parameter(
    declared: ParameterDeclaration, values: Sequence[Value], observed: bool
) -> Parameter:
    absent = 1 if declared.optional else 0
    return Parameter(
        name=declared.name.text,
        values=("",) * absent + tuple(value.text for value in values),
        numbers=(None,) * absent + tuple(value.number for value in values),
        index={value.text: i + absent for i, value in enumerate(values)},
        numeric=all(value.number is not None for value in values),
        observed=observed,
        region=declared.domain.region,
    )


def _type_alone(declared: ParameterDeclaration, observed: bool, report: Report) -> bool:
    """Whether the name of a type stands where values are listed; that is reported."""
    values = declared.domain.values
    if len(values) != 1 or values[0].quoted or values[0].text not in OTHER_TYPES:
        return False
    name, value = written(declared.name.text), values[0].text
    kind = OTHER_TYPES[value]
    mend = f"for any value of a type write it behind a semicolon: (..; {name}: {kind})"
    if observed:
        mend = f"list the values that may be observed: gives ({name}: yes | no)"
    elif kind == "flag":
        mend += f", or list both values: {name}: true | false"
    report.error(
        "TCC316",
        values[0].region,
        f"{quote(value)} is the name of a type, and would be the only value of {quote(name)}",
        f'{mend}; if the one value {value} is meant, write "{value}"',
    )
    return True


def _few_enough(tool: ToolStatement, report: Report) -> bool:
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


def _domain_size(domain: Domain) -> int:
    """How many values a domain has; computed before the values are made or checked."""
    if domain.ends is None:
        return len(domain.values)
    return int(domain.ends[1].value - domain.ends[0].value) + 1


def _size(count: int) -> str:
    return str(count) if count.bit_length() < 200 else f"2^{count.bit_length() - 1} or more"


def _values(domain: Domain, report: Report) -> tuple[Value, ...] | None:
    if domain.ends is not None:
        return _range(domain, *domain.ends, report)
    first: dict[str, Value] = {}
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


def _range(domain: Domain, low: Number, high: Number, report: Report) -> tuple[Value, ...] | None:
    for end in (low, high):
        if end.value.denominator != 1:
            report.error("TCC302", end.region, "the ends of a range are integers", _LIST)
            return None
    first, last = low.value.numerator, high.value.numerator
    if first > last:
        message = "this range is empty: its first end is above its last"
        report.error("TCC302", domain.region, message, "write the smaller number first")
        return None
    return tuple(Value(str(n), Fraction(n), domain.region) for n in range(first, last + 1))
