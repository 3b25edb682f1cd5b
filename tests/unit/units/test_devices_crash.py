# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass over holds that is disturbed at each of its changes: the next one ends as if nothing had been.

One pass does all that there is to do: it binds with a slice, without one and for Kubernetes, keeps, releases at once
and by way of pods, reports a release that waited, leaves one that still waits, and fails an assignment.
"""

from __future__ import annotations

import copy
import errno
import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.acknowledgement import UNIT as ACKNOWLEDGEMENT
from tests.gpu.fake import GpuHost
from tests.kubelet.pods import Container, Pod
from tests.unit import promises
from tests.unit.fake_host import Killed
from tests.unit.hold_host import H100, KUBERNETES, add_kubelet, assign, files, go, hold_host, reasons, uuids
from tests.unit.slice_host import CONTROL, TREE, reboot_slices

STATE = "/var/lib/bcd-hostconfig"
LIMITS: dict[str, Any] = {"cpus": "0-3", "mems": "0", "memory_bytes": 4 << 30, "hugepages_2mi": 8}
POOL = "hugepages/hugepages-2048kB/free_hugepages"
ENV, RECORD, SPEC = "/run/bcd/allocations/{}.env", STATE + "/holds/{}.json", "/etc/cdi/bcd-{}.json"
RELEASING = f"{STATE}/releasing.json"
LOST = "(pending Kubernetes releases that could not be read)"
# Every event of the three passes, that which is disturbed the last; of one that is told of a hold, <time> is its own.
EVENTS = (
    *(f"bound-{name}-1-<time>.json" for name in ("gone", "gonek", "kept", "left0", "left1")),
    *(f"bound-{name}-3-<time>.json" for name in ("new1", "new2", "newk")),
    "failed-lacks-3.json",
    *(f"released-{name}-1-<time>.json" for name in ("gone", "gonek", "left0")),
)
TIME = re.compile(r"18000\d{5}")  # of the host's clock, which starts at 1,800,000,000
Between = Callable[[GpuHost, "Reader"], None]


def wishes(gpus: list[str]) -> list[dict[str, Any]]:
    """What the disturbed pass is to come to, with its new holds before those that it keeps."""
    return [
        assign("new1", gpus[1], limits=LIMITS, reservation_id="r1"),
        assign("new2", gpus[4], env=["HF_HOME=/data"]),
        assign("newk", f"{gpus[5]}/s0", f"{gpus[5]}/s1", binding=KUBERNETES),
        assign("lacks", gpus[0]),
        assign("kept", gpus[0], limits=LIMITS, env=["A=1"]),
    ]


@cache
def prepared() -> GpuHost:
    """Before that pass: three holds, one of them to be mended, and two pending releases, one of them free by now."""
    host = hold_host(*[H100] * 6)
    for folder in ("/sys/kernel/mm", "/sys/devices/system/node/node0"):
        host.put(f"{folder}/{POOL}", "64\n")
    gpus = uuids(host)
    kept = assign("kept", gpus[0], limits=LIMITS, env=["A=1"])
    gone = [assign("gone", gpus[1], limits=LIMITS), assign("gonek", gpus[2], binding=KUBERNETES)]
    left = [assign(f"left{at}", f"{gpus[3]}/s{at}", binding=KUBERNETES) for at in (0, 1)]
    assert go(host, kept, *gone, *left).state == "converged"
    stays = Pod("uid-2", "stays", (Container(devices=(f"{gpus[3]}_s1",)),))
    add_kubelet(host, Pod("uid-1", "trains", (Container(devices=(f"{gpus[3]}_s0",)),)), stays)
    done = go(host, kept, *gone, generation=2)
    assert done.found["releasing"] == ["left0", "left1"]
    del host.files["/var/lib/kubelet/pods/uid-1/etc-hosts"]
    add_kubelet(host, stays)
    del host.files[ENV.format("kept")]
    host.put(SPEC.format("kept"), (host.text(SPEC.format("kept")) or "") + "\n")
    return host


def machine() -> GpuHost:
    """A host of its own, a minute later."""
    host = copy.deepcopy(prepared())
    host.unix += 60
    host.calls.clear()
    return host


def clean(host: GpuHost) -> Outcome:
    return go(host, *wishes(uuids(host)), generation=3)


@cache
def undisturbed() -> GpuHost:
    host = machine()
    assert clean(host).state == "converged"
    return host


def shown(host: GpuHost) -> dict[str, str]:
    """All that there is of holds and slices, without the times, and without how events are numbered."""
    kept = {path: text for path, text in files(host).items() if not path.startswith(f"{STATE}/events/")}
    slices = {path: file.text for path, file in host.files.items() if path.startswith((TREE[1], CONTROL))}
    return {TIME.sub("<time>", path): TIME.sub("<time>", text) for path, text in {**kept, **slices}.items()}


def told(host: GpuHost) -> list[str]:
    """The ids of the journal without their times."""
    return sorted(TIME.sub("<time>", name) for name in host.names(f"{STATE}/events"))


class Reader:
    """Who reads the journal between passes, as the delivery does: every id has one content, whenever it is seen."""

    def __init__(self) -> None:
        self.bodies: dict[str, str] = {}
        self.accepted: set[str] = set()

    def read(self, host: GpuHost) -> list[str]:
        """The ids that are there to be delivered."""
        found, numbers = [], []
        for name in host.names(f"{STATE}/events"):
            record = json.loads(host.text(f"{STATE}/events/{name}") or "")
            numbers.append(record["sequence"])
            assert name == f"{record['id']}.json"
            assert self.bodies.setdefault(record["id"], record["body"]) == record["body"], record["id"]
            if not record.get("acknowledged"):
                assert record["id"] not in self.accepted, f"{record['id']} comes again after it was accepted"
                found.append(record["id"])
        assert len(set(numbers)) == len(numbers), "two events have one place in the order"
        return found

    def accept(self, host: GpuHost) -> None:
        """Read what is there, and acknowledge it."""
        names = self.read(host)
        self.accepted.update(names)
        assert promises.go(ACKNOWLEDGEMENT, host, {"acknowledge": names}).failure is None

    def seen(self) -> list[str]:
        """Every id that was ever seen, without its time."""
        return sorted(f"{TIME.sub('<time>', name)}.json" for name in self.bodies)


def held_apart(host: GpuHost, why: str) -> None:
    """No GPU is in two holds, nor in a hold and a pending release of another allocation."""
    owners: dict[str, set[str]] = {}
    for name in host.names(f"{STATE}/holds"):
        record = told_by(host, f"{STATE}/holds/{name}")
        for device in record.get("devices", ()):
            owners.setdefault(device["id"].partition("/")[0], set()).add(record["allocation_id"])
    for allocation, release in told_by(host, RELEASING).get("releases", {}).items():
        for device in release["devices"]:
            owners.setdefault(device["id"].partition("/")[0], set()).add(allocation)
    # Two slots of one GPU are two holds' from the start.
    assert [names for names in owners.values() if len(names) > 1 and names != {"left0", "left1"}] == [], why


def told_by(host: GpuHost, path: str) -> dict[str, Any]:
    """A record of root's; nothing where it is none, or cannot be made out."""
    try:
        found: dict[str, Any] = json.loads(host.text(path) or "{}")
    except ValueError:
        return {}
    return found


