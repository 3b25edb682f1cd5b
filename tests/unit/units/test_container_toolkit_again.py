# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""container-toolkit: by what a quiet turn is known again on a host that lives, and what is a difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import toml, toml_text
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.container_toolkit import UNIT
from tests.gpu.model import Machine
from tests.unit.container_host import SPEC, ContainerHost
from tests.unit.promises import go
from tests.unit.quiet_turn import Asked, asked_in, differing

CONTAINERD = "/usr/sbin/containerd"  # where this host has its programs
MINE = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
cdi_spec_dirs = ["/opt/cdi"]
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true
"""


def converged() -> ContainerHost:
    """A host with containerd that had its pass."""
    host = ContainerHost(Machine.from_products(["H100-80GB", "H100-80GB"]), {"containerd": "1.7.27"})
    host.unpack(refresh=True)
    assert go(UNIT, host, {}).state == "converged"
    return host


def asked_by(host: ContainerHost) -> Asked:
    """What a quiet turn asks."""

    def turn(watched: Watched) -> None:
        assert go(UNIT, watched, {}).steps == ()  # type: ignore[arg-type]

    return asked_in(host, turn)


def test_no_program_is_asked_again_but_nvidia_smi() -> None:
    asked = asked_by(converged())
    assert {question[1][0] for question in asked if question[0] == "ask"} == {"nvidia-smi"}
    follow = {(question[1][0], question[2][0]) for question in asked if question[0] in ("follows", "answer")}
    assert follow == {("nvidia-ctk", "/usr/sbin/nvidia-ctk"), ("containerd", CONTAINERD)}


def test_holds_pods_and_other_devices_come_and_go_without_a_difference() -> None:
    host = converged()
    asked = asked_by(host)
    claim = {"cdiVersion": "0.5.0", "kind": "k8s.gpu.nvidia.com/claim", "devices": [], "containerEdits": {}}
    host.put("/run/cdi/k8s.gpu.nvidia.com-claim_7.json", json.dumps(claim))
    host.put("/etc/cdi/bcd-alloc_1.json", host.text(SPEC) or "")
    host.put("/dev/loop7", "")
    host.put("/dev/char/7:7", "")
    host.put(
        "/proc/devices", (host.text("/proc/devices") or "").replace("Block devices:\n", "Block devices:\n  7 loop\n")
    )
    assert differing(host, asked) == []


def another_device(host: ContainerHost) -> None:
    host.put("/dev/nvidia-caps-imex-channels/channel0", "")


def another_listing(host: ContainerHost) -> None:
    host.machine.smi(("nvidia-smi", "-i", "1", "-mig", "1"))


def another_text(host: ContainerHost) -> None:
    host.put(SPEC, (host.text(SPEC) or "").replace("/dev/nvidia0", "/dev/nvidia9"))


def another_specification(host: ContainerHost) -> None:
    host.put("/run/cdi/nvidia.yaml", "kind: nvidia.com/gpu\n")


def a_broken_one(host: ContainerHost) -> None:
    host.put("/etc/cdi/amd.json", "{")


def a_drop_in(host: ContainerHost) -> None:
    host.put("/etc/containerd/conf.d/10-mine.toml", "version = 2\n")


def the_configuration(host: ContainerHost) -> None:
    host.put("/etc/containerd/config.toml", (host.text("/etc/containerd/config.toml") or "") + "# mine\n")


def a_path_that_is_named(host: ContainerHost) -> None:
    del host.files["/dev/nvidia1"]


def another_containerd(host: ContainerHost) -> None:
    host.put(CONTAINERD, "another")


def another_toolkit(host: ContainerHost) -> None:
    host.put("/usr/sbin/nvidia-ctk", "another")


@pytest.mark.parametrize(
    "change",
    [
        another_device,
        another_listing,
        another_text,
        another_specification,
        a_broken_one,
        a_drop_in,
        the_configuration,
        a_path_that_is_named,
        another_containerd,
        another_toolkit,
    ],
)
def test_what_the_unit_is_about_is_a_difference(change: Callable[[ContainerHost], None]) -> None:
    host = converged()
    asked = asked_by(host)
    change(host)
    assert differing(host, asked) != []


@pytest.mark.parametrize("version", ["1.7.27", "2.1.4"])
def test_what_was_read_of_a_file_is_left_as_it_was(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All who ask for a text are given one reading of it."""
    read: list[tuple[str, str, toml.Document]] = []
    document = toml.document

    def kept(text: str, source: str) -> toml.Document:
        read.append((text, source, document(text, source)))
        return read[-1][2]

    for module in (toml, toml_text):
        monkeypatch.setattr(module, "document", kept)
    host = ContainerHost(Machine.from_products(["H100-80GB"]), {"containerd": version})
    host.put("/etc/containerd/config.toml", 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n')
    host.put("/etc/containerd/conf.d/10-mine.toml", MINE)
    settings: dict[str, Any]
    for settings in ({}, {"cdi": False}, {}):
        assert go(UNIT, host, settings).state == "converged"
    assert {source for _text, source, _document in read} > {"/etc/containerd/config.toml"}
    assert [source for text, source, found in read if found != document.__wrapped__(text, source)] == []
