"""`use`: which files are read, and which are not."""

from __future__ import annotations

from pathlib import Path

from tcc_compiler.frontend import read_grammar
from tests.compiler.grammars import HEAD, places


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        target = folder / f"{name.replace('__', '/')}.tcg"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    return folder / "main.tcg"


def tools(path: Path) -> list[str]:
    result = read_grammar(path)
    assert places(result) == []
    assert result.core is not None
    return [tool.name for tool in result.core.tools]


def test_a_file_that_two_use_is_read_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        main=HEAD + 'use "sub/one.tcg"\nuse "sub/two.tcg"\nuse "sub/../sub/one.tcg"',
        sub__one='tool a\nuse "deep/base.tcg"',
        sub__two='use "deep/base.tcg"\ntool b',
        sub__deep__base="tool c",
    )
    assert tools(path) == ["a", "c", "b"]
    assert list(read_grammar(path).sources) == [
        str(path),
        *(str(tmp_path / "sub" / name) for name in ("one.tcg", "deep/base.tcg", "two.tcg")),
    ]


def test_a_used_file_may_use_one_beside_the_root(tmp_path: Path) -> None:
    path = write(tmp_path, main=HEAD + 'use "s/a.tcg"', s__a='use "../b.tcg"', b="tool b")
    assert tools(path) == ["b"]


def test_links_are_resolved_before_the_folder_is_checked(tmp_path: Path) -> None:
    outside = write(tmp_path, main="tool secret")
    path = write(
        tmp_path / "in",
        main=HEAD + 'use "link.tcg"\nuse "dir/main.tcg"\nuse "own.tcg"\ntool a',
        x="tool x",
    )
    (tmp_path / "in" / "link.tcg").symlink_to(outside)
    (tmp_path / "in" / "dir").symlink_to(tmp_path)
    (tmp_path / "in" / "own.tcg").symlink_to(tmp_path / "in" / "x.tcg")
    assert places(read_grammar(path)) == [("TCC222", 2, 5), ("TCC222", 3, 5)]


def test_a_root_that_is_a_link_uses_what_lies_beside_the_link(tmp_path: Path) -> None:
    real = write(tmp_path / "real", main=HEAD + 'use "t.tcg"')
    here = write(tmp_path / "here", t="tool t")
    here.symlink_to(real)
    assert tools(here) == ["t"]


def test_a_link_to_itself_is_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = write(tmp_path, main=HEAD + 'use "loop.tcg"\nuse "a\\u0000b"\ntool a')
    (tmp_path / "loop.tcg").symlink_to(tmp_path / "loop.tcg")
    assert places(read_grammar(path)) == [("TCC221", 2, 5), ("TCC221", 3, 5)]


def test_a_long_chain_of_files_stops_at_the_limit(tmp_path: Path) -> None:
    chain = {f"f{i}": f'tool t{i}\nuse "f{i + 1}.tcg"' for i in range(300)}
    path = write(tmp_path, main=HEAD + 'use "f0.tcg"', **chain)
    assert [(code, line) for code, line, _ in places(read_grammar(path))] == [("TCC107", 2)]


def test_all_files_together_keep_to_the_limit(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        main=HEAD + 'use "a.tcg"\nuse "b.tcg"\ntool m',
        a="#" * 5_000_000,
        b="#" * 5_000_000,
    )
    assert places(read_grammar(path)) == [("TCC107", 3, 5)]
