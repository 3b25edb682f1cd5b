# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What AWX's jobs run, run by its own engine, ansible-runner, from a private data directory as AWX lays it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

pytestmark = pytest.mark.newest_core
BIN = Path(sys.executable).parent
CHECKOUT = Path(controller.CHECKOUT)
OBJECTS = CHECKOUT / "playbooks" / "vars" / "awx_objects.yml"
# What AWX sets for a job, beside what it takes from credentials.
JOB = {"JOB_ID": "17", "INVENTORY_ID": "2", "PROJECT_REVISION": "0" * 40, "AWX_HOST": "https://awx.example.com"}

OPTIONS = "--become --forks 20"  # of a template with privilege escalation and that many forks


class Job(NamedTuple):
    """What AWX sees of a job when it is over."""

    rc: int
    status: str
    events: list[dict[str, Any]]

    def artifacts(self) -> dict[str, Any]:
        """What AWX keeps as the job's artifacts, and gives to the nodes behind it as variables."""
        (last,) = [event for event in self.events if event["event"] == "playbook_on_stats"]
        found: dict[str, Any] = last["event_data"]["artifact_data"]
        return found

    def waiting(self) -> dict[str, Any]:
        """The hosts that wait for a reboot, as its artifacts name them, with the reasons by unit."""
        return {host: reasons for host, reasons in self.artifacts()["bcd_converge_reboot_required"].items() if reasons}

    def changed(self) -> set[str]:
        """The hosts that a task changed."""
        data = [event["event_data"] for event in self.events if event["event"] == "runner_on_ok"]
        return {each["host"] for each in data if each["res"].get("changed")}

    def printed(self) -> str:
        """What AWX shows as the job's output."""
        return "\n".join(event["stdout"] for event in self.events)


class Awx(NamedTuple):
    """Private data directories for the jobs of one project and one inventory."""

    scratch: Path
    hosts: dict[str, SimulatedHost]

    def environment(self) -> dict[str, str]:
        """Of the engine; the project has the ansible.cfg."""
        values = {**controller.environment(str(self.scratch)), **JOB}
        del values["ANSIBLE_CONFIG"]
        values["PATH"] = os.pathsep.join([str(BIN), values["PATH"]])
        return values

    def program(self, *words: str, cwd: Path, given: bytes | None = None) -> bytes:
        """Run one of the programs; its output."""
        done = subprocess.run(
            [str(BIN / words[0]), *words[1:]],
            cwd=cwd,
            env=self.environment(),
            input=given,
            capture_output=True,
            check=False,
            timeout=600,
        )
        # ansible-runner exits as ansible-playbook did, and that is in the job's artifacts, too.
        assert done.returncode in (0, 2), done.stderr.decode()
        return done.stdout

    def directory(self, job: str, variables: dict[str, Any]) -> Path:
        """Lay the private data directory of a job."""
        place = self.scratch / "jobs" / job
        for folder in ("env", "inventory"):
            (place / folder).mkdir(parents=True)
        shutil.copytree(self.scratch / "project", place / "project")
        (place / "env" / "settings").write_text(json.dumps({"suppress_output_file": True}), encoding="utf-8")
        (place / "env" / "extravars").write_text(json.dumps(variables), encoding="utf-8")
        script = place / "inventory" / "hosts"
        shutil.copy(self.scratch / "inventory-script", script)
        script.chmod(0o700)
        (place / "env" / "cmdline").write_text(OPTIONS, encoding="utf-8")
        return place

    def run(self, job: str, playbook: str, check: bool = False, **variables: Any) -> Job:
        """Run a playbook of the project as a job, of the type check where that is asked for."""
        place = self.directory(job, variables)
        if check:
            (place / "env" / "cmdline").write_text(f"{OPTIONS} --check", encoding="utf-8")
        self.program("ansible-runner", "run", str(place), "-p", f"{playbook}.yml", "--ident", job, "-q", cwd=place)
        return read(place, job)


def read(place: Path, job: str) -> Job:
    """The artifacts of a job."""
    folder = place / "artifacts" / job
    texts = [path.read_text(encoding="utf-8") for path in (folder / "job_events").glob("*.json")]
    events = sorted((json.loads(text) for text in texts), key=lambda event: int(event["counter"]))
    return Job(int((folder / "rc").read_text()), (folder / "status").read_text(), events)


