"""Rendering the records of many steps together, and the rare records by the canonical writer.

Format: docs/spec/ledger.md, sections 3 and 5.  A test compares the bytes with those of the
canonical writer.  Steps wait until there are enough of them, because drawing in bulk and then
rendering in bulk is faster than alternating.  A line is built as text, which takes half as long as
building bytes.
Cost: for each line, formatting its numbers and hashing it.  Memory: about 200 lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tcc_certs.formats.codec import Json, format_decimal
from tcc_certs.formats.ledger import SCHEMA, format_q32
from tcc_certs.policy.atoms import atom_document
from tcc_certs.replay.amounts import cap_fields, spent_fields
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.guards import Descent, SearchGuard, Stop
from tcc_runtime.item import EDGE, ID, LEFT, ORDER, SOURCE, VIEW, WORD, Item, node_of, step_of
from tcc_runtime.ledger.lines import (
    DROP,
    FIVES,
    HALF,
    MINUS_ONE,
    ONE,
    TIE,
    VARIANT,
    Contexts,
    Marks,
    account_field,
    adapters_field,
    clamp_members,
    controller_field,
    delta_fields,
    key_texts,
    member,
    node_id,
    q64_text,
    rare_digits,
)
from tcc_runtime.outcome import Run
from tcc_runtime.races.interface import Race, Step, clamps
from tcc_runtime.settings.modes import Claim, Terms
from tcc_runtime.settings.settings import Mode, Settings
from tcc_runtime.states import DIGEST, PLACED, WeightedCall

# Rare records, as values for the canonical writer.


def open_record(
    artifact: Artifact, terms: Terms, commitment: bytes, started_ms: int
) -> dict[str, Json]:
    """Return the `open` record without `run_id`; `commitment` is the commitment to the seed."""
    manifest, settings = artifact.manifest, terms.settings
    return {
        "kind": "open",
        "schema": SCHEMA,
        "started_ms": started_ms,
        "artifact": artifact.digest.hex(),
        "grammar": manifest.grammar,
        "grammar_version": manifest.version,
        "root_state": manifest.root.hex(),
        "seed_commitment": commitment.hex(),
        "prf_domain": "tcc.race.v1",
        "mode": terms.mode,
        "claim_type": terms.claim.value,
        "race": terms.race,
        "keys": terms.keys,
        "recipe": settings.recipe,
        "tilt": manifest.tilt,
        "beta": format_decimal(*manifest.beta),
        "inflate": settings.inflate,
        "tau": settings.tau,
        "alpha": settings.alpha,
        "eta": settings.eta,
        "top": settings.top,
        "truncate": terms.truncate,
        "count_bits": settings.count_bits,
        "run_limits": _caps(settings),
        "privacy_scope": (
            "raw_input_dependent" if settings.raw_input_dependent else "post_processing_only"
        ),
        **_public(settings),
        **({"after": list(settings.after)} if settings.after else {}),
        **controller_field(terms),
        **adapters_field(terms),
        **account_field(terms),
        **_privacy(terms),
    }


def _privacy(terms: Terms) -> dict[str, Json]:
    """Return the members with the delta, the rule and the given atoms of a run that counts
    atoms.
    """
    if terms.taken is None:
        return {}
    atoms = [atom_document(atom) for atom in terms.settings.atoms]
    said: dict[str, Json] = {**delta_fields(terms.taken)}
    return {**said, **({"atoms": atoms} if atoms else {})}


def _caps(settings: Settings) -> Mapping[str, Json]:
    limits: dict[str, Json] = {}
    if settings.max_expansions is not None:
        limits["max_expansions"] = settings.max_expansions
    if settings.max_ms is not None:
        limits["max_ms"] = settings.max_ms
    return {**limits, **cap_fields(settings.spending_caps)}


def _public(settings: Settings) -> dict[str, Json]:
    named = {"beacon": settings.beacon, "client_nonce": settings.client_nonce}
    return {name: value.hex() for name, value in named.items() if value is not None}


def downgrade_record(mode: Mode, claim: Claim, guard: SearchGuard) -> dict[str, Json]:
    """Return a `downgrade` record."""
    return {
        "kind": "downgrade",
        "mode": mode,
        "claim_type": claim.value,
        "guards": [guard.value],
    }


def descent_members(descent: Descent) -> dict[str, Json]:
    """Return the members of an `expand` record about the potential Phi."""
    return {
        "phi_before": format_q32(descent.before),
        "phi_after": format_q32(descent.after),
        "delta_phi": format_q32(descent.delta),
    }


def close_record(run: Run, settings: Settings) -> dict[str, Json]:
    """Return a `close` record without the seed."""
    record: dict[str, Json] = {
        "kind": "close",
        "stop": run.stop.value,
        "claim_type": run.claim_type.value,
        "plans": [
            {
                "calls": list(plan.calls),
                "cost": plan.cost,
                "leaf_id": plan.leaf_id,
                "value": plan.value,
                **({} if plan.cost_high is None else {"cost_high": plan.cost_high}),
            }
            for plan in run.plans
        ],
        "expansions": run.expansions,
        "leaves": run.leaves,
        "law": run.law,
    }
    if run.frontier_key is not None:
        record["frontier_key"] = run.frontier_key
    if run.gap is not None:
        record["gap"] = run.gap
    if run.materialised is not None:
        record["materialised"] = run.materialised
    if run.tail_lse is not None:
        record["tail_lse"] = run.tail_lse
    if run.spent is not None:
        record |= {**spent_fields(run.spent), **cap_fields(settings.spending_caps)}
    else:
        record |= {} if run.taken is None else run.taken.fields()
    ending = _ending_guard(run)
    if ending is not None:
        record["guards"] = [ending.value]
    return record


def _ending_guard(run: Run) -> SearchGuard | None:
    """Return the guard that ended the run, which fired last; None: no guard ended it."""
    if run.stop in (Stop.MAX_EXPANSIONS, Stop.MAX_SECONDS, Stop.GUARD):
        return run.guards[-1]
    return None


# A step and its effect on Phi; or a leaf, its word U_P, and B* after it.
Waiting: TypeAlias = "tuple[Step, Descent | None] | tuple[Item, int, int | None]"
_STOP = f'"call":"stop",{DIGEST}'


class StepLines:
    """Renders the steps of one run, with members sorted by name.

    Args:
        stamp: the start of every node_id.
        single: the start of a leaf's record, with the member `N` or `Nub`.
        marks: remembers whether the claim was lowered.
        contexts: the texts `ctx_repr` by the last calls of a prefix.
    """

    def __init__(self, stamp: str, single: str, marks: Marks, contexts: Contexts) -> None:
        self._stamp = stamp
        self._single = single
        self._marks = marks
        self._contexts = contexts

    def root(self, race: Race, root: Item) -> bytes:
        """Return the `node` record of the root."""
        state, text = root[VIEW].state, root[ID].hex()
        log, bits = race.shown(root)
        claim, guards = self._clamped(race, root) if bits else ("", "")
        return (
            f'{state.counted}{_word(root)}{claim}{DIGEST}{text}","ctx_repr":"",{guards}'
            f'"key_raw":"{q64_text(-root[ORDER])}","kind":"node",{_arrived(log)}'
            f'"node_id":"{node_id(self._stamp, text)}","state":{state.shown}}}'
        ).encode()

    def lines(self, race: Race, steps: list[Waiting]) -> list[bytes]:
        """Return the records of some steps of one race, and of leaves that were popped between
        them.

        It is one loop that formats numbers itself, because function calls are a large part of a
        line's cost.
        """
        lines: list[bytes] = []
        add, stamp, contexts, single = lines.append, self._stamp, self._contexts, self._single
        late, timed, shown = race.late, race.timed, race.shown
        looks, bounds = timed or race.clamping, not timed and not late
        known: Item | None = None  # the node to which `name` and `calls` belong
        name = ""
        calls: tuple[WeightedCall, ...] = ()
        for waiting in steps:
            if len(waiting) == 3:
                add(self._leaf(race, *waiting))
                continue
            step, descent = waiting
            item, drawn, winner, children, rest, dead = step
            node = item if item[3] is None else node_of(item)
            # The node popped next is usually the child that was rendered last.
            if known is None or node[1] is not known[1]:
                name, calls = node_id(stamp, node[1].hex()), _calls(node)
            if winner is None or dead or late or descent is not None or item is not node:
                add(self._popped(race, step, descent, name))
            else:
                line = f'{{"W":"{drawn}","kind":"expand","node_id":"{name}","winner":"{winner}"}}'
                add(line.encode())
            known, parent, before = node, name, calls[-2:]
            following = contexts[before]
            for known in children:
                order, ident, place, edge, word = known[0], known[1], known[5], known[6], known[7]
                own = "" if word is None or word < 0 else f'"U":"{word}",'
                call, text = edge[2], ident.hex()
                if call is None:
                    counted, named, placed, context = single, _STOP, PLACED, contexts.of(calls)
                else:
                    state, named, context = known[2].state, call.named, following[call]
                    counted, placed = state.counted, state.placed
                name = f"{stamp}{text[13:16]}{VARIANT[text[16]]}{text[17:20]}-{text[20:32]}"
                arrived = ""
                if looks:
                    log, bits = shown(known)
                    if bits:
                        claim, guards = self._clamped(race, known)
                        named = f"{named[: -len(DIGEST)]}{claim}{DIGEST}"
                        context += guards and f",{guards[:-1]}"
                    if timed and log is not None:
                        digits = str(log * FIVES + HALF >> DROP)
                        if ONE > log > MINUS_ONE or not log & TIE:
                            digits = rare_digits(digits, log)
                        arrived = f'"neg_log_t":"{digits[:-20]}.{digits[-20:]}",'
                if bounds:
                    line = (
                        f'{counted}{own}{named}{text}","ctx_repr":{context},"key_raw":"{key_texts[order]}",'
                        f'"kind":"node","node_id":"{name}","parent_id":"{parent}{placed}{place}}}'
                    )
                else:
                    key = str(HALF - order * FIVES >> DROP)
                    if ONE > order > MINUS_ONE or not order & TIE:
                        key = rare_digits(key, -order)
                    line = (
                        f'{counted}{own}{named}{text}","ctx_repr":{context},"key_raw":"{key[:-20]}.{key[-20:]}",'
                        f'"kind":"node",{arrived}"node_id":"{name}","parent_id":"{parent}{placed}{place}}}'
                    )
                add(line.encode())
            if rest is not None:
                add(self._left(race, rest, parent))
            if known is not node and call is not None:
                calls = *before, call
        return lines

    def _leaf(self, race: Race, leaf: Item, word: int, incumbent: int | None) -> bytes:
        """Return a `leaf` record with its word U_P, and B* after it."""
        own = claim = guards = arrived = ""
        if race.late:
            own, arrived = _word(leaf), _arrived(race.shown(leaf)[0])
            if race.clamping and clamps(race, leaf, popped=True):
                claim, guards = clamp_members(self._marks)
        best = "" if incumbent is None else f'"incumbent":"{q64_text(incumbent)}",'
        name = node_id(self._stamp, leaf[ID].hex())
        return (
            f'{{{own}"U_P":"{word}","V":"{q64_text(-leaf[ORDER])}",{claim}{guards}{best}'
            f'"kind":"leaf",{arrived}"node_id":"{name}"}}'
        ).encode()

    def _left(self, race: Race, rest: Item, name: str) -> bytes:
        """Return a `rest` record for the remainder after a draw.  In races that draw it has an
        arrival.
        """
        order, left = rest[0], rest[3]
        log, bits = race.shown(rest)
        if log is None:
            raise ValueError("the remainder of a node has an arrival")
        claim, guards = self._clamped(race, rest) if bits else ("", "")
        key, digits = str(HALF - order * FIVES >> DROP), str(log * FIVES + HALF >> DROP)
        if ONE > order > MINUS_ONE or not order & TIE:
            key = rare_digits(key, -order)
        if ONE > log > MINUS_ONE or not log & TIE:
            digits = rare_digits(digits, log)
        return (
            f'{{"U":"{rest[7]}",{claim}{guards}"key_raw":"{key[:-20]}.{key[-20:]}","kind":"rest",'
            f'"neg_log_t":"{digits[:-20]}.{digits[-20:]}","node_id":"{name}",'
            f'"step":{1 if type(left) is int else left.step}}}'
        ).encode()

    def _popped(self, race: Race, step: Step, descent: Descent | None, name: str) -> bytes:
        """Return an `expand` or `draw` record."""
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
            if race.clamping and clamps(race, item, popped=True):
                fired, lowers = [SearchGuard.CLAMP], True
        if descent is None and not fired:
            return f'{{{own}{word}{end}"kind":"expand",{arrived}"node_id":"{name}"{won}}}'.encode()
        phi = {}
        if descent is not None:
            phi = descent_members(descent)
            fired += [SearchGuard.ACYCLICITY] * descent.fails + [SearchGuard.CLAMP] * descent.clamp
            lowers |= descent.fails
        marks = self._marks.guards(fired, lowers)
        after = member("phi_after", phi, before=True) + member("phi_before", phi, before=True)
        return (
            f"{{{own}{word}{member('claim_type', marks)}{end}{member('delta_phi', phi)}"
            f'{member("guards", marks)}"kind":"expand",{arrived}"node_id":"{name}"{after}{won}}}'
        ).encode()

    def _clamped(self, race: Race, item: Item) -> tuple[str, str]:
        """Return the members `claim_type` and `guards` of a pushed item, or empty texts."""
        return clamp_members(self._marks) if clamps(race, item, popped=False) else ("", "")


def _word(item: Item) -> str:
    """Return the member `U`; '' if the item is the winner."""
    word = item[WORD]
    return "" if word is None or word < 0 else f'"U":"{word}",'


def _arrived(log: int | None) -> str:
    """Return the member `neg_log_t`, or ''."""
    return "" if log is None else f'"neg_log_t":"{q64_text(log)}",'


def _calls(node: Item) -> tuple[WeightedCall, ...]:
    """Return the last calls of a prefix, at most three."""
    calls: tuple[WeightedCall, ...] = ()
    while (edge := node[EDGE]) is not None:
        calls = edge[2], *calls
        if len(calls) == 3:
            break
        node = node_of(node[SOURCE])
    return calls
