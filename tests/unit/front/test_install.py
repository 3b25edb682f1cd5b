# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program installs itself: whole or not at all, from its own zip, and only where root alone can change it."""

from __future__ import annotations

import compileall
import encodings.cp437
import importlib.util
import io
import os
import py_compile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import program_tree
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import install
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import PROGRAMS
from tests.unit.core.jail import in_jail

PYTHON = "/usr/bin/python3"
LOADED = (compileall, encodings.cp437, importlib.util, py_compile, program_tree)  # a jail has no library
CREATES = os.O_CREAT


def machine(place: Path) -> Path:
    root = place / "root"
    for folder in ("usr/lib", "usr/bin", "usr/local/sbin", "var/lib", "proc"):
        (root / folder).mkdir(parents=True)
    for directory in (root, *(path for path in root.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    (root / PYTHON[1:]).write_text("")
    (root / PYTHON[1:]).chmod(0o755)
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return machine(tmp_path)


def zipped(program: str = "bcd/front/cli.py", **more: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in {"bcd/__init__.py": "", program: "", **more, "__main__.py": ""}.items():
            archive.writestr(name, text)
    return out.getvalue()


OLD, NEW, NEWER = (zipped(**{"bcd/code.py": f"CODE = {number}"}) for number in (1, 2, 3))


def installed(tree: Path, archive: bytes = OLD, check: bool = False, python: str = PYTHON) -> dict[str, Any]:
    found: dict[str, Any] = in_jail(tree, install.install_result, archive, check, python)
    return found


def names(tree: Path) -> list[str]:
    folder = tree / "usr/lib/bcd"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def started(tree: Path) -> bytes:
    """The code that the script starts, whole; b"" where there is no script."""
    script = tree / "usr/local/sbin/bcd"
    if not script.exists():
        return b""
    found = install.NAMED.search(script.read_text())
    assert found is not None
    for archive in (OLD, NEW, NEWER):
        parts = install.unpacked(archive).parts
        if in_jail(tree, program_tree.is_whole, PROGRAMS, found[1], parts):
            return archive
    raise AssertionError(f"the script names {found[1]}, which is not whole")


def test_a_first_installation_says_what_it_did(tree: Path) -> None:
    result = installed(tree)
    assert result["changed"] is True
    assert result["folder"] == "/usr/lib/bcd/0.1.0"
    assert started(tree) == OLD
    script = tree / "usr/local/sbin/bcd"
    assert script.stat().st_mode & 0o7777 == 0o755
    assert script.read_text().splitlines()[0] == "#!/usr/bin/python3 -IB"


def test_a_second_changes_nothing(tree: Path) -> None:
    installed(tree)
    before = {path: path.stat().st_mtime_ns for path in tree.rglob("*")}
    assert installed(tree)["changed"] is False
    assert {path: path.stat().st_mtime_ns for path in tree.rglob("*")} == before


def test_check_says_the_same_and_writes_nothing(tree: Path) -> None:
    before = sorted(tree.rglob("*"))
    assert installed(tree, check=True)["changed"] is True
    assert sorted(tree.rglob("*")) == before
    installed(tree)
    assert installed(tree, check=True)["changed"] is False


def test_another_version_has_a_folder_of_its_own_and_the_one_before_stays(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tree)
    for version, archive, left in (
        ("0.2.0", NEW, ["0.1.0", "0.2.0"]),
        ("0.3.0", NEWER, ["0.2.0", "0.3.0"]),
    ):
        monkeypatch.setattr(install, "VERSION", version)
        assert installed(tree, archive)["folder"] == f"/usr/lib/bcd/{version}"
        assert started(tree) == archive
        assert names(tree) == left
        assert installed(tree, archive)["changed"] is False
        assert names(tree) == left


def test_other_code_of_the_same_version_leaves_what_runs_alone(tree: Path) -> None:
    installed(tree)
    result = installed(tree, NEW)
    assert result["folder"] == f"/usr/lib/bcd/0.1.0+{result['sha256'][:12]}"
    assert started(tree) == NEW
    assert len(names(tree)) == 2
    assert installed(tree, OLD)["folder"] == "/usr/lib/bcd/0.1.0"
    assert started(tree) == OLD


def test_a_folder_that_was_changed_is_not_used_again(tree: Path) -> None:
    installed(tree)
    (tree / "usr/lib/bcd/0.1.0/bcd/code.py").write_text("CODE = 'mine'")
    assert installed(tree)["changed"] is True
    assert started(tree) == OLD
    assert (tree / "usr/lib/bcd/0.1.0/bcd/code.py").read_text() == "CODE = 'mine'"


def test_a_script_that_was_changed_is_written_again(tree: Path) -> None:
    installed(tree)
    script = tree / "usr/local/sbin/bcd"
    whole = script.read_text()
    script.write_text(whole + "# mine\n")
    assert installed(tree)["changed"] is True
    assert script.read_text() == whole
    script.chmod(0o777)
    assert installed(tree)["changed"] is True
    assert script.stat().st_mode & 0o7777 == 0o755


def test_others_folders_stay(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tree)
    (tree / "usr/lib/bcd/theirs").mkdir()
    (tree / "usr/lib/bcd/bcd.pyz").write_bytes(OLD)
    for version, archive in (("0.2.0", NEW), ("0.3.0", NEWER)):
        monkeypatch.setattr(install, "VERSION", version)
        installed(tree, archive)
    assert names(tree) == ["0.2.0", "0.3.0", "bcd.pyz", "theirs"]


def test_while_a_pass_runs_nothing_is_taken_from_it(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    for version, archive in (("0.1.0", OLD), ("0.2.0", NEW)):
        monkeypatch.setattr(install, "VERSION", version)
        installed(tree, archive)
    monkeypatch.setattr(install, "VERSION", "0.3.0")
    (tree / "var/lib/bcd-hostconfig").mkdir(mode=0o755, exist_ok=True)
    with (tree / "var/lib/bcd-hostconfig/lock").open("w") as lock:
        (tree / "var/lib/bcd-hostconfig/lock").chmod(0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert installed(tree, NEWER)["removed"] == []
        assert names(tree) == ["0.1.0", "0.2.0", "0.3.0"]
        assert started(tree) == NEWER
    assert installed(tree, NEWER)["removed"] == ["/usr/lib/bcd/0.1.0"]


# -- killed at every change


class Killing:
    """Ends the process instead of the n-th change to the tree."""

    def __init__(self, at: int) -> None:
        self.left = at

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            creates = call is not REAL["open"] or (given[1] if len(given) > 1 else 0) & CREATES
            if creates:
                self.left -= 1
                if self.left == 0:
                    os._exit(137)
            return call(*given, **named)

        return counted


CHANGES = ("open", "mkdir", "rename", "replace", "unlink", "rmdir", "ftruncate", "pwrite")
REAL = {name: getattr(os, name) for name in CHANGES}


def killed(archive: bytes, at: int) -> bool:
    killing = Killing(at)
    for name in CHANGES:
        setattr(os, name, killing.around(REAL[name]))
    install.install_result(archive, False, PYTHON)
    return killing.left <= 0


@pytest.mark.exhaustive
def test_a_kill_at_any_change_leaves_the_old_program_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = 0
    for at in range(1, 200):
        host = machine(tmp_path / str(at))
        for version, archive in (("0.1.0", OLD), ("0.2.0", NEW)):
            monkeypatch.setattr(install, "VERSION", version)
            installed(host, archive)
        monkeypatch.setattr(install, "VERSION", "0.3.0")
        try:
            in_jail(host, killed, NEWER, at)
        except EOFError:
            kills += 1
        else:
            break
        assert started(host) in (NEW, NEWER)
        installed(host, NEWER)
        assert started(host) == NEWER
        assert installed(host, NEWER)["changed"] is False
        assert names(host) == ["0.2.0", "0.3.0"]
    assert kills > 10


# -- refusals


def refused(tree: Path, archive: bytes = OLD, python: str = PYTHON) -> dict[str, Any]:
    before = sorted(tree.rglob("*"))
    result = installed(tree, archive, python=python)
    assert sorted(tree.rglob("*")) == before
    assert result["changed"] is False
    return result


@pytest.mark.parametrize(("path", "mode"), [("usr/bin/python3", 0o775), ("usr/bin", 0o757), ("usr", 0o775)])
def test_an_interpreter_that_others_can_change_is_refused(tree: Path, path: str, mode: int) -> None:
    (tree / path).chmod(mode)
    result = refused(tree)
    assert (result["reason"], result["retryable"]) == ("Refused", False)
    assert f"/{path} can be changed by others" in result["msg"]


@pytest.mark.parametrize("python", ["", "python3", "/usr/bin/my python", "/" + "a" * 130])
def test_an_interpreter_that_no_script_can_name_is_refused(tree: Path, python: str) -> None:
    assert refused(tree, python=python)["reason"] == "Refused"


def test_another_program_of_that_name_stays(tree: Path) -> None:
    script = tree / "usr/local/sbin/bcd"
    script.write_text("#!/bin/sh\necho mine\n")
    assert "move it away" in refused(tree)["msg"]
    assert script.read_text() == "#!/bin/sh\necho mine\n"


@pytest.mark.parametrize(
    "archive",
    [
        b"",
        b"PK not a zip",
        OLD[:-30],
        zipped(**{"bcd/../../../../etc/cron.d/mine.py": ""}),
        zipped(**{"/etc/mine.py": ""}),
        zipped(**{"etc/mine.py": ""}),
        zipped(**{"bcd/data.txt": ""}),
        zipped("bcd/core/errors.py"),
    ],
    ids=["empty", "no zip", "cut off", "up", "from the root", "another folder", "no code", "no program"],
)
def test_a_zip_that_is_not_ours_is_refused(tree: Path, archive: bytes) -> None:
    assert refused(tree, archive)["reason"] == "Refused"


def test_folders_that_others_can_write_are_refused(tree: Path) -> None:
    (tree / "usr/lib").chmod(0o775)
    result = refused(tree)
    assert result["msg"] == "/usr/lib is not a directory only root can write: bcd will not write as root under it"
    assert result["retryable"] is False


def test_an_ordinary_account_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "uid", lambda _host: 1000)
    result = install.install_result(OLD, False, PYTHON)
    assert "run it with sudo" in result["msg"]
