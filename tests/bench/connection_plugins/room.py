# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connects to a simulated host whose namespace is held open (tests/bench/holders.py), at next to no cost of its own."""

from __future__ import annotations

DOCUMENTATION = """
name: room
short_description: run tasks inside a simulated host that is measured
description:
  - Moves each command into the groups of the host's processes, then into its namespace; see tests/bench.
author: bettercompute
extends_documentation_fragment:
  - connection_pipelining
options:
  tree:
    description: The directory that holds the simulated host.
    type: path
    required: true
    vars:
      - name: room_tree
  holder:
    description: The number of the process that stays inside.
    type: int
    required: true
    vars:
      - name: room_holder
  doors:
    description: The files by which a process joins the groups of the host's, with spaces between them.
    default: /dev/null
    vars:
      - name: room_doors
  become_success_timeout:
    description: Not used.
    type: int
    default: 10
  become_strip_preamble:
    description: Not used.
    type: bool
    default: true
"""

import os
import subprocess
import sys
import typing as t

from ansible.plugins.connection.local import Connection as Local

BENCH = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(BENCH)))

from tests.bench.entry import ENVIRONMENT, words


class Connection(Local):
    """A simulated host to be measured."""

    transport = "room"
    has_pipelining = True
    default_user = "root"

    def _connect(self) -> t.Any:
        self._connected = True
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a command inside."""
        command = words(int(self.get_option("holder")), str(self.get_option("doors")), cmd)
        feed = subprocess.DEVNULL if in_data is None else subprocess.PIPE
        with subprocess.Popen(
            command, stdin=feed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd="/"
        ) as child:
            out, err = child.communicate(in_data)
        return child.returncode, out, err

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file in."""
        from tests.sim.paths import inside

        super().put_file(in_path, inside(str(self.get_option("tree")), out_path))

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file out."""
        from tests.sim.paths import inside

        Local.put_file(self, inside(str(self.get_option("tree")), in_path), out_path)
