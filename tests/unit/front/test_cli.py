# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program's words: what is asked of which pass, what is printed, and with which status it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as machine
from ansible_collections.bettercompute.bcd.plugins.module_utils.core import predict
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import (
    cli,
    cli_pass,
    cli_report,
    holds,
    opening,
    options,
    section,
    staged,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.config import OUTSIDE
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.release import VERSION
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import ORDER
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from ansible_collections.bettercompute.bcd.plugins.modules import cdi_holds, host_section
from tests.pki import ControlPlane
from tests.tools.results import TOP
from tests.unit.fake_host import FakeHost
from tests.unit.shelf import Shelf

SPEC = "/root/spec.json"
X, Y = {"text": "x"}, {"text": "y"}
REBOOT = "cpu: CPUs 1 are isolated from the next boot: reboot the node"
TOKEN = "abcdef.0123456789abcdef"
TOKEN_FILE = "/var/lib/bcd-hostconfig/k8s/bootstrap-token"
LOADED = predict  # it is made of the real Host
SHIPPED = dict(catalog.SHIPPED)
WORDS = some.sampled_from(
    ["pages2m", "governor", "isolate", "load", "mode", "layout", "gpus", "branch", "vm.swappiness"]
)
# An assignment, more or less.
DEVICE = some.dictionaries(
    some.sampled_from(["allocation_id", "binding", "devices", "limits", "env", "reservation_id", "kubernetes", "x"]),
    some.none()
    | some.integers()
    | some.text(max_size=8)
    | some.sampled_from(["alloc_1", "BINDING_HOLD", "BINDING_KUBERNETES"])
    | some.lists(
        some.dictionaries(some.sampled_from(["id", "device_class", "y"]), some.text(max_size=12) | some.none())
    )
    | some.dictionaries(some.sampled_from(["cpus", "mems", "memory_bytes"]), some.text(max_size=4) | some.integers()),
    max_size=6,
)


@contextmanager
def unlocked(_host: Any, _what: str) -> Iterator[None]:
    """The lock, held."""
    yield


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """sysctl and kernel-modules keep a file each, cpu waits for a reboot behind its own; fabric-manager disturbs."""
    shelf = Shelf()
    for name in ("sysctl", "kernel-modules", "k8s-join"):
        shelf.keeper(name)
    shelf.keeper("cpu", reboot=REBOOT)
    shelf.keeper("fabric-manager", disruption="service")
    monkeypatch.setattr(catalog, "SHIPPED", {name: lambda name=name: shelf.units[name] for name in shelf.units})
    return shelf


@pytest.fixture
def host(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """The host that the program finds itself on."""
    fake = FakeHost()
    for module in (machine, section, holds):
        monkeypatch.setattr(module, "Host", lambda: fake)
    monkeypatch.setattr(opening, "only_pass", unlocked)
    return fake


class Ran:
    """What a call of the program ended with."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str) -> None:
        self.status = cli.main(words)
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def bcd(host: FakeHost, capsys: pytest.CaptureFixture[str]) -> Any:
    """Call the program."""

    def call(*words: str, spec: Any = None) -> Ran:
        if spec is not None:
            host.put(SPEC, spec if isinstance(spec, str) else json.dumps(spec))
        return Ran(capsys, *words)

    return call


def state(result: Any) -> str:
    return str(result["section"]["state"])


# -- called wrongly: 64, and nothing done


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("fly",),
        ("plan", "--fly"),
        ("converge", "extra"),
        ("converge", "--max", "none"),
        ("converge", "--max-disruption", "reboot"),
        ("converge", "--spec"),
        ("converge", "--spec", SPEC, "--signed-spec", SPEC),
        ("status", "--spec", SPEC),
        ("helper", "--json"),
        ("agent", "now"),
        ("install",),  # not from a zip
    ],
    ids=" ".join,
)
def test_words_that_it_does_not_know_end_with_64(bcd: Any, host: FakeHost, words: tuple[str, ...]) -> None:
    ran = bcd(*words)
    assert (ran.status, ran.out, host.calls) == (64, "", [])
    assert ran.err


FAULTY = {
    "not JSON": "host: {}",
    "nothing": "",
    "a list": "[]",
    "a number": "1",
    "a key twice": '{"host": {}, "host": {}}',
    "a key twice further in": '{"host": {"sysctl": {"text": "x", "text": "y"}}}',
    "NaN": '{"host": {"sysctl": {"text": NaN}}}',
    "Infinity": '{"host": {"sysctl": {"text": -Infinity}}}',
    "something behind it": '{"host": {}} {}',
    "half a character": '{"host": {"sysctl": {"text": "\\ud800"}}}',
    "bytes that are not UTF-8": '{"host": {"sysctl": {"text": "\udcff"}}}',
    "nested without end": '{"host": ' + "[" * 100_000,
    "no section": "{}",
    "another section": '{"host": {}, "hosts": {}}',
    "host is a list": '{"host": []}',
    "host is null": '{"host": null}',
    "devices is a mapping": '{"devices": {}}',
    "devices is null": '{"devices": null}',
    "a device is a text": '{"devices": ["GPU-1"]}',
}


@pytest.mark.parametrize("text", FAULTY.values(), ids=FAULTY)
@pytest.mark.parametrize("word", ["plan", "converge"])
def test_a_spec_that_is_none_ends_with_64(bcd: Any, host: FakeHost, word: str, text: str) -> None:
    ran = bcd(word, "--json", "--spec", SPEC, spec=text)
    assert (ran.status, ran.out, host.calls) == (64, "", [])
    assert ran.err.startswith("bcd: ")


@pytest.mark.parametrize("text", [*FAULTY.values(), '{"body": "e30=", "signature": "", "certificates": []}'])
def test_a_signed_spec_that_is_no_envelope_ends_with_64(bcd: Any, host: FakeHost, text: str) -> None:
    ran = bcd("converge", "--signed-spec", SPEC, spec=text)
    assert (ran.status, ran.out, host.calls) == (64, "", [])


def test_a_file_that_is_not_there_or_cannot_be_read_ends_with_64(bcd: Any, host: FakeHost) -> None:
    missing = bcd("plan", "--spec", "/nowhere")
    assert (missing.status, missing.err) == (
        64,
        "bcd: there is no file /nowhere: give the path of the spec, or - for the standard input\n",
    )
    host.put(SPEC, "{}")
    host.unreadable.add(SPEC)
    assert bcd("plan", "--spec", SPEC).status == 64


def test_only_is_for_units_that_are_asked_for(bcd: Any) -> None:
    ran = bcd("converge", "--only", "sysctl", "--spec", SPEC, spec={"devices": []})
    assert (ran.status, "no host section is asked for" in ran.err) == (64, True)


@pytest.mark.parametrize("words", [("--only", ""), ("--only=",), ("--only", ",", "--only", "")])
def test_only_of_nothing_is_not_all_of_the_host(bcd: Any, host: FakeHost, words: tuple[str, ...]) -> None:
    """As of a script whose variable is empty."""
    ran = bcd("converge", *words, "--spec", SPEC, spec={"host": {"sysctl": X}})
    assert (ran.status, ran.err, host.calls) == (
        64,
        "bcd: --only names no unit: name one, or leave --only out for all of them\n",
        [],
    )


def test_help_and_version_are_no_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    version = Ran(capsys, "--version")
    assert (version.status, version.out) == (0, "bcd 0.1.0\n")
    for words in (("--help",), ("converge", "--help"), ("install", "-h")):
        ran = Ran(capsys, *words)
        assert (ran.status, ran.out.startswith("usage: bcd")) == (0, True)


def test_the_version_is_the_collections() -> None:
    assert f"version: {VERSION}\n" in (TOP / "galaxy.yml").read_text(encoding="utf-8")


# -- a pass


def test_plan_says_what_a_pass_would_do_and_writes_nothing(bcd: Any, host: FakeHost) -> None:
    ran = bcd("plan", "--spec", SPEC, spec={"host": {"sysctl": X}})
    assert (ran.status, host.calls) == (2, [])
    assert "sysctl  progressing\n    would: write /etc/sysctl\n" in ran.out


def test_converge_does_it_and_a_second_has_nothing_to_do(bcd: Any, host: FakeHost) -> None:
    first = bcd("converge", "--spec", SPEC, spec={"host": {"sysctl": X}})
    assert (first.status, host.text("/etc/sysctl")) == (0, "x")
    assert first.out.splitlines()[0] == "host: CONVERGED, changed"
    host.calls.clear()
    second = bcd("converge", "--spec", SPEC)
    assert (second.status, second.out, host.calls) == (0, "host: CONVERGED\n  sysctl  converged\n", [])
    assert bcd("plan", "--spec", SPEC).status == 0


def test_what_waits_ends_with_2_and_is_said(bcd: Any) -> None:
    ran = bcd("converge", "--spec", SPEC, spec={"host": {"cpu": X}})
    assert ran.status == 2
    assert ran.out.splitlines()[0] == "host: PROGRESSING, changed, waits for a reboot"
    assert "    waits, RebootRequired: CPUs 1 are isolated from the next boot: reboot the node" in ran.out


def test_what_is_refused_ends_with_1_and_the_rest_is_done(bcd: Any, host: FakeHost) -> None:
    spec = {"host": {"kernel-modules": {"text": "no"}, "sysctl": X}}
    ran = bcd("converge", "--spec", SPEC, spec=spec)
    assert (ran.status, host.text("/etc/sysctl"), host.text("/etc/kernel-modules")) == (1, "x", None)
    assert "    Refused: no is refused" in ran.out


def test_a_unit_that_is_none_ends_with_1(bcd: Any, host: FakeHost) -> None:
    ran = bcd("converge", "--spec", SPEC, spec={"host": {"../etc": {}}})
    assert (ran.status, "/etc/../etc" in host.files) == (1, False)


def test_the_devices_have_their_pass_whatever_became_of_the_host(bcd: Any) -> None:
    ran = bcd("converge", "--json", "--spec", SPEC, spec={"host": {"sysctl": {"text": "no"}}, "devices": []})
    assert ran.status == 1
    assert state(ran.json["host"]) == "FAILED"
    assert state(ran.json["devices"]) == "CONVERGED"


@pytest.mark.parametrize(
    ("host_state", "devices_state", "status"),
    [
        ("FAILED", "PROGRESSING", 1),
        ("PROGRESSING", "FAILED", 1),
        ("CONVERGED", "PROGRESSING", 2),
        ("PROGRESSING", "CONVERGED", 2),
        ("CONVERGED", "CONVERGED", 0),
    ],
)
def test_the_section_that_is_worse_off_decides(host_state: str, devices_state: str, status: int) -> None:
    ended = cli_pass.Ended({"section": {"state": host_state}}, {"section": {"state": devices_state}})
    assert ended.status() == status


def test_a_section_that_is_not_named_is_left_alone(bcd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(section, "section_result", None)
    ran = bcd("converge", "--json", "--spec", SPEC, spec={"devices": []})
    assert (ran.status, ran.json["host"], state(ran.json["devices"])) == (0, None, "CONVERGED")


def test_json_has_the_modules_keys_and_is_ascii(bcd: Any) -> None:
    ran = bcd("plan", "--json", "--spec", SPEC, spec={"host": {"sysctl": {"text": "\u00fc"}}})
    assert {"changed", "units", "unconverged", "section", "diff", "ansible_stats"} <= set(ran.json["host"])
    assert ran.json["host"]["diff"][0]["after"] == "\u00fc"
    assert ran.out.isascii()


def test_only_some_units_are_applied_and_no_devices(bcd: Any, host: FakeHost) -> None:
    units = {"sysctl": X, "kernel-modules": X, "cpu": X}
    words = ("--only", "sysctl,kernel-modules", "--only", "k8s-join")
    ran = bcd("converge", *words, "--json", "--spec", SPEC, spec={"host": units, "devices": []})
    assert (host.text("/etc/sysctl"), host.text("/etc/kernel-modules"), host.text("/etc/cpu")) == ("x", "x", None)
    assert ran.json["devices"] is None
    wrong = bcd("converge", "--only", "sysctls", "--spec", SPEC)
    assert (wrong.status, "'sysctls'" in wrong.out) == (1, True)


def test_what_disturbs_more_than_is_allowed_is_held_back(bcd: Any, host: FakeHost) -> None:
    spec = {"host": {"fabric-manager": X}}
    held = bcd("converge", "--max-disruption", "none", "--spec", SPEC, spec=spec)
    assert (held.status, host.text("/etc/fabric-manager")) == (2, None)
    assert "waits, HeldBack: " in held.out
    assert bcd("converge", "--spec", SPEC).status == 0


def test_differences_are_shown_when_they_are_asked_for(bcd: Any) -> None:
    spec = {"host": {"sysctl": X}}
    assert "+x" not in bcd("plan", "--spec", SPEC, spec=spec).out
    assert "--- /etc/sysctl\n+++ /etc/sysctl\n@@ -0,0 +1 @@\n+x\n" in bcd("plan", "--diff", "--spec", SPEC).out


def test_the_standard_input_is_a_spec_too(bcd: Any, host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.TextIOWrapper(io.BytesIO(json.dumps({"host": {"sysctl": X}}).encode()), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", text)
    assert bcd("converge", "--spec", "-").status == 0
    assert host.text("/etc/sysctl") == "x"
    monkeypatch.setattr(sys, "stdin", None)
    assert bcd("converge", "--spec", "-").status == 64


def test_root_can_keep_the_collection_off_the_host(bcd: Any, host: FakeHost) -> None:
    host.put(CONFIG, "[host]\nunits = false\n")
    ran = bcd("converge", "--spec", SPEC, spec={"host": {"sysctl": X}})
    assert (ran.status, OUTSIDE in ran.out, host.text("/etc/sysctl")) == (1, True, None)


VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(WORDS | some.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    host_section=some.dictionaries(some.sampled_from(ORDER) | some.text(max_size=8), VALUES, max_size=3),
    devices=some.lists(DEVICE, max_size=2),
)
def test_no_spec_breaks_a_pass(bcd: Any, monkeypatch: pytest.MonkeyPatch, host_section: Any, devices: Any) -> None:
    """Whatever JSON it is, of the real units: it is called wrong, refused, waits or is done; there is no other end."""
    monkeypatch.setattr(catalog, "SHIPPED", SHIPPED)
    for given_spec in ({"host": host_section}, {"devices": devices}):
        ran = bcd("converge", "--json", "--spec", SPEC, spec=given_spec)
        assert ran.status in (0, 1, 2, 64)
        assert ran.status == 64 or ran.json


# -- root's copy


def test_without_a_spec_what_was_asked_last_is_planned_and_converged(bcd: Any, host: FakeHost) -> None:
    bcd("converge", "--spec", SPEC, spec={"host": {"sysctl": X}})
    quiet = bcd("plan")
    assert (quiet.status, quiet.out.splitlines()[0]) == (0, "of what this host was asked")
    host.put("/etc/sysctl", "drifted")
    assert bcd("plan").status == 2
    assert (bcd("converge").status, host.text("/etc/sysctl")) == (0, "x")


def test_what_the_agent_repaired_is_told_once_and_not_by_a_pass_over_root_s_copy(bcd: Any, host: FakeHost) -> None:
    bcd("converge", "--spec", SPEC, spec={"host": {"sysctl": X}})
    host.put("/etc/sysctl", "drifted")
    assert bcd("agent").status == 0
    told = "  bcd agent repaired sysctl: write /etc/sysctl"
    assert [told in bcd("converge", *words).out for words in ((), ("--spec", SPEC), ("--spec", SPEC))] == [
        True,
        True,
        False,
    ]


def test_a_host_that_was_asked_nothing_is_left_alone(bcd: Any, host: FakeHost) -> None:
    ran = bcd("converge")
    assert (ran.status, ran.out, host.calls) == (0, "nothing to do: this host was not asked anything yet\n", [])
    assert bcd("plan", "--json").json == {"host": None, "devices": None}


def test_a_copy_that_is_damaged_ends_with_1(bcd: Any, host: FakeHost) -> None:
    host.put("/var/lib/bcd-hostconfig/asked.json", "{")
    ran = bcd("converge", "--json")
    assert (ran.status, ran.json["host"], host.calls) == (1, None, [])
    assert "/var/lib/bcd-hostconfig/asked.json is not a record" in ran.json["msg"]


def test_an_ordinary_account_is_told_what_it_lacks(bcd: Any, host: FakeHost) -> None:
    host.user = 1000
    unasked = bcd("plan")
    assert (unasked.status, "run bcd with sudo" in unasked.err) == (1, True)
    spec = {"host": {"sysctl": X}}
    assert bcd("plan", "--spec", SPEC, spec=spec).status == 2
    ran = bcd("converge", "--spec", SPEC)
    assert (ran.status, "node-unprivileged" in ran.out, host.calls) == (1, True, [])


# -- signed


def test_a_signed_spec_is_applied_by_its_sections(bcd: Any, host: FakeHost) -> None:
    plane = ControlPlane()
    host.put(CONFIG, plane.config())
    ran = bcd("converge", "--json", "--signed-spec", SPEC, spec=plane.desired_state(host={"sysctl": X}))
    assert (ran.status, ran.json["devices"], host.text("/etc/sysctl")) == (0, None, "x")
    host.put("/etc/sysctl", "drifted")
    assert (bcd("converge").status, host.text("/etc/sysctl")) == (0, "x")  # of root's copy


def test_what_is_not_signed_ends_with_1(bcd: Any, host: FakeHost) -> None:
    plane = ControlPlane()
    host.put(CONFIG, plane.config())
    unsigned = bcd("converge", "--spec", SPEC, spec={"host": {"sysctl": X}})
    assert (unsigned.status, "a signed spec, and none is given" in unsigned.out) == (1, True)
    other = ControlPlane().desired_state(host={"sysctl": X}, devices=[])
    foreign = bcd("converge", "--signed-spec", SPEC, spec=other)
    assert (foreign.status, host.calls) == (1, [])


# -- the token of a join that was laid for a pass


def test_the_token_that_was_laid_is_given_to_the_pass(
    bcd: Any, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.put(TOKEN_FILE, TOKEN + "\n")
    seen: list[Any] = []

    def given(params: Any) -> Given:
        seen.append(params["secrets"])
        return Given()

    monkeypatch.setattr(section, "_given", given)
    ran = bcd("converge", "--spec", SPEC, spec={"host": {"k8s-join": {**X, "joinTokenRef": "pool"}}})
    assert seen == [{"pool": TOKEN}]
    assert TOKEN not in ran.out + ran.err


@pytest.mark.parametrize(
    ("word", "has_joined", "is_left"), [("converge", True, False), ("converge", False, True), ("plan", True, True)]
)
def test_the_token_goes_once_the_machine_has_joined(
    bcd: Any, host: FakeHost, monkeypatch: pytest.MonkeyPatch, word: str, has_joined: bool, is_left: bool
) -> None:
    host.put(TOKEN_FILE, TOKEN + "\n")
    monkeypatch.setattr(staged, "_has_joined", lambda _host: has_joined)
    bcd(word, "--spec", SPEC, spec={"host": {"k8s-join": X}})
    assert host.text(TOKEN_FILE) == (f"{TOKEN}\n" if is_left else None)


def test_an_ordinary_account_does_not_look_for_it(bcd: Any, host: FakeHost) -> None:
    host.put(TOKEN_FILE, TOKEN + "\n")
    host.unreadable.add(TOKEN_FILE)
    host.user = 1000
    ran = bcd("converge", "--spec", SPEC, spec={"host": {"k8s-join": X}})
    assert (ran.status, "node-unprivileged" in ran.out, host.calls) == (1, True, [])


# -- options of the passes, as the modules have them


@pytest.mark.parametrize(("options", "module"), [(options.HOST, host_section), (options.DEVICES, cdi_holds)])
def test_a_pass_has_every_option_of_its_module_with_its_default(options: Any, module: Any) -> None:
    assert dict(options) == {name: said.get("default") for name, said in module.OPTIONS.items()}


# -- status and doctor, agent and helper


@pytest.mark.parametrize(
    ("found", "status"),
    [("converged", 0), ("progressing", 2), ("failed", 1), ("unknown", 2), ("ok", 0), ("warning", 2), ("failure", 1)],
)
@pytest.mark.parametrize("word", ["status", "doctor"])
def test_status_and_doctor_end_by_what_they_found(
    word: str, found: str, status: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"changed": False, "state": found}
    module = {"status": "status", "doctor": "doctor"}[word]
    place = f"ansible_collections.bettercompute.bcd.plugins.module_utils.front.{module}"
    monkeypatch.setattr(f"{place}.{word}_result", lambda: told)
    monkeypatch.setattr(f"{place}.{word}_text", lambda result: f"it is {result['state']}\n")
    ran = Ran(capsys, word)
    assert (ran.status, ran.out) == (status, f"it is {found}\n")
    assert Ran(capsys, word, "--json").json == told


def test_status_and_doctor_look_at_the_host(bcd: Any, host: FakeHost) -> None:
    bcd("converge", "--spec", SPEC, spec={"host": {"sysctl": X}})
    host.put("/etc/sysctl", "drifted")
    host.calls.clear()
    status, doctor = bcd("status", "--json"), bcd("doctor", "--json")
    assert (status.status, status.json["state"], host.calls) == (2, "progressing", [])
    assert doctor.json["state"] in ("ok", "warning", "failure")


def test_a_result_of_a_request_that_failed_ends_with_1() -> None:
    assert cli.status_of({"msg": "bcd helper hung up"}) == 1


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_services_end_as_they_say(
    status: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "ansible_collections.bettercompute.bcd.plugins.module_utils.front"
    monkeypatch.setattr(f"{place}.agent.run", lambda: status)
    monkeypatch.setattr(f"{place}.helper_service.serve", lambda: status)
    assert [Ran(capsys, word).status for word in ("agent", "helper")] == [status, status]


ENDS = """
import atexit, sys
sys.path.insert(0, sys.argv[1])
from bcd.front import agent, cli, for_controller
def passed():
    sys.stdout.write("said")
    sys.stderr.write("complained")
    return 2
agent.run = for_controller.run = passed
atexit.register(print, " and took itself down")
print("goes on with", cli.run(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("words", "status", "out", "err"),
    [
        (["agent"], 2, "said", "complained"),
        (["request"], 2, "said", "complained"),
        (["--version"], 0, f"bcd {VERSION}\ngoes on with 0\n and took itself down\n", ""),
    ],
)
def test_a_word_of_the_machine_ends_the_process_once_all_is_said(
    tmp_path: Path, words: list[str], status: int, out: str, err: str
) -> None:
    """Python's own end costs a tenth of an idle pass, and has nothing to do there."""
    (tmp_path / "bcd").symlink_to(Path(cli.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-ISB", "-c", ENDS, str(tmp_path), *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, out, err)


# -- where it prints


def test_a_reader_that_has_gone_changes_no_status(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host.put(SPEC, json.dumps({"host": {"sysctl": X}}))
    for words, ended in ((("converge", "--json", "--spec", SPEC), 0), (("plan", "--spec", SPEC), 0)):
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "w", encoding="utf-8") as gone:
            monkeypatch.setattr(sys, "stdout", gone)
            assert cli.main(words) == ended


@pytest.mark.parametrize(
    "words", [("converge", "--json", "--spec", SPEC), ("plan", "--spec", SPEC), ("status",), ("--help",)], ids=" ".join
)
def test_what_cannot_be_written_is_a_failure_that_is_said(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """A script that reads the file would take half a result for the whole."""
    host.put(SPEC, json.dumps({"host": {"sysctl": X}}))
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert cli.main(words) == 1
    assert capsys.readouterr().err == (
        "bcd: what there is to say cannot be written (No space left on device): see where the output goes\n"
    )


@pytest.mark.parametrize("words", [("plan", "--spec", "/nowhere"), ("fly",)], ids=" ".join)
def test_a_complaint_that_cannot_be_written_changes_no_status(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert cli.main(words) == 64


def test_a_stream_that_is_closed_is_no_fault(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host.put(SPEC, json.dumps({"host": {"sysctl": {"text": "no"}}}))
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(("converge", "--spec", SPEC)) == 1
    assert cli.main(("converge", "--spec", "/nowhere")) == 64


def test_a_locale_without_a_character_shows_its_number(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host.put(SPEC, json.dumps({"host": {"sysctl": {"text": "no"}, "\u00fcnit": {}}}))
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    assert cli.main(("plan", "--spec", SPEC)) == 1
    assert b"\\xfcnit" in out.getvalue()


def test_what_would_steer_a_terminal_is_shown() -> None:
    unit = {
        "unit": "sysctl",
        "state": "failed",
        "reason": "Refused",
        "msg": "\x1b[2J\x07\r\x9b1m\x7f\u202e",
        "changed": False,
    }
    result = {"changed": False, "units": [unit], "section": {"state": "FAILED"}}
    told = cli_report.told(result, None, plans=False, diff=False)
    assert "    Refused: \\x1b[2J\\x07\\x0d\\x9b1m\\x7f\\u202e\n" in told


def test_an_interrupted_call_has_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("ansible_collections.bettercompute.bcd.plugins.module_utils.front.agent.run", interrupted)
    ran = Ran(capsys, "agent")
    assert (ran.status, ran.out, ran.err) == (130, "", "")


def test_what_is_refused_of_the_whole_section_is_said_once() -> None:
    def of(name: str, told: str) -> dict[str, object]:
        return {"unit": name, "state": "failed", "reason": "Refused", "msg": told, "changed": False}

    ends = {"changed": False, "section": {"state": "FAILED"}}
    same = {**ends, "units": [of("sysctl", "nothing unsigned"), of("cpu", "nothing unsigned")]}
    assert cli_report.told(same, None, plans=False, diff=False).splitlines() == [
        "host: FAILED",
        "  sysctl, cpu",
        "    Refused: nothing unsigned",
    ]
    two = {**ends, "units": [of("sysctl", "a key"), of("cpu", "a governor")]}
    assert cli_report.told(two, None, plans=False, diff=False).splitlines() == [
        "host: FAILED",
        "  sysctl  failed",
        "    Refused: a key",
        "  cpu     failed",
        "    Refused: a governor",
    ]


def test_many_cpus_that_say_the_same_are_one_line() -> None:
    steps = [{"action": f"set the governor of CPU {one}", "disruption": "none", "done": False} for one in range(200)]
    unit = {"unit": "cpu", "state": "progressing", "changed": True, "steps": steps, "pending": [], "notes": []}
    result = {"changed": True, "units": [unit], "section": {"state": "PROGRESSING"}, "secrets_needed": ["pool"]}
    lines = cli_report.told(result, None, plans=True, diff=False).splitlines()
    assert lines == [
        "host: PROGRESSING, would change",
        "  cpu  progressing",
        "    would: set the governor of CPU 0 and 199 more like it",
        "  needs the secrets pool, which a run of the playbook converge gives",
    ]
