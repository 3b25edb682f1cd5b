# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A converged sandbox host that something else changes: each difference is named, repaired, and nothing else moves.

The tests share one converged machine and leave it converged, but for the removals at the end, which stand in an order
of their own.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import pytest
import sandbox
from labvm.machine import Machine
from play import Stage
from seen import G1, M2, STATE, Eyes, Fingerprint, fingerprint

LOAD, PROBE, SYSCTL = "/etc/modules-load.d/bcd.conf", "/etc/modprobe.d/bcd.conf", "/etc/sysctl.d/90-bcd.conf"
MOUNT, SERVICE = "/etc/systemd/system/dev-hugepages1G.mount", "/etc/systemd/system/bcd-hugepages.service"
CPU, IOMMU, PAGES = (f"/etc/default/grub.d/90-bcd-{unit}.cfg" for unit in ("cpu", "iommu", "hugepages"))
MENU = "/boot/grub/grub.cfg"
POOL = "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
KEY = "/proc/sys/net/bridge/bridge-nf-call-iptables"


class Converged(NamedTuple):
    """The machine, the section it is converged to, and what it looked like when it was."""

    stage: Stage
    section: dict[str, Any]
    before: Fingerprint


@pytest.fixture(scope="module")
def converged(lab_machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Converged:
    stage = Stage(lab_machine, tmp_path_factory.mktemp("drift"))
    sandbox.stand_converged(stage)
    return Converged(stage, sandbox.section(lab_machine), fingerprint(lab_machine))


@pytest.fixture
def eyes(converged: Converged) -> Eyes:
    return Eyes(converged.stage.machine)


def test_what_was_changed_by_hand_is_named_and_exactly_that_is_repaired(converged: Converged, eyes: Eyes) -> None:
    stage, section, before = converged
    for command in (
        f"echo 1 >{KEY}",
        f"rm {LOAD}",
        "rmmod vhost_net",  # alone: modprobe -r would take what only it uses, tun, with it
        f"echo {sandbox.PAGES_2M - 5} >{POOL}",
    ):
        stage.machine.ssh(command)
    planned = stage.plan(section)
    assert planned.rc == 0, planned.said
    assert set(planned.all_steps()) == {"kernel-modules", "sysctl", "hugepages"}
    assert planned.steps("kernel-modules") == [f"write {LOAD}", "load the module vhost_net"]
    assert planned.steps("sysctl") == ["set net.bridge.bridge-nf-call-iptables to 0 (now: 1)"]
    assert planned.steps("hugepages") == [
        f"set the pool of 2 MiB pages on node 1 to {sandbox.PAGES_2M} ({sandbox.PAGES_2M - 5} now)"
    ]
    differences = planned.differences()
    assert differences[KEY] == ("1\n", "0\n")
    assert differences[POOL] == (f"{sandbox.PAGES_2M - 5}\n", f"{sandbox.PAGES_2M}\n")
    assert differences[LOAD][0] == ""
    host = stage.report()["hosts"]["lab"]
    assert host["drift"] == ["kernel-modules", "sysctl", "hugepages"]
    assert {entry["after_header"] for unit in host["units"] for entry in unit["diff"]} == {KEY, POOL, LOAD}

    repaired = stage.converge(section)
    assert (repaired.rc, repaired.state, repaired.recap["changed"]) == (0, "CONVERGED", 1)
    assert repaired.all_steps() == planned.all_steps()
    assert fingerprint(stage.machine).changed_since(before) == []
    assert eyes.pools(M2) == [sandbox.PAGES_2M] * sandbox.NODES
    assert eyes.sysctl("net.bridge.bridge-nf-call-iptables") == 0
    assert eyes.loaded("vhost_net")


def test_a_local_edit_in_each_of_our_files_is_replaced(converged: Converged) -> None:
    stage, section, before = converged
    ours = (LOAD, PROBE, SYSCTL, MOUNT, SERVICE, CPU, IOMMU, PAGES)
    kept = {path: stage.machine.read(path) for path in ours}
    for path in ours:
        stage.machine.ssh(f"echo '# a local edit' >>{path}")
    planned = stage.plan(section)
    differences = planned.differences()
    for path in ours:
        assert differences[path] == (f"{kept[path]}# a local edit\n", kept[path])
        assert f"write {path} again: it is not as we keep it" in chain(*planned.all_steps().values())
    repaired = stage.converge(section)
    assert (repaired.rc, repaired.state) == (0, "CONVERGED")
    assert repaired.all_steps() == planned.all_steps()
    assert {path: stage.machine.read(path) for path in ours} == kept
    assert fingerprint(stage.machine).changed_since(before) == []
    for name in ("dev-hugepages1G.mount", "bcd-hugepages.service"):
        assert stage.machine.ssh(f"systemctl show --property=NeedDaemonReload --value {name}").out == "no\n"


def test_units_that_leave_the_section_clean_up_as_specified(converged: Converged, eyes: Eyes) -> None:
    """kernel-modules, sysctl, cpu and iommu take their files and arguments; hugepages stays, and says so."""
    stage, section, before = converged
    left = dict(section)
    gone = {"kernel-modules": {LOAD, PROBE}, "sysctl": {SYSCTL}, "cpu": {CPU}, "iommu": {IOMMU}}
    for unit, files in gone.items():
        del left[unit]
        removed = stage.converge(left)
        assert (removed.rc, removed.recap["changed"]) == (0, 1), removed.said
        now = fingerprint(stage.machine)
        menu = {MENU} if unit in ("cpu", "iommu") else set()
        folders = {path.rpartition("/")[0] for path in files}
        moved = set(now.changed_since(before)) - folders
        assert moved == files | menu, unit
        assert not files & now.files.keys()
        before = now
    # What runs goes on until the next boot.
    assert eyes.loaded("vhost_net", "tun", "br_netfilter")
    assert eyes.sysctl("net.bridge.bridge-nf-call-iptables") == 0
    assert eyes.text("/sys/devices/system/cpu/isolated").strip() == sandbox.ISOLATED
    for line in eyes.menu_lines():
        assert not {"iommu=pt", *sandbox.ISOLATION} & set(line)


def test_an_empty_section_cleans_everything(converged: Converged, eyes: Eyes) -> None:
    stage, _section, _before = converged
    before = fingerprint(stage.machine)
    cleaned = stage.converge({})
    assert cleaned.rc == 0, cleaned.said
    assert cleaned.state == "CONVERGED"
    assert any("pools of huge pages stay" in note for note in cleaned.units["hugepages"]["notes"])
    assert fingerprint(stage.machine).changed_since(before) == []
    assert eyes.pools(M2) == [sandbox.PAGES_2M] * sandbox.NODES
    sandbox.next_boot_has(eyes, "hugepages", sandbox.RESERVATION)
    assert stage.machine.ssh(f"ls {STATE}/bootargs").out.split() == ["hugepages"]
    again = stage.converge({})
    assert (again.recap["changed"], again.whole["units"]) == (0, [])


def test_pages_that_are_given_back_leave_nothing(converged: Converged, eyes: Eyes) -> None:
    stage, _section, _before = converged
    given_back = stage.converge({"hugepages": {"pages1g": 0, "pages2m": 0}})
    assert (given_back.rc, given_back.state) == (0, "CONVERGED"), given_back.said
    assert eyes.pools(G1) == [0] * sandbox.NODES
    assert eyes.pools(M2) == [0] * sandbox.NODES
    assert not any(eyes.exists(path) for path in (MOUNT, SERVICE, PAGES))
    assert not eyes.host.mount_point("/dev/hugepages1G").exists
    for line in eyes.menu_lines():
        assert not [word for word in line if word.startswith("hugepages")]
    # Now no file tells any more that we were here, GRUB's menu to the byte among them.
    cleaned = fingerprint(stage.machine)
    stage.machine.revert()
    untouched = fingerprint(stage.machine)
    assert [path for path in cleaned.changed_since(untouched) if path in cleaned.files | untouched.files] == []
