# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CDI specification and the env file of a hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cdi import faults
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Vendor
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hold_spec import (
    cgroup_parent,
    device_name,
    env_file,
    env_in,
    env_path,
    from_spec,
    lacking,
    notes,
    render,
    require_paths,
    spec_path,
    visible_in,
)
from tests import captures
from tests.unit.plan.hold_samples import (
    HOLD,
    JSON,
    KUBERNETES,
    MIG_UUID,
    YAML,
    A,
    B,
    Limits,
    held,
    node,
    resolved,
    vendor,
    written,
)

# The specification's example, and the vendor's file that it is made of.
CUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"
MOUNT = {"hostPath": CUDA, "containerPath": CUDA, "options": ["ro", "nosuid", "nodev", "bind"]}
HOOK = {
    "hookName": "createContainer",
    "path": "/usr/bin/nvidia-cdi-hook",
    "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib/x86_64-linux-gnu"],
}
COMMON = {
    "env": ["NVIDIA_VISIBLE_DEVICES=void"],
    "deviceNodes": [{"path": "/dev/nvidiactl"}, {"path": "/dev/nvidia-uvm"}],
    "hooks": [HOOK],
    "mounts": [MOUNT],
    "additionalGids": [44],
}
VENDOR = vendor({A: node("/dev/nvidia0"), B: node("/dev/nvidia1")}, COMMON, version="0.7.0")
EXAMPLE = held(A, allocation="alloc_01jz8k2v", reservation="rsv_01jz8k1q", generation=42, limits=Limits(cpus="0-7"))
TEXT = """{
  "cdiVersion": "0.7.0",
  "kind": "bcd.dev/gpu",
  "annotations": {
    "bcd.dev/allocation-id": "alloc_01jz8k2v",
    "bcd.dev/reservation-id": "rsv_01jz8k1q",
    "bcd.dev/generation": "42",
    "bcd.dev/cgroup-parent": "bcd-alloc-alloc_01jz8k2v.slice"
  },
  "devices": [
    {
      "name": "GPU-5f1c2a90-0000-4000-8000-000000000001",
      "annotations": {
        "bcd.dev/device-id": "GPU-5f1c2a90-0000-4000-8000-000000000001"
      },
      "containerEdits": {
        "deviceNodes": [
          {
            "path": "/dev/nvidia0"
          }
        ]
      }
    }
  ],
  "containerEdits": {
    "env": [
      "BCD_ALLOCATION_ID=alloc_01jz8k2v",
      "BCD_CGROUP_PARENT=bcd-alloc-alloc_01jz8k2v.slice",
      "NVIDIA_VISIBLE_DEVICES=GPU-5f1c2a90-0000-4000-8000-000000000001"
    ],
    "deviceNodes": [
      {
        "path": "/dev/nvidiactl"
      },
      {
        "path": "/dev/nvidia-uvm"
      }
    ],
    "mounts": [
      {
        "hostPath": "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06",
        "containerPath": "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06",
        "options": [
          "ro",
          "nosuid",
          "nodev",
          "bind"
        ]
      }
    ],
    "hooks": [
      {
        "hookName": "createContainer",
        "path": "/usr/bin/nvidia-cdi-hook",
        "args": [
          "nvidia-cdi-hook",
          "update-ldcache",
          "--folder",
          "/usr/lib/x86_64-linux-gnu"
        ]
      }
    ],
    "additionalGids": [
      44
    ]
  }
}
"""
ENV_FILE = """\
BCD_ALLOCATION_ID=alloc_01jz8k2v
BCD_CGROUP_PARENT=bcd-alloc-alloc_01jz8k2v.slice
BCD_RESERVATION_ID=rsv_01jz8k1q
NVIDIA_VISIBLE_DEVICES=GPU-5f1c2a90-0000-4000-8000-000000000001
"""


def edits(spec: dict[str, Any]) -> dict[str, Any]:
    """The edits of each device by name."""
    return {device["name"]: device["containerEdits"] for device in spec["devices"]}


def env(spec: dict[str, Any]) -> list[str]:
    """The variables of all devices."""
    found: list[str] = spec["containerEdits"]["env"]
    return found


