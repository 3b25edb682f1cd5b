# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""container-toolkit: the vendor's CDI specification follows the host; the old one stays until a new one is whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, File, run
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cdi import device_names
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.container_toolkit_generate import read
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.container_toolkit import UNIT
from tests import captures
from tests.gpu.model import Fault, Machine
from tests.unit.cdi_rules import is_taken
from tests.unit.container_host import REFRESH_ENV, SPEC, STAMP, ContainerHost
from tests.unit.fake_host import FakeHost
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet

NO_DRIVER = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
OLD = "/etc/cdi/nvidia.yaml"
RUN = "/run/cdi/nvidia.yaml"
NAMES = ["GPU-00000000-0000-4000-8000-000000000000", "GPU-00000001-0000-4000-8000-000000000001"]


def two_gpus() -> ContainerHost:
    return ContainerHost(Machine.from_products(["H100-80GB", "H100-80GB"]))


def described() -> ContainerHost:
    """A host that had its pass."""
    host = two_gpus()
    assert go(UNIT, host, {}).state == "converged"
    return host


def names(host: ContainerHost) -> list[str]:
    return [*device_names(host.spec())]


def said(outcome: Outcome) -> str:
    assert outcome.failure is not None
    return outcome.failure.message


def with_mig(host: ContainerHost, *profiles: str) -> None:
    """GPU 1 in MIG mode with these instances."""
    host.machine.smi(("nvidia-smi", "-i", "1", "-mig", "1"))
    if profiles:
        rc, text = host.machine.smi(("nvidia-smi", "mig", "-i", "1", "-cgi", ",".join(profiles), "-C"))
        assert rc == 0, text


def vendor(*devices: str, kind: str = "nvidia.com/gpu") -> dict[str, Any]:
    edits = {"deviceNodes": [{"path": "/dev/nvidia0"}]}
    return {
        "cdiVersion": "0.3.0",
        "kind": kind,
        "devices": [{"name": name, "containerEdits": edits} for name in devices],
        "containerEdits": {},
    }


def yaml(*devices: str) -> str:
    edits = "      containerEdits:\n        deviceNodes:\n            - path: /dev/nvidia0\n"
    named = "".join(f"    - name: {name}\n{edits}" for name in devices)
    return f"---\ncdiVersion: 0.3.0\nkind: nvidia.com/gpu\ndevices:\n{named}"


