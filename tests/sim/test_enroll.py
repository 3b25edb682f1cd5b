# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook enroll on a simulated host: what it lays down, keeps, refuses and takes away.

The accounts are made by the distribution's own programs, and files are given to them, so only root can play it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.pki import ControlPlane
from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.marks import with_accounts
from tests.sim.tree import PROFILES

pytestmark = with_accounts
newest_core = pytest.mark.newest_core  # what no version of Ansible has a part in
HOST = "one-01"
PYTHON = "/.sim/venv/bin/python"  # has cryptography, as a host's own Python would have by its package
CONFIG, RECORD = "/etc/bcd/config.toml", "/var/lib/bcd-hostconfig/join-record.json"
LOCK = "var/lib/bcd-hostconfig/lock"
HEADER = (
    "# Kept by bettercompute.bcd (host_config): root's own values stay until it is given others, comments do not.\n"
)
UNITS = "/etc/systemd/system"
SOCKET = f"{UNITS}/bcd-helper.socket"
PLANE = ControlPlane()
NODE = "node-7"
KEYS = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMadeUpForThisTestAndOfNoUseAnywhereElse000 made-up"]


class Site:
    """One host, and what its tree holds."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        controller.freeze(str(scratch))  # the program is another one as soon as somebody edits its code
        self.inventory = fleet.make(str(scratch / "fleet"), [fleet.Hosts("one", PROFILES["debian"])])
        self.host = SimulatedHost(str(scratch / "fleet" / "trees" / HOST))
        self.host.run("true")  # the first entry leaves what a later one mounts upon

    def enroll(self, *arguments: str, rc: int = 0, **variables: Any) -> dict[str, Any]:
        """The events of a run of the playbook."""
        given = json.dumps({"bcd_program_python": PYTHON, **variables})
        played = controller.playbook(
            str(self.scratch), self.inventory, "bettercompute.bcd.enroll", *arguments, "-e", given, as_json=True
        )
        assert played.rc == rc, played.out + played.err
        return played.events()

    def changed(self, *arguments: str, **variables: Any) -> int:
        """How many tasks changed the host."""
        count: int = self.enroll(*arguments, **variables)["stats"][HOST]["changed"]
        return count

    def read(self, name: str) -> str:
        """A file that is there."""
        found = self.host.read(name)
        assert found is not None, name
        return found

    def path(self, name: str) -> Path:
        return Path(self.host.tree) / name.lstrip("/")

    def owner(self, name: str) -> tuple[int, str, str]:
        """The mode, owner and group of a path, by the tree's own names."""
        mode, owner, group = self.host.run("stat", "-c", "%a %U %G", name).stdout.split()
        return int(mode, 8), owner, group

    def files(self) -> dict[str, bytes | str]:
        """Every file that the playbook could have a hand in; not the lock, which says who had it last."""
        found: dict[str, bytes | str] = {}
        for place in ("etc", "usr/lib/bcd", "usr/local/sbin", "var/lib", "run/bcd"):
            for path in sorted(self.path(place).rglob("*")):
                name = str(path.relative_to(self.host.tree))
                found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        found.pop(LOCK, None)
        return found

    def message(self, events: dict[str, Any]) -> str:
        """What the failed tasks said."""
        return "\n".join(str(task["result"].get("msg")) for task in events["tasks"] if task["status"] == "failed")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


PINS: dict[str, Any] = {"bcd_config_command_roots": [PLANE.root.digest], "bcd_config_join_pin": PLANE.join.pin}


def test_a_check_of_a_bare_host_says_all_and_changes_nothing(site: Site) -> None:
    before = site.files()
    record = PLANE.join_response(NODE, 1, [PLANE.root])
    planned = site.changed(
        "--check",
        "--diff",
        **PINS,
        bcd_config_join_record=record,
        bcd_config_authorized_keys=KEYS,
        bcd_config_members=["root"],
    )
    assert site.files() == before
    assert planned >= 6


