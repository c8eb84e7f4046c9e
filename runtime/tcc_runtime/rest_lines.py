"""The records of the rest race, `rest` and `draw`, put together by hand.

Format: docs/spec/ledger.md, section 3.  Parts stand in the order of their sorted keys; a test holds
them equal to the canonical writer's bytes.  Cost: the formatting of two numbers.
"""

from __future__ import annotations

from tcc_runtime.lines import Marks, clamp_members, q64_text
from tcc_runtime.rest_item import Drawing, Rest


def rest_line(rest: Rest, node_id: str, marks: Marks) -> bytes:
    """`rest`: what a draw has left."""
    claim, guards = clamp_members(marks) if rest.clamp else ("", "")
    return (
        f'{{"U":"{rest.word}",{claim}{guards}"key_raw":"{q64_text(rest.key)}","kind":"rest",'
        f'"neg_log_t":"{q64_text(rest.neg_log_t or 0)}","node_id":"{node_id}","step":{rest.step}}}'
    ).encode()


def draw_line(drawing: Drawing, node_id: str) -> bytes:
    """`draw`: what was left is popped."""
    word = winner = ""
    if drawing.word is not None:
        word = f'"W":"{drawing.word}",'
        winner = f',"winner":"{"phantom" if drawing.winner is None else drawing.winner}"'
    dead = '"dead_end":true,' if drawing.dead_end else ""
    return (
        f'{{{word}{dead}"kind":"draw","node_id":"{node_id}","step":{drawing.step}{winner}}}'
    ).encode()
