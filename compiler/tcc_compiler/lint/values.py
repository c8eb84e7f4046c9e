"""Lint rules on fields, patterns and deadlines: TCC738 to TCC741, TCC743 and TCC744.

Specification: docs/lint.md. Cost: linear in the statements and their tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tcc_certs.policy import forms, nodes as n
from tcc_certs.policy.forms import Condition
from tcc_certs.values.declared import PathType, TextType, UrlType
from tcc_certs.values.fields import Field, ListType
from tcc_compiler.frozen import frozen
from tcc_compiler.lint.finding import LintFinding
from tcc_compiler.lint.policies import Policy, Stated, finding, is_null, plain_type, shown, terms_of

_DAY = 86_400_000
_FAMILIES = (
    ("to", "cc", "bcc", "recipients", "recipient", "reply_to", "forward_to"),
    ("source", "src", "destination", "dest", "dst", "target"),
    ("path", "old_path", "new_path", "target_path", "file", "from_path", "to_path"),
    ("url", "callback", "redirect", "callback_url", "redirect_url", "webhook"),
)
_LOCATED = re.compile(
    r"(?:.*_)?(?:path|file|filename|file_path|filepath|dir|directory|folder|url|uri|link|href)s?"
)
_PATTERN_OF_PLACE = re.compile(r"(?:\(\?i\))?(?:\.\*)?(?:https?|file|ftp)[?:]|(?:\(\?i\))?/[a-z]")
_ANYTHING = ".*"


def values(policy: Policy) -> Iterator[LintFinding]:
    """Yield TCC738 to TCC741, TCC743 and TCC744 of all statements."""
    told: set[tuple[str, str]] = set()
    for stated in policy.stated:
        rule = stated.rule
        if rule.kind == "owe" and rule.within is not None and rule.within >= _DAY:
            yield _long_debt(stated)
        if not stated.tools or rule.kind not in ("require", "forbid"):
            continue
        then = [] if rule.then is None else [rule.then]
        for condition in (*rule.where, *then):
            for one in _atoms(condition, condition is rule.then, stated):
                yield from _one_of_several(policy, one, told)
                yield from _optional(policy, one, told)
                yield from _located(policy, one, told)
                yield from _patterns(policy, one)


@frozen(kw_only=False)
class _Atom:
    """A comparison of a field of the decided call, or of elements of this field.

    Attributes:
        form: the comparison.
        field: the name of the field.
        filtered: True if it is in the filter of the restricted calls.
        asked: True if a call is allowed only if the comparison is true; False: only if it is false.
        direct: True if the field itself is compared; False: an element of it.
        beside: the conditions that `and` joins with it.
    """

    stated: Stated
    form: Condition
    field: str
    node: n.Node | None
    filtered: bool
    asked: bool
    direct: bool
    beside: tuple[Condition, ...]

    @property
    def text(self) -> str:
        """The author's text."""
        return self.field if self.node is None else shown(self.node)

    @property
    def pattern(self) -> str | None:
        """The pattern that it compares with; None if it has no pattern."""
        return self.form.pattern if isinstance(self.form, forms.Matches) else None


def _atoms(condition: Condition, asked: bool, stated: Stated) -> Iterator[_Atom]:
    """Yield the comparisons of own fields that decide about the call, including list elements.

    Args:
        asked: True: the condition has to be true. False: it is a filter, and should be false.
    """
    todo: list[tuple[Condition, bool, n.Node | None, tuple[Condition, ...]]] = [
        (condition, asked, None, ())
    ]
    elements: dict[int, str] = {}  # from the level of a list's elements to the field
    while todo:
        one, wanted, outer, beside = todo.pop()
        node = stated.node(one) or outer
        match one:
            case forms.Not(of):
                todo.append((of, not wanted, node, ()))
            case forms.All(parts):
                todo += [(part, wanted, None, parts) for part in reversed(parts)]
            case forms.AnyOf(parts):
                todo += [(part, wanted, None, ()) for part in reversed(parts)]
            case forms.Every(of, conditions) if isinstance(of.base, forms.Items):
                name = _own_name(of.base.of, elements)
                if name is not None:
                    elements[of.level] = name
                    todo += [(part, wanted, None, ()) for part in conditions]
            case forms.Some(of) if isinstance(of.base, forms.Items):
                name = _own_name(of.base.of, elements)
                if name is not None and of.conditions:
                    elements[of.level] = name
                    todo += [(part, wanted, None, ()) for part in of.conditions]
            case _:
                for term in terms_of(one):
                    name = _own_name(term, elements)
                    if name is not None:
                        direct = not isinstance(term, forms.Element)
                        yield _Atom(stated, one, name, node, not asked, wanted, direct, beside)
                        break