def quiet(host: GpuHost, why: str) -> None:
    calls = len(host.calls)
    assert clean(host).changed is False, why
    assert host.calls[calls:] == [], why


# -- what goes wrong, and what happens between


def killed(host: GpuHost, at: int) -> None:
    host.kill_at = at


def one_fails(host: GpuHost, at: int) -> None:
    """That change alone comes to nothing, as on a disk that has space again a moment later."""
    fail(host, lambda number, _path: number == at, errno.ENOSPC)


def disk_full(host: GpuHost, at: int) -> None:
    """No write succeeds from there on; files can still be removed."""
    fail(host, lambda number, _path: number >= at, errno.ENOSPC, ("write",))


def cdi_read_only(host: GpuHost, at: int) -> None:
    fail(host, lambda number, path: number >= at and path.startswith("/etc/cdi/"), errno.EROFS)


def state_read_only(host: GpuHost, at: int) -> None:
    fail(host, lambda number, path: number >= at and path.startswith(STATE), errno.EROFS)


def fail(host: GpuHost, is_due: Callable[[int, str], bool], number: int, kinds: tuple[str, ...] = ()) -> None:
    """Have changes of these kinds, all of files without any, fail where it is due."""
    for kind in kinds or ("write", "remove"):
        real = getattr(host, kind)

        def strike(path: str, *more: Any, real: Callable[..., None] = real) -> None:
            if is_due(len(host.calls) + 1, path):
                host.calls.append(f"fails {path}")
                raise OSError(number, os.strerror(number), path)
            real(path, *more)

        setattr(host, kind, strike)


def mended(host: GpuHost) -> None:
    host.kill_at = 0
    for kind in ("write", "remove"):
        vars(host).pop(kind, None)


def nothing(_host: GpuHost, _reader: Reader) -> None:
    pass


def acknowledged(host: GpuHost, reader: Reader) -> None:
    reader.accept(host)


def rebooted(host: GpuHost, _reader: Reader) -> None:
    """What lies in memory is gone: env files, slices and their properties."""
    for path in [path for path in host.files if path.startswith("/run/bcd/")]:
        del host.files[path]
    reboot_slices(host)


