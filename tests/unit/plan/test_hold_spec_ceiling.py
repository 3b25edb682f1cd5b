# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CDI version of a hold's specification, and what a ceiling leaves out: a library of that age reads all of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cdi import VERSIONS, faults
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Held, Vendor
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hold_spec import from_spec, notes, render
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

NODE = {"path": "/dev/nvidia0"}
MOUNT = {"hostPath": "/lib/x.so", "containerPath": "/lib/x.so", "options": ["ro", "bind"]}

# What each version of CDI added, by where it stands. Everything else was there at first.
TOP = {"annotations": "0.6.0"}
OF_DEVICE = {"annotations": "0.6.0"}
OF_EDITS = {"intelRdt": "0.7.0", "additionalGids": "0.7.0", "netDevices": "1.1.0"}
OF_NODE = {"hostPath": "0.5.0"}
OF_MOUNT = {"type": "0.4.0"}
OF_RDT = {"schemata": "1.1.0", "enableMonitoring": "1.1.0"}


def needs(spec: dict[str, Any]) -> list[str]:
    """The versions that added a specification's keys, empty ones too: an old library refuses what it does not know."""
    found = ["0.3.0", *_of(spec, TOP)]
    every = [spec.get("containerEdits", {})]
    for device in spec["devices"]:
        found += _of(device, OF_DEVICE)
        every.append(device["containerEdits"])
    for edits in every:
        found += _of(edits, OF_EDITS)
        found += [version for each in edits.get("deviceNodes", ()) for version in _of(each, OF_NODE)]
        found += [version for each in edits.get("mounts", ()) for version in _of(each, OF_MOUNT)]
        found += _of(edits.get("intelRdt", {}), OF_RDT)
    return found


def _of(given: dict[str, Any], since: dict[str, str]) -> list[str]:
    return [since[key] for key in given if key in since]


def age(version: str) -> int:
    return VERSIONS.index(version)


# -- the lowest version


@pytest.mark.parametrize(
    ("common", "of_device", "version"),
    [
        ({}, {}, "0.6.0"),  # our annotations
        ({"mounts": [{**MOUNT, "type": "bind"}]}, {}, "0.6.0"),
        ({"deviceNodes": [{**NODE, "hostPath": "/dev/x"}]}, {}, "0.6.0"),
        ({"additionalGids": [44]}, {}, "0.7.0"),
        ({}, {"additionalGids": [44]}, "0.7.0"),
        ({"intelRdt": {"closID": "a"}}, {}, "0.7.0"),
        ({"intelRdt": {"closID": "a", "schemata": ["L3:0=f"]}}, {}, "1.1.0"),
        ({"netDevices": [{"hostInterfaceName": "ib0", "name": "ib0"}]}, {}, "1.1.0"),
    ],
)
def test_the_version_is_the_lowest_that_says_it(common: Any, of_device: Any, version: str) -> None:
    """Whatever version the vendor's file has."""
    spec = written(held(A), vendor({A: {**node("/dev/nvidia0"), **of_device}}, common, version="1.1.0"))
    assert spec["cdiVersion"] == version
    assert faults(spec) == []
    assert written(held(A), vendor({A: node("/dev/a")}), ceiling="1.1.0")["cdiVersion"] == "0.6.0"


@pytest.mark.parametrize(
    ("ceiling", "common", "version"),
    [
        ("0.3.0", {}, "0.3.0"),
        ("0.3.0", {"mounts": [{**MOUNT, "type": "bind"}]}, "0.3.0"),
        ("0.5.0", {}, "0.3.0"),
        ("0.5.0", {"mounts": [{**MOUNT, "type": "bind"}]}, "0.4.0"),
        ("0.5.0", {"deviceNodes": [{**NODE, "hostPath": "/dev/x"}]}, "0.5.0"),
        ("0.5.0", {"additionalGids": [44]}, "0.3.0"),
        ("0.6.0", {"additionalGids": [44]}, "0.6.0"),
        ("0.7.0", {"additionalGids": [44]}, "0.7.0"),
        ("1.0.0", {"intelRdt": {"closID": "a", "enableMonitoring": True}}, "0.7.0"),
        ("1.0.0", {"netDevices": [{"hostInterfaceName": "ib0", "name": "ib0"}]}, "0.6.0"),
    ],
)
def test_the_version_under_a_ceiling(ceiling: str, common: Any, version: str) -> None:
    spec = written(held(A), vendor({A: node("/dev/nvidia0")}, common), ceiling=ceiling)
    assert spec["cdiVersion"] == version
    assert faults(spec) == []


