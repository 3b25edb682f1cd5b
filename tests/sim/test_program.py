# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program bcd, installed in a simulated host from its real zip, and the role that installs it.

Its interpreter runs isolated there as on any host; /.sim/venv/bin/python has the simulated kernel behind it too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.program import program
from tests.pki import ControlPlane
from tests.sim import controller, fleet
from tests.sim.helper_socket import MEMBER, STRANGER
from tests.sim.host import SimulatedHost
from tests.sim.marks import in_namespace, with_accounts
from tests.sim.tree import PROFILES, build, copy
from tests.tools import pythons

pytestmark = in_namespace
PYTHON = "/.sim/venv/bin/python"
BCD = "/usr/local/sbin/bcd"
ZIP = "/usr/lib/bcd/bcd.pyz"
SPEC = "/root/spec.json"
UNITS: dict[str, dict[str, Any]] = {
    "kernel-modules": {"load": ["tun", "br_netfilter"]},
    "sysctl": {"vm.swappiness": 10},
}
OLDEST = pythons.find("3.9")
HOST = "one-01"

newest_core = pytest.mark.newest_core  # no Ansible has a part in it


class Site:
    """A simulated host with the zip on it, and the program called there."""

    def __init__(self, tree: Path, python: str = sys.executable) -> None:
        self.host = SimulatedHost(str(tree), python)

    def zip(self, data: bytes) -> None:
        (Path(self.host.tree) / ZIP[1:]).write_bytes(data)

    def install(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.host.run(PYTHON, "-I", ZIP, "install", *words)

    def bcd(self, *words: str, spec: Any = None, **more: Any) -> subprocess.CompletedProcess[str]:
        if spec is not None:
            self.host.write(SPEC, json.dumps(spec))
            words = (*words, "--spec", SPEC)
        return self.host.run(BCD, *words, **more)

    def files(self) -> dict[str, Any]:
        """Every file and folder below what the program may touch, with its bytes."""
        found: dict[str, Any] = {}
        for place in ("usr/lib/bcd", "usr/local/sbin", "etc", "var/lib/bcd-hostconfig"):
            for path in (Path(self.host.tree) / place).rglob("*"):
                name = str(path.relative_to(self.host.tree))
                found[name] = path.read_bytes() if path.is_file() else os.readlink(path) if path.is_symlink() else ""
        return found


def result(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Site]:
    """A host of its own for each Python, on which the program was installed: to be copied."""

    @lru_cache
    def made(python: str) -> Site:
        found = Site(Path(build(str(tmp_path_factory.mktemp("host") / "tree"), PROFILES["debian"])), python)
        found.zip(program().data)
        done = found.install()
        assert (done.returncode, done.stderr) == (0, "")
        return found

    return made


@pytest.fixture
def site(installed: Callable[[str], Site], tmp_path: Path) -> Site:
    """A host with the program, run by the newest Python."""
    copy(installed(sys.executable).host.tree, str(tmp_path / "tree"), "site")
    return Site(tmp_path / "tree")


@pytest.fixture(params=[sys.executable, *([OLDEST] if OLDEST else [])], ids=os.path.basename)
def each(request: pytest.FixtureRequest, installed: Callable[[str], Site], tmp_path: Path) -> Site:
    """The same with the newest and with the oldest Python."""
    copy(installed(request.param).host.tree, str(tmp_path / "tree"), "each")
    return Site(tmp_path / "tree", request.param)


@newest_core
def test_a_host_is_planned_converged_and_quiet(each: Site) -> None:
    """Installed twice, then: exit statuses 2, 0 and 0, and what a plan says is what is done."""
    before = each.files()
    again = each.install()
    assert (again.returncode, again.stdout) == (0, "bcd 0.1.0: unchanged in /usr/lib/bcd/0.1.0\n")
    assert each.files() == before

    planned = each.bcd("plan", "--json", spec={"host": UNITS, "devices": []})
    assert planned.returncode == 2
    assert each.host.changes() == []
    done = each.bcd("converge", "--json", spec={"host": UNITS, "devices": []})
    assert (done.returncode, done.stderr) == (0, "")
    steps = [
        [step["action"] for unit in result(run)["host"]["units"] for step in unit["steps"]] for run in (planned, done)
    ]
    assert steps[0] == steps[1]
    assert "tun " in (each.host.read("/proc/modules") or "")
    assert each.host.read("/proc/sys/vm/swappiness") == "10\n"

    before = each.files()
    quiet = each.bcd("converge", spec={"host": UNITS, "devices": []})
    assert (quiet.returncode, quiet.stdout.splitlines()[0]) == (0, "host: CONVERGED")
    assert {name: text for name, text in each.files().items() if not name.endswith("/lock")} == {
        name: text for name, text in before.items() if not name.endswith("/lock")
    }


@newest_core
def test_each_exit_status(each: Site) -> None:
    waits = {"sysctl": {"net.bridge.bridge-nf-call-iptables": 0}}
    assert each.bcd("converge", spec={"host": waits}).returncode == 2
    refused = each.bcd("converge", spec={"host": {"sysctl": {"kernel.core_pattern": "|/bin/sh"}}})
    assert (refused.returncode, "kernel.core_pattern is refused" in refused.stdout) == (1, True)
    for words in ((), ("fly",), ("plan", "--spec", "/nowhere"), ("install",)):
        wrong = each.bcd(*words)
        assert (wrong.returncode, wrong.stdout) == (64, "")
    assert each.bcd("--version").stdout == "bcd 0.1.0\n"
    for word in ("status", "doctor"):
        found = each.bcd(word, "--json")
        assert (found.returncode in (0, 1, 2), found.stderr) == (True, "")
        assert result(found)["report"]


@newest_core
def test_root_s_copy_is_kept_by_hand_and_by_the_agent(site: Site) -> None:
    site.bcd("converge", spec={"host": UNITS})
    for word in ("converge", "agent"):
        site.host.set("/proc/sys/vm/swappiness", "60")
        drifted = site.bcd("plan")
        assert (drifted.returncode, drifted.stdout.splitlines()[0]) == (2, "of what this host was asked")
        assert site.bcd(word).returncode == 0
        assert site.host.read("/proc/sys/vm/swappiness") == "10\n"


@newest_core
def test_a_signed_spec_is_verified_by_the_program(site: Site) -> None:
    plane = ControlPlane()
    site.host.write("/etc/bcd/config.toml", plane.config())
    site.host.write("/root/signed.json", json.dumps(plane.desired_state(host=UNITS)))
    unsigned = site.bcd("converge", spec={"host": UNITS})
    assert (unsigned.returncode, site.host.changes()) == (1, [])
    done = site.bcd("converge", "--signed-spec", "/root/signed.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert site.host.read("/proc/sys/vm/swappiness") == "10\n"
    tampered = plane.desired_state(host=UNITS, generation=2)
    tampered["body"] = plane.desired_state(host={}, generation=2)["body"]
    site.host.write("/root/signed.json", json.dumps(tampered))
    refused = site.bcd("converge", "--signed-spec", "/root/signed.json")
    assert (refused.returncode, site.host.read("/proc/sys/vm/swappiness")) == (1, "10\n")


@newest_core
def test_where_it_prints_is_no_matter(site: Site) -> None:
    """A reader that goes, a full disk's like, no streams at all, and a locale that there is not: the host converges."""
    site.host.write(SPEC, json.dumps({"host": UNITS}))
    ways = {
        f"{BCD} converge --json --spec {SPEC} | true; exit ${{PIPESTATUS[0]}}": 0,
        f"{BCD} plan --diff --spec {SPEC} <&- >&- 2>&-": 0,
        f"LC_ALL=xx_YY.ISO-8859-1 PYTHONPATH=/nowhere PYTHONHOME=/nowhere {BCD} plan --spec {SPEC} > /dev/null": 0,
        f"cd /tmp && echo 'raise SystemExit(9)' > bcd.py && {BCD} --version": 0,
    }
    for way, status in ways.items():
        done = site.host.run("/bin/bash", "-c", way)
        assert (done.returncode, done.stderr) == (status, ""), way
    assert site.host.read("/proc/sys/vm/swappiness") == "10\n"


@newest_core
def test_an_installation_that_is_killed_is_made_good_by_the_next(site: Site, tmp_path: Path) -> None:
    """Wherever the kill strikes: the program of before runs, then the new one (each change: see test_install.py)."""
    text = (Path(site.host.tree) / ZIP[1:]).read_bytes()
    other = tmp_path / "module_utils"
    shutil.copytree(Path(program.__code__.co_filename).parents[1] / "module_utils", other)
    (other / "plan" / "release.py").write_text('VERSION = "0.2.0"\n')
    site.zip(program(str(other)).data)
    assert (Path(site.host.tree) / ZIP[1:]).read_bytes() != text
    for seconds in ("0.1", "0.2", "0.3", "0.5"):
        site.host.run("/usr/bin/timeout", "-s", "KILL", seconds, PYTHON, "-I", ZIP, "install")
        assert site.bcd("--version").stdout in ("bcd 0.1.0\n", "bcd 0.2.0\n")
    done = site.install("--json")
    assert result(done)["folder"] == "/usr/lib/bcd/0.2.0"
    assert site.bcd("--version").stdout == "bcd 0.2.0\n"
    assert site.install().stdout == "bcd 0.2.0: unchanged in /usr/lib/bcd/0.2.0\n"
    assert sorted(os.listdir(Path(site.host.tree) / "usr/lib/bcd")) == ["0.1.0", "0.2.0", "bcd.pyz"]


@newest_core
def test_an_ordinary_account_sees_what_it_can_and_is_told_the_rest(site: Site) -> None:
    spec = {"host": {"sysctl": {"vm.swappiness": 20}}}
    assert site.bcd("plan", spec=spec, uid=1000).returncode == 2
    done = site.bcd("converge", spec=spec, uid=1000)
    assert (done.returncode, "node-unprivileged" in done.stdout) == (1, True)
    assert site.host.read("/proc/sys/vm/swappiness") == "60\n"


@newest_core
@with_accounts
def test_an_account_of_the_group_has_root_s_pass_by_the_helper(site: Site) -> None:
    text = json.dumps({"host": UNITS, "devices": []})
    with site.host.helper():
        planned = site.bcd("plan", "--json", "--spec", "-", stdin=text, account=MEMBER)
        assert (planned.returncode, planned.stderr, site.host.changes()) == (2, "", [])
        stranger = site.bcd("converge", "--spec", "-", stdin=text, account=STRANGER)
        assert (stranger.returncode, site.host.changes()) == (1, [])
        assert "group bcd" in stranger.stdout
        done = site.bcd("converge", "--json", "--spec", "-", stdin=text, account=MEMBER)
        assert (done.returncode, done.stderr) == (0, "")
        assert [unit["state"] for unit in result(done)["host"]["units"]] == ["converged", "converged"]
        quiet = site.bcd("converge", "--spec", "-", stdin=text, account=MEMBER)
        assert (quiet.returncode, quiet.stdout.splitlines()[0]) == (0, "host: CONVERGED")
        refused = '{"host": {"sysctl": {"kernel.core_pattern": "|/bin/sh"}}}'
        assert site.bcd("converge", "--spec", "-", stdin=refused, account=MEMBER).returncode == 1
        status = site.bcd("status", "--json", account=MEMBER)
        assert result(status)["root"] is True  # as root sees it
    assert site.host.read("/proc/sys/vm/swappiness") == "10\n"


# -- by Ansible


class Fleet:
    """One host, and plays on it."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        controller.freeze(str(scratch))  # the program is another one as soon as somebody edits its code
        self.inventory = fleet.make(str(scratch / "fleet"), [fleet.Hosts("one", PROFILES["debian"])])
        self.host = SimulatedHost(str(scratch / "fleet" / "trees" / HOST))
        self.host.run("true")  # the first entry leaves what a later one mounts upon

    def play(self, tasks: list[Any], *arguments: str) -> list[Any]:
        """The events of the tasks."""
        book = self.scratch / "play.yml"
        book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
        played = controller.playbook(str(self.scratch), self.inventory, str(book), *arguments, as_json=True)
        found: list[Any] = played.events()["tasks"]
        return found

    def role(self, *arguments: str, python: str = PYTHON) -> list[tuple[str, bool]]:
        """The status of each task of the role, and whether it changed something."""
        role = {"name": "bettercompute.bcd.bcd_program"}
        tasks = [{"ansible.builtin.import_role": role, "vars": {"bcd_program_python": python}}]
        self.events = self.play(tasks, *arguments)
        return [(event["status"], bool(event["result"].get("changed"))) for event in self.events]


@pytest.fixture
def one(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_the_role_installs_the_program_once(one: Fleet) -> None:
    """In check mode first, on a host without a trace of it; then for real; then in both modes with nothing to do."""
    folder = Path(one.host.tree) / "usr/lib/bcd"
    folder.rmdir()
    bare = one.role("--check", "--diff")
    assert {status for status, _changed in bare} == {"ok", "skipped"}
    assert any(changed for _status, changed in bare)
    folder.mkdir(mode=0o755)
    assert not (Path(one.host.tree) / BCD[1:]).exists()
    assert any(changed for _status, changed in one.role("--diff"))
    assert one.host.run(BCD, "--version").stdout == "bcd 0.1.0\n"
    before = one.events
    for arguments in (("--diff",), ("--check", "--diff")):
        statuses = one.role(*arguments)
        assert {status for status, _changed in statuses} == {"ok"}
        assert not any(changed for _status, changed in statuses)
    assert not any("diff" in event["result"] and "PK" in str(event["result"]["diff"]) for event in before)
    (Path(one.host.tree) / BCD[1:]).unlink()
    assert any(changed for _status, changed in one.role("--check"))


@newest_core
def test_the_role_says_why_an_interpreter_is_refused(one: Fleet) -> None:
    one.host.write("/tmp/python", '#!/bin/sh\nexec /.sim/venv/bin/python "$@"\n', 0o755)
    shutil.copyfile(os.path.realpath(sys.executable), Path(one.host.tree) / "tmp" / "mine")
    (Path(one.host.tree) / "tmp" / "mine").chmod(0o777)
    one.role(python="/tmp/mine")
    last = one.events[-1]
    assert last["status"] == "failed"
    assert not (Path(one.host.tree) / BCD[1:]).exists()


@newest_core
def test_json_is_the_modules_result(one: Fleet) -> None:
    """Both on one host: a plan, whose result depends on the host alone, key by key and value by value."""
    one.role()
    units = {**UNITS, "cpu": {"isolate": "2-3"}}
    tasks = [
        {"bettercompute.bcd.host_section": {"units": units}, "check_mode": True},
        {"bettercompute.bcd.cdi_holds": {"assignments": []}, "check_mode": True},
    ]
    modules = [event["result"] for event in one.play(tasks)]
    one.host.write(SPEC, json.dumps({"host": units, "devices": []}))
    told = json.loads(one.host.run(BCD, "plan", "--json", "--spec", SPEC).stdout)
    for ours, theirs in zip((told["host"], told["devices"]), modules):
        assert isinstance(ours.pop("diff"), list)  # which the callback leaves out
        stats = [whole.pop("ansible_stats", None) for whole in (ours, theirs)]  # it has the host's own name
        assert (stats[0] is None) == (stats[1] is None)
        assert ours == {
            key: value for key, value in theirs.items() if not key.startswith("_ansible") and key != "invocation"
        }
