# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages: persistent pools of 2 MiB and 1 GiB pages, on the host or by NUMA node, and transparent huge pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import Effect, Step, set_value
from . import hugepages_boot, hugepages_units, pages
from .hugepages_boot import Reservation
from .hugepages_units import Mount
from .pages import G1, M2, SIZES, Node, Pool, Size, Wanted
from .settings import strict
from .systemd_seen import RELOAD, Systemd, UnitFile
from .unit_names import HUGEPAGES as UNIT

FIELDS = (
    Field("pages2m", "pages_2m", (int, list)),
    Field("pages1g", "pages_1g", (int, list)),
    Field("perNuma", "per_numa", (bool,)),
    Field("transparent", "transparent", (str,)),
)
TRANSPARENT = "/sys/kernel/mm/transparent_hugepage/enabled"
POLICIES = ("always", "madvise", "never")
MOST = 1 << 30  # pages of one size: far beyond any machine, and far from what the kernel's counters hold
LEFT = 256 << 10  # KiB that the pages leave to the host itself, or it dies when it boots with them


class Settings(NamedTuple):
    """Counts by size, for the sizes that are managed: one for the host (or each node), or one for every node."""

    counts: Mapping[Size, tuple[int, ...]]
    per_numa: bool = False
    transparent: str = ""

    def targets(self, size: Size, nodes: tuple[int, ...]) -> dict[Node, int]:
        """The pages wanted of a size that is managed, by node (None: the host's)."""
        return pages.targets(self.counts[size], self.per_numa, nodes)


class Memory(NamedTuple):
    """The host's memory in KiB, 0 where it is not shown. `nodes` are those that have both memory and CPUs, in order.

    Memory without CPUs (a GPU's, or far memory) backs no virtual machine: it is counted by `memory_nodes` only, which
    is where the kernel spreads its boot reservation.
    """

    total: int = 0
    nodes: tuple[int, ...] = ()
    memory_nodes: tuple[int, ...] = ()
    node_total: Mapping[int, int] = {}


class Now(NamedTuple):
    """What the host shows. `transparent` is the chosen policy, None where the kernel has none of it."""

    memory: Memory
    pools: Mapping[Size, Pool]
    transparent: str | None
    command_line: str
    release: str
    reservation: Reservation
    systemd: Systemd
    mount: Mount
    mount_unit: UnitFile
    service: UnitFile


