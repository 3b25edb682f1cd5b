# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd knows of services, read from files where a file tells it.

What a step has declared of a fact comes first (check mode); else the manager is asked as look.service_state has it.
"""

from __future__ import annotations

from ..core.host import Host
from ..plan.service_seen import Service
from ..plan.systemd_asks import RUNNING, RUNS, asks_active, asks_enabled
from . import service_state
from .installed_units import has_unit


def state(host: Host, name: str) -> str:
    """What systemd calls the state of a unit: active, inactive, failed, activating ...

    Raises StepFailed where it does not say: a unit that nobody tells of is not one that does not run.
    """
    question = asks_active(name)
    if host.foretells(question):
        return host.ask(question).out.strip()
    return str(host.sight(service_state.active_state, name))


def is_active(host: Host, name: str) -> bool:
    """Whether a unit runs; none does where systemd is not PID 1."""
    return host.exists(RUNNING) and state(host, name) in RUNS


def enabled(host: Host, name: str) -> str:
    """What is-enabled prints of a unit that is installed: enabled, disabled, static, masked ..."""
    question = asks_enabled(name)
    if host.foretells(question):
        return host.ask(question).out.strip()
    from . import unit_enabled  # a unit of ours is enabled where its link is, which `unit_file` sees

    if host.sight(unit_enabled.is_plainly_enabled, name):
        return "enabled"
    from . import unit_places

    answer = host.follows(question, tuple(host.sight(unit_places.deciding, name)))
    if not answer.out.strip() and answer.rc != 127:  # that systemd did not answer follows from no file
        answer = host.ask(question)
    return answer.out.strip()


def service(host: Host, name: str) -> Service:
    """A service: nobody is asked of one that is not installed."""
    if not has_unit(host, name):
        return Service()
    active = state(host, name) if host.exists(RUNNING) else ""
    return Service("loaded", active=active, enabled=enabled(host, name))
