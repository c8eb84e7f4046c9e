"""The statements of a core, compiled: their refusals, draws and debts.

:class:`FastPolicy` answers every question exactly as :class:`tcc_certs.policy.meaning.Policy` does.
Cost: constant for a statement whose keys or windows decide; otherwise as in the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tcc_certs.policy import forgetting
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import All, Rule, Term, is_computed
from tcc_certs.policy.history import Call, Draw
from tcc_certs.policy.kept import forgetting_of
from tcc_certs.policy.meaning import Debt, Policy, Refusal, policy_of, shown
from tcc_certs.values.places import UNKNOWN, exact_number
from tcc_runtime.gate.decide.conditions import Compiler
from tcc_runtime.gate.decide.feeds import Closure, Frame, Read
from tcc_runtime.gate.decide.history import Key
from tcc_runtime.gate.decide.owes import Owe
from tcc_runtime.gate.decide.totals import Totals

Decide: TypeAlias = "Callable[[Frame], str]"  # returns the code of the refusal, or ''
Drawn: TypeAlias = "Callable[[Frame], Draw | None]"


class FastPolicy(Policy):
    """The statements of a core, ready to decide calls in a :class:`FastHistory`.

    Raises:
        Fault: a statement or a `let` of the core is malformed.
    """

    def __init__(self, core: Core) -> None:
        # copies the resolved statements, which all policies of a core share
        vars(self).update(vars(policy_of(core)))
        self._forgetting = forgetting_of(core, self.rules)
        self._windows = {at: rule.within for at, rule in enumerate(self.rules)
                         if rule.kind == "limit"}  # fmt: skip
        self._compiler = Compiler(core, decided=True)
        owing = Compiler(core, decided=False)
        numbered = list(enumerate(self.rules))
        self._owes = {at: Owe(at, rule, owing) for at, rule in numbered if rule.kind == "owe"}
        self._sums = {
            rule.what: Totals(rule.what, self.amounts)
            for rule in self.rules
            if rule.kind == "total"
        }
        # Closures are compiled when a tool is first called.
        self._deciders: dict[str, tuple[tuple[int, Decide], ...]] = {}
        self._drawers: dict[str, tuple[tuple[int, Drawn], ...]] = {}
        self._decider_of: dict[int, Decide] = {}
        self._drawer_of: dict[int, Drawn] = {}
        self._parts_of: dict[int, tuple[Closure, ...]] = {}
        self._ends: dict[int, Closure] | None = None

    # Calls.

    def refusals(self, history: Any, call: Call, now_ms: int) -> list[Refusal]:
        """Return the statements that refuse a call, in the order of the core."""
        deciders = self._deciders.get(call.tool)
        if deciders is None:
            numbers = sorted([*self._statements_of(call.tool), *self._totals])
            deciders = tuple([(number, self._decider(number)) for number in numbers])
            self._deciders[call.tool] = deciders
        frame = Frame(self._compiler, history, call, now_ms)
        found = []
        for number, decide in deciders:
            frame.cut = False
            code = decide(frame)
            if code:
                found.append(Refusal(number, code))
        return found

    def failing(self, number: int, history: Any, call: Call | None, now_ms: int) -> list[int]:
        """Return the indices of the conditions of a `require` that are not surely true.

        Args:
            number: the number of the statement.
            call: the call being decided; None at the end of the session.
        """
        parts = self._parts_of.get(number)
        if parts is None:
            then = self.rules[number].then
            conditions = then.parts if isinstance(then, All) else () if then is None else (then,)
            parts = tuple([self._compiler.truth(part, False) for part in conditions])
            self._parts_of[number] = parts
        frame = Frame(self._compiler, history, call, now_ms)
        return [at for at, truth in enumerate(parts) if truth(frame) is not True]

    def total(self, number: int, history: Any, call: Call) -> Any:
        """Return the least possible total that includes the call being decided.

        Args:
            number: the number of the `total` statement.
        """
        sums = self._sums[self.rules[number].what]
        return sums.least(Frame(self._compiler, history, call, call.at_ms))

    def taken(self, what: str, history: Any) -> Any:
        """Return the total of all calls so far; a call with unknown answers counts the greatest
        amount.
        """
        return self._sums[what].taken(history)

    def draws(self, history: Any, call: Call, now_ms: int) -> Mapping[int, Draw]:
        """Return the draws of a call, by the number of each limit that counts it."""
        drawers = self._drawers.get(call.tool)
        if drawers is None:
            limits = [at for at in self._statements_of(call.tool) if self.rules[at].kind == "limit"]
            drawers = tuple([(number, self._drawer(number)) for number in limits])
            self._drawers[call.tool] = drawers
        found = {}
        if drawers:
            frame = Frame(self._compiler, history, call, now_ms)
            for number, drawn in drawers:
                draw = drawn(frame)
                if draw is not None:
                    found[number] = draw
        return found

    def forget(self, history: Any, now_ms: int) -> None:
        """See :class:`tcc_certs.policy.meaning.Policy`."""
        if len(history.calls) < history.next_look:
            return
        frame = Frame(self._compiler, history, None, now_ms)
        debts = {at: owe.caught_up(frame) for at, owe in self._owes.items()}
        totals = [one for one in self._sums.values() if one.what != "depth"]
        for one in totals:
            one.caught_up(history)
        firsts = {at: found.open.values() for at, found in debts.items()}
        needed = self._forgetting.needed(history.calls, now_ms, firsts)
        history.next_look = forgetting.next_look(len(needed))
        if len(needed) < len(history.calls):
            history.forget(needed, [*self._owes.values(), *totals])
        for number, within in self._windows.items():
            history.tally(number).forget(None if within is None else now_ms - within)

    # Obligations and ends.

    def debts(self, history: Any, now_ms: int) -> list[Debt]:
        """Return the obligations that may be open, in the order of statements and calls."""
        frame = Frame(self._compiler, history, None, now_ms)
        return [debt for owe in self._owes.values() for debt in owe.debts(frame)]

    def oldest_debt(self, number: int, history: Any, now_ms: int) -> Debt | None:
        """Return the first obligation of an `owe` statement that may be open, or None."""
        return self._owes[number].oldest(Frame(self._compiler, history, None, now_ms))

    def unmet(self, history: Any, now_ms: int) -> list[int]:
        """Return the numbers of the statements that keep the session from finishing, in order."""
        if self._ends is None:
            self._ends = {
                number: self._compiler.truth(rule.then, False)
                for number, rule in enumerate(self.rules)
                if rule.tools is None and rule.then is not None
            }
        frame = Frame(self._compiler, history, None, now_ms)
        found = [number for number, owe in self._owes.items() if owe.is_open(frame)]
        found += [number for number, then in self._ends.items() if then(frame) is not True]
        return sorted(found)

    # Statements.

    def _decider(self, number: int) -> Decide:
        found = self._decider_of.get(number)
        if found is None:
            found = self._decider_of[number] = self._compiled(number, self.rules[number])
        return found

    def _compiled(self, number: int, rule: Rule) -> Decide:
        where = self._compiler.all_of(rule.where, True) if rule.where else None
        match rule.kind:
            case "total":
                return self._total(rule)
            case "limit":
                return self._limits(number, rule)
            case "owe":
                return self._owes[number].decide
            case "forbid":
                return _where(where, _code)
            case "ask":
                return _where(where, lambda frame: "R211")
        if rule.then is None:
            raise TypeError(rule)
        then = self._compiler.truth(rule.then, False)
        return _where(where, lambda frame: "" if then(frame) is True else _code(frame))

    def _total(self, rule: Rule) -> Decide:
        most, sums = exact_number(rule.total), self._sums[rule.what]
        return lambda frame: "" if sums.least(frame) <= most else "R203"

    def _limits(self, number: int, rule: Rule) -> Decide:
        if rule.most is None:
            raise TypeError(rule)
        where = self._compiler.all_of(rule.where, False) if rule.where else None
        key_of, holds = _key(rule, self._compiler), self._compiler.holds(rule.most)
        within, across, field = rule.within, rule.across, rule.field

        def limits(frame: Frame) -> str:
            if where is not None and where(frame) is False:
                return ""
            since = None if within is None else frame.now - within
            used = frame.history.tally(number, across=across).amount(key_of(frame), since)
            frame.total = "n", used + (1 if field is None else shown(frame.arguments[field])[1])
            return "" if holds(frame) is True else _code(frame)

        return limits

    def _drawer(self, number: int) -> Drawn:
        found = self._drawer_of.get(number)
        if found is None:
            found = self._drawer_of[number] = _drawer(self.rules[number], self._compiler)
        return found


def _code(frame: Frame) -> str:
    return "R207" if frame.cut else "R202"


def _where(where: Closure | None, decide: Decide) -> Decide:
    """Return a decision that allows calls for which the filter is surely false."""
    if where is None:
        return decide
    return lambda frame: "" if where(frame) is False else decide(frame)


def _key(rule: Rule, compiler: Compiler) -> Callable[[Frame], Key | None]:
    """Return the closure of the key of a draw; it returns None if a part of the key is unknown."""
    per = [_shown(term, compiler.term(term)) for term in rule.per]
    if not per:
        return lambda frame: ()

    def key_of(frame: Frame) -> Key | None:
        key = tuple([term(frame) for term in per])
        return None if UNKNOWN in key else key

    return key_of


def _shown(term: Term, read: Read) -> Read:
    """Return the closure of a term of `per`.  A computed value has no digest, so its plain value is
    used.
    """
    return (lambda frame: shown(read(frame))) if is_computed(term) else read


def _drawer(rule: Rule, compiler: Compiler) -> Drawn:
    """Return the closure of a call's draw under a limit; it returns None if the limit does not
    count the call.
    """
    where = compiler.all_of(rule.where, False) if rule.where else None
    key_of, field = _key(rule, compiler), rule.field

    def drawn(frame: Frame) -> Draw | None:
        if where is not None and where(frame) is False:
            return None
        call = frame.call
        amount = 1 if field is None else shown(call.arguments[field])[1]
        return Draw(call, key_of(frame), amount)

    return drawn
