# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links in /dev/char to NVIDIA's device nodes, by which runc names devices to systemd.

NVIDIA's modules make their nodes past udev, so nobody links them. Where systemd manages the cgroups of containers, a
device without its link is missing from what systemd knows a container may open, and a daemon-reload takes it away.
"""

from __future__ import annotations

from .files import HEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

FOLDER = "/dev/char"
CREATE = ("nvidia-ctk", "system", "create-dev-char-symlinks", "--create-all")
# Behind the packages' own 71-nvidia.rules, which may load modules. /usr/lib/udev is for packages, and read-only on some
# hosts. udev sees by itself that a rule is new.
RULE = "/etc/udev/rules.d/72-bcd-nvidia-dev-char.rules"
# nvidia-ctk needs the numbers of nvidia and of nvidia_uvm, whichever comes last, and links every node that there can
# be, those of MIG devices to come among them.
RULES = (
    HEADER
    + f"""# Links in /dev/char to the device nodes of NVIDIA's modules: without them containers lose their GPUs.
ACTION=="add", DEVPATH=="/bus/pci/drivers/nvidia", RUN+="/usr/bin/{" ".join(CREATE)}"
ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia_uvm", RUN+="/usr/bin/{" ".join(CREATE)}"
"""
)


class Unlinked(NamedTuple):
    """A device node whose link is missing, or, with `taken`, leads elsewhere: nvidia-ctk replaces none."""

    path: str
    link: str
    taken: bool = False
