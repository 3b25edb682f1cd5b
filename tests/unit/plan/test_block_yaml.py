# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The block YAML of nvidia-ctk."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.block_yaml import parse
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cdi import device_names, faults
from tests import captures

GPU = "GPU-01000100-0000-0000-0000-00000000000{}"


def test_the_recorded_specification() -> None:
    spec = parse(captures.session("ctk_cdi_full_gpu_yaml_default")[0].text, "nvidia.yaml")
    assert spec["cdiVersion"] == "0.5.0"
    assert faults(spec) == []
    assert device_names(spec) == (*map(str, range(8)), *(GPU.format(at) for at in range(8)), "all")
    node = {"path": "/dev/nvidia1", "major": 195, "minor": 1, "fileMode": 438, "permissions": "rwm"}
    assert spec["devices"][1] == {"name": "1", "containerEdits": {"deviceNodes": [node]}}
    edits = spec["containerEdits"]
    assert edits["env"] == ["NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu", "NVIDIA_VISIBLE_DEVICES=void"]
    assert [node["path"] for node in edits["deviceNodes"]][-1] == "/dev/nvidiactl"
    assert edits["hooks"][0]["args"][-1].startswith("../libnvidia-allocator.so.1::/usr/lib/")
    assert edits["mounts"][-1]["hostPath"] == "/lib/firmware/nvidia/550.163.01/gsp_tu10x.bin"
    assert edits["mounts"][-1]["options"] == ["ro", "nosuid", "nodev", "rbind", "rprivate"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("---\na: b c\n", {"a": "b c"}),
        ("a:\n- 1\n- x\nb: z", {"a": [1, "x"], "b": "z"}),
        ("a:\n    - b: 1\n      c: 2\n    - d: 3", {"a": [{"b": 1, "c": 2}, {"d": 3}]}),
        ("- - 1\n  - 2\n- 3", [[1, 2], 3]),
        ("a: \"x: \\u00e9\"\nb: 'it''s'\nc: []\nd: {}", {"a": "x: é", "b": "it's", "c": [], "d": {}}),
        ("a:\nb: true\nc: null\n", {"a": None, "b": True, "c": None}),
        ("'a b': 0.5.0", {"a b": "0.5.0"}),
        ("# said\na: x::y#z\n", {"a": "x::y#z"}),
    ],
)
def test_what_is_read(text: str, value: Any) -> None:
    assert parse(text, "x.yaml") == value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("a: [1]", 1),
        ("a: {b: 1}", 1),
        ("a: &x 1", 1),
        ("a: *x", 1),
        ("a: !!str 1", 1),
        ("a: |\n  x", 1),
        ("a: >-\n  x", 1),
        ("a: 1\n---\nb: 2", 2),
        ("a: 1\n  b: 2", 2),
        ("a: 1\na: 2", 2),
        ("a:\n    b: 1\n  c: 2", 3),
        ("a: yes", 1),
        ("a: 0:0", 1),
        ("a: 0644", 1),
        ("a: 1.5", 1),
        ("a: 1e3", 1),
        ("a: 2026-01-01", 1),
        ("a: x # y", 1),
        ("a: x: y", 1),
        ("a: 'x", 1),
        ('a: "\\x41"', 1),
        ("\ta: 1", 1),
        ("a: x\n  y", 2),
        ("- 1\nb: 2", 2),
        ("- ", 1),
    ],
)
def test_what_is_refused_names_file_and_line(text: str, line: int) -> None:
    with pytest.raises(Refused) as refused:
        parse(text, "/etc/cdi/x.yaml")
    assert refused.value.message.startswith(f"/etc/cdi/x.yaml line {line}: ")
