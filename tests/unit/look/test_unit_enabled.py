# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the next boot starts a unit: when files alone say so, and from which the answer of is-enabled follows."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.services import enabled
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.unit_enabled import is_plainly_enabled
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.unit_places import deciding
from tests.unit.fake_host import FakeHost

NAME = "nvidia-fabricmanager.service"
ETC, USR, RUN = "/etc/systemd/system", "/usr/lib/systemd/system", "/run/systemd/system"
LINK = f"{ETC}/multi-user.target.wants/{NAME}"
UNIT = "[Service]\n[Install]\nWantedBy=multi-user.target\n"


def plain() -> FakeHost:
    return FakeHost({f"{USR}/{NAME}": UNIT}, links={LINK: f"{USR}/{NAME}"})


def said(host: FakeHost, word: str) -> str:
    host.programs["systemctl"] = lambda _host, _argv: Answer(0 if word == "enabled" else 1, f"{word}\n")
    return enabled(host, NAME)


def test_the_usual_link_of_a_file_of_its_own_needs_no_program() -> None:
    host = plain()
    assert said(host, "not asked") == "enabled"
    assert host.asked == []


@pytest.mark.parametrize(("name", "target"), [("x.socket", "sockets.target"), ("x.timer", "timers.target")])
def test_sockets_and_timers_are_wanted_by_targets_of_their_own(name: str, target: str) -> None:
    host = FakeHost({f"{ETC}/{name}": UNIT}, links={f"{ETC}/{target}.wants/{name}": f"{ETC}/{name}"})
    assert is_plainly_enabled(host, name)
    assert not is_plainly_enabled(host, name.replace("x", "y"))


# What systemctl(1) tells of each, in its table of is-enabled: masked, masked-runtime, alias, transient, generated ...
@pytest.mark.parametrize(
    ("files", "links"),
    [
        ({}, {f"{ETC}/{NAME}": "/dev/null"}),
        ({}, {f"{RUN}/{NAME}": "/dev/null"}),
        ({f"{ETC}/{NAME}": ""}, {}),
        ({f"{USR}/{NAME}": ""}, {}),
        ({}, {f"{USR}/{NAME}": f"{USR}/other.service"}),
        ({f"{RUN}/{NAME}": UNIT}, {}),
        ({f"/run/systemd/transient/{NAME}": UNIT}, {}),
        ({f"/run/systemd/generator/{NAME}": UNIT}, {}),
        ({f"/etc/systemd/system.control/{NAME}": UNIT}, {}),
    ],
)
def test_where_a_file_leaves_a_doubt_systemd_is_asked(files: dict[str, str], links: dict[str, str]) -> None:
    host = plain()
    for path, text in files.items():
        host.put(path, text)
    for path in links:
        host.files.pop(path, None)
    host.links.update(links)
    assert said(host, "what it says") == "what it says"
    assert host.asked == [("systemctl", "is-enabled", NAME)]


def test_without_the_link_systemd_is_asked() -> None:
    host = plain()
    del host.links[LINK]
    assert said(host, "disabled") == "disabled"


def stamps(host: FakeHost) -> list[tuple[str, tuple[int, ...] | None]]:
    return [(path, host.stamp(path)) for path in deciding(host, NAME)]


@pytest.mark.parametrize(
    ("path", "matters"),
    [
        (f"{ETC}/multi-user.target.wants/{NAME}", True),
        (f"{ETC}/graphical.target.requires/{NAME}", True),
        (f"{RUN}/{NAME}", True),
        (f"{USR}/{NAME}", True),
        (f"{USR}/{NAME}.d/10-install.conf", True),
        (f"{USR}/nvidia-.service.d/10-install.conf", True),
        (f"{USR}/service.d/10-install.conf", True),
        (f"{ETC}/an-alias-of-it.service", True),
        (f"/run/systemd/transient/{NAME}", True),
        ("/run/systemd/transient/session-5.scope", False),
        (f"{USR}/other.service.d/10.conf", False),
        ("/etc/hosts", False),
    ],
)
def test_from_what_the_answer_of_is_enabled_follows(path: str, matters: bool) -> None:
    host = FakeHost({f"{USR}/{NAME}": UNIT, f"{USR}/other.service.d/10.conf": "", f"{USR}/service.d/0.conf": ""})
    before = stamps(host)
    host.put(path, "another text\n")
    assert (stamps(host) != before) is matters


# As on any host: the directories are there, with links and drop-ins of others in them.
@pytest.mark.parametrize(
    "path",
    [
        f"{ETC}/multi-user.target.wants/{NAME}",
        f"{ETC}/graphical.target.requires/{NAME}",
        f"{ETC}/graphical.target.upholds/{NAME}",
        f"/run/systemd/generator.late/multi-user.target.wants/{NAME}",
        f"{USR}/nvidia-.service.d/10-install.conf",
        f"{USR}/service.d/10-install.conf",
    ],
)
def test_a_file_that_comes_beside_others_is_seen(path: str) -> None:
    folder = path.rpartition("/")[0]
    host = FakeHost({f"{USR}/{NAME}": UNIT, f"{folder}/other.conf": "another's\n"})
    before = stamps(host)
    host.put(path, "one more\n")
    assert stamps(host) != before


def test_a_drop_in_that_is_written_anew_in_its_place_is_seen() -> None:
    drop_in = f"{USR}/nvidia-.service.d/10-install.conf"
    host = FakeHost({f"{USR}/{NAME}": UNIT, drop_in: "[Install]\n"})
    before = stamps(host)
    host.put(drop_in, "[Install]\nAlias=another.service\n")
    assert stamps(host) != before


def test_lib_counts_where_it_is_a_directory_of_its_own() -> None:
    merged = FakeHost({f"{USR}/{NAME}": UNIT}, links={"/lib": "usr/lib"})
    assert not [path for path in deciding(merged, NAME) if path.startswith("/lib/")]
    apart = FakeHost({f"/lib/systemd/system/{NAME}": UNIT})
    assert {"/lib/systemd/system", f"/lib/systemd/system/{NAME}"} <= {*deciding(apart, NAME)}
