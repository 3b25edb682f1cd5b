# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's configuration as the module host_config keeps it: who may sign, what may be joined, which node this is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as machine
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import host_config, opening, single
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.host_config import config_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import RECORD
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import host_config as planner
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.config_text import parse_config
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.host_config import UNIT
from tests.pki import ControlPlane
from tests.unit import promises
from tests.unit.fake_host import FakeHost

CONFIG, FOLDER = "/etc/bcd/config.toml", "/etc/bcd"
HEADER = (
    "# Kept by bettercompute.bcd (host_config): root's own values stay until it is given others, comments do not.\n"
)
OPTIONS: dict[str, Any] = dict.fromkeys(
    ("allowed_clusters", "host_units", "command_roots", "join_pin", "join_record", "signing_key")
)
DIGEST, OTHER = "a" * 64, "b" * 64
CLUSTER = f"https://10.0.0.1:6443#sha256:{'c' * 64}"


class ConfigHost(FakeHost):
    """With the programs that give files to a group, as coreutils and shadow have them."""

    def __init__(self, config: str | None = None, group: bool = True) -> None:
        super().__init__()
        self.groups = {"root", *(["bcd"] if group else [])}
        self.owner: dict[str, str] = {}
        self.programs.update(
            stat=self._stat, getent=self._getent, groupadd=self._groupadd, install=self._install, chgrp=self._chgrp
        )
        if config is not None:
            self.files[FOLDER] = File("", 0o750, regular=False)
            self.files[CONFIG] = File(config, 0o640)
            self.owner = {FOLDER: "bcd", CONFIG: "bcd"}

    def write(self, path: str, text: str, mode: int) -> None:
        super().write(path, text, mode)
        self.owner.pop(path, None)  # a new file, with root's group

    def _stat(self, _host: FakeHost, argv: tuple[str, ...]) -> Answer:
        assert argv[1:3] == ("-c", "%a %G")
        seen = self.file(argv[3])
        if seen is None:
            return Answer(1, "", f"stat: cannot statx '{argv[3]}': No such file or directory")
        return Answer(0, f"{seen.mode:o} {self.owner.get(argv[3], 'root')}\n")

    def _getent(self, _host: FakeHost, argv: tuple[str, ...]) -> Answer:
        return Answer(0, f"{argv[2]}:x:990:\n") if argv[2] in self.groups else Answer(2, "")

    def _groupadd(self, _host: FakeHost, argv: tuple[str, ...]) -> Answer:
        assert argv[1] == "--system"
        self.groups.add(argv[2])
        return Answer(0, "")

    def _install(self, _host: FakeHost, argv: tuple[str, ...]) -> Answer:
        assert argv[1:4] == ("--directory", "--mode=0750", "--owner=root")
        self.files[argv[5]] = File("", 0o750, regular=False)
        return self._give(argv[4].partition("=")[2], argv[5])

    def _chgrp(self, _host: FakeHost, argv: tuple[str, ...]) -> Answer:
        return self._give(argv[2], argv[3])

    def _give(self, group: str, path: str) -> Answer:
        if group not in self.groups:
            return Answer(1, "", f"invalid group: '{group}'")
        self.owner[path] = group
        return Answer(0, "")


@pytest.fixture(autouse=True)
def unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def only_pass(_host: object, _what: str) -> Iterator[None]:
        yield

    monkeypatch.setattr(opening, "only_pass", only_pass)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    def config(host: FakeHost, check: bool = False, **options: Any) -> dict[str, Any]:
        monkeypatch.setattr(machine, "Host", lambda: host)
        return config_result({**OPTIONS, "group": "bcd", **options}, check)

    return config


def is_refused(result: dict[str, Any], host: FakeHost, *words: str) -> None:
    """Terminal, says the words, and nothing was written or run."""
    assert (result.get("reason"), result["retryable"], result["changed"]) == ("Refused", False, False), result
    assert host.calls == []
    assert [word for word in words if word not in result["msg"]] == []


# -- what is written


