# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""front -> units -> look, plan -> core: who may import whom, and how large a file may get."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.tools.results import TOP
from tests.unit.ground import rooms

ROOMS = [path for path in rooms.sources("plugins/module_utils") if path.parent != rooms.MODULE_UTILS]
PLUGINS = rooms.sources("plugins")
CONTROLLER_KINDS = ("action", "callback", "filter", "inventory", "lookup", "plugin_utils")
CONTROLLER = rooms.sources(*(f"plugins/{kind}" for kind in CONTROLLER_KINDS))
# What each room may import of the others. A look returns the snapshot that its plan declares.
MAY_IMPORT = {
    "core": {"core"},
    "plan": {"plan", "core"},
    "look": {"look", "plan", "core"},
    "intent": {"intent", "plan", "core"},
    "units": {"units", "look", "plan", "core"},
    "front": {"front", "units", "look", "plan", "intent", "core"},
}
# A plan is values in, steps out.
NOT_IN_PLAN = {"os", "subprocess", "time", "pathlib", "ansible"}
# Of a look: a turn is known again by what it has asked its Host, so what it learns elsewhere would not count.
NOT_IN_LOOK = {*NOT_IN_PLAN, "socket", "shutil", "platform", "glob", "random", "datetime", "functools"}
CALENDAR = ("kubelet_facts", "time")  # of a moment that is given
# What is no answer that could come again, and who needs it: the sights of the clock; looks of no unit's turn; one that
# asks it only where it waits; and what words a fault, with which no turn is kept.
NOT_OF_THE_HOST = {
    "time": {"moment", "devices", "doctor", "doctor_host"},
    "clock": {"containerd_daemon"},
    "predicted": {"smi_faults"},
}
LONGEST_FUNCTION = 50
LONGEST_FILE = 350


def shown(path: Path, line: int) -> str:
    return f"{path.relative_to(TOP)}:{line}"


def top_level(name: str) -> str:
    return name.partition(".")[0]


def test_there_are_rooms_to_look_at() -> None:
    assert {rooms.room(path) for path in ROOMS} >= {"core", "plan", "look", "units", "front"}


def test_every_room_is_known() -> None:
    assert {rooms.room(path) for path in ROOMS} <= set(MAY_IMPORT)


def test_rooms_import_downward_only() -> None:
    wrong = [
        f"{shown(path, found.line)} imports {found.name}"
        for path in ROOMS
        for found in rooms.imports(path)
        if found.ours and top_level(found.name) not in MAY_IMPORT[rooms.room(path)]
    ]
    assert wrong == []


def test_plan_touches_no_machine() -> None:
    wrong = [
        f"{shown(path, found.line)} imports {found.name}"
        for path in ROOMS
        for found in rooms.imports(path)
        if rooms.room(path) == "plan"
        and (found.name == "core.host" if found.ours else top_level(found.name) in NOT_IN_PLAN)
    ]
    assert wrong == []


def test_a_look_learns_of_the_machine_through_its_host_alone() -> None:
    wrong = [
        f"{shown(path, found.line)} imports {found.name}"
        for path in ROOMS
        for found in rooms.imports(path)
        if rooms.room(path) in ("look", "units")
        and not found.ours
        and top_level(found.name) in NOT_IN_LOOK
        and (path.stem, found.name) != CALENDAR
    ]
    assert wrong == []


def test_a_look_asks_for_nothing_that_differs_each_time() -> None:
    """A turn that reads the clock is never known again; one that sees it is predicted is, where it is not."""
    asked: dict[str, set[str]] = {name: set() for name in NOT_OF_THE_HOST}
    for path in ROOMS:
        if rooms.room(path) not in ("look", "units"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in asked and ast.unparse(node.value) == "host":
                asked[node.attr].add(path.stem)
    assert asked == NOT_OF_THE_HOST


def test_only_the_modules_front_imports_ansible() -> None:
    importers = {
        path.relative_to(rooms.MODULE_UTILS).as_posix()
        for path in ROOMS
        for found in rooms.imports(path)
        if not found.ours and top_level(found.name) == "ansible"
    }
    assert importers == {"front/module.py"}


def test_hosts_need_the_standard_library_only() -> None:
    """cryptography, where signing is used, is the one exception."""
    wrong = []
    for path in ROOMS:
        allowed = sys.stdlib_module_names | ({"cryptography"} if rooms.room(path) == "intent" else set())
        allowed |= {"ansible"} if path.relative_to(rooms.MODULE_UTILS).as_posix() == "front/module.py" else set()
        wrong += [
            f"{shown(path, found.line)} imports {found.name}"
            for found in rooms.imports(path)
            if not found.ours and not rooms.PACKAGE.startswith(found.name) and top_level(found.name) not in allowed
        ]
    assert wrong == []


def test_values_are_named_tuples() -> None:
    """A frozen dataclass costs five times a NamedTuple's import."""
    wrong = [shown(p, f.line) for p in ROOMS for f in rooms.imports(p) if top_level(f.name) == "dataclasses"]
    assert wrong == []


def test_a_section_imports_a_unit_only_when_it_is_named() -> None:
    wrong = [
        f"{shown(path, found.line)} imports {found.name}"
        for path in ROOMS
        if rooms.room(path) == "front"
        for found in rooms.imports(path)
        if found.ours and found.name.startswith("units.") and not found.lazy
    ]
    assert wrong == []


def test_controller_plugins_share_the_plans_only() -> None:
    wrong = [
        f"{shown(path, found.line)} imports {found.name}"
        for path in CONTROLLER
        for found in rooms.imports(path)
        if found.ours and top_level(found.name) != "plan"
    ]
    assert wrong == []


def test_a_filter_imports_what_it_calls_when_it_is_called() -> None:
    """To find one filter Ansible loads all of a collection's, compiled anew, in the process of every host."""
    wrong = [
        f"{shown(path, found.line)} imports {found.name}"
        for path in rooms.sources("plugins/filter")
        for found in rooms.imports(path)
        if not found.lazy and (found.ours or ".plugin_utils" in found.name)
    ]
    assert wrong == []


def test_contributing_names_each_file_of_the_core_and_no_file_that_is_none() -> None:
    text = (TOP / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.search(r"^core/ +(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    core = {path.stem for path in ROOMS if rooms.room(path) == "core"} - {"__init__"}
    assert set(re.split(r",\s+", listed.group(1).strip())) == core
    named = re.findall(rf"`(?:plugins/)?(?:module_utils/)?((?:{'|'.join(MAY_IMPORT)})/\w+\.py)`", text)
    assert len(named) > 20
    assert [name for name in named if not (rooms.MODULE_UTILS / name).is_file()] == []


def test_every_folder_of_module_utils_is_a_package() -> None:
    """A zipapp, and Python 3.9 in a module's zip, import no folder without one."""
    folders = {parent for path in rooms.sources("plugins/module_utils") for parent in path.parents}
    inside = {folder for folder in folders if folder == rooms.MODULE_UTILS or rooms.MODULE_UTILS in folder.parents}
    assert [str(folder) for folder in sorted(inside) if not (folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: path.relative_to(TOP / "plugins").as_posix())
def test_functions_fit_a_screen_and_files_a_room(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    long = [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, rooms.FUNCTIONS)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []
    assert len(text.splitlines()) <= LONGEST_FILE
