# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program says that follows from files: which files these are, and when nobody knows."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import module_index
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.boot import boot
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.driver_file import on_disk
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.package_database import listed
from tests.unit import boot_machines
from tests.unit.fake_host import FakeHost

DPKG, RPM = ("dpkg-query", "-W", "x"), ("rpm", "-qa", "x")
KERNEL = "6.8.0-88-generic"
INDEX = f"/lib/modules/{KERNEL}/modules.dep.bin"
FILE = f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko.zst"
SAID = f"filename:       {FILE}\nversion:        580.95.05\nlicense:        Dual MIT/GPL\n"


class Following(FakeHost):
    """A host that tells what each answer was said to follow from, and whose stamp was taken."""

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(*given, **named)  # type: ignore[arg-type]
        self.from_files: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self.stamped: list[str] = []

    def follows(self, argv: tuple[str, ...], paths: tuple[str, ...]) -> Answer:
        self.from_files.append((argv, paths))
        return super().follows(argv, paths)

    def stamp(self, path: str) -> tuple[int, ...] | None:
        self.stamped.append(path)
        return super().stamp(path)


@pytest.mark.parametrize(
    ("argv", "database"),
    [
        (DPKG, "/var/lib/dpkg/status"),
        (RPM, "/var/lib/rpm/Packages"),
        (RPM, "/var/lib/rpm/rpmdb.sqlite"),
        (RPM, "/usr/lib/sysimage/rpm/rpmdb.sqlite"),
        (RPM, "/usr/lib/sysimage/rpm/Packages.db"),
    ],
)
def test_what_is_installed_follows_from_the_database_and_from_the_program(argv: tuple[str, ...], database: str) -> None:
    host = Following({database: ""}, {argv[0]: lambda _host, _argv: Answer(0, "said\n")})
    assert listed(host, argv) == "said\n"
    ((asked, paths),) = host.from_files
    assert asked == argv
    assert database in paths
    assert paths[0].endswith(argv[0])


def test_what_a_dpkg_has_not_merged_yet_and_a_log_ahead_of_the_database_count_too() -> None:
    for argv, database, ahead in (
        (DPKG, "/var/lib/dpkg/status", "/var/lib/dpkg/updates"),
        (DPKG, "/var/lib/dpkg/status", "/var/lib/dpkg/triggers/Unincorp"),  # by which "ii" becomes "it"
        (DPKG, "/var/lib/dpkg/status", "/var/lib/dpkg/triggers/File"),
        (DPKG, "/var/lib/dpkg/status", "/var/lib/dpkg/triggers"),
        (RPM, "/var/lib/rpm/rpmdb.sqlite", "/var/lib/rpm/rpmdb.sqlite-wal"),
    ):
        host = Following({database: "", ahead: "x"}, {argv[0]: lambda _host, _argv: Answer(0, "")})
        listed(host, argv)
        assert ahead in host.from_files[0][1]


def test_a_log_without_anything_in_it_is_no_difference_when_rpm_touches_it() -> None:
    """Seen with rpm 4.18 as root: a question makes the log, and at another one its owner is set again."""
    log = "/var/lib/rpm/rpmdb.sqlite-wal"
    host = Following({"/var/lib/rpm/rpmdb.sqlite": ""}, {"rpm": lambda _host, _argv: Answer(0, "")})
    watched = Watched(host)
    watched.begin()
    listed(watched, RPM)
    asked = watched.end()
    assert asked
    for text, differs in (("", False), ("x", True)):
        host.put(log, text)
        again = Watched(host)
        assert any(again.digest_of(question) != digest for question, digest in asked.items()) is differs


@pytest.mark.parametrize("argv", [DPKG, RPM])
def test_a_database_that_nobody_finds_is_asked_each_time(argv: tuple[str, ...]) -> None:
    host = Following({}, {argv[0]: lambda _host, _argv: Answer(1, "said\n")})
    assert (listed(host, argv), host.from_files, host.asked) == ("said\n", [], [argv])


def test_a_program_that_cannot_tell_is_a_fault() -> None:
    host = FakeHost({}, {"rpm": lambda _host, _argv: Answer(2, "", "database is locked")})
    with pytest.raises(StepFailed, match="rpm cannot tell what is installed: it exited with 2: database is locked"):
        listed(host, RPM)


def kernel() -> Following:
    return Following(
        {
            "/proc/sys/kernel/osrelease": f"{KERNEL}\n",
            INDEX: "",
            "/etc/modprobe.d/nvidia.conf": "",
            "/etc/modprobe.d/README": "",
        },
        {"modinfo": lambda _host, _argv: Answer(0, SAID)},
    )


def test_modinfo_follows_from_the_indexes_from_modprobe_d_and_from_the_file_that_it_names() -> None:
    host = kernel()
    found = on_disk(host)
    assert found is not None
    assert (found.version, found.path) == ("580.95.05", FILE)
    ((_argv, paths),) = host.from_files
    assert {INDEX, "/etc/modprobe.d", "/etc/modprobe.d/nvidia.conf", f"/lib/modules/{KERNEL}/modules.alias.bin"} < {
        *paths
    }
    assert "/etc/modprobe.d/README" not in paths
    assert host.stamped == [FILE]


def test_a_kernel_without_an_index_is_asked_each_time() -> None:
    host = kernel()
    del host.files[INDEX]
    assert host.sight(module_index.deciding, KERNEL) == []
    assert on_disk(host) is not None
    assert host.from_files == []


def test_what_grubby_lists_follows_from_the_entries_and_the_variables_that_they_name() -> None:
    booted = boot_machines.machine("grubby")
    host = Following({path: file.text for path, file in booted.files.items()}, booted.programs, links=booted.links)
    folder = "/boot/loader/entries"
    seen = boot(host, "iommu")
    ((argv, paths),) = host.from_files
    assert argv == ("grubby", "--info=ALL")
    assert seen.answers["grubby --info=ALL"].rc == 0
    entries = {f"{folder}/{name}" for name in host.names(folder)}
    assert len(entries) > 1
    assert {folder, *entries, "/boot/grub2/grubenv", "/etc/default/grub", "/etc/kernel/cmdline"} < {*paths}
