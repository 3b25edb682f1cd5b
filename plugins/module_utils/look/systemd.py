# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd knows of services and of our unit files, read from files where a file tells it."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.systemd import (
    FOLDER,
    FOLDERS,
    HOLDS,
    RUNNING,
    RUNS,
    Service,
    Systemd,
    UnitFile,
    asks_active,
    asks_enabled,
    asks_reload,
)

# Whatever else is-active prints is no answer; the last is an older systemd's word for what is not there.
STATES = (*RUNS, "inactive", "failed", "activating", "deactivating", "maintenance", "unknown")


def systemd(host: Host) -> Systemd:
    """Whether systemd is PID 1 here, and whether holds exist."""
    names = host.names(HOLDS)
    return Systemd(host.exists(RUNNING), any(name.startswith("bcd-") and name.endswith(".json") for name in names))


def unit_file(host: Host, name: str, wanted_by: str, ask: bool = False) -> UnitFile:
    """One unit file of ours; `ask` also asks the manager whether it is behind, which costs a program."""
    bare = UnitFile(name, wanted_by)
    return bare._replace(
        file=host.file(f"{FOLDER}/{name}"),
        enabled=host.file(bare.link) is not None,
        behind=ask and host.ask(asks_reload(name)).out.strip() == "yes",
    )


def has_unit(host: Host, name: str) -> bool:
    """Whether there is a unit file of that name, of a package, an administrator's or ours."""
    return any(host.exists(f"{folder}/{name}") for folder in FOLDERS)


def state(host: Host, name: str) -> str:
    """What systemd calls the state of a unit: active, inactive, failed, activating ...

    Raises StepFailed where it does not say: a unit that nobody tells of is not one that does not run.
    """
    question = asks_active(name)
    answer = host.ask(question)
    said = answer.out.strip()
    if said not in STATES:
        words = " ".join(f"{answer.out} {answer.err}".split()) or "nothing"
        raise StepFailed(f"{' '.join(question)} exited with {answer.rc} and said {words}: see that systemd answers")
    return said


def is_active(host: Host, name: str) -> bool:
    """Whether a unit runs; none does where systemd is not PID 1."""
    return host.exists(RUNNING) and state(host, name) in RUNS


def service(host: Host, name: str) -> Service:
    """A service, by two programs where it is installed and none where it is not."""
    if not has_unit(host, name):
        return Service()
    active = state(host, name) if host.exists(RUNNING) else ""
    return Service("loaded", active=active, enabled=host.ask(asks_enabled(name)).out.strip())
