# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated machine: what a reload and a reboot leave, faults at a call, placement, and a way into a file."""

from __future__ import annotations

import pytest

from tests.gpu import nodes
from tests.gpu.model import Fault, Hang, Machine
from tests.gpu.products import products

MIG_PRODUCTS = [key for key, one in products().items() if one.mig]


def words(line: str) -> tuple[str, ...]:
    return ("nvidia-smi", *line.split())


def partitioned(product: str, layout: str) -> Machine:
    machine = Machine.from_products([product])
    assert machine.smi(words("-i 0 -mig 1"))[0] == 0
    assert machine.smi(words(f"mig -i 0 -cgi {layout} -C"))[0] == 0
    return machine


def test_there_are_fifteen_products_with_mig() -> None:
    assert len(MIG_PRODUCTS) == 15


@pytest.mark.parametrize("key", MIG_PRODUCTS)
def test_every_product_takes_as_many_of_a_profile_as_its_table_says(key: str) -> None:
    for profile in products()[key].profiles:
        machine = Machine.from_products([key], "580.95.05")
        machine.smi(words("-i 0 -mig 1"))
        made = ",".join([profile.name] * profile.most)
        assert machine.smi(words(f"mig -i 0 -cgi {made} -C"))[0] == 0, made
        assert machine.instances(0) == [profile.name] * profile.most
        assert machine.smi(words(f"mig -i 0 -cgi {profile.name}"))[0] == 23


def test_hopper_loses_its_mode_and_ampere_keeps_it() -> None:
    hopper, ampere = partitioned("H100-80GB", "3g.40gb"), partitioned("A100-40GB", "3g.20gb")
    for machine in (hopper, ampere):
        machine.reboot()
        assert machine.instances(0) == []
    assert not hopper.cards[0].mig
    assert ampere.cards[0].mig


def test_a_reload_forgets_power_limits_and_keeps_pending_ecc() -> None:
    machine = Machine.from_products(["H100-80GB"])
    machine.smi(words("-i 0 -pl 500"))
    machine.smi(words("-i 0 -e 0"))
    assert (machine.cards[0].power, machine.cards[0].ecc, machine.cards[0].ecc_pending) == (500, True, False)
    machine.reload()
    assert (machine.cards[0].power, machine.cards[0].ecc) == (700, True)
    machine.reboot()
    assert not machine.cards[0].ecc


def test_an_instance_in_use_stays() -> None:
    machine = partitioned("H100-80GB", "3g.40gb,1g.10gb")
    machine.occupy(0, gi=2)
    rc, text = machine.smi(words("mig -i 0 -dci"))
    assert (rc, text.splitlines()[-1]) == (19, "Failed to destroy compute instances: In use by another client")
    assert machine.instances(0) == ["1g.10gb: none", "3g.40gb"]


def test_other_boards_number_their_halves_swapped() -> None:
    machine = Machine.from_products(["A100-40GB"], "510.47.03", gi_ids="swapped")
    machine.smi(words("-i 0 -mig 1"))
    machine.smi(words("mig -cgi 3g.20gb:4,1g.5gb:0"))
    assert [(gi.start, gi.id) for gi in machine.cards[0].instances] == [(4, 1), (0, 11)]


def test_a_failed_create_leaves_what_was_made_before() -> None:
    machine = Machine.from_products(["H100-80GB"])
    machine.smi(words("-i 0 -mig 1"))
    rc, text = machine.smi(words("mig -i 0 -cgi 3g.40gb,3g.40gb,1g.10gb"))
    assert rc == 23
    assert text.splitlines()[-2:] == [
        "Unable to create a GPU instance on GPU  0 using profile 1g.10gb: Insufficient Resources",
        "Failed to create GPU instances: Insufficient Resources",
    ]
    assert machine.instances(0) == ["3g.40gb: none", "3g.40gb: none"]


def test_faults_by_call() -> None:
    machine = Machine.from_products(["H100-80GB"] * 2)
    machine.faults = [
        Fault("-mig 1", do="lie", times=1),
        Fault("-pl", rc=4, text="no\n", after=1),
        Fault("-L", do="hang"),
    ]
    assert machine.smi(words("-i 0 -mig 1"))[1].startswith("Enabled MIG Mode for GPU 00000000:17:00.0\n")
    assert [card.mig for card in machine.cards] == [False, False]
    machine.smi(words("-i 0 -mig 1"))
    assert [card.mig for card in machine.cards] == [True, False]
    assert machine.smi(words("-i 0 -pl 500"))[0] == 0
    assert machine.smi(words("-i 1 -pl 500")) == (4, "no\n")
    assert (machine.cards[0].power, machine.cards[1].power) == (500, 700)
    with pytest.raises(Hang):
        machine.smi(words("-L"))


def test_a_dead_gpu_leaves_the_others_their_values() -> None:
    machine = Machine.from_products(["H100-80GB"] * 2)
    machine.cards[0].dead = "fields"
    line = "--query-gpu=index,power.limit,mig.mode.current --format=csv,noheader,nounits"
    assert machine.smi(words(line)) == (0, "0, [GPU is lost], [GPU is lost]\n1, 700.00, Disabled\n")
    machine.cards[0].dead = "handle"
    assert machine.smi(words(line))[0] == 15
    assert machine.smi(words(f"-i {machine.cards[1].uuid} {line}")) == (0, "1, 700.00, Disabled\n")


def test_a_gpu_goes_by_index_uuid_and_address() -> None:
    machine = Machine.from_products(["L40S", "T4"])
    card = machine.cards[1]
    for name in ("1", card.uuid, card.pci, card.pci.lower(), card.pci[4:], card.pci[9:]):
        assert machine.find(name) == [card], name
    assert machine.find("2") == []


def test_a_machine_goes_into_a_file_and_comes_back() -> None:
    machine = partitioned("A100-80GB", "3g.40gb,2g.20gb")
    machine.occupy(0, gi=1)
    machine.faults = [Fault("mig", do="hang")]
    again = Machine.load(machine.dump())
    assert again.dump() == machine.dump()
    assert again.instances(0) == ["2g.20gb", "3g.40gb"]


def test_the_kernel_shows_instances_and_who_has_their_nodes_open() -> None:
    machine = partitioned("H100-80GB", "3g.40gb,2g.20gb,1g.10gb,1g.10gb")
    machine.occupy(0, pid=77, gi=2)
    files, links = nodes.files(machine), nodes.links(machine)
    # As the toolkit's recorded specification has it: 3g.40gb is instance 2, with nodes 21 and 22.
    for minor in (21, 22, 30, 31, 84, 85, 93, 94):
        assert f"/dev/nvidia-caps/nvidia-cap{minor}" in files
    opened = {target for path, target in links.items() if path.startswith("/proc/77/fd/")}
    assert {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"} <= opened
    assert files["/sys/module/nvidia/refcnt"] == "3\n"  # two modules and a process
