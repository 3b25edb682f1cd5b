# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""galaxy.yml, meta/runtime.yml, the requirements and the files that they speak of agree."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools.results import TOP

# The twelve units in the order in which they converge.
ORDER = (
    "kernel_modules",
    "sysctl",
    "hugepages",
    "cpu",
    "iommu",
    "nvidia_driver",
    "fabric_manager",
    "gpu_settings",
    "mig_layout",
    "gpu_sharing",
    "container_toolkit",
    "k8s_join",
)
MODULES = sorted(path for path in (TOP / "plugins" / "modules").glob("*.py") if path.stem != "__init__")
ROLES = sorted(path for path in (TOP / "roles").glob("*") if path.is_dir())
PINNED = re.compile(r"[A-Za-z0-9_-]+==[0-9][0-9.]*(?: ; python_version [<>=]=? \"3\.\d+\")?")
REQUIREMENTS = sorted((TOP / "tests" / "requirements").glob("*.txt"))


def load(name: str) -> Any:
    return yaml.safe_load((TOP / name).read_text(encoding="utf-8"))


def option_names(path: Path) -> set[str]:
    """The keys of a module's argument spec, which stands as a literal: keys of a dict whose values are dicts."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Dict):
                    names.add(str(key.value))
    return names


def test_the_action_group_all_is_every_module() -> None:
    assert sorted(load("meta/runtime.yml")["action_groups"]["all"]) == [path.stem for path in MODULES]


def test_the_action_group_units_is_the_units_in_their_order() -> None:
    there = {path.stem for path in MODULES}
    assert load("meta/runtime.yml")["action_groups"]["units"] == [name for name in ORDER if name in there]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module_defaults_of_the_group_fit_each_module(path: Path) -> None:
    action = TOP / "plugins" / "action" / path.name  # may take the options in place of the module, which documents them
    own = option_names(action) if action.exists() else set()
    assert {"max_disruption", "signed_spec"} <= (own or option_names(path))


def test_the_oldest_ansible_is_the_one_that_is_tested() -> None:
    assert load("meta/runtime.yml")["requires_ansible"] == ">=2.16.0"
    assert re.search(r"^ansible-core==2\.16\.\d+$", (TOP / "tests/requirements/oldest.txt").read_text(), re.MULTILINE)


def test_the_version_has_its_changelog() -> None:
    version = load("galaxy.yml")["version"]
    changelog = TOP / "changelogs" / "changelog.yaml"
    released = load("changelogs/changelog.yaml")["releases"] if changelog.exists() else {}
    fragments = [path.stem for path in (TOP / "changelogs" / "fragments").glob("*.yml")]
    assert version in released or version in fragments


def test_the_collection_depends_on_no_other() -> None:
    assert load("galaxy.yml")["dependencies"] == {}


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.stem)
def test_requirements_are_pinned(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert lines
    assert [line for line in lines if not PINNED.fullmatch(line)] == []


def test_each_role_is_documented() -> None:
    names = ("README.md", "meta/main.yml", "meta/argument_specs.yml")
    assert [f"{role.name}/{name}" for role in ROLES for name in names if not (role / name).is_file()] == []


def test_the_execution_environment_is_of_this_version_and_of_what_runs_here() -> None:
    definition = load("execution-environment/execution-environment.yml")
    galaxy = load("galaxy.yml")
    tarball = f"{galaxy['namespace']}-{galaxy['name']}-{galaxy['version']}.tar.gz"
    assert [Path(file["src"]).name for file in definition["additional_build_files"]] == [tarball]
    assert [Path(each["name"]).name for each in definition["dependencies"]["galaxy"]["collections"]] == [tarball]
    core = definition["dependencies"]["ansible_core"]["package_pip"]
    assert load("meta/runtime.yml")["requires_ansible"].startswith(core.removeprefix("ansible-core"))
    assert f"bcd-ee:{galaxy['version']}" in (TOP / "docs" / "awx.md").read_text(encoding="utf-8")