def answering(answer: Answer) -> Callable[[FakeHost, tuple[str, ...]], Answer]:
    """An nvidia-ctk whose cdi generate answers this."""

    def program(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        return answer if "generate" in argv else Answer(0, "NVIDIA Container Toolkit CLI version 1.17.8\n")

    return program


def test_the_specification_names_every_device_by_uuid() -> None:
    host = described()
    assert names(host) == [*NAMES, "all"]
    assert is_taken(host.spec())
    assert json.loads(host.text(STAMP) or "")["version"] == 1
    second_pass_is_quiet(UNIT, host, {})


def test_check_mode_is_truthful_and_shows_the_specification() -> None:
    check_is_truthful(UNIT, two_gpus, {})
    planned = go(UNIT, two_gpus(), {}, check=True)
    assert any(NAMES[0] in str(part["after"]) for part in planned.diff)


def test_a_kill_anywhere_loses_nothing() -> None:
    def machine() -> ContainerHost:
        host = two_gpus()
        host.unpack(refresh=True)
        host.put(OLD, yaml("0"))
        host.put(RUN, yaml("0"))
        return host

    def shown(host: Any) -> object:
        return {path: file.text for path, file in host.files.items() if path.startswith(("/etc", "/run/cdi"))}

    assert a_kill_loses_nothing(UNIT, machine, {}, shown) == 10


# -- what makes it anew


def new_driver(host: ContainerHost) -> None:
    host.machine.loaded = host.machine.library = host.machine.disk = "580.95.05"


def new_toolkit(host: ContainerHost) -> None:
    host.machine.toolkit = "1.18.1"


def new_node(host: ContainerHost) -> None:
    host.put("/dev/nvidia-caps-imex-channels/channel0", "")


def new_socket(host: ContainerHost) -> None:
    host.put("/run/nvidia-persistenced/socket", "")


def new_layout(host: ContainerHost) -> None:
    with_mig(host, "3g.40gb", "1g.10gb")


def a_path_gone(host: ContainerHost) -> None:
    spec = host.spec()
    spec["containerEdits"]["mounts"].append({"hostPath": "/usr/lib/old.so.1", "containerPath": "/usr/lib/old.so.1"})
    host.put(SPEC, json.dumps(spec))


def broken(host: ContainerHost) -> None:
    host.put(SPEC, "{")


def unsound(host: ContainerHost) -> None:
    host.put(SPEC, (host.text(SPEC) or "").replace('"path"', '"pfad"'))


def twice(host: ContainerHost) -> None:
    host.put(SPEC, (host.text(SPEC) or "") * 2)


def closed(host: ContainerHost) -> None:
    host.files[SPEC] = File(host.text(SPEC) or "", 0o600)


def removed(host: ContainerHost) -> None:
    del host.files[SPEC]


def stamp_lost(host: ContainerHost) -> None:
    del host.files[STAMP]


@pytest.mark.parametrize(
    "change",
    [
        new_driver,
        new_toolkit,
        new_node,
        new_socket,
        new_layout,
        a_path_gone,
        broken,
        unsound,
        twice,
        closed,
        removed,
        stamp_lost,
    ],
)
def test_it_follows_the_host(change: Callable[[ContainerHost], None]) -> None:
    host = described()
    change(host)
    done = go(UNIT, host, {})
    assert (done.state, done.changed) == ("converged", True)
    assert host.files[SPEC].mode == 0o644
    assert is_taken(host.spec())
    assert "old.so" not in (host.text(SPEC) or "")
    if change is new_driver:
        assert "libcuda.so.580.95.05" in (host.text(SPEC) or "")
        assert "550.163.01" not in (host.text(SPEC) or "")
    second_pass_is_quiet(UNIT, host, {})


def test_a_new_layout_is_described_by_its_mig_devices() -> None:
    host = described()
    new_layout(host)
    go(UNIT, host, {})
    listed = host.machine.smi(("nvidia-smi", "-L"))[1]
    found = names(host)
    assert found[0] == NAMES[0]
    assert NAMES[1] not in found
    assert len([name for name in found if name.startswith("MIG-") and name in listed]) == 2


@pytest.mark.parametrize("profiles", [(), ("3g.40gb", "1g.10gb")])
def test_devices_in_the_place_of_others_with_the_same_nodes_are_described(profiles: tuple[str, ...]) -> None:
    """A GPU taken out and another put into its slot, MIG devices of the same layout on it."""
    host = two_gpus()
    if profiles:
        with_mig(host, *profiles)
    go(UNIT, host, {})
    before, nodes = names(host), (host.names("/dev"), host.names("/dev/nvidia-caps"))
    host.machine.cards[1].uuid = "GPU-0000000f-0000-4000-8000-00000000000f"
    assert go(UNIT, host, {}).state == "converged"
    listed = host.machine.smi(("nvidia-smi", "-L"))[1]
    found = names(host)
    assert (host.names("/dev"), host.names("/dev/nvidia-caps")) == nodes
    assert found[0] == NAMES[0]
    assert len(found) == len(before) == 2 + max(1, len(profiles))
    assert not set(found[1:-1]) & set(before)
    assert [name for name in found[:-1] if name not in listed] == []
    second_pass_is_quiet(UNIT, host, {})


def test_a_mig_device_of_another_profile_with_the_same_nodes_is_asked_for_anew() -> None:
    host = described()
    with_mig(host, "3g.40gb")
    go(UNIT, host, {})
    nodes = host.names("/dev/nvidia-caps")
    [gi] = host.machine.cards[1].instances
    gi.profile = next(row.id for row in host.machine.cards[1].kind.profiles if row.name == "4g.40gb")
    host.asked.clear()
    go(UNIT, host, {})
    assert host.names("/dev/nvidia-caps") == nodes
    assert [argv for argv in host.asked if argv[:3] == ("nvidia-ctk", "cdi", "generate")]


def test_a_gpu_whose_mig_mode_alone_changes_is_described_anew() -> None:
    """In MIG mode without instances it is listed as before, and nvidia-ctk has no device for it."""
    host = described()
    assert names(host) == [*NAMES[:2], "all"]
    with_mig(host)
    assert go(UNIT, host, {}).state == "converged"
    assert names(host) == [NAMES[0], "all"]
    second_pass_is_quiet(UNIT, host, {})
    host.machine.smi(("nvidia-smi", "-i", "1", "-mig", "0"))
    assert go(UNIT, host, {}).state == "converged"
    assert names(host) == [*NAMES[:2], "all"]


def test_after_a_boot_without_change_nothing_is_done() -> None:
    host = described()
    host.boot()
    second_pass_is_quiet(UNIT, host, {})


def test_what_the_steered_service_wrote_counts_as_ours() -> None:
    host = two_gpus()
    host.unpack(refresh=True)
    go(UNIT, host, {})
    host.put(SPEC, json.dumps(host.spec()))  # by nvidia-ctk itself, on one line
    second_pass_is_quiet(UNIT, host, {})


def test_without_a_driver_it_waits_and_the_rest_goes_on() -> None:
    host = ContainerHost(Machine([]), {"docker": "28.5.2"})
    waits = go(UNIT, host, {})
    assert [wait.reason for wait in waits.pending] == ["NotReady"]
    assert "no NVIDIA driver is loaded" in waits.pending[0].message
    assert host.restarts == ["docker"]
    assert host.text(SPEC) is None


def test_check_mode_behind_a_change_of_the_layout_or_the_driver_says_known_after() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
    from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
    from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge

    for program in ("nvidia-smi -L", "nvidia-ctk cdi generate"):
        host = described()
        new_node(host)
        seen = PredictedHost(host)
        seen.apply(run(("x",), "x", effects=(Effect("program", program, "the layout of GPU 1 is made"),)))
        planned = converge(Goal(UNIT, {}), seen, Records(seen))
        assert [step.action for step in planned.steps] == [f"{SPEC}: known after the layout of GPU 1 is made"]


# -- the old one stays until a new one is whole


FAILURES = {
    "ctk_cdi_no_gpus": ("NotReady", "finds no device"),
    "ctk_cdi_driver_not_loaded": ("NotReady", "finds no driver loaded"),
    "ctk_cdi_lib_mismatch": ("RebootRequired", "reboot the node"),
}


@pytest.mark.parametrize("name", sorted(FAILURES))
def test_recorded_failures_each_have_a_sentence(name: str) -> None:
    host = described()
    before = host.text(SPEC)
    new_node(host)
    host.programs["nvidia-ctk"] = answering(captures.session(name)[0].answer)
    waits = go(UNIT, host, {})
    reason, words = FAILURES[name]
    assert [(wait.reason, words in wait.message) for wait in waits.pending] == [(reason, True)]
    assert (waits.failure, host.text(SPEC)) == (None, before)


def test_only_empty_mig_gpus_are_a_state_of_their_own() -> None:
    host = ContainerHost(Machine.from_products(["H100-80GB", "H100-80GB"]))
    for index in ("0", "1"):
        host.machine.smi(("nvidia-smi", "-i", index, "-mig", "1"))
    waits = go(UNIT, host, {})
    assert "no GPU, or only GPUs in MIG mode without instances" in waits.pending[0].message
    assert waits.state == "progressing"


def changed_spec(change: Callable[[dict[str, Any]], object]) -> Answer:
    spec = json.loads(captures.session("ctk_cdi_full_gpu_json_uuid")[0].text)
    change(spec)
    return Answer(0, json.dumps(spec))


WRONG = {
    "exit status": (Answer(1, "", 'time="x" level=error msg="failed in sandbox utils"\n'), "failed in sandbox utils"),
    "killed": (Answer(137, ""), "exited with 137: it said nothing"),
    "lie": (Answer(0, ""), "prints no CDI specification"),
    "half": (Answer(0, '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "dev'), "prints no CDI specification"),
    "another kind": (Answer(0, json.dumps(vendor("a", kind="x.com/gpu"))), "prints no CDI specification"),
    "no device": (Answer(0, json.dumps(vendor())), "(it has no device)"),
    "no edit": (
        changed_spec(lambda spec: spec["devices"][0].update(containerEdits={})),
        "has no edit",
    ),
    "version": (changed_spec(lambda spec: spec["devices"][0].update(name="0")), "what it says needs 0.5.0"),
    "missing path": (changed_spec(lambda spec: spec), "which this host lacks"),
}


@pytest.mark.parametrize("kind", sorted(WRONG))
def test_a_specification_that_is_not_whole_is_never_put_in_place(kind: str) -> None:
    host = described()
    before = host.text(SPEC), host.text(STAMP)
    new_node(host)
    answer, words = WRONG[kind]
    good = host.programs["nvidia-ctk"]
    host.programs["nvidia-ctk"] = answering(answer)
    failed = go(UNIT, host, {})
    assert words in said(failed)
    assert failed.state == "progressing"
    assert (host.text(SPEC), host.text(STAMP)) == before
    host.programs["nvidia-ctk"] = good
    assert go(UNIT, host, {}).state == "converged"


def test_a_specification_without_a_gpu_of_the_listing_is_not_taken() -> None:
    host = described()
    before = json.loads(host.text(SPEC) or "")
    new_node(host)
    before["devices"] = before["devices"][1:]
    host.programs["nvidia-ctk"] = answering(Answer(0, json.dumps(before)))
    assert f"nvidia-ctk leaves out {NAMES[0]}" in said(go(UNIT, host, {}))


def test_a_gpu_in_mig_mode_without_instances_is_left_out() -> None:
    host = described()
    with_mig(host)
    new_node(host)
    assert go(UNIT, host, {}).state == "converged"
    assert names(host) == [NAMES[0], "all"]


def test_a_specification_without_a_mig_device_of_the_listing_is_not_taken() -> None:
    host = described()
    before = host.text(SPEC)
    new_layout(host)
    host.programs["nvidia-ctk"] = answering(Answer(0, before or ""))
    assert "nvidia-ctk leaves out MIG-" in said(go(UNIT, host, {}))
    assert host.text(SPEC) == before


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (Fault("cdi generate", "hang"), "progressing"),
        (Fault("cdi generate", "say", 1, "something new"), "progressing"),
        (Fault("-L", "hang"), "progressing"),
        (Fault("-L", "say", 9, NO_DRIVER), "progressing"),
        (Fault("-L", "say", 255, "Failed to initialize NVML: Unknown Error\n"), "progressing"),
        (Fault("-L", "say", 0, "GPU what"), "progressing"),
    ],
)  # fmt: skip
def test_a_fault_never_reads_as_converged(fault: Fault, state: str) -> None:
    host = described()
    new_node(host)
    host.machine.faults = [fault]
    assert go(UNIT, host, {}).state == state
    host.machine.faults = []
    assert go(UNIT, host, {}).state == "converged"
    second_pass_is_quiet(UNIT, host, {})


