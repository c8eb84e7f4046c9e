"""What may have been meant where a token cannot stand: the hint of a syntax error.

A hint is one of a list of common slips, each a function that knows its own; failing that, what the
statement looks like.  Normative text: docs/spec/language.md, section 9.  Cost: constant an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language.syntax.tokens import Lexeme
from tcc_compiler.language.syntax.words import BLOCK_WORDS, TYPES

# What each statement looks like.
FORMS: Mapping[str, str] = {
    "GRAMMAR": '`grammar NAME version "1.0"`',
    "CURRENCY": '`currency "EUR/100"`',
    "USE": '`use "tools.tcg"`',
    "TOOL": "`tool search(k: 5 | 10) { cost 0.5 }`",
    "GIVEN": "`given user: text`",
    "LET": "`let customer = find.user_id or get_user.user_id`",
    "MONITOR": "`monitor require search before reply`",
    "PASS": "`pass resources, prompts`",
    "RULE": "`rule gather = search rerank?`",
    "PLAN": "`plan = search rerank? (calc | reply)`",
    "START": "`start question`",
    "GOAL": "`goal text | number`",
    "LIMIT": "`limit depth <= 6`, `limit uses(search) <= 2`, `limit price <= 100` or "
    "`limit latency <= 80 ms`",
    "REQUIRE": "`require search before reply` or `require log after pay`",
    "FORBID": "`forbid pay pay`, `forbid read with send` or `forbid read before send`",
    "ACCEPT": "`accept search(k=5) reply`",
    "REJECT": "`reject reply`",
    "EXPECT": "`expect plans == 48`, `expect min_cost <= 0.5`, `expect max_depth == 6`, "
    '`expect never send after read`, `expect reachable reply` or `expect implies "parent.tcg"`',
}
_ATTRIBUTES = (
    '`cost 0.5`, `price 2`, `latency 80 ms`, `epsilon 0.1`, `doc ".."` or `cost 2 when k = 10`'
)
_OF_MODELS = (
    '`price 2`, `latency 80 ms`, `epsilon 0.1`, `quality 0.8`, `adapter "name"` or '
    "`atom laplace(8, 1)`"
)
_OF_EXECUTE = "`price 2`, `latency 80 ms`, `epsilon 0.1` or `atom laplace(8, 1)`"
_SECONDS = ("sec", "secs", "second", "seconds")
_MILLISECONDS = ("msec", "msecs", "millis", "milliseconds", "millisecond")
_MINUTES = ("m", "min", "mins", "minute", "minutes", "h", "hour", "hours")
_AMOUNT_WORDS = ("COST", "PRICE", "EPSILON", "LATENCY")
_IN_EXPRESSIONS = ("PLAN", "RULE")


@frozen
class Stuck:
    """Where the reading of a statement stopped.

    Attributes:
        tokens: of the statement.
        at: the number of the token that cannot stand there; how many there are, at the end.
        expected: the kinds of token that could.
        following: the keyword of the next statement, None at the end of the text.
        opened: the brackets that are open, the innermost last.
        kept: words of statements that the grammar declares as names.
    """

    tokens: Sequence[Lexeme]
    at: int
    expected: frozenset[str]
    following: Lexeme | None
    opened: Sequence[Lexeme]
    kept: frozenset[str] = frozenset()

    @property
    def keyword(self) -> str:
        """The kind of the statement."""
        return self.tokens[0].type

    def kind(self, step: int = 0) -> str:
        """The kind of the token so many steps from the one that cannot stand; empty outside."""
        at = self.at + step
        return self.tokens[at].type if 0 <= at < len(self.tokens) else ""

    def text(self, step: int = 0) -> str:
        """The text of that token; empty outside."""
        at = self.at + step
        return str(self.tokens[at]) if 0 <= at < len(self.tokens) else ""

    def touches(self, step: int = 0) -> bool:
        """Whether nothing stands between that token and the one before it."""
        at = self.at + step
        if not 0 < at < len(self.tokens):
            return False
        return self.tokens[at - 1].region.end == self.tokens[at].region.start

    @property
    def in_block(self) -> bool:
        """Whether the braces of a tool are open."""
        return self.keyword == "TOOL" and self.braces > 0

    @property
    def braces(self) -> int:
        """How many are open: of a tool, within them of a model, within them of `execute`."""
        return sum(token.type == "LBRACE" for token in self.opened)


def hint_for(stuck: Stuck) -> str:
    """How to correct it: the first hint that knows the slip, or what the statement looks like."""
    for hint in _HINTS:
        found = hint(stuck)
        if found is not None:
            return found
    if stuck.in_block:
        forms = (_ATTRIBUTES, _OF_MODELS, _OF_EXECUTE)
        what = "an attribute" if stuck.braces == 1 else "a part of a model"
        return f"{what} reads as {forms[min(stuck.braces, 3) - 1]}"
    keyword = stuck.keyword.lower()
    article = "an" if keyword[0] in "aeiou" else "a"
    return f"{article} `{keyword}` statement reads as {FORMS[stuck.keyword]}"


def _compared(stuck: Stuck) -> str | None:
    kind, expected = stuck.kind(), stuck.expected
    if kind not in ("_EQUAL", "EQEQ", "GE"):
        return None
    if kind == "_EQUAL" and "EQEQ" in expected:
        return "write '=='"
    if kind == "EQEQ" and "_EQUAL" in expected:
        return "write '='"
    if "LE" in expected and "GE" in expected:
        return "write '<=' or '>='; for exactly so many, a limit of each kind"
    if "LE" in expected:
        more = "" if kind != "GE" else "; `limit uses(..) >= N` alone asks for more"
        return f"a limit is the most there may be: write '<='{more}"
    return None


def _unit(stuck: Stuck) -> str | None:
    word = stuck.text()
    if "UNIT" not in stuck.expected:
        return None
    if stuck.kind() != "NAME":
        return "write the unit, 'ms' or 's', after the number"
    if word in _SECONDS:
        return "write 's'"
    if word in _MILLISECONDS:
        return "write 'ms'"
    return "write seconds: 90 s" if word in _MINUTES else "the units are 'ms' and 's'"


def _no_unit(stuck: Stuck) -> str | None:
    if stuck.kind() not in ("NAME", "UNIT") or stuck.kind(-1) != "NUMBER":
        return None
    if stuck.touches() and stuck.text()[:1] in "eE":
        return "numbers have no exponent: write 0.001"
    if stuck.text() in ("if", "where", "for"):
        return "write 'when'"
    kind = stuck.kind(-2) if stuck.in_block else stuck.kind(-3)
    if kind == "PRICE":
        label = stuck.text()[:8].upper()
        return f'a price has no unit: it is in whole cents, say which by: currency "{label}"'
    if kind in ("COST", "EPSILON", "DEPTH"):
        return f"a {kind.lower()} has no unit; a time is a latency: latency 80 ms"
    return None


def _attribute(stuck: Stuck) -> str | None:
    before = stuck.kind(-1)
    if not stuck.in_block:
        return None
    if before in _AMOUNT_WORDS and stuck.kind() in ("_EQUAL", "_COLON"):
        return f"leave the {stuck.text()!r} out: {stuck.text(-1)} 1"
    if before == "DOC" and stuck.kind() in ("_EQUAL", "_COLON"):
        return f"leave the {stuck.text()!r} out"
    if stuck.kind() == "_COMMA" and before == "NUMBER" and stuck.kind(1) == "NUMBER":
        return f"numbers have no ',': {stuck.text(-1)}{stuck.text(1)}"
    if stuck.kind() == "_COMMA":
        return "attributes need no ',' between them"
    if stuck.kind() == "NAME":
        near = _near(stuck.text(), sorted(BLOCK_WORDS | {"strict", "errors"}))
        if near is not None:
            return f"did you mean {near!r}?"
    return None


def _parameter(stuck: Stuck) -> str | None:
    if stuck.keyword != "TOOL" or stuck.in_block:
        return None
    kind = stuck.kind()
    if "_COLON" in stuck.expected and stuck.opened:
        name = stuck.text(-1)
        if kind == "_EQUAL":
            return f"a parameter is declared with ':': ({name}: 1 | 2)"
        return f"list its values, ({name}: 1 | 2), or give it a type, (; {name}: text)"
    if kind == "NUMBER" and stuck.kind(-1) == "_COMMA":
        return "values are listed with '|': 1 | 2"
    if kind == "MINUS" and stuck.kind(-1) == "NUMBER":
        return f"a range is written with '..': {stuck.text(-1)}..{stuck.text(1) or 8}"
    if stuck.at > 1 and stuck.kind(-2) == "_COLON" and stuck.text(-1) in TYPES:
        return "a parameter with a type stands behind a semicolon: (..; name: type)"
    if kind == "NAME" and not stuck.opened and stuck.at == 2:
        return f"a signature begins with ':': tool {stuck.text(-1)} : {stuck.text()} -> .."
    return None


def _name(stuck: Stuck) -> str | None:
    if stuck.at != 2 or stuck.kind() != "MINUS" or not stuck.touches():
        return None
    if stuck.keyword == "TOOL":
        return (
            f"a name that holds a '-' stands in double quotes: tool \"{joined(stuck.tokens, 1)}\""
        )
    return "such a name has letters, digits and '_' alone"


def joined(tokens: Sequence[Lexeme], at: int) -> str:
    """The tokens from `at` on as they stand together, without a space."""
    text = str(tokens[at])
    for before, token in zip(tokens[at:], tokens[at + 1 :], strict=False):
        if before.region.end != token.region.start or token.type not in ("MINUS", "NAME", "NUMBER"):
            break
        text += str(token)
    return text


def _head(stuck: Stuck) -> str | None:
    match stuck.keyword, stuck.kind():
        case "GRAMMAR", "STRING" if stuck.at == 1:
            return "a grammar's name stands without quotes: it has letters, digits and '_' alone"
        case "GRAMMAR", _ if "VERSION" in stuck.expected:
            return 'say the version: grammar NAME version "1.0"'
        case "GRAMMAR" | "CURRENCY" | "USE", kind if kind and "STRING" in stuck.expected:
            return f'write it in double quotes: "{stuck.text()[:40]}"'
        case "RULE" | "PLAN", kind if "_EQUAL" in stuck.expected and kind != "MINUS":
            named = " ".join(map(str, stuck.tokens[: stuck.at]))[:60]
            return f"write '=' before the expression: {named} = .."
    return None


def _argument(stuck: Stuck) -> str | None:
    tool, bracket, name = stuck.kind(-3), stuck.kind(-2), stuck.kind(-1)
    named = name == "NAME" and bracket == "LPAR" and tool in ("NAME", "STRING")
    if named and stuck.kind() in ("_COLON", "EQEQ"):
        return f"an argument is written with '=': {stuck.text(-3)}({stuck.text(-1)}=..)"
    if stuck.kind() in ("NUMBER", "STRING") and name == "LPAR" and bracket in ("NAME", "STRING"):
        return f"name the parameter: {stuck.text(-2)}(parameter={stuck.text()[:20]})"
    return None


def _side_by_side(stuck: Stuck) -> str | None:
    kind = stuck.kind()
    if stuck.keyword in ("ACCEPT", "REJECT"):
        if kind in ("STAR", "PLUS", "QMARK", "_PIPE", "LPAR", "ANY", "LBRACE"):
            return "an example is a sequence of calls without operators; write one line for each"
        if kind == "_EQUAL":
            return "leave the '=' out: the calls follow at once"
    if stuck.keyword not in (*_IN_EXPRESSIONS, "ACCEPT", "REJECT", "FORBID"):
        return None
    if kind == "LBRACE" or "LBRACE" in (stuck.kind(-1), stuck.kind(-2)):
        return "a repetition is written {3}, {1,3} or {1,}"
    if kind in ("_COMMA", "_ARROW"):
        return f"calls that follow each other stand side by side, without {stuck.text()!r}: a b"
    if kind == "_PIPE" and stuck.kind(-1) == "_PIPE":
        return "one '|' stands between alternatives"
    if kind == "_PIPE":
        return "an alternative stands on both sides of a '|'; `()` is the empty one"
    return None


def _comment(stuck: Stuck) -> str | None:
    if stuck.kind() == "MINUS" and "MINUS" in (stuck.kind(1), stuck.kind(-1)):
        return "comments start with '#'"
    return None


def _order(stuck: Stuck) -> str | None:
    if stuck.keyword == "REQUIRE":
        if stuck.text() in ("and", "then", "for", "to"):
            return "which comes first? write `require A before B`, or `require A after B`"
        if "BEFORE" in stuck.expected and not stuck.kind():
            return f"say before what: require {stuck.text(-1)} before .."
    if stuck.keyword == "FORBID" and stuck.kind() == "AFTER":
        return "turn it round: `forbid A before B` says that no B comes after an A"
    return None


def _kept(stuck: Stuck) -> str | None:
    """A word that the grammar declares as a name, where it seems meant as a word."""
    for step in (0, -1):
        word = stuck.text(step)
        if stuck.kind(step) == "NAME" and word in stuck.kept:
            return (
                f"{word!r} is a name in this grammar; to have it as a word of statements, declare"
                f' the name in quotes, "{word}", wherever it stands'
            )
    return None


def _kind_of_word(stuck: Stuck) -> str | None:
    """The nearest of the words that can stand there."""
    word = stuck.text() or (str(stuck.following) if stuck.following is not None else "")
    if stuck.kind() == "STRING" or not word.isidentifier():
        return None
    if stuck.keyword == "LIMIT" and stuck.at == 1:
        if word in ("calls", "length", "steps", "size"):
            bracket = stuck.kind(1) in ("LPAR", "_ARGS")
            return "write 'uses'" if bracket else "write 'depth': limit depth <= 6"
        if stuck.kind(1) in ("LE", "GE", "_EQUAL", "EQEQ"):
            near = _near(word, ("depth", "price", "latency", "cost", "epsilon"))
            return f"did you mean {near!r}?" if near else f"write: limit uses({word}) <= 3"
    words = sorted(kind.lower() for kind in stuck.expected if kind.isalpha() or kind in _PLACED)
    near = _near(word, [word for word in words if word not in ("name", "number", "string")])
    return None if near is None or near == word else f"did you mean {near!r}?"


_PLACED = ("MIN_COST", "MAX_DEPTH")


def _near(word: str, words: Sequence[str]) -> str | None:
    aliases = {"cost": "min_cost", "depth": "max_depth"}
    if aliases.get(word) in words:
        return aliases[word]
    from difflib import get_close_matches

    close = get_close_matches(word[:32].lower(), words, n=1, cutoff=0.7)
    return close[0] if close else None


_HINTS: tuple[Callable[[Stuck], str | None], ...] = (
    _kept,
    _comment,
    _compared,
    _unit,
    _no_unit,
    _attribute,
    _parameter,
    _name,
    _head,
    _argument,
    _side_by_side,
    _order,
    _kind_of_word,
)
