# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the loaded driver shows of its GPUs."""

from __future__ import annotations

from ansible_collections.bettercompute.bcd.plugins.module_utils.look.nvidia_proc import Taken, taken
from tests.unit.fake_host import FakeHost

UUID = "GPU-5f1c2a90-0000-4000-8000-000000000001"


def test_gpus_by_their_addresses() -> None:
    """One that the driver could not start has no UUID, and an older driver says no minor."""
    host = FakeHost(
        {
            "/proc/driver/nvidia/gpus/0001:01:00.0/information": "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 18\n",
            "/proc/driver/nvidia/gpus/0000:17:00.0/information": (
                "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 42\nGPU UUID: \t " + UUID + "\nBus Type: \t PCIe\n"
                "Bus Location: \t 0000:17:00.0\nDevice Minor: \t 2\nGPU Excluded:\t No\n"
            ),
            "/proc/driver/nvidia/gpus/0000:ca:00.0/information": (
                "Model: \t\t Unknown\nGPU UUID: \t GPU-????????-????-????-????-????????????\nDevice Minor: \t 255\n"
            ),
            "/proc/driver/nvidia/gpus/0000:cb:00.0/information": "Model: \t\t\nDevice Minor: \n",
        }
    )
    assert taken(host) == (
        Taken("00000000:17:00.0", UUID, "NVIDIA H100 80GB HBM3", 2),
        Taken("00000000:CA:00.0", "", "Unknown", 255),
        Taken("00000000:CB:00.0", "", "", None),
        Taken("00000001:01:00.0", "", "NVIDIA H100 80GB HBM3", None),
    )


def test_without_a_driver_there_are_none() -> None:
    assert taken(FakeHost()) == ()
