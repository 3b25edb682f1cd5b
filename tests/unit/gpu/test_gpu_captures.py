# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated nvidia-smi against recorded sessions of the real one: text and exit status of every command."""

from __future__ import annotations

import copy
import re

import pytest

from tests.captures import Command, session
from tests.gpu.model import Machine

A100 = ("07", "0F", "47", "4E", "87", "90", "B7", "BD")
H100 = ("1A", "1B", "4A", "4B", "8A", "8B", "CA", "CB")
DRIVERS = {"450": "450.248.02", "460": "460.106.00", "470": "470.256.02", "535": "535.261.03", "555": "555.58.02"}
# The recorded library had no memory of these; the simulated one has.
FORGETFUL = re.compile(r" -(?:pl|e|c|pm) ")
# Identifiers and figures that belong to the recorded GPUs; the 535 program was recorded over a library of 550.
MADE_UP = (
    (re.compile(r"MIG-[0-9a-f]{8}-[-0-9a-f]{27}"), "MIG-..."),
    (re.compile(r"\b8192(?=0(?: MiB)?,)|\b8155(?=9(?: MiB)?,)"), "8...."),
    (re.compile(r"NVML library version: \S+"), "NVML library version: ..."),
)


def recorded_a100s(driver: str) -> Machine:
    """The eight A100 of the A100 sessions."""
    machine = Machine.from_products(["A100-40GB"] * 8, driver)
    for number, (card, bus) in enumerate(zip(machine.cards, A100)):
        card.uuid, card.pci = f"GPU-12345678-1234-1234-1234-12345678000{number}", f"00000000:{bus}:00.0"
    return machine


def recorded_h100s() -> Machine:
    """The eight H100 of the 550 sessions."""
    machine = Machine.from_products(["H100-80GB"] * 8, "550.163.01")
    for number, (card, bus) in enumerate(zip(machine.cards, H100)):
        card.uuid, card.pci = f"GPU-01000100-0000-0000-0000-00000000000{number}", f"00000000:{bus}:00.0"
    return machine


def failing(text: str) -> dict[str, int]:
    """FAIL=migact=19,nogpu as the machine takes it."""
    pairs = [word.partition("=") for word in text.split(",") if word]
    return {name: int(code or 1) for name, _equals, code in pairs}


def masked(text: str) -> str:
    for pattern, instead in MADE_UP:
        text = pattern.sub(instead, text)
    return re.sub(r"8\.{4}[09]", "8....", text)


def played(machine: Machine, command: Command) -> tuple[int, str]:
    """Run a recorded command; what it failed on fails here."""
    machine.nvml = failing(command.fail)
    on = copy.deepcopy(machine) if FORGETFUL.search(command.line) else machine
    found = on.smi(command.argv)
    machine.nvml = {}
    return found


def compared(machine: Machine, commands: tuple[Command, ...]) -> list[str]:
    """The commands whose text or exit status differ, in their order."""
    wrong = []
    for command in commands:
        rc, text = played(machine, command)
        if (rc if command.rc is not None else None, masked(text)) != (command.rc, masked(command.text)):
            wrong.append(f"$ {command.fail} {command.line}\n{text}[{rc}], not\n{command.text}[{command.rc}]")
    return wrong


@pytest.mark.parametrize("branch", DRIVERS)
def test_a100_of_every_branch(branch: str) -> None:
    assert "\n".join(compared(recorded_a100s(DRIVERS[branch]), session(f"smi{branch}_a100_session"))) == ""


def test_h100_with_mig_off() -> None:
    assert "\n".join(compared(recorded_h100s(), session("smi550_mig_disabled_states"))) == ""


def test_h100_instances_and_errors() -> None:
    machine = recorded_h100s()
    machine.smi(("nvidia-smi", "-i", "0", "-mig", "1"))
    help_page = "nvidia-smi mig"
    commands = tuple(one for one in session("smi550_mig_instances_and_errors") if one.line != help_page)
    assert len(commands) > 40
    assert "\n".join(compared(machine, commands)) == ""


def test_h100_mode_changes() -> None:
    assert "\n".join(compared(recorded_h100s(), session("smi550_mig_mode_changes"))) == ""


