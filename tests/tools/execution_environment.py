# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lay the build context of the execution environment in .build/execution-environment, and try what its stages do.

usage: python -m tests.tools.execution_environment

Must run in the environment that holds ansible-core and ansible-builder, after the tarball was built. No container is
built: that takes podman or docker, and the network. What of the stages can be done without, is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tests.tools import results

BIN = Path(sys.executable).parent
DEFINITION = results.TOP / "execution-environment" / "execution-environment.yml"
CONTEXT = results.TOP / ".build" / "execution-environment"
# What a job needs of the system, by the name of its package.
SYSTEM = {"openssh-clients", "sshpass"}


def run(*argv: str, cwd: Path) -> tuple[int, str]:
    """Exit status and output of one of the environment's programs, which sees nothing of the caller's Ansible."""
    values = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    values["ANSIBLE_HOME"] = str(results.TOP / ".build" / "home")
    done = subprocess.run(
        [str(BIN / argv[0]), *argv[1:]], cwd=cwd, env=values, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def lay() -> str:
    """Write the context; why that failed, or ""."""
    shutil.rmtree(CONTEXT, ignore_errors=True)
    names = ("--file", str(DEFINITION), "--context", str(CONTEXT), "--output-filename", "Containerfile")
    status, said = run("ansible-builder", "create", *names, cwd=results.TOP)
    return f"ansible-builder create: {said.strip()[-500:]}" if status else ""


def stages() -> list[str]:
    """The lines of the Containerfile that install the collection, Ansible and what both need."""
    lines = (CONTEXT / "Containerfile").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def missing_stages() -> str:
    """What the Containerfile does not do; "" when it does all."""
    definition = yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))
    text = "\n".join(stages())
    needed = {
        definition["images"]["base_image"]["name"],
        definition["dependencies"]["python_interpreter"]["package_system"],
        definition["dependencies"]["ansible_core"]["package_pip"],
        definition["dependencies"]["ansible_runner"]["package_pip"],
        "ansible-galaxy collection install",
        "COPY _build /build",
    }
    missing = sorted(each for each in needed if each not in text)
    return f"the Containerfile lacks {', '.join(missing)}" if missing else ""


def collection() -> str:
    """Whether the stage `galaxy` finds the collection: its own command, in its own folder; "" when it does."""
    place = CONTEXT.parent / "execution-environment-collections"
    shutil.rmtree(place, ignore_errors=True)
    words = ("collection", "install", "--offline", "-r", "requirements.yml", "--collections-path", str(place))
    status, said = run("ansible-galaxy", *words, cwd=CONTEXT / "_build")
    playbook = place / "ansible_collections" / "bettercompute" / "bcd" / "playbooks" / "converge.yml"
    if status:
        return f"ansible-galaxy {' '.join(words)}: {said.strip()[-500:]}"
    return "" if playbook.is_file() else f"the collection of the image has no {playbook.name}"


def packages() -> str:
    """Whether the lists of packages arrived and can be read; "" when they do."""
    status, said = run("bindep", "--file", "bindep.txt", "--profiles", cwd=CONTEXT / "_build")
    if status:
        return f"bindep.txt cannot be read: {said.strip()[-500:]}"
    listed = (CONTEXT / "_build" / "bindep.txt").read_text(encoding="utf-8")
    lacking = sorted(each for each in SYSTEM if f"\n{each} [platform:rpm]" not in listed)
    python = (CONTEXT / "_build" / "requirements.txt").read_text(encoding="utf-8")
    lacking += [] if "\ncryptography>=" in f"\n{python}" else ["cryptography"]
    return f"the image would lack {', '.join(lacking)}" if lacking else ""


def wrong() -> str:
    """What is wrong with the context; "" when nothing is."""
    fault = lay()
    if fault:
        return fault
    return "; ".join(each for each in (missing_stages(), collection(), packages()) if each)


def main(argv: list[str]) -> int:
    if argv:
        print(__doc__, file=sys.stderr)
        return 64
    fault = wrong()
    print(fault or f"build the image in {os.path.relpath(CONTEXT)} with: podman build -f Containerfile .")
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
