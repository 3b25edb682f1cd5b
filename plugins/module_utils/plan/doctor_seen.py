# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor sees of a host, as values: one snapshot for plan.doctor.

A part may be a value that raises why it is not there when it is used (core.unknown): what one part hides from this
account, or cannot tell, costs the checks that need it and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .kube_seen import Joined
from .service_seen import Service

OK, WARNING, FAILURE = "ok", "warning", "failure"


class Finding(NamedTuple):
    """What a check found: `level` is ok, warning or failure; `message` the thing, its value and the next move."""

    check: str
    level: str
    message: str


class Told(NamedTuple):
    """What a check says; the table of checks has its name."""

    level: str
    message: str


class Config(NamedTuple):
    """Root's config.toml by table, or in `fault` why it is not taken; `there`: the file is there at all."""

    there: bool = False
    tables: Mapping[str, Mapping[str, Any]] = {}
    fault: str = ""


RECORD, FIRST = "record", "first"  # what binds a host to its node: root's join record, or the first spec it accepted


class Trust(NamedTuple):
    """What root pins, and what follows from it. `fault`: why root's pins or records cannot be made out.

    `demand` is what demands a signed spec, as the beginning of a sentence, "" where nothing does. `node_id` with its
    `binding` names the node that specs must be for; `generation` is that of the last accepted spec, -1 before the
    first, and `bundle` the version of the newest accepted trust bundle. `library`: cryptography is there to verify by.
    """

    roots: int = 0
    join_key: bool = False
    demand: str = ""
    node_id: str = ""
    binding: str = ""
    generation: int = -1
    bundle: int = -1
    library: bool = True
    fault: str = ""

    @property
    def pinned(self) -> bool:
        """Whether root pins a signer at all."""
        return bool(self.roots or self.join_key)


class Helper(NamedTuple):
    """bcd helper: its units, whether its socket is there, the group that may use it (None: it is missing) and who
    is in it."""

    installed: bool = False
    socket: Service = Service()
    service: Service = Service()
    listens: bool = False
    group: int | None = None
    members: tuple[str, ...] = ()
    systemd: bool = True


class Agent(NamedTuple):
    """bcd agent: its units, how many seconds ago its last pass of this boot ended (None: there was none) and what that
    could not bring about; `up`: seconds since the boot."""

    installed: bool = False
    timer: Service = Service()
    service: Service = Service()
    age: int | None = None
    up: int = 0
    says: str = ""


class Program(NamedTuple):
    """The program `bcd`: the version that is installed ("" where none is), and that of the code that looks."""

    installed: str = ""
    own: str = ""


class Cluster(NamedTuple):
    """Kubernetes: whose member this machine is, whether by a join of ours, which swap is on and whether it may be."""

    joined: Joined | None = None
    ours: bool = False
    swap: tuple[str, ...] = ()
    swap_allowed: bool = False


class Iommu(NamedTuple):
    """Whether an IOMMU is in use, whether the section asks for one, and whether vfio-pci is there."""

    enabled: bool = False
    asked: bool = False
    vfio: bool = False


class Gpus(NamedTuple):
    """NVIDIA's GPUs: their number on the PCI bus, the loaded driver ("" without one), what nvidia-smi cannot tell.

    `only_signed` is why the kernel takes no unsigned module, "" where it takes any; `module` the path of the driver's
    module file for the running kernel, and `signer` who signed it.
    """

    number: int = 0
    driver: str = ""
    faults: tuple[str, ...] = ()
    only_signed: str = ""
    module: str = ""
    signer: str = ""


class Specs(NamedTuple):
    """CDI: whether NVIDIA's toolkit is there to describe GPUs, its specifications by path with what is wrong in each,
    and files that are none at all."""

    toolkit: bool = False
    sound: tuple[str, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()
    gone: tuple[tuple[str, tuple[str, ...]], ...] = ()
    broken: tuple[tuple[str, str], ...] = ()


class Holds(NamedTuple):
    """Holds: those whose files cannot be made out, those without their record or specification, those whose files are
    not as root keeps them; releases that wait, each with its time (Unix); events that wait to be acknowledged."""

    faults: tuple[str, ...] = ()
    bare: tuple[tuple[str, str], ...] = ()  # allocation, and what it lacks
    askew: tuple[str, ...] = ()
    releases: tuple[tuple[str, int], ...] = ()
    unread: str = ""
    events: int = 0


class Records(NamedTuple):
    """Root's records: a sentence on each that is damaged, the follow-ups that are owed, and why units wait for a
    reboot, with how many seconds that has been so (None: it is not told)."""

    faults: tuple[str, ...] = ()
    owed: Mapping[str, tuple[str, ...]] = {}
    reboot: Mapping[str, str] = {}
    reboot_age: int | None = None


class Files(NamedTuple):
    """Directories below which root writes and that another account could steer, and secrets that others can read."""

    open: tuple[str, ...] = ()
    readable: tuple[tuple[str, int], ...] = ()  # path and mode


class Disk(NamedTuple):
    """A file system by a path on it, in bytes."""

    path: str
    free: int
    size: int


class Lock(NamedTuple):
    """Who holds the host's lock now ("host_section, process 812"), and for how many seconds that process has run."""

    holder: str = ""
    seconds: int = 0


class Snapshot(NamedTuple):
    """One look. `root`: this account is root; `applied`: units that we applied here."""

    root: bool = True
    time: int = 0
    config: Config = Config()
    trust: Trust = Trust()
    helper: Helper = Helper()
    agent: Agent = Agent()
    program: Program = Program()
    cluster: Cluster = Cluster()
    iommu: Iommu = Iommu()
    gpus: Gpus = Gpus()
    specs: Specs = Specs()
    holds: Holds = Holds()
    records: Records = Records()
    files: Files = Files()
    disks: tuple[Disk, ...] = ()
    lock: Lock = Lock()
    clock: str = ""  # whether the clock is synchronised: "yes", "no", "" where nothing tells
    failed: tuple[str, ...] = ()  # boot services of ours that failed