def test_queries_and_setters() -> None:
    # The recorded library could not reset a GPU: the program crashed there.
    commands = tuple(one for one in session("smi550_query_gpu") if one.rc != 139)
    assert len(commands) > 50
    assert "\n".join(compared(recorded_h100s(), commands)) == ""


def test_compute_apps_name_the_parent_gpu() -> None:
    machine = recorded_h100s()
    machine.loaded = machine.library = "470.256.02"
    idle = copy.deepcopy(machine)
    for index, pid, memory in ((0, 4242, 253), (0, 4243, 253), (1, 5151, 1024)):
        machine.occupy(index, pid)
        machine.cards[index].processes[-1].memory_mib = memory
    commands = session("smi470_compute_apps_mig")
    busy = tuple(one for one in commands if one.text)
    assert (len(commands), len(busy)) == (3, 2)
    assert "\n".join(compared(machine, tuple(one._replace(fail="") for one in busy))) == ""
    assert "\n".join(compared(idle, tuple(one for one in commands if not one.text))) == ""


def test_h100_makes_seven_as_the_hardware_did() -> None:
    machine = Machine.from_products(["H100-80GB"], "550.163.01")
    machine.cards[0].pci = session("real_mig_session_h100_80gb")[0].text.split()[-3]
    assert "\n".join(compared(machine, session("real_mig_session_h100_80gb"))) == ""


def test_a30_numbers_its_instances_as_the_hardware_did() -> None:
    machine = Machine.from_products(["A30-24GB"], "535.183.01")
    machine.smi(("-i", "0", "-mig", "1"))
    commands = session("real_mig_session_a30_535")
    offers, listing = commands[:4], commands[4]
    assert "\n".join(compared(machine, offers)) == ""
    for profile in ("14", "5"):  # the two commands that the recording leaves out
        machine.smi(("mig", "-cgi", profile, "-C"))
    assert "\n".join(compared(machine, (listing,))) == ""


def test_rtx_pro_6000_has_twelve_units_and_wide_tables() -> None:
    machine = Machine.from_products(["RTX-PRO-6000-Blackwell"], "580.95.05")
    machine.smi(("-i", "0", "-mig", "1"))
    commands = session("real_mig_session_rtxpro6000")
    assert "\n".join(compared(machine, commands[:4])) == ""


def test_a_mode_change_without_persistence_warns() -> None:
    machine = Machine.from_products(["RTX-PRO-6000-Blackwell"], "580.95.05")
    last = session("real_mig_session_rtxpro6000")[-1]
    machine.cards[0].pci = last.text.split()[5]
    machine.cards[0].persistence = False
    machine.smi(("-i", "0", "-mig", "1"))
    assert "\n".join(compared(machine, (last,))) == ""


def test_resets_that_work_and_that_do_not() -> None:
    done, busy, _link, passed = session("real_gpu_reset")
    machine = Machine.from_products(["A100-40GB"] * 2)
    machine.cards[0].pci = done.text.split()[1]
    assert "\n".join(compared(machine, (done,))) == ""
    for index, line in enumerate(busy.text.splitlines()[1:3]):
        machine.cards[index].pci = line.split()[1].rstrip(":")
        machine.occupy(index)
    assert "\n".join(compared(machine, (busy,))) == ""
    virtual = Machine.from_products(["A100-40GB"] * 2, passthrough=True)
    virtual.cards[1].pci = passed.text.split()[2]
    assert "\n".join(compared(virtual, (passed,))) == ""


def test_a_mode_that_waits_for_a_reboot() -> None:
    busy, virtual, reset = session("real_mig_mode_pending")
    machine = Machine.from_products(["A100-40GB"])
    machine.cards[0].pci = busy.text.split("\n")[1].split()[0]
    machine.clients = ["nv-hostengine"]
    assert "\n".join(compared(machine, (busy,))) == ""
    machine = Machine.from_products(["A100-40GB"], passthrough=True)
    machine.cards[0].pci = reset.text.split()[2]
    assert "\n".join(compared(machine, (virtual, reset))) == ""
    assert (machine.cards[0].mig, machine.cards[0].mig_pending) == (False, True)
    machine.reboot()
    assert machine.cards[0].mig
