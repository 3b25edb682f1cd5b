# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that is enrolled, converged by an account without any sudo, and kept while no controller is there.

One story on one machine, in the order of its tests. The helper runs in its sandbox: what it does there, a driver's
packages with their scripts, depmod, the initramfs and GRUB among it, is what the sandbox must let through. No key is
kept: the control plane is made for the story.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import time
from typing import Any

import gpu_host
import pytest
import sandbox
from gpu_host import BRANCH, NEWEST, OPEN
from labvm.machine import Machine
from play import Pass, Stage
from sandbox import BRIDGE, IOMMU, ISOLATION
from seen import STATE, Eyes, fingerprint

from tests.pki import ControlPlane

NODE = "node-7"
SOCKET = "/run/bcd/helper.sock"
SERVICE = "bcd-helper.service"
# Of what systemd finds: a service without any setting has 9.6. What is left open is what passes do (see the role).
EXPOSURE = 7.0
PERIOD = 15  # seconds between the agent's passes here
# What the agent's timer has in the story: a short period and no chance. The first line empties the whole list.
TIMER = f"""[Timer]
OnBootSec=
OnBootSec=5s
OnUnitInactiveSec={PERIOD}s
RandomizedDelaySec=0
AccuracySec=1s
"""
ASK = f"""
import socket
try:
    socket.socket(socket.AF_UNIX).connect("{SOCKET}")
except PermissionError:
    print("refused")
"""


class Story:
    """What the tests of this module hand on: root's side, the account's, and who signs."""

    def __init__(self, stage: Stage) -> None:
        self.root = stage
        self.bcd = stage._replace(account="bcd")
        self.plane = ControlPlane()
        self.kvm = sandbox.kvm_module(stage.machine)
        self.vendor = sandbox.vendor(stage.machine)
        self.section: dict[str, Any] = {**sandbox.section(stage.machine), **gpu_host.SECTION}

    @property
    def machine(self) -> Machine:
        return self.root.machine

    def signed(self, section: dict[str, Any], generation: int = 1) -> dict[str, Any]:
        bundle = self.plane.trust_bundle(1, [self.plane.root])
        return self.plane.desired_state(NODE, generation, section, bundle=bundle)

    def enroll(self, **more: Any) -> Pass:
        plane = self.plane
        key = next(self.machine.ssh_config.parent.joinpath(path) for path in identities(self.machine) if "oper" in path)
        public = subprocess.run(("ssh-keygen", "-y", "-f", key), check=True, capture_output=True, text=True).stdout
        return self.root.play(
            "enroll",
            None,
            bcd_config_command_roots=[plane.root.digest],
            bcd_config_join_pin=plane.join.pin,
            bcd_config_join_record=plane.join_response(NODE, 1, [plane.root]),
            bcd_config_authorized_keys=[public.strip()],
            **more,
        )


