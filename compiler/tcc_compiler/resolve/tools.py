"""Tools: parameters, signature, amounts of every call, and the attributes that a run uses.

Normative text: docs/spec/language.md, sections 5 and 6.  Cost: linear in the calls and their terms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from tcc_certs.formats.codec import Json
from tcc_certs.values.types import OpenParameter
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.statements import ToolStatement
from tcc_compiler.language.ast.tools import (
    Amount,
    Attribute,
    BindMcp,
    BindPython,
    Doc,
    Errors,
    Model,
    Quotes,
    Strict,
)
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.resolve.amounts import Amounts, Steps, amounts_of
from tcc_compiler.resolve.declared import plain_name
from tcc_compiler.resolve.domains import Parameter, parameters_of
from tcc_compiler.resolve.models import models_of
from tcc_compiler.resolve.opened import opened_of

_TARGET = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


@frozen
class Tool:
    """A tool, resolved.

    Attributes:
        takes, gives: the signature, both or neither.
        extras: members of the core's tool object that no plan depends on.
        amounts: of every call, the last parameter fastest.
        places: of the name of each parameter that is not open, its number.
        opened: the open parameters, by name in declared order.
    """

    name: str
    parameters: tuple[Parameter, ...]
    takes: str | None
    gives: str | None
    extras: Mapping[str, Json]
    amounts: Sequence[Amounts]
    places: Mapping[str, int]
    opened: Mapping[str, OpenParameter] = field(default_factory=dict)


def tool_of(statement: ToolStatement, steps: Steps, report: Report) -> Tool | None:
    """The resolved tool, None after an error in it; its amounts take some of `steps`."""
    extras = _extras(statement, report)
    named = plain_name(statement.name, report)
    parameters = parameters_of(statement, report)
    listed = (*statement.parameters, *statement.observed)
    taken = {declared.name.text: declared.name.region for declared in listed}
    opened = opened_of(statement, taken, report)
    if parameters is None or opened is None or not named:
        return None
    clauses = [a for a in statement.attributes if isinstance(a, Amount)]
    amounts = amounts_of(
        statement.name, parameters, [item.name for item in opened], clauses, steps, report
    )
    if amounts is None or extras is None:
        return None
    takes, gives = statement.signature or (None, None)
    return Tool(
        name=statement.name.text,
        parameters=parameters,
        takes=takes.text if takes else None,
        gives=gives.text if gives else None,
        extras=extras,
        amounts=amounts,
        places={parameter.name: place for place, parameter in enumerate(parameters)},
        opened={parameter.name: parameter for parameter in opened},
    )


def _extras(statement: ToolStatement, report: Report) -> Mapping[str, Json] | None:
    attributes: Sequence[Attribute] = statement.attributes
    extras: dict[str, Json] = {}
    sound = _single([a for a in attributes if isinstance(a, Doc)], "doc", report)
    sound &= _single([a for a in attributes if isinstance(a, Quotes)], "quotes", report)
    sound &= _single([a for a in attributes if isinstance(a, Strict)], "strict", report)
    sound &= _single([a for a in attributes if isinstance(a, Errors)], "errors", report)
    sound &= _single([a for a in attributes if isinstance(a, BindMcp | BindPython)], "bind", report)
    for attribute in attributes:
        match attribute:
            case Doc():
                extras["doc"] = attribute.text.value
            case Quotes():
                extras["quotes"] = "same"
            case Strict():
                extras["strict"] = True
                sound &= _observes(statement, attribute, report)
            case Errors():
                extras["errors"] = "failed"
            case BindMcp() | BindPython():
                binding = _binding(attribute, report)
                sound &= binding is not None
                extras["bind"] = binding or {}
    models = models_of([a for a in attributes if isinstance(a, Model)], report)
    if models:
        extras["models"] = models
    return extras if sound and models is not None else None


def _observes(statement: ToolStatement, strict: Strict, report: Report) -> bool:
    """Whether a strict tool has something that can be answered in more than one way."""
    if statement.observed:
        return True
    message = f"{quote(statement.name.text)} is strict, and nothing of it is observed"
    hint = "say what it may answer, as in `gives (result: pass | fail)`; or take `strict` away"
    report.error("TCC217", strict.region, message, hint)
    return False


_BIND = 'write bind mcp "server" "tool"'


def _single(
    attributes: Sequence[Doc | Quotes | Strict | Errors | BindMcp | BindPython],
    what: str,
    report: Report,
) -> bool:
    for other in attributes[1:]:
        report.error(
            "TCC310", other.region, f"a second '{what}'", "take one of them away",
            notes=[("the first is here", attributes[0].region)],
        )  # fmt: skip
    return len(attributes) < 2


def _binding(bind: BindMcp | BindPython, report: Report) -> Mapping[str, Json] | None:
    if isinstance(bind, BindPython):
        if _TARGET.fullmatch(bind.target.value):
            return {"kind": "python", "target": bind.target.value}
        message = f"{quote(bind.target.value)} names no Python function"
        report.error("TCC313", bind.target.region, message, 'write "module:function"')
        return None
    empty = [text for text in (bind.server, bind.tool) if not text.value]
    for text in empty:
        report.error(
            "TCC313", text.region, "a binding names a server and a tool, neither empty", _BIND
        )
    return None if empty else {"kind": "mcp", "server": bind.server.value, "tool": bind.tool.value}
