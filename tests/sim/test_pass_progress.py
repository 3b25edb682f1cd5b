# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pass report's line while a run goes on, and its JSON: the real ansible-playbook on a real pseudo-terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.sim import controller, fleet
from tests.sim.marks import in_namespace
from tests.sim.terminal import Terminal, screen
from tests.sim.tree import PROFILES

pytestmark = in_namespace  # hosts that take their time are modules of Ansible's own
newest_core = pytest.mark.newest_core

TABLE = {"ANSIBLE_CALLBACKS_ENABLED": "bettercompute.bcd.pass_report", "TERM": "xterm", "BCD_PASS_PROGRESS": "auto"}
LINE = re.compile(r"\r\x1b\[K([^\r\x1b]*\d of \d+ hosts?[^\r\x1b]*)")
QUICK, SLOW = "Look at the host", "Take some time"


class Fleet(NamedTuple):
    """Simulated hosts, and where ansible runs."""

    scratch: Path
    inventory: str

    def book(self, *tasks: dict[str, Any], **play: Any) -> str:
        """A playbook of one play over all hosts: a task of ours, and those that are given."""
        look = {"name": QUICK, "bettercompute.bcd.sysctl": {"values": {"vm.swappiness": 10}}}
        path = self.scratch / "play.yml"
        path.write_text(json.dumps([{"hosts": "all", "gather_facts": False, **play, "tasks": [look, *tasks]}]))
        return str(path)

    def environment(self, **more: str) -> dict[str, str]:
        """As the tests run ansible, with the pass report; of what says where the tests run themselves, nothing."""
        found = controller.environment(str(self.scratch), **TABLE)
        for name in ("CI", "AWX_ISOLATED_DATA_DIR"):
            found.pop(name, None)
        return {**found, **more}

    def on_terminal(self, book: str, *arguments: str, columns: int = 100, **more: str) -> Terminal:
        """The run on a terminal."""
        command = [sys.executable, "-m", "ansible", "playbook", "-i", self.inventory, book, *arguments]
        return Terminal(command, self.environment(**more), str(self.scratch), columns)


def wait(seconds: float, on: str = "") -> dict[str, Any]:
    """A task that takes so long, on one host or on all."""
    task: dict[str, Any] = {"name": SLOW, "ansible.builtin.wait_for": {"timeout": seconds}}
    return {**task, "when": f"inventory_hostname == '{on}'"} if on else task


def lines(said: str) -> list[str]:
    """The texts that the line had, in order."""
    return LINE.findall(said)


def left(said: str) -> list[str]:
    """What is on the screen at the end, without blank lines and the rules behind headings."""
    return [re.sub(r" \*+$", "", line.rstrip()) for line in screen(said) if line.strip()]


@pytest.fixture
def hosts(tmp_path: Path) -> Fleet:
    scratch = tmp_path / "fleet"
    return Fleet(scratch, fleet.make(str(scratch), [fleet.Hosts("node", PROFILES["debian"], 3)]))


@pytest.mark.parametrize(
    "play",
    [
        {},
        pytest.param({"strategy": "free"}, marks=newest_core),
        pytest.param({"strategy": "host_pinned"}, marks=newest_core),
        pytest.param({"serial": 2}, marks=newest_core),
    ],
    ids=["linear", "free", "host_pinned", "serial"],
)
def test_the_line_tells_how_far_the_run_is_and_leaves_nothing_behind(hosts: Fleet, play: dict[str, Any]) -> None:
    book = hosts.book(wait(3, on="node-02"), {"name": "Say", "ansible.builtin.debug": {"msg": "said"}}, **play)
    with hosts.on_terminal(book) as terminal:
        assert terminal.end() == 0, terminal.said
    told = lines(terminal.said)
    if "serial" in play:
        said = f"{SLOW}: [01] of 2 hosts of this batch, 0 of 3 before it, running node-02 [2-9] s.*"
    else:
        said = f"{SLOW}: [012] of 3 hosts, running node-02 [2-9] s.*"
    assert [line for line in told if re.fullmatch(said, line)], told
    shown = left(terminal.said)
    assert not [line for line in shown if " of 3 hosts" in line or "running node" in line]
    assert shown[-4:] == [
        "host     state      changed  waits for  failed",
        *(f"node-0{number}  converged  sysctl   -          -" for number in (1, 2, 3)),
    ]
    for number in (1, 2, 3):
        assert f"changed: [node-0{number}]" in shown
        assert f"ok: [node-0{number}] =>" in [line[:16] for line in shown]


