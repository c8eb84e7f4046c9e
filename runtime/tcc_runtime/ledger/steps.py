"""The records of many steps, rendered at once.

Format: docs/spec/ledger.md, section 3; a test holds the bytes equal to the canonical writer's.  The
lines of some steps wait until there are enough of them: to draw for a while and then to render for
a while is quicker than to change between the two at each step.  A line is put together as text,
which takes half as long as putting bytes together does.
Cost: a line the formatting of its numbers and its hash; memory: some 200 lines.
"""

from __future__ import annotations

from typing import TypeAlias

from tcc_runtime.guards import Descent, Guard
from tcc_runtime.item import (
    EDGE,
    ID,
    LEFT,
    ORDER,
    SOURCE,
    VIEW,
    WORD,
    Item,
    above,
    node_of,
    step_of,
)
from tcc_runtime.ledger.lines import (
    VARIANT,
    Contexts,
    Marks,
    clamp_members,
    member,
    node_id,
    q64_text,
)
from tcc_runtime.ledger.records import descent_members
from tcc_runtime.races.race import Race, Step, clamps

Waiting: TypeAlias = "tuple[Step, Descent | None]"


class StepLines:
    """Renders the steps of one run; members stand in the order of their names.

    Args:
        stamp: the start of every node_id.
        single: the member `N` or `Nub` of a leaf's record.
        marks: whether the claim was lowered.
        contexts: `ctx_repr` of the last calls of a prefix.
    """

    def __init__(self, stamp: str, single: str, marks: Marks, contexts: Contexts) -> None:
        self._stamp = stamp
        self._single = single
        self._marks = marks
        self._contexts = contexts

    def root(self, race: Race, root: Item) -> bytes:
        """The root's `node`."""
        state, text = root[VIEW].state, root[ID].hex()
        log, bits = race.shown(root)
        claim, guards = self._clamped(race, root) if bits else ("", "")
        return (
            f'{{{state.counted}{_word(root)}{claim}"ctx_digest":"{text}","ctx_repr":"",{guards}'
            f'"key_raw":"{q64_text(-root[ORDER])}","kind":"node",{_arrived(log)}'
            f'"node_id":"{node_id(self._stamp, text)}"{state.placed}}}'
        ).encode()

    def lines(self, race: Race, steps: list[Waiting]) -> list[bytes]:
        """The lines of some steps of one race; one loop, as most of a line's cost is in calls."""
        lines: list[bytes] = []
        stamp, late, shown = self._stamp, race.late, race.shown
        contexts, single = self._contexts, self._single
        known: Item | None = None  # the node whose node_id and last two calls these are:
        name = before = ""
        for step, descent in steps:
            item, drawn, winner, children, rest, dead = step
            node = item if item[3] is None else node_of(item)
            # The child that was rendered last is mostly the one that is popped next.
            if known is None or node[1] is not known[1]:
                known, name, before = node, node_id(stamp, node[1].hex()), _calls(node, 2)
            parent, edge = name, None
            if winner is None or dead or late or descent is not None or item is not node:
                lines.append(self._popped(race, step, descent, parent))
            else:
                lines.append(
                    f'{{"W":"{drawn}","kind":"expand","node_id":"{parent}","winner":"{winner}"}}'.encode()
                )
            pushed: Item | None = None
            for pushed in children:
                word, edge, view, text = pushed[7], pushed[6], pushed[2], pushed[1].hex()
                own = "" if word is None or word < 0 else f'"U":"{word}",'
                log, bits = shown(pushed)
                key, claim, guards = -pushed[0], "", ""
                if bits:
                    claim, guards = self._clamped(race, pushed)
                arrived = "" if late or log is None else f'"neg_log_t":"{q64_text(log)}",'
                if view is None:
                    calls, counted, placed, named = _calls(node, 3), single, "", '"call":"stop",'
                else:
                    call, state = edge[2], view.state
                    calls = f"{before} {call.text}" if before else call.text
                    counted, placed, named = state.counted, state.placed, call.named
                name = f"{stamp}{text[13:16]}-{VARIANT[text[16]]}{text[17:20]}-{text[20:32]}"
                lines.append(
                    f'{{{counted}{own}{named}{claim}"ctx_digest":"{text}","ctx_repr":{contexts[calls]},'
                    f'{guards}"key_raw":"{q64_text(key)}","kind":"node",{arrived}"node_id":"{name}",'
                    f'"parent_id":"{parent}"{placed},"tie_token":{pushed[5]}}}'.encode()
                )
            if rest is not None:
                lines.append(self._left(race, rest, parent))
            if pushed is not None:
                known = pushed
            if edge is not None and edge[2] is not None:
                last = node[6]
                before = edge[2].text if last is None else f"{last[2].text} {edge[2].text}"
        return lines

    def leaf(self, race: Race, leaf: Item, word: int, incumbent: int | None) -> bytes:
        """`leaf`: U_P is `word`, B* after it `incumbent`."""
        own = claim = guards = arrived = ""
        if race.late:
            own, arrived = _word(leaf), _arrived(race.shown(leaf)[0])
            if clamps(race, leaf, popped=True):
                claim, guards = clamp_members(self._marks)
        best = "" if incumbent is None else f'"incumbent":"{q64_text(incumbent)}",'
        name = node_id(self._stamp, leaf[ID].hex())
        return (
            f'{{{own}"U_P":"{word}","V":"{q64_text(-leaf[ORDER])}",{claim}{guards}{best}'
            f'"kind":"leaf",{arrived}"node_id":"{name}"}}'
        ).encode()

    def _left(self, race: Race, rest: Item, name: str) -> bytes:
        """`rest`: what a draw has left."""
        log, bits = race.shown(rest)
        claim, guards = self._clamped(race, rest) if bits else ("", "")
        return (
            f'{{"U":"{rest[7]}",{claim}{guards}"key_raw":"{q64_text(-rest[0])}","kind":"rest",'
            f'{_arrived(log)}"node_id":"{name}","step":{step_of(rest[3])}}}'
        ).encode()

    def _popped(self, race: Race, step: Step, descent: Descent | None, name: str) -> bytes:
        """`expand` or `draw`."""
        item, drawn, winner, _, _, dead = step
        word = won = ""
        if drawn is not None:
            word = f'"W":"{drawn}",'
            won = f',"winner":"{"phantom" if winner is None else winner}"'
        end = '"dead_end":true,' if dead else ""
        if item[LEFT] is not None:
            number = step_of(item[LEFT])
            draw = f'"kind":"draw","node_id":"{name}","step":{number}'
            return f"{{{word}{end}{draw}{won}}}".encode()
        own = arrived = ""
        fired, lowers = [], False
        if race.late and item[SOURCE] is not None:
            own, arrived = _word(item), _arrived(race.shown(item)[0])
            if clamps(race, item, popped=True):
                fired, lowers = [Guard.CLAMP], True
        phi = {}
        if descent is not None:
            phi = descent_members(descent)
            fired += [Guard.ACYCLICITY] * descent.fails + [Guard.CLAMP] * descent.clamp
            lowers |= descent.fails
        marks = self._marks.guards(fired, lowers)
        after = member("phi_after", phi, before=True) + member("phi_before", phi, before=True)
        return (
            f"{{{own}{word}{member('claim_type', marks)}{end}{member('delta_phi', phi)}"
            f'{member("guards", marks)}"kind":"expand",{arrived}"node_id":"{name}"{after}{won}}}'
        ).encode()

    def _clamped(self, race: Race, item: Item) -> tuple[str, str]:
        """The members `claim_type` and `guards` of an item that is pushed."""
        return clamp_members(self._marks) if clamps(race, item, popped=False) else ("", "")


def _word(item: Item) -> str:
    """The member `U`; nothing where the item won."""
    word = item[WORD]
    return "" if word is None or word < 0 else f'"U":"{word}",'


def _arrived(log: int | None) -> str:
    """The member `neg_log_t`."""
    return "" if log is None else f'"neg_log_t":"{q64_text(log)}",'


def _calls(node: Item, most: int) -> str:
    """The last calls of a prefix, at most `most`, one space between."""
    calls: list[str] = []
    step: Item | None = node
    while step is not None and step[EDGE] is not None and len(calls) < most:
        calls.append(step[EDGE][2].text)
        step = above(step)
    return " ".join(reversed(calls))
