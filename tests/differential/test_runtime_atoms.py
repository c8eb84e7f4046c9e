"""Random runs over random artifacts whose models carry atoms: each validates, by both readers.

The account at the end is made once more from the records, in another way: all at once, by the
accountant, and not ask by ask.
"""

from __future__ import annotations

import json
import random

import pytest

from tcc_certs.errors import Code
from tcc_certs.formats.codec import decode, encode, format_decimal, parse_decimal
from tcc_certs.kernel import check
from tcc_certs.policy.atoms import Exact
from tcc_certs.privacy.accountant import epsilon_text, stated, total_of
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.privacy.curves import pure_curve
from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.runtime.graphs import build, random_rows
from tests.runtime.ranged import Unreliable, ranged_core, ranged_settings

ATOMS = (
    {"mechanism": "randomized_response", "probability": "0.6", "choices": 3},
    {"mechanism": "laplace", "scale": "9", "sensitivity": "1"},
    {"mechanism": "gaussian", "sigma": "12", "sensitivity": "1", "times": 2},
    {"mechanism": "rdp", "points": [["2", "0.01"], ["16", "0.09"]]},
)


def atomic_artifact(rng: random.Random) -> bytes:
    """A random artifact with ranges, half of its models with an atom."""
    while True:
        core = decode(ranged_core(rng, calls := rng.randint(1, 3), 0.5), "core")
        carried = 0
        for tool in core["tools"]:
            for model in tool.get("models", ()):
                if rng.random() < 0.5:
                    model["atom"] = rng.choice(ATOMS)
                    carried += 1
        if not carried:
            continue
        rows = random_rows(rng, calls, rng.randint(1, 4), 3)
        data = build(encode(core), rows, "1", rng.choice((0, 8)))
        artifact = load(data)
        if artifact.cost_low != artifact.cost_high:
            return data


@pytest.mark.parametrize("part", range(4))
def test_runs_that_count_atoms_validate_and_their_account_is_that_of_their_records(
    part: int,
) -> None:
    counted = 0
    for number in range(part * 15, part * 15 + 15):
        rng = random.Random(f"atoms {number}")
        data = atomic_artifact(rng)
        artifact = load(data)
        told = ranged_settings(rng, artifact, True)
        told["epsilon_cap"] = rng.choice((None, "0.3", "2"))
        told["delta"] = rng.choice((None, "0.001", "0.000000001"))
        told["atoms"] = atoms_of(list(rng.sample(ATOMS, rng.choice((0, 0, 1, 2)))))
        sink = MemorySink()
        quoter = Unreliable(rng, honest=True)
        search(
            artifact, Settings(seed=rng.randbytes(32), **told), Recorder(sink, started_ms=1),
            quoter=quoter,
        )  # fmt: skip
        written = bytes(sink.data)
        checked = check(data)
        assert validate(written, checked).verdict == 0, number
        counted += _holds([json.loads(line) for line in written.splitlines()])
    assert counted > 3


def _holds(records: list[dict]) -> bool:
    """Whether atoms were counted; what `close` says of them is what they come to."""
    refined = [record for record in records if record["kind"] == "refine"]
    listed = [*records[0].get("atoms", ()), *(r["atom"] for r in refined if "atom" in r)]
    number, places = parse_decimal(records[0]["delta"], "delta", Code.LEDGER_SCHEMA)
    total = total_of(atoms_of(listed))
    for record in refined:
        whole, digits = parse_decimal(record["epsilon"], "epsilon", Code.LEDGER_SCHEMA)
        total = total.plus(pure_curve(whole * 10 ** (9 - digits)))
    due, close = stated(total, Exact(number, places)), records[-1]
    assert close["epsilon_used"] == format_decimal(-(-due.epsilon // 10), 9)
    if not listed:
        assert "eps_delta" not in close
        return False
    assert close["eps_delta"]["eps"] == epsilon_text(due.epsilon)
    assert (close["alpha_selected"], close["router_rdp_eps"]) == (due.alpha, epsilon_text(due.rdp))
    return True
