# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What enrolling lays down on a host, by the names that more than one part knows."""

from __future__ import annotations

CONFIG = "/etc/bcd/config.toml"  # root's own: who may sign, what may be joined, whether the host is ours
SCRIPT = "/usr/local/sbin/bcd"  # the program
MADE = "# Made by bcd install: local edits are replaced."  # its second line; another program of that name is not ours
PROGRAMS = "/usr/lib/bcd"  # the folders of its code, one a version
RECORD = "program.sha256"  # in such a folder: of the zip that it was unpacked from
REQUEST = "request"  # the word by which Ansible has the program make a pass (see front/for_controller.py)
ANOTHER = 69  # the status by which the program says that it is not the code that was asked for
SOCKET = "/run/bcd/helper.sock"  # of bcd helper, which is root for ordinary accounts
GROUP = "bcd"  # who may use it, and read root's configuration
HELPER_SOCKET, HELPER_SERVICE = "bcd-helper.socket", "bcd-helper.service"
AGENT_TIMER, AGENT_SERVICE = "bcd-agent.timer", "bcd-agent.service"
ENROLL = "the playbook enroll"
