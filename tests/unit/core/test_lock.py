# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass a host: the second waits with a bound, then says who holds the lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.lock import only_pass

from .jail import in_jail


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "var/lib").mkdir(parents=True)
    for folder in (root, root / "var", root / "var/lib"):
        folder.chmod(0o755)
    return root


def second_while_first_holds() -> None:
    with only_pass(Host(), "host_section"), only_pass(Host(), "sysctl", wait=0.3):
        pass


def first_then_second() -> str:
    with only_pass(Host(), "host_section"):
        pass
    with only_pass(Host(), "sysctl", wait=0):
        return Path("/var/lib/bcd-hostconfig/lock").read_text()


def test_the_second_pass_waits_and_then_names_the_first(tree: Path) -> None:
    with pytest.raises(StepFailed) as busy:
        in_jail(tree, second_while_first_holds)
    assert "another pass holds /var/lib/bcd-hostconfig/lock (host_section, process " in busy.value.message
    assert busy.value.retryable


def test_a_lock_goes_with_its_pass_and_names_the_holder(tree: Path) -> None:
    assert in_jail(tree, first_then_second).startswith("sysctl, process ")