@newest_core
def test_a_loop_and_another_attempt_stand_beside_the_host(hosts: Fleet) -> None:
    turns = {**wait(2), "loop": ["first", "second"]}
    again = {"ansible.builtin.command": "false", "retries": 2, "delay": 1, "register": "x", "until": "x is success"}
    with hosts.on_terminal(hosts.book(turns, {**again, "ignore_errors": True}), "--limit", "node-01") as terminal:
        assert terminal.end() == 0, terminal.said
    told = " | ".join(lines(terminal.said))
    assert re.search(rf"{SLOW}: 0 of 1 host, running node-01 \d+ s \(first done\)", told)
    assert re.search(r"command: 0 of 1 host, running node-01 \d+ s \(tried again\)", told)


@newest_core
def test_a_host_that_takes_long_is_waited_for_and_one_that_is_gone_is_not(hosts: Fleet) -> None:
    (hosts.scratch / "trees/node-03/var/lib/sim/down").write_text("1e12\n")
    with hosts.on_terminal(hosts.book(wait(4, on="node-02")), BCD_PASS_SLOW="2") as terminal:
        assert terminal.end() == 4, terminal.said
    said = f"{SLOW}: 1 of 2 hosts, waiting for node-02 [2-9] s"
    assert [line for line in lines(terminal.said) if re.fullmatch(said, line)], terminal.said
    assert "node-03  no result  -        -          -" in left(terminal.said)


def test_an_interrupted_run_leaves_no_line(hosts: Fleet) -> None:
    with hosts.on_terminal(hosts.book(wait(60))) as terminal:
        terminal.until(lambda said: any(line.startswith(SLOW) for line in lines(said)))
        terminal.type("\x03")
        assert terminal.end(60) != 0
    shown = left(terminal.said)
    assert any("User interrupted execution" in line for line in shown)
    assert not [line for line in shown if "hosts, running" in line or "hosts, waiting" in line]


@newest_core
def test_a_question_is_not_drawn_over(hosts: Fleet) -> None:
    pause = {"name": "Ask", "ansible.builtin.pause": {"prompt": "Go on?"}}
    with hosts.on_terminal(hosts.book(wait(2), pause)) as terminal:
        terminal.until(lambda said: "Go on?" in said)
        with pytest.raises(AssertionError, match="did not come"):
            terminal.until(lambda said: "Ask: " in said.partition("Go on?")[2], 3)
        terminal.type("yes\r")
        assert terminal.end() == 0, terminal.said
    assert any(line.startswith(SLOW) for line in lines(terminal.said))
    assert not lines(terminal.said.partition("Go on?")[2])


@newest_core
@pytest.mark.parametrize("way", ["task", "strategy"])
def test_the_debugger_has_the_terminal_to_itself(hosts: Fleet, way: str) -> None:
    fails: dict[str, Any] = {"name": "Fail", "ansible.builtin.command": "false"}
    last = wait(2, on="node-02")  # runs on while another host's failure is looked at
    book = (
        hosts.book(last, {**fails, "debugger": "on_failed"})
        if way == "task"
        else hosts.book({**last, "failed_when": "inventory_hostname == 'node-01'", "when": True}, strategy="debug")
    )
    with hosts.on_terminal(book, "--limit", "node-01,node-02") as terminal:
        terminal.until(lambda said: "(debug)> " in said)
        with pytest.raises(AssertionError, match="did not come"):
            terminal.until(lambda said: lines(said.partition("(debug)> ")[2]), 3)
        terminal.type("q\r")
        terminal.end()