def identities(machine: Machine) -> list[str]:
    return re.findall(r"IdentityFile (.+)", machine.ssh_config.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def story(lab_story: Machine, tmp_path_factory: pytest.TempPathFactory) -> Story:
    gpu_host.plug(lab_story)
    gpu_host.offer(lab_story)
    gpu_host.shut_nouveau_out(lab_story)
    return Story(Stage(lab_story, tmp_path_factory.mktemp("trust")))


@pytest.fixture
def eyes(story: Story) -> Eyes:
    return Eyes(story.machine)


def wait_for(what: str, seconds: float, machine: Machine, command: str) -> None:
    """Until the shell command succeeds on the machine, where nothing of ours but the agent runs."""
    until = time.monotonic() + seconds
    while machine.ssh(command, check=False).rc != 0:
        assert time.monotonic() < until, (
            f"{what}\n{machine.ssh('journalctl -u bcd-agent.service -n 30', check=False).out}"
        )
        time.sleep(1)


def test_a_host_is_enrolled(story: Story, eyes: Eyes) -> None:
    done = story.enroll()
    assert done.rc == 0, done.said
    plane = story.plane
    header, *pins = eyes.text("/etc/bcd/config.toml").splitlines()
    assert "root's own values stay" in header
    assert pins == [
        f'command_root_sha256 = "{plane.root.digest}"',
        f'join_signing_key_pin = "{plane.join.pin}"',
    ]
    owners = eyes.host.check_output(
        "stat -c '%%n %%a %%U:%%G' /etc/bcd /etc/bcd/config.toml /run/bcd %s %s /usr/local/sbin/bcd", SOCKET, STATE
    )
    assert owners.splitlines() == [
        "/etc/bcd 750 root:bcd",
        "/etc/bcd/config.toml 640 root:bcd",
        "/run/bcd 755 root:root",
        f"{SOCKET} 660 root:bcd",
        f"{STATE} 755 root:root",
        "/usr/local/sbin/bcd 755 root:root",
    ]
    record = json.loads(story.machine.read(f"{STATE}/join-record.json"))
    assert record == plane.join_response(NODE, 1, [plane.root])
    assert eyes.host.file(f"{STATE}/join-record.json").mode == 0o600
    for unit in ("bcd-helper.socket", "bcd-agent.timer"):
        assert eyes.host.check_output("systemctl is-enabled %s && systemctl is-active %s", unit, unit).split() == [
            "enabled",
            "active",
        ]
    assert eyes.host.check_output("id -nG bcd") == "bcd"
    assert eyes.host.run("runuser -u bcd -- sudo -n true").rc != 0


def test_systemd_finds_the_helper_no_more_exposed_than_its_work_is(eyes: Eyes) -> None:
    told = eyes.host.check_output("systemd-analyze security --no-pager %s", SERVICE)
    print(told)
    level = re.search(r"Overall exposure level for bcd-helper.service: ([0-9.]+)", told)
    assert level, told
    assert float(level[1]) < EXPOSURE
    assert "ignoring" not in eyes.host.run(f"journalctl -b -o cat -u {SERVICE} -u bcd-helper.socket").stdout


def test_what_is_not_signed_changes_nothing(story: Story) -> None:
    before = fingerprint(story.machine)
    unsigned = story.bcd.converge({"sysctl": {"vm.swappiness": 7}})
    assert unsigned.rc != 0
    assert "demands a signed spec, and none is given" in unsigned.message
    spec = story.signed({"sysctl": {"vm.swappiness": 7}})
    body = base64.b64decode(spec["body"]).replace(b'"vm.swappiness\\":7', b'"vm.swappiness\\":9')
    tampered = {**spec, "body": base64.b64encode(body).decode()}
    assert tampered != spec
    edited = story.bcd.converge(None, bcd_converge_signed_spec=tampered)
    assert edited.rc != 0
    assert "signature" in edited.message
    assert fingerprint(story.machine).changed_since(before) == []
    assert story.machine.ssh(f"test -e {STATE}/helper-intent.json", check=False).rc != 0


def test_a_peer_outside_the_group_is_refused(story: Story) -> None:
    asked = story.machine.run(("runuser", "-u", "nobody", "--", "python3", "-I", "-c", ASK))
    assert asked.out.strip() == "refused"


def test_an_account_without_root_converges_what_is_signed(story: Story, eyes: Eyes) -> None:
    done = story.bcd.converge(None, bcd_converge_signed_spec=story.signed(story.section))
    assert done.rc == 0, done.said
    assert done.recap["changed"] == 1
    assert list(done.units) == list(story.section)
    assert {name for name in done.units if done.waits(name)} <= {"cpu", "hugepages", "iommu"}
    sandbox.modules_are_as_asked(eyes, story.kvm)
    sandbox.parameters_are_as_asked(eyes)
    sandbox.small_pages_and_mount_are_as_asked(eyes)
    sandbox.next_boot_has(eyes, "cpu", ISOLATION)
    sandbox.next_boot_has(eyes, "iommu", IOMMU[story.vendor])
    # apt's maintainer scripts, depmod, modprobe and the initramfs, from within the sandbox.
    gpu_host.is_loaded(eyes, NEWEST[BRANCH], OPEN)
    assert "etc/modprobe.d/bcd-nouveau.conf" in eyes.host.check_output("lsinitramfs /boot/initrd.img-$(uname -r)")
    assert "host.section for uid" in eyes.host.check_output(f"journalctl -b -o cat -u {SERVICE}")


def test_the_agent_repairs_drift_with_no_controller_there(story: Story, eyes: Eyes) -> None:
    machine = story.machine
    machine.ssh(
        "mkdir -p /etc/systemd/system/bcd-agent.timer.d && cat >/etc/systemd/system/bcd-agent.timer.d/lab.conf && "
        "systemctl daemon-reload && systemctl restart bcd-agent.timer",
        stdin=TIMER,
    )
    machine.ssh(f"sysctl -qw {BRIDGE[0]}=1 && rm /etc/modules-load.d/bcd.conf && modprobe -r vhost_net")
    wait_for(
        "the drift stays", 4 * PERIOD + 60, machine, f"test $(sysctl -n {BRIDGE[0]}) = 0 && lsmod | grep -q ^vhost_net"
    )
    sandbox.modules_are_as_asked(eyes, story.kvm)
    sandbox.parameters_are_as_asked(eyes)


def test_and_after_a_boot(story: Story, eyes: Eyes) -> None:
    machine = story.machine
    machine.ssh("systemctl stop bcd-agent.timer && echo 'vm.swappiness = 1' >/etc/sysctl.d/90-bcd.conf")
    machine.reboot()
    wait_for("the drift stays after the boot", 120, machine, f"grep -q '^{BRIDGE[0]} = 0' /etc/sysctl.d/90-bcd.conf")
    sandbox.modules_are_as_asked(eyes, story.kvm)
    sandbox.parameters_are_as_asked(eyes)
    sandbox.pages_are_as_asked(eyes)
    assert sandbox.in_order(ISOLATION, eyes.command_line())
    assert sandbox.in_order(IOMMU[story.vendor], eyes.command_line())
    gpu_host.is_loaded(eyes, NEWEST[BRANCH], OPEN)


def test_the_next_run_is_told_of_it_and_finds_nothing_left(story: Story) -> None:
    done = story.bcd.converge(None, bcd_converge_signed_spec=story.signed(story.section))
    assert (done.rc, done.state, done.recap["changed"]) == (0, "CONVERGED", 0), done.said
    repaired = " ".join(str(repair["action"]) for repair in done.whole["agent"]["repairs"])
    assert BRIDGE[0] in repaired
    assert "/etc/sysctl.d/90-bcd.conf" in repaired


def test_an_older_spec_and_another_node_s_are_refused_by_the_real_helper(story: Story) -> None:
    older = story.bcd.converge(None, bcd_converge_signed_spec=story.signed({}, generation=0))
    assert older.rc != 0
    assert "has generation 0, and this host has accepted 1" in older.message
    other = story.plane.desired_state("node-8", 9, {}, bundle=story.plane.trust_bundle(1, [story.plane.root]))
    refused = story.bcd.converge(None, bcd_converge_signed_spec=other)
    assert refused.rc != 0
    assert f"is for the node node-8, and this host is {NODE}" in refused.message


def test_the_doctor_finds_the_host_well(story: Story) -> None:
    told = story.bcd.play("doctor", None)
    assert told.rc == 0, told.said
