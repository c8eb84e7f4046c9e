"""A store takes another artifact: new sessions have it, and open sessions keep theirs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_runtime.errors import ResumeError, SettingsError
from tests.gate.grammars import artifact, bytes_of

OLD = """grammar desk version "1"

tool find(order: text max 20)
tool refund(order: text max 20)

limit depth <= 40
limit count(refund) <= 1
"""
NEW = """grammar desk version "2"

tool find(order: text max 20)
tool refund(order: text max 20)
tool note

limit depth <= 40
before refund require find(same order)
"""


def refund(gate: tcc.Gate, order: str = "a") -> None:
    with gate.call("refund", {"order": order}) as permit:
        permit.done()


def sessions(folder: Path, text: str, **more: Any) -> tcc.Sessions:
    return tcc.Sessions(artifact(text), folder / "store", durable=False, **more)


def test_new_sessions_have_the_new_artifact_and_open_ones_keep_theirs(tmp_path: Path) -> None:
    store = sessions(tmp_path, OLD)
    old = store.open()
    store.reload(artifact(NEW))
    new = store.open()
    refund(old)
    assert old.check("refund", {"order": "b"}).code == "R202"
    assert not new.check("refund", {"order": "a"}).allowed
    assert new.tools() == ("find", "note")
    names = [old.session_id, new.session_id]
    for gate in (old, new):
        gate.close()
    for again in (store, sessions(tmp_path, NEW), tcc.Sessions.of(tmp_path / "store")):
        assert sorted(one.id for one in again.list()) == sorted(names)
        with again.get(names[0]) as gate:
            assert gate.artifact.digest == artifact(OLD).digest
            assert gate.check("refund", {"order": "b"}).code == "R202"
        with again.get(names[1]) as gate:
            assert gate.artifact.digest == artifact(NEW).digest
    for name in names:
        path, ledger = store.artifact_paths(name)[0], tmp_path / "store" / f"{name}.ledger"
        found = tcc.validate(ledger, path, key=store.key_of(name))
        assert found.claim_type == "ConformantPrefix", found
    assert tcc.load(store.artifact_paths(names[0])[0]).digest == artifact(OLD).digest


def test_a_principal_keeps_its_session_until_it_ends(tmp_path: Path) -> None:
    store = sessions(tmp_path, OLD)
    with store.open(principal="ann") as gate:
        mine = gate.session_id
    store.reload(artifact(NEW))
    with store.open(principal="ann") as gate:
        assert (gate.session_id, gate.artifact.digest) == (mine, artifact(OLD).digest)
        gate.finish(abandon=True)
    with store.open(principal="ann") as gate:
        assert gate.artifact.digest == artifact(NEW).digest


def test_a_store_is_opened_with_another_artifact_only_if_asked(tmp_path: Path) -> None:
    sessions(tmp_path, OLD).open().close()
    with pytest.raises(ResumeError, match="a store of the artifact"):
        sessions(tmp_path, NEW)
    store = sessions(tmp_path, NEW, reload=True)
    store.open().close()
    assert len(store.list()) == 2
    with pytest.raises(ResumeError, match="a store of the artifact"):
        sessions(tmp_path, OLD)
    assert len(sessions(tmp_path, OLD, reload=True).list()) == 2


@pytest.mark.parametrize("name", ["link", "replace"])
def test_a_crash_at_any_step_leaves_one_of_both(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = getattr(os, name)
    for crash in range(4):
        folder = tmp_path / str(crash)
        folder.mkdir()
        store = sessions(folder, OLD)
        with store.open() as gate:
            mine = gate.session_id
        left = [crash]

        def crashing(*args: Any, left: list[int] = left, **more: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return real(*args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(os, name, crashing)
            with suppress(KeyboardInterrupt):
                store.reload(artifact(NEW))
        found = tcc.Sessions.of(folder / "store")
        assert found.artifact.digest in (artifact(OLD).digest, artifact(NEW).digest)
        with found.get(mine) as gate:
            refund(gate)
        again = sessions(folder, NEW, reload=True)
        with again.open() as gate:
            assert gate.artifact.digest == artifact(NEW).digest
        assert len(again.list()) == 2


def test_a_broken_artifact_keeps_the_old_one(tmp_path: Path) -> None:
    store = sessions(tmp_path, OLD, show=("refund.order",))
    path = tmp_path / "new.tcca"
    tcc.save(artifact(NEW), path)
    whole = path.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises((Rejected, OSError)):
            store.reload(path)
    with pytest.raises(SettingsError, match=r"show: expected open arguments.*refund\.order"):
        store.reload(artifact('grammar g version "1"\n\ntool find\n\nlimit depth <= 9\n'))
    with pytest.raises(SettingsError, match="account"):
        store.reload(artifact(f"{OLD}\nlimit count(find) <= 9 across sessions\n"))
    with store.open() as gate:
        assert gate.artifact.digest == artifact(OLD).digest
    path.write_bytes(whole)
    store.reload(path)
    with store.open() as gate:
        assert gate.artifact.digest == artifact(NEW).digest


def test_counts_of_accounts_continue(tmp_path: Path) -> None:
    def text(most: int) -> str:
        return f"{NEW}\nlimit count(find) <= {most} across sessions\n"

    account = tcc.Account(tmp_path / "a.account")
    store = sessions(tmp_path, text(2), account=account)
    with store.open() as gate, gate.call("find", {"order": "a"}) as permit:
        permit.done()
    store.reload(artifact(text(1)))
    with store.open() as gate:
        assert gate.check("find", {"order": "a"}).code == "R202"


def test_a_file_that_is_overwritten_in_place_changes_no_open_session(tmp_path: Path) -> None:
    text = 'grammar g version "1"\ntool a\ntool b\nlimit count({}) <= 0\n'
    path = tmp_path / "g.tcca"
    path.write_bytes(bytes_of(tcc.compile_text(text.format("b"))))
    with tcc.Gate(path) as gate:
        with path.open("r+b") as file:
            file.write(bytes_of(tcc.compile_text(text.format("a"))))
        assert gate.check("a").allowed
        assert gate.check("b").code == "R202"
