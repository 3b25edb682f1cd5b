# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker's containerd 1.7, a real one, that others configured before: nothing of theirs is lost, and it answers.

One story, in the order of its tests. The unit is the shipped one with everything around it; nobody gives it a token,
so it waits in front of the join, with containerd as a kubelet needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gpu_host
import kube
import pytest
from labvm import kubernetes
from labvm.machine import Machine
from play import Pass, Stage
from seen import Eyes

CONFIG, CTK = "/etc/containerd/config.toml", "/etc/containerd/conf.d/99-nvidia.toml"
OURS = "/etc/containerd/conf.d/99-zz-bcd.toml"
BEFORE = "/var/lib/bcd-hostconfig/containerd-before.json"
CRI = "io.containerd.grpc.v1.cri"
RUNTIMES = f'plugins."{CRI}".containerd.runtimes'
# What an operator has: a pause image, hosts of registries, and containers on GPUs by default.
TABLE = f"""\
[plugins."{CRI}"]
  sandbox_image = "mirror.example/pause:3.8"
  [plugins."{CRI}".registry]
    config_path = "/etc/containerd/certs.d"
  [plugins."{CRI}".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."{CRI}".containerd]
    default_runtime_name = "nvidia"
    [{RUNTIMES}.runc]
      runtime_type = "io.containerd.runc.v2"
    [{RUNTIMES}.nvidia]
      runtime_type = "io.containerd.runc.v2"
      [{RUNTIMES}.nvidia.options]
        BinaryName = "/usr/local/bin/nvidia-container-runtime"
"""
MINE = f"""\
version = 2
imports = ["/etc/containerd/conf.d/*.toml"]
oom_score = -500

{TABLE}"""
THEIRS = f"version = 2\n{TABLE}"  # nvidia-ctk's drop-in is a copy of the table of config.toml
PIN = "4b1d" * 16
ALLOWED = f'[kubernetes]\nallowed_clusters = "https://10.0.0.1:6443#sha256:{PIN}"\n'
KUBE: dict[str, Any] = {
    "k8s-join": {
        "apiServer": "https://10.0.0.1:6443",
        "caCertSha256": PIN,
        "joinTokenRef": "join-token",
        "kubernetesVersion": kubernetes.MINOR,
    }
}
BOTH: dict[str, Any] = {**KUBE, "container-toolkit": {"runtimes": ["containerd"]}}
# Keeps containerd from starting with a file of ours, as a bug of its own would.
FAULT = "/etc/systemd/system/containerd.service.d/fault.conf"
REFUSES = f"[Service]\nExecStartPre=/bin/sh -c '! grep k8s-join {OURS}'\n"
Path = tuple[str, ...]


class Story:
    """What the tests of this module hand on."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.machine = stage.machine
        self.put(CONFIG, MINE)
        self.put(CTK, THEIRS)
        self.put("/etc/bcd/config.toml", ALLOWED)
        self.machine.ssh("mv /usr/lib/cni /usr/lib/cni.podmans")  # a worker without podman has no plugins there
        self.machine.ssh("systemctl enable --now containerd && systemctl restart containerd")
        self.before = effective(self.machine)
        self.started = started(self.machine)

    def put(self, path: str, text: str) -> None:
        """A file of somebody else's."""
        self.machine.ssh(f"mkdir -p {path.rpartition('/')[0]} && cat >{path}", stdin=text)

    def lost(self) -> list[Path]:
        """The values of others that are not as they were: changed, gone, or there only now."""
        was, after = self.before, effective(self.machine)
        return [path for path in {**was, **after} if not is_ours(path) and after.get(path) != was.get(path)]


@pytest.fixture(scope="module")
def story(lab_story: Machine, tmp_path_factory: pytest.TempPathFactory) -> Story:
    kube.offer(lab_story)
    gpu_host.offer(lab_story)
    return Story(Stage(lab_story, tmp_path_factory.mktemp("containerd")))


@pytest.fixture
def eyes(story: Story) -> Eyes:
    return Eyes(story.machine)


def effective(machine: Machine) -> dict[Path, Any]:
    """What containerd makes of its files, value by value, read by the guest's Python, which knows TOML."""
    reader = "import json, sys, tomllib; print(json.dumps(tomllib.load(sys.stdin.buffer)))"
    return dict(leaves(json.loads(machine.ssh(f"containerd config dump | python3 -c '{reader}'").out)))


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value by its path; an empty table holds none."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


