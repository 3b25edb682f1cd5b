# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host makes of a signed spec, and of none: what it demands, remembers, and can say without being root."""

from __future__ import annotations

import builtins
import errno
import json
import subprocess
import sys
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Fault, Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.trust import Intent, agreed, intend
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import MEMORY, RECORD, parse
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG
from tests.pki import ControlPlane
from tests.tools.results import TOP
from tests.unit.fake_host import FakeHost

PLANE = ControlPlane()
WANTED = {"sysctl": {"vm.swappiness": 10}}
SPEC = PLANE.desired_state(generation=3, host=WANTED)
INTENT = Intent("node-1", 3, WANTED, None)
CONFIGS = {(root, join): PLANE.config(None if root else (), join) for root in (True, False) for join in (True, False)}
ROOTLESS = PLANE.join_response(roots=[])
UNSIGNED = (
    "a signed spec, and none is given: nothing unsigned is applied: give signed_spec, which the module sign_spec makes "
    "(as bcd_converge_signed_spec to the playbooks)"
)
MISSING = (
    "signatures need the Python package cryptography, which this host's Python does not have: install it (the package "
    "python3-cryptography)"
)


def pinned(root: bool = True, join: bool = False, record: Any = None) -> FakeHost:
    host = FakeHost({CONFIG: CONFIGS[root, join]})
    if record is not None:
        host.files[RECORD] = File(json.dumps(record), 0o600)
    return host


def refused(host: Any, spec: Any = None) -> str:
    with pytest.raises(Refused) as raised:
        intend(host, spec)
    return raised.value.message


# -- what is demanded


def test_a_host_without_pins_demands_nothing_and_verifies_nothing() -> None:
    for host in (FakeHost(), FakeHost({CONFIG: "[host]\nunits = true\n"})):
        assert intend(host, None) is None
        assert refused(host, SPEC) == (
            f"signed_spec is given, and root pins no signer on this host: pin one in {CONFIG} (command_root_sha256 or "
            "join_signing_key_pin; the playbook enroll does), or leave signed_spec out"
        )
        assert host.calls == []


def test_a_pinned_root_demands_a_signature_whatever_else_root_has() -> None:
    why = f"command_root_sha256 in root's config.toml demands {UNSIGNED}"
    for host in (
        pinned(),
        pinned(join=True, record=ROOTLESS),
        pinned(join=True, record=ControlPlane().join_response(roots=[])),
    ):
        assert refused(host) == why
        assert host.calls == []


def test_a_pin_counts_in_whichever_table_it_stands() -> None:
    host = FakeHost({CONFIG: f"[helper]\n{CONFIGS[True, False]}"})
    assert refused(host) == f"command_root_sha256 in root's config.toml demands {UNSIGNED}"
    assert intend(host, SPEC) == INTENT


def test_the_pinned_key_demands_one_where_root_does_not_know_better() -> None:
    assert refused(pinned(root=False, join=True)) == f"join_signing_key_pin in root's config.toml demands {UNSIGNED}"
    joined = PLANE.join_response(roots=[PLANE.root])
    assert refused(pinned(False, True, joined)) == f"the join record of this host has roots and demands {UNSIGNED}"
    assert intend(pinned(False, True, ROOTLESS), None) is None


def test_from_the_first_bundle_with_roots_on_it_demands_one() -> None:
    host = pinned(False, True, ROOTLESS)
    assert intend(host, None) is None
    spec = PLANE.desired_state(generation=3, host=WANTED, bundle=PLANE.trust_bundle(2, [PLANE.root]))
    assert intend(PredictedHost(host), spec) == INTENT
    assert intend(host, None) is None  # a check has bound nothing
    assert intend(host, spec) == INTENT
    assert refused(host) == f"trust bundle 2, which this host accepted, has roots and demands {UNSIGNED}"
    rootless = PLANE.desired_state(generation=4, host=WANTED, bundle=PLANE.trust_bundle(3, []))
    assert "no root counts for signed_spec (its trust_bundle names none)" in refused(host, rootless)


def test_a_damaged_memory_stops_everything_but_a_refusal() -> None:
    host = pinned(False, True, ROOTLESS)
    host.put(MEMORY, "{")
    for spec in (None, SPEC):
        with pytest.raises(StepFailed, match=r"helper-intent\.json is not a record of version 1"):
            intend(host, spec)
    assert host.calls == []


# -- what is remembered


def test_an_accepted_spec_is_remembered_once() -> None:
    host = pinned()
    assert intend(host, SPEC) == INTENT
    assert host.calls == [f"write {MEMORY}"]
    assert (host.files[MEMORY].mode, parse(host.text(MEMORY)).envelope) == (0o600, SPEC)
    assert intend(host, SPEC) == INTENT
    assert host.calls == [f"write {MEMORY}"]