def refused(hold: Any, *vendors: Vendor, wsl: bool = False, ceiling: str | None = None) -> StepFailed:
    with pytest.raises(StepFailed) as raised:
        render(hold, resolved(hold), vendors, mps=False, wsl=wsl, ceiling=ceiling)
    return raised.value


# -- the specification's example


def test_the_example_is_written_to_the_byte() -> None:
    assert render(EXAMPLE, resolved(EXAMPLE), (VENDOR,), mps=False, wsl=False, ceiling=None) == TEXT


def test_the_env_file_of_the_example_is_written_to_the_byte() -> None:
    assert env_file(EXAMPLE, [A], mps=False) == ENV_FILE


def test_where_they_lie() -> None:
    assert spec_path("alloc_01jz8k2v") == "/etc/cdi/bcd-alloc_01jz8k2v.json"
    assert env_path("alloc_01jz8k2v") == "/run/bcd/allocations/alloc_01jz8k2v.env"


# -- devices


@pytest.mark.parametrize(
    ("atom", "name"), [(A, A), (f"{A}/gi1/ci0", f"{A}_gi1_ci0"), (f"{A}/s3", f"{A}_s3")]
)  # fmt: skip
def test_a_device_is_named_without_slashes_and_annotated_with_its_id(atom: str, name: str) -> None:
    assert device_name(atom) == name
    (device,) = written(held(atom), vendor({A: node("/dev/nvidia0"), MIG_UUID: node("/dev/nvidia-caps/cap1")}))[
        "devices"
    ]
    assert (device["name"], device["annotations"]) == (name, {"bcd.dev/device-id": atom})


def test_each_device_has_the_edits_of_what_it_stands_for() -> None:
    """A slot those of its GPU, also two of one GPU, and a MIG instance those of its MIG device."""
    hold = held(f"{A}/s0", f"{A}/s1", B, f"{B}/gi1/ci0")
    spec = written(
        hold, vendor({A: node("/dev/a"), B: node("/dev/b"), MIG_UUID: node("/dev/c"), "all": node("/dev/d")})
    )
    assert edits(spec) == {
        f"{A}_s0": node("/dev/a"),
        f"{A}_s1": node("/dev/a"),
        B: node("/dev/b"),
        f"{B}_gi1_ci0": node("/dev/c"),
    }
    assert env(spec)[-1] == f"NVIDIA_VISIBLE_DEVICES={A},{B},{MIG_UUID}"


def test_a_recorded_specification_of_a_host_with_mig() -> None:
    """What nvidia-ctk wrote for 8 GPUs, one of which is in MIG mode with four instances."""
    spec = json.loads(captures.session("ctk_cdi_mig_uuid_json")[0].text)
    hold = held("GPU-01000100-0000-0000-0000-000000000000/gi7/ci0")
    found = written(hold, Vendor(JSON, spec))
    assert found["cdiVersion"] == "0.6.0"  # its own annotations; the vendor's file says 0.3.0
    (one,) = found["devices"]
    nodes = ["/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"]
    assert [each["path"] for each in one["containerEdits"]["deviceNodes"]] == nodes
    common = found["containerEdits"]
    assert env(found) == [
        "BCD_ALLOCATION_ID=alloc_1",
        f"NVIDIA_VISIBLE_DEVICES={MIG_UUID}",
        "NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu",
    ]
    for kind in ("deviceNodes", "mounts", "hooks"):
        assert common[kind] == spec["containerEdits"][kind]


def test_the_vendor_sets_none_of_our_variables() -> None:
    of_device = {**node("/dev/nvidia0"), "env": ["NVIDIA_VISIBLE_DEVICES=0", "BCD_ALLOCATION_ID=x", "CUDA_X=1"]}
    common = {"env": ["NVIDIA_VISIBLE_DEVICES=all", "BCD_ALLOCATION_ID=y", "CUDA_Y=2"]}
    spec = written(held(A), vendor({A: of_device}, common))
    assert edits(spec)[A]["env"] == ["CUDA_X=1"]
    assert env(spec) == ["BCD_ALLOCATION_ID=alloc_1", f"NVIDIA_VISIBLE_DEVICES={A}", "CUDA_Y=2"]


def test_a_device_whose_only_edit_is_not_taken_has_its_id() -> None:
    spec = written(held(A), vendor({A: {"env": ["NVIDIA_VISIBLE_DEVICES=0"]}}))
    assert edits(spec) == {A: {"env": [f"BCD_DEVICE_ID={A}"]}}