# -- what a ceiling leaves out


def test_a_hold_under_0_5_0_has_no_annotations_and_no_groups() -> None:
    """What Podman 4.3 reads."""
    vendors = (vendor({A: node("/dev/nvidia0")}, {"mounts": [MOUNT], "additionalGids": [44]}),)
    hold = held(A, reservation="r", generation=1, limits=Limits())
    assert written(hold, *vendors, ceiling="0.5.0") == {
        "cdiVersion": "0.3.0",
        "kind": "bcd.dev/gpu",
        "devices": [{"name": A, "containerEdits": node("/dev/nvidia0")}],
        "containerEdits": {
            "env": [
                "BCD_ALLOCATION_ID=alloc_1",
                "BCD_CGROUP_PARENT=bcd-alloc-alloc_1.slice",
                f"NVIDIA_VISIBLE_DEVICES={A}",
            ],
            "mounts": [MOUNT],
        },
    }
    said = f"max_cdi_version 0.5.0 leaves additionalGids of {JSON} out of the holds: it cannot say it"
    assert notes(hold, resolved(hold), vendors, wsl=False, ceiling="0.5.0") == (said,)
    assert notes(hold, resolved(hold), vendors, wsl=False, ceiling="0.7.0") == ()


def test_a_device_of_which_a_ceiling_leaves_nothing_has_its_id() -> None:
    spec = written(held(A), vendor({A: {"additionalGids": [44]}}), ceiling="0.6.0")
    assert spec["devices"][0]["containerEdits"] == {"env": [f"BCD_DEVICE_ID={A}"]}


def test_a_host_path_that_is_the_path_is_left_out() -> None:
    given = {"deviceNodes": [{**NODE, "hostPath": "/dev/nvidia0"}]}
    spec = written(held(A), vendor({A: given}), ceiling="0.4.0")
    assert spec["devices"][0]["containerEdits"] == node("/dev/nvidia0")


def test_another_device_than_the_vendors_is_not_given() -> None:
    given = {"deviceNodes": [{**NODE, "hostPath": "/dev/nvidia7"}]}
    hold = held(A)
    with pytest.raises(StepFailed) as raised:
        render(hold, resolved(hold), [vendor({A: given})], mps=False, wsl=False, ceiling="0.4.0")
    assert not raised.value.retryable
    assert raised.value.message == (
        f"{JSON} has the device /dev/nvidia7 as /dev/nvidia0, which CDI 0.4.0 cannot say: raise max_cdi_version to "
        "0.5.0"
    )


@pytest.mark.parametrize(
    ("mount", "options"),
    [
        ({**MOUNT, "type": "bind"}, ["ro", "bind"]),
        ({**MOUNT, "type": "none"}, ["ro", "bind"]),
        ({**MOUNT, "type": "bind", "options": ["ro", "rbind"]}, ["ro", "rbind"]),
        ({**MOUNT, "type": "bind", "options": ["ro"]}, ["ro", "bind"]),
        ({**MOUNT, "type": "none", "options": ["ro"]}, ["ro"]),
        ({**MOUNT, "type": "tmpfs"}, ["ro", "bind"]),  # the option decides, as runc has it
    ],
)
def test_a_bind_mount_is_one_without_its_type_too(mount: Any, options: list[str]) -> None:
    spec = written(held(A), vendor({A: node("/dev/a")}, {"mounts": [mount]}), ceiling="0.3.0")
    assert spec["containerEdits"]["mounts"] == [{**MOUNT, "options": options}]


def test_a_mount_that_would_be_another_is_not_given() -> None:
    given = {"mounts": [{"hostPath": "tmpfs", "containerPath": "/t", "type": "tmpfs"}]}
    hold = held(A)
    with pytest.raises(StepFailed) as raised:
        render(hold, resolved(hold), [vendor({A: node("/dev/a")}, given)], mps=False, wsl=False, ceiling="0.3.0")
    assert not raised.value.retryable
    assert raised.value.message == (
        f"{JSON} mounts a tmpfs on /t, which CDI 0.3.0 cannot say: raise max_cdi_version to 0.4.0"
    )


