# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulator's tests share: a host built for the test, and accounts that are not root."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sim.host import SimulatedHost

Maker = Callable[..., SimulatedHost]
# Takes namespaces away from the program that follows: none can be made in this user namespace, and it may not mount.
NO_NAMESPACES = (
    "unshare", "--user", "--map-root-user", "sh", "-c",
    'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all "$@"', "sh",
)  # fmt: skip


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """Builds the machine of a profile, with fields of it changed."""

    def build(profile: str = "debian", name: str = "node", **changes: Any) -> SimulatedHost:
        return SimulatedHost.of(str(tmp_path / name), profile, **changes)

    return build


@pytest.fixture
def ordinary() -> Iterator[tuple[Path, str, dict[str, Any]]]:
    """A directory of an account that is not root, a Python it can run, and the Popen arguments to be that account.

    The directory holds a copy of tests/sim: the checkout may lie where the account cannot look.
    """
    home = Path(tempfile.mkdtemp(prefix="sim-ordinary-", dir="/var/tmp"))
    for name in ("sim", "gpu", "cluster"):
        shutil.copytree(Path(__file__).parents[2] / name, home / "tests" / name)
    account: dict[str, Any] = {}
    python = sys.executable
    if os.getuid() == 0:
        account = {"user": 65534, "group": 65534, "extra_groups": []}
        python = shutil.which("python3", path="/usr/bin:/bin") or python
        for folder, _unused, files in os.walk(home):
            for name in (folder, *(os.path.join(folder, file) for file in files)):
                os.chown(name, 65534, 65534, follow_symlinks=False)
    yield home, python, account
    shutil.rmtree(home)


def fingerprint(*folders: str) -> str:
    """A digest of the names, modes and contents below directories of this machine."""
    found = hashlib.sha256()
    for top in folders:
        for folder, below, files in os.walk(top):
            below.sort()
            for name in sorted(files):
                path = os.path.join(folder, name)
                found.update(f"{path} {os.lstat(path).st_mode:o}\n".encode())
                if os.path.isfile(path) and os.access(path, os.R_OK) and not os.path.islink(path):
                    found.update(Path(path).read_bytes())
    return found.hexdigest()
