# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and slices that a workload manager without root asks bcd helper for: what a hold of ours has, and no more."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_sharing_service import PIPE
from tests.gpu.fake import GpuHost
from tests.pki import ControlPlane
from tests.unit.hold_host import VENDOR, assign, go, hold_host, part, uuids
from tests.unit.slice_host import run_in, slice_folder

from .helped import CONFIG, ask, stand_in, untouched

STATE = "/var/lib/bcd-hostconfig"
TOKEN_FILE = f"{STATE}/k8s/bootstrap-token"
TOKEN = "abcdef.0123456789abcdef"
SPEC, ENV = "/etc/cdi/bcd-alloc_1.json", "/run/bcd/allocations/alloc_1.env"
Made = dict[str, Any]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> GpuHost:
    found = hold_host()
    found.put(CONFIG, "[host]\nunits = true\n")
    return stand_in(monkeypatch, found)  # type: ignore[return-value]


def write(kind: str, content: str | None, name: str | None = "alloc_1") -> Any:
    return ask({"op": "file.write", "kind": kind, "id": name, "content": content})


def of_ours(host: GpuHost, *devices: str, **more: Any) -> tuple[str, str]:
    """The specification and the env file that a hold of these devices has, made by a pass over the same machine."""
    twin = hold_host()
    twin.machine = host.machine
    twin.files = dict(host.files)
    go(twin, assign("alloc_1", *devices, **more))
    return twin.text(SPEC) or "", twin.text(ENV) or ""


def test_what_a_hold_of_ours_has_is_taken(host: GpuHost) -> None:
    spec, env = of_ours(host, uuids(host)[0])
    assert write("cdi", spec) == {"changed": True}
    assert write("allocation-env", env) == {"changed": True}
    assert host.files[SPEC] == File(spec, 0o644)
    assert host.files[ENV] == File(env, 0o644)
    assert write("cdi", spec) == {"changed": False}
    assert write("cdi", None) == {"changed": True}
    assert write("allocation-env", None) == {"changed": True}
    assert write("cdi", None) == {"changed": False}
    assert host.text(SPEC) is host.text(ENV) is None


@pytest.mark.parametrize(
    "changed", [{"mode": 0o666}, {"uid": 1000}, {"regular": False, "mode": 0o644}], ids=["mode", "owner", "no file"]
)
def test_one_that_has_the_content_and_is_not_root_s_is_made_again(host: GpuHost, changed: dict[str, Any]) -> None:
    env = "BCD_ALLOCATION_ID=alloc_1\n"
    assert write("allocation-env", env) == {"changed": True}
    host.files[ENV] = host.files[ENV]._replace(**changed)
    assert write("allocation-env", env) == {"changed": True}
    assert host.files[ENV] == File(env, 0o644)


@pytest.mark.parametrize("ceiling", [None, "0.3.0", "0.5.0", "0.6.0", "1.1.0"])
def test_under_whatever_ceiling_and_of_whatever_devices(host: GpuHost, ceiling: str | None) -> None:
    mig = part(host, 1, "1g.10gb", "1g.10gb")
    limits = {"cpus": "0-3", "memory_bytes": 1 << 30}
    for devices in ((uuids(host)[0],), tuple(mig), (mig[0],)):
        spec, env = of_ours(host, *devices, limits=limits)
        if ceiling is not None:
            twin = hold_host()
            twin.machine, twin.files = host.machine, dict(host.files)
            go(twin, assign("alloc_1", *devices, limits=limits), max_cdi_version=ceiling)
            spec = twin.text(SPEC) or ""
        assert spec
        assert "msg" not in write("cdi", spec)
        assert "msg" not in write("allocation-env", env)


def test_a_kubernetes_hold_is_taken_too(host: GpuHost) -> None:
    spec, env = of_ours(host, uuids(host)[0], binding="BINDING_KUBERNETES")
    assert "msg" not in write("cdi", spec)
    assert "msg" not in write("allocation-env", env)


def test_a_slot_s_hold_has_what_clients_of_the_mps_daemon_need(host: GpuHost) -> None:
    gpu = uuids(host)[0]
    spec = json.loads(of_ours(host, gpu)[0])
    spec["devices"][0].update(name=f"{gpu}_s3", annotations={"bcd.dev/device-id": f"{gpu}/s3"})
    every(spec)["env"].append(f"CUDA_MPS_PIPE_DIRECTORY={PIPE}")
    every(spec)["mounts"] = [{**SHM, "hostPath": path, "containerPath": path} for path in (PIPE, "/dev/shm")]
    assert write("cdi", json.dumps(spec)) == {"changed": True}


