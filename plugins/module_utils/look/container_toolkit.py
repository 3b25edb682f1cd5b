# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the vendor's CDI specification depends on, and what is there of it."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan import cdi
from ..plan.container_devices import FOLDER, Unlinked
from ..plan.container_toolkit_config import ENVIRONMENT, OUTPUT, SERVICE, UNIT_FOLDERS
from ..plan.container_toolkit_spec import STAMP, Described, Found, read_file
from ..plan.nvidia_node_numbers import number_of
from ..plan.nvidia_nodes import parse_majors
from ..plan.smi import MODES
from . import cdi_files
from .cdi import broken, gone, vendor_specs
from .driver import loaded
from .smi import told
from .smi_lists import listing, parse_list

TOOLKIT = "nvidia-ctk"
SOCKETS = ("/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket")


def sockets(host: Host) -> tuple[str, ...]:
    """The daemons' sockets that nvidia-ctk mounts into containers where it finds them."""
    return tuple(path for path in SOCKETS if host.exists(path))


def refresh_installed(host: Host) -> bool:
    """Whether the toolkit brought nvidia-cdi-refresh along, which versions from 1.18 on do."""
    return any(host.exists(f"{folder}/{SERVICE}") for folder in UNIT_FOLDERS)


def described(host: Host) -> Described:
    """What the vendor's specification depends on; without a driver only that there is none."""
    driver = loaded(host)
    file = host.file(OUTPUT)
    if driver is None:
        return Described(None, "", (), "", (), (), file, (), None, (), False, "")
    text = _listing(host)
    specs = vendor_specs(host)
    mine = read_file(file)
    return Described(
        driver=driver,
        listing=text,
        gpus=parse_list(text),  # what is no listing is a fault, and no new state of the host
        toolkit=version(host),
        nodes=(*host.sight(cdi_files.device_nodes), *sockets(host)),
        modes=tuple(f"{row['uuid']} {row['mig.mode.current']}" for row in told(host, MODES)),
        file=file,
        gone=gone(host, mine) if mine is not None and not cdi.faults(mine) else (),
        stamp=host.file(STAMP),
        found=tuple(Found(path, cdi.device_names(spec) if spec else (), fault) for path, spec, fault in specs),
        refresh=refresh_installed(host),
        environment=host.read(ENVIRONMENT) or "",
        runtime_folder=cdi_files.runtime_folder(host),
        broken=broken(host, specs),
    )


def _listing(host: Host) -> str:
    """nvidia-smi -L. With a lost GPU it is no whole listing, and what is made of the rest could not be checked."""
    try:
        return listing(host)
    except StepFailed as fault:
        from .smi_faults import NoAnswer

        if not (isinstance(fault, NoAnswer) and fault.gpus):
            raise
        raise StepFailed(
            f"GPU {', '.join(fault.gpus)} does not answer, and until it does no new {OUTPUT} is made, of the others "
            "neither: see the kernel's log for its Xid, and reset it or reboot the node"
        ) from None


def version(host: Host) -> str:
    """What the toolkit's program says of its version, which follows from the program itself, or what it wraps."""
    program = host.which(TOOLKIT)
    said = host.follows((TOOLKIT, "--version"), () if program is None else (program, f"{program}.real")).out
    return said if said or program is None else host.ask((TOOLKIT, "--version")).out  # that it failed follows from none


def unlinked(host: Host) -> tuple[Unlinked, ...]:
    """The loaded driver's device nodes without their link in /dev/char, by the numbers that their names tell."""
    if loaded(host) is None:
        return ()
    majors = parse_majors(host.sight(cdi_files.majors))
    numbered = [(path, number_of(path, majors)) for path in host.sight(cdi_files.device_nodes)]
    links = [(path, f"{FOLDER}/{number[0]}:{number[1]}") for path, number in numbered if number is not None]
    found = []
    for (path, link), target in zip(links, host.sight(cdi_files.targets, [link for _path, link in links])):
        if target not in (path, f"..{path[len('/dev') :]}"):
            found.append(Unlinked(path, link, target is not None or host.exists(link)))
    return tuple(found)
