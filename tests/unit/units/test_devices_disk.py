# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass over holds on a real file system, broken off at each call of the kernel: no file is ever there in half.

A runtime may read /etc/cdi, and a workload manager an env file, at any instant.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import root_write, rootfs
from tests.bench.bench_host import OURS, BenchHost
from tests.gpu.fake import GpuHost
from tests.unit.core.jail import in_jail
from tests.unit.hold_host import H100, KUBERNETES, add_kubelet, assign, go, hold_host, uuids

DIED, WRONG, THROUGH = 9, 7, 5  # exit statuses of a pass: broken off, it showed half a file, it has no such call
TIME = re.compile(r"18000\d{5}")
CALLS = ("open", "write", "replace", "unlink", "mkdir")  # those after which a disk may show something else
MOST = 1000  # of them in one pass

Files = dict[str, tuple[str, int]]


class Kernel:
    """`os` for core.rootfs and root_write: a file is written in halves, and `strike` gets each call of CALLS.

    Up to the n-th call every pass is the same, so that what is visible is looked at from there on only.
    """

    def __init__(self, strike: Callable[[str], None], at: int, counted: tuple[str, ...]) -> None:
        self.strike = strike
        self.at = at
        self.counted = counted
        self.count = 0
        self.is_half = False

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*given: Any, **more: Any) -> Any:
            if name == "open" and not given[1] & os.O_CREAT:
                return real(*given, **more)
            self.count += name in self.counted
            if self.count >= self.at:
                look_whole()
                self.strike(name)
            if name == "write":
                self.is_half = not self.is_half
                given = (given[0], given[1][: len(given[1]) // 2] if self.is_half else given[1])
            return real(*given, **more)

        return call


def visible() -> Files:
    """Text and mode of each of our files that anybody would take for one."""
    found = {}
    for top in OURS:
        for folder, _folders, names in os.walk(top):
            for name in names:
                if not name.startswith("."):
                    path = Path(folder, name)
                    found[str(path)] = (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o7777)
    return found


def look_whole() -> None:
    for path, (text, _mode) in visible().items():
        try:
            if path.endswith(".json"):
                assert json.loads(text)
            else:
                assert text.startswith("BCD_ALLOCATION_ID=")
                assert text.endswith("\n")
                assert "\nNVIDIA_VISIBLE_DEVICES=" in text
        except (AssertionError, ValueError):
            Path("/half").write_text(f"{path} is {text!r}", encoding="utf-8")
            os._exit(WRONG)


def restore(files: Files) -> None:
    """Have the disk as it was, without drafts."""
    for top in OURS:
        for folder, _folders, names in os.walk(top):
            for name in names:
                if str(Path(folder, name)) not in files:
                    Path(folder, name).unlink()
    for path, (text, mode) in files.items():
        Path(path).write_text(text, encoding="utf-8")
        Path(path).chmod(mode)


def in_child(call: Callable[[], None]) -> int:
    """The exit status of a process that makes the call, and remembers nothing for the next."""
    pid = os.fork()
    if not pid:
        try:
            call()
        except BaseException as fault:  # noqa: BLE001 - the parent tells it
            Path("/half").write_text(f"{type(fault).__name__}: {fault}", encoding="utf-8")
            os._exit(WRONG)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def told(files: Files) -> dict[str, tuple[str, int]]:
    """The files without times, and without the order in which events were journaled."""
    found = {}
    for path, (text, mode) in files.items():
        shown = json.dumps({**json.loads(text), "sequence": 0}) if "/events/" in path else text
        found[TIME.sub("<time>", path)] = (TIME.sub("<time>", shown), mode)
    return found


def drafts() -> list[str]:
    return [name for top in OURS for _folder, _folders, names in os.walk(top) for name in names if name[:1] == "."]


def killed(_name: str) -> None:
    os._exit(DIED)


def full(name: str) -> None:
    """No byte goes to the disk any more."""
    if name in ("write", "mkdir"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def prepare(host: GpuHost) -> Callable[[], str]:
    """Make three holds, of which one is to be mended; the pass that does everything, which returns its state."""
    gpus = uuids(host)
    add_kubelet(host)
    kept = assign("kept", gpus[0], env=["A=1"])
    go(host, kept, assign("gone", gpus[1]), assign("gonek", gpus[2], binding=KUBERNETES))
    host.remove("/run/bcd/allocations/kept.env")
    host.unix += 60
    new = (assign("new", gpus[1], env=["A=2"]), assign("newk", gpus[3], binding=KUBERNETES))
    return lambda: go(host, kept, *new, assign("lacks", gpus[0]), generation=2).state


def story(strike: Callable[[str], None], counted: tuple[str, ...]) -> int:
    """Every case, in the jail; how many there were. The pass is struck from the n-th of the counted calls on."""
    final = prepare(BenchHost([H100] * 5))
    before = visible()

    def clean() -> None:
        assert final() == "converged"

    assert in_child(clean) == 0, Path("/half").read_text(encoding="utf-8")
    want = told(visible())
    # The vendor's specification, three files of three holds; five were bound, two released, one failed.
    assert len(want) == 1 + 3 * 3 + 5 + 2 + 1
    for at in range(1, MOST):
        restore(before)

        def disturbed(at: int = at) -> None:
            kernel = Kernel(strike, at, counted)
            vars(rootfs)["os"] = vars(root_write)["os"] = kernel
            final()
            if kernel.count < at:
                os._exit(THROUGH)

        status = in_child(disturbed)
        assert status != WRONG, f"call {at}: {Path('/half').read_text(encoding='utf-8')}"
        if status == THROUGH:
            return at
        look_whole()
        assert in_child(clean) == 0, f"call {at}: {Path('/half').read_text(encoding='utf-8')}"
        assert told(visible()) == want, f"call {at}"
        assert drafts() == [], f"call {at}"
    raise AssertionError(f"more than {MOST} calls in one pass")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("strike", "counted", "least"), [(killed, CALLS, 80), (full, ("write",), 30)])
def test_no_file_is_ever_there_in_half(
    tmp_path: Path, strike: Callable[[str], None], counted: tuple[str, ...], least: int
) -> None:
    assert prepare(hold_host(*[H100] * 5))() == "converged"  # what is imported late is not there in the jail
    tree = tmp_path / "root"
    tree.mkdir(mode=0o755)
    assert in_jail(tree, story, strike, counted) > least