# -- settings


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; raises Refused for a count, a list or a policy that is never applied."""
    wire = strict(UNIT, FIELDS, given)
    counts = {size: _counts(size, wire[size.wire]) for size in SIZES if size.wire in wire}
    per_numa = wire.get("perNuma", False)
    for size, listed in counts.items():
        if per_numa and len(listed) > 1:
            raise Refused(
                f"{UNIT}: {size.wire} has a count for each NUMA node, and perNuma gives every node the same: "
                f"take perNuma off or give one count"
            )
    policy = wire.get("transparent", "")
    if "transparent" in wire and policy not in POLICIES:
        raise Refused(f"{UNIT}: transparent is {policy!r}: give one of {', '.join(POLICIES)}")
    return Settings(counts, per_numa, policy)


def _counts(size: Size, value: Any) -> tuple[int, ...]:
    counts = tuple(value) if isinstance(value, list) else (value,)
    if not counts:
        raise Refused(f"{UNIT}: {size.wire} is an empty list: give a count, or one for each NUMA node")
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int):
            raise Refused(f"{UNIT}: {size.wire} has {count!r}, which is no whole number of pages: correct it")
        if count < 0:
            raise Refused(f"{UNIT}: {size.wire} is {count}, and there are no fewer pages than 0: correct it")
        if count > MOST:
            raise Refused(
                f"{UNIT}: {size.wire} is {count}, and no host has more than {MOST} pages of {size.words}: "
                f"correct it (it counts pages, not bytes)"
            )
    return counts


def wanted_pages(settings: Settings, now: Now) -> dict[Size, dict[Node, int]]:
    """Pages wanted by size and node; raises Refused for what this host can never hold."""
    if settings.per_numa and not now.memory.nodes:
        raise Refused(f"{UNIT}: perNuma is set, and this kernel shows no NUMA nodes: take it off")
    wanted = {}
    for size, counts in settings.counts.items():
        if len(counts) > 1 and len(counts) != len(now.memory.nodes):
            raise Refused(
                f"{UNIT}: {size.wire} has {len(counts)} counts, and this host has "
                f"{len(now.memory.nodes)} NUMA nodes with memory and CPUs: give one count for each"
            )
        wanted[size] = settings.targets(size, now.memory.nodes)
    if any(wanted.get(G1, {}).values()) and now.pools[G1].host is None:
        raise Refused(
            f"{UNIT}: this kernel has no pages of 1 GiB ({pages.directory(G1, None)} is missing), and "
            f"pages1g asks for {sum(wanted[G1].values())}: set it to 0 or use pages2m"
        )
    _refuse_too_many(wanted, now.memory)
    return wanted


def _refuse_too_many(wanted: Wanted, memory: Memory) -> None:
    said = " and ".join(f"{sum(by_node.values())} pages of {size.words}" for size, by_node in wanted.items())
    need = sum(count * size.kib for size, by_node in wanted.items() for count in by_node.values())
    if memory.total and need and need > memory.total - LEFT:
        raise Refused(
            f"{UNIT}: {said} take {_mib(need)}, and this host has {_mib(memory.total)}, of which it needs "
            f"{_mib(LEFT)} itself: lower them"
        )
    for node, total in memory.node_total.items():
        need = sum(by_node.get(node, 0) * size.kib for size, by_node in wanted.items())
        if need > total:
            raise Refused(f"{UNIT}: the pages for node {node} take {_mib(need)}, and it has {_mib(total)}: lower them")


def _mib(kib: int) -> str:
    return f"{kib >> 10} MiB"


def chosen(text: str | None) -> str | None:
    """The policy in brackets of "always [madvise] never", or the one word that is there."""
    if text is None:
        return None
    found = re.search(r"\[(\w+)\]", text)
    return found.group(1) if found else text.strip()


def release_of(text: str) -> tuple[int, ...]:
    """ "6.12.48+deb13-amd64" as (6, 12)."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def falls_short(settings: Settings | None, memory: Memory, pool: Pool) -> bool:
    """Whether fewer 1 GiB pages are there than wanted: then a look needs the boot loader too."""
    if settings is None or G1 not in settings.counts:
        return False
    wanted = settings.targets(G1, memory.nodes)
    return any(pool.at(node).persistent < count for node, count in wanted.items())


# -- the plan


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """The pools, the policy, the boot reservation where the kernel came up short, and what restores all at boot."""
    todo = Todo()
    wanted = wanted_pages(settings, now)
    if settings.transparent and now.transparent is None:
        raise Refused(
            f"{UNIT}: this kernel has no transparent huge pages ({TRANSPARENT} is missing): take transparent off"
        )
    shown = {size: by_node for size, by_node in wanted.items() if now.pools[size].host is not None}
    todo.add(*pages.moves(shown, now.pools, past))
    if settings.transparent and settings.transparent != now.transparent:
        todo.add(_set_transparent(settings.transparent))
    if M2 in wanted:
        _wait_for_small(todo, wanted[M2], now, past)
    if G1 in wanted:
        _wait_for_use(todo, G1, wanted[G1], now.pools[G1], past)
        _reserve(todo, wanted[G1], now, past)
    with todo.lane("restore at boot"):
        _keep_units(todo, settings, wanted, now, past)
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """Nothing is undone: memory that virtual machines may stand on is not taken away by leaving a list."""
    todo = Todo()
    if now.systemd.running:
        _reload(todo, now.systemd, (), False, past)
    kept = [f"the pools of huge pages stay as they are: set {M2.wire} and {G1.wire} to 0 first to give them back"]
    if now.service.file is not None:
        kept.append(f"{now.service.name} stays and sets them again at each boot")
    if now.mount_unit.file is not None:
        kept.append(f"{now.mount_unit.name} stays")
    if now.reservation.made:
        kept.append("the boot loader goes on reserving 1 GiB pages")
    todo.note(*kept)
    return todo.plan()


