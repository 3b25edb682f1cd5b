# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows from files is what a program says of them; that it failed, for want of memory say, follows from none."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past, Question, Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import container_toolkit, driver_file, services
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import kube_programs as kube
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.package_database import listed
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import container_toolkit_support as support
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.systemd_asks import RUNNING
from tests.unit.fake_host import FakeHost

UNIT = "containerd.service"
MODULES = "/lib/modules/6.12.1"
NO_MEMORY = Answer(1, "", "Cannot allocate memory\n")
NOT_INSTALLED = Answer(1, "", "modinfo: ERROR: Module nvidia not found.\n")
MODINFO = f"filename:       {MODULES}/updates/nvidia.ko\nversion:        580.95.05\nlicense:        NVIDIA\n"
GONE = "modinfo: ERROR: could not get modinfo from 'nvidia': No such file or directory\n"
PROGRAMS = ("systemctl", "modinfo", "kubelet", "nvidia-ctk", "containerd")


def machine(answer: Answer) -> FakeHost:
    """A host whose programs all answer so."""
    host = FakeHost(
        {
            RUNNING: "",
            f"/usr/lib/systemd/system/{UNIT}": "[Service]\n",
            "/proc/sys/kernel/osrelease": "6.12.1\n",
            f"{MODULES}/modules.dep.bin": "index",
            "/usr/bin/kubelet": " " * kube.LEAST,
            "/etc/modprobe.d/old.alias": "",
        }
    )
    host.programs.update({name: lambda _host, _argv: answer for name in PROGRAMS})
    return host


def note(host: Host) -> Any:
    """As the runner answers a planner that asks a runtime for its version."""
    todo, past = Todo(), Past()
    while True:
        try:
            support.note(todo, "0.7.0", {"containerd": "/usr/bin/containerd"}, past)
            return todo.plan()
        except Question as question:
            past = past._replace(answers={**past.answers, question.ask: host.answer(question.ask)})


LOOKS: dict[str, tuple[Callable[[Host], Any], Answer]] = {
    "is-enabled": (lambda host: services.enabled(host, UNIT), Answer(1, "disabled\n")),
    "modinfo": (driver_file.on_disk, Answer(0, MODINFO)),
    "kubelet": (lambda host: kube.version(host, "kubelet", "/usr/bin/kubelet"), Answer(0, "Kubernetes v1.34.1\n")),
    "nvidia-ctk": (container_toolkit.version, Answer(0, "NVIDIA Container Toolkit CLI version 1.17.8\n")),
    "a runtime": (note, Answer(0, "containerd github.com/containerd/containerd 1.7.27 abc\n")),
}


def known(look: Callable[[Host], Any], before: Answer, after: Answer) -> bool:
    """Whether a turn that was told the one is taken for known where it would be told the other."""
    watched = Watched(machine(before))
    watched.begin()
    look(watched)
    asked = watched.end()
    assert asked is not None
    again = Watched(machine(after))
    return all(again.digest_of(question) == digest for question, digest in asked.items())


@pytest.mark.parametrize("name", LOOKS)
def test_a_program_that_failed_is_asked_again(name: str) -> None:
    look, said = LOOKS[name]
    assert not known(look, NO_MEMORY, said)
    assert known(look, said, NO_MEMORY)  # what it said of the files goes on being so


def test_a_module_that_no_index_has_follows_from_them_and_one_whose_file_is_gone_does_not() -> None:
    assert known(driver_file.on_disk, NOT_INSTALLED, NO_MEMORY)
    assert not known(driver_file.on_disk, Answer(1, "", GONE), Answer(0, MODINFO))


def test_a_list_of_aliases_that_is_changed_in_place_is_a_difference() -> None:
    host = machine(Answer(0, MODINFO))
    watched = Watched(host)
    watched.begin()
    driver_file.on_disk(watched)
    asked = watched.end()
    assert asked
    host.put("/etc/modprobe.d/old.alias", "alias nvidia other\n")
    assert [question[0] for question, digest in asked.items() if Watched(host).digest_of(question) != digest] == [
        "follows"
    ]


def test_a_database_that_rpm_cannot_read_has_no_packages_to_tell_of() -> None:
    host = FakeHost({"/var/lib/rpm/rpmdb.sqlite": ""})
    host.programs["rpm"] = lambda _host, _argv: Answer(1, "", "error: cannot open Packages database in /var/lib/rpm\n")
    with pytest.raises(StepFailed, match="cannot open Packages database"):
        listed(host, ("rpm", "-qa", "x"))
    host.programs["rpm"] = lambda _host, _argv: Answer(1, "")
    assert listed(host, ("rpm", "-qa", "x")) == ""