def disturbed(strike: Callable[[GpuHost, int], None], most: int = 200) -> Iterator[tuple[GpuHost, int]]:
    """A host on which the pass was disturbed at its first change, at its second, and so on to its last."""
    for at in range(1, most):
        host = machine()
        strike(host, at)
        try:
            clean(host)
        except Killed:
            pass
        struck = len(host.calls) >= at
        mended(host)
        if not struck:
            assert at > 30, "the pass does not do all that it should"
            return
        host.unix += 60
        yield host, at
    raise AssertionError(f"more than {most} changes in one pass")


CASES = [
    *((strike, nothing) for strike in (killed, one_fails, disk_full, cdi_read_only, state_read_only)),
    *((strike, acknowledged) for strike in (killed, one_fails)),
    (killed, rebooted),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("strike", "between"), CASES, ids=lambda each: each.__name__)
def test_the_next_pass_ends_as_if_nothing_had_been(strike: Callable[[GpuHost, int], None], between: Between) -> None:
    want = shown(undisturbed())
    assert told(undisturbed()) == list(EVENTS)
    for host, at in disturbed(strike):
        why = f"change {at}: {host.calls[at - 1]}"
        reader = Reader()
        reader.read(host)
        held_apart(host, why)
        between(host, reader)
        done = clean(host)
        assert (done.state, done.failure) == ("converged", None), why
        reader.read(host)
        assert shown(host) == want, why
        assert reader.seen() == list(EVENTS), why
        held_apart(host, why)
        quiet(host, why)


# -- and something is lost besides


def lost(host: GpuHost, path: str) -> None:
    host.files.pop(path, None)


def garbage(host: GpuHost, path: str) -> None:
    """A file that nobody can make out stands where one was, or is to be."""
    if path in host.files:
        host.put(path, '{"version": 1, "rel')


HURT = [RECORD.format(name) for name in ("new2", "gone", "kept")] + [SPEC.format(name) for name in ("new2", "gone")]
DAMAGE = [*((hurt, path) for hurt in (lost, garbage) for path in HURT), (lost, ENV.format("new1"))]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("hurt", "path"), DAMAGE, ids=lambda each: each if isinstance(each, str) else each.__name__)
def test_a_file_that_is_hurt_besides_costs_no_hold(hurt: Callable[[GpuHost, str], None], path: str) -> None:
    """What nobody can make out any more stays claimed and is said; everything else converges."""
    for host, at in disturbed(killed):
        why = f"change {at}: {host.calls[at - 1]}"
        reader = Reader()
        reader.read(host)
        hurt(host, path)
        done = clean(host)
        reader.read(host)
        held_apart(host, why)
        quiet(host, why)
        if done.state == "failed":
            assert done.failure is not None
            assert path in done.failure.message, why
            continue
        assert (done.state, done.failure) == ("converged", None), why
        assert sorted(done.found["held"]) == ["kept", "new1", "new2", "newk"], why
        ids = sorted(name.rpartition("-")[0] if name.count("-") == 3 else name for name in reader.bodies)
        assert len(set(ids)) == len(ids), (why, ids)


@pytest.mark.exhaustive
def test_releases_that_are_lost_besides_claim_every_gpu_until_their_pods_are_gone() -> None:
    for host, at in disturbed(killed):
        why = f"change {at}: {host.calls[at - 1]}"
        reader = Reader()
        reader.read(host)
        before = set(host.names(f"{STATE}/holds"))
        host.put(RELEASING, '{"version": 1, "rel')
        done = clean(host)
        reader.read(host)
        assert (done.state, [one.type for one in done.conditions]) == ("converged", ["KubernetesReleasesUnreadable"]), (
            why
        )
        kept = [name for name in host.names(STATE) if name.startswith("releasing.json.unreadable-")]
        assert [host.text(f"{STATE}/{name}") for name in kept] == ['{"version": 1, "rel'], why
        # What was there stays, and nothing comes to it.
        stays = {name.removesuffix(".json") for name in before} & {"kept", "new1", "new2", "newk"}
        assert set(done.found["held"]) == stays, why
        claimed = {name: message for name, (_reason, message) in reasons(done).items() if name != "lacks"}
        assert set(claimed) == {"new1", "new2", "newk"} - stays, why
        assert all(text.endswith(f" is assigned to {LOST}") for text in claimed.values()), why
        quiet(host, why)

        add_kubelet(host)
        for path in [path for path in host.files if path.startswith("/var/lib/kubelet/pods/")]:
            del host.files[path]
        done = clean(host)
        reader.read(host)
        assert (done.state, done.conditions) == ("converged", ()), why
        assert done.found["held"] == ["kept", "new1", "new2", "newk"], why
        held_apart(host, why)
        quiet(host, why)
