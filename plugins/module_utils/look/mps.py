# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPS daemon: our service, what the daemon answers, and daemons that are not ours."""

from __future__ import annotations

from ..core.errors import SEEN_AS_ROOT, NotKnownYet, StepFailed, Unreadable
from ..core.host import Host
from ..core.unknown import is_known, later
from ..plan.gpu import MODES, App, is_attendant
from ..plan.gpu_sharing_daemon import ASK, CONTROL, questions
from ..plan.gpu_sharing_seen import QUERIED, Card, Rival, Seen
from ..plan.gpu_sharing_service import SERVICE, Limits, Programs
from . import smi
from .clients import device_holders, gpu_nodes
from .each_gpu import Row, each_gpu

TIMEOUT = 10.0  # seconds for an answer, which takes a daemon that is well some milliseconds
DEFAULT_PIPE = "/tmp/nvidia-mps"  # noqa: S108 - the daemon's own default, which is only told
UVM = "/dev/nvidia-uvm"  # what every CUDA process opens
COMM = CONTROL[:15]  # as much of a program's name as the kernel keeps


def daemon(host: Host, count: int) -> tuple[Limits | None, str]:
    """What the daemon in our directory answers of `count` GPUs; or None, and why it does not."""
    said = []
    for question in questions(count):
        try:
            answer = host.ask(ASK, TIMEOUT, f"{question}\n")
        except StepFailed as fault:
            return None, fault.message
        if answer.rc:
            words = " ".join(f"{answer.out} {answer.err}".split())
            return None, words or f"{CONTROL} exited with {answer.rc}"
        lines = answer.out.split("\n")
        said.append(next((line.strip() for line in reversed(lines) if line.strip()), ""))
    return Limits(said[0], tuple(said[1:])), ""


def programs(host: Host) -> Programs:
    """Where the programs lie that the service runs."""
    return Programs(host.which("nvidia-smi"), host.which(CONTROL))


def gpus(host: Host) -> tuple[Seen, ...]:
    """Every GPU of the host; the card of one that does not answer raises why when it is used."""
    return tuple(Seen(gpu, later(_card, row)) for gpu, row in each_gpu(host, QUERIED))


def _card(row: Row) -> Card:
    return Card(row["memory.total"], row["persistence_mode"], row["compute_mode"], row["mig.mode.current"])


def apps(host: Host, seen: tuple[Seen, ...], runs: bool) -> tuple[App, ...]:
    """The processes that compute. `runs`: the service does, and its clients are looked for among all processes too."""
    listed = _listed(host, seen)
    return (*listed, *_clients(host, seen, {app.pid for app in listed})) if runs else listed


def _clients(host: Host, seen: tuple[Seen, ...], known: set[int]) -> list[App]:
    """Processes that have unified memory open, by GPU: of a GPU under MPS nvidia-smi may list the server alone.

    One that has no GPU's node open may be on any of them.
    """
    holders = device_holders(host)
    nodes = gpu_nodes(host, tuple(gpu for gpu, _card in seen))
    found = []
    for holder in holders.get(UVM, ()):
        if holder.pid in known or is_attendant(holder.program) or holder.program.startswith(COMM):
            continue
        mine = [uuid for uuid, paths in nodes.items() if any(holder in holders.get(path, ()) for path in paths)]
        found += [App(uuid, holder.pid, holder.program) for uuid in mine or nodes]
    return found


def _listed(host: Host, seen: tuple[Seen, ...]) -> tuple[App, ...]:
    """As nvidia-smi lists them; those of a dead GPU, which keeps it from telling of all at once, are none."""
    try:
        return smi.compute_apps(host)
    except StepFailed:
        alive = [gpu for gpu, card in seen if is_known(card)]
        if len(alive) in (0, len(seen)):
            raise
        return tuple(app for gpu in alive for app in smi.compute_apps(host, gpu.uuid))


def mig_modes(host: Host, seen: tuple[Seen, ...]) -> dict[str, str]:
    """MIG modes by UUID as mig-layout leaves them: over a predicted host, known only after its steps."""
    if not (host.predicted and any(is_known(card) and card.mig in MODES for _gpu, card in seen)):
        return {}
    from ..plan.mig_state import QUERIED as ASKED

    return {row["uuid"]: row["mig.mode.current"] for row in smi.query(host, ASKED)}


def rivals(host: Host) -> tuple[Rival, ...]:
    """The MPS daemons that our service does not run."""
    found = []
    for pid in host.names("/proc"):
        if not pid.isdecimal() or (host.read(f"/proc/{pid}/comm") or "").strip() != COMM:
            continue
        program = (host.read(f"/proc/{pid}/cmdline") or "").partition("\0")[0].rpartition("/")[2]
        unit = _unit(host.read(f"/proc/{pid}/cgroup") or "")
        if program == CONTROL and unit != SERVICE:
            found.append(Rival(int(pid), unit, _pipe(host, pid)))
    return tuple(found)


def _unit(cgroup: str) -> str:
    """The service of a process, from "0::/system.slice/nvidia-mps.service"; "" where none runs it."""
    names = [name for line in cgroup.splitlines() for name in line.split("/") if name.endswith(".service")]
    return names[-1] if names else ""


def _pipe(host: Host, pid: str) -> str:
    """The directory in which a daemon listens, from its environment, which root alone may read."""
    try:
        text = host.read(f"/proc/{pid}/environ") or ""
    except (Unreadable, NotKnownYet):
        return f"unknown, {SEEN_AS_ROOT}"
    pairs = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
    return pairs.get("CUDA_MPS_PIPE_DIRECTORY", DEFAULT_PIPE)