@pytest.mark.parametrize("empty", [{"mounts": [], "hooks": []}, {"intelRdt": {}}])
def test_what_is_empty_is_left_out(empty: dict[str, Any]) -> None:
    spec = written(held(A), vendor({A: {**node("/dev/a"), **empty}}, empty))
    assert edits(spec)[A] == node("/dev/a")
    assert list(spec["containerEdits"]) == ["env"]


def test_an_empty_key_in_a_node_or_mount_is_left_out() -> None:
    """A library of before 0.5.0 knows no hostPath, and refuses it empty too."""
    given = {"deviceNodes": [{"path": "/dev/a", "hostPath": "", "minor": 0}]}
    mounts = {"mounts": [{"hostPath": "/m", "containerPath": "/m", "type": "", "options": []}]}
    spec = written(held(A), vendor({A: given}, mounts))
    assert edits(spec)[A] == {"deviceNodes": [{"path": "/dev/a", "minor": 0}]}
    assert spec["containerEdits"]["mounts"] == [{"hostPath": "/m", "containerPath": "/m"}]


def test_a_hold_without_limits_names_no_slice() -> None:
    spec = written(held(A, reservation="rsv_1", generation=7), VENDOR)
    assert spec["annotations"] == {
        "bcd.dev/allocation-id": "alloc_1",
        "bcd.dev/reservation-id": "rsv_1",
        "bcd.dev/generation": "7",
    }
    assert cgroup_parent(held(A)) == ""
    assert cgroup_parent(held(A, limits=Limits())) == "bcd-alloc-alloc_1.slice"
    assert cgroup_parent(held(A, binding=KUBERNETES, limits=Limits())) == ""


# -- whose edits


def test_the_outranking_file_is_the_one_that_is_used() -> None:
    """NVIDIA's newer toolkits write YAML to /run/cdi, which runtimes prefer to /etc/cdi."""
    old = vendor({A: node("/dev/old")}, {"env": ["OLD=1"], "mounts": [MOUNT]}, JSON)
    new = vendor({A: node("/dev/new")}, {"env": ["NEW=1"]}, YAML)
    spec = written(held(A), old, new)
    assert edits(spec) == {A: node("/dev/new")}
    assert env(spec)[2:] == ["NEW=1"]
    assert "mounts" not in spec["containerEdits"]


def test_devices_of_two_files_have_the_common_edits_of_both_once() -> None:
    other = {**MOUNT, "hostPath": "/opt/libcuda.so"}
    old = vendor({A: node("/dev/a"), B: node("/dev/old")}, {"mounts": [MOUNT], "hooks": [HOOK], "env": ["X=1", "Y=1"]})
    new = vendor(
        {B: node("/dev/b")}, {"mounts": [other], "hooks": [HOOK], "env": ["X=2"], "additionalGids": [44]}, YAML
    )
    spec = written(held(A, B), old, new)
    assert edits(spec) == {A: node("/dev/a"), B: node("/dev/b")}
    assert env(spec)[2:] == ["X=2", "Y=1"]  # the outranking file's value
    common = spec["containerEdits"]
    assert (common["mounts"], common["hooks"], common["additionalGids"]) == ([other], [HOOK], [44])


def test_a_device_that_no_file_names_is_waited_for() -> None:
    """Only device names by UUID are found: by index, and "all", stand for other devices on another day."""
    for_others = vendor({"0": node("/dev/nvidia0"), "all": node("/dev/nvidia0"), B: node("/dev/nvidia1")}, path=YAML)
    failed = refused(held(A), vendor({B: node("/dev/b")}), for_others)
    assert failed.retryable
    assert failed.message.startswith(f"{JSON}, {YAML}: no device {A} with edits is in it: ")


def test_an_entry_without_edits_counts_as_missing() -> None:
    failed = refused(held(A), vendor({A: {"mounts": []}, B: node("/dev/b")}))
    assert failed.retryable
    assert f"no device {A} with edits" in failed.message
    assert edits(written(held(A), vendor({A: node("/dev/a")}), vendor({A: {}}, path=YAML))) == {A: node("/dev/a")}