def test_a_host_is_enrolled_once_and_what_is_not_given_is_kept(site: Site) -> None:
    record = PLANE.join_response(NODE, 1, [PLANE.root])
    cluster = f"https://10.0.0.1:6443#sha256:{'c' * 64}"
    given = {
        **PINS,
        "bcd_config_join_record": record,
        "bcd_config_allowed_clusters": [cluster],
        "bcd_config_authorized_keys": KEYS,
        "bcd_config_members": ["root"],
    }
    assert site.changed(**given) > 6
    text = (
        f'{HEADER}command_root_sha256 = "{PLANE.root.digest}"\njoin_signing_key_pin = "{PLANE.join.pin}"\n'
        f'\n[kubernetes]\nallowed_clusters = "{cluster}"\n'
    )
    assert site.read(CONFIG) == text
    assert site.owner("/etc/bcd") == (0o750, "root", "bcd")
    assert site.owner(CONFIG) == (0o640, "root", "bcd")
    assert json.loads(site.read(RECORD)) == record
    assert site.owner(RECORD) == (0o600, "root", "root")
    _name, password, _uid, _gid, _comment, home, shell = account(site)
    assert (password, home, shell) == ("x", "/var/lib/bcd", "/bin/sh")
    assert shadow(site) == "*"
    # What the account could turn against root is root's.
    assert site.owner("/var/lib/bcd") == (0o750, "root", "bcd")
    assert site.owner("/var/lib/bcd/.ssh") == (0o750, "root", "bcd")
    assert site.owner("/var/lib/bcd/.ssh/authorized_keys") == (0o640, "root", "bcd")
    assert site.owner("/var/lib/bcd/.ansible") == (0o700, "bcd", "bcd")
    assert site.read("/var/lib/bcd/.ssh/authorized_keys").splitlines() == KEYS
    assert "root" in group(site)[3].split(",")
    for unit in ("bcd-helper.socket", "bcd-agent.timer"):
        assert site.host.run("systemctl", "is-enabled", unit).stdout.strip() == "enabled"
        assert site.host.run("systemctl", "is-active", unit).stdout.strip() == "active"
    assert site.changed(**given) == 0
    kept = site.files()
    assert site.changed() == 0
    assert site.files() == kept


@newest_core
def test_without_pins_too_and_pins_come_and_go_by_name(site: Site) -> None:
    site.enroll(bcd_enroll_agent=False)
    assert site.read(CONFIG) == HEADER
    assert not site.path(f"{UNITS}/bcd-agent.timer").exists()
    assert account(site)[6] != "/bin/false"
    site.enroll(bcd_enroll_agent=False, bcd_enroll_helper=False, bcd_config_command_roots=[PLANE.root.digest])
    assert PLANE.root.digest in site.read(CONFIG)
    site.enroll(
        bcd_enroll_agent=False,
        bcd_enroll_helper=False,
        bcd_config_command_roots=[],
        bcd_config_host_units=False,
        bcd_config_authorized_keys=[],
    )
    assert site.read(CONFIG) == f"{HEADER}\n[host]\nunits = false\n"
    assert account(site)[6] == "/bin/false"


REFUSED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "another key": ({**PINS, "bcd_config_join_record": ControlPlane().join_response(NODE)}, ("join record", "key")),
    "no pin": ({"bcd_config_join_record": PLANE.join_response(NODE)}, ("join_signing_key_pin",)),
    "a pin": ({"bcd_config_join_pin": "sha256/none"}, ("join_signing_key_pin", "'sha256/none'")),
    "a root": ({"bcd_config_command_roots": ["none"]}, ("command_root_sha256", "64 hex digits")),
    "a cluster": ({"bcd_config_allowed_clusters": ["https://10.0.0.1"]}, ("allowed_clusters",)),
}


@newest_core
def test_what_does_not_hold_leaves_no_identity(site: Site) -> None:
    before = site.files()
    for which, (variables, words) in REFUSED.items():
        said = site.message(site.enroll(rc=2, **variables))
        assert [word for word in words if word not in said] == [], which
        after = site.files()
        left = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        assert left <= {os.path.dirname(LOCK)}, which
    site.enroll(rc=2, bcd_config_members=["nobody-of-that-name"])  # an account that is not there is not made
    assert "nobody-of-that-name" not in site.read("/etc/passwd")


@newest_core
def test_keys_and_accounts_may_be_texts_as_lookups_give_them(site: Site) -> None:
    """A text in the place of a list is one key a line, and never one a character."""
    small: dict[str, Any] = {"bcd_enroll_agent": False, "bcd_enroll_helper": False}
    site.enroll(**small, bcd_config_authorized_keys=f"{KEYS[0]}\r\n\n{KEYS[0]} too\n", bcd_config_members="root")
    keys = "/var/lib/bcd/.ssh/authorized_keys"
    assert site.read(keys) == f"{KEYS[0]}\n{KEYS[0]} too\n"
    assert "root" in group(site)[3].split(",")
    site.enroll(**small, bcd_config_authorized_keys=None)  # which is not given
    assert site.read(keys) == f"{KEYS[0]}\n{KEYS[0]} too\n"


