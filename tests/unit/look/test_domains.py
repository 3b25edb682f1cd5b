# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines that run here: QEMU's options as its manual has them, and as libvirt writes them."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.look.domains import domains
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Domain
from tests.unit.fake_host import FakeHost

MIB, GIB = 1024**2, 1024**3
UUID = "b5cc201d-58cb-4e3b-b2e7-d540e2541e85"
QEMU = "/usr/bin/qemu-system-x86_64"
GPU, OTHER = "0000:17:00.0", "0000:65:00.0"
HUGE = '{"qom-type":"memory-backend-memfd","id":"pc.ram","hugetlb":true,"hugetlbsize":1073741824,"size":4294967296}'
PLAIN = '{"qom-type":"memory-backend-memfd","id":"pc.ram","share":true,"size":4294967296}'
DIMM = ("-object", "memory-backend-ram,id=memdimm0,size=1G", "-device", "pc-dimm,node=0,memdev=memdimm0,id=dimm0")


def _host(*options: str, exe: str = QEMU, pid: int = 4242) -> FakeHost:
    """A host on which one QEMU runs, started 987654 ticks after the boot."""
    host = FakeHost(links={f"/proc/{pid}/exe": exe})
    host.put(f"/proc/{pid}/cmdline", "\0".join((exe, *options)) + "\0")
    fields = ["S", "1", *["0"] * 17, "987654", *["0"] * 30]
    host.put(f"/proc/{pid}/stat", f"{pid} (qemu) S (x) {' '.join(fields)}\n")
    host.put(f"/proc/{pid}/status", "Name:\tqemu-system-x86\nVmRSS:\t  524288 kB\n")
    host.put("/proc/mounts", "proc /proc proc rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw 0 0\n")
    return host


def _one(*options: str) -> Domain:
    (found,) = domains(_host(*options))
    return found


def test_a_machine_of_libvirts() -> None:
    found = _one(
        *("-name", "guest=train-1,debug-threads=on", "-S"),
        *("-machine", "pc-q35-7.2,usb=off,memory-backend=pc.ram", "-accel", "kvm", "-m", "size=4194304k"),
        *("-object", HUGE, "-overcommit", "mem-lock=on", "-uuid", UUID),
        *("-device", '{"driver":"pcie-root-port","port":16,"id":"pci.5","addr":"0x2"}'),
        *("-device", f'{{"driver":"vfio-pci","host":"{GPU}","id":"hostdev0","bus":"pci.5","addr":"0x0"}}'),
    )
    assert found == Domain(("train-1", UUID), 987654, 4 * GIB, hugepages=True, pci=(GPU,))


def test_a_machine_that_somebody_typed() -> None:
    found = _one("-name", "mine", "-m", "2G", "-device", "vfio-pci,host=17:00.0,x-vga=on", "-daemonize")
    assert found == Domain(("mine",), 987654, 2 * GIB, pci=(GPU,))


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ((), 128 * MIB),
        (("-m", "4096"), 4 * GIB),
        (("--m", "4096"), 4 * GIB),
        (("-m", "4096M"), 4 * GIB),
        (("-m", "1.5G"), 1536 * MIB),
        (("-m", "4g,slots=16,maxmem=64g"), 4 * GIB),
        (("-m", "size=4194304k,slots=16,maxmem=67108864k"), 4 * GIB),
        (("-m", "slots=16,maxmem=64G", "-m", "size=4G"), 4 * GIB),
        (("-m", "4G", *DIMM), 5 * GIB),
        (("-m", "4G", "-object", PLAIN, *DIMM), 5 * GIB),
        # Two NUMA nodes of 3 GiB are the 6 GiB of -m.
        (
            (
                *("-m", "6G", "-object", "memory-backend-ram,id=ram-node0,size=3221225472"),
                *("-object", '{"qom-type":"memory-backend-ram","id":"ram-node1","size":3221225472}'),
                *("-numa", "node,memdev=ram-node0", "-numa", "node,memdev=ram-node1"),
            ),
            6 * GIB,
        ),
        # What cannot be made out counts with what is in use: 512 MiB here.
        (("-m", "lots"), 512 * MIB),
        (("-m", "4G", "-object", "memory-backend-ram,id=x,size=0x10000"), 512 * MIB),
        (("-readconfig", "/etc/vm.cfg"), 512 * MIB),
    ],
)
def test_how_much_memory(options: tuple[str, ...], size: int) -> None:
    assert _one(*options).memory_bytes == size


FILE = "memory-backend-file,id=ram-node0,size=4G,share=on,mem-path="


