# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a pod has a device: every name that a plugin may have of it, and none that is another's."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Card
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pod_devices import (
    ANY,
    Account,
    Holders,
    Process,
    halves,
    key,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pod_resources import Use, dynamic

A, B = (f"GPU-5f1c2a90-0000-4000-8000-00000000000{at}" for at in (1, 2))
MIG, OTHER = (f"MIG-0f1b7064-c96d-5f72-b79f-b5d83f47805{at}" for at in (4, 5))
CARDS = (Card(A, mig={(1, 0): MIG, (11, 0): OTHER}), Card(B))
UID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
KEYS = {uuid: uuid.lower() for uuid in (A, B)}


def has(name: str, device: str, cards: tuple[Card, ...] = CARDS) -> bool:
    return bool(Holders(Account((Use((name,), "pod n/p"),)), cards).who(device))


def dra(device: str, *cdi: str, driver: str = "gpu.example.com") -> Use:
    return dynamic(driver, "node-1", device, list(cdi), "pod n/p")


# -- names


@pytest.mark.parametrize(
    ("name", "device"),
    [
        (A, A),
        (A.lower(), A),
        (f"{A}::3", A),  # a replica of NVIDIA's plugin
        (f"bcd.dev/gpu={A}", A),
        (f"{A}/gi1/ci0", f"{A}/gi1/ci0"),
        (f"{A}_gi1_ci0", f"{A}/gi1/ci0"),
        (f"{A.lower()}-gi1-ci0", f"{A}/gi1/ci0"),  # a DRA device: no capital letter, no "_"
        (f"bcd.dev/gpu={A}_gi1_ci0", f"{A}/gi1/ci0"),
        (MIG, f"{A}/gi1/ci0"),
        (f"{MIG}::0", f"{A}/gi1/ci0"),
        (f"nvidia.com/gpu={MIG}", f"{A}/gi1/ci0"),
        (f"{A}/s3", f"{A}/s3"),
        (f"{A}_s3", f"{A}/s3"),
        (A, f"{A}/s3"),  # a plugin may know the slots' GPU alone
        (A, f"{A}/gi1/ci0"),  # who has the whole has the part
        (f"{A}_s3", A),  # and who has a part keeps the whole
        (f"{A}_gi1_ci0", A),
        (MIG, A),
        (MIG, MIG),
    ],
)
def test_a_name_of_the_device(name: str, device: str) -> None:
    assert has(name, device)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        (B, A),
        (A + "0", A),
        (A[:-1], A),
        (f"{A}_s30", f"{A}/s3"),
        (f"{A}_s3", f"{A}/s30"),
        (f"{A}_s3", f"{B}/s3"),
        (f"{A}_gi11_ci0", f"{A}/gi1/ci0"),
        (f"{A}_gi1_ci0", f"{A}/gi11/ci0"),
        (OTHER, f"{A}/gi1/ci0"),
        (MIG, B),
        ("0000:3b:02.1", A),
        ("gpu-0", A),
        ("", A),
        ("vendor.example/nic=eth0", A),
    ],
)
def test_a_name_of_something_else(name: str, device: str) -> None:
    assert not has(name, device)


def test_a_mig_device_that_is_not_listed_may_be_any_gpu_s() -> None:
    unknown = "MIG-99999999-c96d-5f72-b79f-b5d83f478054"
    assert all(has(unknown, device) for device in (A, B, f"{B}/s1", f"{A}/gi1/ci0"))
    assert all(has(MIG, device, ()) for device in (A, B))


def test_keys_of_different_ids_differ() -> None:
    ids = [f"{A}{part}" for part in ("", "/s1", "/s11", "/gi1/ci0", "/gi1/ci10", "/gi11/ci0")]
    assert len({key(each) for each in ids}) == len(ids)
    assert [halves(key(each)) for each in ids] == [(KEYS[A], part != "") for part in ("", *"12345")]


# -- dynamic resources


@pytest.mark.parametrize(
    "use",
    [
        dra(KEYS[A]),
        dra("any-name", f"bcd.dev/gpu={A}"),
        dra("any-name", "other.example/x=y", f"bcd.dev/gpu={A}_s3"),
        dra("any-name", "nvidia.com/gpu=all"),
        dra("gpu-7", driver="gpu.nvidia.com"),  # by the node's number, which the driver has
        dra("gpu-7-mig-1g.10gb-19-0", driver="gpu.nvidia.com"),
        dra("gpu-9", driver="gpu.nvidia.com"),  # a number that it does not have may be any GPU's
        dra("vfio-0", driver="gpu.nvidia.com"),
    ],
)
def test_a_dynamic_resource_that_is_the_device(use: Use) -> None:
    assert Holders(Account((use,), minors={7: A, 8: B}), CARDS).who(A)


@pytest.mark.parametrize(
    "use",
    [
        dra(KEYS[B]),
        dra("gpu-0"),  # of whom no driver of NVIDIA's speaks
        dra("gpu-7"),
        dra("eth0", "other.example/nic=eth0", driver="gpu-nic.example.com"),
        dra("gpu-8", driver="gpu.nvidia.com"),
        dra("channel-0", driver="compute-domain.nvidia.com"),
        dra("any-name", f"bcd.dev/gpu={B}"),
    ],
)
def test_a_dynamic_resource_that_is_another(use: Use) -> None:
    assert not Holders(Account((use,), minors={7: A, 8: B}), CARDS).who(A)


