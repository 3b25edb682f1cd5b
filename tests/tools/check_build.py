# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the Galaxy tarball, install it into an empty folder, and look at what arrived there.

usage: python -m tests.tools.check_build

Must run in the environment that holds ansible-core and ansible-builder. The tarball stays in .build/dist, beside the
program bcd as the installed collection makes it; what the image for AWX is built of, in .build/execution-environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.tools import execution_environment, results

BIN = Path(sys.executable).parent
DIST = results.TOP / ".build" / "dist"
INSTALLED = results.TOP / ".build" / "installed"
COLLECTION = "bettercompute.bcd"
# Makes the program of the collection below argv[1], and writes it to argv[2].
MAKE = """
import os, sys
os.umask(int(sys.argv[3], 8))
sys.path.insert(0, sys.argv[1])
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.program import program
made = program()
with open(os.path.join(sys.argv[2], made.name), "wb") as out:
    out.write(made.data)
print(made.name)
"""
# Renders the page of a report with the collection below argv[1]: its style and script are files of their own.
PAGE = """
import sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report import fleet_document
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report_page import render_page
print(render_page(fleet_document({})))
"""
# Two callers who differ in what must make no difference.
CALLERS = {"022": {"LC_ALL": "C", "TZ": "UTC"}, "077": {"LC_ALL": "tr_TR.ISO-8859-9", "TZ": "Asia/Tokyo"}}
# What a user of the tarball has no use for, or what this machine left in the checkout.
UNWANTED = (
    *".git .ci .build .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .ansible".split(),
    "bcd-report",  # of plan and status, run from the checkout
)


def ansible(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run an ansible program that sees the installed collection only, from outside the checkout."""
    values = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    values["ANSIBLE_COLLECTIONS_PATH"] = str(INSTALLED)
    values["ANSIBLE_HOME"] = str(results.TOP / ".build" / "home")
    argv = [str(BIN / program), *words]
    return subprocess.run(argv, cwd=INSTALLED, env=values, capture_output=True, text=True, check=False)


def build() -> Path:
    """The path of a fresh tarball."""
    shutil.rmtree(DIST, ignore_errors=True)
    argv = [str(BIN / "ansible-galaxy"), "collection", "build", "--output-path", str(DIST), str(results.TOP)]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return next(DIST.glob("*.tar.gz"))


def unwanted(tarball: Path) -> list[str]:
    """Names in the tarball that should not have been packed."""
    with tarfile.open(tarball) as archive:
        names = archive.getnames()
    return [name for name in names if name.split("/")[0] in UNWANTED or "__pycache__" in name.split("/")]


def missing_modules() -> list[str]:
    """Modules of the checkout that the installed collection does not document."""
    done = ansible("ansible-doc", "--list", "--json", "--type", "module", COLLECTION)
    listed = set(json.loads(done.stdout)) if done.returncode == 0 else set()
    modules = [path.stem for path in sorted((results.TOP / "plugins" / "modules").glob("*.py"))]
    return [name for name in modules if f"{COLLECTION}.{name}" not in listed and name != "__init__"]


def program() -> str:
    """What is wrong with the program that the installed collection makes; "" when nothing is. It is left in DIST."""
    made: list[bytes] = []
    path = DIST
    for umask, environment in CALLERS.items():
        argv = [sys.executable, "-Ic", MAKE, str(INSTALLED), str(DIST), umask]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"the collection does not make the program: {done.stderr.strip()}"
        path = DIST / done.stdout.strip()
        made.append(path.read_bytes())
    path.chmod(0o644)
    if len(set(made)) > 1:
        return "two callers make two programs: see what differs between them"
    said = subprocess.run([sys.executable, "-IS", str(path), "--version"], capture_output=True, text=True, check=False)
    version = path.stem.replace("-", " ", 1)
    return "" if said.stdout.strip() == version else f"{path.name} --version: {said.stdout}{said.stderr}".strip()


def page() -> str:
    """What is wrong with the page that the installed collection renders; "" when nothing is."""
    argv = [sys.executable, "-Ic", PAGE, str(INSTALLED)]
    done = subprocess.run(argv, env={"LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=False)
    if done.returncode or "</style>" not in done.stdout or "</script>" not in done.stdout:
        return f"the collection renders no page of a report: {done.stderr.strip()}"
    return ""


def checks() -> dict[str, str]:
    """Each check's name with what is wrong, as a sentence; "" when nothing is."""
    tarball = build()
    shutil.rmtree(INSTALLED, ignore_errors=True)
    INSTALLED.mkdir(parents=True)
    packed = unwanted(tarball)
    found = {"build": f"the tarball holds {packed[:5]}: add it to galaxy.yml's build_ignore" if packed else ""}
    install = ("collection", "install", "--offline", "--collections-path", str(INSTALLED), str(tarball))
    for name, words in {"install": install, "verify": ("collection", "verify", "--offline", COLLECTION)}.items():
        done = ansible("ansible-galaxy", *words)
        found[name] = "" if done.returncode == 0 else f"ansible-galaxy collection {name}: {done.stderr.strip()}"
    missing = missing_modules()
    found["program"] = program()
    found["page"] = page()
    found["execution environment"] = execution_environment.wrong()
    found["ansible-doc"] = f"ansible-doc does not list {missing} of the installed collection" if missing else ""
    return found


def main(argv: list[str]) -> int:
    if argv:
        print(__doc__, file=sys.stderr)
        return 64
    found = checks()
    failed = tuple(f"{name}: {wrong}" for name, wrong in found.items() if wrong)
    results.save("build", results.Result(len(found) - len(failed), failed, ()))
    for line in failed:
        print(line, file=sys.stderr)
    print("built " + " and ".join(str(path.relative_to(results.TOP)) for path in sorted(DIST.iterdir())))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
