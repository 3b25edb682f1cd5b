# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute instances that fill their GPU instances, told by the listing of MIG devices; where it does not tell, none."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.each_gpu import each_gpu
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.mig import Tables, parse_lgi
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.mig_filled import Devices
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu import Gpu
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig import GpuInstance
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.smi import NAMES
from tests.captures import session
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Fault, Machine
from tests.unit.fake_host import FakeHost

GPU = Gpu(0, "GPU-1", "00000000:17:00.0", "NVIDIA A30")
LISTED = "GPU 0: NVIDIA A30 (UUID: GPU-1)\n"
WHOLE = (GpuInstance(3, "2g.12gb", 5, 0, 2), GpuInstance(5, "1g.6gb", 14, 2, 1), GpuInstance(6, "1g.6gb", 14, 3, 1))


def listing(*names: str) -> FakeHost:
    """A host whose GPU has these MIG devices."""
    lines = (f"  MIG {name:<11} Device {at:>2}: (UUID: MIG-{at})\n" for at, name in enumerate(names))
    answer = Answer(0, LISTED + "".join(lines))
    return FakeHost(programs={"nvidia-smi": lambda _host, _argv: answer})


def parted(*products: str) -> GpuHost:
    host = gpu_host(Machine.from_products(list(products)))
    for at in range(len(products)):
        for words in (("-i", f"{at}", "-mig", "1"), ("mig", "-i", f"{at}", "-cgi", "3g.40gb,1g.10gb,1g.10gb", "-C")):
            assert host.machine.smi(("nvidia-smi", *words))[0] == 0
    host.sync()
    host.asked.clear()
    return host


def test_a_recorded_machine_of_whole_instances() -> None:
    """An A100 that was divided, as nvidia-smi 470 lists it: devices, GPU instances, compute instances."""
    commands = [one for one in session("smi470_a100_session") if not one.fail]
    text = next(one.text for one in commands if one.line == "nvidia-smi -L" and "MIG" in one.text)
    host = FakeHost(programs={"nvidia-smi": lambda _host, _argv: Answer(0, text)})
    uuid = text.partition("UUID: ")[2].partition(")")[0]
    tables = [one.text for one in commands if "-lgi" in one.argv and "| GPU instances:" in one.text]
    gis = tuple(gi for index, gi in parse_lgi(tables[0]) if index == 0)
    assert sorted(gi.profile_name for gi in gis) == ["1g.5gb", "2g.10gb", "3g.20gb"]
    found = Devices(host).filling(GPU._replace(uuid=uuid), gis)
    assert [(ci.gi, ci.profile_name) for ci in found] == [(gi.id, gi.profile_name) for gi in gis]


def test_it_tells_what_the_table_of_compute_instances_tells_and_is_asked_once() -> None:
    host = parted("H100-80GB", "H100-80GB")
    tables, devices = Tables(host), Devices(host)
    for gpu, _row in each_gpu(host, NAMES):
        told = devices.filling(gpu, tables.gpu_instances(gpu.index))
        listed = {(ci.gi, ci.profile_name) for ci in tables.compute_instances(gpu.index)}
        assert {(ci.gi, ci.profile_name) for ci in told} == listed
    assert host.asked.count(("nvidia-smi", "-L")) == 1


@pytest.mark.parametrize(
    "names",
    [
        ("2g.12gb", "1g.6gb"),  # one GPU instance is bare
        ("1c.2g.12gb", "1g.6gb", "1g.6gb"),
        ("1c.2g.12gb", "1c.2g.12gb", "1g.6gb", "1g.6gb"),
        ("2g.12gb", "1g.6gb", "1g.6gb+me"),
        ("2g.12gb", "1g.6gb", "1g.6gb", "1g.6gb"),  # somebody makes instances just now
        (),
    ],
)
def test_what_it_does_not_tell_is_not_taken_from_it(names: tuple[str, ...]) -> None:
    with pytest.raises(StepFailed, match="does not tell of the compute instances of GPU 0"):
        Devices(listing(*names)).filling(GPU, WHOLE)


def test_a_listing_that_fails_is_asked_once_and_tells_nothing() -> None:
    host = parted("H100-80GB", "H100-80GB")
    host.machine.faults.append(Fault("-L", rc=255, text="Unknown Error\n"))
    devices, tables = Devices(host), Tables(host)
    for gpu, _row in each_gpu(host, NAMES):
        with pytest.raises(StepFailed, match="Unknown Error"):
            devices.filling(gpu, tables.gpu_instances(gpu.index))
    assert host.asked.count(("nvidia-smi", "-L")) == 1


def test_a_gpu_without_instances_is_asked_nothing() -> None:
    host = listing()
    assert Devices(host).filling(GPU, ()) == ()
    assert host.asked == []
