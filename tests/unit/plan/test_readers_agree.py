# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our readers of TOML and YAML beside those that everyone uses: where ours takes a text, they say the same of it."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import block_yaml, toml
from tests import captures

# On a managed host's Python there is neither tomllib (before 3.11) nor PyYAML.
pytestmark = pytest.mark.needs_ansible

DUMP = """version = 2
imports = ["/etc/containerd/config.toml", "/etc/containerd/conf.d/a.toml"]
oom_score = -999

[plugins]

  [plugins."io.containerd.gc.v1.scheduler"]
    pause_threshold = 0.02
    schedule_delay = "0s"

  [plugins.'io.containerd.cri.v1.runtime']
    enable_cdi = true
    cdi_spec_dirs = ['/etc/cdi', '/var/run/cdi']

    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = true

  [plugins."io.containerd.transfer.v1.local"]

    [[plugins."io.containerd.transfer.v1.local".unpack_config]]
      differ = ""
      platform = "linux/amd64"

    [[plugins."io.containerd.transfer.v1.local".unpack_config]]
      platform = "linux/arm64"
      inline = { a = 1, b.c = [1, [2, "x"]], "d e" = "\\u00e9\\n" }

[timeouts]
  "io.containerd.timeout.bolt.open" = "0s"
  many = [
    1, # one
    2,
  ]
  long = '''
a'b''c'''
"""
YAML = """---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
    - name: "0"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
              major: 195
              permissions: rwm
    - name: 'it''s'
      containerEdits: {}
containerEdits:
    env:
    - A=b c
    - "X=\\u00e9 \\"y\\""
    - ../lib:x::/y
    hooks: []
    none:
    flag: true
"""
LETTERS = "\n\n  =[]{}\"'#.,:-_0123456789abtrue\\~|>&*!%@é"


def mangled(text: str, seed: int) -> str:
    """The text with a few characters taken out, put in, or moved."""
    dice = random.Random(seed)
    for _change in range(dice.randint(1, 4)):
        at, much = dice.randrange(len(text)), dice.choice((0, 0, 1, 1, 2, 12))
        piece = dice.choice(("", dice.choice(LETTERS), text[dice.randrange(len(text)) :][: dice.randint(1, 20)]))
        text = text[:at] + piece + text[at + much :]
    return text


def disagreements(
    text: str, ours: Callable[[str, str], Any], theirs: Callable[[str], Any]
) -> list[tuple[str, Any, Any]]:
    """Mangled texts that ours takes and theirs reads otherwise, or not at all."""
    found = []
    taken = 0
    for seed in range(1200):
        candidate = mangled(text, seed)
        try:
            mine = ours(candidate, "x")
        except Refused:
            continue
        taken += 1
        try:
            other = theirs(candidate)
        except Exception as fault:  # noqa: BLE001 - whatever they say of it, they do not take it
            other = fault
        if repr(mine) != repr(other):
            found.append((candidate, mine, other))
    assert taken > 60
    return found


def test_toml_is_read_as_tomllib_reads_it() -> None:
    loads = importlib.import_module("tomllib").loads
    texts = [
        command.text
        for command in captures.session("ctk_config_set")
        if command.line.startswith(("nvidia-ctk config d", "cat"))
    ]
    for text in (DUMP, *texts):
        assert toml.parse(text, "x") == loads(text)
        assert disagreements(text, toml.parse, loads) == []


def test_the_toolkits_yaml_is_read_as_pyyaml_reads_it() -> None:
    load = importlib.import_module("yaml").safe_load
    whole = captures.session("ctk_cdi_full_gpu_yaml_default")[0].text
    assert block_yaml.parse(whole, "x") == load(whole)
    assert block_yaml.parse(YAML, "x") == load(YAML)
    for text in (YAML, "".join(whole.splitlines(keepends=True)[:60])):
        assert disagreements(text, block_yaml.parse, load) == []
