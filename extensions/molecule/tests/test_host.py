# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hosts of a scenario show after the pass that repaired them, by testinfra: nothing asks the collection."""

from __future__ import annotations

import json
from typing import Any

testinfra_hosts = ["ansible://all?force_ansible=True"]

POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
LOAD, SYSCTL = "/etc/modules-load.d/bcd.conf", "/etc/sysctl.d/90-bcd.conf"
SERVICE = "/etc/systemd/system/bcd-hugepages.service"
LIVE = (POOL, "/proc/sys/vm/swappiness", "/proc/sys/net/bridge/bridge-nf-call-iptables")
# One look for all: each command of testinfra is a run of ansible here.
LOOK = """
import json, os, sys
print(json.dumps({path: os.path.isdir(path) or open(path).read() for path in sys.argv[1:]}))
"""


def test_what_was_asked_is_there_now_and_at_every_boot(host: Any) -> None:
    python = host.backend.ansible_runner.get_variables(host.backend.host)["ansible_python_interpreter"]
    modules = ("/sys/module/tun", "/sys/module/br_netfilter")
    paths = (*modules, LOAD, SYSCTL, SERVICE, *LIVE)
    seen = json.loads(host.check_output("%s -c %s " + " ".join(paths), python, LOOK))
    assert [seen[path] for path in modules] == [True, True]
    assert [int(seen[path]) for path in LIVE] == [16, 10, 0]
    files = {path: seen[path].splitlines() for path in (LOAD, SYSCTL, SERVICE)}
    for header, *_lines in files.values():
        assert header.startswith("#")
        assert "local edits are replaced" in header
    assert files[LOAD][1:] == ["br_netfilter", "tun"]
    assert files[SYSCTL][1:] == ["net.bridge.bridge-nf-call-iptables = 0", "vm.swappiness = 10"]
    assert any(f"echo 16 >{POOL}" in line for line in files[SERVICE])
