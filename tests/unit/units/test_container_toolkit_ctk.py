# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""container-toolkit after `nvidia-ctk runtime configure`: its recorded files are read, and left alone where they serve.

The recording has a heading `### <case>` for each run, and each file that the run left behind `--- <path>`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import docker, toml
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.container_toolkit import UNIT
from tests import captures
from tests.gpu.model import Machine
from tests.unit.container_host import CONFIG, DAEMON, NEW, OLD, ContainerHost
from tests.unit.promises import go, second_pass_is_quiet

CTK = "/etc/containerd/conf.d/99-nvidia.toml"
CRIO_CTK = "/etc/crio/crio.conf.d/99-nvidia.toml"
CRIO = "/etc/crio/crio.conf.d/99-zz-bcd-nvidia.conf"
# Where the recording's folders stand for those of a host, by their first or last letter.
FOLDERS = {"c": "/etc/containerd", "d": "/etc/docker", "r": "/etc/crio"}


def recorded(case: str) -> dict[str, str]:
    """The files that a run of the recording left, by their paths on a host."""
    [block] = [
        block
        for block in re.split(r"^### ", captures.raw("ctk_runtime_configure.txt"), flags=re.MULTILINE)
        if block.partition("\n")[0].partition(":")[0] == case
    ]
    found = {}
    for part in re.split(r"^--- ", block, flags=re.MULTILINE)[1:]:
        name, _newline, text = part.partition("\n")
        folder, _slash, rest = name.partition("/")
        text = re.sub(r"HOST/c\d", "/etc/containerd", text)
        found[f"{FOLDERS['r' if folder == 'cr' else folder[0]]}/{rest}"] = text
    return found


def host_with(files: dict[str, str], **runtimes: str) -> ContainerHost:
    return ContainerHost(Machine.from_products(["H100-80GB"]), runtimes, files)


def runtimes(text: str, plugin: str = OLD) -> Any:
    return toml.parse(text, CTK)["plugins"][plugin]["containerd"]["runtimes"]


# -- what is read of its files


def test_containerd_without_a_configuration() -> None:
    files = recorded("containerd A")
    assert toml.parse(files[CONFIG], CONFIG) == {"imports": ["/etc/containerd/conf.d/*.toml"], "version": 2}
    assert toml.parse(files[CTK], CTK) == {
        "version": 2,
        "plugins": {
            OLD: {
                "enable_cdi": True,
                "containerd": {
                    "runtimes": {
                        "nvidia": {
                            "privileged_without_host_devices": False,
                            "runtime_engine": "",
                            "runtime_root": "",
                            "runtime_type": "io.containerd.runc.v2",
                            "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"},
                        }
                    }
                },
            }
        },
    }


def test_containerd_with_a_configuration_of_version_2() -> None:
    files = recorded("containerd B")
    runc = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    nvidia = {**runc, "options": {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True}}
    assert runtimes(files[CONFIG]) == {"runc": runc}
    assert runtimes(files[CTK]) == {"nvidia": nvidia, "runc": runc}
    table = toml.parse(files[CTK], CTK)["plugins"][OLD]
    assert (table["enable_cdi"], table["sandbox_image"]) == (True, "registry.k8s.io/pause:3.9")


def test_containerd_with_a_configuration_of_version_3() -> None:
    files = recorded("containerd C")
    assert toml.parse(files[CONFIG], CONFIG)["version"] == 3
    assert toml.parse(files[CTK], CTK)["plugins"][NEW]["containerd"]["default_runtime_name"] == "nvidia"
    assert runtimes(files[CTK], NEW) == {
        "nvidia": {
            "runtime_type": "io.containerd.runc.v2",
            "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"},
        },
        "runc": {"runtime_type": "io.containerd.runc.v2"},
    }


# -- what is made of a host where it ran


def test_a_containerd_of_1_7_that_it_configured_is_left_alone() -> None:
    host = host_with(recorded("containerd B"), containerd="1.7.24")
    assert go(UNIT, host, {"runtimes": ["containerd"]}).state == "converged"
    assert {path: host.text(path) for path in host.files if path.startswith("/etc/containerd")} == recorded(
        "containerd B"
    )
    assert host.restarts == []
    second_pass_is_quiet(UNIT, host, {"runtimes": ["containerd"]})


@pytest.mark.parametrize("case", ["containerd A", "containerd C"])
def test_a_containerd_of_2_x_that_it_configured_is_left_alone(case: str) -> None:
    host = host_with(recorded(case), containerd="2.1.9")
    assert go(UNIT, host, {"runtimes": ["containerd"]}).state == "converged"
    assert host.restarts == []
    assert host.cri()["containerd"]["runtimes"]["runc"]["runtime_type"] == "io.containerd.runc.v2"


def test_a_containerd_of_version_1_is_refused() -> None:
    host = host_with(recorded("containerd D"), containerd="1.7.24")
    refused = go(UNIT, host, {"runtimes": ["containerd"]})
    assert refused.failure is not None
    assert (refused.failure.reason, "is of version 1" in refused.failure.message) == ("Refused", True)


def test_docker_gets_what_nvidia_ctk_would_write() -> None:
    assert docker.with_nvidia({}, False) == json.loads(recorded("docker A")[DAEMON])
    given = {"exec-opts": ["native.cgroupdriver=systemd"], "log-driver": "journald"}
    assert docker.with_nvidia(given, True) == json.loads(recorded("docker B")[DAEMON])


@pytest.mark.parametrize("case", ["docker B", "docker D", "docker E"])
def test_a_docker_that_it_configured_is_left_alone_to_the_byte(case: str) -> None:
    host = host_with(recorded(case), docker="28.5.2")
    assert go(UNIT, host, {}).state == "converged"
    assert (host.text(DAEMON), host.restarts) == (recorded(case)[DAEMON], [])


def test_a_docker_that_it_configured_without_cdi_gets_it() -> None:
    host = host_with(recorded("docker A"), docker="28.5.2")
    go(UNIT, host, {"cdi": False})
    assert (host.text(DAEMON), host.restarts) == (recorded("docker A")[DAEMON], [])
    go(UNIT, host, {})
    assert json.loads(host.text(DAEMON) or "") == {
        **json.loads(recorded("docker A")[DAEMON]),
        "features": {"cdi": True},
    }
    assert host.restarts == ["docker"]


def test_a_daemon_json_that_it_cannot_read_is_refused_with_its_line() -> None:
    host = host_with(recorded("docker F"), docker="28.5.2")
    refused = go(UNIT, host, {})
    assert refused.failure is not None
    assert f"{DAEMON} line " in refused.failure.message


def test_crio_gets_what_nvidia_ctk_would_write_and_is_left_alone_where_it_did() -> None:
    files = recorded("crio")
    assert list(files) == [CRIO_CTK]
    path, text = CRIO_CTK, files[CRIO_CTK]
    host = host_with({}, crio="1.30.0")
    go(UNIT, host, {})
    assert toml.parse(host.text(CRIO) or "", CRIO) == toml.parse(text, path)
    host = host_with({path: text}, crio="1.30.0")
    assert go(UNIT, host, {}).state == "converged"
    assert (host.text(CRIO), host.restarts) == (None, [])
