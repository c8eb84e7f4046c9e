"""The data that the experiments read are those of the published results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_experiments.pipeline import checksums

EXPECTED = Path(__file__).parents[3] / "experiments" / "checksums.txt"


def test_the_checksums_are_those_on_record() -> None:
    """With the versions of the record; another version of a package has texts of its own."""
    published = dict(line.split(": ", 1) for line in EXPECTED.read_text("utf-8").splitlines())
    here = checksums.checksums()
    assert published.keys() == here.keys()
    compared = 0
    for name, line in here.items():
        if line.rsplit(", ", 1)[0] == published[name].rsplit(", ", 1)[0]:
            assert line == published[name], name
            compared += 1
    assert compared >= 2


def test_a_changed_text_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"{name}: {line}" for name, line in checksums.checksums().items()]
    (tmp_path / "here").write_text("\n".join(lines) + "\n", "utf-8")
    assert checksums.main(["--with", str(tmp_path / "here")]) == 0
    texts = list(checksums.all_texts())
    monkeypatch.setattr(checksums, "all_texts", lambda: texts[1:])
    assert checksums.main(["--with", str(tmp_path / "here")]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("corpus/constants: ")
