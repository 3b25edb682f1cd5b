# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a mount namespace open for each simulated host: `holders.py PYTHON DOOR TREE...`, as root, with -IS.

tests/sim/enter.py makes a namespace for each program that enters, with a Python of its own. Here one process a tree
stays inside, so that a program that is measured enters with nsenter(1) and costs next to nothing on the way. Prints
"TREE PID" for each, then "ready", and ends, with all of them, when its standard input does. DOOR is the file by which
a process inside joins the group of tools ("" for none); it is /.sim/tools there.
"""

from __future__ import annotations

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from tests.sim import enter


def hold(tree: str, python: str, door: str) -> None:
    """Enter the tree, and leave a way to the group of tools in it."""
    simulator = enter._simulator

    def with_tools(root: str, interpreter: str) -> None:
        """While this machine's files are in sight still."""
        simulator(root, interpreter)
        with open(f"{root}/.sim/tools", "w", encoding="ascii"):
            pass
        if door:
            enter._mount(door, f"{root}/.sim/tools", flags=enter.BIND)

    enter._simulator = with_tools  # type: ignore[assignment]
    enter.enter(tree, python)


def main(argv: list[str]) -> int:
    python, door, trees = argv[0], argv[1], argv[2:]
    held = []
    for tree in trees:
        reads, writes = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                hold(tree, python, door)
                os.write(writes, b".")
            except (enter.CannotEnter, OSError) as fault:
                sys.stderr.write(f"cannot hold {tree}: {fault}\n")
                os._exit(125)
            os.close(writes)
            while True:
                signal.pause()
        os.close(writes)
        held.append(pid)
        if not os.read(reads, 1):
            break
        os.close(reads)
        print(tree, pid)
    if len(held) == len(trees):
        print("ready", flush=True)
        sys.stdin.read()
    for pid in held:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        os.waitpid(pid, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
