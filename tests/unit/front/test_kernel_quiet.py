# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a live machine does by itself is no answer to what the kernel's and the driver's units ask of a quiet host."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Beside, Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.unit.front.test_whole_host import go
from tests.unit.quiet_turn import Asked, differing
from tests.unit.whole_host import CPUS, POOLS, UNITS, WholeHost

pytestmark = pytest.mark.exhaustive

OURS = ("kernel-modules", "sysctl", "hugepages", "cpu", "iommu", "nvidia-driver", "fabric-manager")
BUS = "/sys/bus/pci/devices"


@cache
def quiet() -> tuple[WholeHost, dict[str, Asked]]:
    """A converged host, and what each unit's turn asks of it."""
    host = WholeHost()
    go(host)
    watched = Watched(host)
    told = {}
    for name in OURS:
        unit = catalog.unit(name)
        watched.begin()
        outcome = converge(Goal(unit, UNITS[name]), watched, Records(Beside(host, watched)))
        asked = watched.end()
        assert (outcome.state, outcome.changed) == ("converged", False), outcome
        assert asked is not None, f"the turn of {name} cannot be known again"
        told[name] = asked
    return host, told


def live(host: WholeHost) -> None:
    """An hour in the life of a machine: memory and pages are used, modules and mounts come, people log in."""
    host.put("/proc/meminfo", "MemTotal: 67108864 kB\nMemFree: 1234 kB\n")
    host.put("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 67108864 kB\nNode 0 MemFree: 7 kB\n")
    for pool in POOLS:
        host.put(f"{pool}/free_hugepages", "3\n")
    host.put("/proc/mounts", f"{host.text('/proc/mounts')}overlay /run/containerd/io/1 overlay rw 0 0\n")
    host.put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu MHz\t\t: 3501.000\n")
    host.put("/sys/module/tun/refcnt", "9\n")
    host.put("/sys/module/tun/holders/vhost_net", "")
    host.put("/sys/module/nvidia/refcnt", "77\n")
    host.put("/sys/module/nfsv4/refcnt", "0\n")
    host.put("/proc/devices", (host.text("/proc/devices") or "").replace("Block", "240 hidraw\n\nBlock", 1))
    host.put("/sys/kernel/iommu_groups/9/type", "DMA\n")
    host.put("/run/systemd/transient/session-7.scope", "[Scope]\n")
    host.put(f"{CPUS}/cpu0/cpufreq/scaling_cur_freq", "3501000\n")
    host.put("/etc/cdi/other-vendor.json", "{}")
    for name, text in (("vendor", "0x8086"), ("class", "0x020000"), ("device", "0x1572")):
        host.put(f"{BUS}/0000:f0:00.0/{name}", f"{text}\n")


@pytest.mark.parametrize("name", OURS)
def test_an_hour_in_the_life_of_a_machine_changes_no_answer(name: str) -> None:
    ended, told = quiet()
    host = copy.deepcopy(ended)
    live(host)
    assert differing(host, told[name]) == []


def lose_fabric(host: WholeHost) -> None:
    host.switched = False  # what follows is not its manager's doing
    host.machine.cards[0].fabric = "In Progress"


def put(path: str, text: str) -> Callable[[WholeHost], None]:
    return lambda host: host.put(path, text)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("kernel-modules", put("/sys/module/tun/parameters/debug", "0\n")),
        ("kernel-modules", lambda host: host.files.pop("/sys/module/tun/refcnt")),
        ("kernel-modules", put("/etc/modprobe.d/zz.conf", "options tun debug=0\n")),
        ("sysctl", put("/proc/sys/vm/swappiness", "60\n")),
        ("sysctl", put("/etc/sysctl.d/zz.conf", "vm.swappiness = 60\n")),
        ("hugepages", put(f"{POOLS[0]}/nr_hugepages", "500\n")),
        ("hugepages", put("/proc/meminfo", "MemTotal: 33554432 kB\n")),
        ("cpu", put(f"{CPUS}/cpu3/cpufreq/scaling_governor", "powersave\n")),
        ("iommu", put("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1\n")),
        ("iommu", put("/boot/grub/grub.cfg", "menuentry x {\n linux /vmlinuz\n}\n")),
        ("nvidia-driver", put("/proc/driver/nvidia/version", "another\n")),
        ("nvidia-driver", lambda host: host.apt.come("nvidia-utils-550-server", "550.200.01-0ubuntu0.24.04.1")),
        ("nvidia-driver", lambda host: host.services.state.update({"nvidia-persistenced.service": "failed"})),
        ("nvidia-driver", lambda host: host.files.pop("/dev/nvidia-uvm")),
        ("fabric-manager", lambda host: host.services.state.update({"nvidia-fabricmanager.service": "failed"})),
        ("fabric-manager", lose_fabric),
    ],
)
def test_what_a_unit_is_about_is_an_answer(name: str, change: Callable[[WholeHost], object]) -> None:
    ended, told = quiet()
    host = copy.deepcopy(ended)
    assert differing(host, told[name]) == []
    change(host)
    assert differing(host, told[name]) != []


def test_what_a_pass_over_all_of_them_asks_of_programs() -> None:
    """systemd once for all services, dpkg twice, since each unit asks for names of its own, and modinfo."""
    host = copy.deepcopy(quiet()[0])
    watched = Watched(host)
    host.asked.clear()
    for name in OURS:
        converge(Goal(catalog.unit(name), UNITS[name]), watched, Records(Beside(host, watched)))
    asked = sorted(argv[:2] for argv in host.asked if argv[0] != "nvidia-smi")
    assert asked == [("dpkg-query", "-W"), ("dpkg-query", "-W"), ("modinfo", "-k"), ("systemctl", "show")]
