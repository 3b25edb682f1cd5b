# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI specifications by the reference library's rules."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import cdi_rules
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cdi import (
    device_names,
    faults,
    host_paths,
    is_plain,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cdi_rules import minimum_version
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hold_edits import with_edits
from tests import captures

OF_NODE, AT_NODE = "the device node /dev/nvidia0 of the device GPU-1 has", "devices.0.containerEdits.deviceNodes.0"
NODE = {"path": "/dev/nvidia0"}
SOUND: dict[str, Any] = {
    "cdiVersion": "0.3.0",
    "kind": "nvidia.com/gpu",
    "devices": [{"name": "GPU-1", "containerEdits": {"deviceNodes": [NODE]}}],
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """SOUND with the value at a path such as devices.0.name; None takes it away."""
    spec = copy.deepcopy(SOUND)
    at: Any = spec
    *above, last = path.split(".")
    for word in above:
        at = at[int(word)] if isinstance(at, list) else at.setdefault(word, {})
    key: Any = int(last) if isinstance(at, list) else last
    if value is None:
        del at[key]
    else:
        at[key] = value
    return spec


def net(host: str, name: str) -> dict[str, str]:
    return {"hostInterfaceName": host, "name": name}


RECORDED = [name for name in captures.names("ctk_cdi") if "json" in name or "no_all" in name]


@pytest.mark.parametrize("name", RECORDED)
def test_what_nvidia_ctk_writes_is_sound_and_of_the_lowest_version(name: str) -> None:
    for command in captures.session(name):
        spec = json.loads(command.text)
        assert faults(spec) == cdi_rules.faults(spec) == []
        # plain is what is asked for: devices by UUID, not by index, as 0:0 and mig0:0
        assert is_plain(spec) == (not any(name[0].isdigit() or ":" in name for name in device_names(spec)))
        assert minimum_version(spec) == spec["cdiVersion"]
        assert "/dev/nvidiactl" in host_paths(spec)
        assert "/usr/bin/nvidia-cdi-hook" in host_paths(spec)


def test_there_are_recordings() -> None:
    assert len(RECORDED) == 6


def test_mig_devices_by_uuid() -> None:
    spec = json.loads(captures.session("ctk_cdi_mig_uuid_json")[0].text)
    names = device_names(spec)
    assert [name[:3] for name in names] == ["GPU"] * 7 + ["MIG"] * 4 + ["all"]
    assert "/dev/nvidia-caps/nvidia-cap21" in host_paths(spec)


@pytest.mark.parametrize(
    ("path", "value", "needs"),
    [
        ("devices.0.name", "a", "0.3.0"),
        ("containerEdits.mounts", [{"hostPath": "/a", "containerPath": "/a", "type": "bind"}], "0.4.0"),
        ("devices.0.name", "0:0", "0.5.0"),
        (f"{AT_NODE}.hostPath", "/dev/x", "0.5.0"),
        ("annotations", {"a": "b"}, "0.6.0"),
        ("devices.0.annotations", {"a": "b"}, "0.6.0"),
        ("kind", "nvidia.com/gpu.coherent", "0.6.0"),
        ("containerEdits.additionalGids", [44], "0.7.0"),
        ("containerEdits.intelRdt", {"closID": "x"}, "0.7.0"),
        ("containerEdits.netDevices", [{"hostInterfaceName": "eth0", "name": "eth1"}], "1.1.0"),
    ],
)
def test_the_version_follows_the_content(path: str, value: Any, needs: str) -> None:
    spec = changed(path, value)
    assert minimum_version(spec) == needs
    spec["cdiVersion"] = needs
    assert faults(spec) == []
    if needs != "0.3.0":
        spec["cdiVersion"] = "0.3.0"
        assert faults(spec) == [f"its cdiVersion is 0.3.0, and what it says needs {needs}"]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("cdiVersion", None, "it has no cdiVersion"),
        ("cdiVersion", "9.9.9", "its cdiVersion '9.9.9' is not known"),
        ("kind", "nvidia.com", "its kind 'nvidia.com' is no vendor/class"),
        ("kind", "1a/b", "its kind '1a/b' is no vendor/class"),
        ("kind", "a/b-", "its kind 'a/b-' is no vendor/class"),
        ("extra", 1, "it has 'extra', which no CDI specification has"),
        ("devices", None, "it has no devices"),
        ("devices", [], "it has no device"),
        ("devices.0.name", "-a", "device 0 has the name '-a', which is none"),
        ("devices.0.name", "a/b", "device 0 has the name 'a/b', which is none"),
        ("devices.0.name", "", "name of device 0 is empty"),
        ("devices.0.containerEdits", {}, "the device GPU-1 has no edit"),
        ("devices.0.containerEdits", {"env": []}, "the device GPU-1 has no edit"),
        ("devices.0.containerEdits", None, "device 0 has no containerEdits"),
        ("devices.0.containerEdits.env", ["A"], "'A' in the environment of the device GPU-1 is no NAME=value"),
        ("devices.0.containerEdits.env", ["=A"], "'=A' in the environment of the device GPU-1 is no NAME=value"),
        ("devices.0.containerEdits.env", "A=b", "env of the device GPU-1 is of another kind than strings"),
        (f"{AT_NODE}.path", None, "a device node of the device GPU-1 has no path"),
        (f"{AT_NODE}.type", "x", f"{OF_NODE} the type 'x'"),
        (f"{AT_NODE}.permissions", "rx", f"{OF_NODE} the permissions 'rx'"),
        (f"{AT_NODE}.uid", -1, "uid of a device node of the device GPU-1 is of another kind than uint32"),
        ("containerEdits.hooks", [{"hookName": "x", "path": "/x"}], "a hook of all devices has the name 'x'"),
        ("containerEdits.mounts", [{"hostPath": "/x"}], "a mount of all devices has no containerPath"),
        ("containerEdits.netDevices", [{"hostInterfaceName": "a"}], "a network device of all devices has no name"),
        ("containerEdits.netDevices", [net("a", "x"), net("a", "y")],
         "the hostInterfaceName a is there twice in all devices"),
        ("containerEdits.netDevices", [net("a", "x"), net("b", "x")], "the name x is there twice in all devices"),
        ("containerEdits.intelRdt", {"closID": ".."}, "the closID '..' of all devices is none"),
    ],
)  # fmt: skip
def test_what_the_reference_library_refuses(path: str, value: Any, said: str) -> None:
    assert faults(changed(path, value)) == [said]