def test_a_lost_gpu_is_named_and_the_old_specification_stays() -> None:
    host = ContainerHost(Machine.from_products(["H100-80GB"] * 8), {"docker": "28.5.2"})
    go(UNIT, host, {"runtimes": []})
    before = host.text(SPEC)
    host.machine.cards[7].dead = "handle"  # behind seven lines of listing
    lost = go(UNIT, host, {})
    pci = host.machine.cards[7].pci[4:]
    assert said(lost).startswith(f"GPU {pci} does not answer, and until it does no new {SPEC} is made, of the other")
    assert (lost.state, host.text(SPEC), host.restarts) == ("progressing", before, ["docker"])
    host.machine.cards[7].dead = ""
    assert go(UNIT, host, {}).state == "converged"


# -- other specifications


def test_what_older_versions_wrote_goes() -> None:
    host = two_gpus()
    host.put(OLD, yaml("0", *NAMES))
    done = go(UNIT, host, {})
    assert done.state == "converged"
    assert host.text(OLD) is None
    assert lines(done)[-1] == f"remove {OLD}, since two files of a folder would define the devices of {SPEC} twice"


def test_what_the_refresh_service_wrote_before_it_was_steered_goes() -> None:
    host = two_gpus()
    host.unpack(refresh=True)
    host.put(RUN, yaml(*NAMES))
    assert go(UNIT, host, {}).state == "converged"
    assert host.text(RUN) is None
    assert "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/etc/cdi/nvidia.json" in (host.text(REFRESH_ENV) or "")
    second_pass_is_quiet(UNIT, host, {})


