# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Package managers' answers, read and written: versions, holds, offers, streams."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Ask, Past, Question, Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import packages_apt, packages_dnf, packages_zypper
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.module_streams import enable
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.package_rows import Package, parse_dpkg, upstream
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages import (
    Offer,
    Wanted,
    read_installed,
    tool_of,
    version_key,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages_dnf import (
    Stream,
    asks_streams,
    parse_streams,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages_seen import newest

# Debian 12's dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}\n', with names that it only heard of.
DPKG = (
    "ii |nvidia-utils-580-server|580.95.05-0ubuntu0.24.04.1\n"
    "hi |nvidia-fabricmanager-580|580.95.05-0ubuntu0.24.04.1\n"
    "un |nvidia-utils|\n"
    "rc |nvidia-kernel-common-550|550.90.07-0ubuntu1\n"
    "iF |nvidia-dkms-580-server|580.95.05-0ubuntu0.24.04.1\n"
    "iU |libnvidia-ml1|550.163.01-2\n"
    "iHR|libnvidia-cfg1|550.163.01-2\n"
    "it |libc-bin|2.36-9+deb12u14\n"
)


def test_dpkg_knows_what_is_installed_what_is_held_and_what_is_half_done() -> None:
    found = read_installed("apt", DPKG, "")
    assert found == {
        "nvidia-utils-580-server": Package("nvidia-utils-580-server", "580.95.05-0ubuntu0.24.04.1"),
        "nvidia-fabricmanager-580": Package("nvidia-fabricmanager-580", "580.95.05-0ubuntu0.24.04.1", held=True),
        "nvidia-dkms-580-server": Package("nvidia-dkms-580-server", "580.95.05-0ubuntu0.24.04.1", whole=False),
        "libnvidia-ml1": Package("libnvidia-ml1", "550.163.01-2", whole=False),
        "libc-bin": Package("libc-bin", "2.36-9+deb12u14"),
    }


def test_of_one_package_for_two_architectures_the_newer_counts_and_of_equal_ones_the_first() -> None:
    rows = parse_dpkg(
        "ii |libnvidia-ml1|550.90.07-1\nhi |libnvidia-ml1|550.163.01-2\nii |libc6|2.36-9\nhi |libc6|2.36-9\n"
    )
    assert newest(rows) == {
        "libnvidia-ml1": Package("libnvidia-ml1", "550.163.01-2", held=True),
        "libc6": Package("libc6", "2.36-9"),
    }


@pytest.mark.parametrize(
    ("manager", "text"),
    [
        ("apt", "ii |name\n"),
        ("apt", "xx |name|1\n"),
        ("dnf", "package nvidia-open is not installed\n"),
        ("zypper", "name|1.0-1\n"),
    ],
)
def test_a_line_that_is_not_known_is_named(manager: str, text: str) -> None:
    with pytest.raises(StepFailed, match=text.split("|", maxsplit=1)[0].strip()):
        read_installed(manager, text, "")


def test_madison_tells_versions() -> None:
    text = (
        "      bash | 5.2.15-2+b13 | http://deb.debian.org/debian bookworm/main amd64 Packages\n"
        "      bash | 5.2.15-2 | http://deb.debian.org/debian bookworm/main Sources\n"
    )
    assert packages_apt.read_offers(text) == [Offer("bash", "5.2.15-2+b13")]
    with pytest.raises(StepFailed, match=r"bash 5\.2"):
        packages_apt.read_offers("bash 5.2\n")


# As apt 2.6 prints them.
SIMULATED = """NOTE: This is only a simulation!
Reading package lists...
The following packages will be REMOVED:
  nvidia-headless-550-server-open
Remv nvidia-headless-550-server-open [550.90.07-0ubuntu1]
Inst libnvidia-ml1 [550.163.01-2] (580.95.05-1 Debian:12.15/oldstable [amd64]) []
Inst nvidia-headless-580-server-open:amd64 (580.95.05-0ubuntu0.24.04.1 localhost [amd64])
Conf nvidia-headless-580-server-open (580.95.05-0ubuntu0.24.04.1 localhost [amd64])
"""
UNMET = """Some packages could not be installed.
The following packages have unmet dependencies:
 nvidia-fabricmanager-580 : Depends: nvidia-kernel-common-580-server (= 580.95.05-0ubuntu0.24.04.1) but it is not going
"""


def test_a_simulation_tells_what_changes_and_what_goes() -> None:
    found = packages_apt.read_simulation(Answer(0, SIMULATED))
    assert found.changed == (
        ("libnvidia-ml1", "580.95.05-1"),
        ("nvidia-headless-580-server-open", "580.95.05-0ubuntu0.24.04.1"),
    )
    assert (found.removed, found.problem) == (("nvidia-headless-550-server-open",), "")


def test_a_simulation_that_fails_tells_why() -> None:
    found = packages_apt.read_simulation(Answer(100, UNMET, "E: Unable to correct problems, you have held x.\n"))
    assert found.problem.startswith("nvidia-fabricmanager-580 : Depends: nvidia-kernel-common-580-server (= ")
    assert found.problem.endswith("Unable to correct problems, you have held x.")


def test_exact_dependencies_are_told_from_others() -> None:
    text = (
        "Package: a\nVersion: 1-1\nPre-Depends: first (= 1-1)\n"
        "Depends: libc6 (>= 2.34), below (= 1-1), other (= 1-1) | else, anyof:any (= 2:3~rc1+b1),\n wrapped (= 1-1)\n"
        "Conflicts: none (= 9)\nDescription: x (= 3)\n"
    )
    assert packages_apt.read_exact(text) == (
        Wanted("first", "1-1"),
        Wanted("below", "1-1"),
        Wanted("anyof", "2:3~rc1+b1"),
        Wanted("wrapped", "1-1"),
    )


def test_rpm_leaves_out_the_epoch_0_and_the_older_of_two_kernels() -> None:
    text = (
        "nvidia-driver-cuda|3:580.95.05-1.el9\n"
        "nvidia-fabricmanager|0:580.95.05-1\n"
        "kernel-devel|0:5.14.0-503.11.1.el9_5\n"
        "kernel-devel|0:5.14.0-427.13.1.el9_4\n"
    )
    found = read_installed("dnf", text, "")
    assert {name: package.version for name, package in found.items()} == {
        "nvidia-driver-cuda": "3:580.95.05-1.el9",
        "nvidia-fabricmanager": "580.95.05-1",
        "kernel-devel": "5.14.0-503.11.1.el9_5",
    }


@pytest.mark.parametrize(
    ("line", "held"),
    [
        ("nvidia-fabricmanager-0:580.95.05-1.*", True),
        ("# Added lock on Wed Oct  7 2026\nnvidia-fabricmanager-0:580.95.05-1.*", True),
        ("nvidia-fabricmanager", True),
        ("nvidia*-0:580*", True),
        ("nvidia-fabricmanager-0:580.82.07-1.*", False),
        ("!nvidia-fabricmanager-0:580.95.05-1.*", False),
        ("nvidia-fabricmanager-devel-0:580.95.05-1.*", False),
        ("# nvidia-fabricmanager-0:580.95.05-1.*", False),
        ("", False),
    ],
)
def test_the_list_of_dnf_s_fourth_generation_locks(line: str, held: bool) -> None:
    assert packages_dnf.locked(f"{line}\n", Package("nvidia-fabricmanager", "580.95.05-1")) is held


LOCK5 = """version = "1.0"

[[packages]]
name = "vim-minimal"
comment = "Added by 'versionlock add' command on 2026-08-23"

[[packages.conditions]]
key = "evr"
comparator = "="
value = "2:9.2.530-1.fc44"

[[packages]]
name = "bash"
[[packages.conditions]]
key = "evr"
comparator = "!="
value = "0:5.3-1.fc44"

[[packages]]
name = "wget"
[[packages.conditions]]
key = "evr"
comparator = "="
value = "0:1.19.5-5.fc29"
"""


@pytest.mark.parametrize(
    ("name", "version", "held"),
    [
        ("vim-minimal", "2:9.2.530-1.fc44", True),
        ("vim-minimal", "2:9.2.531-1.fc44", False),
        ("bash", "5.3-1.fc44", False),
        ("wget", "1.19.5-5.fc29", True),
        ("nvidia-open", "3:580.95.05-1.fc44", False),
    ],
)
def test_the_document_of_dnf_s_fifth_generation_locks(name: str, version: str, held: bool) -> None:
    assert packages_dnf.locked5(LOCK5, Package(name, version)) is held


ZYPP = """
type: package
match_type: glob
case_sensitive: on
solvable_name: nvidia-open-driver-G06-signed-kmp-default

type: patch
match_type: glob
case_sensitive: on
solvable_name: nvidia-compute-utils-G06
"""


def test_zypper_s_locks_are_of_packages_by_name_or_glob() -> None:
    assert packages_zypper.locked(ZYPP, Package("nvidia-open-driver-G06-signed-kmp-default", "1"))
    assert not packages_zypper.locked(ZYPP, Package("nvidia-compute-utils-G06", "1"))
    assert packages_zypper.locked("type: package\nsolvable_name: nvidia-*\n", Package("nvidia-compute-utils-G06", "1"))
    assert not packages_zypper.locked("", Package("nvidia-compute-utils-G06", "1"))


packages = st.lists(
    st.builds(Package, st.from_regex(r"[a-z][a-z0-9]{1,8}(-[a-z0-9]{1,4})?", fullmatch=True), st.just("1:2.3-4.el9")),
    min_size=1,
    max_size=4,
    unique_by=lambda package: package.name,
)


@pytest.mark.parametrize("manager", ["dnf", "dnf5", "zypper"])
@settings(max_examples=40, deadline=None)
@given(some=packages, others=packages)
def test_what_is_locked_reads_as_locked_until_it_is_unlocked(
    manager: str, some: list[Package], others: list[Package]
) -> None:
    tool = tool_of(manager)
    rest = [package for package in others if package.name not in {one.name for one in some}]
    text = tool.lock(tool.lock("", tuple(rest)), tuple(some))
    assert all(tool.locked(text, package) for package in (*some, *rest))
    text = tool.unlock(text, tuple(some))
    assert not any(tool.locked(text, package) for package in some)
    assert all(tool.locked(text, package) for package in rest)


@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_an_answer_that_we_predict_reads_back(manager: str) -> None:
    tool = tool_of(manager)
    mine = [Package("a", "3:580.95.05-1"), Package("b", "2-1")]
    assert tool.parse(tool.render(mine)) == mine


def test_zypper_tells_versions_with_their_repository() -> None:
    text = (
        "<?xml version='1.0'?>\n<stream>\n"
        '<message type="info">Loading repository data...</message>\n<search-result version="0.0">\n<solvable-list>\n'
        '<solvable status="installed" name="kernel-default" kind="package" edition="7.0.12-1.1" arch="x86_64" '
        'repository="(System Packages)"/>\n'
        '<solvable status="other-version" name="kernel-default" kind="package" edition="7.2.0-1.1" arch="x86_64" '
        'repository="openSUSE-Tumbleweed-Oss"/>\n'
        '<solvable status="not-installed" name="kernel-default" kind="srcpackage" edition="7.2.0-1.1" arch="noarch" '
        'repository="src"/>\n'
        "</solvable-list>\n</search-result>\n</stream>\n"
    )
    assert packages_zypper.read_offers(text) == [Offer("kernel-default", "7.2.0-1.1")]
    with pytest.raises(StepFailed, match="kind="):
        packages_zypper.read_offers('<solvable status="installed" kind="package"/>')


def test_dnf_tells_versions() -> None:
    text = "nvidia-open|3:580.95.05-1.el9|cuda-rhel9-x86_64\n\nnvlsm|0:2025.06.5-1|cuda-rhel9-x86_64\n"
    assert packages_dnf.read_offers(text) == [
        Offer("nvidia-open", "3:580.95.05-1.el9"),
        Offer("nvlsm", "2025.06.5-1"),
    ]
    with pytest.raises(StepFailed, match="Last metadata"):
        packages_dnf.read_offers("Last metadata expiration check: 0:00:03 ago\n")


@pytest.mark.parametrize(
    ("version", "driver"),
    [
        ("580.95.05-0ubuntu0.24.04.1", "580.95.05"),
        ("3:580.95.05-1.el9", "580.95.05"),
        ("580.95.05-1", "580.95.05"),
        ("580.95.05_k6.4.0_150600.21-lp156.41.1", "580.95.05"),
        ("535.261.03-1~deb12u1", "535.261.03"),
        ("550.163.01", "550.163.01"),
    ],
)
def test_a_package_s_version_holds_the_driver_s(version: str, driver: str) -> None:
    assert upstream(version) == driver


def test_versions_are_sorted_as_numbers_and_by_epoch_first() -> None:
    wanted = ["550.90.07-1", "550.163.01-2~rc1", "550.163.01-2", "580.82.07-1", "580.126.20-1", "1:470.1-1"]
    mixed = wanted[::-1]
    mixed.sort(key=version_key)
    assert mixed == wanted


# -- module streams

LISTING = """cuda-rhel9-x86_64
Name            Stream          Profiles                    Summary
nvidia-driver   latest          default [d], fm, ks, src    Nvidia driver for latest branch
nvidia-driver   525-dkms        default [d], fm, ks         Nvidia driver for 525-dkms branch
nvidia-driver   580-open [e]    default [d], fm, ks, src    Nvidia driver for 580-open branch
nvidia-driver   open-dkms [d]   default [d], fm, ks, src    Nvidia driver for open-dkms branch

Hint: [d]efault, [e]nabled, [x]disabled, [i]nstalled
"""


def test_the_marks_of_a_stream_are_its_own_and_not_its_profiles() -> None:
    assert parse_streams("nvidia-driver", LISTING) == (
        Stream("latest"),
        Stream("525-dkms"),
        Stream("580-open", enabled=True),
        Stream("open-dkms", default=True),
    )


def test_both_marks_may_stand_together() -> None:
    assert parse_streams("nvidia-driver", "nvidia-driver   open-dkms [d][e]   default [d] [i], fm\n") == (
        Stream("open-dkms", default=True, enabled=True),
    )


def steps(listing: str, stream: str, refreshed: str = "") -> list[str]:
    """The command lines that bring the stream; a failure by its message, what is known later by its sentence."""
    todo = Todo()
    past = Past(answers={ask: Answer(0 if listing else 1, listing) for ask in _asked()})
    enable(todo, past, "nvidia-driver", stream, refreshed)
    return [" ".join(step.argv) or step.text or step.action for step in todo.plan().steps]


def _asked() -> list[Ask]:
    try:
        Past().ask(asks_streams("nvidia-driver"))
    except Question as question:
        return [question.ask]
    raise AssertionError("no question was asked")


def test_an_enabled_stream_is_left_alone() -> None:
    assert steps(LISTING, "580-open") == []


def test_a_default_counts_for_nothing_and_needs_no_reset() -> None:
    assert steps(LISTING.replace(" [e]", ""), "latest") == ["dnf -y module enable nvidia-driver:latest"]


def test_switching_a_stream_shows_its_reset() -> None:
    assert steps(LISTING, "525-dkms") == [
        "dnf -y module reset nvidia-driver",
        "dnf -y module enable nvidia-driver:525-dkms",
    ]


def test_a_disabled_module_is_reset_too() -> None:
    listing = LISTING.replace("580-open [e]", "580-open [x]").replace("latest  ", "latest [x]")
    assert steps(listing, "580-open") == [
        "dnf -y module reset nvidia-driver",
        "dnf -y module enable nvidia-driver:580-open",
    ]


def test_a_stream_that_is_not_there_is_named_with_those_that_are() -> None:
    (said,) = steps(LISTING, "570-open")
    assert "no stream nvidia-driver:570-open" in said
    assert "latest, 525-dkms, 580-open, open-dkms" in said


def test_a_stream_may_come_with_the_refresh() -> None:
    assert steps("", "580-open", "the package index is refreshed") == [
        "enable the module stream nvidia-driver:580-open: known after the package index is refreshed"
    ]
    assert "no module nvidia-driver at all" in steps("", "580-open")[0]
