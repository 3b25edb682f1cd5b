# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's container toolkit beside a real containerd 1.7 and a real podman.

containerd 1.7 takes the whole table of a plugin from the last file that has one, so a drop-in can lose what others
configured. One story, in the order of its tests, on the machine that the story of test_gpu_driver leaves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gpu_host
import pytest
from gpu_host import SECTION, UUID
from labvm import recipe
from labvm.machine import Machine
from play import Stage
from seen import Eyes

CONFIG, FOREIGN = "/etc/containerd/config.toml", "/etc/containerd/conf.d/50-mirrors.toml"
CRI = "io.containerd.grpc.v1.cri"
RUNC = f'plugins."{CRI}".containerd.runtimes.runc'
# What an operator has: a pause image, the systemd cgroup driver, and an oom score outside the plugin.
MINE = f"""\
version = 2
imports = ["/etc/containerd/conf.d/*.toml"]
oom_score = -500

[plugins."{CRI}"]
sandbox_image = "mirror.example/pause:3.9"
[{RUNC}]
runtime_type = "io.containerd.runc.v2"
[{RUNC}.options]
SystemdCgroup = true
"""
# What another tool has beside it: its mirrors, in a table that has to be whole, and a key of another plugin.
THEIRS = f"""\
version = 2
[plugins."io.containerd.gc.v1.scheduler"]
pause_threshold = 0.05
[plugins."{CRI}"]
sandbox_image = "mirror.example/pause:3.10"
[plugins."{CRI}".registry.mirrors."docker.io"]
endpoint = ["https://mirror.example"]
[{RUNC}]
runtime_type = "io.containerd.runc.v2"
[{RUNC}.options]
SystemdCgroup = true
"""
TOOLKIT = "/etc/nvidia-container-runtime/config.toml"
ASKED = ("accept-nvidia-visible-devices-as-volume-mounts", "accept-nvidia-visible-devices-envvar-when-unprivileged")
WHOLE: dict[str, Any] = {**SECTION, "container-toolkit": {}}


class Story:
    """What the tests of this module hand on."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        stage.machine.ssh(f"mkdir -p /etc/containerd/conf.d && cat >{CONFIG}", stdin=MINE)
        stage.machine.ssh(f"cat >{FOREIGN}", stdin=THEIRS)
        stage.machine.ssh("systemctl enable --now containerd")
        self.before = effective(stage.machine)
        self.started = started(stage.machine)


@pytest.fixture(scope="module")
def story(lab_machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Story:
    stage = Stage(lab_machine, tmp_path_factory.mktemp("containers"))
    gpu_host.stand_with_driver(stage)
    return Story(stage)


@pytest.fixture
def eyes(story: Story) -> Eyes:
    return Eyes(story.stage.machine)


def toml(machine: Machine, command: str) -> dict[str, Any]:
    """What a command in the guest prints, read by the guest's Python, which is new enough to know TOML."""
    reader = "import json, sys, tomllib; print(json.dumps(tomllib.load(sys.stdin.buffer)))"
    found: dict[str, Any] = json.loads(machine.ssh(f"{command} | python3 -c '{reader}'").out)
    return found


def effective(machine: Machine) -> dict[str, Any]:
    """What containerd makes of its files."""
    return toml(machine, "containerd config dump")


def leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value of the configuration by its path; an empty table is one."""
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


def started(machine: Machine) -> list[str]:
    """When containerd's process was started and which one it is."""
    shown = machine.ssh("systemctl show --property=MainPID,ExecMainStartTimestampMonotonic containerd").out
    return sorted(shown.split())