def test_anothers_specification_that_outranks_ours_is_named() -> None:
    host = described()
    host.put("/run/cdi/operator.yaml", yaml(*NAMES))
    done = go(UNIT, host, {})
    assert done.notes[0].startswith(
        "/run/cdi/operator.yaml describes nvidia.com/gpu too and outranks /etc/cdi/nvidia.json"
    )
    assert (done.state, done.changed) == ("converged", False)


def test_a_device_is_never_left_in_two_files_of_one_directory() -> None:
    host = two_gpus()
    host.put("/etc/cdi/mine.json", json.dumps(vendor(NAMES[1])))
    failed = go(UNIT, host, {})
    assert said(failed).startswith(f"/etc/cdi/mine.json defines nvidia.com/gpu={NAMES[1]} as /etc/cdi/nvidia.json does")
    assert failed.state == "failed"
    assert host.text(SPEC) is None
    del host.files["/etc/cdi/mine.json"]
    assert go(UNIT, host, {}).state == "converged"
    host.put("/etc/cdi/mine.json", json.dumps(vendor(NAMES[1])))
    assert go(UNIT, host, {}).state == "failed"


def test_other_kinds_and_holds_of_ours_are_no_concern() -> None:
    host = described()
    host.put("/etc/cdi/bcd-a1.json", json.dumps(vendor(*NAMES)))
    host.put("/etc/cdi/net.json", json.dumps(vendor(*NAMES, kind="vendor.com/net")))
    host.put("/etc/cdi/gdrcopy.yaml", "cdiVersion: [flow]\nkind: nvidia.com/gdrcopy\n")
    assert len(second_pass_is_quiet(UNIT, host, {}).notes) == 1


