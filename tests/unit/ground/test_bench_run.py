# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bench's arithmetic, its stand-ins for programs, its groups of processes, its history and its picture."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.bench import cases, figures, history, medians, quiet, run, scale, stubs, work
from tests.bench.cases import Case
from tests.bench.cgroups import Groups, NoGroups, hierarchies
from tests.bench.figures import Figure, Result
from tests.bench.medians import Spread
from tests.bench.stage import keep, restore
from tests.bench.trial import Cost, Failed, Meter, clean_environment


def cost(wall: float, controller: float = 0.0, host: float = 0.0) -> Cost:
    return Cost(wall, controller, host, 0.0)


# -- arithmetic


def test_a_median_has_its_quartiles() -> None:
    assert medians.spread([1.0, 2.0, 3.0, 4.0, 100.0]) == Spread(3.0, 2.0, 4.0)
    assert medians.spread([7.0]) == Spread(7.0, 7.0, 7.0)
    assert medians.spread([1.0, 2.0, 3.0, 4.0, 100.0]).share == pytest.approx(1 / 3)


def test_a_ratio_is_one_of_medians_over_the_empty_run() -> None:
    """10 over 6 with 2 for nothing is 2, and one outlier of a run does not move it."""
    above = medians.over([10.0, 10.0, 90.0], [2.0, 2.0, 1.0])
    below = medians.over([6.0, 6.0, 6.0], [2.0, 2.0, 1.0])
    assert medians.ratio(above, below).median == 2.0


def test_a_ratio_over_nothing_is_no_figure() -> None:
    with pytest.raises(ZeroDivisionError):
        medians.ratio([1.0], [0.0])


def test_every_case_comes_once_a_round_and_first_in_turn() -> None:
    names = ["a", "b", "c"]
    rounds = [medians.order(names, turn) for turn in range(4)]
    assert [one[0] for one in rounds] == ["a", "b", "c", "a"]
    assert all(sorted(one) == names for one in rounds)


# -- figures

CASES = {case.name: case for case in (Case("nothing", "k", 1, "empty"), Case("ours", "k", 1, "a", empty="nothing"))}
CASES["theirs"] = Case("theirs", "k", 1, "b", empty="nothing")
COSTS = {"nothing": [cost(1.0)] * 3, "ours": [cost(2.0, host=0.5)] * 3, "theirs": [cost(31.0, host=20.0)] * 3}


def test_a_bound_holds_on_its_side_alone() -> None:
    at_least = Figure("f", 30, "theirs", "ours", least=True)
    more = at_least._replace(bound=30.1)
    at_most = Figure("f", 30, "theirs", "ours")
    less = at_most._replace(bound=29.9)
    found = figures.measure((at_least, more, at_most, less), COSTS, CASES, apart=True)
    assert [result.measured and result.measured.median for result in found] == [30.0] * 4
    assert [result.holds for result in found] == [True, False, True, False]


def test_a_whole_run_is_compared_with_what_it_starts_with() -> None:
    (found,) = figures.measure((Figure("f", 20, "theirs", "ours", over_empty=False),), COSTS, CASES, apart=True)
    assert found.measured == Spread(15.5, 15.5, 15.5)


def test_what_was_not_measured_is_told_and_holds_nothing() -> None:
    host = Figure("f", 1, "theirs", "ours", "host")
    missing = Figure("f", 1, "theirs", "another")
    found = figures.measure((host, missing), COSTS, CASES, apart=False)
    assert [(result.measured, result.holds) for result in found] == [(None, None)] * 2
    assert "no control groups" in found[0].why
    assert found[1].why == "not run: another"
    assert "not measured: not run: another" in figures.shown(found)


def test_costs_have_no_processor_time_where_it_is_not_known_apart() -> None:
    apart, together = (figures.costs_shown(COSTS, CASES, known).splitlines()[2].split() for known in (True, False))
    assert apart == ["ours", "1", "1.000", "0%", "0.000", "0.500", "0.000", "-"]
    assert together == ["ours", "1", "1.000", "0%", "-", "-", "-", "-"]


def test_the_tables_say_of_each_bound_whether_it_is_met() -> None:
    found = [result("good", 1.5, 2.0), result("bad", 2.5, 2.0), result("none", None, 2.0)]
    assert [line.split()[-1] for line in figures.shown(found).splitlines()[1:3]] == ["met", "BROKEN"]
    assert figures.table(found).splitlines()[2:] == [
        "| good | at most 2 | 1.50 | 1.35 to 1.65 | - | met |",
        "| bad | at most 2 | 2.50 | 2.25 to 2.75 | - | **broken** |",
        "| none | at most 2 | - | - | - | not measured |",
    ]