def source_vars() -> dict[str, str]:
    """The environment that awx_setup gives the update of the inventory."""
    levels = yaml.safe_load(OBJECTS.read_text(encoding="utf-8"))["bcd_awx_levels"]
    (source,) = [each for level in levels for each in level if each["id"] == "source"]
    found: dict[str, str] = source["fields"]["source_vars"]
    return found


@pytest.fixture
def awx(tmp_path: Path) -> Awx:
    """A project with a FleetConfig of three simulated hosts, and its inventory as AWX takes it from there."""
    fleet.make(str(tmp_path), [fleet.Hosts("node", PROFILES["debian"], 3)])
    trees = {f"node-0{number}": str(tmp_path / "trees" / f"node-0{number}") for number in (1, 2, 3)}
    own = {"ansible_connection": "sim", "ansible_python_interpreter": sys.executable}
    members = {name: {**own, "sim_tree": tree} for name, tree in trees.items()}
    isolating = {"kernelModules": {"load": ["tun"]}, "cpu": {"isolate": "2-3"}}
    pools = [
        {"name": "fra", "site": "fra", "class": "vps-host", "policy": isolating},
        {"name": "ams", "site": "ams", "class": "vps-host", "policy": {"kernelModules": {"load": ["tun"]}}},
    ]
    pools[0]["hosts"] = {name: members[name] for name in ("node-01", "node-02")}
    pools[1]["hosts"] = {"node-03": members["node-03"]}
    shutil.copytree(CHECKOUT / "docs" / "awx-project", tmp_path / "project")
    document = json.dumps({"version": 1, "pools": pools})
    (tmp_path / "project" / "fleet.json").write_text(document, encoding="utf-8")
    awx = Awx(tmp_path, {name: SimulatedHost(tree) for name, tree in trees.items()})
    # The update of an inventory source. AWX keeps what it reads of the plugin, and hands it to each job by a script.
    environment = {**awx.environment(), **source_vars(), "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True"}
    (tmp_path / "project" / "ansible.cfg").rename(tmp_path / "ansible.cfg")  # the variables alone have to do
    done = subprocess.run(
        [str(BIN / "ansible-inventory"), "-i", "fleet.json", "--list", "--export"],
        cwd=tmp_path / "project",
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "ansible.cfg").rename(tmp_path / "project" / "ansible.cfg")
    text = json.dumps(json.loads(done.stdout))
    (tmp_path / "inventory-script").write_text(f"#!{sys.executable}\nprint({text!r})\n", encoding="utf-8")
    return awx


