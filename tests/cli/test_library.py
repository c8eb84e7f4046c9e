"""The library: the same work as the commands, as calls."""

from __future__ import annotations

import gc
import inspect
from pathlib import Path
from typing import Any

import pytest

import tcc
import tcc.library
import tcc_certs.kernel
import tcc_certs.replay.validation
import tcc_runtime.artifact.load
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.fastcheck import kernel as fast
from tcc_runtime.settings.settings import Settings

GRAMMAR = """grammar g version "1"

tool a { cost 1 }
tool b { cost 2 }

plan = (a | b){1,3}
"""


def test_from_text_to_a_validated_run(tmp_path: Path) -> None:
    artifact = tcc.compile_text(GRAMMAR)
    tcc.save(artifact, tmp_path / "g.tcca")
    assert tcc.check(tmp_path / "g.tcca", core=True).verdict == 0
    again = tcc.load(tmp_path / "g.tcca")
    run = tcc.search(again, seed=bytes(32), top=14, ledger=tmp_path / "l", started_ms=0)
    assert run.claim_type == "RunWiseExact" and len(run.plans) == 14
    found = tcc.validate(tmp_path / "l", tmp_path / "g.tcca")
    assert found.verdict == 0 and found.claim_upheld
    assert found.head == run.ledger_head


def test_a_validation_puts_off_looks_for_cycles_unless_somebody_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tcc.save(tcc.compile_text(GRAMMAR), tmp_path / "g.tcca")
    artifact = tcc.load(tmp_path / "g.tcca")
    tcc.search(artifact, seed=bytes(32), top=14, ledger=tmp_path / "l", started_ms=0)
    on, told = [], []
    validate = tcc_certs.replay.validation.validate

    def noted(*given: Any, **more: Any) -> Any:
        on.append(gc.isenabled())
        return validate(*given, **more)

    monkeypatch.setattr(tcc_certs.replay.validation, "validate", noted)
    tcc.validate(tmp_path / "l", tmp_path / "g.tcca")
    tcc.validate(tmp_path / "l", tmp_path / "g.tcca", nodes=told.append)
    assert on == [False, True]
    assert told and gc.isenabled()


def test_what_is_compiled_is_checked_by_the_kernel_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checked = []
    pure = tcc_certs.kernel.check

    def check(data: bytes | memoryview, **more: Any) -> tcc_certs.kernel.CheckedArtifact:
        checked.append(len(data))
        return pure(data, **more)

    for module in (tcc_certs.kernel, tcc_runtime.artifact.load, fast):
        monkeypatch.setattr(module, "check", check)
    (tmp_path / "g.tcg").write_text(GRAMMAR, encoding="utf-8")
    artifacts = [tcc.compile_text(GRAMMAR), tcc.compile_file(tmp_path / "g.tcg")]
    assert all(artifact.verified for artifact in artifacts)
    assert len(checked) == len(artifacts)


def test_large_artifacts_are_checked_by_the_fast_kernel_before_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert tcc.library.LARGE == tcc_runtime.artifact.load._LARGE
    data = compile_text(GRAMMAR, Options()).artifact
    assert data is not None
    called = []
    for module in (tcc_certs.kernel, fast):
        monkeypatch.setattr(module, "check", lambda _, name=module.__name__: called.append(name))
    tcc.library.check_for_use(data)
    monkeypatch.setattr(tcc.library, "LARGE", len(data))
    tcc.library.check_for_use(data)
    assert called == ["tcc_certs.kernel", "tcc_runtime.fastcheck.kernel"]


def test_what_the_pipeline_checked_is_named_by_its_digest() -> None:
    for check in (tcc_certs.kernel.check, fast.check):
        compiled = compile_text(GRAMMAR, Options(check=check))
        assert compiled.artifact is not None
        assert compiled.checked == tcc_certs.kernel.check(compiled.artifact).file.digest.hex()
    unchecked = compile_text(GRAMMAR, Options(check=lambda _: None))
    assert unchecked.artifact is not None and unchecked.checked is None


