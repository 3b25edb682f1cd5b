# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What bcd agent imports where it finds nothing to do: as a process it should cost little more than Python itself."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ground import rooms

TOP = Path(__file__).resolve().parents[3]
MODULE_UTILS = TOP / "plugins/module_utils"
# Each costs about as much as the start of Python itself, or imports one that does.
DEAR = {
    *("argparse", "collections", "contextlib", "dataclasses", "enum", "functools", "hashlib", "inspect", "json"),
    *("logging", "pathlib", "pickle", "random", "re", "selectors", "shutil", "signal", "socket", "ssl", "subprocess"),
    *("tempfile", "threading", "typing", "urllib", "zipfile"),
}
MOST = 140_000  # bytes of the project's files, more than half of which see that all is as it was

# The program as it is installed, over a host whose files are these: a subclass of the one door, which imports no more.
SCRIPT = """
import sys
before = {*sys.modules}
sys.path.insert(0, sys.argv[1])
from bcd.core import host, lock, rootfs
FILES = eval(sys.argv[2])
known = {*FILES}
class Quiet(host.Host):
    def uid(self): return 0
    def read(self, path): return FILES.get(path)
    def file(self, path): return host.File(FILES[path]) if path in FILES else None
    def names(self, path): return ()
    def exists(self, path): return path in FILES
    def link(self, path): return None
    def stamp(self, path): return None
    def write(self, path, text, mode): FILES[path] = text
host.Host = Quiet
rootfs.open_lock = lambda path: host.os.open(sys.argv[1] + "/lock", host.os.O_RDWR | host.os.O_CREAT)
from bcd.front.cli import main
status = main(["agent"])
print({
    "status": status,
    "wrote": {*FILES} - known,
    "imported": {name: getattr(sys.modules[name], "__file__", None) for name in {*sys.modules} - before},
})
"""


STATE = "/var/lib/bcd-hostconfig"
LAST = {"at": 1, "boot_id": "boot", "host": {"state": "CONVERGED", "message": ""}, "devices": None}
FILES = {
    "/proc/sys/kernel/random/boot_id": "boot\n",
    f"{STATE}/asked.json": json.dumps({"version": 1, "units": {}, "host": {"max_disruption": "gpu"}}),
    f"{STATE}/agent.json": json.dumps({"version": 1, "last": LAST, "repairs": [], "told": 0}),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a fresh Python says of the agent's pass over a host that was asked for no unit, and is so already."""
    place = tmp_path_factory.mktemp("program")
    (place / "bcd").symlink_to(MODULE_UTILS)
    done = subprocess.run(
        [sys.executable, "-ISB", "-c", SCRIPT, place, repr(FILES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said, about = done.stdout.splitlines()
    assert said == "host CONVERGED"
    found: dict[str, Any] = ast.literal_eval(about)
    assert (found["status"], found["wrote"]) == (0, set())
    imported: dict[str, Any] = found["imported"]
    return imported


def test_it_imports_nothing_that_costs_as_much_as_a_start(told: dict[str, Any]) -> None:
    assert DEAR & {*told} == set()


def test_it_imports_no_unit_nor_what_only_a_host_that_differs_needs(told: dict[str, Any]) -> None:
    ours = {name[4:] for name in told if name.startswith("bcd.")}
    assert {"core.host", "core.records", "front.agent", "front.section"} <= ours
    assert not {name for name in ours if name.startswith(("units.", "look.", "intent."))} - {
        "units.catalog",
        "look.config",
    }
    assert not ours & {"core.act", "core.plan", "core.predict", "core.root_write", "core.runner", "core.step"}
    assert not ours & {"front.cli_words", "front.holds", "front.info", "front.install", "front.verified"}


def test_it_imports_few_bytes_of_ours(told: dict[str, Any]) -> None:
    sizes = {name: Path(file).stat().st_size for name, file in told.items() if file and name.startswith("bcd")}
    assert sum(sizes.values()) <= MOST, dict(sorted(sizes.items(), key=lambda entry: -entry[1]))


# -- what a turn that is known again asks by


def sights() -> set[str]:
    """The modules of the functions that looks give to `host.sight`: all that a turn which is known again imports."""
    found = set()
    for path in rooms.sources("plugins/module_utils"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        places = {
            alias.asname or alias.name: (rooms.absolute(path, node).removeprefix(f"{rooms.PACKAGE}."), alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        here = ".".join(path.relative_to(rooms.MODULE_UTILS).with_suffix("").parts)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sight"):
                continue
            given = node.args[0]
            if isinstance(given, ast.Attribute) and isinstance(given.value, ast.Name):
                found.add(".".join(places[given.value.id]))
            elif isinstance(given, ast.Name):
                found.add(places[given.id][0] if given.id in places else here)
    return found


IMPORTED = """
import sys
sys.path.insert(0, sys.argv[1])
before = {*sys.modules}
__import__("bcd." + sys.argv[2])
print(*sorted({*sys.modules} - before))
"""


def test_what_is_asked_of_a_turn_that_is_known_again_is_asked_cheaply(tmp_path: Path) -> None:
    (tmp_path / "bcd").symlink_to(MODULE_UTILS)
    modules = sights()
    assert {"look.pci_bus", "look.mps_said"} <= modules
    dear = {}
    for module in sorted(modules):
        command = [sys.executable, "-ISB", "-c", IMPORTED, str(tmp_path), module]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        dear.update({module: sorted(DEAR & {*done.stdout.split()})} if DEAR & {*done.stdout.split()} else {})
    assert dear == {}
