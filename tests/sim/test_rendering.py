# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of rendering, as Ansible hands them templates, its own types, and what is not defined."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.sim import controller

PAGE = Path(controller.CHECKOUT) / "docs" / "fleet.md"
VARIABLES = """vendor: amd
bcd_labels: {cpu.vendor: "{{ vendor }}", slots: "{{ 4 }}"}
pool:
  name: gpu-fra
  site: fra
  class: gpu-host
  hosts: {node-1: {ansible_host: 192.0.2.1}}
  policy:
    migLayout: "{{ 'all-' ~ '1g.10gb' }}"
    hugepages: {size: 1Gi, count: 64, perNuma: true}
    sharing: {mode: mps}
profile:
  name: deploy
  hostConfig:
    kernel-modules: {load: [kvm_amd], when: "cpu.vendor == 'amd' and slots >= 4"}
    mig-layout: {from: pool}
    sysctl: {vm.swappiness: 10}
ansible_facts:
  bcd:
    gpus:
      - {index: 0, uuid: GPU-5f1c2a90-0000-4000-8000-000000000001, pci: 00000000:17:00.0, name: NVIDIA H100 80GB HBM3,
         mig_mode: disabled, layout: "off", allocations: [alloc_1], processes: []}
refused: "{{ pool | combine({'policy': {'cpu': {'isolate': '0-3'}, 'sysctl': {}}}) }}"
"""
UNITS = {
    "gpu-sharing": {"mode": "mps", "replicas": 10},
    "hugepages": {"pages1g": 64, "perNuma": True},
    "kernel-modules": {"load": ["kvm_amd"]},
    "mig-layout": {"layout": "all-1g.10gb"},
    "sysctl": {"vm.swappiness": 10},
}
SECTION = [
    {"unit": "gpu-sharing", "settings": '{"mode":"mps","replicas":10}'},
    {"unit": "hugepages", "settings": '{"pages1g":64,"perNuma":true}'},
    {"unit": "kernel-modules", "settings": '{"load":["kvm_amd"]}'},
    {"unit": "mig-layout", "settings": '{"layout":"off"}'},
    {"unit": "sysctl", "settings": '{"vm.swappiness":10}'},
]


def documented() -> dict[str, str]:
    """The filters as docs/fleet.md has them: units, section, again."""
    text = PAGE.read_text(encoding="utf-8")
    (block,) = [part for part in text.split("```") if part.startswith("yaml\nunits:")]
    found: dict[str, str] = yaml.safe_load(block.removeprefix("yaml\n"))
    return found


def played(tmp_path: Path, **asked: str) -> dict[str, Any]:
    """What debug prints of each expression by its name, or why it failed; from one run of ansible-playbook."""
    variables = yaml.safe_load(VARIABLES)
    facts = variables.pop("ansible_facts")
    tasks = [{"name": "facts", "ansible.builtin.set_fact": {"cacheable": True, **facts}}] + [
        {"name": name, "ansible.builtin.debug": {"msg": expression}, "ignore_errors": True}
        for name, expression in asked.items()
    ]
    play = [{"hosts": "localhost", "gather_facts": False, "vars": {**variables, **documented()}, "tasks": tasks}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
    done = controller.playbook(str(tmp_path), "localhost,", str(tmp_path / "play.yml"), "-c", "local", as_json=True)
    assert done.rc == 0, done.out + done.err
    return {event["task"]: event["result"].get("msg") for event in done.events()["tasks"]}


def test_rendering_in_a_playbook(tmp_path: Path) -> None:
    found = played(
        tmp_path,
        plain="{{ pool | bettercompute.bcd.host_units(profile, bcd_labels) }}",
        others="{{ pool | bettercompute.bcd.host_units(profile, {'cpu.vendor': 'intel'}) | list }}",
        units="{{ units }}",
        section="{{ section }}",
        again="{{ again == units }}",
        refused="{{ refused | bettercompute.bcd.host_units }}",
        twice="{{ (section + section) | bettercompute.bcd.from_host_section }}",
        fraction="{{ {'sysctl': {'vm.swappiness': 0.5}} | bettercompute.bcd.to_host_section }}",
        undefined="{{ pool | bettercompute.bcd.host_units(labels=nobody) }}",
    )
    assert found["plain"] == UNITS
    assert found["others"] == ["gpu-sharing", "hugepages", "mig-layout", "sysctl"]
    assert found["units"] == {**UNITS, "mig-layout": {"layout": "off"}}  # an allocation has the GPU
    assert found["section"] == SECTION
    assert found["again"] is True
    assert "INVALID_INPUT: $.pool.policy.cpu.isolate: " in found["refused"]
    assert "INVALID_INPUT: $.pool.policy.sysctl: " in found["refused"]
    assert all(f"INVALID_INPUT: $[{at}].unit: " in found["twice"] for at in range(10))
    assert "INVALID_INPUT: $.sysctl: " in found["fraction"]
    assert "nobody" in found["undefined"]
    assert "INVALID_INPUT" not in found["undefined"]