def test_a_bare_host_gets_all_of_it(given: Any) -> None:
    host = ConfigHost(group=False)
    made = given(
        host,
        allowed_clusters=[CLUSTER],
        host_units=True,
        command_roots=[DIGEST, OTHER],
        join_pin=ControlPlane().join.pin,
        signing_key="/etc/bcd/node.key",
    )
    assert (made["state"], made["changed"]) == ("converged", True), made
    assert "bcd" in host.groups
    text = host.text(CONFIG)
    assert text is not None
    assert text.startswith(HEADER)
    assert parse_config(text)["kubernetes"] == {"allowed_clusters": CLUSTER}
    assert parse_config(text)["host"] == {"units": True}
    assert parse_config(text)[""]["command_root_sha256"] == f"{DIGEST},{OTHER}"
    assert parse_config(text)[""]["signing_key"] == "/etc/bcd/node.key"
    assert host.files[CONFIG].mode == 0o640
    assert host.files[FOLDER].mode == 0o750
    assert host.owner == {CONFIG: "bcd", FOLDER: "bcd"}
    assert made["pins"]["command_roots"] == [DIGEST, OTHER]
    assert host.file(RECORD) is None


def test_the_record_has_one_place() -> None:
    assert planner.RECORD == RECORD


def test_what_is_not_given_is_kept(given: Any) -> None:
    before = (
        f'# by hand\njoin_signing_key_pin = "{ControlPlane().join.pin}"\nlog = \'a\\b "c"\'\n'
        f'[helper]\nretries = 3\ncommand_root_sha256 = "{DIGEST}"\n[host]\nunits = false\n'
    )
    host = ConfigHost(before)
    assert given(host, allowed_clusters=[CLUSTER])["changed"] is True
    kept = parse_config(before)
    assert parse_config(host.text(CONFIG) or "") == {**kept, "kubernetes": {"allowed_clusters": CLUSTER}}
    # A pin that is given stands above the first table, and once.
    given(host, command_roots=[OTHER])
    tables = parse_config(host.text(CONFIG) or "")
    assert tables[""]["command_root_sha256"] == OTHER
    assert tables["helper"] == {"retries": 3}


@pytest.mark.parametrize(
    ("option", "empty"), [("command_roots", []), ("join_pin", ""), ("allowed_clusters", []), ("signing_key", "")]
)
def test_an_empty_value_alone_takes_out(given: Any, option: str, empty: Any) -> None:
    host = ConfigHost()
    every = {
        "command_roots": [DIGEST],
        "join_pin": ControlPlane().join.pin,
        "allowed_clusters": [CLUSTER],
        "signing_key": "/etc/key",
    }
    given(host, **every)
    full = host.text(CONFIG) or ""
    assert given(host)["changed"] is False
    given(host, **{option: empty})
    less = host.text(CONFIG) or ""
    [gone] = set(full.splitlines()) - set(less.splitlines()) - {"[kubernetes]", ""}
    wire = {
        "command_roots": "command_root_sha256",
        "join_pin": "join_signing_key_pin",
        "allowed_clusters": "allowed_clusters",
        "signing_key": "signing_key",
    }
    assert gone.startswith(f"{wire[option]} = ")


def test_nothing_is_asked_for_and_the_file_is_there_all_the_same(given: Any) -> None:
    """The helper demands a configuration of root's, and an empty one is one."""
    host = ConfigHost(group=False)
    assert given(host)["state"] == "converged"
    assert host.text(CONFIG) == HEADER


@pytest.mark.parametrize("group", [True, False])
def test_check_mode_a_second_pass_and_a_kill(group: bool) -> None:
    settings = {"commandRoots": [DIGEST], "joinRecord": "{}\n", "joinPin": ControlPlane().join.pin}

    def bare() -> ConfigHost:
        return ConfigHost(group=group)

    def seen(host: FakeHost) -> object:
        assert isinstance(host, ConfigHost)
        return ({path: file for path, file in host.files.items() if "/bcd" in path}, host.owner, host.groups)

    assert promises.check_is_truthful(UNIT, bare, settings).state == "converged"
    host = bare()
    promises.go(UNIT, host, settings)
    promises.second_pass_is_quiet(UNIT, host, settings)
    assert promises.a_kill_loses_nothing(UNIT, bare, settings, seen) >= 4


def test_it_leaves_no_trace_among_the_units() -> None:
    host = ConfigHost()
    promises.go(UNIT, host, {"commandRoots": [DIGEST]})
    assert host.names("/var/lib/bcd-hostconfig") == ()


def test_drift_of_owner_and_mode_is_mended(given: Any) -> None:
    host = ConfigHost()
    given(host)
    host.owner[CONFIG] = "root"
    host.files[FOLDER] = File("", 0o755, regular=False)
    mended = given(host)
    assert [step["action"] for step in mended["steps"]] == [
        f"make {FOLDER} root's, for the group bcd to read again: it is not as we keep it",
        f"let the group bcd read {CONFIG}",
    ]
    assert host.owner[CONFIG] == "bcd"
    assert host.files[FOLDER].mode == 0o750