def test_one_that_outranks_ours_and_cannot_be_read_is_named_with_its_fault() -> None:
    host = described()
    host.put("/run/cdi/odd.json", '{"kind": "nvidia.com/gpu"')
    (note,) = [note for note in second_pass_is_quiet(UNIT, host, {}).notes if "/run/cdi/odd.json" in note]
    assert f"outranks {SPEC} (it is not read here: " in note


@pytest.mark.parametrize("folder", ["/etc/cdi", "/run/cdi"])
@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("net.json", "{", "it is no JSON: "),
        ("net.json", "", "it is empty)"),
        ("net.json", "[]", "it is no mapping)"),
        ("net.json", '{"devices": []}', "it has no cdiVersion and no kind)"),
        ("net.json", '{"cdiVersion": "0.6.0", "devices": []}', "it has no kind)"),
        ("net.yaml", "\x00\x01\n", "it has no cdiVersion and no kind)"),
        ("net.yml", "kind: vendor.com/net\n", "it has no cdiVersion)"),
    ],
)
def test_a_file_of_another_that_is_none_is_noted_with_its_fault(folder: str, name: str, text: str, fault: str) -> None:
    host = described()
    before = second_pass_is_quiet(UNIT, host, {}).notes
    host.put(f"{folder}/{name}", text)
    done = second_pass_is_quiet(UNIT, host, {})
    (note,) = set(done.notes) - set(before)
    assert (done.state, note.startswith(f"{folder}/{name} is no CDI specification ({fault}")) == ("converged", True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("net.json", '{"cdiVersion": "9.9.9", "kind": "vendor.com/net", "later": 1}'),
        ("net.yaml", "{cdiVersion: &a 0.6.0, kind: vendor.com/net}\n"),
        ("bcd-a1.json", "{"),  # a hold's: who has a GPU says it
        ("README", "nothing\n"),
    ],
)
def test_what_may_be_a_specification_and_what_no_runtime_reads_is_not_noted(name: str, text: str) -> None:
    host = described()
    before = second_pass_is_quiet(UNIT, host, {}).notes
    host.put(f"/etc/cdi/{name}", text)
    assert second_pass_is_quiet(UNIT, host, {}).notes == before


