# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a member shows of itself: its GPUs for labels, without a program, and the last words of its kubelet."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_kept import gpus
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kubelet_log import last_words
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_labels import Gpus
from tests.unit.fake_host import FakeHost

VERSION = "/proc/driver/nvidia/version"
NVRM = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb 26 01:28:13 UTC 2025\n"
KLOG = 'E1130 00:01:22.941220 11 run.go:72] "command failed" err="swap is on"'
UUID = "GPU-5f1c2a90-0000-4000-8000-00000000000{}"


def information(at: int, model: str = "NVIDIA H100 80GB HBM3", excluded: str = "No") -> dict[str, str]:
    said = f"Model: \t\t {model}\nGPU UUID: \t {UUID.format(at)}\nDevice Minor: \t {at}\nGPU Excluded:\t {excluded}\n"
    return {f"/proc/driver/nvidia/gpus/0000:{at + 16:02x}:00.0/information": said}


def on_bus(driver: str) -> FakeHost:
    folder = "/sys/bus/pci/devices/0000:10:00.0"
    links = {f"{folder}/driver": f"../../../bus/pci/drivers/{driver}"} if driver else {}
    values = {"vendor": "0x10de\n", "class": "0x030200\n", "device": "0x2330\n"}
    return FakeHost({f"{folder}/{name}": text for name, text in values.items()}, links=links)


def test_a_machine_without_gpus_has_none() -> None:
    assert gpus(FakeHost()) == Gpus()
    assert gpus(on_bus("vfio-pci")) == Gpus()  # a virtual machine has it


@pytest.mark.parametrize("driver", ["", "nouveau"])
def test_a_gpu_that_waits_for_its_driver_tells_nothing(driver: str) -> None:
    assert gpus(on_bus(driver)) is None


def test_the_driver_tells_without_a_program() -> None:
    host = FakeHost({VERSION: NVRM, **information(0), **information(1), **information(2, excluded="Yes")})
    assert gpus(host) == Gpus(2, ("NVIDIA H100 80GB HBM3",) * 2, "570.124.06")
    assert host.asked == []


def test_a_gpu_that_does_not_say_what_it_is_tells_nothing_of_all() -> None:
    dead = information(1)
    dead = {
        path: text.replace(UUID.format(1), "GPU-????????-????-????-????-????????????") for path, text in dead.items()
    }
    assert gpus(FakeHost({VERSION: NVRM, **information(0), **dead})) is None
    assert gpus(FakeHost({VERSION: NVRM, **information(0, model="")})) is None


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", ""),
        ("\n\n", ""),
        ("one\ntwo\n", "two"),
        (
            f"I1130 00:01:21 1 a.go:1] ok\n{KLOG}\nkubelet.service: Main process exited, status=1/FAILURE\n",
            KLOG,
        ),
        ("Error: unknown flag: --network-plugin\nUsage: kubelet\n", "Error: unknown flag: --network-plugin"),
        ("F1130 gone\n", "F1130 gone"),
        ("Exiting\nEND\n", "END"),  # no errors of klog's
        ("x" * 1000, "x" * 400),
    ],
)
def test_the_last_words_of_a_kubelet(log: str, words: str) -> None:
    host = FakeHost(programs={"journalctl": lambda _host, _argv: Answer(0, log)})
    assert last_words(host) == words
    assert "--unit=kubelet.service" in host.asked[0]


def test_a_machine_without_a_journal_has_no_last_words() -> None:
    assert last_words(FakeHost()) == ""