def test_a_refused_grammar_carries_its_diagnostics() -> None:
    with pytest.raises(tcc.CompileError) as refused:
        tcc.compile_text('grammar g version "1"\ntool a\nplan = b')
    assert [d.severity for d in refused.value.diagnostics] == ["error"]
    assert str(refused.value) == (
        "<text>:3:8: error[TCC202]: no tool or rule is named 'b'\n"
        "3 | plan = b\n"
        "  |        ^\n"
        "  help: the tools and rules are a"
    )


def test_a_callback_ends_a_run_without_a_claim() -> None:
    artifact = tcc.compile_text(GRAMMAR)
    run = tcc.search(artifact, seed=bytes(32), on_expand=lambda progress: True)
    assert (run.claim_type, run.stop, run.expansions) == ("NoCert", "interrupted", 1)


def test_the_work_of_a_run_is_predicted() -> None:
    artifact = tcc.compile_text(GRAMMAR)
    found = tcc.predict(artifact, race="rest")
    assert found is not None and 2 <= found.lower <= found.upper <= 4
    assert tcc.predict(artifact, top=3) is None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        tcc.nothing  # noqa: B018
    assert "search" in dir(tcc)


def given_artifacts(folder: Path) -> dict[str, Any]:
    """Every function of the library that an artifact is given to, called with one."""
    seeds = [bytes(32)]
    ledger, out = folder / "l", folder / "out"
    one = tcc.load(folder / "g.tcca")
    tcc.search(one, seed=bytes(32), ledger=ledger, overwrite=True, started_ms=0)
    requests = [Settings(seed=bytes(32))]
    tcc.batch(one, requests, out, processes=1, started_ms=0, overwrite=True)
    return {
        "Gate": lambda a: tcc.Gate(a).finish is not None,
        "batch": lambda a: (
            tcc.batch(
                a, requests, folder / "other", processes=1, started_ms=0, overwrite=True
            ).certified
        ),
        "cheapest": lambda a: tcc.cheapest(a, 2),
        "check": lambda a: tcc.check(a).verdict,
        "diff": lambda a: (tcc.diff(a, one).verdict, tcc.diff(one, a).verdict),
        "estimate": lambda a: tcc.estimate(a),
        "load": lambda a: tcc.load(a).digest,
        "predict": lambda a: str(tcc.predict(a)),
        "prove": lambda a: tcc.prove(a, finishable=True).verdict,
        "runs": lambda a: [run.plans for run in tcc.runs(a, seeds, processes=1)],
        "sample": lambda a: tcc.sample(a, 3, seed=b"s"),
        "save": lambda a: (tcc.save(a, folder / "s"), (folder / "s").read_bytes())[1],
        "search": lambda a: tcc.search(a, seed=bytes(32)).plans,
        "validate": lambda a: tcc.validate(ledger, a).verdict,
        "validate_batch": lambda a: tcc.validate_batch(out, a, processes=1).verdict,
        "why": lambda a: tcc.why(a, "b a a a").allowed,
    }


def test_every_function_takes_an_artifact_or_its_path(tmp_path: Path) -> None:
    tcc.save(tcc.compile_text(GRAMMAR), tmp_path / "g.tcca")
    file = tmp_path / "g.tcca"
    forms = [tcc.load(file), tcc.load(file.read_bytes()), file, str(file)]
    calls = given_artifacts(tmp_path)
    for name, call in calls.items():
        found = [call(form) for form in forms]
        assert all(one == found[0] for one in found), name
    takes = {
        name
        for name in tcc.__all__
        if (inspect.isfunction(kind := getattr(tcc, name)) or name == "Gate")
        and {"artifact", "old", "source"} & set(inspect.signature(kind).parameters)
    }
    assert takes - {"lint"} <= calls.keys()
    with pytest.raises(OSError, match="none"):
        tcc.search(str(tmp_path / "none.tcca"))