def of_cri(values: dict[Path, Any], *words: str) -> Any:
    """A value of the CRI plugin."""
    path = ("plugins", CRI, *words)
    return values[path]


def is_ours(path: Path) -> bool:
    """What a kubelet needs: systemd's cgroups in every runtime, CDI, and the folder where CNI's plugins are."""
    names = ("imports", "SystemdCgroup", "enable_cdi", "cdi_spec_dirs", "bin_dir")
    return path[-1] in names and (path[:2] == ("plugins", CRI) or path == ("imports",))


def started(machine: Machine) -> list[str]:
    """containerd's process, and when it was started."""
    shown = machine.ssh("systemctl show --property=MainPID,ExecMainStartTimestampMonotonic containerd").out
    return sorted(shown.split())


def serves(machine: Machine) -> str:
    """What containerd says of its CRI plugin."""
    return machine.ssh("ctr plugins list id==cri").out.split()[-1]


def said(done: Pass) -> str:
    """The unit's whole result, for a failed assertion."""
    return json.dumps(done.units["k8s-join"], indent=1)


def test_a_configuration_of_others_is_kept_and_the_daemon_answers(story: Story, eyes: Eyes) -> None:
    done = story.stage.converge(KUBE)
    unit = done.units["k8s-join"]
    assert not unit.get("failure"), said(done)
    assert [step for step in done.steps("k8s-join") if "restart" in step] == [
        "restart containerd, which reads its configuration only then"
    ], said(done)
    assert story.lost() == []
    after = effective(story.machine)
    for runtime in ("runc", "nvidia"):
        assert of_cri(after, "containerd", "runtimes", runtime, "options", "SystemdCgroup") is True
    assert of_cri(after, "containerd", "runtimes", "nvidia", "options", "BinaryName").startswith("/usr/local/")
    assert of_cri(after, "containerd", "default_runtime_name") == "nvidia"
    assert of_cri(after, "sandbox_image") == "mirror.example/pause:3.8"
    assert of_cri(after, "registry", "config_path") == "/etc/containerd/certs.d"
    assert of_cri(after, "enable_cdi") is True
    assert of_cri(after, "cni", "bin_dir") == "/opt/cni/bin"
    assert after[("oom_score",)] == -500
    assert (eyes.text(CONFIG), eyes.text(CTK)) == (MINE, THEIRS)
    assert started(story.machine) != story.started
    assert serves(story.machine) == "ok"
    assert not eyes.host.file(BEFORE).exists


def test_a_second_pass_restarts_nothing(story: Story) -> None:
    before = started(story.machine)
    again = story.stage.converge(KUBE)
    assert (again.recap["changed"], again.steps("k8s-join")[:-1]) == (0, []), said(again)
    assert started(story.machine) == before


def test_the_toolkit_has_its_part_in_the_same_file(story: Story, eyes: Eyes) -> None:
    done = story.stage.converge(BOTH)
    assert "# For container-toolkit and k8s-join." in eyes.text(OURS), done.said
    nvidia: Path = ("plugins", CRI, "containerd", "runtimes", "nvidia")
    assert [path for path in story.lost() if path[:5] != nvidia] == []
    after = effective(story.machine)
    assert of_cri(after, "containerd", "runtimes", "nvidia", "options", "SystemdCgroup") is True
    assert serves(story.machine) == "ok"
    before = started(story.machine)
    again = story.stage.converge(BOTH)
    assert again.recap["changed"] == 0, again.all_steps()
    assert started(story.machine) == before


def test_a_daemon_that_does_not_start_with_it_gets_its_files_back(story: Story, eyes: Eyes) -> None:
    story.machine.ssh(f"rm {OURS} && systemctl restart containerd")
    story.put(FAULT, REFUSES)
    story.machine.ssh("systemctl daemon-reload")
    done = story.stage.converge(KUBE)
    message = str(done.units["k8s-join"])
    assert "containerd did not answer with the configuration that k8s-join made for it" in message, said(done)
    assert "its former files are back: see journalctl -u containerd" in message
    assert not eyes.host.file(OURS).exists
    assert (eyes.text(CONFIG), eyes.text(CTK)) == (MINE, THEIRS)
    assert eyes.host.service("containerd").is_running
    assert serves(story.machine) == "ok"