def test_null_is_no_value() -> None:
    spec = copy.deepcopy(SOUND)
    spec["devices"][0]["containerEdits"]["env"] = None
    assert faults(spec) == ["env of the device GPU-1 is of another kind than strings"]


def test_a_device_is_there_once() -> None:
    assert faults({**SOUND, "devices": SOUND["devices"] * 2}) == ["the device GPU-1 is there twice"]


@pytest.mark.parametrize(
    "edits",
    [{}, {"containerEdits": {}}, {"containerEdits": {"env": [], "mounts": []}}, {"containerEdits": {"env": None}}],
)
def test_a_device_without_edits_is_set_aside(edits: dict[str, Any]) -> None:
    spec = with_edits({**SOUND, "devices": [*SOUND["devices"], {"name": "GPU-2", **edits}]})
    assert spec == SOUND
    assert faults(spec) == []


@pytest.mark.parametrize("given", [None, 1, [], {}, {"devices": 1}, {"devices": [1, {"containerEdits": 1}]}])
def test_what_is_no_specification_is_set_aside_by_nobody(given: Any) -> None:
    assert with_edits(given) == given
    assert faults(given)


@pytest.mark.parametrize("text", ["[]", "null", "1", '{"devices": 1}', '{"cdiVersion": 1, "kind": [], "devices": [1]}'])
def test_anything_has_faults(text: str) -> None:
    assert faults(json.loads(text))


MADE = json.loads(captures.session("ctk_cdi_mig_uuid_json")[0].text)
SMALL = {**MADE, "devices": MADE["devices"][-2:]}  # a MIG device, and the one that stands for all
# What keys may hold by the rules or may not, whichever key it is.
GIVEN: list[Any] = [None, True, -1, 0, 2**32, 0.5, "", "x", "A=b", "=b", "rw", "rx", "9", "0.5.0", "9.9.9"]
GIVEN += ["createContainer", [], ["x"], ["A=b"], [1], {}, {"path": "/dev/x"}, [{}], [{"path": "/dev/x"}]]
GIVEN += [{"env": ["A=b"]}]
NAMES = ["cdiVersion", "kind", "annotations", "devices", "name", "containerEdits", "env", "deviceNodes", "netDevices"]
NAMES += ["hooks", "mounts", "additionalGids", "intelRdt", "path", "hostPath", "type", "major", "fileMode", "uid"]
NAMES += ["permissions", "options", "containerPath", "hookName", "args", "timeout", "x", "-"]


def places(part: Any) -> list[Any]:
    """Each mapping and each list in a specification, itself among them."""
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [*([part] if isinstance(part, (dict, list)) else []), *(place for one in inner for place in places(one))]


@given(st.data())
def test_what_is_plain_breaks_no_rule(data: st.DataObject) -> None:
    """A specification of nvidia-ctk, changed in a place or two: what is taken for plain is sound by the rules."""
    spec = copy.deepcopy(SMALL)
    for _time in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(places(spec)))
        value = copy.deepcopy(data.draw(st.sampled_from(GIVEN)))
        if isinstance(place, list):
            place.append(value)
        elif place and data.draw(st.booleans()):
            key = data.draw(st.sampled_from(sorted(place)))
            if data.draw(st.booleans()):
                del place[key]
            else:
                place[key] = value
        else:
            place[data.draw(st.sampled_from(NAMES))] = value
    assert not (is_plain(spec) and cdi_rules.faults(spec)), spec
    assert faults(spec) == cdi_rules.faults(spec)