@pytest.mark.parametrize(
    ("options", "huge"),
    [
        (("-m", "4G"), False),
        (("-m", "4G", "-mem-path", "/dev/hugepages/libvirt/qemu/1-vm", "-mem-prealloc"), True),
        (("-m", "4G", "-mem-path", "/dev/hugepages"), True),
        (("-m", "4G", "-mem-path", "/dev/hugepages2"), False),
        (("-m", "4G", "-mem-path", "/dev/shm"), False),
        (("-m", "4G", "-object", f"{FILE}/dev/hugepages/vm"), True),
        (("-m", "4G", "-object", f"{FILE}/var/lib/libvirt/qemu/ram/vm"), False),
        (("-m", "4G", "-object", "memory-backend-memfd,id=m,size=4G,hugetlb=on,hugetlbsize=2M"), True),
        (("-m", "4G", "-object", "memory-backend-memfd,id=m,size=4G,hugetlb=off"), False),
        (("-m", "4G", "-object", "memory-backend-memfd,id=m,size=4G,hugetlb"), True),
        (("-m", "4G", "-object", HUGE), True),
        (("-m", "4G", "-object", PLAIN), False),
        (("-m", "4G", "-object", HUGE, *DIMM), False),  # in part: it counts as ordinary
        (("-m", "8G", "-object", HUGE), False),  # half of it has no backend
    ],
)
def test_whether_it_is_huge_pages(options: tuple[str, ...], huge: bool) -> None:
    assert _one(*options).hugepages is huge


def test_a_name_with_a_comma_and_none() -> None:
    assert _one("-name", "guest=a,,b,debug-threads=on").names == ("a,b",)
    assert _one("-nographic").names == ("process 4242",)


@pytest.mark.parametrize(
    ("exe", "runs"),
    [
        (QEMU, True),
        ("/usr/libexec/qemu-kvm", True),
        ("/usr/bin/kvm", True),
        (f"{QEMU} (deleted)", True),
        ("/usr/bin/qemu-img", False),
        ("/usr/bin/qemu-ga", False),
        ("/usr/bin/python3", False),
    ],
)
def test_which_programs_are_virtual_machines(exe: str, runs: bool) -> None:
    assert bool(domains(_host("-m", "4G", exe=exe))) is runs


def test_what_is_no_machine() -> None:
    """libvirt starts QEMU without a machine to learn what it can; a process may end while it is looked at."""
    assert domains(_host("-S", "-no-user-config", "-machine", "none,accel=kvm:tcg")) == ()
    assert domains(_host("-M", "none")) == ()
    host = _host("-m", "4G")
    host.put("/proc/4242/cmdline", "")
    assert domains(host) == ()
    host = _host("-m", "4G")
    del host.files["/proc/4242/stat"]
    assert domains(host) == ()
    host = _host("-m", "4G")
    host.put("/proc/mounts", "")
    host.put("/proc/17/cmdline", "sshd\0")
    assert len(domains(host)) == 1


def test_where_root_may_not_see_the_program_its_own_word_counts() -> None:
    host = _host("-m", "4G")
    host.unreadable.add("/proc/4242/exe")
    assert domains(host)[0].memory_bytes == 4 * GIB


# -- devices


@pytest.mark.parametrize(
    "device",
    [
        f"vfio-pci,host={GPU}",
        f"vfio-pci-nohotplug,host={GPU},ramfb=on,display=on",
        "vfio-pci,host=17:00.0",
        f"vfio-pci,sysfsdev=/sys/bus/pci/devices/{GPU}",
        f'{{"driver":"vfio-pci","host":"{GPU.upper()}"}}',
    ],
)
def test_a_device_through_vfio(device: str) -> None:
    assert _one("-device", device).pci == (GPU,)


@pytest.mark.parametrize("device", ["virtio-net-pci,host=17:00.0", "vfio-pci,host=nonsense", "{", "[]", "", "vfio-pci"])
def test_what_is_no_device_through_vfio(device: str) -> None:
    assert _one("-device", device).pci == ()


def test_of_a_virtual_function_and_a_vgpu_the_whole_gpu_is_meant() -> None:
    mdev = "c2e088ba-954f-11ec-9b5a-525400666f2b"
    host = _host("-device", "vfio-pci,host=0000:17:00.4", "-device", f"vfio-pci,sysfsdev=/sys/bus/mdev/devices/{mdev}")
    host.links["/sys/bus/pci/devices/0000:17:00.4/physfn"] = f"../{GPU}"
    host.links[f"/sys/bus/mdev/devices/{mdev}"] = f"../../../devices/pci0000:64/0000:64:01.0/{OTHER}/{mdev}"
    assert domains(host)[0].pci == (GPU, OTHER)


def test_a_device_that_was_plugged_in_while_the_machine_ran() -> None:
    """It is on no command line; the process has the device's VFIO group open, or its own node with iommufd."""
    host = _host("-m", "4G")
    host.links["/proc/4242/fd/30"] = "/dev/vfio/17"
    host.links["/proc/4242/fd/31"] = "/dev/vfio/devices/vfio3"
    host.links["/proc/4242/fd/32"] = "/dev/vfio/vfio"
    host.links["/proc/4242/fd/33"] = "/dev/kvm"
    host.links[f"/sys/kernel/iommu_groups/17/devices/{GPU}"] = f"../../../../devices/pci0000:16/0000:16:01.0/{GPU}"
    host.links["/sys/class/vfio-dev/vfio3/device"] = f"../../../{OTHER}"
    assert domains(host)[0].pci == (GPU, OTHER)
