# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""container-toolkit: every NVIDIA device node has its link in /dev/char, now and after a boot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.container_toolkit import UNIT
from tests.gpu.fake import ln
from tests.gpu.model import Fault, Machine
from tests.unit.container_host import ContainerHost
from tests.unit.fake_host import FakeHost
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet

RULE = "/etc/udev/rules.d/72-bcd-nvidia-dev-char.rules"
CREATE = "nvidia-ctk system create-dev-char-symlinks --create-all"
LINK = "link NVIDIA's device nodes in /dev/char, so that a daemon-reload leaves containers their GPUs"
CAPS = "/dev/nvidia-caps/nvidia-cap"
# The numbers that the kernel gives these nodes on this host, by its /proc/devices.
NODES = {
    "195:0": "/dev/nvidia0",
    "195:1": "/dev/nvidia1",
    "195:254": "/dev/nvidia-modeset",
    "195:255": "/dev/nvidiactl",
    "510:0": "/dev/nvidia-uvm",
    "510:1": "/dev/nvidia-uvm-tools",
}


def fresh() -> ContainerHost:
    machine = Machine.from_products(["H100-80GB", "H100-80GB"])
    machine.modeset = True
    return ContainerHost(machine)


def linked() -> ContainerHost:
    host = fresh()
    assert go(UNIT, host, {}).state == "converged"
    return host


def links(host: ContainerHost) -> dict[str, str]:
    """What /dev/char has of nodes that are there."""
    here = {path[len("/dev/char/") :]: target for path, target in host.links.items() if path.startswith("/dev/char/")}
    return {number: target for number, target in here.items() if target in host.files}


def by_hand(host: ContainerHost) -> list[str]:
    return [call for call in host.calls if call.startswith("ln ")]


def test_every_node_is_linked_by_its_number_in_one_call() -> None:
    host = linked()
    assert links(host) == NODES
    assert [call for call in host.calls if "char" in call and not call.startswith("write")] == [CREATE]
    second_pass_is_quiet(UNIT, host, {})


def test_check_mode_is_truthful() -> None:
    assert LINK in lines(check_is_truthful(UNIT, fresh, {}))


def test_a_kill_anywhere_loses_nothing() -> None:
    def shown(host: FakeHost) -> object:
        assert isinstance(host, ContainerHost)
        return links(host), host.text(RULE)

    a_kill_loses_nothing(UNIT, fresh, {}, shown)


def test_without_cdi_they_are_linked_too() -> None:
    host = fresh()
    assert go(UNIT, host, {"cdi": False}).state == "converged"
    assert links(host) == NODES


def test_without_a_driver_there_is_the_rule_alone() -> None:
    host = ContainerHost(Machine([]))
    go(UNIT, host, {"cdi": False})
    assert host.text(RULE) is not None
    assert CREATE not in host.calls


# -- after a boot


def test_after_a_boot_udev_has_linked_them() -> None:
    host = linked()
    host.boot()
    assert links(host) == NODES
    second_pass_is_quiet(UNIT, host, {})


def test_after_a_boot_without_the_rule_they_are_linked_again() -> None:
    host = linked()
    del host.files[RULE]
    host.boot()
    assert links(host) == {}
    assert lines(go(UNIT, host, {}))[:2] == [f"write {RULE}", LINK]
    assert links(host) == NODES


def test_the_rule_runs_nvidia_ctk_once_the_driver_and_once_its_memory_module_is_there() -> None:
    rules = [line for line in (linked().text(RULE) or "").splitlines() if not line.startswith("#")]
    run = f'RUN+="/usr/bin/{CREATE}"'
    assert rules == [
        f'ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia", {run}',
        f'ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia_uvm", {run}',
    ]


def test_removal_leaves_the_rule_and_says_so() -> None:
    host = linked()
    gone = go(UNIT, host, None)
    assert host.text(RULE) is not None
    assert any(RULE in note for note in gone.notes)


# -- where nvidia-ctk makes none


