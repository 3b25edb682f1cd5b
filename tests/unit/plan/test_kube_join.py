# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of a join, in a real shell: the token is in a file for as long as kubeadm runs, and nowhere else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Ask, Past, Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import SLOT, Given, Secret
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Step
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.join_configuration import render
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.join_faults import reason
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_entry import Entry
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_join import SCRIPT, attempt, plan
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import BOOTSTRAP, JOIN_FILE, Settings
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.service_seen import Service

TOKEN = "abcdef.0123456789abcdef"
WANT = Settings("https://10.0.0.1:6443", "10.0.0.1:6443", "ab" * 32, "vault:join")
NO_ENTRY = Entry()
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENCE = 20.0
CAPTURES = Path(__file__).parents[2] / "captures" / "kubernetes"
# A kubeadm that notes what it was given and who can see it, and then waits to be let go.
KUBEADM = """#!/bin/sh
umask 022
[ -e "$HERE/keeps" ] || echo token >"$HERE/bootstrap-kubelet.conf"
cp "$3" "$HERE/given"
stat -c %a "$3" >"$HERE/mode"
cat /proc/$$/cmdline /proc/$PPID/cmdline /proc/$$/environ /proc/$PPID/environ >"$HERE/seen"
: >"$HERE/started"
while [ -e "$HERE/wait" ]; do sleep 0.05; done
cat "$HERE/out"
cat "$HERE/err" >&2
: >"$HERE/ended"
exit "$(cat "$HERE/rc")"
"""


class Machine:
    """A folder with a kubeadm that says `out` and `err` and ends with `rc`."""

    shell: tuple[str, ...] = ("sh",)

    def __init__(self, here: Path, out: str = "", err: str = "", rc: int = 0) -> None:
        self.here = here
        (here / "bin").mkdir()
        (here / "bin/kubeadm").write_text(KUBEADM, encoding="utf-8")
        (here / "bin/kubeadm").chmod(0o755)
        for name, text in (("out", out), ("err", err), ("rc", str(rc))):
            (here / name).write_text(text, encoding="utf-8")
        self.file = here / "k8s-join.yaml"
        self.bootstrap = here / "bootstrap-kubelet.conf"
        self.argv = (*self.shell, "-c", SCRIPT, "kubeadm-join", str(self.file), str(self.bootstrap))
        self.environment = {"PATH": f"{here}/bin:{os.environ['PATH']}", "HERE": str(here), "LC_ALL": "C"}
        self.text = render(WANT, "gpu-01", {}, 31, TOKEN)

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv,
            input=self.text,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def begin(self) -> subprocess.Popen[str]:
        """Have it wait in kubeadm."""
        (self.here / "wait").touch()
        # A shell cannot trap what was ignored before it: these tests may run in the background, or by nohup.
        before = {sign: signal.signal(sign, signal.SIG_DFL) for sign in SIGNALS}
        child = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
            start_new_session=True,
        )
        for sign, handler in before.items():
            signal.signal(sign, handler)
        assert child.stdin is not None
        child.stdin.write(self.text)
        child.stdin.close()
        until((self.here / "started").exists)
        assert self.file.exists()
        return child


@pytest.fixture(autouse=True, params=["dash", "bash --posix"])  # sh on Debian, and on the RHEL family
def shell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "shell", tuple(request.param.split()))


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


def test_kubeadm_reads_the_configuration_and_nobody_sees_the_token(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    done = machine.run()
    assert (done.returncode, done.stdout, done.stderr.strip()) == (0, "", "")
    assert (tmp_path / "given").read_text(encoding="utf-8") == machine.text
    assert TOKEN in machine.text
    assert (tmp_path / "mode").read_text(encoding="utf-8").strip() == "600"
    assert not machine.file.exists()
    seen = (tmp_path / "seen").read_bytes()
    assert b"kubeadm" in seen
    assert TOKEN.partition(".")[2].encode() not in seen


@pytest.mark.parametrize("rc", [1, 2, 3])
def test_it_fails_as_kubeadm_does_and_the_file_is_gone(tmp_path: Path, rc: int) -> None:
    machine = Machine(tmp_path, err="error: no\n", rc=rc)
    done = machine.run()
    assert (done.returncode, done.stderr, machine.file.exists()) == (rc, "error: no\n", False)
    assert not machine.bootstrap.exists()


def test_bootstrap_credentials_that_were_there_before_are_somebody_else_s(tmp_path: Path) -> None:
    machine = Machine(tmp_path, rc=1)
    (tmp_path / "keeps").touch()
    machine.bootstrap.write_text("theirs", encoding="utf-8")
    assert (machine.run().returncode, machine.bootstrap.read_text(encoding="utf-8")) == (1, "theirs")


@pytest.mark.parametrize("sign", SIGNALS)
def test_a_signal_to_all_of_it_leaves_no_file(tmp_path: Path, sign: signal.Signals) -> None:
    machine = Machine(tmp_path)
    child = machine.begin()
    os.killpg(child.pid, sign)
    child.wait(timeout=PATIENCE)
    assert (child.returncode != 0, machine.file.exists(), machine.bootstrap.exists()) == (True, False, False)


def test_a_pass_that_is_killed_lets_it_go_on_and_the_file_goes(tmp_path: Path) -> None:
    machine = Machine(tmp_path, out="This node has joined the cluster\n" * 5000)  # more than a pipe takes
    (tmp_path / "wait").touch()
    program = (
        "import subprocess, sys; child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, "
        "stderr=subprocess.PIPE, start_new_session=True); child.communicate(sys.argv[1].encode())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, machine.text, *machine.argv], env=machine.environment
    ) as parent:
        until((tmp_path / "started").exists)
        parent.kill()
    assert machine.file.exists()
    (tmp_path / "wait").unlink()
    until((tmp_path / "ended").exists)
    until(lambda: not (machine.file.exists() or machine.bootstrap.exists()))


NOISE = """[preflight] Running pre-flight checks
E1130 00:01:21.720290   11192 remote_runtime.go:1177] "RuntimeConfig from runtime service failed" err="rpc error: code"
\t[WARNING Service-kubelet]: kubelet service is not enabled, please run 'systemctl enable kubelet.service'
"""
STACK = "To see the stack trace of this error execute with --v=5 or higher\n"
HINT = (
    "[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`\n"
)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("error execution phase preflight: no\n" + STACK, "error execution phase preflight: no\n"),
        (
            "[preflight] Some\n\t[ERROR CRI]: no\n" + HINT + "error: checks failed\n" + STACK,
            "\t[ERROR CRI]: no\nerror: checks failed\n",
        ),
        (
            "[kubelet-check] The kubelet is not healthy after 1m0s\n\nUnfortunately, an error has occurred:\n",
            "[kubelet-check] The kubelet is not healthy after 1m0s\n",
        ),
        ('token: Invalid value: "x"\n' + STACK, 'token: Invalid value: "x"\n'),
    ],
)
def test_of_what_kubeadm_says_the_errors_are_kept(tmp_path: Path, said: str, kept: str) -> None:
    assert Machine(tmp_path, out=NOISE, err=said, rc=1).run().stderr == kept