def test_containerd_restarts_once_and_loses_no_key_of_anyone(story: Story, eyes: Eyes) -> None:
    done = story.stage.converge(WHOLE)
    assert (done.rc, done.state) == (0, "CONVERGED"), done.said
    [restart] = [step for step in done.steps("container-toolkit") if "restart" in step]
    assert restart.startswith("restart containerd")
    log = eyes.host.check_output("journalctl --boot --unit=containerd --output=cat --grep='^Started containerd'")
    assert len(log.splitlines()) == 2  # ours, and the one that it was started by
    assert started(story.stage.machine) != story.started
    assert eyes.host.service("containerd").is_running
    after = dict(leaves(effective(story.stage.machine)))
    ours = ("plugins", CRI, "enable_cdi")
    expected = {path: value for path, value in leaves(story.before) if path not in (ours, ("imports",))}
    assert {path: after.get(path) for path in expected} == expected
    assert after[("plugins", CRI, "sandbox_image")] == "mirror.example/pause:3.10"
    assert after[("plugins", CRI, "registry", "mirrors", "docker.io", "endpoint")] == ["https://mirror.example"]
    assert after[("plugins", "io.containerd.gc.v1.scheduler", "pause_threshold")] == 0.05
    assert after[ours] is True
    runtime = ("plugins", CRI, "containerd", "runtimes", "nvidia")
    options = {path[-1]: value for path, value in after.items() if path[:-1] == (*runtime, "options")}
    assert options["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    assert options["SystemdCgroup"] is True
    assert eyes.text(FOREIGN) == THEIRS


def test_the_running_containerd_has_it(story: Story) -> None:
    listed = story.stage.machine.ssh("ctr plugins list id==cri").out
    assert listed.split()[-1] == "ok", listed


def test_gpus_are_handed_out_by_cdi_alone_and_the_rest_of_the_file_stays(story: Story, eyes: Eyes) -> None:
    text = eyes.text(TOOLKIT)
    found = toml(story.stage.machine, f"cat {TOOLKIT}")
    assert [found[key] for key in ASKED] == [False, False]
    packaged = story.stage.machine.ssh(
        f"dpkg-deb --fsys-tarfile {recipe.STORE}/nvidia/nvidia-container-toolkit_*.deb | tar -xO .{TOOLKIT}"
    ).out
    rest = [line for line in packaged.splitlines() if not any(key in line for key in ASKED)]
    assert [line for line in text.splitlines() if line in rest] == rest


def test_a_second_pass_changes_nothing_and_restarts_nothing(story: Story) -> None:
    before = started(story.stage.machine)
    again = story.stage.converge(WHOLE)
    assert (again.rc, again.recap["changed"], again.all_steps()) == (0, 0, {})
    assert started(story.stage.machine) == before


def linked(eyes: Eyes) -> dict[str, str]:
    """Every device node of the driver by its number, with where /dev/char/<number> leads."""
    numbers = eyes.host.check_output("stat -c '%n %Hr:%Lr' $(find /dev -maxdepth 1 -type c -name 'nvidia*')")
    nodes = dict(line.split()[::-1] for line in numbers.splitlines())
    assert len(nodes) >= 4
    return {node: eyes.host.run("readlink -e /dev/char/%s", number).stdout.strip() for number, node in nodes.items()}


def test_every_device_node_is_linked_by_its_number(eyes: Eyes) -> None:
    assert {node: end for node, end in linked(eyes).items() if end != node} == {}


def test_at_boot_udev_links_them(story: Story, eyes: Eyes) -> None:
    """A boot begins with an empty /dev, and tells udev again of what the kernel has loaded by then."""
    story.stage.machine.ssh(
        "find /dev/char -lname '/dev/nvidia*' -delete; ls -l /dev/char | grep nvidia && exit 1"
        "; udevadm trigger --type=subsystems --action=add && udevadm settle --timeout=60"
    )
    assert {node: end for node, end in linked(eyes).items() if end != node} == {}
    again = story.stage.converge(WHOLE)
    assert (again.rc, again.recap["changed"], again.all_steps()) == (0, 0, {})


def test_podman_gives_a_container_the_gpu_of_the_specification(story: Story, eyes: Eyes) -> None:
    spec = json.loads(eyes.text("/etc/cdi/nvidia.json"))
    assert spec["kind"] == "nvidia.com/gpu"
    assert UUID in [device["name"] for device in spec["devices"]]
    story.stage.machine.ssh(f"podman import -q {recipe.STORE}/root.tar lab:latest", timeout=300)
    ran = story.stage.machine.ssh(
        f"podman run --rm --network=none --device=nvidia.com/gpu={UUID} lab:latest "
        "sh -c 'env; ls -l /dev/nvidia0; ls /usr/lib/x86_64-linux-gnu; cat /proc/mounts'",
        timeout=300,
    ).out
    assert "NVIDIA_VISIBLE_DEVICES=void" in ran.splitlines()
    assert "195,   0" in next(line for line in ran.splitlines() if line.endswith("/dev/nvidia0"))
    library = f"libnvidia-ml.so.{gpu_host.NEWEST[gpu_host.BRANCH]}"
    assert library in ran.splitlines()
    [mount] = [line for line in ran.splitlines() if f" /usr/lib/x86_64-linux-gnu/{library} " in line]
    assert "ro" in mount.split()[3].split(",")


def test_a_driver_that_changes_makes_the_specification_anew_in_the_same_pass(story: Story, eyes: Eyes) -> None:
    newer = gpu_host.NEWEST[gpu_host.NEWER]
    before = started(story.stage.machine)
    done = story.stage.converge({**WHOLE, "nvidia-driver": {"branch": gpu_host.NEWER}})
    assert (done.rc, done.state) == (0, "CONVERGED"), done.said
    mounts = json.loads(eyes.text("/etc/cdi/nvidia.json"))["containerEdits"]["mounts"]
    libraries = [mount["hostPath"] for mount in mounts if "libnvidia-ml" in mount["hostPath"]]
    assert libraries == [f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{newer}"]
    assert started(story.stage.machine) == before