def test_the_workflow_converges_asks_reboots_and_converges(awx: Awx) -> None:
    answers: dict[str, Any] = {
        "bcd_hosts": "all",
        "bcd_converge_max_disruption": "gpu",
        "bcd_reboot_max_unavailable": "1",
    }

    first = awx.run("converge", "converge", **answers)
    assert (first.rc, first.status) == (0, "successful"), first.printed()
    due = first.waiting()
    assert sorted(due) == ["node-01", "node-02"]
    assert "reboot the node" in due["node-01"]["cpu"]
    assert first.changed() == set(awx.hosts)

    # A node gets the artifacts of those before it as variables, which win over every other: they may steer nothing.
    handed = {**answers, **first.artifacts()}
    shown = awx.run("status", "status", **handed)
    assert (shown.rc, shown.status) == (0, "successful"), shown.printed()
    assert shown.waiting() == due
    assert shown.artifacts()["bcd_fleet_summary"]["reboot_required"] == 2
    assert shown.artifacts()["bcd_fleet_summary"]["pools"]["ams"]["converged"] == 1
    assert shown.artifacts()["bcd_report"].endswith("/project/bcd-report/fleet.html")
    assert shown.changed() == set()
    # What the person who is asked for approval looks at.
    assert "reboot the node" in shown.printed()

    handed.update(shown.artifacts())
    boots = {name: host.read("/proc/sys/kernel/random/boot_id") for name, host in awx.hosts.items()}
    reboot = awx.run("reboot", "reboot", bcd_reboot_drain="false", bcd_reboot_with_holds="false", **handed)
    assert (reboot.rc, reboot.status) == (0, "successful"), reboot.printed()
    done = reboot.artifacts()["bcd_reboot"]
    assert sorted(done["rebooted"]) == ["node-01", "node-02"]
    assert sorted(done["proved"]) == ["node-01", "node-02"]
    assert (done["waves"], done["failed"]) == ([["node-01"], ["node-02"]], {})
    anew = {name for name, host in awx.hosts.items() if host.read("/proc/sys/kernel/random/boot_id") != boots[name]}
    assert anew == {"node-01", "node-02"}

    handed.update(reboot.artifacts())
    last = awx.run("again", "converge", **handed)
    assert (last.rc, last.status) == (0, "successful"), last.printed()
    assert last.changed() == set()
    plan = awx.run("plan", "plan", **handed)
    assert (plan.rc, plan.status) == (0, "successful"), plan.printed()
    summary = plan.artifacts()["bcd_fleet_summary"]
    assert (summary["hosts"], summary["converged"], summary["drifted"], summary["reboot_required"]) == (3, 3, 0, 0)
    assert (last.waiting(), plan.waiting()) == ({}, {})

    # Nothing is due: the node behind an approval does nothing, and says so.
    nothing = awx.run("nothing", "reboot", **handed)
    assert (nothing.rc, nothing.status) == (0, "successful"), nothing.printed()
    assert (nothing.artifacts()["bcd_reboot"]["rebooted"], nothing.artifacts()["bcd_reboot"]["waves"]) == ([], [])


def test_the_doctor_and_a_reboot_as_a_check_change_nothing(awx: Awx) -> None:
    for host in awx.hosts.values():
        host.write("/run/reboot-required", "*** System restart required ***\n")
    boots = {name: host.read("/proc/sys/kernel/random/boot_id") for name, host in awx.hosts.items()}
    found = awx.run("doctor", "doctor", bcd_hosts="all", bcd_doctor_fail_on="never")
    assert (found.rc, found.status, found.changed()) == (0, "successful", set()), found.printed()
    assert "node-03" in found.printed()
    checked = awx.run("check", "reboot", check=True, bcd_hosts="all", bcd_reboot_dry_run="false")
    assert (checked.rc, checked.status, checked.changed()) == (0, "successful", set()), checked.printed()
    assert checked.artifacts()["bcd_reboot"]["rebooted"] == []
    assert boots == {name: host.read("/proc/sys/kernel/random/boot_id") for name, host in awx.hosts.items()}


def test_a_job_on_an_execution_node_streams_what_awx_reads(awx: Awx) -> None:
    place = awx.directory("sent", {"bcd_hosts": "all", "bcd_report_dir": ""})
    worker, back = awx.scratch / "worker", awx.scratch / "back"
    worker.mkdir()
    sent = awx.program("ansible-runner", "transmit", str(place), "-p", "plan.yml", "--ident", "sent", cwd=place)
    answered = awx.program("ansible-runner", "worker", "--private-data-dir", str(worker), cwd=worker, given=sent)
    awx.program("ansible-runner", "process", str(back), "--ident", "sent", cwd=awx.scratch, given=answered)
    job = read(back, "sent")
    assert (job.rc, job.status) == (0, "successful"), job.printed()
    assert job.artifacts()["bcd_fleet_summary"]["drifted"] == 3
    assert job.printed().count("TASK [Say what the host lacks]") == 1


def test_a_job_that_fails_says_so_and_still_hands_its_reasons_on(awx: Awx) -> None:
    awx.hosts["node-03"].write("/etc/bcd/config.toml", "[host]\nunits = false\n")
    job = awx.run("refused", "converge", bcd_hosts="all")
    assert (job.rc, job.status) == (2, "failed"), job.printed()
    assert sorted(job.waiting()) == ["node-01", "node-02"]
    failed = [event["event_data"] for event in job.events if event["event"] == "runner_on_failed"]
    assert {each["host"] for each in failed} == {"node-03"}