def test_figures_speak_of_cases_that_there_are() -> None:
    known = {case.name: case for case in cases.cases("python3")}
    named = {name for figure in (*figures.over(50), *figures.FIGURES) for name in (figure.above, figure.below)}
    assert named <= set(known)
    assert {case.empty for case in known.values() if case.empty} <= set(known)


def test_figures_over_another_number_of_hosts_have_names_of_their_own() -> None:
    """Else the history would have them for those over fifty."""
    fewer, usual = figures.over(7), figures.over(50)
    assert not {figure.name for figure in fewer} & {figure.name for figure in usual}
    assert all("7 hosts" in figure.name for figure in fewer)
    known = {case.name: case for case in cases.cases("python3", 7)}
    named = {name for figure in fewer for name in (figure.above, figure.below)}
    assert {known[name].hosts for name in named} == {7}
    assert {known[known[name].empty].hosts for name in named} == {7}


# The table: what is compared, by its cases or its name, in which measure, and the bound.
BOUNDS = {
    ("role over 50 hosts", "trivial module over 50 hosts", "controller"): (1.25, False),
    ("role over 50 hosts", "trivial module over 50 hosts", "host"): (1.5, False),
    ("a task a unit over 50 hosts", "role over 50 hosts", "controller"): (9, True),
    ("a task a unit over 50 hosts", "role over 50 hosts", "host"): (8, True),
    ("30 sysctls by ansible.posix", "30 sysctls", "wall"): (25, True),
    ("30 sysctls by ansible.posix", "30 sysctls", "host"): (28, True),
    ("30 sysctls by ansible.posix", "30 sysctls as a section", "wall"): (25, True),
    ("30 sysctls by ansible.posix", "30 sysctls as a section", "host"): (28, True),
    ("the work by peers", "the work", "wall"): (18, True),
    ("the work at first by peers", "the work at first", "wall"): (25, True),
    ("one unit differs in single mode", "role over 1 host", "wall"): (1.1, False),
    ("one unit differs in tasks mode", "role over 1 host", "wall"): (2.0, False),
    ("role through the program over 8 hosts", "ping over 8 hosts", "host"): (0.4, False),
    ("agent's idle pass", "python3 -c pass", "host"): (4, False),
}


def test_every_figure_has_the_bound_that_was_set() -> None:
    found = {
        (one.above, one.below, one.measure): (one.bound, one.least) for one in (*figures.over(50), *figures.FIGURES)
    }
    assert found == BOUNDS
    others = (scale.PER_HOST, scale.MEMORY, scale.EVENTS, figures.EIGHT_GPUS)
    assert [(one.bound, one.unit, one.least) for one in others] == [
        (1.15, "times", False),
        (1.0, "GiB", False),
        (10, "events", False),
        (4, "processes", False),
    ]


def test_whole_runs_are_compared_where_one_unit_differs_and_nowhere_else() -> None:
    every = (*figures.over(50), *figures.FIGURES)
    assert {one.above for one in every if not one.over_empty} == {name for name, *_rest in BOUNDS if "differs" in name}


def test_the_same_work_is_modules_parameters_and_pools_and_a_boot_argument_by_itself() -> None:
    assert set(work.SECTIONS) == {"kernel-modules", "sysctl", "hugepages"}
    assert (len(work.MODULES), len(work.WANTED), len(work.POOLS)) == (6, 30, 2)
    used = [next(name for name in task if "." in name) for task in work.peer_tasks()]
    look_and_write = ["ansible.builtin.command", "ansible.builtin.shell"]
    assert used == ["community.general.modprobe", "ansible.posix.sysctl", *look_and_write]
    used = [next(name for name in task if "." in name) for task in work.argument_tasks()]
    assert used == ["ansible.builtin.lineinfile", "ansible.builtin.command"]


def test_picked_cases_bring_the_empty_ones_that_they_stand_over() -> None:
    picked = cases.pick(cases.cases("python3"), "sysctls")
    assert [case.name for case in picked] == [
        "empty over 1 host",
        "30 sysctls",
        "30 sysctls as a section",
        "30 sysctls by ansible.posix",
    ]


def test_each_case_can_be_picked_by_its_whole_name() -> None:
    every = cases.cases("python3")
    for case in every:
        assert case in cases.pick(every, f"none of these,{case.name}")
        assert "," not in case.name