def _own_name(term: Any, elements: Mapping[int, str]) -> str | None:
    """Return the field of the decided call that a term is, or is an element of."""
    if isinstance(term, forms.Get) and term.of == forms.Element(0):
        return term.name
    if isinstance(term, forms.Element):
        return elements.get(term.level)
    return None


def _long_debt(stated: Stated) -> LintFinding:
    owe = stated.statement
    within = owe.within if isinstance(owe, n.Owe) else None
    text = "" if within is None else f"{within.amount} {within.unit}"
    return finding(
        "TCC741",
        stated,
        f"an obligation ends with its session, and few sessions last {text}",
        "write a shorter window, such as `within 1 h`, or none; check longer ones outside the gate",
    )


# Fields.


def _one_of_several(
    policy: Policy, atom: _Atom, told: set[tuple[str, str]]
) -> Iterator[LintFinding]:
    """Yield TCC738: a statement checks `to`, but none mentions `cc`."""
    if isinstance(atom.form, forms.Same) or is_null(atom.form):
        return
    for tool in atom.stated.tools:
        field = policy.field(tool, atom.field)
        if field is None or field.type is None:
            continue
        for other in policy.core.tool_of[tool].arguments:
            key = ("TCC738", f"{tool}.{atom.field}.{other.name}")
            if other.name == atom.field or not _are_alike(field, other) or key in told:
                continue
            if other.name in policy.mentioned.get(tool, ()):
                continue
            told.add(key)
            text = re.sub(rf"(?<![\w.`]){re.escape(atom.field)}(?!\w)", other.name, atom.text)
            if other.optional:
                null = f"{other.name} != null, " if atom.filtered else f"{other.name} = null or "
                text = null + text
            yield finding(
                "TCC738",
                atom.stated,
                f"`{atom.text}` is about `{atom.field}`, and no statement is about "
                f"`{other.name}` of `{tool}`",
                f"write the same for it: {text}",
            )


def _are_alike(field: Field, other: Field) -> bool:
    """Return whether two texts, or lists of texts, have names of one family."""
    if not {plain_type(field), plain_type(other)} <= {TextType, ListType, PathType, UrlType}:
        return False
    one, two = field.name.casefold(), other.name.casefold()
    if any(one in family and two in family for family in _FAMILIES):
        return True
    first, second = one.rsplit("_", 1)[-1], two.rsplit("_", 1)[-1]
    return first == second and len(first) > 2 and "_" in one + two and type(
        field.type
    ) is type(other.type)  # fmt: skip


def _optional(policy: Policy, atom: _Atom, told: set[tuple[str, str]]) -> Iterator[LintFinding]:
    """Yield TCC739: a comparison is unsure, and refuses the call, if the field is missing."""
    stated = atom.stated
    if isinstance(atom.form, forms.Same) or is_null(atom.form) or not atom.direct:
        return  # a missing list has no elements
    tool = next((one for one in stated.tools if _is_optional(policy, one, atom.field)), None)
    key = ("TCC739", f"{id(stated)}.{atom.field}")
    if tool is None or key in told or atom.field in stated.nulls:
        return
    told.add(key)
    name = n.text_of(n.Word(atom.field))
    if atom.filtered:
        effect = "is refused" if stated.rule.kind == "forbid" else "falls under the statement"
        hint = f"write: {name} != null, {atom.text}"
    else:
        effect, hint = "is refused", f"write: ({name} = null or {atom.text}), to allow it; "
        hint += f"or: {name} != null and {atom.text}"
    yield finding(
        "TCC739",
        stated,
        f"a `{tool}` without `{atom.field}` {effect}: `{atom.text}` is unsure for it",
        hint,
    )


def _is_optional(policy: Policy, tool: str, name: str) -> bool:
    field = policy.field(tool, name)
    return field is not None and field.optional


# Patterns.


