# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The predicted host: effects laid over the real one, and honesty about what is not known yet."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotKnownYet
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, remove, run, set_value, write
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import later
from tests.unit.fake_host import FakeHost


def predicted(*effects: Effect, **files: str) -> PredictedHost:
    host = PredictedHost(FakeHost({"/etc/a/one": "1\n", "/etc/a/two": "2\n", **files}))
    host.apply(run(("do",), "do it", effects=effects))
    return host


def test_steps_predict_themselves() -> None:
    host = predicted()
    host.apply(write("/etc/a/three", "3\n", "write", mode=0o600))
    host.apply(remove("/etc/a/one", "remove"))
    host.apply(set_value("/etc/a/two", "22", "set"))
    assert host.names("/etc/a") == ("three", "two")
    assert host.read("/etc/a/one") is None
    assert host.exists("/etc/a/one") is False
    assert host.read("/etc/a/two") == "22\n"
    seen = host.file("/etc/a/three")
    assert seen is not None
    assert (seen.text, seen.mode) == ("3\n", 0o600)


def test_what_is_gone_takes_all_below_it_until_it_is_made_again() -> None:
    host = predicted(Effect("gone", "/etc/a"))
    assert (host.read("/etc/a/one"), host.names("/etc/a"), host.exists("/etc/a")) == (None, (), False)
    host.apply(run(("do",), "again", effects=(Effect("file", "/etc/a/new", "n"),)))
    assert host.names("/etc/a") == ("new",)
    assert host.read("/etc/a/one") is None


def test_what_may_appear_is_not_known_while_it_is_absent() -> None:
    host = predicted(Effect("appears", "/proc/sys", "the module tun is loaded"), **{"/proc/sys/vm/x": "1"})
    assert host.read("/proc/sys/vm/x") == "1"
    for ask in (host.read, host.file, host.names, host.exists):
        with pytest.raises(NotKnownYet) as unknown:
            ask("/proc/sys/net/y")
        assert unknown.value.after == "the module tun is loaded"
    assert host.read("/proc/other") is None


def test_a_file_known_later_and_a_program_known_later() -> None:
    host = predicted(Effect("unknown", "/etc/a/one", "it is built"), Effect("program", "tool", "it is installed"))
    with pytest.raises(NotKnownYet, match="it is built"):
        host.read("/etc/a/one")
    for ask in (lambda: host.which("tool"), lambda: host.ask(("tool", "--version"))):
        with pytest.raises(NotKnownYet, match="it is installed"):
            ask()
    host.apply(write("/etc/a/one", "known", "write"))
    assert host.read("/etc/a/one") == "known"


def test_a_program_is_not_known_by_one_kind_of_question_and_behind_env() -> None:
    real = FakeHost(programs={"tool": lambda _h, _a: Answer(0, "stale"), "env": lambda _h, _a: Answer(0, "stale")})
    host = PredictedHost(real)
    effects = (Effect("program", "tool -L", "it is laid out"), Effect("answers", "tool get <x\n".strip(), "64"))
    host.apply(run(("do",), "do it", effects=effects))
    assert host.ask(("tool", "-q")).out == "stale"
    assert host.ask(("tool", "get"), stdin="x\n").out == "64"
    for argv in (("tool", "-L"), ("tool", "-L", "-i", "0"), ("env", "A=b", "tool", "-L")):
        with pytest.raises(NotKnownYet, match="it is laid out"):
            host.ask(argv)


def test_declared_answers_stand_in_for_a_program() -> None:
    host = predicted(
        Effect("answers", "systemctl is-active x", "active"), Effect("fails", "systemctl is-active y", "inactive")
    )
    assert host.ask(("systemctl", "is-active", "x")) == Answer(0, "active")
    assert host.ask(("systemctl", "is-active", "y")) == Answer(1, "inactive")


def test_an_effect_of_no_known_kind_is_a_fault_of_ours() -> None:
    with pytest.raises(ValueError, match="vanishes"):
        predicted(Effect("vanishes", "/x"))


def test_what_is_not_known_can_be_carried_but_not_used() -> None:
    host = predicted(Effect("unknown", "/etc/a/one", "it is built"))
    value = later(host.read, "/etc/a/one")
    for use in (
        lambda: value == "1",
        lambda: bool(value),
        lambda: f"{value}",
        lambda: str(value).strip(),
        lambda: [*(value or "")],
    ):
        with pytest.raises(NotKnownYet, match="it is built"):
            use()
    assert later(host.read, "/etc/a/two") == "2\n"


def test_an_answer_that_was_declared_is_not_known_after_a_later_step_that_changes_it() -> None:
    host = PredictedHost(FakeHost(programs={"nvidia-smi": lambda _host, _argv: Answer(0, "now")}))
    asked = ("nvidia-smi", "-L")
    host.apply(run(("a",), "a", effects=(Effect("answers", "nvidia-smi -L", "then"), Effect("answers", "b -L", "b"))))
    assert host.ask(asked).out == "then"
    host.apply(run(("c",), "c", effects=(Effect("program", "nvidia-smi", "the driver is loaded"),)))
    with pytest.raises(NotKnownYet, match="the driver is loaded"):
        host.ask(asked)
    assert host.ask(("b", "-L")).out == "b"
    host.apply(run(("d",), "d", effects=(Effect("answers", "nvidia-smi -L", "at last"),)))
    assert host.ask(asked).out == "at last"


def test_a_declared_answer_over_https_has_the_status_of_one() -> None:
    url = "https://10.0.0.1:6443/api/v1/nodes/gpu-01"
    assert predicted(Effect("answers", f"GET {url}", "{}")).get(url) == Answer(200, "{}")
    assert predicted(Effect("fails", f"GET {url}", "no")).get(url) == Answer(404, "no")
    with pytest.raises(NotKnownYet, match="it is there"):
        predicted(Effect("program", f"GET {url}", "it is there")).get(url)
