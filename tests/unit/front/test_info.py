# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""host_info: every fact by itself, so that what cannot be read costs its own fact only."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.state import STATE
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.info import inventory
from tests.unit.fake_host import FakeHost

CHECKOUT = Path(__file__).resolve().parents[3]
KEYS = {
    "kernel",
    "boot_id",
    "cpu",
    "numa",
    "hugepages",
    "iommu",
    "boot_loader",
    "driver",
    "fabric",
    "gpus",
    "holds",
    "runtimes",
    "kubelet",
    "capabilities",
    "applied",
    "reboot_required",
    "reboot_reasons",
    "rebooted_for",
    "unreadable",
}


def machine() -> FakeHost:
    return FakeHost(
        {
            "/proc/sys/kernel/osrelease": "6.12.48+deb13-amd64\n",
            "/proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz-6.12.48+deb13-amd64 root=/dev/vda1 ro\n",
            "/boot/grub/grub.cfg": "menuentry 'Debian' {\n\tlinux /boot/vmlinuz root=/dev/vda1\n}\n",
            "/sys/devices/system/cpu/online": "0-3\n",
            "/sys/devices/system/cpu/isolated": "2-3\n",
        },
        programs={"update-grub": lambda _host, _argv: pytest.fail("a look ran update-grub")},
    )


def facts(host: FakeHost) -> dict[str, Any]:
    return inventory(host, Records(host))


def test_a_host_that_we_never_touched() -> None:
    host = machine()
    assert facts(host) == {
        "kernel": "6.12.48+deb13-amd64",
        "boot_id": "first-boot",
        "cpu": {"count": 4, "isolated": "2-3", "governors": {}},
        "numa": [],
        "hugepages": {},
        "iommu": {"enabled": False, "groups": 0, "names": []},
        "boot_loader": "grub",
        "driver": {"loaded": None, "library": None, "flavour": None},
        "fabric": {},
        "gpus": [],
        "holds": [],
        "runtimes": {},
        "kubelet": {},
        "capabilities": [],
        "applied": [],
        "reboot_required": False,
        "reboot_reasons": {},
        "rebooted_for": {},
        "unreadable": [],
    }
    assert (host.calls, host.asked) == ([], [])


def test_what_we_applied_and_why_it_waits_in_this_boot_only() -> None:
    host = machine()
    records = Records(host)
    records.apply("sysctl", {"vm.swappiness": 10})
    records.apply("cpu", {"isolate": "2-3"})
    records.need_reboot("cpu", "cpu: reboot the node")
    seen = facts(host)
    assert seen["applied"] == ["cpu", "sysctl"]
    assert (seen["reboot_required"], seen["reboot_reasons"]) == (True, {"cpu": "cpu: reboot the node"})
    assert seen["rebooted_for"] == {}
    host.reboot()
    seen = facts(host)
    assert (seen["boot_id"], seen["reboot_required"], seen["reboot_reasons"]) == ("next-boot", False, {})
    assert seen["rebooted_for"] == {"cpu": "cpu: reboot the node"}


def test_what_cannot_be_read_is_null_and_named_and_costs_nothing_else() -> None:
    host = machine()
    host.put(f"{STATE}/applied.json", '{"version": 1, "units": {"sysctl": {}}}')
    host.unreadable |= {f"{STATE}/applied.json", "/boot/grub/grub.cfg"}
    seen = facts(host)
    assert (seen["applied"], seen["boot_loader"]) == (None, None)
    assert seen["unreadable"] == [
        "boot_loader: cannot read /boot/grub/grub.cfg: Permission denied",
        f"applied: cannot read {STATE}/applied.json: Permission denied",
    ]
    assert (seen["cpu"]["count"], seen["reboot_reasons"]) == (4, {})


def test_a_record_that_is_none_is_named() -> None:
    host = machine()
    host.put(f"{STATE}/reboot.json", "not ours")
    seen = facts(host)
    assert (seen["reboot_required"], seen["reboot_reasons"], seen["applied"]) == (None, None, [])
    names = ["reboot_required", "reboot_reasons", "rebooted_for"]
    assert [line.split(":")[0] for line in seen["unreadable"]] == names


@pytest.fixture(params=["as this account", "without root"])
def account(request: pytest.FixtureRequest) -> Iterator[str]:
    """The account that looks; what it imports is imported before."""
    inventory(Host(), Records(Host()))
    root = os.geteuid() == 0
    if root and request.param == "without root":
        os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        yield request.param
    finally:
        if root:
            os.seteuid(0)


def test_the_machine_that_runs_this_test(account: str) -> None:
    seen = inventory(Host(), Records(Host()))
    assert set(seen) == KEYS, account
    assert seen["kernel"] == os.uname().release
    assert seen["cpu"]["count"] == os.sysconf("SC_NPROCESSORS_ONLN")
    named = {line.split(":")[0] for line in seen["unreadable"]}
    of_parts = {name for name in named if {"[", "."} & set(name)}
    assert {key for key, value in seen.items() if value is None} == named - of_parts


@pytest.mark.needs_ansible
def test_the_module_takes_what_the_action_group_gives_and_changes_nothing() -> None:
    options = {"signed_spec": {"body": ""}, "max_disruption": "none", "_ansible_check_mode": True}
    ran = subprocess.run(
        [sys.executable, "-m", "ansible_collections.bettercompute.bcd.plugins.modules.host_info"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": options}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / ".build")},
    )
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert result["changed"] is False
    assert set(result["ansible_facts"]["bcd"]) == KEYS
