# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit that stands in for k8s-join in tests of how a role comes to a secret: it opens a gate with a token.

Tests copy this file to where that unit's is, in a copy of the collection. The gate is a program of the host that says
its token when it fails, as kubeadm does.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Field, Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import SLOT, UNNAMED
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, run

DOOR = "/etc/gate/open"
READY = "/etc/gate/ready"  # before it, the gate has nothing to do yet
FOUND = "/etc/gate/found"  # files of the host that had the token in them meanwhile
NAMES = "/etc/gate/names"  # what the gate was called by
RIGHT = hashlib.sha256(b"abcdef.0123456789abcdef").hexdigest()
GATE = f"""
read -r token
if [ "$(printf %s "$token" | sha256sum | cut -d ' ' -f 1)" != {RIGHT} ]; then
    echo "token: Invalid value: \\"$token\\"" >&2
    exit 1
fi
mkdir -p /etc/gate
echo "$*" > {NAMES}
printf '%s\\n' "$token" | grep -rlF -f - /etc /root /tmp /var > {FOUND} 2> /dev/null
: > {DOOR}
"""


def _plan(settings: Any, now: tuple[bool, bool], past: Past) -> Plan:
    opened, ready = now
    todo = Todo()
    if not opened and not ready:
        todo.wait("NotReady", f"k8s-join: {READY} is not there")
    elif not opened:
        reference = settings.get("joinTokenRef") or UNNAMED
        names = (past.given.node_id, past.given.site)
        effects = (Effect("file", DOOR, ""),)
        todo.add(
            run(("sh", "-c", GATE, "gate", *names), "open the gate", stdin=SLOT, secret=reference, effects=effects)
        )
    return todo.plan()


def _look(host: Host, _settings: Any, _past: Past) -> tuple[bool, bool]:
    return host.exists(DOOR), host.exists(READY)


FIELDS = (Field("apiServer", "api_server", (str,)), Field("joinTokenRef", "join_token_ref", (str,)))
UNIT = Unit("k8s-join", FIELDS, lambda given: given, _look, _plan, lambda _now, _past: Plan())
