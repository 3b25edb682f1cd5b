# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services as systemd has them; unit files of ours: what is written, enabled and reloaded, and what is left alone."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotKnownYet
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Ask, Past, Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File, Step
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.installed_units import has_unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.services import is_active, service
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.swap import is_masked
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.systemd import systemd, unit_file
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.service_seen import Service
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.systemd import (
    control,
    drop_unit,
    keep_unit,
    reload,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.systemd_asks import (
    RUNNING,
    asks_active,
    asks_enabled,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.systemd_seen import RELOAD, Systemd, UnitFile
from tests.unit.fake_host import FakeHost
from tests.unit.ground import rooms

NAME, TARGET, TEXT = "bcd-x.service", "multi-user.target", "# Managed by bettercompute.bcd\n[Unit]\n"
PATH = "/etc/systemd/system/bcd-x.service"
LINK = "/etc/systemd/system/multi-user.target.wants/bcd-x.service"
NEW = UnitFile(NAME, TARGET)
KEPT = UnitFile(NAME, TARGET, File(TEXT), enabled=True)


def planned(seen: UnitFile, *, wanted: bool = True, past: Past | None = None, holds: bool = False) -> list[Step]:
    todo = Todo()
    due = keep_unit(todo, seen, TEXT) if wanted else drop_unit(todo, seen)
    reload(todo, Systemd(True, holds), (seen,), due, past or Past())
    return list(todo.plan().steps)


def told(steps: list[Step]) -> list[str]:
    return [" ".join(step.argv) or f"{step.kind} {step.path}" for step in steps]


def test_a_new_unit_is_written_enabled_and_loaded_with_one_reload() -> None:
    steps = planned(NEW)
    assert told(steps) == [f"write {PATH}", f"systemctl enable --no-reload {NAME}", "systemctl daemon-reload"]
    assert steps[0].owes == (RELOAD,)
    assert steps[2].pays == (RELOAD,)


def test_a_unit_that_is_as_kept_needs_nothing() -> None:
    assert planned(KEPT) == []


def test_a_link_that_is_gone_needs_no_reload() -> None:
    assert told(planned(KEPT._replace(enabled=False))) == [f"systemctl enable --no-reload {NAME}"]


@pytest.mark.parametrize("seen", [KEPT._replace(behind=True), KEPT])
def test_a_reload_that_a_killed_pass_owes_or_that_systemd_asks_for(seen: UnitFile) -> None:
    past = Past() if seen.behind else Past(owed=frozenset((RELOAD,)))
    assert told(planned(seen, past=past)) == ["systemctl daemon-reload"]


@pytest.mark.parametrize(("holds", "disruption"), [(False, "none"), (True, "service")])
def test_a_reload_disturbs_containers_that_hold_gpus(holds: bool, disruption: str) -> None:
    steps = planned(NEW, holds=holds)
    assert [step.disruption for step in steps] == ["none", "none", disruption]


def test_a_removal_takes_the_link_then_the_file() -> None:
    steps = planned(KEPT, wanted=False)
    assert told(steps) == [f"remove {LINK}", f"remove {PATH}", "systemctl daemon-reload"]
    assert [step.owes for step in steps] == [(RELOAD,), (RELOAD,), ()]
    assert told(planned(KEPT._replace(file=None), wanted=False)) == [f"remove {LINK}", "systemctl daemon-reload"]
    assert planned(NEW, wanted=False) == []


def test_starting_disturbs_nothing_and_stopping_does() -> None:
    steps = [control(verb, NAME) for verb in ("start", "stop", "restart", "enable")]
    assert told(steps) == [
        f"systemctl start {NAME}",
        f"systemctl stop {NAME}",
        f"systemctl restart {NAME}",
        f"systemctl enable --no-reload {NAME}",
    ]
    assert [step.disruption for step in steps] == ["none", "service", "service", "none"]
    assert control("stop", NAME, "stop it", disruption="gpu").action == "stop it"
    assert control("stop", NAME, disruption="gpu").disruption == "gpu"


@pytest.mark.parametrize(
    ("verbs", "runs", "enabled"),
    [
        (("start",), True, "disabled"),
        (("enable", "restart"), True, "enabled"),
        (("start", "stop"), False, "disabled"),
    ],
)
def test_in_check_mode_every_look_sees_what_became_of_a_service(
    verbs: tuple[str, ...], runs: bool, enabled: str
) -> None:
    name = "x.service"
    shown = Answer(0, "ActiveState=inactive\nNeedDaemonReload=no\n")
    stopped = {"show": shown, "is-active": Answer(3, "inactive\n"), "is-enabled": Answer(1, "disabled\n")}
    files = {f"/usr/lib/systemd/system/{name}": "", f"{RUNNING}/seats": ""}
    host = FakeHost(files, {"systemctl": lambda _host, argv: stopped[argv[1]]})
    predicted = PredictedHost(host)
    assert service(predicted, name) == Service("loaded", "inactive", "disabled")
    for verb in verbs:
        predicted.apply(control(verb, name))
    assert service(predicted, name) == Service("loaded", "active" if runs else "inactive", enabled)
    assert is_active(predicted, name) is runs
    assert predicted.answer(Ask(asks_active(name))).rc == (0 if runs else 1)


@pytest.mark.parametrize("folder", ["/etc", "/usr/local/lib", "/usr/lib", "/lib"])
def test_a_service_is_asked_after_only_where_it_has_a_unit(folder: str) -> None:
    host = FakeHost(
        {f"{folder}/systemd/system/x.service": ""}, {"systemctl": lambda _host, _argv: Answer(1, "masked\n")}
    )
    assert has_unit(host, "x.service")
    assert service(host, "x.service").is_masked
    host.asked.clear()
    assert service(host, "y.service") == Service("not-found", "inactive", "")
    assert host.asked == []


@pytest.mark.parametrize(
    ("files", "seen"),
    [
        ({}, Systemd(False, False)),
        ({"/run/systemd/system/x": ""}, Systemd(True, False)),
        ({"/run/systemd/system/x": "", "/etc/cdi/nvidia.json": ""}, Systemd(True, False)),
        ({"/run/systemd/system/x": "", "/etc/cdi/bcd-a1.json": ""}, Systemd(True, True)),
        ({"/etc/cdi/bcd-a1.json.bak": ""}, Systemd(False, False)),
    ],
)
def test_what_a_look_sees_of_systemd(files: dict[str, str], seen: Systemd) -> None:
    assert systemd(FakeHost(files)) == seen


@pytest.mark.parametrize(("said", "behind"), [("yes", True), ("no", False)])
def test_a_look_at_a_unit_asks_the_manager_only_when_told_to(said: str, behind: bool) -> None:
    shown = Answer(0, f"ActiveState=active\nNeedDaemonReload={said}\n")
    host = FakeHost({PATH: TEXT, LINK: ""}, {"systemctl": lambda _host, _argv: shown})
    assert unit_file(host, NAME, TARGET) == KEPT
    assert host.asked == []
    assert unit_file(host, NAME, TARGET, ask=True) == KEPT._replace(behind=behind)
    assert host.asked == [("systemctl", "show", "--property=ActiveState,NeedDaemonReload", "--", NAME)]


@pytest.mark.parametrize("verb", ["enable", "disable", "mask", "unmask"])
def test_what_concerns_the_next_boot_reloads_nothing_by_itself(verb: str) -> None:
    step = control(verb, NAME)
    assert step.argv == ("systemctl", verb, "--no-reload", NAME)
    assert step.disruption == "none"


def test_what_is_masked_disabled_and_enabled_again_is_seen_so_by_a_prediction() -> None:
    real = FakeHost({f"/usr/lib/systemd/system/{NAME}": TEXT}, {"systemctl": lambda _h, _a: Answer(0, "?\n")})
    host = PredictedHost(real)
    assert not is_masked(host, NAME)
    host.apply(control("disable", NAME))
    assert host.ask(asks_enabled(NAME)) == Answer(1, "disabled\n")
    host.apply(control("mask", NAME))
    assert is_masked(host, NAME)
    assert host.ask(asks_enabled(NAME)) == Answer(1, "masked\n")
    host.apply(control("unmask", NAME))
    assert not is_masked(host, NAME)
    with pytest.raises(NotKnownYet) as unknown:
        host.ask(asks_enabled(NAME))
    assert unknown.value.after == f"{NAME} is unmasked"
    host.apply(control("enable", NAME))
    assert host.ask(asks_enabled(NAME)) == Answer(0, "enabled\n")


@pytest.mark.parametrize(
    ("links", "files", "masked"),
    [
        ({PATH: "/dev/null"}, {}, True),
        ({PATH: "/usr/lib/systemd/system/other.service"}, {}, False),
        ({}, {PATH: ""}, True),  # systemd takes a unit file with nothing in it for a mask
        ({}, {PATH: TEXT}, False),
        ({}, {}, False),
    ],
)
def test_what_counts_as_masked(links: dict[str, str], files: dict[str, str], masked: bool) -> None:
    assert is_masked(FakeHost(files, links=links), NAME) is masked


def test_systemctl_is_spelled_in_one_place() -> None:
    """What is asked in a second spelling is not what a step has declared: check mode would tell the old state."""
    spell = [path.name for path in rooms.sources("plugins/module_utils") if '"systemctl"' in path.read_text("utf-8")]
    assert sorted(spell) == ["systemd.py", "systemd_asks.py", "systemd_ended.py", "systemd_slices.py"]
