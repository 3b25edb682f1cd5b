# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that virtual machines have, or are to have, through VFIO: no hold gets them.

What the section gives to an instance is the instance's. A GPU that it no longer gives stays with the machine that was
started with it until that is started again, so root keeps a record of what each running machine was given: a GPU in a
machine is on vfio-pci, where nvidia-smi does not show whose UUID it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.plan import Todo
from ..core.state import STATE, parse, render
from ..core.step import remove, write
from .assignment import Section
from .devices_seen import Domain, Now, Passed
from .pci import normal_pci

RECORD = f"{STATE}/passthrough.json"
LANE = "VFIO passthrough"  # a space: no allocation is called so
ON_VFIO = "(its driver is vfio-pci)"  # instead of an instance that nobody knows


def passed_on(section: Section, now: Now) -> Mapping[str, str]:
    """The instance that each GPU is passed through to, by the GPU's UUID.

    What is in a running machine comes before what is to be: that is whose it is.
    """
    found = dict(section.passthrough)
    cards = {normal_pci(card.pci): card.uuid for card in now.cards if card.pci}
    found.update({cards[normal_pci(address)]: ON_VFIO for address in now.vfio if normal_pci(address) in cards})
    found.update({passed.gpu: passed.instance for passed in kept(section, now) if passed.started})
    for domain in now.domains:
        name = _instance(domain, section)
        found.update({cards[normal_pci(at)]: name for at in domain.pci if normal_pci(at) in cards})
    return found


def keep(todo: Todo, section: Section, now: Now) -> None:
    """Plan root's record of what running machines were given, in a lane of its own; nothing where it is right."""
    with todo.lane(LANE):
        wanted = kept(section, now)
        if wanted == tuple(sorted(now.passed)):
            return
        if wanted:
            gpus = {passed.gpu: {"instance": passed.instance, "started": passed.started} for passed in wanted}
            action = "record which GPUs virtual machines have: " + ", ".join(passed.gpu for passed in wanted)
            todo.add(write(RECORD, render({"gpus": gpus}), action, mode=0o600))
        else:
            todo.add(remove(RECORD, "forget which GPUs virtual machines had: they were started again without them"))


def kept(section: Section, now: Now) -> tuple[Passed, ...]:
    """What the record is to say, by GPU.

    A GPU stays with the start of a machine that it was recorded with. One that was recorded before the machine ran at
    all went into the start that followed.
    """
    running = {name.lower(): domain.started for domain in now.domains for name in domain.names}
    found = {gpu: Passed(gpu, name, running.get(name.lower(), 0)) for gpu, name in section.passthrough.items()}
    for passed in now.passed:
        started = running.get(passed.instance.lower(), 0)
        if started and passed.started in (0, started):
            found[passed.gpu] = passed._replace(started=started)
    return tuple(found[gpu] for gpu in sorted(found))


def parse_record(path: str, text: str) -> tuple[Passed, ...]:
    """The record in the text of its file, by GPU; raises StepFailed for one that is damaged."""
    lost = "GPUs of running virtual machines that are no longer given to them then count as free"
    gpus = parse(path, text, _is_whole, lost)["gpus"]
    return tuple(Passed(gpu, gpus[gpu]["instance"], gpus[gpu]["started"]) for gpu in sorted(gpus))


def _is_whole(record: dict[str, Any]) -> bool:
    gpus = record.get("gpus")
    return isinstance(gpus, dict) and all(
        isinstance(entry, dict) and isinstance(entry.get("instance"), str) and _is_count(entry.get("started"))
        for entry in gpus.values()
    )


def _is_count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _instance(domain: Domain, section: Section) -> str:
    """What the section calls a machine, or else the machine's own name."""
    known = {instance.lower(): instance for instance in section.passthrough.values()}
    known.update({instance.id.lower(): instance.id for instance in section.instances})
    return next((known[name.lower()] for name in domain.names if name.lower() in known), domain.names[0])
