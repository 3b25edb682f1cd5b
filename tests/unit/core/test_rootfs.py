# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root writes only where no other account could have led it, whole files or nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import rootfs
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed

from .jail import in_jail


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for folder in ("etc/sysctl.d", "var/lib"):
        (root / folder).mkdir(parents=True)
    for directory in (root, *(path for path in root.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    return root


def refusal(directory: str) -> str:
    return f"{directory} is not a directory only root can write: bcd will not write as root under it"


def test_a_file_is_replaced_whole_with_its_mode(tree: Path) -> None:
    in_jail(tree, rootfs.write, "/etc/sysctl.d/90-bcd.conf", b"vm.swappiness = 10\n", 0o644)
    in_jail(tree, rootfs.write, "/etc/sysctl.d/90-bcd.conf", b"vm.swappiness = 1\n", 0o600)
    written = tree / "etc/sysctl.d/90-bcd.conf"
    assert written.read_bytes() == b"vm.swappiness = 1\n"
    assert written.stat().st_mode & 0o7777 == 0o600
    assert [path.name for path in written.parent.iterdir()] == ["90-bcd.conf"]


def test_missing_directories_are_made_for_root_alone_whatever_the_umask(tree: Path) -> None:
    old = os.umask(0)
    try:
        in_jail(tree, rootfs.write, "/var/lib/bcd-hostconfig/bootargs/cpu", b"{}", 0o600)
    finally:
        os.umask(old)
    for folder in ("var/lib/bcd-hostconfig", "var/lib/bcd-hostconfig/bootargs"):
        assert (tree / folder).stat().st_mode & 0o7777 == 0o755


def test_a_draft_of_a_killed_pass_does_not_stand_in_the_way(tree: Path) -> None:
    draft = tree / "etc/sysctl.d/.90-bcd.conf.bcd-new"
    draft.write_text("half")
    in_jail(tree, rootfs.write, "/etc/sysctl.d/90-bcd.conf", b"whole\n", 0o644)
    assert not draft.exists()
    draft.write_text("half")
    in_jail(tree, rootfs.remove, "/etc/sysctl.d/90-bcd.conf")
    assert list((tree / "etc/sysctl.d").iterdir()) == []


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_directory_that_others_can_write_is_refused(tree: Path, mode: int) -> None:
    (tree / "etc").chmod(mode)
    with pytest.raises(StepFailed) as refused:
        in_jail(tree, rootfs.write, "/etc/sysctl.d/90-bcd.conf", b"x", 0o644)
    assert refused.value.message == refusal("/etc")
    assert not refused.value.retryable
    assert not (tree / "etc/sysctl.d/90-bcd.conf").exists()


def test_a_symbolic_link_on_the_way_is_refused_and_not_followed(tree: Path) -> None:
    (tree / "elsewhere").mkdir(mode=0o755)
    (tree / "etc/sysctl.d").rmdir()
    (tree / "etc/sysctl.d").symlink_to("/elsewhere")
    for call in (lambda: rootfs.write("/etc/sysctl.d/a", b"x", 0o644), lambda: rootfs.remove("/etc/sysctl.d/a")):
        with pytest.raises(StepFailed) as refused:
            in_jail(tree, call)
        assert refused.value.message == refusal("/etc/sysctl.d")
    assert list((tree / "elsewhere").iterdir()) == []


def test_a_file_on_the_way_is_refused(tree: Path) -> None:
    (tree / "etc/file").write_text("")
    with pytest.raises(StepFailed) as refused:
        in_jail(tree, rootfs.write, "/etc/file/a", b"x", 0o644)
    assert refused.value.message == refusal("/etc/file")


def test_a_directory_of_another_account_is_refused(tree: Path) -> None:
    if os.getuid() == 0:
        os.chown(tree / "var/lib", 1000, 0)
        where, whose = tree, "/var/lib"
    else:  # the machine's own / belongs to an account that the jail's user namespace does not know
        where, whose = Path("/"), "/"
    with pytest.raises(StepFailed) as refused:
        in_jail(where, rootfs.write, "/var/lib/bcd-hostconfig/applied.json", b"{}", 0o600)
    assert refused.value.message == refusal(whose)


def test_a_link_in_the_file_s_own_place_is_replaced_and_its_target_kept(tree: Path) -> None:
    (tree / "etc/passwd").write_text("root\n")
    (tree / "etc/sysctl.d/90-bcd.conf").symlink_to("/etc/passwd")
    (tree / "etc/sysctl.d/.90-bcd.conf.bcd-new").symlink_to("/etc/passwd")
    in_jail(tree, rootfs.write, "/etc/sysctl.d/90-bcd.conf", b"ours\n", 0o644)
    assert (tree / "etc/passwd").read_text() == "root\n"
    assert not (tree / "etc/sysctl.d/90-bcd.conf").is_symlink()


def test_removing_what_is_not_there_is_done(tree: Path) -> None:
    in_jail(tree, rootfs.remove, "/etc/sysctl.d/90-bcd.conf")
    in_jail(tree, rootfs.remove, "/etc/nowhere/90-bcd.conf")


def test_the_lock_opens_for_root_alone(tree: Path) -> None:
    in_jail(tree, rootfs.open_lock, "/var/lib/bcd-hostconfig/lock")
    assert (tree / "var/lib/bcd-hostconfig/lock").stat().st_mode & 0o7777 == 0o600