def test_a_check_remembers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(_predicted: PredictedHost, path: str, _text: str, _mode: int) -> None:
        raise AssertionError(path)

    monkeypatch.setattr(PredictedHost, "write", written)
    host = pinned()
    assert intend(PredictedHost(host), SPEC) == INTENT
    assert host.calls == []


def test_what_the_options_do_not_agree_with_is_not_remembered() -> None:
    host = pinned()
    seen: list[Intent] = []

    def disagree(intent: Intent) -> None:
        seen.append(intent)
        raise Refused("another")

    with pytest.raises(Refused, match=r"^another$"):
        agreed(host, SPEC, disagree)
    assert (seen, host.calls) == ([INTENT], [])
    assert agreed(host, SPEC, lambda intent: intent.generation) == 3
    assert host.calls == [f"write {MEMORY}"]


def test_what_cannot_be_remembered_is_not_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    host = pinned()

    def full(_path: str, _text: str, _mode: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(host, "write", full)
    with pytest.raises(StepFailed) as raised:
        intend(host, SPEC)
    assert raised.value.message == (
        f"cannot remember the signed spec in {MEMORY}: No space left on device (free some space there)"
    )


# -- what an ordinary account sees


def test_an_account_that_cannot_see_the_pins_plans_unverified() -> None:
    host = pinned()
    host.user, host.unreadable = 1000, {CONFIG}
    predicted = PredictedHost(host)
    assert intend(predicted, None) is None
    assert intend(predicted, SPEC) == INTENT._replace(verified=False)
    with pytest.raises(Refused, match="is no text in base64"):
        intend(predicted, {**SPEC, "body": "?"})


@pytest.mark.parametrize("path", [RECORD, MEMORY])
def test_an_account_that_cannot_see_root_s_records_plans_unverified(path: str) -> None:
    host = pinned(False, True, ROOTLESS)
    host.user, host.unreadable = 1000, {path}
    predicted = PredictedHost(host)
    assert intend(predicted, SPEC) == INTENT._replace(verified=False)
    assert intend(predicted, None) is None


def test_the_real_host_never_goes_on_unverified() -> None:
    for path in (CONFIG, RECORD, MEMORY):
        host = pinned(False, True, ROOTLESS)
        host.unreadable = {path}
        for spec in (None, SPEC):
            with pytest.raises(Fault, match="Permission denied"):
                intend(host, spec)
        assert host.calls == []


# -- without cryptography


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host's Python that has no cryptography."""
    there = builtins.__import__

    def missing(name: str, *given: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "cryptography":
            raise ModuleNotFoundError(f"No module named {name!r}")
        return there(name, *given, **options)

    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", missing)


@pytest.mark.usefixtures("bare")
def test_without_cryptography_unsigned_works_where_nothing_is_pinned() -> None:
    assert intend(FakeHost(), None) is None


@pytest.mark.usefixtures("bare")
def test_without_cryptography_what_a_pin_demands_is_refused() -> None:
    host = pinned()
    assert refused(host, SPEC) == MISSING
    assert refused(host) == f"command_root_sha256 in root's config.toml demands {UNSIGNED}"
    assert refused(pinned(False, True)) == f"join_signing_key_pin in root's config.toml demands {UNSIGNED}"
    joined = pinned(False, True, ROOTLESS)
    assert refused(joined) == refused(joined, SPEC) == MISSING
    assert host.calls == joined.calls == []


# -- what it costs

# In a fresh interpreter that has what any pass has: how many bytes of the project's files the gate imports.
WEIGH = """
import importlib, json, os, sys
from tests.unit.fake_host import FakeHost
package = "ansible_collections.bettercompute.bcd.plugins.module_utils."
for name in ("front.section", "front.opening"):
    importlib.import_module(package + name)
before = {*sys.modules}
host = FakeHost(json.loads(sys.argv[1]))
importlib.import_module(package + "front.trust").intend(host, json.loads(sys.argv[2]))
new = {*sys.modules} - before
print(sum(os.path.getsize(sys.modules[name].__file__) for name in new if name.startswith(package)))
print(any(name.startswith("cryptography") for name in new))
"""


@pytest.mark.parametrize(
    ("host", "spec", "most", "library"),
    [
        (FakeHost(), None, 3_000, False),
        (FakeHost({CONFIG: "[host]\nunits = true\n"}), None, 9_500, False),
        (pinned(), SPEC, 59_500, True),
    ],
    ids=["no configuration", "nothing pinned", "signed"],
)
def test_what_the_gate_imports(host: FakeHost, spec: Any, most: int, library: bool) -> None:
    """The library takes a tenth of a second: only where something is signed. A little above what is measured."""
    files = {path: file.text for path, file in host.files.items()}
    done = subprocess.run(
        [sys.executable, "-c", WEIGH, json.dumps(files), json.dumps(spec)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{TOP}:{TOP / '.build'}", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    size, imported = done.stdout.split()
    assert (int(size) <= most, imported) == (True, str(library)), size
