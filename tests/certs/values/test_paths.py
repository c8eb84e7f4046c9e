"""Paths: normal forms, and what is under a directory, beside a real folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tcc_certs.errors import Code, Rejected
from tcc_certs.values import paths

NAMES = st.sampled_from(
    ("a", "b", "..", ".", "", "...", "a b", "é", "srv", "out", "%2e%2e", "..\\")
)
PATHS = st.lists(NAMES, max_size=9).map(lambda names: "/" + "/".join(names))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("/", "/"), ("//", "/"), ("/..", "/"), ("/a/./b//c/", "/a/b/c"), ("/a/../../b", "/b"),
        ("/a/...", "/a/..."), ("/a\nb", "/a\nb"), ("/A", "/A"), ("/a/%2e%2e", "/a/%2e%2e"),
    ],
)  # fmt: skip
def test_normal_forms(text: str, normal: str) -> None:
    assert paths.normal(text) == normal


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "R105"), ("a", "R105"), ("./a", "R105"), ("~/a", "R105"), ("a/../..", "R105"),
        ("/a\0", "R105"), ("C:\\a", "R105"), ("/" + "a" * 4096, "R105"), ("/\ud800", "R106"),
    ],
)  # fmt: skip
def test_what_is_no_path(text: str, code: str) -> None:
    with pytest.raises(Rejected) as refused:
        paths.normal(text)
    assert refused.value.code is Code(code)


@pytest.mark.parametrize(
    ("path", "directory", "under"),
    [
        ("/srv/out", "/srv/out", True), ("/srv/out/a", "/srv/out", True),
        ("/srv/outside", "/srv/out", False), ("/srv", "/srv/out", False),
        ("/srv/out/../x", "/srv/out", False), ("/srv/./out/b/../a", "/srv/out", True),
        ("/a", "/", True), ("/", "/", True), ("/srv/out/..", "/srv/out", False),
        ("/SRV/out/a", "/srv/out", False),
    ],
)  # fmt: skip
def test_what_is_under_a_directory(path: str, directory: str, under: bool) -> None:
    assert paths.is_under(paths.normal(path), directory) is under


@given(PATHS)
def test_a_normal_form_is_its_own_normal_form(text: str) -> None:
    assert paths.normal(paths.normal(text)) == paths.normal(text)


@given(text=PATHS)
def test_a_path_under_a_directory_resolves_there(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = os.path.realpath(tmp_path_factory.getbasetemp() / "out")
    Path(directory, "a", "b").mkdir(parents=True, exist_ok=True)
    whole = directory + text
    resolved = os.path.realpath(whole)
    inside = os.path.commonpath([resolved, directory]) == directory
    assert paths.normal(whole) == resolved
    assert paths.is_under(paths.normal(whole), directory) is inside


@given(PATHS, PATHS)
def test_under_is_a_prefix_of_components(text: str, other: str) -> None:
    path, directory = paths.normal(text), paths.normal(other)
    parts = [[name for name in one.split("/") if name] for one in (path, directory)]
    assert paths.is_under(path, directory) is (parts[0][: len(parts[1])] == parts[1])