def test_what_the_vendor_s_specification_has_may_be_left_out(host: GpuHost) -> None:
    spec = json.loads(of_ours(host, uuids(host)[0])[0])
    del spec["containerEdits"]["deviceNodes"]
    assert write("cdi", json.dumps(spec)) == {"changed": True}


def every(spec: Made) -> Made:
    found: Made = spec["containerEdits"]
    return found


def one(spec: Made) -> Made:
    found: Made = spec["devices"][0]["containerEdits"]
    return found


HOOK = {"hookName": "createContainer", "path": "/tmp/x"}
MOUNT = {"hostPath": "/", "containerPath": "/host", "options": ["rw", "bind"]}
SHM = {"hostPath": "/dev/shm", "containerPath": "/dev/shm", "options": ["rw", "nosuid", "nodev", "bind"]}
CHANGES: dict[str, tuple[Callable[[Made], Any], str]] = {
    "a hook": (lambda spec: every(spec).update(hooks=[HOOK]), "its hooks have "),
    "a hook of a device": (lambda spec: one(spec).update(hooks=[HOOK]), "its hooks have "),
    "a mount": (lambda spec: every(spec).update(mounts=[MOUNT]), "its mounts have "),
    "a mount of slots without one": (lambda spec: every(spec).update(mounts=[SHM]), "its mounts have "),
    "a disk": (lambda spec: one(spec).update(deviceNodes=[{"path": "/dev/sda"}]), "its deviceNodes have "),
    "a disk behind a GPU's name": (
        lambda spec: one(spec)["deviceNodes"][0].update(hostPath="/dev/sda"),
        "its deviceNodes have ",
    ),
    "more permissions": (lambda spec: one(spec)["deviceNodes"][0].update(fileMode=438), "its deviceNodes have "),
    "a group": (lambda spec: every(spec).update(additionalGids=[0]), "its additionalGids have "),
    "a network device": (
        lambda spec: every(spec).update(netDevices=[{"hostInterfaceName": "eth0", "name": "eth0"}]),
        "its netDevices have ",
    ),
    "resctrl": (lambda spec: every(spec).update(intelRdt={"closID": "x"}), "its intelRdt have "),
    "a variable": (lambda spec: every(spec)["env"].append("LD_PRELOAD=/tmp/x"), "its env have "),
    "all GPUs": (lambda spec: every(spec)["env"].append("NVIDIA_VISIBLE_DEVICES=all"), "its env have "),
    "another's GPU": (lambda spec: every(spec)["env"].append("NVIDIA_VISIBLE_DEVICES=GPU-other"), "its env have "),
    "another allocation's id": (lambda spec: every(spec)["env"].append("BCD_ALLOCATION_ID=x"), "its env have "),
    "another slice": (lambda spec: every(spec)["env"].append("BCD_CGROUP_PARENT=system.slice"), "its env have "),
    "another pipe": (lambda spec: every(spec)["env"].append("CUDA_MPS_PIPE_DIRECTORY=/tmp"), "its env have "),
    "another kind": (
        lambda spec: spec.update(kind="nvidia.com/gpu"),
        "its kind is nvidia.com/gpu, and not bcd.dev/gpu",
    ),
    "no known device": (
        lambda spec: spec["devices"][0].update(name="x", annotations={}),
        "it has a device that is none of GPUs",
    ),
    "another id": (
        lambda spec: spec["devices"][0]["annotations"].update({"bcd.dev/device-id": "GPU-other"}),
        "has another id (bcd.dev/device-id)",
    ),
    "another allocation": (
        lambda spec: spec["annotations"].update({"bcd.dev/allocation-id": "alloc_2"}),
        "its annotation bcd.dev/allocation-id names another allocation",
    ),
    "no devices": (lambda spec: spec.update(devices=[]), "runtimes would not take it (it has no device)"),
    "an unknown key": (lambda spec: spec.update(hooks=[]), "runtimes would not take it (it has 'hooks', which no CDI"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_no_vendor_s_specification_has_is_refused(host: GpuHost, name: str) -> None:
    spec = json.loads(of_ours(host, uuids(host)[0])[0])
    spec["cdiVersion"] = "1.1.0"
    change, why = CHANGES[name]
    change(spec)
    told = write("cdi", json.dumps(spec))
    assert (told["reason"], told["retryable"], told["changed"]) == ("Refused", False, False)
    assert told["msg"].startswith(f"file.write of {SPEC}: ")
    assert why in told["msg"]
    assert untouched(host)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"kind": 1, "kind": 2}', "kind: bcd.dev/gpu\n", "\x00", '{"kind": "bcd.dev/gpu"} {}']
)
def test_what_is_no_specification_is_refused(host: GpuHost, text: str) -> None:
    assert write("cdi", text)["reason"] == "Refused"
    assert untouched(host)


