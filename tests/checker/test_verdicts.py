"""The extracted checker says what ``tcc_certs`` says, of honest and of forged artifacts.

Run are the program that scripts/proofs built, where it did, and node with the committed JavaScript.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc.library import artifact_bytes, second_checker
from tcc_certs.kernel import check
from tests.campaigns import seeds
from tests.checker.verdicts import (
    CHECKER,
    NEAREST,
    NOT_YET,
    ROOT,
    SCRIPT,
    compared,
    forged,
    judged,
    program,
    said,
)
from tests.forgery.artifacts import Forge
from tests.forgery.test_artifact_forgeries import KINDS, twenty
from tests.oracle.build import build
from tests.oracle.cores import random_core, random_later_core
from tests.oracle.examples import example
from tests.oracle.plans import plans, words

pytestmark = pytest.mark.skipif(
    program() is None, reason="no extracted checker (scripts/proofs --checker), and no node"
)
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


def made(name: str) -> bytes:
    return artifact_bytes(library.compile_file(ROOT / "grammars" / f"{name}.tcg"))


def test_an_honest_artifact_is_valid() -> None:
    [line] = said([example()])
    assert line.startswith("VALID: ") and "12 plans" in line
    assert line.endswith(check(example()).file.digest.hex())


def test_no_verdict_of_a_forgery_differs_where_the_checker_has_the_rule() -> None:
    pairs = list(compared(forged(example(), 400)))
    assert [pair for pair in pairs if not pair.agree and pair.certs not in NOT_YET] == []
    assert sum(pair.extracted == "REJECTED" for pair in pairs) > 200


@pytest.mark.parametrize(
    ("name", "most"),
    [("research", 60)]
    + [
        pytest.param(name, 6000, marks=pytest.mark.campaign)
        for name in ("research", "support_refund", "question_answering")
    ],
)
def test_of_columns_and_manifest_no_verdict_differs_but_of_the_nearest_weight(
    name: str, most: int
) -> None:
    for pair in compared(forged(made(name), most, core=False)):
        assert pair.agree or pair.certs == NEAREST, pair


COUNTED = """grammar counted version "1"

tool a(k: 1 | 2 | 3 | 4 | 5 | 6) { cost 0.3 cost 9 when k = 2 | 3 }
tool b { cost 7 }
tool c

plan = (a | b | c c){0,22}
"""


@pytest.mark.parametrize(
    "options",
    [
        {"purpose": "gate"},
        {"purpose": "gate", "relax": ("count",)},
        *({"round_counts": bits, "tilt": tilt} for bits, tilt in ((1, 8), (8, 4), (63, 0))),
        {"round_counts": 40, "relax": ("count",)},
    ],
    ids=str,
)
@pytest.mark.sampled(3)
def test_of_counts_that_are_bounds_no_verdict_differs(options: dict[str, Any]) -> None:
    """Counts for a gate, past 2^63, and rounded ones, of sums whose parts are far apart."""
    left = "limit count(b) <= 3\n" if "relax" in options else ""
    data = artifact_bytes(library.compile_text(COUNTED + left, **options))
    pairs = list(compared(forged(data, 60)))
    assert [pair for pair in pairs if not pair.agree and pair.certs not in NOT_YET] == []
    assert pairs[-1].extracted == "VALID"


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.sampled(5)
def test_of_no_feature_differs_a_verdict(kind: str) -> None:
    pairs = list(compared(forged(KINDS[kind], 100)))
    assert [pair for pair in pairs if not pair.agree and pair.certs not in NOT_YET] == []
    assert pairs[-1].extracted == "VALID"


EVERY_TEXT = r"""grammar texts version "1.0 é"

tool `put it`(k: 1 | 2.5 | "a \"b\" é" | "tool", n?: 0.25 | 12) {
  cost 0.75
  cost 0.000000001 when k = 1
  price 3
  epsilon 0.125
}
tool any_(m: true | null | -3) { cost 10000000.5 }

plan = (`put it` | any_){0,3}

