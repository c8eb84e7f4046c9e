"""Every field of every record kind is held: taken out of its table, or loosened, it is seen.

The kinds and their fields are written here once more, as docs/spec/ledger.md and
docs/spec/session.md have them.  Of each kind there is a record with all of its fields, one with the
required fields alone, and each of the first with one field taken out or with something else in its
place.  A mutant of a table has one field taken out, or its presence turned, or its form replaced by
one that takes anything; a mutant that takes and refuses what the table does is not seen, and fails.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats import ledger_schema
from tcc_certs.session import execution_forms, records

Fields = tuple[str, str]  # those that are required, and those that may stand there
HEX, UUID, KEY = "0" * 64, "01890a5d-ac96-774b-bcce-b302099a8057", "0" * 32
Q64, Q32, EPSILON = "0." + "0" * 20, "0." + "0" * 10, "0." + "0" * 10
STRANGE: tuple[Any, ...] = ([], {}, "", "a b", -1, 0, True, False, 1.5, "-", None)
PLAN = {"calls": ["a"], "cost": "1.5", "leaf_id": HEX, "value": Q64}
ADAPTER = {
    "adapter_id": HEX, "delta_train": "0", "dp_cert_id": "", "eps_train": "0", "name": "a",
    "tier": "",
}  # fmt: skip
WEIGHTS = {"epsilon_weight": "0", "latency_weight": "0", "price_weight": "0"}
LEFT = {"epsilon": "1", "latency_ms": "1", "price": "1"}
SPENT = "price_spent latency_ms epsilon_used"
PRIVATE = "router_rdp_eps alpha_selected eps_delta"
CAPS = "price_cap sla_ms epsilon_cap"
ADAPTED = "adapter_id dp_cert_id eps_train delta_train"
LOWERED = "claim_type guards"
AMOUNTS = {"price": "0", "latency": "0", "epsilon": "0"}
SUMS = {"price_spent": "0", "latency_ms": "0", "epsilon_used": "0", "left": LEFT}
# A value that has the form of the field of each name; those of one kind alone by `kind.name`.
NAMED: tuple[tuple[Any, str], ...] = (
    ("a", """schema grammar grammar_version prf_domain mode claim_type race keys recipe
        privacy_scope stop law call ctx_repr winner model_id accounting budget_event dp_cert_id
        tool code kind"""),
    (HEX, """continues artifact root_state seed_commitment ctx_digest reservation adapter_id seed
        opening_salt key_commitment principal result ref"""),
    (UUID, "run_id node_id parent_id session_id parent"),
    (Q64, "key_raw V neg_log_t frontier_key gap tail_lse incumbent slack"),
    (Q32, "phi_before phi_after delta_phi dkey_pred dkey_real dkey_margin"),
    (1, "step top seq"),
    (0, """started_ms at_ms tilt truncate count_bits tie_token dropped_bytes records expansions
        leaves materialised price_cap sla_ms ms state
        expires_ms statement"""),
    ("0", """U U_P N Nub W beta inflate tau alpha eta cost_low cost_high delta eps_train
        delta_train epsilon epsilon_cap price latency epsilon_used price_spent latency_ms"""),
    ("00", "beacon client_nonce"),
    (True, "dead_end unforeseen shadow answered made abandoned"),
    (KEY, "nonce key mac id"),
)  # fmt: skip
VALUES: Mapping[str, Any] = {
    **{name: item for item, names in NAMED for name in names.split()},
    "router_rdp_eps": EPSILON,
    "alpha_selected": "2",
    "eps_delta": {"delta": "0", "eps": EPSILON},
    "run_limits": {"max_ms": 1},
    "account": {"id": HEX, "epsilon": "1"},
    "account_left": LEFT,
    "left": LEFT,
    "adapters": [ADAPTER],
    "after": ["a"],
    "atom": {},
    "atoms": [{}],
    "controller": {"ask": "node", **WEIGHTS},
    "budget.session.controller": WEIGHTS,
    "guards": ["NumClamp"],
    "states": [0],
    "plans": [PLAN],
    "statements": ["a"],
    "arguments": {"show": []},
    "given": {"a": {"digest": HEX}},
    "open": {"a": {"digest": HEX}},
    "constants": [HEX],
    "across": {"account": HEX, "at_ms": 0, "attempt": 0, "draws": []},
    "outcome": "done",
    "observed": {"a": "b"},
    "answers": {"a": {"unknown": True}},
    "who": "a",
    "verdict": "denied",
    "approvals": [KEY],
    "execute": {"model_id": "m", **AMOUNTS, **SUMS},
    "took": {**AMOUNTS, **SUMS},
}
RUN: Mapping[str, Fields] = {
    "open": (
        """kind schema run_id started_ms artifact grammar grammar_version root_state seed_commitment
        prf_domain mode claim_type race keys recipe tilt beta inflate tau alpha eta top truncate
        count_bits run_limits privacy_scope""",
        "account accounting adapters after atoms beacon client_nonce controller delta guards",
    ),
    "node": (
        "kind node_id ctx_digest ctx_repr key_raw",
        f"parent_id call state N Nub U neg_log_t tie_token {LOWERED}",
    ),
    "expand": (
        "kind node_id", f"W winner U neg_log_t dead_end phi_before phi_after delta_phi {LOWERED}"
    ),
    "leaf": ("kind node_id V U_P", f"U neg_log_t incumbent {LOWERED}"),
    "rest": ("kind node_id step U key_raw neg_log_t", LOWERED),
    "draw": ("kind node_id step", "W winner dead_end"),
    "requeue": ("kind node_id key_raw", f"step {LOWERED}"),
    "budget": (
        f"kind budget_event {SPENT}",
        f"""node_id ctx_digest call model_id dkey_pred dkey_margin slack reservation account_left
        guards {CAPS} {ADAPTED} {PRIVATE}""",
    ),
    "refine": (
        "kind node_id ctx_digest call model_id dkey_pred dkey_real price latency epsilon " + SPENT,
        f"cost_low cost_high atom dkey_margin account_left {LOWERED} {ADAPTED} {PRIVATE}",
    ),
    "downgrade": (f"kind mode {LOWERED}", ""),
    "recovered": ("kind dropped_bytes records", ""),
    "close": (
        "kind stop claim_type plans expansions leaves law",
        f"""frontier_key gap materialised tail_lse seed opening_salt guards
        {SPENT} {CAPS} {PRIVATE}""",
    ),
}  # fmt: skip
SESSION: Mapping[str, Fields] = {
    "session": (
        """kind schema session_id started_ms nonce artifact grammar grammar_version root_state
        statements arguments key_commitment mac""",
        "given constants principal parent shadow continues",
    ),
    "call": (
        "kind seq call open states key mac", "ref at_ms across approvals execute",
    ),
    "outcome": (
        "kind seq outcome ms mac",
        "observed unforeseen result answered answers at_ms took",
    ),
    "resolve": ("kind seq outcome mac", "observed answered answers who at_ms"),
    "refusal": ("kind tool code mac", "statement made"),
    "ask": ("kind id statement who tool call open at_ms expires_ms mac", ""),
    "approval": ("kind id verdict who at_ms mac", ""),
    "budget": (
        "kind controller mac", f"{CAPS} delta accounting atoms adapters account",
    ),
    "asked": (f"kind price latency epsilon {SPENT} left mac", f"atoms {PRIVATE}"),
    "roll": ("kind mac", ""),
    "end": ("kind abandoned mac", "at_ms"),
}  # fmt: skip


def value(kind: str, name: str, where: str) -> Any:
    """A value in the form of a field."""
    if name == "kind":
        return kind
    return copy.deepcopy(VALUES.get(f"{kind}.{where}.{name}", VALUES.get(name)))


def corpus(kind: str, fields: Fields, where: str) -> tuple[list[dict[str, Any]], int]:
    """Records of a kind, and how many of them, from the first on, hold the table."""
    required, optional = (part.split() for part in fields)
    least = {name: value(kind, name, where) for name in required}
    more = {name: value(kind, name, where) for name in optional}
    whole = least | more
    found = [whole, least]
    found += [{other: item for other, item in whole.items() if other != name} for name in more]
    holding = len(found)
    found += [
        {other: item for other, item in whole.items() if other != name}
        for name in whole
        if name not in more
    ]
    # None of the spellings that a field may have is missed: those that hold are held as well.
    found += [{**whole, name: strange} for name in whole for strange in STRANGE if name != "kind"]
    return [*found, {**whole, "zzz": 1}], holding


def outcome(check: Callable[[Any], str], record: Mapping[str, Any]) -> str:
    try:
        return check(record)
    except Rejected as refusal:
        return str(refusal)


def anything(_: object) -> bool:
    """A form that everything has."""
    return True


Pair = tuple[dict[str, Any], dict[str, Any]]  # the forms of required fields, and of all


def mutants(required: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[tuple[str, Pair]]:
    """What was done to a table of required and of all fields, and what it became."""
    for name, (label, _) in known.items():
        if name == "kind":
            continue  # which table it is, and read before
        less = [{key: form for key, form in part.items() if key != name} for part in
                (required, known)]  # fmt: skip
        yield f"without {name}", (less[0], less[1])
        turned = less[0] if name in required else {**required, name: known[name]}
        yield f"{name} required: {name not in required}", (turned, dict(known))
        yield f"{name} loose", (dict(required), {**known, name: (label, anything)})


def unseen(
    check: Callable[[Any], str],
    place: Callable[[Pair], None],
    table: tuple[Mapping[str, Any], Mapping[str, Any]],
    documents: tuple[Sequence[Mapping[str, Any]], int],
) -> list[str]:
    """The mutants of a table by which every record has the outcome that it had."""
    found, holding = documents
    due = [outcome(check, record) for record in found]
    assert all(" at line" not in told for told in due[:holding]), due[:holding]
    assert due[-1].startswith("L103")
    same = []
    for what, mutant in mutants(*table):
        place(mutant)
        if all(outcome(check, record) == before for record, before in zip(found, due, strict=True)):
            same.append(what)
    return same


@pytest.mark.parametrize("kind", RUN)
def test_every_field_of_a_run_is_held(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    required, known = ledger_schema._REQUIRED, ledger_schema._FIELDS
    assert set(RUN) == set(known)

    def place(mutant: Pair) -> None:
        monkeypatch.setattr(ledger_schema, "_REQUIRED", {**required, kind: mutant[0]})
        monkeypatch.setattr(ledger_schema, "_FIELDS", {**known, kind: mutant[1]})

    table = required[kind], known[kind]
    documents = corpus(kind, RUN[kind], "run")
    assert (
        unseen(lambda record: ledger_schema.check_record(record, 2), place, table, documents) == []
    )


@pytest.mark.parametrize("kind", SESSION)
def test_every_field_of_a_session_is_held(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = records._FIELDS
    assert set(SESSION) == set(kept)

    def place(mutant: Pair) -> None:
        monkeypatch.setattr(records, "_FIELDS", {**kept, kind: mutant})

    documents = corpus(kind, SESSION[kind], "session")
    assert (
        unseen(lambda record: records.check_record(record, 2), place, kept[kind], documents) == []
    )


OBJECTS: Mapping[str, tuple[str, str]] = {
    "_EXECUTE": (
        f"model_id price latency epsilon {SPENT} left",
        f"{ADAPTED} {PRIVATE} reservation account_left refused",
    ),
    "_TOOK_OBJECT": (f"price latency epsilon {SPENT} left", f"{PRIVATE} atom account_left"),
    "_WISHED": ("model_id account_left", ""),
    "_WEIGHTS": ("epsilon_weight latency_weight price_weight", "margin"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_every_member_of_an_object_of_models_is_held(name: str) -> None:
    required, optional = (part.split() for part in OBJECTS[name])
    values = {**VALUES, **dict.fromkeys([*WEIGHTS, "margin"], "0")}
    values["refused"] = [{"model_id": "m", "account_left": LEFT}]
    whole = {member: values[member] for member in (*required, *optional)}
    holds = getattr(execution_forms, name)[1]
    assert holds(whole)
    assert not holds({**whole, "zzz": 1})
    assert not holds(sorted(whole))
    for member in whole:
        rest = {other: item for other, item in whole.items() if other != member}
        assert holds(rest) == (member in optional)
        # An atom is an object here, whatever is in it; its own reader holds it.
        strange = [{**whole, member: item} for item in STRANGE]
        assert not all(map(holds, strange))