def test_a_specification_that_cannot_be_read_is_named() -> None:
    host = described()
    host.put("/etc/cdi/odd.yaml", "kind: nvidia.com/gpu\ndevices: [{name: x}]\n")
    assert any(
        note.startswith("/etc/cdi/odd.yaml names nvidia.com/gpu, and is not read here")
        for note in go(UNIT, host, {}).notes
    )


def test_behind_the_specification_nvidia_ctk_may_print_others() -> None:
    spec, coherent = vendor("a"), vendor("a", kind="nvidia.com/gpu.coherent")
    assert read(json.dumps(spec) + "\n" + json.dumps(coherent) + "\n") == spec
    assert read(json.dumps(spec) * 2) is None
    assert read("") is None


def test_without_cdi_an_old_specification_stays() -> None:
    host = described()
    before = host.text(SPEC)
    new_driver(host)
    assert go(UNIT, host, {"cdi": False}).state == "converged"
    assert host.text(SPEC) == before


def test_a_runtime_that_is_too_old_for_the_specification_is_named() -> None:
    host = ContainerHost(Machine.from_products(["H100-80GB"]), {"podman": "4.9.3", "docker": "28.5.2"})
    host.programs["podman"] = lambda _host, _argv: Answer(0, "podman version 4.9.3\n")
    assert go(UNIT, host, {}).notes == ()  # 0.3.0 is read by all
    spec = host.spec()
    spec["containerEdits"]["additionalGids"] = [44]
    spec["cdiVersion"] = "0.7.0"
    host.put(SPEC, json.dumps(spec))
    (note,) = second_pass_is_quiet(UNIT, host, {}).notes
    assert note.startswith(f"{SPEC} is of CDI 0.7.0, and this podman 4.9.3 reads 0.6.0 at most: ")


# -- beside the unit before it


def test_a_new_layout_is_described_in_the_same_pass_and_check_mode_says_so() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
    from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
    from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT as MIG_LAYOUT

    host = described()
    seen = PredictedHost(host)
    layout = {"layout": "all-1g.10gb"}
    assert converge(Goal(MIG_LAYOUT, layout), seen, Records(seen)).changed is True
    planned = converge(Goal(UNIT, {}), seen, Records(seen))
    assert [step.action.partition(":")[0] for step in planned.steps if step.later] == [SPEC]
    assert go(MIG_LAYOUT, host, layout).state == "converged"
    done = go(UNIT, host, {})
    assert (done.state, done.changed) == ("converged", True)
    assert [name[:4] for name in names(host)] == ["MIG-"] * 14 + ["all"]