# -- the join record


def test_a_join_record_that_verifies_is_kept_for_root_alone(given: Any) -> None:
    plane = ControlPlane()
    host = ConfigHost(group=False)
    record = plane.join_response("node-7", 1, [plane.root])
    made = given(host, join_pin=plane.join.pin, join_record=record)
    assert (made["state"], made["node_id"]) == ("converged", "node-7")
    assert json.loads(host.text(RECORD) or "") == record
    assert host.files[RECORD].mode == 0o600
    # It is there before the pin that makes it count.
    assert host.calls.index(f"write {RECORD}") < host.calls.index(f"write {CONFIG}")
    assert given(host, join_pin=plane.join.pin, join_record=record)["changed"] is False
    # By the pin that is kept, another node's.
    moved = given(host, join_record=plane.join_response("node-8", 1, [plane.root]))
    assert (moved["changed"], moved["node_id"]) == (True, "node-8")


def forged(plane: ControlPlane) -> dict[str, Any]:
    return {
        "another key": plane.join_response("node-7", signer=ControlPlane().join),
        "no envelope": {"node_id": "node-7"},
        "a trust bundle": plane.trust_bundle(1, [plane.root]),
        "a spec": plane.desired_state("node-7", 1, {"sysctl": {}}, signer=plane.join),
        "tampered": {**plane.join_response("node-7"), "body": plane.join_response("node-8")["body"]},
    }


@pytest.mark.parametrize("kind", ["another key", "no envelope", "a trust bundle", "a spec", "tampered"])
@pytest.mark.parametrize("check", [True, False])
def test_a_join_record_that_does_not_verify_refuses_everything(given: Any, kind: str, check: bool) -> None:
    plane = ControlPlane()
    host = ConfigHost(group=False)
    record = forged(plane)[kind]
    result = given(host, check=check, join_pin=plane.join.pin, command_roots=[DIGEST], join_record=record)
    is_refused(result, host, "join record")
    assert host.groups == {"root"}