def test_all_stands_for_a_gpu_on_wsl_only() -> None:
    only = vendor({"all": node("/dev/dxg")})
    assert edits(written(held(A), only, wsl=True)) == {A: node("/dev/dxg")}
    assert edits(written(held(A), vendor({A: node("/dev/a"), "all": node("/dev/dxg")}), wsl=True)) == {
        A: node("/dev/a")
    }
    assert f"no device {A}" in refused(held(A), only).message


def test_a_file_that_cannot_be_read_is_waited_for_where_it_could_outrank() -> None:
    good, bad = vendor({A: node("/dev/a")}), Vendor(YAML, None, "it has no kind")
    failed = refused(held(A), good, bad)
    assert failed.retryable
    assert failed.message.startswith(f"{YAML}: it has no kind: ")
    assert edits(written(held(A), Vendor(JSON, None, "it has no kind"), good._replace(path=YAML))) == {
        A: node("/dev/a")
    }


def test_a_fault_that_names_its_file_names_it_once() -> None:
    assert refused(held(A), Vendor(YAML, None, f"{YAML} line 3: odd")).message.startswith(f"{YAML} line 3: odd: ")


def test_without_any_file_there_are_variables_only() -> None:
    hold = held(A, f"{B}/s1")
    spec = written(hold)
    assert edits(spec) == {A: {"env": [f"BCD_DEVICE_ID={A}"]}, f"{B}_s1": {"env": [f"BCD_DEVICE_ID={B}/s1"]}}
    assert spec["containerEdits"] == {"env": ["BCD_ALLOCATION_ID=alloc_1", f"NVIDIA_VISIBLE_DEVICES={A},{B}"]}
    (said,) = notes(hold, resolved(hold), (), wsl=False, ceiling=None)
    assert said.startswith("no CDI specification of nvidia.com/gpu is on this host: ")
    assert said.endswith(": configure container_toolkit")
    assert len(said) <= 160  # the pass report shows no more of a note, and the next move is at its end
    assert notes(hold, resolved(hold), (vendor({A: node("/dev/a"), B: node("/dev/b")}),), wsl=False, ceiling=None) == ()


def test_a_hold_that_has_edits_keeps_them_while_no_file_is_there() -> None:
    """What nvidia-cdi-refresh writes lies below /run, and is made again some time after a boot."""
    failed = refused(EXAMPLE._replace(spec_text=TEXT))
    assert failed.retryable
    assert "/etc/cdi/bcd-alloc_01jz8k2v.json stays as it was made of one" in failed.message
    bare = render(EXAMPLE, resolved(EXAMPLE), (), mps=False, wsl=False, ceiling=None)
    for text in (bare, "{", "[]", '{"devices": 1}', '{"devices": [1, {"containerEdits": 1}]}'):
        again = render(EXAMPLE._replace(spec_text=text), resolved(EXAMPLE), (), mps=False, wsl=False, ceiling=None)
        assert again == bare


def test_a_result_that_no_runtime_takes_is_not_written() -> None:
    twice = {"netDevices": [{"hostInterfaceName": "ib0", "name": "a"}, {"hostInterfaceName": "ib0", "name": "b"}]}
    failed = refused(held(A), vendor({A: twice}))
    assert failed.retryable
    assert "/etc/cdi/bcd-alloc_1.json" in failed.message
    assert f"with what {JSON} says (the hostInterfaceName ib0 is there twice in the device {A})" in failed.message


def test_a_hold_without_devices_is_not_written() -> None:
    assert "it has no device" in refused(held()).message


# -- what this host lacks


def test_what_a_hold_needs_and_the_host_lacks() -> None:
    stale = vendor({A: node("/dev/nvidia0"), B: node("/dev/nvidia1")}, COMMON, gone=[CUDA, "/dev/nvidia1", "/x"])
    assert lacking([stale], resolved(held(A))) == (f"{CUDA}, which {JSON} names",)
    assert lacking([stale], resolved(held(B))) == (f"/dev/nvidia1, which {JSON} names", f"{CUDA}, which {JSON} names")
    assert lacking([VENDOR], resolved(held(A))) == ()
    assert lacking([], resolved(held(A))) == ()
    outranked = vendor({A: node("/dev/a")}, path=YAML)
    assert lacking([stale, outranked], resolved(held(A))) == ()