def _set_transparent(policy: str) -> Step:
    shown = " ".join(f"[{word}]" if word == policy else word for word in POLICIES)
    action = f"set transparent huge pages to {policy}"
    effect = Effect("file", TRANSPARENT, shown + "\n")
    return set_value(TRANSPARENT, policy, action, lane="transparent", effects=(effect,))


def _wait_for_small(todo: Todo, wanted: Mapping[Node, int], now: Now, past: Past) -> None:
    pool = now.pools[M2]
    if pool.host is None:
        if any(wanted.values()):
            todo.wait(
                "NotReady",
                f"{UNIT}: this kernel shows no pool of 2 MiB pages ({pages.directory(M2, None)} is "
                f"missing){_large_by_default(now.command_line)}",
            )
        return
    gaps = pages.short(M2, wanted, pool, past)
    if gaps:
        todo.wait(
            "NotReady",
            f"{UNIT}: pages of 2 MiB found: {pages.listed(gaps)}; each pass tries again: free memory, or lower pages2m",
        )
    _wait_for_use(todo, M2, wanted, pool, past)


def _large_by_default(command_line: str) -> str:
    argument = re.search(r"\bdefault_hugepagesz=(?:1G|1024M|1048576K)\b", command_line, re.IGNORECASE)
    if argument:
        return (
            f", and {argument.group()} is among its boot arguments, beside which some kernels offer 2 MiB pages "
            f"only for hugepagesz=2M: add that, or take it off"
        )
    return ": see that it is built with them"


def _wait_for_use(todo: Todo, size: Size, wanted: Mapping[Node, int], pool: Pool, past: Past) -> None:
    gaps = pages.held(size, wanted, pool, past)
    if gaps:
        said = ", ".join(f"{gap.got} where {gap.wanted} are wanted{pages.on(gap.node)}" for gap in gaps)
        todo.wait(
            "Busy", f"{UNIT}: pages of {size.words} are in use, so there are {said}: they go when what uses them ends"
        )


def _reserve(todo: Todo, wanted: Mapping[Node, int], now: Now, past: Past) -> None:
    tokens = pages.arguments(wanted, now.memory.memory_nodes, release_of(now.release))
    gaps = pages.short(G1, wanted, now.pools[G1], past)
    hugepages_boot.reserve(todo, sum(wanted.values()), tokens, gaps, now.reservation, past)


def _keep_units(todo: Todo, settings: Settings, wanted: Wanted, now: Now, past: Past) -> None:
    """The mount of the 1 GiB pages, and the service that sets everything again at boot."""
    mounted = now.mount
    wants_mount = any(wanted[G1].values()) if G1 in wanted else None
    if not now.systemd.running:
        if wants_mount:
            hugepages_units.mount_by_hand(todo, mounted)
        if wanted or settings.transparent:
            todo.note("systemd does not run here: what a boot forgets is set again by the next pass, not at the boot")
        return
    lines = hugepages_units.lines(wanted, settings.transparent, now.service.file)
    due = hugepages_units.keep_service(todo, now.service, lines) if wanted or settings.transparent else False
    if wants_mount is not None:
        in_use = now.pools[G1].at(None).used > 0
        due = hugepages_units.keep_mount(todo, now.mount_unit, mounted, wants_mount, in_use) or due
    _reload(todo, now.systemd, (now.mount_unit, now.service), due, past)
    if wants_mount:
        hugepages_units.start_mount(todo, mounted)


def _reload(todo: Todo, manager: Systemd, units: tuple[UnitFile, ...], due: bool, past: Past) -> None:
    if due or RELOAD in past.owed or any(unit.behind for unit in units):
        from .systemd import reload

        reload(todo, manager, units, due, past)