def test_a_command_that_does_not_say_what_it_is_to_say_is_no_measurement() -> None:
    case = Case("c", "k", 1, command="true", says="host CONVERGED\n")
    assert cases.wrong(case, "host CONVERGED\n", 1) == ""
    assert cases.wrong(case, "nothing to keep\nhost CONVERGED: no\n", 1) == "it did not say 'host CONVERGED'"


def test_turns_that_are_made_again_though_they_were_kept_are_seen() -> None:
    before = {"code": {"cpu": {"asked": [1]}, "iommu": {"asked": [2]}}}
    kept: dict[str, Any] = {"cpu": {"asked": [1]}, "iommu": {"asked": [3]}}
    after: dict[str, dict[str, Any]] = {"code": kept, "other": {"sysctl": {}}}
    assert quiet.made_anew(before, before) == set()
    assert quiet.made_anew(before, after) == {"iommu", "sysctl"}
    assert quiet.never(after, ["cpu", "sysctl"]) == {"code": ["sysctl"], "other": ["cpu"]}


def test_what_a_host_kept_of_quiet_turns_is_read_where_the_program_keeps_it(tmp_path: Path) -> None:
    assert quiet.kept(str(tmp_path)) == {}
    folder = tmp_path / "run/bcd-hostconfig/quiet"
    folder.mkdir(parents=True)
    (folder / "abc.json").write_text('{"version": 1, "units": {"cpu": {"key": "k"}}}')
    assert quiet.kept(str(tmp_path)) == {"abc": {"cpu": {"key": "k"}}}


def test_a_run_that_did_something_else_is_no_measurement() -> None:
    case = Case("c", "k", 1, "a")
    line = "one-01                     : ok={}    changed={}    unreachable=0    failed={}    skipped=0\n"
    assert cases.wrong(case, line.format(1, 0, 0), 1) == ""
    assert "changed something" in cases.wrong(case, line.format(1, 2, 0), 1)
    assert "failed" in cases.wrong(case, line.format(1, 0, 1), 1)
    assert "in the recap" in cases.wrong(case, line.format(1, 0, 0), 2)


def test_scale_is_judged_by_the_controllers_time_a_host() -> None:
    empty = cost(1.0, 1.0)
    rows = [
        scale.Row(scale.Load(100), Cost(9.0, 5.0, 0.0, 0.0, 1 << 29), empty),
        scale.Row(scale.Load(1000), Cost(90.0, 49.0, 0.0, 0.0, 1 << 30), empty),
    ]
    per_host, memory, events = scale.results(rows, scale.Events(100, 204, 1, 1.0), apart=True)
    assert [result.measured and result.measured.median for result in (per_host, memory, events)] == [1.2, 1.0, 4.0]
    assert [result.holds for result in (per_host, memory, events)] == [False, True, True]


def test_scale_without_control_groups_judges_no_time_of_the_controllers() -> None:
    """It would have the hosts' in it."""
    rows = [scale.Row(scale.Load(many), cost(many, many), cost(1.0, 1.0)) for many in (100, 1000)]
    per_host, memory, events = scale.results(rows, scale.Events(100, 204, 1, 1.0), apart=False)
    assert [result.holds for result in (per_host, memory, events)] == [None, None, True]
    assert "no control groups" in per_host.why
    shown = scale.shown(rows, [], apart=False).splitlines()[1]
    assert shown.split()[-5:] == ["99.0", "-", "-", "-", "-"]
    with_times = scale.shown(rows, [], apart=True).splitlines()[1]
    assert with_times.split()[-5:] == ["99.0", "990.0", "0.0", "0.0", "-"]


def test_the_grid_has_every_number_of_hosts_with_all_forks_and_strategies() -> None:
    grid = {(one.hosts, one.forks, one.strategy) for one in scale.ALL if one.slices == 1}
    strategies = ("linear", "free", "host_pinned")
    assert grid == {(many, forks, how) for many in (1, 10, 100, 1000) for forks in (10, 50) for how in strategies}
    assert {one.hosts for one in scale.ALL if one.slices > 1} == {100, 1000}


def test_numbers_of_hosts_are_run_in_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[int] = []
    monkeypatch.setattr(scale, "run", lambda _bench, load: ran.append(load.hosts))
    monkeypatch.setattr(scale, "events", lambda *_given: None)
    scale.measured(Mock(), tmp_path, scale.BOUNDED, 2, lambda _said: None)
    assert ran == [100, 1000, 100] * 2