limit depth <= 3
limit count(`put it`(k = 1 | "tool", n != null, n = 12)) <= 2
before `put it`(n != null) require sum(`put it`.n) + n <= 12.5
limit cost <= 10000001.75
limit epsilon <= 0.375
limit price <= 9
limit latency <= 5 s
"""


def test_texts_of_every_kind_of_name_and_value() -> None:
    """Quotes, numbers past 2^53, fractions and absent values."""
    data = artifact_bytes(library.compile_text(EVERY_TEXT))
    pairs = list(compared(forged(data, 200)))
    assert [pair for pair in pairs if not pair.agree and pair.certs not in NOT_YET] == []
    assert pairs[-1].extracted == "VALID"


def test_random_cores_of_every_kind_are_judged_alike() -> None:
    """Texts of calls, tools, strict answers."""
    rng = random.Random(3)
    files = [*seeds.artifacts(), *twenty(), *KINDS.values()]
    for _ in range(40):
        data, core = random_core(rng, 3)
        if found := plans(core, 3):
            files.append(build(data, found, tilt=rng.choice((0, 3, 8))))
        data, core = random_later_core(rng)
        rules = {name: words(core, body, {}, 3) for name, body in core.rules.items()}
        free = sorted(words(core, core.plan, rules, 3)) or [()]
        files += [build(data, chosen, tilt=0) for chosen in (plans(core, 3), free) if chosen]
    met: Counter[tuple[str, str]] = Counter()
    for data, line in zip(files, said(files), strict=True):
        certs, extracted = judged(data), line.partition(":")[0]
        met[certs, extracted] += 1
        if certs not in NOT_YET:
            assert (certs == "VALID") == (extracted == "VALID"), (certs, line)
    assert met["VALID", "VALID"] > 60 and met["C901", "REJECTED"] > 5


@needs_node
def test_node_says_what_the_program_says() -> None:
    files = [mutant.data for mutant in forged(example(), 200)]
    under_node = said(files, second_checker.under_node(SCRIPT))
    assert any(line.startswith("VALID") for line in under_node)
    if CHECKER.exists():
        assert under_node == said(files, [str(CHECKER)])


@pytest.mark.campaign
def test_every_shipped_artifact_and_two_thousand_forgeries() -> None:
    names = sorted(path.stem for path in (ROOT / "grammars").glob("*.tcg"))
    files = [made(name) for name in names]
    assert {line.partition(":")[0] for line in said(files)} == {"VALID"}
    for line, data in zip(said(files), files, strict=True):
        assert line.endswith(check(data).file.digest.hex())
    small = [data for data in files if len(data) < 1 << 15]
    seen = 0
    for data in small:
        pairs = list(compared(forged(data, 600)))
        seen += len(pairs)
        assert [pair for pair in pairs if not pair.agree and pair.certs not in NOT_YET] == []
    assert seen >= 2000


def test_hostile_texts_are_judged_at_once() -> None:
    """Numbers, nesting and texts without bound: no verdict takes long, none is VALID."""
    size = len(example())
    deep, wide = b"[" * 200_000, b"9" * 400_000
    files = [
        len(body).to_bytes(8, "little") + body
        for body in (deep, b'{"accept":' + wide, b'{"accept":{"data_offsets":[' + wide + b"]}}")
    ]
    files += [b"", b"\xff" * 8, b"\xff" * size]
    assert "VALID" not in {line.partition(":")[0] for line in said(files)}


def test_edges_that_two_states_share_take_no_memory() -> None:
    """Starts that fall: each second state had all edges, more than the reader is given room for."""
    names = "abcdefg"
    limits = "".join(f"tool {name}\nlimit count({name}) <= 2\n" for name in names)
    text = f'grammar wide version "1"\n{limits}plan = ({" | ".join(names)})*\n'
    forge = Forge(artifact_bytes(library.compile_text(text)))
    starts, most = forge.values("edge_start"), forge.values("edge_start")[-1]
    assert (len(starts) - 1) // 2 * most > 10**7
    forge.put("edge_start", [most * (at % 2) for at in range(len(starts))])
    limited = ["sh", "-c", 'ulimit -v 300000; exec "$0" "$@"', str(CHECKER)]
    [line] = said([forge.seal()], limited if CHECKER.exists() else None)
    assert line == "REJECTED: no artifact"


def test_check_needs_both_to_say_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    found = library.check(example(), kernel="proved")
    assert found.verdict == 0
    assert found.lines[-1].startswith("a proved program says so too: C1 to C6, C8 and C9 of ")
    for line, code in (
        ("DECLINED: a feature", "D101"),
        ("REJECTED: a certificate (C1..C6)", "D201"),
        ("VALID: C1 to C9; digest " + "0" * 64, "D201"),
    ):
        monkeypatch.setattr(second_checker, "verdicts", lambda _, line=line: [line])
        found = library.check(example(), kernel="proved")
        assert (found.verdict, found.findings[0].code.value) == (2, code)
        assert not found.digest and not found.checked
    # What the kernel refuses the other one is not asked about.
    assert library.check(example()[:-1], kernel="proved").verdict == 1


def test_without_a_program_it_says_how_to_build_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(second_checker.NoChecker, match="scripts/proofs --checker"):
        library.check(example(), kernel="proved")
