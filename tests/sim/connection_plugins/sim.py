# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connects to a simulated host: every command runs inside its tree, in a mount namespace.

Where the kernel refuses to make one, modules of this collection run against the tree by way of the hook (`hook/`), and
everything else is refused: nothing that a playbook asks for may reach the machine that the tests run on.
"""

from __future__ import annotations

DOCUMENTATION = """
name: sim
short_description: run tasks inside a simulated host
description:
  - Enters a directory tree that plays a whole machine; see tests/sim/README.md.
author: bettercompute
extends_documentation_fragment:
  - connection_pipelining
options:
  tree:
    description: The directory that holds the simulated host.
    type: path
    required: true
    vars:
      - name: sim_tree
  user:
    description: The account that connects, root or any other name; another than root needs become to be root.
    default: root
    vars:
      - name: sim_user
  account:
    description:
      - An account of the host's /etc/passwd that connects in place of O(user), and is held to its own rights by this
        machine's kernel. Only where ansible itself runs as root.
    vars:
      - name: sim_account
  interpreter:
    description: The Python that modules run with; it is bound into the tree where it lies outside /usr.
    vars:
      - name: ansible_python_interpreter
  become_success_timeout:
    description: Seconds to wait for become.
    type: int
    default: 10
  become_strip_preamble:
    description: Strip what become prints.
    type: bool
    default: true
"""

import os
import re
import shlex
import sys
import time
import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.connection.local import Connection as Local
from ansible.utils.display import Display

SIM = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(SIM)))

from tests.sim.paths import inside

display = Display()
ANOTHER_UID = "1000"
HOOKED = "/.sim/venv/bin/python"


class Connection(Local):
    """A simulated host."""

    transport = "sim"
    has_pipelining = True

    @property
    def default_user(self) -> str:
        """Who is let in: what Ansible compares become_user with."""
        return str(self.get_option("account") or self.get_option("user"))

    @default_user.setter
    def default_user(self, name: str) -> None:
        """What the parent finds out about the account that runs ansible means nothing inside."""

    def _connect(self) -> t.Any:
        super()._connect()  # takes remote_user from default_user
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a command inside; a host that is down, or that never came back from a reboot, does not answer."""
        self._answers()
        rc, out, err = super().exec_command(self._inside(cmd), in_data=in_data, sudoable=sudoable)
        if rc == 125 and err.startswith(b"sim: no namespace"):
            rc, out, err = super().exec_command(self._mapped(cmd, in_data), in_data=in_data, sudoable=sudoable)
        if rc == 125 and err.startswith(b"sim: "):
            raise AnsibleError(err.decode(errors="replace").strip())
        return rc, out, err

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file in."""
        self._answers()
        super().put_file(in_path, inside(self._tree(), out_path))

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file out."""
        self._answers()
        Local.put_file(self, inside(self._tree(), in_path), out_path)

    def _tree(self) -> str:
        return os.path.realpath(str(self.get_option("tree")))

    def _python(self) -> str:
        named = self.get_option("interpreter")
        return str(named) if named and named.startswith("/") else sys.executable

    def _answers(self) -> None:
        try:
            with open(os.path.join(self._tree(), "var/lib/sim/down"), encoding="ascii") as mark:
                until = float(mark.read())
        except FileNotFoundError:
            return
        if time.time() < until:
            raise AnsibleConnectionFailure(f"{self._tree()}: the simulated host is down")

    def _inside(self, cmd: str) -> str:
        words = [sys.executable, "-IS", os.path.join(SIM, "enter.py"), self._tree(), "--python", self._python()]
        if self.default_user != "root" and not (self.become and "BECOME-SUCCESS" in cmd):
            account = self.get_option("account")
            words += ["--account", str(account)] if account else ["--uid", ANOTHER_UID]
        # A Python that heeds no variable has the hook by this one, which is the same.
        return shlex.join([*words, "--", "/bin/sh", "-c", cmd.replace(f"{self._python()} -I ", f"{HOOKED} -I ")])

    def _mapped(self, cmd: str, in_data: bytes | None) -> str:
        """No namespace: only pipelined modules, with the hook that maps the host into the tree."""
        cmd = cmd.replace(f"{self._python()} -I ", f"{self._python()} ")  # else it would heed no hook
        words = shlex.split(cmd)
        script = words[-1] if words[:2] == ["/bin/sh", "-c"] else cmd
        if "/usr/local/sbin/bcd request" in script:
            return "exit 127"  # no module installs it, so it is on none of these hosts
        module = in_data is not None and self._python() in script
        if not module and not re.match(r"echo ~\w* && sleep 0$", script.strip()):
            raise AnsibleError(f"no namespace can be made here, and outside of one this is refused: {script[:200]}")
        display.v(f"{self._tree()}: mapped, not entered: no namespace can be made here")
        place = {
            "HOME": os.path.join(self._tree(), "root"),
            "SIM_ROOT": self._tree(),
            "PATH": os.path.join(SIM, "mapped") + ":/usr/bin:/bin",
            "PYTHONPATH": os.path.join(SIM, "hook"),
        }
        return shlex.join(["env", *(f"{name}={value}" for name, value in place.items()), "/bin/sh", "-c", cmd])