def _located(policy: Policy, atom: _Atom, told: set[tuple[str, str]]) -> Iterator[LintFinding]:
    """Yield TCC740: a pattern for a path or a URL, which has several spellings."""
    pattern = atom.pattern
    if pattern is None or not (
        _LOCATED.fullmatch(atom.field.casefold()) or _PATTERN_OF_PLACE.match(pattern)
    ):
        return
    tool = atom.stated.tools[0]
    key = ("TCC740", f"{tool}.{atom.field}")
    if key in told or (tool, atom.field) in policy.dotless or not _is_loose(pattern, atom.asked):
        return
    field = policy.field(tool, atom.field)
    if field is None or plain_type(field) is not TextType:
        return  # paths and URLs are compared in their normal form
    told.add(key)
    is_url = "url" in atom.field.casefold() or "://" in pattern
    kind, known = ("url", "https://") if is_url else ("path", "/")
    found = _PREFIX[kind].match(pattern)
    inside = found[0].replace("\\", "").rstrip("/") if found else ""
    if len(inside) <= len(known):
        inside = "https://*.example.com" if is_url else "/srv"
    name = n.text_of(n.Word(atom.field))
    under = f'{name} {"under" if _is_like(atom) else "not under"} "{inside}"'
    why = "a host may stand in its query" if is_url else "`/srv/../etc` and `//etc` are spellings"
    yield finding(
        "TCC740",
        atom.stated,
        f"`{atom.text}` compares a {kind.upper() if is_url else kind} as a text: {why}, too",
        f"declare `{name}: {kind}` in `tool {tool}`, and write: {under}",
    )


_PREFIX = {
    "url": re.compile(r"https?://[A-Za-z0-9/_-]+(?:\\?\.[A-Za-z0-9/_-]+)*(?=/|$)"),
    "path": re.compile(r"(?:/[A-Za-z0-9_-]+)+(?=/|$)"),
}


def _is_like(atom: _Atom) -> bool:
    """Return whether the author wrote ``~``, not ``!~``."""
    return not isinstance(atom.node, n.Compare) or atom.node.operator == "~"


def _is_loose(pattern: str, asked: bool) -> bool:
    """Return whether other spellings pass: it denies, or allows any character somewhere."""
    return not asked or _has_dot(pattern) or "[^" in pattern


def _patterns(policy: Policy, atom: _Atom) -> Iterator[LintFinding]:
    pattern, stated = atom.pattern, atom.stated
    if pattern is None:
        return
    flag = "(?i)" if pattern.startswith("(?i)") else ""
    body = pattern.removeprefix(flag)
    operator = "~" if not isinstance(atom.node, n.Compare) else atom.node.operator
    name = atom.field if atom.direct else "it"
    if isinstance(atom.node, n.Compare):
        name = n.text_of(atom.node.left)
    if not atom.asked:
        ends = body.startswith(_ANYTHING) or body.endswith(_ANYTHING)
        if ends or _has_pattern(policy, atom) or _is_located(policy, atom):
            return
        inner = f"({body})" if "|" in body else body
        meant = n.quoted(f"{flag}{_ANYTHING}{inner}{_ANYTHING}")
        yield finding(
            "TCC743",
            stated,
            f"`{atom.text}` refuses only a text that is all of the pattern, with nothing around it",
            f"write: {name} {operator} {meant}",
        )
    elif _is_located(policy, atom):
        return
    elif _has_dot(body) and not any(_lists(one, atom.form) for one in atom.beside):
        meant = n.quoted(flag + _without_dots(body))
        yield finding(
            "TCC744",
            stated,
            f"`.` in `{atom.text}` matches line feeds, too: a second line may hold anything",
            f"write: {name} {operator} {meant}",
        )


def _is_located(policy: Policy, atom: _Atom) -> bool:
    """Return whether the field is a path or URL, which is compared as a whole."""
    fields = [policy.field(tool, atom.field) for tool in atom.stated.tools]
    return any(one is not None and plain_type(one) in (PathType, UrlType) for one in fields)


def _has_pattern(policy: Policy, atom: _Atom) -> bool:
    """Return whether the type of the field restricts its texts, so that it is no free text."""
    for tool in atom.stated.tools:
        field = policy.field(tool, atom.field)
        kind = None if field is None else field.type
        kind = kind.of if isinstance(kind, ListType) else kind
        if isinstance(kind, TextType) and (kind.pattern is not None or kind.among):
            return True
    return False


def _lists(condition: Condition, form: Condition) -> bool:
    """Return whether a condition next to a pattern lists or compares the same term's values."""
    return (
        isinstance(condition, forms.Among | forms.Compare)
        and isinstance(form, forms.Matches)
        and form.of in terms_of(condition)
    )


_PIECES = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def _has_dot(pattern: str) -> bool:
    return any(piece == "." for piece in _PIECES.findall(pattern))


def _without_dots(pattern: str) -> str:
    return "".join(["[^\n]" if piece == "." else piece for piece in _PIECES.findall(pattern)])
