# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flavours and branches of the driver by the GPUs on the bus."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.pci import gpus
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_chips import RANGES, PciGpu, generation
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_driver_flavour import flavour_for, served
from tests.unit.fake_host import FakeHost

# Products by the device ids that the PCI id database lists for them.
PRODUCTS = {
    0x102D: "Kepler or older",  # Tesla K80
    0x0FC1: "Kepler or older",  # GeForce GT 640
    0x1380: "Maxwell",  # GeForce GTX 750 Ti
    0x13C2: "Maxwell",  # GeForce GTX 970
    0x13F2: "Maxwell",  # Tesla M60
    0x1430: "Maxwell",  # Quadro M2000
    0x1617: "Maxwell",  # GeForce GTX 980M
    0x17FD: "Maxwell",  # Tesla M40
    0x15F8: "Pascal",  # Tesla P100 PCIe
    0x1B38: "Pascal",  # Tesla P40
    0x1B80: "Pascal",  # GeForce GTX 1080
    0x1C03: "Pascal",  # GeForce GTX 1060
    0x1D01: "Pascal",  # GeForce GT 1030
    0x1DB1: "Volta",  # Tesla V100 SXM2
    0x1DF6: "Volta",  # Tesla V100S
    0x1EB8: "Turing",  # Tesla T4
    0x1E30: "Turing",  # Quadro RTX 6000
    0x1F82: "Turing",  # GeForce GTX 1650
    0x2182: "Turing",  # GeForce GTX 1660 Ti
    0x20B0: "Ampere",  # A100 SXM4 40GB
    0x20B2: "Ampere",  # A100 SXM4 80GB
    0x20B7: "Ampere",  # A30
    0x2235: "Ampere",  # A40
    0x2236: "Ampere",  # A10
    0x25B6: "Ampere",  # A16 and A2
    0x2484: "Ampere",  # GeForce RTX 3070
    0x2321: "Hopper",  # H100 NVL
    0x2330: "Hopper",  # H100 SXM5 80GB
    0x2331: "Hopper",  # H100 PCIe
    0x2335: "Hopper",  # H200 SXM
    0x2342: "Grace Hopper",  # GH200 120GB
    0x2684: "Ada",  # GeForce RTX 4090
    0x26B9: "Ada",  # L40S
    0x27B8: "Ada",  # L4
    0x28A0: "Ada",  # GeForce RTX 4060 mobile
    0x2901: "Blackwell",  # B200
    0x2941: "Blackwell",  # GB200
    0x2B85: "Blackwell",  # GeForce RTX 5090
    0x2BB5: "Blackwell",  # RTX PRO 6000 Server Edition
    0x2C02: "Blackwell",  # GeForce RTX 5080
    0x2D04: "Blackwell",  # GeForce RTX 5060 Ti
    0x2F04: "Blackwell",  # GeForce RTX 5070
    0x3182: "Blackwell",  # B300 SXM6
    0x5555: "unknown",
}
K80, GT1030, V100, T4, A100, H100 = 0x102D, 0x1D01, 0x1DB1, 0x1EB8, 0x20B0, 0x2330
GH200, L40S, B200, STRANGE = 0x2342, 0x26B9, 0x2901, 0x5555


def on(*devices: int) -> tuple[PciGpu, ...]:
    return tuple(PciGpu(f"0000:{at:02x}:00.0", device) for at, device in enumerate(devices, 1))


@pytest.mark.parametrize(("device", "name"), PRODUCTS.items())
def test_a_product_is_of_its_generation(device: int, name: str) -> None:
    assert generation(device).name == name


def test_the_ranges_are_in_order_and_share_nothing() -> None:
    assert all(first <= last for first, last, _kind in RANGES)
    assert all(before[1] < after[0] for before, after in zip(RANGES, RANGES[1:]))


@pytest.mark.parametrize(
    ("devices", "branch", "flavour"),
    [
        ((B200,), 580, "open"),
        ((B200, H100), 580, "open"),
        ((GH200,), 550, "open"),
        ((GH200,), 580, "open"),
        ((V100,), 580, "proprietary"),
        ((GT1030,), 560, "proprietary"),
        ((GT1030, A100), 580, "proprietary"),
        ((H100,), 580, "open"),
        ((A100, T4, L40S), 560, "open"),
        ((H100,), 550, "proprietary"),
        ((H100, L40S), 520, "proprietary"),
        ((A100,), 450, "proprietary"),
        ((T4,), 410, "proprietary"),
        ((V100,), 384, "proprietary"),
        ((T4,), 535, "proprietary"),
        ((K80,), 470, "proprietary"),
        ((STRANGE,), 580, "open"),
    ],
)
def test_what_the_gpus_need_is_the_default(devices: tuple[int, ...], branch: int, flavour: str) -> None:
    assert flavour_for(branch, None, on(*devices)).name == flavour