# -- processes


def process(*gpus: str, uid: str = UID) -> Process:
    return Process(41, "python3", uid, frozenset(gpus))


def who(device: str, process: Process, *uses: Use, minors: dict[int, str] | None = None) -> str:
    return Holders(Account(uses, (process,), minors=minors or {0: A, 1: B}), CARDS).who(device)


def given(device: str) -> Use:
    return Use((device,), f"pod {UID}", UID)


def test_an_open_node_is_a_hold_of_the_gpu_and_of_its_parts() -> None:
    assert who(A, process(KEYS[A])) == f"process 41 (python3) of pod {UID} has it open"
    assert who(A, process(KEYS[A], uid="")) == "process 41 (python3) of a pod has it open"
    assert who(f"{A}/gi1/ci0", process(KEYS[A]))
    assert who(f"{A}/s3", process(KEYS[A]))
    assert who(A, process(KEYS[B])) == ""


def test_a_pod_that_was_given_another_part_has_the_gpu_open_for_that() -> None:
    assert who(f"{A}/s3", process(KEYS[A]), given(f"{A}_s4")) == ""
    assert who(f"{A}/gi1/ci0", process(KEYS[A]), given(OTHER)) == ""
    assert who(f"{A}/s3", process(KEYS[A]), given(B))
    assert who(f"{A}/s3", process(KEYS[A], uid="other"), given(f"{A}_s4"))
    assert who(f"{A}/s3", process(KEYS[A]), given(f"{A}_s3"))
    assert who(A, process(KEYS[A]), given(B))


def test_a_node_that_is_nobody_s_is_of_every_gpu_whose_node_is_not_known() -> None:
    assert who(A, process(ANY), minors={1: B})
    assert who(B, process(ANY), minors={1: B}) == ""


def test_unified_memory_alone_tells_no_gpu() -> None:
    assert who(A, process())
    assert who(A, process(), given(B)) == ""
    assert who(A, process(), given(A))


# -- the sentence


def test_who_has_it_is_named_by_name_where_the_list_has_it() -> None:
    listed, noted = Use((A,), "pod n/p"), given(A)
    assert Holders(Account((noted, listed))).who(A) == "pod n/p has it"
    assert Holders(Account((noted,))).who(A) == f"pod {UID} has it"


def test_many_are_counted() -> None:
    uses = tuple(Use((A,), f"pod n/{name}") for name in "abcdd")
    assert Holders(Account(uses[:2])).who(A) == "pod n/a and pod n/b have it"
    assert Holders(Account(uses)).who(A) == "pod n/a, pod n/b and 2 more have it"


def test_what_could_not_be_read_counts_as_held_and_says_why() -> None:
    account = Account((Use((B,), "pod n/p"),), faults=("the kubelet hangs", "a file is damaged"))
    assert Holders(account).who(A) == "who has it is not known (the kubelet hangs; a file is damaged)"
    assert Holders(account).who(B) == "pod n/p has it"
    assert Holders(Account()).who(A) == ""


# -- strangers


def strangers(
    known: tuple[str, ...], *uses: Use, processes: tuple[Process, ...] = (), faults: tuple[str, ...] = ()
) -> str:
    return Holders(Account(uses, processes, faults, {0: A, 1: B}), CARDS).strangers(known)


def test_a_pod_with_a_gpu_that_nobody_here_knows_of_is_a_stranger() -> None:
    assert strangers((), Use((A,), "pod n/p")) == f"pod n/p has {A}"
    assert strangers((B,), Use((A,), "pod n/p"))
    assert strangers((f"{A}/s1",), Use((f"{A}_s2",), "pod n/p"))
    assert strangers((f"{A}/gi1/ci0",), Use((OTHER,), "pod n/p"))
    assert strangers((A, B), Use(("MIG-99999999-c96d-5f72-b79f-b5d83f478054",), "pod n/p"))


def test_what_is_known_and_what_is_no_gpu_is_none() -> None:
    assert strangers(()) == ""
    assert strangers((A,), Use((A,), "pod n/p"), Use((f"{A}_s2",), "pod n/q")) == ""
    assert strangers((f"{A}/s1",), Use((A,), "pod n/p")) == ""
    assert strangers((f"{A}/gi1/ci0",), Use((MIG,), "pod n/p")) == ""
    assert strangers((), Use(("0000:3b:02.1",), "pod n/p"), dra("gpu-0")) == ""
    assert strangers((B,), dra("any-name", f"bcd.dev/gpu={B}")) == ""


def test_open_nodes_and_what_could_not_be_read() -> None:
    assert strangers((B,), processes=(process(KEYS[A]),)) == f"process 41 (python3) of pod {UID} has a GPU open"
    assert strangers((A, B), processes=(process(ANY),))
    assert strangers((A, B), processes=(process(),))
    assert strangers((A,), processes=(process(KEYS[A]),)) == ""
    assert strangers((A,), given(A), processes=(process(KEYS[B]),))
    assert strangers((A,), given(A), processes=(process(),)) == ""
    assert strangers((A,), faults=("the kubelet hangs",)) == "the kubelet hangs"