# -- whatever the vendor's file is made of

NAMES = [f"/dev/nvidia{number}" for number in range(4)]
SHARED = ("/run/nvidia-mps", "/dev/shm")
PATHS = ["/run/a", "/run/b", "/lib/c.so"]
TEXTS = st.sampled_from(["", "0", "y z"])
NODES = st.fixed_dictionaries(
    {"path": st.sampled_from(NAMES)},
    optional={
        "hostPath": st.sampled_from([*NAMES, ""]),
        "type": st.sampled_from(["", "c"]),
        "major": st.integers(0, 511),
        "fileMode": st.just(438),
        "permissions": st.sampled_from(["rw", "rwm"]),
    },
)
MOUNTS = st.fixed_dictionaries(
    {"hostPath": st.sampled_from(PATHS), "containerPath": st.sampled_from(PATHS)},
    optional={
        "options": st.lists(st.sampled_from(["ro", "bind", "rbind", "nosuid"]), unique=True),
        "type": st.sampled_from(["", "bind", "none", "tmpfs"]),
    },
)
HOOKS = st.fixed_dictionaries(
    {"hookName": st.sampled_from(["createContainer", "poststop"]), "path": st.sampled_from(PATHS)},
    optional={"args": st.lists(TEXTS, max_size=2), "env": st.just(["X=1"]), "timeout": st.integers(0, 9)},
)
RDT = st.fixed_dictionaries(
    {}, optional={"closID": st.just("a"), "schemata": st.just(["L3:0=f"]), "enableMonitoring": st.booleans()}
)
NETS = st.lists(st.sampled_from(["ib0", "ib1"]), unique=True).map(
    lambda names: [{"hostInterfaceName": name, "name": f"{name}c"} for name in names]
)
KEYS = st.sampled_from(["NVIDIA_VISIBLE_DEVICES", "CUDA_X", "BCD_ALLOCATION_ID"])
EDITS = st.fixed_dictionaries(
    {},
    optional={
        "env": st.lists(st.builds("{}={}".format, KEYS, TEXTS), max_size=3),
        "deviceNodes": st.lists(NODES, max_size=3, unique_by=lambda each: str(each["path"])),
        "mounts": st.lists(MOUNTS, max_size=3, unique_by=lambda each: str(each["containerPath"])),
        "hooks": st.lists(HOOKS, max_size=2),
        "netDevices": NETS,
        "intelRdt": RDT,
        "additionalGids": st.lists(st.integers(0, 2**32 - 1), max_size=2),
    },
)
WITH_EDITS = EDITS.filter(lambda edits: any(edits.values()))
CEILINGS = st.sampled_from([None, *VERSIONS])
ATOMS = st.lists(st.sampled_from([A, f"{B}/s0", f"{B}/s1", f"{B}/gi1/ci0"]), min_size=1, unique=True)


@st.composite
def holds(draw: st.DrawFn) -> Held:
    """A hold of some of three devices, as it is before it is written."""
    return held(
        *draw(ATOMS),
        binding=draw(st.sampled_from([HOLD, HOLD, KUBERNETES])),
        reservation=draw(st.sampled_from(["", "rsv_1"])),
        generation=draw(st.integers(0, 2**63 - 1)),
        limits=draw(st.sampled_from([None, Limits(), Limits(cpus="0-3")])),
    )


@st.composite
def files(draw: st.DrawFn) -> list[Vendor]:
    """One or two vendor's files, which describe all devices between them."""
    first = vendor({name: draw(WITH_EDITS) for name in (A, B, MIG_UUID)}, draw(EDITS))
    some = draw(st.lists(st.sampled_from([A, B, MIG_UUID]), unique=True))
    second = vendor({name: draw(WITH_EDITS) for name in some}, draw(EDITS), YAML)
    return [first, second] if some else [first]