def test_what_a_job_writes_is_kept_in_bytes() -> None:
    kept = scale.document([], [scale.Events(10, 24, 30_000, 1_500.0)])
    assert kept["events"] == [{"hosts": 10, "events": 24, "event_bytes": 30_000, "result_bytes": 1_500.0}]
    assert "24 events, 3.0 kB of them a host, 1.5 kB of results a host" in scale.shown(
        [], [scale.Events(10, 24, 30_000, 1_500.0)], apart=True
    )


# -- programs that answer at once


def call(*argv: str, rc: int = 0, out: str = "", given: str = "", **more: Any) -> dict[str, Any]:
    return {"argv": list(argv), "input": given, "rc": rc, "out": out, "err": "", "changed": {}, "gone": [], **more}


def played(tmp_path: Path, calls: list[dict[str, Any]], *argv: str, given: str = "") -> tuple[int, str]:
    """Run the program that answers as recorded, as if `tmp_path` were the root of its host."""
    folder = tmp_path / stubs.FOLDER[1:]
    folder.mkdir(parents=True, exist_ok=True)
    text = stubs.script(argv[0], stubs.answers(calls)[argv[0]], folder)
    text = (
        text.replace(stubs.FOLDER, str(folder)).replace("/.sim/tools", "/dev/null").replace("/. /", f"/. {tmp_path}/")
    )
    done = subprocess.run(
        ["/bin/sh", "-c", text, argv[0], *argv[1:]], input=given, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_a_program_gives_the_recorded_answer_to_the_same_words_and_input(tmp_path: Path) -> None:
    calls = [
        call("ctl", "a b", "it's", rc=3, out="one $HOME `x` \\n\n"),
        call("ctl", "a", "b it's", out="two"),
        call("ctl", given="quit\n", out="bye\n"),
    ]
    assert played(tmp_path, calls, "ctl", "a b", "it's") == (3, "one $HOME `x` \\n\n")
    assert played(tmp_path, calls, "ctl", "a", "b it's") == (0, "two")
    assert played(tmp_path, calls, "ctl", given="quit\n") == (0, "bye\n")
    assert stubs.asked(str(tmp_path)) == ["ctl a b\x1fit's", "ctl a\x1fb it's", "ctl "]


def test_a_folder_whose_name_is_new_each_time_is_no_other_question(tmp_path: Path) -> None:
    calls = [call("ctl", "-c", "/tmp/bcd-ask-ab12cd_9/main.toml", "dump", out="same")]
    assert played(tmp_path, calls, "ctl", "-c", "/tmp/bcd-ask-zz00000k/main.toml", "dump") == (0, "same")
    assert played(tmp_path, calls, "ctl", "-c", "/tmp/bcd-other/main.toml", "dump") == (99, "")


def test_words_that_nobody_asked_before_end_the_bench(tmp_path: Path) -> None:
    assert played(tmp_path, [call("ctl", "a")], "ctl", "b") == (99, "")
    with pytest.raises(stubs.Unanswered, match="ctl b"):
        stubs.judge(str(tmp_path))
    stubs.begin(str(tmp_path))
    stubs.judge(str(tmp_path))


def test_answers_that_differ_come_in_turn_and_files_are_laid(tmp_path: Path) -> None:
    loaded = {"/proc/modules": {"text": "tun 1\n", "mode": 0o444}}
    calls = [call("ctl", "s", out="no\n"), call("ctl", "load", changed=loaded), call("ctl", "s", out="yes\n")]
    assert [played(tmp_path, calls, "ctl", "s")[1] for _turn in range(3)] == ["no\n", "yes\n", "yes\n"]
    assert played(tmp_path, calls, "ctl", "load") == (0, "")
    assert (tmp_path / "proc/modules").read_text() == "tun 1\n"
    stubs.begin(str(tmp_path))
    assert played(tmp_path, calls, "ctl", "s")[1] == "no\n"


def test_a_tree_is_brought_back_in_place(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for top in ("boot", "etc", "proc", "run", "sys", "var"):
        (tree / top).mkdir(parents=True)
    (tree / "etc/kept").write_text("as it was")
    (tree / "etc/link").symlink_to("kept")
    number = (tree / "etc").stat().st_ino
    keep(str(tree))
    (tree / "etc/kept").write_text("otherwise")
    (tree / "etc/link").unlink()
    (tree / "var/more/deep").mkdir(parents=True)
    (tree / "var/more/deep/file").write_text("new")
    restore(str(tree))
    assert (tree / "etc/kept").read_text() == "as it was"
    assert (tree / "etc/link").is_symlink()
    assert not (tree / "var/more").exists()
    assert (tree / "etc").stat().st_ino == number


# -- groups of processes

V1 = """cgroup /sys/fs/cgroup/cpuacct cgroup rw,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
"""


def test_groups_are_made_below_our_own_in_v1_and_v2() -> None:
    own = "5:memory:/job\n3:cpuacct:/\n0::/\n"
    v1 = hierarchies(V1, own)
    assert v1 == {"cpu": Path("/sys/fs/cgroup/cpuacct"), "memory": Path("/sys/fs/cgroup/memory/job")}
    v2 = hierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "0::/user.slice/a\n")
    assert v2 == dict.fromkeys(("cpu", "memory"), Path("/sys/fs/cgroup/user.slice/a"))
    assert hierarchies("proc /proc proc rw 0 0\n", "") == {}


def test_no_hierarchy_is_told(tmp_path: Path) -> None:
    mounts, own = tmp_path / "mounts", tmp_path / "own"
    mounts.write_text("proc /proc proc rw 0 0\n")
    own.write_text("0::/\n")
    with pytest.raises(NoGroups, match="neither cpuacct nor a v2"):
        Groups("bcd-test", str(mounts), str(own))


def test_a_group_counts_what_its_processes_use_and_no_other() -> None:
    try:
        groups = Groups("bcd-bench-test")
    except NoGroups as fault:
        pytest.skip(f"no control groups can be made here: {fault}")
    try:
        busy = "n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done"
        meter = Meter(groups)
        spent, _out = meter.run(["/bin/sh", "-c", busy], clean_environment(), Path("/"))
        moved = f"for door in {' '.join(groups.doors('host'))}; do echo $$ >$door; done; {busy}"
        apart, _out = meter.run(["/bin/sh", "-c", moved], clean_environment(), Path("/"))
        assert spent.controller > 10 * spent.host
        assert apart.host > apart.controller
    finally:
        groups.remove()


def test_a_command_that_fails_is_no_measurement() -> None:
    with pytest.raises(Failed, match="exited with 3:\nwhy"):
        Meter(None).run(["/bin/sh", "-c", "echo why; exit 3"], clean_environment(), Path("/"))


# -- history


def result(name: str, value: float | None, bound: float) -> Result:
    return Result(Figure(name, bound), None if value is None else Spread(value, value * 0.9, value * 1.1))


def test_the_history_grows_by_a_line_a_run_and_its_picture_has_every_figure(tmp_path: Path) -> None:
    for turn in range(3):
        found = history.document([result("a < b & c", 1.0 + turn, 2.0), result("never", None, 1.0)])
        whole = {"time": f"2026-01-0{turn + 1}T00:00:00Z", "commit": "abc", "rounds": 3, "figures": found}
        history.keep(tmp_path, whole)
    runs = history.read(tmp_path / "history.jsonl")
    assert [run["figures"][0]["holds"] for run in runs] == [True, True, False]
    assert json.loads((tmp_path / "2026-01-01T000000Z.json").read_text())["figures"] == runs[0]["figures"]
    picture = xml.etree.ElementTree.parse(tmp_path / "history.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert picture.tag == f"{space}svg"
    texts = [text.text for text in picture.iter(f"{space}text")]
    assert {"a < b & c", "never", "not measured yet"} <= set(texts)
    assert [dot.get("fill") for dot in picture.iter(f"{space}circle")] == ["#246", "#246", "#c22"]


def test_a_run_is_of_the_commit_at_which_it_began(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The collection is copied first; what is committed while it is measured is in no figure."""
    commits = ["began"]
    picked = [case.name for case in cases.pick(cases.cases("python3"), "30 sysctls as") if not case.peers]

    def measured(*_given: object) -> dict[str, Any]:
        commits.append("ended")
        costs = {name: [cost(1.0), cost(1.0)] for name in picked}
        return {"costs": costs, "apart": True, "rows": [], "events": [], "faults": [], "anew": {}, "never": {}}

    monkeypatch.setattr(run, "commit", lambda: commits[-1])
    monkeypatch.setattr(run, "measured", measured)
    monkeypatch.setattr(run, "refusal", lambda: "")
    monkeypatch.setattr(run, "OUT", tmp_path)
    assert run.main(["--cases", "30 sysctls as", "--rounds", "2"]) == 0
    (line,) = history.read(tmp_path / "history.jsonl")
    assert (line["commit"], line["rounds"], commits) == ("began", 2, ["began", "ended"])


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('{"time": "t", "commit": "c", "figures": []}\n{"time": "t2", "com')
    assert [run["time"] for run in history.read(tmp_path / "history.jsonl")] == ["t"]
