# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any sequence of sections over any inventory, by the real runner, against a small model of who may have what.

The model knows silicon as sets: a whole GPU is all of it, a MIG instance and a slot are one element each, and a GPU
that has one kind of part has none of the other.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from tests.gpu.fake import GpuHost
from tests.unit.hold_host import (
    H100,
    HOLD,
    KUBERNETES,
    add_kubelet,
    assign,
    events,
    go,
    hold_host,
    part,
    uuids,
)

SLOTS = 4
MISSING = "GPU-99999999-0000-4000-8000-000000000099"
NAMES = ("a", "b", "c", "d", "e")


class Wish(NamedTuple):
    """An assignment before its devices have the names of a host's: (GPU, "whole", "mig" or "slot", number)."""

    name: str
    devices: tuple[tuple[int, str, int], ...]
    binding: str = HOLD


# Most are there, and few enough that they meet: what is refused for another reason tells nothing of conflicts.
DEVICES = st.tuples(
    st.sampled_from([0, 0, 0, 0, 1, 1, 2]),
    st.sampled_from(["whole", "mig", "mig", "slot", "slot", "slot"]),
    st.sampled_from([0, 0, 1, 1, 2, SLOTS]),
)
WISHES = st.tuples(
    st.lists(DEVICES, min_size=1, max_size=2).map(tuple),
    st.sampled_from([HOLD, HOLD, HOLD, HOLD, KUBERNETES, KUBERNETES, KUBERNETES, "BINDING_NODE"]),
)
SECTION = st.tuples(st.permutations(NAMES), st.lists(WISHES, min_size=2, max_size=len(NAMES))).map(
    lambda drawn: [Wish(name, *wish) for name, wish in zip(*drawn)]
)
SECTIONS = st.lists(SECTION, min_size=3, max_size=5)


def atom(host: GpuHost, mig: list[str], device: tuple[int, str, int]) -> str:
    """A device's id; of a GPU, an instance or a slot that the host lacks too."""
    at, kind, number = device
    gpu = [*uuids(host), MISSING][min(at, len(uuids(host)))]
    if kind == "mig":
        return mig[number % len(mig)] if mig and at == 0 and number < len(mig) else f"{gpu}/gi{number + 90}/ci0"
    return gpu if kind == "whole" else f"{gpu}/s{number}"


# -- the model


def collide(one: str, other: str) -> bool:
    """Whether two devices share silicon."""
    gpu, _slash, part_of = one.partition("/")
    other_gpu, _slash, other_part = other.partition("/")
    if gpu != other_gpu:
        return False
    if not (part_of and other_part):
        return True
    return one == other or part_of.startswith("s") != other_part.startswith("s")


def there(host: GpuHost, mig: list[str], device: str) -> bool:
    gpu, _slash, rest = device.partition("/")
    if gpu not in uuids(host):
        return False
    return device in mig if rest.startswith("gi") else not rest or int(rest[1:]) < SLOTS


def expected(
    host: GpuHost, mig: list[str], held: dict[str, list[str]], wanted: list[dict[str, Any]]
) -> dict[str, list[str]]:
    """The holds after a section: those wanted stay as they are, and each new one comes unless something is against."""
    ids = {one["allocation_id"]: [device["id"] for device in one["devices"]] for one in wanted}
    after = {name: devices for name, devices in held.items() if name in ids}
    for one in wanted:
        name, devices = one["allocation_id"], ids[one["allocation_id"]]
        if name in after or one["binding"] not in (HOLD, KUBERNETES) or len(set(devices)) < len(devices):
            continue
        taken = [other for others in after.values() for other in others]
        if all(there(host, mig, device) for device in devices) and not any(
            collide(device, other) for device in devices for other in taken
        ):
            after[name] = devices
    return after


# -- what a host shows


def shown(host: GpuHost) -> dict[str, list[str]]:
    """The devices of each hold, as runtimes find them."""
    found = {}
    for name in host.names("/etc/cdi"):
        if name.startswith("bcd-"):
            spec = json.loads(host.text(f"/etc/cdi/{name}") or "")
            ids = [device["annotations"]["bcd.dev/device-id"] for device in spec["devices"]]
            found[name[len("bcd-") : -len(".json")]] = ids
    return found


def releases_come_first(calls: list[str]) -> bool:
    """Whether the last hold's files went before the first new hold's came."""
    gone = [at for at, call in enumerate(calls) if call.startswith("remove /etc/cdi/")]
    come = [at for at, call in enumerate(calls) if call.startswith("write /etc/cdi/")]
    return not (gone and come) or max(gone) < min(come)


def check(host: GpuHost, done: Outcome, after: dict[str, list[str]], wanted: list[dict[str, Any]]) -> None:
    assert (done.failure, done.pending) == (None, ())
    assert shown(host) == after
    records = {name.removesuffix(".json") for name in host.names("/var/lib/bcd-hostconfig/holds")}
    envs = {name.removesuffix(".env") for name in host.names("/run/bcd/allocations")}
    assert records == envs == set(after)
    refused = {one["allocation_id"] for one in done.found["failures"]}
    assert refused == {one["allocation_id"] for one in wanted} - set(after)


@pytest.mark.exhaustive
@given(
    st.sampled_from([(), ("3g.40gb", "1g.10gb"), ("1g.10gb",) * 3]),
    st.sampled_from([(H100,), (H100, H100)]),
    SECTIONS,
)
@settings(max_examples=100, deadline=None)
def test_any_sequence_of_sections(
    profiles: tuple[str, ...], products: tuple[str, ...], wishes: list[list[Wish]]
) -> None:
    host = hold_host(*products)
    add_kubelet(host)
    mig = part(host, 0, *profiles) if profiles else []
    held: dict[str, list[str]] = {}
    told: list[str] = []
    for generation, some in enumerate(wishes, 1):
        host.unix += 60
        wanted = [
            assign(wish.name, *(atom(host, mig, device) for device in wish.devices), binding=wish.binding)
            for wish in some
        ]
        before = len(host.calls)
        done = go(host, *wanted, generation=generation, slot_count=SLOTS)
        after = expected(host, mig, held, wanted)
        check(host, done, after, wanted)
        assert releases_come_first(host.calls[before:])
        told += [f"released-{name}" for name in held if name not in after]
        told += [f"bound-{name}" for name in after if name not in held]
        told += [f"failed-{one['allocation_id']}" for one in wanted if one["allocation_id"] not in after]
        assert sorted(name.split("-", maxsplit=2)[0] + "-" + name.split("-")[1] for name in events(host)) == sorted(
            told
        )
        written = len(host.calls)
        again = go(host, *wanted, generation=generation, slot_count=SLOTS)
        assert (again.changed, host.calls[written:]) == (False, []), again.steps
        held = after
