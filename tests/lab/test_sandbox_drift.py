# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A converged sandbox host that something else changes: each difference is named, repaired, and nothing else moves.

The tests share one converged machine, in their order: repaired, cleaned, and at last as if we had never been there.
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
    """A file that is gone, a local edit in each of the others, a kernel value, a module and a pool."""
    stage, section, before = converged
    edited = (PROBE, SYSCTL, MOUNT, SERVICE, CPU, IOMMU, PAGES)
    kept = {path: stage.machine.read(path) for path in edited}
    commands = (
        f"echo 1 >{KEY}",
        f"rm {LOAD}",
        "rmmod vhost_net",  # alone: modprobe -r would take what only it uses, tun, with it
        f"echo {sandbox.PAGES_2M - 5} >{POOL}",
        *(f"echo '# a local edit' >>{path}" for path in edited),
    )
    stage.machine.ssh(" && ".join(commands))
    planned = stage.plan(section)
    assert planned.rc == 0, planned.said
    assert list(planned.all_steps()) == ["kernel-modules", "sysctl", "hugepages", "cpu", "iommu"]
    again = {f"write {path} again: it is not as we keep it" for path in edited}
    assert again <= set(chain(*planned.all_steps().values()))
    others = {
        unit: [step for step in planned.steps(unit) if step not in again] for unit in ("kernel-modules", "sysctl")
    }
    assert [step for step in others["kernel-modules"] if STATE not in step] == [
        f"write {LOAD}",
        "load the module vhost_net",
    ]
    assert others["sysctl"] == ["set net.bridge.bridge-nf-call-iptables to 0 (now: 1)"]
    pool = f"set the pool of 2 MiB pages on node 1 to {sandbox.PAGES_2M} ({sandbox.PAGES_2M - 5} now)"
    assert [step for step in planned.steps("hugepages") if step.startswith("set ")] == [pool]
    differences = planned.differences()
    assert differences[KEY] == ("1\n", "0\n")
    assert differences[POOL] == (f"{sandbox.PAGES_2M - 5}\n", f"{sandbox.PAGES_2M}\n")
    assert differences[LOAD][0] == ""
    assert {path: differences[path] for path in edited} == {
        path: (f"{text}# a local edit\n", text) for path, text in kept.items()
    }
    host = stage.report()["hosts"]["lab"]
    assert host["drift"] == list(planned.all_steps())
    named = {entry["after_header"] for unit in host["units"] for entry in unit["diff"]}
    assert {path for path in named if not path.startswith(STATE)} == {KEY, POOL, LOAD, *edited}

    repaired = stage.converge(section)
    assert (repaired.rc, repaired.state, repaired.recap["changed"]) == (0, "CONVERGED", 1)
    assert repaired.all_steps() == planned.all_steps()
    assert fingerprint(stage.machine).changed_since(before) == []
    assert {path: stage.machine.read(path) for path in edited} == kept
    assert eyes.pools(M2) == [sandbox.PAGES_2M] * sandbox.NODES
    assert eyes.sysctl("net.bridge.bridge-nf-call-iptables") == 0
    assert eyes.loaded("vhost_net")
    for name in ("dev-hugepages1G.mount", "bcd-hugepages.service"):
        assert stage.machine.ssh(f"systemctl show --property=NeedDaemonReload --value {name}").out == "no\n"


def test_an_empty_section_cleans_up_as_specified(converged: Converged, eyes: Eyes) -> None:
    """kernel-modules, sysctl, cpu and iommu take their files and arguments; hugepages stays, and says so."""
    stage, _section, before = converged
    cleaned = stage.converge({})
    assert (cleaned.rc, cleaned.recap["changed"]) == (0, 1), cleaned.said
    assert cleaned.state == "CONVERGED"
    assert any("pools of huge pages stay" in note for note in cleaned.units["hugepages"]["notes"])
    now = fingerprint(stage.machine)
    files = {LOAD, PROBE, SYSCTL, CPU, IOMMU}
    folders = {path.rpartition("/")[0] for path in files}
    assert set(now.changed_since(before)) - folders == files | {MENU}
    assert not files & now.files.keys()
    # What runs goes on until the next boot.
    assert eyes.loaded("vhost_net", "tun", "br_netfilter")
    assert eyes.sysctl("net.bridge.bridge-nf-call-iptables") == 0
    assert eyes.text("/sys/devices/system/cpu/isolated").strip() == sandbox.ISOLATED
    assert eyes.pools(M2) == [sandbox.PAGES_2M] * sandbox.NODES
    for line in eyes.menu_lines():
        assert not {"iommu=pt", *sandbox.ISOLATION} & set(line)
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
