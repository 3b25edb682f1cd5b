# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Strikes at the collection's modules inside the lab's machine: for tests only, and gone with the next revert.

A .pth file lets every Python of the guest load a hook, which wraps the collection's one door to the machine, in modules
and in the program bcd. After a change that the next line of the orders names, the process is killed or stopped.
"""

from __future__ import annotations

import json

from labvm.machine import Machine

FOLDER = "/usr/local/lib/python3.{minor}/dist-packages"
ORDERS = "/run/lab-strikes.json"
LOCK_WAIT = 3.0  # seconds, in place of the two minutes that a pass waits for another

HOOK = (
    f"ORDERS = {ORDERS!r}\nLOCK_WAIT = {LOCK_WAIT!r}\n"
    r"""
import fnmatch, json, os, signal, sys

HOST = (".module_utils.core.host", "bcd.core.host")
LOCK = (".module_utils.core.lock", "bcd.core.lock")

class Loader:
    def __init__(self, real):
        self.real = real

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self.real.exec_module(module)
        if module.__name__.endswith(LOCK):
            module.only_pass.__init__.__defaults__ = (LOCK_WAIT,)
        else:
            wrap(module.Host)

    def get_code(self, name):
        return self.real.get_code(name)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if not name.endswith(HOST + LOCK):
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None:
                spec.loader = Loader(spec.loader)
                return spec

class Finders(list):
    def insert(self, index, finder):
        super().insert(max(index, 1), finder)  # the program's own, where it is carried, comes behind ours

def wrap(host):
    apply = host.apply

    def struck(self, step):
        apply(self, step)
        with open(ORDERS) as source:
            orders = json.load(source)
        if orders and fnmatch.fnmatch(step.path or " ".join(step.argv), orders[0][1]):
            with open(ORDERS, "w") as out:
                json.dump(orders[1:], out)
            os.kill(os.getpid(), getattr(signal, orders[0][0]))

    host.apply = struck

if os.path.exists(ORDERS):
    sys.meta_path = Finders([Finder(), *sys.meta_path])
"""
)


def order(machine: Machine, *strikes: tuple[str, str]) -> None:
    """Ask for strikes, one after the other: the signal's name, and the path or command line after which it comes."""
    minor = machine.run(("python3", "-c", "import sys; print(sys.version_info[1])")).out.strip()
    folder = FOLDER.format(minor=minor)
    machine.ssh(f"mkdir -p {folder} && cat >{folder}/lab_strikes.py", stdin=HOOK)
    machine.ssh(f"echo 'import lab_strikes' >{folder}/lab_strikes.pth")
    machine.ssh(f"cat >{ORDERS}", stdin=json.dumps(strikes))


def left(machine: Machine) -> list[list[str]]:
    """The strikes that have not come yet."""
    found: list[list[str]] = json.loads(machine.read(ORDERS))
    return found