def test_where_there_is_none_the_last_lines_are(tmp_path: Path) -> None:
    assert Machine(tmp_path, err="Killed\n", rc=137).run().stderr == "Killed\n"


@pytest.mark.parametrize(
    ("capture", "words"),
    [
        (
            "kubeadm136_preflight_fails",
            ("SystemVerification", "failed to get unified mountpoint", "cannot get a cgroup mount point", "cgroup v2"),
        ),
        ("kubeadm136_kubelet_never_healthy", ("the kubelet does not start", "journalctl -u kubelet")),
    ],
)
def test_what_kubeadm_was_recorded_to_say_has_its_answer(tmp_path: Path, capture: str, words: tuple[str, ...]) -> None:
    text = (CAPTURES / f"{capture}.txt").read_text(encoding="utf-8")
    done = Machine(tmp_path, out=text, rc=1).run()
    told = " ".join(done.stderr.split())[-600:]  # what a failed step keeps
    found = reason(f"cannot join: sh -c {SCRIPT} exited with 1: {told}", WANT, "gpu-01").message
    assert [word for word in words if word not in found] == []
    assert "WARNING" not in found


def test_a_join_that_was_recorded_says_nothing(tmp_path: Path) -> None:
    text = (CAPTURES / "kubeadm136_join_ok.txt").read_text(encoding="utf-8")
    assert Machine(tmp_path, out=text).run().returncode == 0


# -- the plan around it


def planned(entry: Entry = NO_ENTRY, token: str = TOKEN, version: str = "v1.31.4", **past: Any) -> tuple[Step, ...]:
    given = Given({"vault:join": Secret(token)} if token else {})
    answers = {
        Ask(("kubeadm", "version", "-o", "short")): Answer(0, f"{version}\n"),
        Ask(
            ("kubeadm", "config", "validate", "--config", "{join}"),
            (("join", render(WANT, "gpu-01", {}, int(version.split(".")[1]), TOKEN)),),
        ): Answer(0, "ok\n"),
    }
    todo = Todo()
    plan(todo, WANT, "gpu-01", entry, Past(given=given, answers=answers)._replace(**past))
    return todo.plan().steps


def test_the_plan_names_the_secret_and_does_not_hold_it() -> None:
    join = next(step for step in planned() if step.kind == "run")
    assert (join.secret, join.argv[-2:], SLOT in join.text) == ("vault:join", (JOIN_FILE, BOOTSTRAP), True)
    assert TOKEN.partition(".")[2] not in repr(join)


def test_the_join_is_bounded_and_looked_after() -> None:
    join = next(step for step in planned() if step.kind == "run")
    assert (join.barrier, join.settle > 0, join.timeout <= 600) == (True, True, True)


def test_the_kubelet_is_enabled_first() -> None:
    steps = planned(Entry(kubelet=Service("loaded", "activating", "disabled")))
    assert [step.argv[:2] for step in steps if step.kind == "run"] == [("systemctl", "enable"), ("sh", "-c")]


def test_attempts_are_told_apart_by_their_tokens_without_them() -> None:
    one, two = attempt(Secret(TOKEN)), attempt(Secret("zzzzzz.0123456789abcdef"))
    assert len({one, two, attempt(None)}) == 3
    assert TOKEN[:6] not in one


def test_what_came_of_it_is_told_once_all_is_clean() -> None:
    tries = attempt(Secret(TOKEN))
    entry = Entry(("/etc/kubernetes/pki/ca.crt",), Service("loaded", "activating", "enabled"), said="swap is on")
    said = "cannot join: sh exited with 1: [kubelet-check] The kubelet is not healthy after 2m0s"
    steps = planned(entry, vain=frozenset((tries,)), tried={tries: said}, owed=frozenset(("clean join",)))
    assert [step.lane for step in steps] == ["clean", "clean", "member"]
    assert steps[0].argv[:2] == ("systemctl", "stop")
    assert steps[1].argv == ("rm", "-f", "--", "/etc/kubernetes/pki/ca.crt", JOIN_FILE)
    assert (steps[2].kind, "swap is on" in steps[2].text, steps[2].retry) == ("fail", True, True)
    assert reason(said, WANT, "gpu-01", "swap is on").message in steps[2].text
