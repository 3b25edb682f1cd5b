# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-pull, as docs/awx.md has it: a repository is fetched and its host converged, by the real program."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

pytestmark = pytest.mark.newest_core
CHECKOUT = Path(controller.CHECKOUT)
BIN = Path(sys.executable).parent
NAME = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")


def git(*words: str, cwd: Path) -> None:
    """Run git without the caller's own settings."""
    values = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *NAME, *words], cwd=cwd, env=values, check=True, capture_output=True)


def command(scratch: Path, host: str) -> list[str]:
    """The words of the documented service, with the repository, the folder and the host of a test in their places."""
    page = (CHECKOUT / "docs" / "awx.md").read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = re.findall(r"^ExecStart=/usr/bin/(ansible-pull .*)$", page, re.MULTILINE)
    for word, place in (
        ("https://git.example.com/fleet.git", f"file://{scratch}/fleet"),
        ("/var/lib/bcd-pull", str(scratch / "pulled")),
        ("%H", host),
        # The host is simulated, by a variable of its own: it is entered, and not the machine that the test runs on.
        ("-e ansible_connection=local", ""),
    ):
        assert word in line
        line = line.replace(word, place)
    return [str(BIN / "ansible-pull"), *shlex.split(line)[1:]]


def test_a_host_fetches_the_repository_and_converges_itself(tmp_path: Path) -> None:
    fleet.make(str(tmp_path), [fleet.Hosts("node", PROFILES["debian"], 2)])
    trees = {name: str(tmp_path / "trees" / name) for name in ("node-01", "node-02")}
    project = tmp_path / "fleet"
    shutil.copytree(CHECKOUT / "docs" / "awx-project", project)
    own = {"ansible_connection": "sim", "ansible_python_interpreter": sys.executable}
    hosts = {name: {**own, "sim_tree": tree} for name, tree in trees.items()}
    policy = {"kernelModules": {"load": ["tun"]}}
    pool = {"name": "fra", "site": "fra", "class": "vps-host", "hosts": hosts, "policy": policy}
    (project / "fleet.json").write_text(json.dumps({"version": 1, "pools": [pool]}), encoding="utf-8")
    git("init", "--quiet", "--initial-branch=main", cwd=project)
    git("add", ".", cwd=project)
    git("commit", "--quiet", "-m", "The fleet", cwd=project)

    def pull() -> str:
        values = controller.environment(str(tmp_path))
        del values["ANSIBLE_CONFIG"]  # the repository has its own
        done = subprocess.run(
            command(tmp_path, "node-01"),
            cwd=tmp_path,
            env={**values, "PATH": os.pathsep.join([str(BIN), values["PATH"]]), "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert re.search(r"^node-01 +: ok=\d+ +changed=1 ", pull(), re.MULTILINE)
    assert "tun" in (SimulatedHost(trees["node-01"]).read("/etc/modules-load.d/bcd.conf") or "").splitlines()
    assert not Path(trees["node-02"], "etc/modules-load.d/bcd.conf").exists()
    assert re.search(r"^node-01 +: ok=\d+ +changed=0 ", pull(), re.MULTILINE)
