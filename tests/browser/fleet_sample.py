# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of fleets as large as one wants: four pools, every state, every kind of GPU use; always the same.

The results are shaped as host_plan, cdi_holds and host_info return them, and the collection makes the report of them.

usage: python -m tests.browser.fleet_sample COUNT FILE    the page of such a fleet, to look at
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report import fleet_document
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report_history import run_of
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report_page import render_page

GIB = 1 << 30
AT = "2026-12-01 04:05 UTC"


class Pool(NamedTuple):
    name: str
    site: str
    kind: str
    units: tuple[str, ...]
    share: int  # of twenty hosts


SANDBOX = ("kernel-modules", "sysctl", "hugepages", "cpu", "iommu")
POOLS = (
    Pool("sandbox-fra", "fra", "vps-host", SANDBOX, 9),
    Pool("train-fra", "fra", "gpu-bare", ("sysctl", "nvidia-driver", "fabric-manager", "gpu-settings", "k8s-join"), 4),
    Pool("mig-ams", "ams", "gpu-mig", ("nvidia-driver", "mig-layout", "container-toolkit", "k8s-join"), 3),
    Pool("infer-ams", "ams", "gpu-shared", ("nvidia-driver", "gpu-sharing", "container-toolkit"), 4),
)
REBOOT = {
    "hugepages": "pages of 1 GiB found: 61 of 64 on node 0; the rest is there after the next boot: reboot the node",
    "cpu": 'CPUs 4-63,68-127 are isolated from the next boot (now: ""): reboot the node',
    "iommu": "the IOMMU is on from the next boot (intel_iommu=on iommu=pt): reboot the node; check the firmware",
}
DROP_IN = "# Written by bcd: local edits are replaced.\nvm.swappiness = {}\nnet.ipv4.ip_forward = 1\n"