@pytest.mark.parametrize(
    ("devices", "branch", "asked", "said"),
    [
        ((B200,), 580, False, r"0000:01:00.0 \(Blackwell, device 2901\) runs with the open kernel modules only"),
        ((GH200,), 580, False, "Grace Hopper"),
        ((GT1030,), 580, True, r"0000:01:00.0 \(Pascal, device 1d01\) runs with the proprietary kernel modules only"),
        ((A100, V100), 580, True, r"0000:02:00.0 \(Volta"),
        ((B200, V100), 580, None, "a host loads one flavour"),
        ((B200, V100), 580, True, "a host loads one flavour"),
        ((V100,), 590, None, "up to branch 580, and branch is 590"),
        ((GT1030,), 590, False, "up to branch 580, and branch is 590"),
        ((K80,), 535, None, "up to branch 470"),
        ((B200,), 550, None, "from branch 570 on, and branch is 550"),
        ((H100,), 470, None, r"0000:01:00.0 \(Hopper, device 2330\) is served from branch 520 on, and branch is 470"),
        ((GH200,), 515, None, "Grace Hopper.*from branch 520 on, and branch is 515"),
        ((A100, L40S), 515, False, r"0000:02:00.0 \(Ada.*from branch 520 on, and branch is 515: set branch to 520"),
        ((A100,), 440, None, "from branch 450 on, and branch is 440"),
        ((T4,), 396, None, "from branch 410 on, and branch is 396"),
        ((V100,), 375, None, "from branch 384 on, and branch is 375"),
        ((GT1030,), 361, None, "from branch 367 on, and branch is 361"),
        ((A100,), 510, True, "has no open kernel modules, which begin with branch 515: set branch to 515 or "),
    ],
)
def test_what_the_hardware_cannot_run_is_refused(
    devices: tuple[int, ...], branch: int, asked: bool | None, said: str
) -> None:
    with pytest.raises(Refused, match=said):
        flavour_for(branch, asked, on(*devices))


@pytest.mark.parametrize(
    ("devices", "version", "asked", "said"),
    [
        ((H100,), "470.256.02", None, "from branch 520 on, and version is 470.256.02: give a version of branch 520"),
        ((V100,), "590.48.01", None, "up to branch 580, and version is 590.48.01: give a version of branch 580 or an"),
        ((A100,), "510.108.03", True, "version 510.108.03 has no open kernel modules, which begin with branch 515"),
    ],
)
def test_a_version_that_was_given_is_named_and_no_branch(
    devices: tuple[int, ...], version: str, asked: bool | None, said: str
) -> None:
    with pytest.raises(Refused, match=said) as refused:
        flavour_for(int(version[:3]), asked, on(*devices), version)
    assert "set branch" not in refused.value.message


@pytest.mark.parametrize("asked", [True, False])
def test_where_both_run_the_one_asked_for_is_taken(asked: bool) -> None:
    assert flavour_for(580, asked, on(H100, L40S)).name == ("open" if asked else "proprietary")


def test_a_gpu_that_is_not_known_is_named() -> None:
    assert flavour_for(580, None, on(H100)).notes == ()
    (note,) = flavour_for(580, None, on(H100, STRANGE)).notes
    assert "0000:02:00.0 (device 5555)" in note
    assert "open kernel modules" in note


def device(vendor: str, kind: str, number: str) -> dict[str, str]:
    return {"vendor": vendor + "\n", "class": kind + "\n", "device": number + "\n"}


def test_gpus_are_found_on_the_bus_without_a_driver() -> None:
    found = {
        "0000:17:00.0": device("0x10de", "0x030200", "0x2330"),
        "0000:17:00.1": device("0x10de", "0x040300", "0x22bc"),  # the sound of a GPU
        "0000:05:00.0": device("0x10de", "0x068000", "0x22a3"),  # an NVSwitch
        "0000:0b:00.0": device("0x1a03", "0x030000", "0x2000"),  # the board's own VGA
        "0001:3b:00.0": device("0x10de", "0x030000", "0x1eb8"),
    }
    host = FakeHost(
        {f"/sys/bus/pci/devices/{at}/{name}": text for at, files in found.items() for name, text in files.items()}
    )
    assert gpus(host) == (PciGpu("0000:17:00.0", 0x2330), PciGpu("0001:3b:00.0", 0x1EB8))
    assert gpus(FakeHost({})) == ()


@pytest.mark.parametrize("text", ["", "yes\n", "2330\n", "0x\n", "\udcff"])
def test_a_device_id_that_is_none_is_a_fault_and_no_old_gpu(text: str) -> None:
    at = "/sys/bus/pci/devices/0000:17:00.0"
    host = FakeHost({f"{at}/vendor": "0x10de\n", f"{at}/class": "0x030200\n", f"{at}/device": text})
    with pytest.raises(StepFailed, match=f"{at}/device reads .*, which is no device id"):
        gpus(host)


def test_a_gpu_that_goes_while_it_is_looked_at_is_none() -> None:
    at = "/sys/bus/pci/devices/0000:17:00.0"
    assert gpus(FakeHost({f"{at}/vendor": "0x10de\n", f"{at}/class": "0x030200\n"})) == ()


def test_a_gpu_of_a_virtual_machine_has_no_say() -> None:
    mine, theirs = PciGpu("0000:17:00.0", H100, "nvidia"), PciGpu("0000:3b:00.0", V100, "vfio-pci")
    assert served((mine, theirs)) == (mine,)