def test_a_new_hold_waits_for_what_the_host_lacks() -> None:
    stale = vendor({A: node("/dev/nvidia0")}, COMMON, gone=[CUDA, "/dev/nvidia0"])
    with pytest.raises(StepFailed) as raised:
        require_paths(held(A), resolved(held(A)), [stale], wsl=False)
    assert raised.value.retryable
    assert f"/dev/nvidia0, which {JSON} names and 1 more" in raised.value.message
    for hold, vendors in ((held(A, binding=KUBERNETES), [stale]), (held(A), [VENDOR]), (held(A), [])):
        require_paths(hold, resolved(hold), vendors, wsl=False)


# -- MPS


def test_a_slot_hold_has_what_an_mps_client_needs() -> None:
    spec = written(held(f"{A}/s1", limits=Limits()), VENDOR, mps=True)
    assert env(spec) == [
        "BCD_ALLOCATION_ID=alloc_1",
        "BCD_CGROUP_PARENT=bcd-alloc-alloc_1.slice",
        "CUDA_MPS_PIPE_DIRECTORY=/run/nvidia-mps",
        f"NVIDIA_VISIBLE_DEVICES={A}",
    ]
    options = ["rw", "nosuid", "nodev", "bind"]
    assert spec["containerEdits"]["mounts"] == [
        {"hostPath": "/run/nvidia-mps", "containerPath": "/run/nvidia-mps", "options": options},
        {"hostPath": "/dev/shm", "containerPath": "/dev/shm", "options": options},
        MOUNT,
    ]


@pytest.mark.parametrize(("atom", "mps"), [(A, True), (f"{A}/gi1/ci0", True), (f"{A}/s1", False)])
def test_others_have_nothing_of_mps(atom: str, mps: bool) -> None:
    spec = written(held(atom), vendor({A: node("/dev/a"), MIG_UUID: node("/dev/m")}), mps=mps)
    assert "mounts" not in spec["containerEdits"]
    assert "CUDA_MPS" not in json.dumps(spec)
    assert "CUDA_MPS" not in env_file(held(atom), [A], mps)


# -- Kubernetes


@pytest.mark.parametrize("vendors", [(), (VENDOR,), (Vendor(JSON, None, "it is no mapping"),)])
def test_a_kubernetes_hold_has_no_edits_of_the_vendor(vendors: tuple[Vendor, ...]) -> None:
    hold = held(A, f"{B}/s2", binding=KUBERNETES, reservation="rsv_1", generation=3, limits=Limits(memory_bytes=1))
    spec = written(hold, *vendors)
    assert spec["annotations"] == {
        "bcd.dev/allocation-id": "alloc_1",
        "bcd.dev/reservation-id": "rsv_1",
        "bcd.dev/generation": "3",
        "bcd.dev/binding": "kubernetes",
    }
    assert edits(spec) == {A: {"env": [f"BCD_DEVICE_ID={A}"]}, f"{B}_s2": {"env": [f"BCD_DEVICE_ID={B}/s2"]}}
    assert spec["containerEdits"] == {"env": ["BCD_ALLOCATION_ID=alloc_1"]}
    assert faults(spec) == []
    assert notes(hold, resolved(hold), vendors, wsl=False, ceiling="0.3.0") == ()


def test_the_env_file_of_a_kubernetes_hold_names_the_devices() -> None:
    text = env_file(held(A, binding=KUBERNETES, reservation="rsv_1", limits=Limits()), [A], mps=False)
    assert text == f"BCD_ALLOCATION_ID=alloc_1\nBCD_RESERVATION_ID=rsv_1\nNVIDIA_VISIBLE_DEVICES={A}\n"


# -- the env file


def test_every_line_of_the_env_file_in_order() -> None:
    hold = held(f"{A}/s1", f"{A}/s2", f"{B}/gi1/ci0", reservation="r", limits=Limits(), env=("MODEL=a b", "X=1=2"))
    text = env_file(hold, [A, A, MIG_UUID], mps=True)
    assert text.split("\n") == [
        "BCD_ALLOCATION_ID=alloc_1",
        "BCD_CGROUP_PARENT=bcd-alloc-alloc_1.slice",
        "CUDA_MPS_PIPE_DIRECTORY=/run/nvidia-mps",
        "BCD_RESERVATION_ID=r",
        f"NVIDIA_VISIBLE_DEVICES={A},{MIG_UUID}",
        "MODEL=a b",
        "X=1=2",
        "",
    ]
    assert env_in(text) == ("MODEL=a b", "X=1=2")


