# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of code appears whole, is root's alone, and goes without a link being followed."""

from __future__ import annotations

import compileall
import importlib.util
import os
import py_compile
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import program_tree
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed

from .jail import in_jail

FOLDER = "/usr/lib/bcd"
PARTS = {
    "bcd/__init__.py": b"",
    "bcd/core/__init__.py": b"",
    "bcd/core/host.py": b"PLACE = __file__\n",
    "digest": b"1\n",
}
LOADED = (compileall, importlib.util, py_compile)  # a jail has no library


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "usr/lib").mkdir(parents=True)
    for directory in (root, root / "usr", root / "usr/lib"):
        directory.chmod(0o755)
    return root


def is_whole(tree: Path, name: str = "1.0") -> bool:
    found: bool = in_jail(tree, program_tree.is_whole, FOLDER, name, PARTS)
    return found


def publish(tree: Path, name: str = "1.0") -> None:
    in_jail(tree, program_tree.publish, FOLDER, name, PARTS)


@pytest.mark.parametrize("umask", [0, 0o077])
def test_it_is_published_whole_compiled_and_readable_whatever_the_umask(tree: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        publish(tree)
    finally:
        os.umask(before)
    place = tree / "usr/lib/bcd/1.0"
    assert is_whole(tree)
    assert [path.name for path in (tree / "usr/lib/bcd").iterdir()] == ["1.0"]
    assert {path.stat().st_mode & 0o7777 for path in place.rglob("*") if path.is_file()} == {0o644}
    assert {path.stat().st_mode & 0o7777 for path in (place, *place.rglob("*")) if path.is_dir()} == {0o755}
    compiled = list((place / "bcd/core/__pycache__").glob("host.*.pyc"))
    assert len(compiled) == 1
    assert compiled[0].read_bytes()[4:8] == (1).to_bytes(4, "little")  # PEP 552: by hash, and unchecked
    assert b"/usr/lib/bcd/1.0/bcd/core/host.py" in compiled[0].read_bytes()  # as a traceback names it


def test_a_name_that_is_there_is_not_replaced(tree: Path) -> None:
    publish(tree)
    with pytest.raises(OSError, match="not empty"):
        in_jail(tree, program_tree.publish, FOLDER, "1.0", {"other": b""})
    assert is_whole(tree)


def test_what_a_killed_run_left_is_no_obstacle(tree: Path) -> None:
    draft = tree / "usr/lib/bcd/.1.0.bcd-new"
    (draft / "bcd/core").mkdir(parents=True)
    (draft / "bcd/core/host.py").write_text("half")
    for directory in (tree / "usr/lib/bcd", draft, draft / "bcd", draft / "bcd/core"):
        directory.chmod(0o755)
    publish(tree)
    assert is_whole(tree)
    assert not draft.exists()


def edited(place: Path) -> None:
    (place / "bcd/core/host.py").write_bytes(b"PLACE = 1\n")


def missing(place: Path) -> None:
    (place / "bcd/core/host.py").unlink()


def added(place: Path) -> None:
    (place / "bcd/core/more.py").write_bytes(b"")


def open_to_others(place: Path) -> None:
    (place / "bcd/core/host.py").chmod(0o664)


def folder_open_to_others(place: Path) -> None:
    (place / "bcd/core").chmod(0o777)


def linked(place: Path) -> None:
    (place / "bcd/core/host.py").rename(place / "elsewhere")
    (place / "bcd/core/host.py").symlink_to("/usr/lib/bcd/1.0/elsewhere")


def not_compiled(place: Path) -> None:
    for compiled in (place / "bcd/core/__pycache__").iterdir():
        compiled.unlink()


def not_in_one_file(place: Path) -> None:
    (single,) = (place / "__pycache__").iterdir()
    single.unlink()


def cut_short(place: Path) -> None:
    (single,) = (place / "__pycache__").iterdir()
    single.write_bytes(single.read_bytes()[:-1])


def damaged(place: Path) -> None:
    (own,) = (place / "bcd/core/__pycache__").glob("host.*")
    own.write_bytes(own.read_bytes()[:-8] + bytes(8))


@pytest.mark.parametrize(
    "spoil",
    [
        edited,
        missing,
        added,
        open_to_others,
        folder_open_to_others,
        linked,
        not_compiled,
        not_in_one_file,
        cut_short,
        damaged,
    ],
)
def test_what_was_changed_is_whole_no_more(tree: Path, spoil: object) -> None:
    publish(tree)
    assert callable(spoil)
    spoil(tree / "usr/lib/bcd/1.0")
    assert not is_whole(tree)


def test_nothing_is_whole_that_is_not_there(tree: Path) -> None:
    assert not is_whole(tree)


@pytest.mark.parametrize("folder", ["usr/lib", "usr/lib/bcd"])
def test_nothing_is_made_or_removed_where_others_can_write(tree: Path, folder: str) -> None:
    publish(tree)
    (tree / folder).chmod(0o775)
    for call in (
        lambda: program_tree.publish(FOLDER, "2.0", PARTS),
        lambda: program_tree.discard(FOLDER, "1.0"),
    ):
        with pytest.raises(StepFailed, match=f"^/{folder} is not a directory only root can write"):
            in_jail(tree, call)
    assert sorted(path.name for path in (tree / "usr/lib/bcd").iterdir()) == ["1.0"]


def test_a_folder_that_is_a_link_is_not_followed(tree: Path) -> None:
    (tree / "elsewhere").mkdir(mode=0o755)
    (tree / "usr/lib/bcd").symlink_to("/elsewhere")
    with pytest.raises(StepFailed, match="is not a directory only root can write"):
        publish(tree)
    assert list((tree / "elsewhere").iterdir()) == []


def test_what_goes_takes_its_links_along_and_leaves_what_they_name(tree: Path) -> None:
    publish(tree)
    (tree / "precious").mkdir()
    (tree / "precious/file").write_text("kept")
    (tree / "usr/lib/bcd/1.0/bcd/folder").symlink_to("/precious")
    (tree / "usr/lib/bcd/1.0/bcd/file").symlink_to("/precious/file")
    (tree / "usr/lib/bcd/2.0").symlink_to("/precious")
    for name in ("1.0", "2.0", "3.0"):
        in_jail(tree, program_tree.discard, FOLDER, name)
    assert list((tree / "usr/lib/bcd").iterdir()) == []
    assert (tree / "precious/file").read_text() == "kept"


@pytest.fixture
def interpreter(tree: Path) -> Path:
    (tree / "usr/bin").mkdir(mode=0o755)
    real = tree / "usr/bin/python3.11"
    real.write_text("")
    real.chmod(0o755)
    (tree / "usr/bin/python3").symlink_to("python3.11")
    (tree / "bin").symlink_to("usr/bin")
    return real


def not_roots(tree: Path, path: str = "/bin/python3") -> str:
    found: str = in_jail(tree, program_tree.not_roots, path)
    return found


def test_a_path_of_roots_is_roots(tree: Path, interpreter: Path) -> None:
    assert not_roots(tree) == ""
    (tree / "opt").symlink_to("/usr/../usr")
    assert not_roots(tree, "/opt/bin/python3") == ""


@pytest.mark.parametrize(("open_to_others", "named"), [("usr/bin/python3.11", "/usr/bin/python3.11"), ("usr", "/usr")])
def test_what_others_can_write_on_the_way_is_named(
    tree: Path, interpreter: Path, open_to_others: str, named: str
) -> None:
    (tree / open_to_others).chmod(0o775)
    assert not_roots(tree) == named


def test_a_link_of_another_account_is_named(tree: Path, interpreter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, real = tree / "usr/bin/python3", os.lstat

    def given_away(path: str) -> os.stat_result:
        """What the kernel says of it once it belongs to somebody else: only root can really give it away."""
        seen = real(path)
        return os.stat_result((*seen[:4], 1000, *seen[5:10])) if str(path).endswith("/usr/bin/python3") else seen

    monkeypatch.setattr(os, "lstat", given_away)
    assert link.is_symlink()
    assert not_roots(tree) == "/usr/bin/python3"


def test_links_that_go_round_are_named(tree: Path) -> None:
    (tree / "usr/a").symlink_to("b")
    (tree / "usr/b").symlink_to("a")
    assert not_roots(tree, "/usr/a") in ("/usr/a", "/usr/b")
