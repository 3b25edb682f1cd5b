# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPS daemon as two driver branches' own program answers, and the simulated one beside it."""

from __future__ import annotations

import re

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import mps
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import gpu_sharing_daemon as daemon
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_sharing_service import Limits, Share
from tests.captures import Command, session
from tests.gpu import tools
from tests.gpu.model import Machine
from tests.unit.fake_host import FakeHost

SESSIONS = ("mps_control_535", "mps_control_550")
ECHO = re.compile(r"echo '(.*)' \| nvidia-cuda-mps-control")


def told(command: Command) -> str:
    """What the daemon was told; "" where it was started."""
    found = ECHO.fullmatch(command.line)
    return found.group(1) if found else ""


def answers_of(name: str, question: str) -> list[Answer]:
    return [command.answer for command in session(name) if told(command) == question]


def host_of(*answers: Answer) -> FakeHost:
    """A host whose daemon gives these answers, one after the other."""
    left = list(answers)
    return FakeHost({}, {"env": lambda _host, _argv: left.pop(0)})


@pytest.mark.parametrize("name", SESSIONS)
def test_no_daemon_is_known_by_what_it_says_on_either_stream(name: str) -> None:
    stopped = next(answer for answer in answers_of(name, "quit") if answer.rc)
    assert mps.daemon(host_of(stopped), 2) == (None, "Cannot find MPS control daemon process")


@pytest.mark.parametrize(
    ("name", "percentages"), [("mps_control_535", (100.0, 12.0)), ("mps_control_550", (100.0, 25.0))]
)
def test_the_share_in_force_is_read(name: str, percentages: tuple[float, float]) -> None:
    answers = [answer for answer in answers_of(name, "get_default_active_thread_percentage") if not answer.rc]
    read = []
    for answer in answers:
        limits, said = mps.daemon(host_of(answer), 0)
        assert limits is not None
        assert (limits.memory, said) == ((), "")
        read.append(float(limits.percentage))
    assert tuple(read) == percentages


def test_the_memory_in_force_is_read_by_the_number_of_each_gpu() -> None:
    share = answers_of("mps_control_550", "get_default_active_thread_percentage")[1]
    memory = answers_of("mps_control_550", "get_default_device_pinned_mem_limit 0")[0]
    none = answers_of("mps_control_535", "get_default_device_pinned_mem_limit 0")[0]
    assert mps.daemon(host_of(share, memory, none), 2) == (Limits("25.0", ("2G", "")), "")
    host = host_of(share, memory)
    mps.daemon(host, 1)
    assert host.asked == [("env", "CUDA_MPS_PIPE_DIRECTORY=/run/nvidia-mps", "nvidia-cuda-mps-control")] * 2
    assert host.stdin == "get_default_device_pinned_mem_limit 0\n"


def test_a_command_that_it_does_not_know_exits_0_and_is_no_limit() -> None:
    share = answers_of("mps_control_535", "get_default_active_thread_percentage")[1]
    bogus = answers_of("mps_control_535", "bogus")[0]
    assert bogus.rc == 0
    limits, _said = mps.daemon(host_of(share, bogus), 1)
    assert limits is not None
    assert limits.memory[0].startswith(daemon.UNKNOWN)
    assert not daemon.is_memory(limits.memory[0], 2048)


def test_sizes_are_compared_as_the_daemon_prints_them() -> None:
    """Of each "set" and the "get" behind it, as recorded: whole GiB from 1024 MiB on."""
    commands = session("mps_control_535")
    pairs = []
    for first, second in zip(commands, commands[1:]):
        found = re.fullmatch(r"set_default_device_pinned_mem_limit (\d) (\d+)M", told(first))
        if found and told(second) == f"get_default_device_pinned_mem_limit {found.group(1)}":
            pairs.append((int(found.group(2)), second.text.strip()))
    assert pairs == [(5758, "5G"), (320, "320M"), (1023, "1023M"), (1024, "1G"), (2047, "1G")]
    for memory, text in pairs:
        assert daemon.is_memory(text, memory)
        assert not daemon.is_memory(text, memory * 2)
    assert daemon.is_memory("5758M", 5758)
    assert not daemon.is_memory("", 5758)
    assert not daemon.is_memory("4G", 5758)


def test_a_uuid_is_no_number_of_a_gpu_and_takes_a_limit_away() -> None:
    """Why limits go by number: recorded, exit status 0 and device 0 without the limit that it had."""
    lines = [told(command) for command in session("mps_control_535")]
    at = next(number for number, line in enumerate(lines) if " GPU-" in line)
    after = session("mps_control_535")[at + 1 : at + 3]
    assert [(told(one), one.text.strip(), one.rc) for one in after] == [
        ("get_default_device_pinned_mem_limit 1", "2G", 0),
        ("get_default_device_pinned_mem_limit 0", "", 0),
    ]
    shares = (Share("GPU-00000000-0000-4000-8000-000000000000", 5758), Share("GPU-1", 320))
    assert daemon.commands(shares, 12)[1:] == (
        "set_default_device_pinned_mem_limit 0 5758M",
        "set_default_device_pinned_mem_limit 1 320M",
    )


def test_a_daemon_that_hangs_is_one_that_does_not_answer() -> None:
    def hang(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        raise StepFailed(f"{argv[-1]} did not end within 10 seconds: see what it waits for")

    limits, said = mps.daemon(FakeHost({}, {"env": hang}), 1)
    assert limits is None
    assert said.startswith("nvidia-cuda-mps-control did not end within 10 seconds")


@pytest.mark.parametrize("name", SESSIONS)
def test_the_simulated_daemon_says_what_the_recorded_one_says(name: str) -> None:
    machine = Machine.from_products(["H100-80GB", "H100-80GB"])
    for command in session(name):
        if told(command) == "quit -t 5":
            break  # there a server had failed, for want of a GPU
        words = () if told(command) else command.argv[1:]
        rc, out, err = tools.mps(machine, words, told(command), {"CUDA_MPS_PIPE_DIRECTORY": "/run/nvidia-mps"})
        assert (rc, out + err) == (command.rc, command.text + command.err), command.line