def test_an_env_file_without_a_device_gives_none_away() -> None:
    """Without the variable, an image's own counts, which is "all"."""
    assert env_file(held(A), [], mps=False) == "BCD_ALLOCATION_ID=alloc_1\nNVIDIA_VISIBLE_DEVICES=void\n"


# -- what a specification tells


@pytest.mark.parametrize("ceiling", [None, "0.5.0"])
@pytest.mark.parametrize("binding", [HOLD, KUBERNETES])
@pytest.mark.parametrize("limits", [None, Limits()])
def test_a_hold_is_known_by_its_specification(ceiling: str | None, binding: str, limits: Any) -> None:
    hold = held(A, f"{B}/gi1/ci0", f"{B}/s4", binding=binding, reservation="rsv_1", generation=9, limits=limits)
    vendors = (vendor({A: node("/dev/a"), B: node("/dev/b"), MIG_UUID: node("/dev/c")}),)
    text = render(hold, resolved(hold), vendors, mps=True, wsl=False, ceiling=ceiling)
    told = hold if ceiling is None else hold._replace(reservation="", generation=0)
    told = told._replace(limits=None) if binding == KUBERNETES else told
    assert from_spec("/etc/cdi/bcd-alloc_1.json", text, "alloc_1") == told._replace(spec_text=text)
    assert visible_in(text) == (() if binding == KUBERNETES else (A, MIG_UUID, B))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[" * 100000, "is no JSON"),
        ("[]", "names no device that is known"),
        ("{}", "names no device that is known"),
        ('{"kind": "nvidia.com/gpu", "devices": [{"name": "GPU-1"}]}', "names no device that is known"),
        ('{"kind": "bcd.dev/gpu", "devices": []}', "names no device that is known"),
        ('{"kind": "bcd.dev/gpu", "devices": [{"name": "eth0"}]}', "names no device that is known"),
        ('{"kind": "bcd.dev/gpu", "devices": [1]}', "names no device that is known"),
    ],
    ids=range(9),
)
def test_what_cannot_be_made_out_has_a_fault(text: str, said: str) -> None:
    found = from_spec("/etc/cdi/bcd-a.json", text, "a")
    assert (found.allocation, found.devices, found.spec_text) == ("a", (), text)
    assert found.fault.startswith(f"/etc/cdi/bcd-a.json {said}")
    assert visible_in(text) == ()


@pytest.mark.parametrize(
    "rest",
    [
        {"annotations": []},
        {"annotations": {"bcd.dev/generation": "9" * 5000, "bcd.dev/reservation-id": 1}},
        {"annotations": {"bcd.dev/generation": "²"}},
        {"containerEdits": None},
        {"containerEdits": {"env": 1}},
        {"containerEdits": {"env": [1, "NVIDIA_VISIBLE_DEVICES"]}},
    ],
)
def test_odd_texts_beside_the_devices_tell_nothing(rest: dict[str, Any]) -> None:
    found = from_spec("p", json.dumps({"kind": "bcd.dev/gpu", "devices": [{"name": A}, {"name": A}], **rest}), "a")
    assert [device.id for device in found.devices] == [A]
    assert (found.fault, found.reservation, found.generation, found.limits) == ("", "", 0, None)


@pytest.mark.parametrize(
    ("annotations", "env", "binding"),
    [
        ({"bcd.dev/binding": "kubernetes"}, [f"NVIDIA_VISIBLE_DEVICES={A}"], KUBERNETES),
        ({"bcd.dev/allocation-id": "a"}, [], HOLD),
        ({}, [f"NVIDIA_VISIBLE_DEVICES={A}"], HOLD),
        ({}, [], KUBERNETES),  # a release that waits for pods is the careful one
    ],
)
def test_the_annotations_tell_the_binding_and_without_any_the_variables_do(
    annotations: dict[str, str], env: list[str], binding: str
) -> None:
    spec = {"kind": "bcd.dev/gpu", "annotations": annotations, "devices": [{"name": A}], "containerEdits": {"env": env}}
    assert from_spec("p", json.dumps(spec), "a").binding == binding