@newest_core
def test_the_line_keeps_to_the_terminal_s_width(hosts: Fleet) -> None:
    with hosts.on_terminal(hosts.book(wait(5)), columns=60) as terminal:
        terminal.until(lines)
        terminal.resize(40)
        terminal.until(lambda said: any(len(line) <= 39 for line in lines(said)))
        terminal.resize(10)
        assert terminal.end() == 0
    told = lines(terminal.said)
    assert max(map(len, told)) <= 59
    assert min(map(len, told)) >= 20  # below that there is none


@newest_core
def test_there_is_none_where_awx_runs_the_job(hosts: Fleet) -> None:
    place = "/runner/artifacts/1"
    with hosts.on_terminal(
        hosts.book(wait(2)), "--limit", "node-01", AWX_ISOLATED_DATA_DIR=place, ANSIBLE_FORCE_COLOR="1"
    ) as terminal:
        assert terminal.end() == 0, terminal.said
    assert "\x1b[K" not in terminal.said
    assert "PASS REPORT" in terminal.said


@newest_core
def test_always_is_on_any_terminal_and_a_line_now_and_then_in_a_log(hosts: Fleet) -> None:
    book = hosts.book(wait(3))
    with hosts.on_terminal(book, "--limit", "node-01", CI="true", BCD_PASS_PROGRESS="always") as terminal:
        assert terminal.end() == 0, terminal.said
    assert lines(terminal.said)
    more = {**TABLE, "BCD_PASS_PROGRESS": "always", "BCD_PASS_SLOW": "2", "ANSIBLE_FORCE_COLOR": "1"}
    played = controller.playbook(str(hosts.scratch), hosts.inventory, book, variables=more)
    assert played.rc == 0
    assert "\x1b[K" not in played.out
    assert re.search(f"^{SLOW}: 0 of 3 hosts, (running|waiting for) node-0", played.out, re.MULTILINE)
    quiet = controller.playbook(str(hosts.scratch), hosts.inventory, book, variables={**TABLE, "BCD_PASS_SLOW": "1"})
    assert " of 3 hosts" not in quiet.out


# -- JSON


def test_json_on_request_says_what_the_table_says(hosts: Fleet) -> None:
    path = hosts.scratch / "pass.json"
    path.write_text("an earlier one, of another mode\n")
    path.chmod(0o644)
    (hosts.scratch / "trees/node-03/var/lib/sim/down").write_text("1e12\n")
    umask = os.umask(0)
    try:
        more = {**TABLE, "BCD_PASS_JSON": str(path)}
        played = controller.playbook(str(hosts.scratch), hosts.inventory, hosts.book(), variables=more)
    finally:
        os.umask(umask)
    assert played.rc == 4, played.out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = json.loads(path.read_text())
    assert (document["kind"], document["version"]) == ("PassReport", 1)
    assert document["hosts"]["node-01"] == {
        "state": "converged",
        "planned": False,
        "changed": ["sysctl"],
        "waits_for": {},
        "failed": {},
        **{key: [] for key in ("failures", "waits", "conditions", "notes", "steps")},
    }
    assert document["hosts"]["node-03"]["state"] == "no result"
    assert document["hosts"]["node-03"]["failures"][0].startswith("unreachable: ")
    assert [name for name in os.listdir(hosts.scratch) if "pass.json" in name] == ["pass.json"]


@newest_core
def test_json_that_cannot_be_written_is_a_warning(hosts: Fleet) -> None:
    more = {**TABLE, "BCD_PASS_JSON": str(hosts.scratch / "nowhere" / "pass.json")}
    played = controller.playbook(str(hosts.scratch), hosts.inventory, hosts.book(), variables=more)
    assert played.rc == 0, played.out
    said = " ".join(played.err.split())
    assert "nowhere/pass.json was not written, see to json_path: No such file or directory" in said
    assert "PASS REPORT" in played.out


@newest_core
def test_a_run_that_is_killed_leaves_the_earlier_json(hosts: Fleet) -> None:
    path = hosts.scratch / "pass.json"
    path.write_text("{}\n")
    with hosts.on_terminal(hosts.book(wait(60)), BCD_PASS_JSON=str(path)) as terminal:
        terminal.until(lambda said: any(line.startswith(SLOW) for line in lines(said)))
        os.killpg(terminal.leader, signal.SIGKILL)
        terminal.end()
    assert path.read_text() == "{}\n"
