# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words that enter a simulated host whose namespace is held open: each of Ansible's workers imports this."""

from __future__ import annotations

# Into the groups first, so that what comes is the host's time and memory. Python closes descriptors one by one where it
# sees none in /proc.
ENTRY = 'for door in $1; do echo $$ >"$door"; done; ulimit -n 1024; exec nsenter -t "$2" -m -u -r -w -- /bin/sh -c "$3"'
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "SHELL": "/bin/sh",
    "LANG": "C.UTF-8",
}


def words(holder: int, doors: str, command: str) -> list[str]:
    """What runs a shell's command in the namespace of a holder; `doors` are the files that lead into its groups."""
    return ["/bin/sh", "-c", ENTRY, "room", doors, str(holder), command]
