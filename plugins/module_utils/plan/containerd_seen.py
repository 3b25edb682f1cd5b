# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containerd's files show, as values; which of our units our drop-in is for."""

from __future__ import annotations

import re

from ..core.state import STATE
from .debts import debt
from .unit_names import CONTAINER_TOOLKIT, K8S_JOIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NamedTuple

    from ..core.seen import File
else:
    from ..core.named import NamedTuple

CONFIG = "/etc/containerd/config.toml"
FOLDER = "/etc/containerd/conf.d"
IMPORT = f"{FOLDER}/*.toml"
NAME = "99-zz-bcd.toml"  # read after what nvidia-ctk and other tools write
CTK = "99-nvidia.toml"
SERVICE = "containerd"
UNIT_FILE = f"{SERVICE}.service"
DEBT = debt("restart", SERVICE)  # what a changed configuration owes
SOCKET = "/run/containerd/containerd.sock"
RECORD = f"{STATE}/containerd-before.json"  # of a change that is not through
DEBIAN_CNI, CNI = "/usr/lib/cni", "/opt/cni/bin"  # where Debian's packages and those of Kubernetes put plugins
FOR = re.compile(r"^# For (?:(container-toolkit)( \(without CDI\))?)?(?: and )?(k8s-join)?\.$", re.MULTILINE)


class DropIn(NamedTuple):
    """A file that the configuration imports, as read. `open`: everyone may read it."""

    path: str
    text: str
    open: bool = True


class Parts(NamedTuple):
    """The units that our drop-in is for, and whether the toolkit's part turns CDI on."""

    toolkit: bool = False
    cdi: bool = False
    kube: bool = False

    @property
    def line(self) -> str:
        """The line of the drop-in's head that says so, for each unit to keep the other's part."""
        toolkit = f"{CONTAINER_TOOLKIT}{'' if self.cdi else ' (without CDI)'}" if self.toolkit else ""
        return f"# For {' and '.join(filter(None, (toolkit, K8S_JOIN if self.kube else '')))}.\n"


def parts_of(ours: File | None) -> Parts:
    """What the head of our drop-in says; nobody's, where there is none or it does not say."""
    found = FOR.search(ours.text) if ours is not None else None
    if found is None:
        return Parts()
    return Parts(bool(found.group(1)), bool(found.group(1)) and not found.group(2), bool(found.group(3)))


class Containerd(NamedTuple):
    """What containerd reads on this host.

    `config` is config.toml (None: there is none), `text` what it holds. `imports` are the files that it names itself,
    in their order, with ours in its place at `path` whether or not it exists; `read` are all that exist without ours,
    those that an import imports too, in the order in which containerd reads them. `imported`: config.toml imports
    `path` as it is. `around`: one of `read` that imports config.toml or `path` itself ("": none). `newly`: files that
    nothing imports yet and that an import of ours brings along. `ours` is ours at `path`, `stale` ours in other
    places, with what they hold. `systemd`: it manages this host, which is asked where config.toml says nothing. `cni`
    are the folders that hold plugins of CNI, `address` is the socket that the files name, and `program` the path of
    containerd's own program.

    `record` is the text of the record of a change that is not through (see containerd_change), `former` what is now at
    the paths that it names. `daemon` is looked at for a unit that needs the CRI, and while there is a record.
    """

    config: File | None
    text: str
    path: str
    imports: tuple[str, ...]
    read: tuple[DropIn, ...] = ()
    imported: bool = True
    around: str = ""
    newly: tuple[str, ...] = ()
    ours: File | None = None
    stale: Mapping[str, File] = {}
    systemd: bool = True
    cni: tuple[str, ...] = ()
    address: str = SOCKET
    record: str | None = None
    former: Mapping[str, Any] = {}
    daemon: Any = None
    program: str = ""
