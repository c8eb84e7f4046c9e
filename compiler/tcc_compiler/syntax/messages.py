"""Messages about unexpected text: what would fit, and the text to write instead.

Each hint is one function or one entry of a table; they are tried in order. Some hints recognise a
form of another language, or a guessed order of words. They show the author's own words in the form
of this language. Cost: linear in the statement, for each mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report, cut, quote
from tcc_compiler.language.source import Region, Source
from tcc_compiler.syntax.tables import END
from tcc_compiler.syntax.tree import Token, region_of

# The form of each statement.
FORMS: Mapping[str, str] = {
    "grammar": '`grammar NAME version "1.0"`',
    "use": '`use "tools.tcg"`',
    "currency": '`currency "EUR/100"`',
    "tool": "`tool find(order: text, k: 5 | 10) gives (total: number) { cost 0.5 }`",
    "shape": "`shape order (owner: text, total: number)`",
    "given": "`given customer: text` or `given customer from find_order.owner`",
    "let": "`let seen = last(find_order(same order))`",
    "rule": "`rule gather = search rerank?`",
    "plan": "`plan = search rerank? (calc | reply)`",
    "start": "`start question`",
    "goal": "`goal text | number`",
    "pass": "`pass resources, prompts`",
    "before": "`before refund require find_order(same order)`, or with several clauses "
    "`before refund { require .. require .. }`",
    "finally": "`finally require count(reply) = 1`",
    "forbid": '`forbid refund` or `forbid any(path under "/etc")`',
    "after": "`after open owe close(same id)`",
    "limit": "`limit depth <= 400`, `limit count(refund) <= 3` or "
    "`limit sum(refund.amount) per order <= 500 across sessions`",
    "accept": "`accept search(k=5) reply`",
    "reject": "`reject reply`",
    "expect": "`expect plans = 48`, `expect always forbid refund`, `expect reachable reply` or "
    '`expect implies "parent.tcg"`',
}
STARTERS = tuple(FORMS)
_ATTRIBUTES = ("bind", "cost", "doc", "epsilon", "errors", "latency", "model", "parallel", "price",
               "quotes", "strict")  # fmt: skip
# Terminals that a message names together, if more than half of them fit.
_GROUPS: Sequence[tuple[str, frozenset[str]]] = (
    ("the next statement", frozenset((*STARTERS, END))),
    ("a comparison", frozenset(("=", "!=", "<", "<=", ">", ">=", "~", "!~", "in", "under"))),
    ("an operator", frozenset(("+", "-", "*", "|", "&", "?", "{"))),
    ("a unit", frozenset(("ms", "s", "m", "h", "d"))),
    ("an attribute", frozenset(_ATTRIBUTES)),
    ("a type", frozenset(("text", "integer", "number", "flag", "json", "list", "object", "time",
                          "date", "path", "url"))),
)  # fmt: skip
_NAMES: Mapping[str, str] = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string in double quotes",
    END: "the end of the text",
}
_HIDDEN = {"QNAME"}  # a name in backticks fits wherever a name does
_CLOSING = {"(": ")", "_ARGS": ")", "_FIELDS": ")", "{": "}"}
_MOST_WORDS = 60  # the most tokens of a line in which a comment is searched


@frozen
class Stuck:
    """The place where reading a statement stopped.

    Attributes:
        source, number: the text, and its number in regions.
        tokens: the tokens of the statement before the unexpected token.
        token: the unexpected token.
        expected: the terminals that fit instead.
    """

    source: Source
    number: int
    tokens: Sequence[Token]
    token: Token
    expected: frozenset[str]

    @property
    def keyword(self) -> str:
        """The word that begins the statement; empty before a statement."""
        return self.tokens[0].text if self.tokens else ""

    @property
    def begins_line(self) -> bool:
        """True if the unexpected token is the first token of its line."""
        line = self.source.text.rfind("\n", 0, self.token.start) + 1
        return not self.source.text[line : self.token.start].strip()

    def kind(self, step: int) -> str:
        """Return the kind of the token this many steps before the unexpected one."""
        return self.tokens[-step].kind if step <= len(self.tokens) else ""

    def text(self, step: int) -> str:
        """Return the text of the token this many steps before the unexpected one."""
        return self.tokens[-step].text if step <= len(self.tokens) else ""

    def head(self, first: int = 1) -> str:
        """Return the text of the statement before the token, without its first tokens."""
        if first >= len(self.tokens):
            return ""
        return " ".join(self.source.text[self.tokens[first].start : self.tokens[-1].end].split())

    def rest(self) -> str:
        """Return the text after the token on its line, up to a comment or a `because`."""
        end = _end_of_line(self.source.text, self.token.end)
        return " ".join(self.source.text[self.token.end : end].split())


def expectation(kinds: Iterable[str]) -> str:
    """Return the terminals that fit, as a message lists them: ``a name, 'any' or '('``."""
    left = frozenset(kinds) - _HIDDEN
    left = frozenset(["(" if kind in ("_ARGS", "_FIELDS") else kind for kind in left])
    last = []
    for name, members in _GROUPS:
        if len(left & members) > len(members) // 2:
            left -= members
            last.append(name)
    first = [_NAMES[kind] for kind in _NAMES if kind in left]
    words = sorted([kind for kind in left if kind not in _NAMES and kind.isalpha()])
    marks = sorted([kind for kind in left if kind not in _NAMES and not kind.isalpha()])
    texts = first + [f"'{kind}'" for kind in words + marks] + last[::-1]
    if len(texts) < 2:
        return texts[0] if texts else "nothing more"
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


def _remark(stuck: Stuck) -> Region | None:
    """Return the comment `-- text`, as in SQL or Lua, that contains the token; else None."""
    text, end = stuck.source.text, stuck.source.text.find("\n", stuck.token.start)
    line = text.rfind("\n", 0, stuck.token.start)
    tokens = [one for one in (*stuck.tokens[-_MOST_WORDS:], stuck.token) if one.start > line]
    for one in tokens:
        if one.text == "-" and text[one.start : one.start + 3] in ("-- ", "--\t"):
            return Region(stuck.number, one.start, len(text) if end < 0 else end)
    return None


def report_stuck(stuck: Stuck, report: Report) -> None:
    """Report a token that does not fit."""
    token = stuck.token
    remark = _remark(stuck) if token.kind != END else None
    if remark is not None:
        report.error("TCC102", remark, "'--' has no meaning here", "comments start with '#'")
        return
    opened = _opened(stuck.tokens)
    closing = _CLOSING[opened[-1].kind] if opened else ""
    next_statement = token.kind == END or (stuck.begins_line and token.text in STARTERS)
    if opened and (next_statement or (token.kind in (")", "}") and token.kind != closing)):
        mark = opened[-1].text
        before = "the end of the text" if token.kind == END else quote(token.text)
        report.error(
            "TCC114", region_of(opened[-1], stuck.number), f"this '{mark}' is not closed",
            f"write '{closing}' at its end",
            notes=[(f"found {before}, and no '{closing}' before it", _region(stuck))],
        )  # fmt: skip
    elif token.kind in (")", "}") and not opened:
        mark = "(" if token.kind == ")" else "{"
        message = f"this '{token.kind}' closes nothing: no '{mark}' is open"
        report.error("TCC114", _region(stuck), message, "take it away, or write what it closes")
    elif not stuck.tokens or (stuck.begins_line and END in stuck.expected):
        _report_no_statement(stuck, report)
    else:
        shown = "the end of the text" if token.kind == END else _shown(token)
        message = f"found {shown}; expected {expectation(stuck.expected)}"
        report.error("TCC101", _region(stuck), message, _hint(stuck))


def _region(stuck: Stuck) -> Region:
    """Return the region of the token; at the end of the text, the place after the last token."""
    if stuck.token.kind == END and stuck.tokens:
        end = stuck.tokens[-1].end
        return Region(stuck.number, end, end + 1)
    return region_of(stuck.token, stuck.number)


def _shown(token: Token) -> str:
    return "a string" if token.kind == "STRING" else quote(token.text)


def _opened(tokens: Sequence[Token]) -> list[Token]:
    """Return the brackets that are still open after these tokens, the innermost last."""
    opened: list[Token] = []
    for token in tokens:
        if token.kind in _CLOSING:
            opened.append(token)
        elif opened and token.kind == _CLOSING[opened[-1].kind]:
            opened.pop()
    return opened


# Words that begin statements in other languages, with the word to use in this one.
_OTHERS: Mapping[str, str] = {
    "import": "use", "include": "use", "function": "tool", "action": "tool", "allow": "accept",
    "deny": "forbid", "initial": "start", "assert": "expect", "max": "limit", "never": "forbid",
    "always": "before", "ensure": "before", "monitor": "before", "end": "finally", "type": "shape",
    "permit": "accept", "disallow": "forbid", "block": "forbid", "var": "let", "def": "let",
    "const": "let", "define": "let", "set": "let", "session": "given", "context": "given",
}  # fmt: skip
_NEEDS = re.compile(r"(?:must |always )?(?:requires?|needs?)\s+(\S.*)")
_CASE = re.compile(r"(.*\S)\s+(if|when|where|unless|only if|only when|only after|after)\s+(\S.*)")


def _case(text: str) -> tuple[str, str, str]:
    """Split ``CALLS if CONDITION`` into its three parts."""
    found = _CASE.match(text)
    return (found[1].removesuffix(" only"), found[2], found[3]) if found else (text, "", "")


def near_starter(word: str) -> str | None:
    """Return a word that begins a statement and is spelt nearly like `word`; else None."""
    close = get_close_matches(word[:32].lower(), STARTERS, n=1, cutoff=0.7)
    return close[0] if close else None


def _report_no_statement(stuck: Stuck, report: Report) -> None:
    word = stuck.token.text[:32].lower()
    other = _OTHERS.get(word)
    close = None if other else near_starter(word)
    expected = "expected a statement"
    needs = _NEEDS.match(stuck.rest()) if stuck.token.kind in ("NAME", "QNAME") else None
    if word == "require":
        hint = "say what the condition restricts: before CALLS require CONDITION; at the end of a "
        hint += "session: finally require CONDITION"
    elif needs is not None:
        hint = f"write: before {stuck.token.text} require {needs[1]}"
    elif word in ("allow", "permit") and _CASE.match(stuck.rest()):
        calls, _, case = _case(stuck.rest())
        hint = f"write: before {calls} require {case}"
    elif other is not None:
        hint = f"did you mean {quote(other)}? It reads as {FORMS[other]}"
    elif close is not None:
        hint = f"did you mean {quote(close)}? Write: {cut(f'{close} {stuck.rest()}'.rstrip())}"
    else:
        hint = 'a grammar begins with: grammar NAME version "1.0"'
        expected += f", which begins with one of: {', '.join(STARTERS)}"
    shown = _shown(stuck.token)
    report.error("TCC101", _region(stuck), f"found {shown}; {expected}", hint)


def report_inside(stuck: Stuck, report: Report) -> None:
    """Report a statement that begins inside a line."""
    word = stuck.token.text
    hint = f"begin a new line; if a tool is called {quote(word)}, write `{word}` in backticks"
    message = f"the statement {quote(word)} begins inside a line"
    report.error("TCC229", _region(stuck), message, hint)


# A guessed statement about the order of calls.


def is_guess(stuck: Stuck) -> bool:
    """Return whether the statement is `require A before B`, or a similar guess."""
    return _guess(stuck) is not None


def report_guess(stuck: Stuck, report: Report) -> bool:
    """Report a guess such as `require A before B` with the right form; False if it is none."""
    name, of = _each(stuck) if stuck.token.text == ":" else ("", "")
    if name:
        region = Region(stuck.number, stuck.tokens[0].start, stuck.token.end)
        message = f"`every {name} in ..` is no condition: the element of a list has no name"
        report.error("TCC239", region, message, f"write: {every_text(name, of, stuck.rest())}")
        return True
    guess = _guess(stuck)
    if guess is None:
        return False
    region, form, meant = guess
    message = f"`{form}` is no statement of this language"
    report.error("TCC242", region, message, f"write: {meant}")
    return True


def _guess(stuck: Stuck) -> tuple[Region, str, str] | None:
    """Return the region, the guessed form, and the statement that is meant; None for no guess."""
    source = stuck.source.text
    word, order, start = stuck.token, stuck.token, stuck.token.end
    if stuck.keyword == "forbid" and order.text in ("before", "after"):
        word, end = stuck.tokens[0], _end_of_line(source, order.end)
        start = word.end
    elif stuck.begins_line and word.text in _GUESSED:
        order, end = _order_after(stuck)
    elif stuck.begins_line and word.kind in ("NAME", "QNAME") and not near_starter(word.text):
        order, end = _order_after(stuck)
        start = word.start
    if order is word:
        return None
    first, second = source[start : order.start].split(), source[order.end : end].split()
    used = "unused " if second[:1] == ["each"] and "same" in second else ""
    before = " ".join(second[1:] if second[:1] == ["each"] else second)
    same = _SAME.search(before)
    earlier, before = " ".join(first), before if same is None else before[: same.start()]
    if order.text == "after":
        earlier, before = before, earlier
    if same is None and (same := _KEY.search(before)) is not None:
        before = before[: same.start()]  # the key belongs to the earlier calls
    if not (_is_set(earlier) and _is_set(before)):
        return None
    key = "" if same is None else f"(same {same[1]})"
    shown = f"{word.text} " if start == word.end else ""
    condition = (_GUESSED.get(word.text, "") if shown else "") or used
    region = Region(stuck.number, word.start, order.end + len(source[order.end : end].rstrip()))
    meant = f"before {before} require {condition}{earlier}{key}"
    return region, f"{shown}A {order.text} B", meant


# Words before a guessed order of calls, with the word that begins the right condition.
_GUESSED: Mapping[str, str] = {
    "require": "", "always": "", "ensure": "", "forbid": "no ", "never": "no ", "no": "no ",
    "deny": "no ",
}  # fmt: skip
_KEY = re.compile(r"\(same\s+([\w`]+|\([^()]*\))\)$")
_SAME = re.compile(r"\s+same\s+([\w`]+|\([^()]*\))$")


def _is_set(text: str) -> bool:
    """Return whether a text can be a set of calls: names with filters, `|` and `-`."""
    bare = text
    while (inner := re.sub(r"\([^()]*\)", "", bare)) != bare:
        bare = inner
    operand = r"(?:[A-Za-z_]\w*|`[^`]+`)(?:\.\w+)*"
    return re.fullmatch(rf"{operand}(?:\s*[|-]\s*{operand})*", bare.strip()) is not None


def _each(stuck: Stuck) -> tuple[str, str]:
    """Return NAME and LIST of `every NAME in LIST` at the end of the tokens; else empty texts."""
    at = max([at for at, one in enumerate(stuck.tokens) if one.kind == "every"], default=-1)
    after = stuck.tokens[at + 1 :]
    if at < 0 or len(after) < 3 or after[1].text != "in":
        return "", ""
    return after[0].text, stuck.source.text[after[2].start : stuck.tokens[-1].end]


def every_text(name: str, of: str, condition: str) -> str:
    """Return `every LIST(CONDITION)`, in which `it` replaces the name of the element."""
    return f"every {of}({re.sub(rf'(?<![.`]){re.escape(name)}(?!`)', 'it', condition)})"


def _order_after(stuck: Stuck) -> tuple[Token, int]:
    """Return the `before` or `after` on the line of a guess, and the end of its second set."""
    source = stuck.source.text
    end = _end_of_line(source, stuck.token.end)
    depth = 0
    at = stuck.token.end
    while at < end:
        char = source[at]
        depth += (char == "(") - (char == ")")
        if char == '"':
            at = max(at, source.find('"', at + 1, end))
        elif depth == 0 and char.isspace():
            for word in ("before", "after"):
                stop = at + 1 + len(word)
                if source.startswith(word, at + 1) and source[stop : stop + 1].isspace():
                    return Token(word, word, at + 1, stop), end
        at += 1
    return stuck.token, end


def _end_of_line(source: str, at: int) -> int:
    """Return the end of a line, before its comment and its `because`."""
    end = source.find("\n", at)
    end = len(source) if end < 0 else end
    for mark in ("#", " because "):
        found = source.find(mark, at, end)
        end = found if found >= 0 else end
    return end


# Hints.


def _hint(stuck: Stuck) -> str:
    """Return the first hint that fits the mistake, or the form of the statement."""
    for hint in _HINTS:
        found = hint(stuck)
        if found is not None:
            return found
    keyword = stuck.keyword
    if _in_block(stuck):
        return (
            "an attribute reads as `cost 0.5`, `price 2`, `latency 80 ms`, `epsilon 0.1`, "
            '`doc ".."`, `cost 2 when k = 10`, `strict`, `errors mean failed`'
        )
    article = "an" if keyword[:1] in ("a", "e") else "a"
    return f"{article} `{keyword}` statement reads as {FORMS.get(keyword, '..')}"


def _in_block(stuck: Stuck) -> bool:
    return stuck.keyword == "tool" and any(token.kind == "{" for token in _opened(stuck.tokens))


def _equals(stuck: Stuck) -> str | None:
    if stuck.token.text == "=" and stuck.text(1) == "=":
        return "equality is written '='"
    if stuck.token.text in ("=", "<") and "<=" in stuck.expected and stuck.keyword == "limit":
        most = stuck.rest().lstrip("=< ")
        return f"a limit is a greatest number: write: limit {stuck.head()} <= {most}"
    if stuck.token.text in ("=", ":") and stuck.text(1) in _AMOUNTS and _in_block(stuck):
        return f"an attribute has no '{stuck.token.text}': write: {stuck.text(1)} 0.5"
    if stuck.token.text in (">=", ">") and stuck.keyword == "limit":
        return (
            "a limit is a greatest number; for a least number write: finally require count(..) >= n"
        )
    if stuck.token.text == "=" and ":" in stuck.expected:
        return "a field is declared with ':', as in (k: 1 | 2)"
    return None


def _mixed(stuck: Stuck) -> str | None:
    words = [token.text for token in stuck.tokens if token.kind in ("and", "or")]
    if stuck.token.text in ("and", "or") and words and words[-1] != stuck.token.text:
        return "`and` beside `or` needs brackets: a and (b or c), or (a and b) or c"
    return None


def _operators(stuck: Stuck) -> str | None:
    """Return a hint about operators of other languages."""
    text, condition = stuck.token.text, stuck.keyword in _CONDITIONS
    if text == "*" and stuck.text(1) == "*" and not condition:
        return f"there is no power: a square is written {stuck.text(2)} * {stuck.text(2)}"
    if not condition:
        return None
    if text in ("&", "|") and stuck.text(1) == text:
        return f"write `{'and' if text == '&' else 'or'}`"
    if text == "&":
        return "write `and`"
    if text == "," and stuck.text(2) == "(":
        keys = stuck.text(3) == "per"
        return "several keys are written: per a, b" if keys else "values are written x = a | b"
    if text == "and" and "," in stuck.expected:
        second = stuck.rest().partition(")")[0]
        return f"commas separate the conditions of a filter: same {stuck.text(1)}, {second}"
    if text in _PATTERN_WORDS:
        what = stuck.rest().removeprefix("with ").strip('"').replace("%", ".*")
        return f'write: {_operand(stuck)} ~ "{what}{".*" if text[0] == "s" else ""}"'
    before = stuck.text(1)
    if stuck.token.kind in ("NAME", "QNAME") and before in _QUANTIFIERS:
        what = f"{text} {stuck.rest()}".strip().replace(" (", "(").replace(f"{text} .", f"{text}.")
        compared = re.fullmatch(r"(.+\)) ([<>=]=? [0-9]+)", what)
        if before == "count" and compared is not None:
            return f"write: count({compared[1]}) {compared[2]}"
        return f"write: {_QUANTIFIERS[before].format(what)}"
    case, then = _implication(stuck)
    if then:
        calls = stuck.source.text[stuck.tokens[1].start : _token(stuck, "require").start].strip()
        return f"write: before {calls}({case}) require {then}"
    if text in _COMPARISONS and stuck.text(1) in ("and", "or"):
        left = next((one for one in reversed(stuck.tokens[:-1]) if one.kind == "NAME"), None)
        return f"each side of `and` is a condition: {left.text if left else 'x'} {text} .."
    if text == "between":
        low, _, high = stuck.rest().partition(" and ")
        return f"write: {_operand(stuck)} in {low} .. {high or 'HIGH'}"
    if text in ("contains", "has", "includes"):
        what = stuck.rest()
        return (
            f"for a list write: {what} in {_operand(stuck)}; for a text: {_operand(stuck)} ~ "
            + ('".*' + what.strip('"') + '.*"')
        )
    return None


_PATTERN_WORDS = ("like", "matches", "starts", "startswith", "match", "regex")
_QUANTIFIERS: Mapping[str, str] = {
    "exists": "{}", "some": "{}", "all": "every {}", "each": "every {}", "none": "no {}",
    "last": "last({}).field = value", "count": "count({}) <= 3", "never": "no {}",
}  # fmt: skip


def _token(stuck: Stuck, text: str) -> Token:
    return next((one for one in stuck.tokens if one.text == text), stuck.token)


def _implication(stuck: Stuck) -> tuple[str, str]:
    """Split `A implies B`, `A => B` or `if A then B` into case and condition; else empty texts."""
    require = _token(stuck, "require")
    if stuck.keyword != "before" or require is stuck.token or stuck.tokens[1].text == "{":
        return "", ""
    said = stuck.source.text[require.end : stuck.token.start]
    if stuck.token.text == "implies" or (stuck.token.text == ">" and stuck.text(1) == "="):
        return " ".join(said.split()).rstrip("= "), stuck.rest()
    if said.strip() == "if":
        case, _, then = f"{stuck.token.text} {stuck.rest()}".partition(" then ")
        return case, then
    return "", ""


def _operand(stuck: Stuck) -> str:
    """Return the operand before the token."""
    at = len(stuck.tokens) - 1
    depth = 0
    while at > 0:
        one = stuck.tokens[at]
        depth += (one.text == ")") - (one.kind in ("(", "_ARGS"))
        before = stuck.tokens[at - 1]
        if depth <= 0 and one.kind in ("NAME", "QNAME", "STRING", "NUMBER") and before.text != ".":
            break
        at -= 1
    return " ".join(stuck.source.text[stuck.tokens[at].start : stuck.tokens[-1].end].split())


def _attribute_case(stuck: Stuck) -> str | None:
    """Return a hint about `cost 1 if k = 2`."""
    if stuck.token.text not in ("if", "unless", "where", "for") or not _in_block(stuck):
        return None
    starts = [at for at, one in enumerate(stuck.tokens) if one.text in _AMOUNTS]
    if not starts:
        return None
    amount = stuck.source.text[stuck.tokens[starts[-1]].start : stuck.tokens[-1].end]
    if stuck.token.text == "unless":
        return f"name the values that it is for: {amount} when k = a | b"
    return f"write: {amount} when {stuck.rest().rstrip(' }')}"


def _block_of(stuck: Stuck) -> str | None:
    """Return a hint about a set of calls that is followed by a wrong word."""
    text, rest = stuck.token.text, stuck.rest()
    if text in (",", "and", "or") and stuck.keyword in ("before", "forbid", "after"):
        return f"a set of calls is written a | b: {stuck.keyword} {stuck.head()} | {rest}"
    if stuck.keyword in ("before", "forbid") and text == "*" and len(stuck.tokens) == 1:
        return f"write: {stuck.keyword} any {rest}"
    if stuck.keyword == "before" and stuck.head() in ("every", "each", "all", "a", "any"):
        return f"write: before {text} {rest}"
    if stuck.keyword == "finally" and "require" in stuck.expected:
        return f"write: finally require {text} {rest}".rstrip()
    if stuck.keyword == "before" and "require" in stuck.expected:
        if text == "forbid":
            return f"write: before {rest} require {stuck.head()}, if that comes first"
        if text in ("if", "when", "where"):
            case, mark, then = rest.partition(" require ")
            return f"write: before {stuck.head()}({case}) require {then if mark else 'CONDITION'}"
        word = text if stuck.token.kind in ("NAME", "no", "not", "every", "unused") else ""
        word = "" if text in ("needs", "requires", "must", "needs_to", "do", "check") else word
        meant = f"{word} {rest}".strip().removeprefix("require ").removeprefix("have ")
        return f"write: before {stuck.head()} require {meant}" if meant else None
    if stuck.keyword == "after" and "owe" in stuck.expected and text in ("forbid", "require"):
        if text == "require" and not rest.startswith("no "):
            return f"write: after {stuck.head()} owe {rest}"
        return f"write: before {rest.removeprefix('no ')} require no {stuck.head()}"
    if stuck.keyword == "after" and "owe" in stuck.expected and stuck.token.kind == "NAME":
        what = rest if text in ("must", "needs", "requires", "do", "call") else f"{text} {rest}"
        return f"write: after {stuck.head()} owe {what}".rstrip()
    return None


def _exception(stuck: Stuck) -> str | None:
    """Return a hint about `forbid CALLS if CASE` and `forbid CALLS unless CASE`."""
    if stuck.keyword != "forbid" or not stuck.rest():
        return None
    if stuck.token.text in ("if", "when", "where"):
        return f"write: forbid {stuck.head()}({stuck.rest()})"
    if stuck.token.text in _COMPARISONS:
        field = f"{stuck.head()} {stuck.token.text} {stuck.rest()}"
        return f"write the comparison into a filter: forbid CALLS({field})"
    if stuck.token.text in ("unless", "without", "until", "except"):
        case = stuck.rest().removeprefix("if ").removeprefix("when ")
        return f"write: before {stuck.head()} require {case}"
    return None


def _limit_parts(stuck: Stuck) -> str | None:
    """Return a hint about the parts of a limit in another order."""
    if stuck.keyword != "limit":
        return None
    head, text = stuck.head(), stuck.token.text
    if text == "within" and "<=" in stuck.expected:
        window = " ".join(stuck.rest().split()[:2])
        rest = stuck.rest()[len(window) :].strip()
        counted = f"{head[:-1]} within" if head[-1:] == ")" else f"count({head} within"
        counted = f"{counted} {window})"
        return f"write the window inside: limit {counted} {rest}".rstrip()
    if text == "per" and "<=" in stuck.expected:
        return f"write: limit {head}, {stuck.rest()}"
    if text == "per" and stuck.rest() in ("session", "sessions"):
        return f"write: limit {head} in session"
    if text == "per":
        counted, mark, most = head.partition(" <= ")
        key = stuck.rest()
        scope = "" if "in session" in key or "across" in key else " in session"
        key, _, behind = key.partition(" in session" if "in session" in key else " across")
        if mark:
            behind = " in session" if scope or not behind else " across" + behind
            return f"write: {'limit ' + counted} per {key} <= {most}{behind}"
    if text in ("at", "to", "is") and "<=" in stuck.expected:
        most = stuck.rest().removeprefix("most ")
        counted = head if head[-1:] == ")" else f"count({head})"
        return f"write: limit {counted} <= {most}"
    if stuck.kind(1) == "NUMBER" and len(stuck.tokens) == 2 and stuck.token.kind == "NAME":
        return f"write: limit count({text}) <= {stuck.text(1)}"
    return None


_AMOUNTS = ("cost", "price", "latency", "epsilon")
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "~", "!~")
_CONDITIONS = ("before", "finally", "forbid", "after", "limit", "let", "expect")


def _unit(stuck: Stuck) -> str | None:
    if stuck.kind(1) != "NUMBER" or stuck.token.kind != "NAME":
        return None
    word = stuck.token.text
    if word[:1] in "eE" and word[1:].isdigit() and stuck.tokens[-1].end == stuck.token.start:
        return "numbers have no exponent: write 0.001"
    for unit, names in _UNITS.items():
        if word.lower() in names:
            return f"write '{unit}'"
    days = _LONGER.get(word.lower())
    if days is not None and stuck.text(1).isdigit() and len(stuck.text(1)) < 6:
        return f"write: {int(stuck.text(1)) * days} d"
    is_amount = _in_block(stuck) or not stuck.expected & {"and", "or"}
    return "the units are ms, s, m, h and d" if is_amount and "ms" in stuck.expected else None


_UNITS: Mapping[str, Sequence[str]] = {
    "ms": ("msec", "msecs", "millis", "milliseconds", "millisecond"),
    "s": ("sec", "secs", "second", "seconds"),
    "m": ("min", "mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "d": ("day", "days"),
}
_LONGER: Mapping[str, int] = {"week": 7, "weeks": 7, "month": 30, "months": 30, "year": 365}


# Words of other policy languages, with the form that this language has for them.
_POLICY_WORDS: Mapping[str, str] = {
    "unless": "write the exception as a condition: before CALLS require EXCEPTION or CONDITION",
    "where": "a filter is in brackets: CALLS(f = value)",
    "when": "write the case in the set: before CALLS(f = value) require CONDITION",
    "if": "write the case in the set: before CALLS(f = value) require CONDITION",
    "same": "`same` is in a filter: find_order(same order)",
    "with": "write both directions: before A require no B, and before B require no A",
    "each": "write: before CALLS require unused APPROVALS(same key)",
    "per": "`per` is in a limit: limit count(CALLS) per key <= n in session",
    "across": "`across sessions` is behind the bound: limit count(CALLS) <= n across sessions",
    "before": "a statement says first which calls it restricts: before CALLS require CONDITION",
    "as": "name an element with `let name(x) = ..`, or use `it`",
    "is": "equality is written '='",
    "then": "calls that follow each other are side by side in a plan: a b",
}


def _policy_word(stuck: Stuck) -> str | None:
    if stuck.keyword in ("before", "finally", "forbid", "after", "limit", "let"):
        if stuck.keyword == "forbid" and stuck.token.kind == "NAME":
            word = stuck.token.text
            known = _POLICY_WORDS.get(word)
            one, other = stuck.head(), f"{word} {stuck.rest()}".rstrip()
            meant = f"before {other} require no {one} since any - {one}"
            return known or f"for calls one directly after the other write: {meant}"
        return _POLICY_WORDS.get(stuck.token.text)
    return None


def _plan(stuck: Stuck) -> str | None:
    if stuck.keyword not in ("plan", "rule", "accept", "reject"):
        return None
    text = stuck.token.text
    if text in (",", "->", "then"):
        return f"calls that follow each other are side by side, without {quote(text)}: a b"
    if text in ("and", "or"):
        return "alternatives are written a | b; plans that are both, a & b"
    if stuck.token.kind == "NUMBER" or stuck.text(1) == "{":
        return "a repetition is written {3}, {1,3} or {1,}"
    return None


def _word_as_name(stuck: Stuck) -> str | None:
    """Return a hint about a statement's keyword within a plan: a tool may have this name."""
    if stuck.keyword in STARTERS and len(stuck.tokens) == 1 and not stuck.expected & {"STRING"}:
        line = stuck.source.text.rfind("\n", 0, stuck.tokens[0].start) + 1
        if stuck.tokens[0].start > line:
            word = stuck.keyword
            return f"`{word}` begins a statement; if a tool is called so, write it in backticks"
    return None


def _near_word(stuck: Stuck) -> str | None:
    """Return a hint with the nearest keyword that fits."""
    if stuck.token.kind != "NAME":
        return None
    words = [kind for kind in stuck.expected if kind.isalpha() and kind.islower() and len(kind) > 1]
    close = get_close_matches(stuck.token.text[:32].lower(), sorted(words), n=1, cutoff=0.75)
    return f"did you mean '{close[0]}'?" if close else None


_HINTS: Sequence[Callable[[Stuck], str | None]] = (
    _equals,
    _operators,
    _mixed,
    _attribute_case,
    _limit_parts,
    _block_of,
    _exception,
    _unit,
    _plan,
    _policy_word,
    _near_word,
    _word_as_name,
)