def too_old(host: ContainerHost) -> None:
    """nvidia-ctk before 1.12 has no such command."""
    good = host.programs["nvidia-ctk"]

    def program(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        return Answer(3, "", "No help topic for 'create-dev-char-symlinks'\n") if "system" in argv else good(host, argv)

    host.programs["nvidia-ctk"] = program


def without_unified_memory(host: ContainerHost) -> None:
    """nvidia-ctk makes no link at all while nvidia_uvm is not loaded."""
    host.machine.uvm = False


def lying(host: ContainerHost) -> None:
    host.machine.faults = [Fault("create-dev-char-symlinks", "lie", times=9)]


def failing(host: ContainerHost) -> None:
    host.machine.faults = [Fault("create-dev-char-symlinks", "say", 1, "something new", times=9)]


@pytest.mark.parametrize("fault", [too_old, without_unified_memory, lying, failing])
def test_where_nvidia_ctk_links_nothing_it_is_done_by_hand(fault: Callable[[ContainerHost], None]) -> None:
    host = fresh()
    fault(host)
    done = go(UNIT, host, {})
    expected = {number: path for number, path in NODES.items() if "uvm" not in path or host.machine.uvm}
    assert (done.state, done.failure, links(host)) == ("converged", None, expected)
    assert len(by_hand(host)) == len(expected)
    second_pass_is_quiet(UNIT, host, {})


def test_a_link_that_leads_elsewhere_is_put_right() -> None:
    host = linked()
    host.links["/dev/char/510:0"] = "/dev/nvidia0"  # of a number that was another's before
    assert lines(go(UNIT, host, {})) == ["link /dev/nvidia-uvm as /dev/char/510:0"]
    assert links(host) == NODES
    del host.links["/dev/char/195:0"]
    host.files["/dev/char/195:0"] = File("", regular=False)
    go(UNIT, host, {})
    assert by_hand(host)[-1] == "ln -sfn /dev/nvidia0 /dev/char/195:0"


def test_links_as_udev_makes_them_are_right() -> None:
    host = linked()
    host.links.update({f"/dev/char/{number}": f"..{path[4:]}" for number, path in NODES.items()})
    second_pass_is_quiet(UNIT, host, {})


def test_what_cannot_be_linked_fails_alone() -> None:
    host = fresh()
    too_old(host)
    host.programs["ln"] = lambda host, argv: (
        Answer(1, "", "ln: Read-only file system") if argv[2].endswith("uvm") else ln(host, argv)
    )
    failed = go(UNIT, host, {})
    assert failed.failure is not None
    assert "cannot link /dev/nvidia-uvm as /dev/char/510:0" in failed.failure.message
    assert links(host) == {number: path for number, path in NODES.items() if path != "/dev/nvidia-uvm"}


# -- nodes of MIG devices and of racks


def test_mig_devices_that_come_later_have_their_links_already() -> None:
    host = linked()
    host.machine.smi(("nvidia-smi", "-i", "1", "-mig", "1"))
    host.machine.smi(("nvidia-smi", "mig", "-i", "1", "-cgi", "3g.40gb,1g.10gb", "-C"))
    done = go(UNIT, host, {})
    assert not [line for line in lines(done) if line.startswith("link")]
    found = links(host)
    caps = {f"511:{node[len(CAPS) :]}": node for node in host.files if node.startswith(CAPS)}
    assert len(caps) == 4
    assert found == {**NODES, **caps}


def test_what_nvidia_ctk_does_not_know_is_linked_by_hand() -> None:
    host = linked()
    channel = "/dev/nvidia-caps-imex-channels/channel0"
    majors = host.text("/proc/devices") or ""
    host.put("/proc/devices", majors.replace("\n\nBlock", "\n234 nvidia-caps-imex-channels\n\nBlock"))
    host.put(channel, "")
    assert f"link {channel} as /dev/char/234:0" in lines(go(UNIT, host, {}))
    assert links(host)["234:0"] == channel
    assert CREATE not in host.calls[host.calls.index(CREATE) + 1 :]