def entry(vendors: list[Vendor], name: str) -> tuple[str, Any]:
    """The file that describes a device, and its edits, the last file first."""
    found = [
        (each.path, device["containerEdits"])
        for each in vendors
        for device in (each.spec or {})["devices"]
        if device["name"] == name
    ]
    return found[-1]


def all_given(vendors: list[Vendor], hold: Held) -> tuple[dict[str, Any], list[Any]]:
    """What a plain hold's containers are to have: the edits by device, and those of all, the outranking file first."""
    by_device, paths = {}, set()
    for each in resolved(hold):
        path, edits = entry(vendors, each.visible)
        by_device[each.device.id] = edits
        paths.add(path)
    common = [(each.spec or {}).get("containerEdits", {}) for each in reversed(vendors) if each.path in paths]
    return by_device, common


def first_by(key: str, lists: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Of those with the same key, the first."""
    found: dict[str, dict[str, Any]] = {}
    for each in [element for elements in lists for element in elements]:
        found.setdefault(str(each[key]), each)
    return list(found.values())


def shown(edits: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Device nodes and mounts as a container sees them: what, where, and how."""
    nodes = [(each["path"], each.get("hostPath") or each["path"]) for each in edits.get("deviceNodes", ())]
    mounts = []
    for each in edits.get("mounts", ()):
        kind, options = each.get("type") or "none", set(each.get("options", ()))
        kind = "bind" if options & {"bind", "rbind"} or kind == "bind" else kind
        mounts.append((each["hostPath"], each["containerPath"], kind, "ro" in options, "nosuid" in options))
    return nodes, mounts


@given(hold=holds(), vendors=files(), ceiling=CEILINGS, mps=st.booleans())
def test_every_result_is_sound_and_whole_and_of_the_lowest_version(
    hold: Held, vendors: list[Vendor], ceiling: str | None, mps: bool
) -> None:
    by_device, common = all_given(vendors, hold)
    if hold.binding == KUBERNETES:
        by_device, common = {atom: {} for atom in by_device}, []
    ours = [{"hostPath": path, "containerPath": path, "options": ["nosuid", "bind"]} for path in SHARED]
    ours = ours if mps and any("/s" in device.id for device in hold.devices) else []
    shared = {
        "deviceNodes": first_by("path", [edits.get("deviceNodes", []) for edits in common]),
        "mounts": first_by("containerPath", [ours, *(edits.get("mounts", []) for edits in common)]),
    }
    every = [shared, *by_device.values()]
    unsayable = [
        age(version) > age(ceiling or VERSIONS[-1])
        for nodes, mounts in map(shown, every)
        for version in (
            *("0.5.0" for path, host in nodes if path != host),
            *("0.4.0" for mount in mounts if mount[2] == "tmpfs"),
        )
    ]
    if any(unsayable):
        with pytest.raises(StepFailed) as raised:
            render(hold, resolved(hold), vendors, mps, wsl=False, ceiling=ceiling)
        assert not raised.value.retryable
        return
    spec = written(hold, *vendors, mps=mps, ceiling=ceiling)
    assert faults(spec) == []
    assert age(spec["cdiVersion"]) == max(map(age, needs(spec)))
    assert age(spec["cdiVersion"]) <= age(ceiling or VERSIONS[-1])
    assert shown(spec["containerEdits"]) == shown(shared)
    assert [shown(each["containerEdits"]) for each in spec["devices"]] == [shown(edits) for edits in by_device.values()]
    if ceiling is None:
        gids = {gid for edits in common for gid in edits.get("additionalGids", ())}
        assert set(spec["containerEdits"].get("additionalGids", ())) == gids


@given(hold=holds(), vendors=files(), ceiling=st.sampled_from([None, "0.5.0", "0.6.0"]))
def test_what_is_written_tells_of_its_hold(hold: Held, vendors: list[Vendor], ceiling: str | None) -> None:
    text = render(hold, resolved(hold), vendors, mps=False, wsl=False, ceiling=ceiling)
    sliced = hold.limits is not None and hold.binding == HOLD
    told = hold._replace(limits=Limits() if sliced else None, spec_text=text)
    told = told._replace(reservation="", generation=0) if ceiling == "0.5.0" else told
    assert from_spec("p", text, hold.allocation) == told
