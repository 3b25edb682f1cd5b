# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vendor's specifications as holds take edits from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.cdi import broken, vendor_specs
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.vendors import vendors
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Vendor
from tests.unit.core.jail import in_jail
from tests.unit.fake_host import FakeHost

OF_A = {"name": "GPU-a", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}}
COMMON = {
    "deviceNodes": [{"path": "/dev/shown", "hostPath": "/dev/nvidiactl"}],
    "mounts": [{"hostPath": "/lib/libcuda.so.1", "containerPath": "/lib/other.so"}],
    "hooks": [{"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook"}],
}
YAML = """---
cdiVersion: 0.5.0
containerEdits: {}
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: GPU-a
kind: nvidia.com/gpu
"""


def spec(*devices: Any, **rest: Any) -> dict[str, Any]:
    return {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": list(devices), **rest}


def seen(files: dict[str, str]) -> tuple[Vendor, ...]:
    return vendors(FakeHost(files, links={"/var/run": "/run"}))


def test_the_file_of_this_boot_outranks_and_what_is_gone_is_told_of_each() -> None:
    given = spec(OF_A, containerEdits=COMMON)
    found = seen(
        {
            "/run/cdi/nvidia.yaml": YAML,
            "/etc/cdi/nvidia.json": json.dumps(given),
            "/etc/cdi/bcd-alloc_1.json": json.dumps(given),
            "/dev/nvidiactl": "",
            "/usr/bin/nvidia-cdi-hook": "",
        }
    )
    assert [each.path for each in found] == ["/etc/cdi/nvidia.json", "/run/cdi/nvidia.yaml"]
    assert [each.gone for each in found] == [("/dev/nvidia0", "/lib/libcuda.so.1"), ("/dev/nvidia0",)]
    assert found[0].spec == given
    assert [each.fault for each in found] == ["", ""]


def test_a_device_without_edits_takes_no_other_with_it() -> None:
    """To a runtime the whole file is none, which is what the file itself is looked at for."""
    files = {"/etc/cdi/nvidia.json": json.dumps(spec(OF_A, {"name": "GPU-b", "containerEdits": {}}))}
    (found,) = seen(files)
    assert (found.spec, found.fault) == (spec(OF_A), "")
    assert [each.fault for each in vendor_specs(FakeHost(files))] == ["the device GPU-b has no edit"]


def test_a_file_that_cannot_be_read_has_its_fault() -> None:
    found = seen(
        {
            "/etc/cdi/a.json": json.dumps(spec(OF_A))[:-3],
            "/etc/cdi/b.json": json.dumps(spec(OF_A, extra=1)),
            "/etc/cdi/c.yaml": "kind: nvidia.com/gpu\ndevices: {a: b}\n",
        }
    )
    assert [(each.path, each.spec, each.gone) for each in found] == [
        ("/etc/cdi/a.json", None, ()),
        ("/etc/cdi/b.json", None, ()),
        ("/etc/cdi/c.yaml", None, ()),
    ]
    assert found[0].fault.startswith("/etc/cdi/a.json: ")
    assert found[1].fault == "it has 'extra', which no CDI specification has"
    assert found[2].fault.startswith("/etc/cdi/c.yaml line 2: ")


def folder_beside(tree: Path) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    (tree / "etc/cdi/amd.json").mkdir()
    found = vendor_specs(Host())
    return [vendor.path for vendor in found], broken(Host(), found)


def test_a_folder_that_is_named_like_a_file_is_passed_over_as_runtimes_do(tmp_path: Path) -> None:
    (tmp_path / "etc/cdi").mkdir(parents=True)
    (tmp_path / "etc/cdi/nvidia.json").write_text(json.dumps(spec(OF_A)), encoding="utf-8")
    specs, others = in_jail(tmp_path, folder_beside, Path("/"))
    assert (specs, others) == (["/etc/cdi/nvidia.json"], (("/etc/cdi/amd.json", "it is a folder"),))


def test_a_host_without_any_has_none() -> None:
    assert seen({"/etc/cdi/other.json": json.dumps({"kind": "amd.com/gpu"})}) == ()
