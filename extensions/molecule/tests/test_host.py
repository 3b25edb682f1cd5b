# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hosts of a scenario show after the pass that repaired them, by testinfra: nothing asks the collection."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://all?force_ansible=True"]

POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"


def lines(host: Any, path: str) -> list[str]:
    """A file of ours without its header, which has to be there."""
    header, *rest = host.file(path).content_string.splitlines()
    assert header.startswith("#")
    assert "local edits are replaced" in header
    return list(rest)


def test_the_modules_are_loaded_now_and_at_every_boot(host: Any) -> None:
    assert lines(host, "/etc/modules-load.d/bcd.conf") == ["br_netfilter", "tun"]
    assert host.file("/sys/module/tun").is_directory
    assert host.file("/sys/module/br_netfilter").is_directory


def test_the_parameters_are_set_now_and_at_every_boot(host: Any) -> None:
    assert lines(host, "/etc/sysctl.d/90-bcd.conf") == [
        "net.bridge.bridge-nf-call-iptables = 0",
        "vm.swappiness = 10",
    ]
    assert host.file("/proc/sys/vm/swappiness").content_string.strip() == "10"
    assert host.file("/proc/sys/net/bridge/bridge-nf-call-iptables").content_string.strip() == "0"


def test_the_pages_are_there_now_and_at_every_boot(host: Any) -> None:
    assert host.file(POOL).content_string.strip() == "16"
    assert f"echo 16 >{POOL}" in host.file("/etc/systemd/system/bcd-hugepages.service").content_string
