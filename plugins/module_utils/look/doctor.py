# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor looks at, put together of the looks that passes take; what intent/ knows is added by the front."""

from __future__ import annotations

from typing import Any, Callable

from ..core.errors import Fault, Refused, StepFailed
from ..core.host import Host
from ..core.outcome import our_fault
from ..core.records import Records as Kept
from ..core.unknown import Unknown, later
from ..plan.doctor_seen import Cluster, Config, Gpus, Iommu, Snapshot, Specs
from ..plan.installed import CONFIG
from ..plan.kube_seen import RECORD
from .doctor_holds import holds
from .doctor_host import agent, clock, disks, failed, files, helper, installed_program, lock, read_as_root, records

VFIO = "/sys/bus/pci/drivers/vfio-pci"  # is there when the driver is loaded, and when it is built in
SWAPS = "/proc/swaps"


def look(host: Host) -> Snapshot:
    """The snapshot, without trust. `host` is a predicted one: nothing is changed, and what this account may
    not see raises NotKnownYet where it is used."""
    told: Any = _part(config, host)
    return Snapshot(
        root=host.uid() == 0,
        time=host.time(),
        config=told,
        helper=_part(helper, host),
        agent=_part(agent, host),
        program=_part(installed_program, host),
        cluster=_part(cluster, host),
        iommu=_part(iommu, host),
        gpus=_part(gpus, host),
        specs=_part(specs, host),
        holds=_part(holds, host),
        records=_part(records, host),
        files=_part(files, host, told),
        disks=_part(disks, host),
        lock=_part(lock, host),
        clock=_part(clock, host),
        failed=_part(failed, host),
    )


def _part(ask: Callable[..., Any], *given: Any) -> Any:
    """What the look says, or a value that raises why not; a refusal is what the look could not make out."""
    try:
        return later(ask, *given)
    except Refused as fault:
        return Unknown(StepFailed(fault.message, retryable=False))
    except OSError as fault:
        return Unknown(StepFailed(f"{fault.filename or 'the host'}: {fault.strerror or fault}: mend it"))
    except Exception as fault:  # noqa: BLE001 - a fault of ours in one look must not keep the doctor from the others
        return Unknown(StepFailed(our_fault(fault)))


def config(host: Host) -> Config:
    """Root's config.toml, or why it is not taken."""
    from .config import config as read

    there = host.file(CONFIG) is not None
    try:
        return Config(there, read(host))
    except Refused as fault:
        return Config(there, fault=fault.message)


def cluster(host: Host) -> Cluster:
    """Whose member the machine is, and swap."""
    from ..plan.swap_areas import parse_swaps
    from .kube_join import joined
    from .swap import allowed

    member = joined(host)
    if member is None:
        return Cluster()
    ours = host.exists(RECORD) or "k8s-join" in _applied(host)
    areas = parse_swaps(host.read(SWAPS) or "")
    return Cluster(member, ours, tuple(area.path for area in areas), allowed(host))


def _applied(host: Host) -> dict[str, Any]:
    read_as_root(host, "applied")
    return Kept(host).applied()


def iommu(host: Host) -> Iommu:
    """The IOMMU and VFIO; whether the section asks for one is root's to know."""
    from .machine import iommu as seen

    asked: Any = _part(lambda: "iommu" in _applied(host))
    return Iommu(bool(seen(host)["enabled"]), asked, host.exists(VFIO))


def gpus(host: Host) -> Gpus:
    """NVIDIA's GPUs, as the bus, the driver and nvidia-smi have them."""
    from .driver import loaded
    from .driver_file import on_disk
    from .driver_use import only_signed
    from .pci import gpus as on_bus

    count = len(on_bus(host))
    driver = loaded(host)
    if not (count or driver):
        return Gpus()
    told = Gpus(count, driver.version if driver else "", _mute(host))
    strict = only_signed(host)
    module = on_disk(host) if strict else None
    if module is None:
        return told._replace(only_signed=strict)
    return told._replace(only_signed=strict, module=module.path, signer=module.signer)


def _mute(host: Host) -> tuple[str, ...]:
    """A sentence on each GPU that does not answer, and on nvidia-smi where it does not."""
    from .gpu_facts import mig_mode, rows

    try:
        seen = rows(host)
    except Fault as fault:
        return (fault.message,)
    faults = []
    for gpu, row in seen:
        try:
            mig_mode(row)
        except Fault as fault:
            faults.append(fault.message if gpu.uuid in fault.message else f"{gpu.uuid}: {fault.message}")
    return tuple(faults)


def specs(host: Host) -> Specs:
    """NVIDIA's CDI specifications, and files that are none."""
    from .cdi import broken, gone, vendor_specs

    found = vendor_specs(host)
    lacking = [(spec.path, gone(host, spec.spec)) for spec in found if spec.spec is not None]
    return Specs(
        toolkit=host.which("nvidia-ctk") is not None,
        sound=tuple(spec.path for spec in found if spec.spec is not None),
        faults=tuple((spec.path, spec.fault) for spec in found if spec.spec is None),
        gone=tuple((path, paths) for path, paths in lacking if paths),
        broken=broken(host, found),
    )