@newest_core
def test_enrolled_again_as_another_node(site: Site) -> None:
    small: dict[str, Any] = {"bcd_enroll_agent": False, "bcd_enroll_helper": False}
    site.enroll(**PINS, **small, bcd_config_join_record=PLANE.join_response(NODE, 1, [PLANE.root]))
    other = PLANE.join_response("node-8", 1, [PLANE.root])
    again = site.enroll(**small, bcd_config_join_record=other)
    [told] = [task["result"] for task in again["tasks"] if task["action"] == "bettercompute.bcd.host_config"]
    assert (told["node_id"], told["changed"]) == ("node-8", True)
    assert json.loads(site.read(RECORD)) == other


@newest_core
def test_a_host_whose_python_verifies_nothing_is_told_so(site: Site) -> None:
    """It has no package of that name, and ends before it has a pin that it could not honour."""
    said = site.message(
        site.enroll(rc=2, **PINS, bcd_config_python="/bin/false", bcd_config_cryptography_package="no-such-package")
    )
    assert "demand signatures, and nothing here verifies one" in said
    assert not site.path(CONFIG).exists()
    # Nor where they are there from before, and this run says nothing of them.
    small: dict[str, Any] = {"bcd_enroll_agent": False, "bcd_enroll_helper": False}
    site.enroll(**PINS, **small)
    said = site.message(
        site.enroll(rc=2, **small, bcd_config_python="/bin/false", bcd_config_cryptography_package="no-such-package")
    )
    assert "demand signatures, and nothing here verifies one" in said


def restarts(site: Site) -> list[list[str]]:
    return [call for call in site.host.calls("systemctl") if "restart" in call]


@newest_core
def test_an_enrolled_host_after_a_run_that_died_with_another_program_and_without_a_helper(site: Site) -> None:
    site.enroll()
    _after_a_run_that_died(site)
    small: dict[str, Any] = {"bcd_enroll_agent": False}
    # A program that is installed anew ends the helper of before: what runs keeps its code until then.
    site.host.forget_calls()
    assert site.changed(**small) == 0
    assert restarts(site) == []
    site.host.remove("/usr/local/sbin/bcd")
    assert site.changed(**small) > 0
    assert [call[1:] for call in restarts(site)] == [["restart", "bcd-helper.socket"]]
    # The helper is taken away again.
    assert site.path(SOCKET).exists()
    assert site.changed("--check", **small, bcd_helper_state="absent") > 0
    assert site.path(SOCKET).exists()
    site.enroll(**small, bcd_helper_state="absent")
    assert not [name for name in site.files() if "bcd-helper" in name]
    assert site.host.run("systemctl", "is-active", "bcd-helper.socket").stdout.strip() == "inactive"
    assert site.changed(**small, bcd_helper_state="absent") == 0
    said = site.message(site.enroll(rc=2, **small, bcd_helper_state="gone"))
    assert "bcd_helper_state" in said


def _after_a_run_that_died(site: Site) -> None:
    """It was killed between the files of another version and the restart: the next finds them as they are to be."""
    units = ("bcd-helper.socket", "bcd-helper.service", "bcd-agent.timer", "bcd-agent.service")
    texts = {unit: site.read(f"{UNITS}/{unit}") for unit in units}
    for unit in units:
        site.path(f"{UNITS}/{unit}").write_text(f"{texts[unit]}# of before\n")
    site.host.run("systemctl", "daemon-reload")
    site.host.run("systemctl", "show", *units)
    for unit in units:
        site.path(f"{UNITS}/{unit}").write_text(texts[unit])
    known = ("systemctl", "show", "--value", "--property=NeedDaemonReload", *units)
    assert site.host.run(*known).stdout.split() == ["yes"] * 4
    assert site.changed() == 1  # the socket is started anew; a timer goes by its file from the reload on
    assert site.host.run(*known).stdout.split() == ["no"] * 4


def account(site: Site) -> list[str]:
    return entry(site, "/etc/passwd")


def group(site: Site) -> list[str]:
    return entry(site, "/etc/group")


def shadow(site: Site) -> str:
    return entry(site, "/etc/shadow")[1]


def entry(site: Site, path: str) -> list[str]:
    """The fields of what a database has of bcd."""
    [found] = [line.split(":") for line in site.read(path).splitlines() if line.startswith("bcd:")]
    return found