def test_a_join_record_that_cannot_be_written_leaves_no_identity(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a pin, which would take the first node's spec, nor a group for an account."""
    plane = ControlPlane()
    host = ConfigHost(group=False)
    write = host.write

    def full(path: str, text: str, mode: int) -> None:
        if path == RECORD:
            raise OSError(28, "No space left on device", path)
        write(path, text, mode)

    monkeypatch.setattr(host, "write", full)
    result = given(host, join_pin=plane.join.pin, join_record=plane.join_response("node-7"))
    assert (result["reason"], "No space left on device" in result["msg"]) == ("StepFailed", True), result
    assert (host.file(RECORD), host.file(CONFIG), host.groups) == (None, None, {"root"})


def test_a_host_that_is_enrolled_as_another_node_takes_that_one_s_specs_from_the_first_on(given: Any) -> None:
    plane = ControlPlane()
    host = ConfigHost()
    host.put("/proc/sys/vm/swappiness", "60\n")
    unit = catalog.unit("sysctl")

    def applied(node: str, generation: int, value: int) -> tuple[Any, str | None]:
        bundle = plane.trust_bundle(1, [plane.root])
        spec = plane.desired_state(node, generation, {"sysctl": {"vm.swappiness": value}}, bundle=bundle)
        told = single.unit_result(unit, single.Asked({}, spec), check_mode=False)
        return told.get("msg", told["state"]), host.text("/proc/sys/vm/swappiness")

    given(host, join_pin=plane.join.pin, join_record=plane.join_response("node-7", 1, [plane.root]))
    assert applied("node-7", 5, 10) == ("converged", "10\n")
    given(host, join_record=plane.join_response("node-8", 1, [plane.root]))
    for generation in (5, 6):
        told, value = applied("node-7", generation, 20)
        assert ("is for the node node-7, and this host is node-8" in told, value) == (True, "10\n")
    assert applied("node-8", 1, 30) == ("converged", "30\n")


def test_a_join_record_without_a_pin_is_refused(given: Any) -> None:
    host = ConfigHost()
    is_refused(given(host, join_record=ControlPlane().join_response("node-7")), host, "join_signing_key_pin")


def test_a_pin_moves_with_its_record_only(given: Any) -> None:
    """A record that the pinned key did not sign stops every pass, so that it is not left behind."""
    plane, other = ControlPlane(), ControlPlane()
    host = ConfigHost()
    given(host, join_pin=plane.join.pin, join_record=plane.join_response("node-7"))
    host.calls.clear()
    is_refused(given(host, join_pin=other.join.pin), host, "join_record", RECORD)
    assert given(host, join_pin=plane.join.pin)["changed"] is False
    assert given(host, join_pin=other.join.pin, join_record=other.join_response("node-9"))["node_id"] == "node-9"
    assert given(host, join_record={})["changed"] is True
    assert host.file(RECORD) is None
    given(host, join_record=other.join_response("node-9"))
    given(host, join_pin="")
    assert host.file(RECORD) is None


def test_a_check_of_a_machine_without_the_library_goes_on(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run installs it first."""
    plane = ControlPlane()
    monkeypatch.setattr(host_config, "_has_cryptography", lambda: False)
    host = ConfigHost(group=False)
    planned = given(host, check=True, join_pin=plane.join.pin, join_record=plane.join_response("node-7"))
    assert (planned["state"], planned["changed"]) == ("progressing", True)
    assert host.calls == []


# -- what is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"command_roots": ["abc"]}, ("command_root_sha256", "64 hex digits")),
        ({"command_roots": [DIGEST, ""]}, ("command_roots", "''")),
        ({"command_roots": [f"{DIGEST},{OTHER}"]}, ("command_roots", "without a comma")),
        ({"join_pin": "sha256/short"}, ("join_signing_key_pin", "'sha256/short'")),
        ({"join_pin": 'sha256/"\n[host]'}, ("join_signing_key_pin",)),
        ({"allowed_clusters": ["https://10.0.0.1:6443"]}, ("allowed_clusters", "#sha256:")),
        ({"allowed_clusters": [f'{CLUSTER}"\nx = "1']}, ("allowed_clusters",)),
        ({"signing_key": "node.key"}, ("signing_key", "whole path")),
        ({"signing_key": "/etc/../tmp/key"}, ("signing_key",)),
        ({"signing_key": '/etc/key"\n[host]\nunits = true'}, ("signing_key",)),
        ({"group": "../etc"}, ("group",)),
        ({"group": "-bcd"}, ("group",)),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_value_that_would_be_refused_later_is_refused_now(
    given: Any, options: dict[str, Any], words: tuple[str, ...], check: bool
) -> None:
    host = ConfigHost()
    is_refused(given(host, check=check, **options), host, *words)


@pytest.mark.parametrize("seen", [File("", 0o660), File("", 0o640, uid=990), File("", 0o777, regular=False)])
def test_a_configuration_that_others_could_have_written_is_refused(given: Any, seen: File) -> None:
    host = ConfigHost("")
    host.files[CONFIG] = seen
    is_refused(given(host, host_units=True), host, "must be a regular file root owns that no one else can write")


def test_a_link_in_its_place_is_refused(given: Any) -> None:
    host = ConfigHost()
    host.links[CONFIG] = "/home/bcd/config.toml"
    is_refused(given(host, host_units=True), host, "must be a regular file root owns that no one else can write")


@pytest.mark.parametrize("seen", [File("", 0o770, regular=False), File("", 0o750, uid=990, regular=False)])
def test_a_directory_that_others_can_write_is_refused(given: Any, seen: File) -> None:
    host = ConfigHost()
    host.files[FOLDER] = seen
    is_refused(given(host), host, f"{FOLDER} is not a directory only root can write")


def test_a_configuration_that_cannot_be_read_whole_is_refused(given: Any) -> None:
    host = ConfigHost("[host]\nunits = [1]\n")
    is_refused(given(host, host_units=True), host, "line 2")


def test_another_account_is_told_to_become_root(given: Any) -> None:
    host = ConfigHost()
    host.user = 1000
    result = given(host, host_units=True)
    assert (result["reason"], result["changed"], host.calls) == ("StepFailed", False, [])
    assert "never the helper on another account's word: set become: true" in result["msg"]


def test_a_host_that_is_kept_from_us_can_be_given_back(given: Any) -> None:
    host = ConfigHost("[host]\nunits = false\n")
    assert given(host, host_units=True)["state"] == "converged"
    assert parse_config(host.text(CONFIG) or "")["host"] == {"units": True}


@pytest.mark.parametrize("value", ['a"b', "a\\b", "a'b", "#", "é", " = ", "[x]", "\t", ""])
def test_every_text_is_read_as_it_was_written(value: str) -> None:
    tables: dict[str, dict[str, str | int | bool]] = {"": {"a": value, "b": -3, "c": True}, "x.y": {"d": value}}
    assert parse_config(planner.render(tables)) == tables