def unit(name: str, state: str = "converged", **more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {key: [] for key in ("steps", "pending", "conditions", "notes", "diff")}
    return {"unit": name, "state": state, "changed": False, "reboot_required": False, **empty, **more}


def step(action: str, disruption: str = "none") -> dict[str, Any]:
    return {"action": action, "disruption": disruption, "done": False}


def waits(name: str, reason: str, message: str, **more: Any) -> dict[str, Any]:
    pending = [{"reason": reason, "message": f"{name}: {message}"}]
    return unit(name, "progressing", pending=pending, reboot_required=reason == "RebootRequired", **more)


def drifted(name: str, number: int) -> dict[str, Any]:
    """A unit with steps to take, and what they would change."""
    if name == "sysctl":
        path = "/etc/sysctl.d/90-bcd.conf"
        before, after = DROP_IN.format(60), DROP_IN.format(10)
        diff = [{"before_header": path, "after_header": path, "before": before, "after": after}]
        live = "/proc/sys/vm/swappiness"
        diff.append({"before_header": live, "after_header": live, "before": "60\n", "after": "10\n"})
        return unit(name, "progressing", steps=[step(f"write {path}"), step("set vm.swappiness to 10")], diff=diff)
    if name == "gpu-settings":
        action = f"set the power limit of GPU {number % 8} to 500 W (now: 700 W)"
        return unit(name, "progressing", steps=[step(action)])
    return unit(name, "progressing", steps=[step(f"start what {name} needs", "service")])


def units_of(pool: Pool, number: int) -> list[dict[str, Any]]:
    """The units of a host: most are converged, and each kind of trouble has its hosts."""
    kind = number * 7 % 50
    found = {name: unit(name) for name in pool.units}
    if pool.name == "sandbox-fra" and kind < 12:
        found.update({name: waits(name, "RebootRequired", REBOOT[name]) for name in ("hugepages", "cpu", "iommu")})
    if "sysctl" in found and kind in (13, 14, 15):
        found["sysctl"] = drifted("sysctl", number)
    if pool.name == "sandbox-fra" and kind == 16:
        message = (
            "sysctl: kernel.core_pattern is refused: it can name a program that the kernel runs as root: take it out"
        )
        found["sysctl"] = unit("sysctl", "failed", reason="Refused", retryable=False, msg=message)
    if pool.name == "train-fra" and kind in (20, 21, 22):
        found["gpu-settings"] = drifted("gpu-settings", number)
    if pool.name == "train-fra" and kind == 23:
        message = "fabric-manager: nvidia-fabricmanager.service does not start: see journalctl -u nvidia-fabricmanager"
        down = {"type": "FabricManagerDown", "status": "true", "reason": "NotRunning", "message": message}
        found["fabric-manager"] = unit(
            "fabric-manager", "progressing", reason="StepFailed", retryable=True, msg=message, conditions=[down]
        )
    if pool.name == "mig-ams" and number % 40 == 13:
        message = f"processes use {uuid(number, 0)}; it is repartitioned once they end: python3 ({4000 + number})"
        found["mig-layout"] = waits("mig-layout", "Busy", message)
    if "nvidia-driver" in found and kind == 30:
        found["nvidia-driver"] = waits(
            "nvidia-driver", "HeldBack", "a newer driver waits for max_disruption gpu (now: service)"
        )
    if "container-toolkit" in found and kind % 5 == 1:
        note = "no container runtime is installed: one that comes later is configured by the next pass"
        found["container-toolkit"]["notes"] = [note]
    if "k8s-join" in found and kind == 40:
        message = "the cluster does not answer at https://10.0.0.1:6443: look at its load balancer"
        found["k8s-join"] = waits("k8s-join", "NotReady", message)
    return list(found.values())


def plan_of(pool: Pool, number: int) -> dict[str, Any]:
    kind = number * 7 % 50
    if kind == 48:
        return {
            "unreachable": True,
            "msg": f"Failed to connect to the host via ssh: connect to host 10.1.{number % 250}.7 port 22: No route",
        }
    if kind == 49:
        return {"failed": True, "msg": "the module was killed", "rc": 137}
    units = units_of(pool, number)
    states = {each["state"] for each in units} - {"converged"}
    state = states.pop() if len(states) == 1 else "progressing" if states else "converged"
    messages = [
        each.get("msg") or each["pending"][0]["message"] for each in units if each.get("msg") or each["pending"]
    ]
    section: dict[str, Any] = {
        "state": state.upper(),
        "message": "; ".join(messages),
        "observed_generation": 41,
        "conditions": [],
    }
    return {"units": units, "section": section, "reboot_required": any(each["reboot_required"] for each in units)}


# -- what host_info says


def uuid(host: int, gpu: int, part: int = 0) -> str:
    return f"{'MIG' if part else 'GPU'}-{host:08x}-{gpu:04x}-4a{part:02x}-8000-00000000{host:04x}"


def gpu_of(host: int, index: int, name: str, **more: Any) -> dict[str, Any]:
    return {
        "index": index,
        "uuid": uuid(host, index),
        "pci": f"00000000:{index + 1:02X}:00.0",
        "name": name,
        "mig_mode": "disabled",
        "layout": "off",
        "slices": None,
        "sharing": None,
        "mig_devices": [],
        "allocations": [],
        "processes": [],
        "holders": [],
        **more,
    }


def hold(number: int, devices: list[str], binding: str = "BINDING_CDI") -> dict[str, Any]:
    name = f"alloc_{number * 2654435761 % (1 << 32):08x}"
    return {
        "allocation_id": name,
        "binding": binding,
        "devices": devices,
        "generation": 41,
        "releasing": False,
        "fault": None,
    }


def whole(host: int, held: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Eight whole H100, of which four have a tenant."""
    for index in range(8):
        mine: dict[str, Any] = {"mig_mode": None, "layout": None}
        if index < host % 9:
            held.append(hold(host * 64 + index // 4, [uuid(host, index)]))
            process = {"pid": 4000 + index, "name": "python3"}
            mine.update(allocations=[held[-1]["allocation_id"]], processes=[process])
            mine["holders"] = [
                {"pid": 4000 + index, "program": "python3"},
                {"pid": 911, "program": "nvidia-persistenced"},
            ]
        yield gpu_of(host, index, "NVIDIA H100 80GB HBM3", **mine)


SEVEN = tuple(
    (f"{size}g.{size}0gb", start, size) for start, size in ((0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1))
)
MIXED = (("3g.40gb", 0, 4), ("2g.20gb", 4, 2), ("1g.10gb", 6, 1))


def parted(host: int, held: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Eight H100 in MIG devices, some of which pods or tenants have."""
    for index in range(8):
        mixed = (host + index) % 3 == 0
        parts = []
        for number, (profile, start, size) in enumerate(MIXED if mixed else SEVEN):
            gi = number + 7
            parts.append(
                {"profile": profile, "gi": gi, "ci": 0, "start": start, "size": size, "uuid": uuid(host, index, gi)}
            )
            if (host + index * 3 + number) % 5 < 2:
                binding = "BINDING_KUBERNETES" if number % 2 else "BINDING_CDI"
                held.append(hold((host * 8 + index) * 8 + number, [f"{uuid(host, index)}/gi{gi}/ci0"], binding))
        mine = [each["allocation_id"] for each in held if each["devices"][0].startswith(uuid(host, index))]
        layout = "3g.40gb,2g.20gb,1g.10gb" if mixed else "1g.10gb:7"
        more: dict[str, Any] = {"mig_mode": "enabled", "layout": layout, "slices": 8, "mig_devices": parts}
        yield gpu_of(host, index, "NVIDIA H100 80GB HBM3", allocations=mine, **more)


def shared(host: int, held: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Four L40S, each shared by ten through MPS."""
    for index in range(4):
        slots = range((host + index) % 7)
        mine = [hold((host * 4 + index) * 16 + slot, [f"{uuid(host, index)}/s{slot}"]) for slot in slots]
        held += mine
        more: dict[str, Any] = {"sharing": {"mode": "mps", "replicas": 10}, "mig_mode": None, "layout": None}
        yield gpu_of(host, index, "NVIDIA L40S", allocations=[each["allocation_id"] for each in mine], **more)


GPUS = {"train-fra": whole, "mig-ams": parted, "infer-ams": shared}


def facts_of(pool: Pool, number: int) -> dict[str, Any]:
    held: list[dict[str, Any]] = []
    gpus = list(GPUS[pool.name](number, held)) if pool.name in GPUS else []
    pages = {"total": 64, "free": 64 - number % 65, "surplus": 0}
    small = {"total": 1024, "free": 1024 - number % 900, "surplus": 0}
    pools = {"2Mi": small, "1Gi": pages} if pool.name == "sandbox-fra" else {}
    cpus = ("0-63", "64-127")
    numa = [{"id": node, "cpus": cpus[node], "memory": 256 * GIB, "hugepages": pools} for node in (0, 1)]
    facts = {
        "gpus": gpus,
        "holds": held,
        "numa": numa,
        "kernel": "6.8.0-85-generic" if number % 5 else "6.8.0-79-generic",
        "driver": {"loaded": "580.95.05" if gpus else None},
        "reboot_required": False,
        "reboot_reasons": {},
        "unreadable": [],
    }
    return {"ansible_facts": {"bcd": facts}}


# -- the fleet


def pool_of(number: int) -> Pool:
    place = number % 20
    for pool in POOLS:
        if place < pool.share:
            return pool
        place -= pool.share
    raise AssertionError("the shares add up to twenty")


def document_of(count: int) -> dict[str, Any]:
    """The report of so many hosts."""
    named = {f"{pool_of(number).name}-{number:03}": number for number in range(count)}
    results = {name: plan_of(pool_of(number), number) for name, number in named.items()}
    facts = {name: facts_of(pool_of(number), number) for name, number in named.items() if "units" in results[name]}
    places = {}
    for name, number in named.items():
        pool = pool_of(number)
        places[name] = {"pool": pool.name, "site": pool.site, "class": pool.kind}
    return dict(fleet_document(results, {}, facts, places))


def runs_of(document: dict[str, Any], count: int = 14) -> list[dict[str, Any]]:
    """So many runs, the last of which is the document's: before it more hosts waited, and one pool had not come yet."""
    last = run_of(document, datetime(2026, 12, 1, 4, 5, 6, tzinfo=timezone.utc))
    runs = [last]
    for back in range(1, count):
        run = copy.deepcopy(runs[-1])
        run["at"] = f"2026-11-{31 - back:02}T04:05:{back:02}Z"
        run["source"] = "plan" if back % 3 else "status"
        names = sorted(name for name, host in run["hosts"].items() if host["state"] == "converged")
        moved = names[back :: max(2, len(names) // 6 or 1)][:8]
        for name in moved:
            run["hosts"][name]["state"] = "progressing"
        run["summary"]["converged"] -= len(moved)
        run["summary"]["progressing"] += len(moved)
        runs.append(run)
    return runs[::-1]


def page_of(count: int) -> str:
    """The page of such a fleet."""
    document = document_of(count)
    return render_page(document, AT, runs_of(document))


def main(argv: list[str]) -> int:
    if len(argv) != 2 or not argv[0].isdigit():
        print(__doc__, file=sys.stderr)
        return 64
    Path(argv[1]).write_text(page_of(int(argv[0])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