def test_the_vendor_s_specification_is_root_s_own(host: GpuHost) -> None:
    """Not what the request says, and none that is unsound."""
    spec = of_ours(host, uuids(host)[0])[0]
    host.put(VENDOR, "{}")
    assert "which no vendor's specification on this host has" in write("cdi", spec)["msg"]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["BCD_ALLOCATION_ID=alloc_2"], "its BCD_ALLOCATION_ID is not alloc_1"),
        ([], "it does not set BCD_ALLOCATION_ID to alloc_1"),
        (["BCD_ALLOCATION_ID=alloc_1", "BCD_ALLOCATION_ID=alloc_1"], "it sets BCD_ALLOCATION_ID twice"),
        (["BCD_ALLOCATION_ID=alloc_1", "sesame"], "its line 2 is no KEY=VALUE"),
        (["BCD_ALLOCATION_ID=alloc_1", "=sesame"], "its line 2 is no KEY=VALUE"),
        (["BCD_ALLOCATION_ID=alloc_1", "A=sesame\r"], "its line 2 is no KEY=VALUE"),
        (["BCD_ALLOCATION_ID=alloc_1", "A=sesame\x1b[2J"], "its line 2 is no KEY=VALUE"),
        (["BCD_ALLOCATION_ID=alloc_1", "A B=sesame"], "its line 2 is no KEY=VALUE"),
        (["BCD_ALLOCATION_ID=alloc_1", ""], "its line 2 is no KEY=VALUE"),
        (["BCD_ALLOCATION_ID=alloc_1", "BCD_CGROUP_PARENT=sesame.slice"], "its BCD_CGROUP_PARENT is not bcd-alloc-"),
        (["BCD_ALLOCATION_ID=alloc_1", "NVIDIA_VISIBLE_DEVICES=all"], "names something else than devices"),
    ],
)
def test_an_env_file_that_is_none_is_refused_without_its_values(host: GpuHost, lines: list[str], why: str) -> None:
    told = write("allocation-env", "".join(f"{line}\n" for line in lines))
    assert told["reason"] == "Refused"
    assert told["msg"].startswith(f"file.write of {ENV}: ")
    assert why in told["msg"]
    assert "sesame" not in told["msg"]
    assert untouched(host)


def test_the_worst_that_is_sent_takes_no_time(host: GpuHost) -> None:
    """Each of these has as many elements as go into a request, no two alike."""
    spec = json.loads(of_ours(host, uuids(host)[0])[0])
    spec["cdiVersion"] = "1.1.0"
    every(spec)["netDevices"] = [{"hostInterfaceName": f"a{at}", "name": f"b{at}"} for at in range(6_000)]
    begun = time.monotonic()
    write("cdi", json.dumps(spec))
    write("allocation-env", "".join(f"A{at}=\n" for at in range(30_000)))
    write("allocation-env", "BCD_DEVICE_ID=\n" * 16_000)
    assert time.monotonic() - begun < 20


def test_an_env_file_ends_with_its_last_line(host: GpuHost) -> None:
    assert "its last line does not end" in write("allocation-env", "BCD_ALLOCATION_ID=alloc_1")["msg"]


@pytest.mark.parametrize("kind", ["cdi", "allocation-env"])
def test_a_hold_that_root_keeps_is_root_s(host: GpuHost, kind: str) -> None:
    """To remove its specification would free its GPUs for others."""
    go(host, assign("alloc_1", uuids(host)[0]))
    host.calls.clear()
    told = write(kind, None)
    assert told["msg"] == (
        f"alloc_1 is a hold that root keeps ({STATE}/holds/alloc_1.json): ask for op devices to change or release it"
    )
    assert told["reason"] == "Refused"
    told = ask({"op": "slice.remove", "slice": "bcd-alloc-alloc_1.slice"})
    assert told["msg"].startswith("alloc_1 is a hold that root keeps")
    assert untouched(host)


# -- the token of a join


def test_there_are_no_more_files_and_slices_than_a_host_can_use(host: GpuHost) -> None:
    spec, env = of_ours(host, uuids(host)[0])
    for n in range(1024):
        host.put(f"/etc/cdi/bcd-x{n}.json", "{}")
        host.put(f"/run/bcd/allocations/x{n}.env", "")
        host.put(f"{slice_folder(f'x{n}')}/cgroup.events", "populated 1\nfrozen 0\n")
    for told, folder in (
        (write("cdi", spec), "/etc/cdi"),
        (write("allocation-env", env), "/run/bcd/allocations"),
        (apply(LIMITS), "/sys/fs/cgroup/bcd.slice/bcd-alloc.slice"),
    ):
        assert (told["reason"], told["changed"]) == ("Refused", False)
        assert told["msg"].startswith(f"{folder} has 10")
        assert told["msg"].endswith(" entries, and bcd helper adds none: remove those of allocations that ended")
    assert untouched(host)
    assert write("allocation-env", "BCD_ALLOCATION_ID=x7\n", "x7") == {"changed": True}  # one that is there
    assert write("allocation-env", None, "x9") == {"changed": True}
    assert write("allocation-env", env) == {"changed": True}


def test_a_token_is_laid_for_root_alone_and_taken_away(host: GpuHost) -> None:
    assert write("k8s-token", f" {TOKEN}\n", None) == {"changed": True}
    assert host.files[TOKEN_FILE] == File(f"{TOKEN}\n", 0o600)
    assert write("k8s-token", TOKEN, None) == {"changed": False}
    assert write("k8s-token", None, None) == {"changed": True}
    assert host.text(TOKEN_FILE) is None


@pytest.mark.parametrize("text", ["", "sesame", "ABCDEF.0123456789abcdef", f"{TOKEN}\n{TOKEN}", f"{TOKEN}\x00"])
def test_what_is_no_token_is_not_laid_nor_shown(host: GpuHost, text: str) -> None:
    told = write("k8s-token", text, None)
    assert told["reason"] == "Refused"
    assert "has not the form of a bootstrap token" in told["msg"]
    assert "sesame" not in told["msg"]
    assert untouched(host)


# -- slices

LIMITS = {"cpus": "0-3", "mems": "0", "memory_bytes": 1 << 30, "cpu_millis": 1500}


def apply(limits: Made, allocation: str = "alloc_1") -> Any:
    return ask({"op": "slice.apply", "slice": f"bcd-alloc-{allocation}.slice", "limits": limits})


def remove(allocation: str = "alloc_1") -> Any:
    return ask({"op": "slice.remove", "slice": f"bcd-alloc-{allocation}.slice"})


def test_a_slice_gets_its_limits_and_goes(host: GpuHost) -> None:
    told = apply(LIMITS)
    assert (told["state"], told["changed"]) == ("converged", True)
    assert host.text(f"{slice_folder('alloc_1')}/cpuset.cpus") == "0-3\n"
    assert host.text(f"{slice_folder('alloc_1')}/memory.max") == f"{1 << 30}\n"
    assert apply(LIMITS)["changed"] is False
    told = remove()
    assert (told["state"], told["changed"]) == ("converged", True)
    assert host.text(f"{slice_folder('alloc_1')}/cpuset.cpus") is None
    assert remove()["changed"] is False


def test_a_slice_that_a_workload_runs_in_stays(host: GpuHost) -> None:
    apply(LIMITS)
    run_in(host, "alloc_1")
    told = remove()
    assert [wait["reason"] for wait in told["pending"]] == ["Busy"]
    assert told["state"] == "progressing"
    assert host.text(f"{slice_folder('alloc_1')}/cpuset.cpus") == "0-3\n"


@pytest.mark.parametrize(
    "limits",
    [
        {"cpus": "0-3; reboot"},
        {"cpus": "0-3", "ExecStart": "/bin/sh"},
        {"cpus": 3},
        {"memory_bytes": -1},
        {"memory_bytes": 2**63},
        {"cpus": "0," * 600 + "1"},
        {"memory_bytes": True},
    ],
)
def test_limits_that_are_none_are_refused(host: GpuHost, limits: Made) -> None:
    told = apply(limits)
    assert (told["reason"], told["changed"]) == ("Refused", False)
    assert untouched(host)


# -- where signing is demanded


def test_where_signing_is_demanded_no_content_is_taken(host: GpuHost) -> None:
    spec, env = of_ours(host, uuids(host)[0])
    host.put(CONFIG, ControlPlane().config())
    demands = "command_root_sha256 in root's config.toml demands a signed spec, and none is given: "
    ask_for = "ask for op devices with signed_spec"
    for told in (write("cdi", spec), write("allocation-env", env), write("cdi", None)):
        assert told["reason"] == "Refused"
        assert told["msg"] == f"{demands}no CDI content is taken: {ask_for}"
    for told in (apply(LIMITS), remove()):
        assert told["reason"] == "Refused"
        assert told["msg"] == f"{demands}no slice is made or stopped by itself: {ask_for}"
    assert untouched(host)
    assert write("k8s-token", TOKEN, None) == {"changed": True}
