# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia-smi says of the GPUs, as each driver generation says it, and what it means when it says nothing."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import (
    SEEN_AS_ROOT,
    Fault,
    Hung,
    NotKnownYet,
    NotReady,
    StepFailed,
    Unreadable,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, command_line, run
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import smi, smi_apps, smi_fabric, smi_lists
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.each_gpu import each_gpu
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.smi_faults import unanswered
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu import Gpu, value
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_listed import Listed, MigDevice
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_users import App
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.smi import TOGETHER, WITH_FABRIC, query_line
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.smi import query as question
from tests import captures
from tests.captures import Command, session
from tests.unit.fake_host import FakeHost

A100 = ["smi450_a100_session", "smi460_a100_session", "smi470_a100_session", "smi535_a100_session"]
A100 += ["smi555_a100_session"]
VERSION = "/proc/driver/nvidia/version"
LOADED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.127.05  Tue Oct  8 16:30:26 UTC 2024\n"
OLDER = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024\n"
FOUR = ("index", "uuid", "pci.bus_id", "name")
NAMED = (*FOUR, "count")


def gpus(host: Host) -> tuple[Gpu, ...]:
    """The GPUs, one that does not answer among them."""
    return tuple(gpu for gpu, _row in each_gpu(host, NAMED))


def saying(*answers: Answer) -> FakeHost:
    """A host whose nvidia-smi gives these answers in turn, the last of them for ever."""
    left = list(answers)
    return FakeHost(programs={"nvidia-smi": lambda _host, _argv: left.pop(0) if len(left) > 1 else left[0]})


def of_fields(answer: Answer, argv: tuple[str, ...]) -> Answer:
    """An answer whose rows are those of NAMED, as nvidia-smi gives it to the fields that are asked for."""
    rows = [dict(zip(NAMED, line.split(", "))) for line in answer.out.splitlines()]
    if not all(len(row) == len(NAMED) for row in rows):
        return answer
    asked = argv[1].partition("=")[2].split(",")
    return answer._replace(out="".join(", ".join(row.get(name, "[N/A]") for name in asked) + "\n" for row in rows))


def showing(answer: Answer) -> FakeHost:
    """A host whose nvidia-smi shows these GPUs, whatever fields of them it is asked for."""
    return FakeHost(programs={"nvidia-smi": lambda _host, argv: of_fields(answer, argv)})


def failing(name: str, fail: str) -> Command:
    return next(one for one in session(name) if one.fail == fail)


# -- -L

DEVICES = {
    **{
        name: [
            MigDevice(profile, at, f"MIG-GPU-12345678-1234-1234-1234-123456780000/{gi}/0")
            for at, (profile, gi) in enumerate((("3g.20gb", 2), ("2g.10gb", 3), ("1g.5gb", 9)))
        ]
        for name in A100[:2]
    },
    **{
        name: [
            MigDevice("3g.20gb", 0, "MIG-015ae6c0-ee76-5fb6-a3b3-bead83281fd9"),
            MigDevice("2g.10gb", 1, "MIG-fd3d054b-5775-57fb-afc3-e43d1843ca34"),
            MigDevice("1g.5gb", 2, "MIG-2e58f15d-fd76-5ea7-9b1b-b46e7f2baadd"),
        ]
        for name in A100[2:]
    },
}


@pytest.mark.parametrize("name", A100)
def test_the_listing_of_every_generation(name: str) -> None:
    whole, parted = [one for one in session(name) if one.line == "nvidia-smi -L" and not one.fail]
    gpus = tuple(Listed(at, "NVIDIA A100-SXM4-40GB", f"GPU-12345678-1234-1234-1234-12345678000{at}") for at in range(8))
    assert smi_lists.parse_list(smi_lists.listing(saying(whole.answer))) == gpus
    mine = gpus[0]._replace(devices=tuple(DEVICES[name]))
    assert smi_lists.parse_list(smi_lists.listing(saying(parted.answer))) == (mine, *gpus[1:])


def test_the_listing_of_other_machines() -> None:
    h100 = session("smi550_mig_disabled_states")[0]
    assert [gpu.name for gpu in smi_lists.parse_list(h100.text)] == ["NVIDIA H100 80GB HBM3"] * 8
    balanced, shared = [one for one in session("smi550_mig_instances_and_errors") if one.line == "nvidia-smi -L"]
    assert [device.profile for device in smi_lists.parse_list(balanced.text)[0].devices] == [
        "3g.40gb",
        "2g.20gb",
        "1g.10gb",
        "1g.10gb",
    ]
    assert smi_lists.parse_list(shared.text)[0].devices[2] == MigDevice(
        "2c.7g.80gb", 2, "MIG-1925cca8-156d-510a-b21f-9658902bf23f"
    )
    assert smi_lists.parse_list(session("real_mig_session_a30_535")[-1].text) == (
        Listed(
            0,
            "NVIDIA A30",
            "GPU-00000000-0000-0000-0000-000000000001",
            (
                MigDevice("2g.12gb", 0, "MIG-00000000-0000-5000-8000-000000000001"),
                MigDevice("1g.6gb", 1, "MIG-00000000-0000-5000-8000-000000000002"),
                MigDevice("1g.6gb", 2, "MIG-00000000-0000-5000-8000-000000000003"),
            ),
        ),
    )


@pytest.mark.parametrize(
    "line",
    [
        "GPU 1: NVIDIA A30 (UUID: GPU-2)",  # a gap
        "  MIG 1g.6gb      Device  0: (UUID: MIG-1)",  # of no GPU
        "GPU 0: NVIDIA A30",
        "Unable to determine the device handle for GPU0: 0000:04:00.0: Unknown Error",
    ],
)
def test_a_line_of_the_listing_that_has_no_place_is_named(line: str) -> None:
    with pytest.raises(StepFailed) as fault:
        smi_lists.parse_list(line + "\n")
    assert " ".join(line.split()) in fault.value.message


# -- --query-gpu

FIELDS = (
    "index,uuid,name,mig.mode.current,mig.mode.pending,power.limit,power.min_limit,power.max_limit,"
    "power.default_limit,ecc.mode.current,ecc.mode.pending,driver_version,pci.bus_id,memory.total,compute_mode"
)
ROW = {
    "index": "0",
    "uuid": "GPU-01000100-0000-0000-0000-000000000000",
    "name": "NVIDIA H100 80GB HBM3",
    "mig.mode.current": "Disabled",
    "mig.mode.pending": "Disabled",
    "power.limit": "700.00",
    "power.min_limit": "200.00",
    "power.max_limit": "700.00",
    "power.default_limit": "700.00",
    "ecc.mode.current": "Enabled",
    "ecc.mode.pending": "Enabled",
    "driver_version": "550.163.01",
    "pci.bus_id": "00000000:1A:00.0",
    "memory.total": "81920",
    "compute_mode": "Default",
}
LIMIT = "nvmlDeviceGetPowerManagementLimit"
# What was made to fail, and the fields that then have no value.
FAILED = {
    "nomig": {"mig.mode.current": "[N/A]", "mig.mode.pending": "[N/A]"},
    f"{LIMIT}Constraints=3,{LIMIT}=3,nvmlDeviceGetPowerManagementDefaultLimit=3,nvmlDeviceGetEccMode=3": {
        "power.limit": "[Unknown Error]",
        **dict.fromkeys(("power.min_limit", "power.max_limit", "power.default_limit"), "[N/A]"),
        **dict.fromkeys(("ecc.mode.current", "ecc.mode.pending"), "[N/A]"),
    },
    f"{LIMIT}=999": {"power.limit": "[Unknown Error]"},
    f"{LIMIT}=15": {"power.limit": "[GPU is lost]"},
    f"{LIMIT}=16": {"power.limit": "[GPU requires reset]"},
    f"{LIMIT}=4": {"power.limit": "[Insufficient Permissions]"},
    f"{LIMIT}=29": {"power.limit": "[Resource not in correct state to perform requested operation]"},
    f"{LIMIT}=26": {"power.limit": "[Requested functionality has been deprecated]"},
    "nvmlDeviceGetComputeMode=999": {"compute_mode": "[Unknown Error]"},
    "nvmlDeviceGetEccMode=15": {"ecc.mode.current": "[GPU is lost]", "ecc.mode.pending": "[GPU is lost]"},
}


def test_rows_by_field() -> None:
    (recorded,) = [
        one for one in session("smi550_query_gpu") if one.line.startswith("nvidia-smi -i 0,1") and "nounits" in one.line
    ]
    second = {"index": "1", "uuid": "GPU-01000100-0000-0000-0000-000000000001", "pci.bus_id": "00000000:1B:00.0"}
    host = saying(recorded.answer)
    assert smi.query(host, tuple(FIELDS.split(","))) == (ROW, {**ROW, **second})
    assert host.asked == [("nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits")]


@pytest.mark.parametrize("fail", FAILED)
def test_a_field_without_a_value_keeps_its_text_and_the_others_their_values(fail: str) -> None:
    (recorded,) = [one for one in session("smi550_query_gpu") if one.fail == fail and "nounits" in one.line]
    (row,) = smi.query(saying(recorded.answer), tuple(FIELDS.split(",")), ROW["uuid"])
    assert row == {**ROW, **FAILED[fail]}
    assert {field for field in row if value(row[field]) is None} == set(FAILED[fail])


@pytest.mark.parametrize("name", A100)
def test_a_gpu_without_mig_on_every_generation(name: str) -> None:
    recorded = failing(name, "nomig")
    assert smi.query(saying(recorded.answer), ("index", "mig.mode.current"), "0") == (
        {"index": "0", "mig.mode.current": "[N/A]"},
    )


def test_the_pending_mode() -> None:
    recorded = next(one for one in session("smi550_mig_mode_changes") if "mig.mode.pending" in one.line)
    _header, row = recorded.text.splitlines()
    fields = ("pci.bus_id", "mig.mode.current", "mig.mode.pending")
    assert smi.parse_csv(row, fields) == (dict(zip(fields, ("00000000:1A:00.0", "Disabled", "Enabled"))),)


def test_the_other_names_of_fields_and_the_count() -> None:
    recorded = next(one for one in session("smi550_query_gpu") if "gpu_uuid,gpu_name" in one.line)
    (row,) = smi.query(saying(recorded.answer), ("gpu_uuid", "gpu_name", "gpu_bus_id", "count"), "0")
    assert list(row.values()) == [ROW["uuid"], ROW["name"], ROW["pci.bus_id"], "8"]


@pytest.mark.parametrize("name", ["derived_query_rows.csv"])
def test_rows_as_hardware_of_many_kinds_would_print_them(name: str) -> None:
    rows = smi.parse_csv(captures.raw(name), tuple(FIELDS.split(",")))
    limits = {row["name"]: (row["power.min_limit"], row["power.max_limit"]) for row in rows}
    assert limits["NVIDIA GB300"] == ("200.00", "1400.00")
    assert {row["name"] for row in rows if value(row["mig.mode.current"]) is None} == {"NVIDIA L40S", "Tesla T4"}
    assert [row["pci.bus_id"] for row in rows if row["name"] == "NVIDIA GB300"][-1] == "00000019:06:00.0"


def test_no_gpu_is_no_row() -> None:
    for name in [*A100, "smi550_query_gpu"]:
        recorded = next(one for one in session(name) if one.fail == "nogpu" and "--query-gpu=index" in one.line)
        assert (recorded.rc, smi.query(saying(recorded.answer), ("index",))) == (6, ())
        assert gpus(saying(recorded.answer)) == ()
        listed = next(one for one in session(name) if one.fail == "nogpu" and one.line.endswith("-L"))
        assert (listed.rc, smi_lists.listing(saying(listed.answer))) == (0, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0, GPU-1, 00000000:1A:00.0\n", r"'0, GPU-1, 00000000:1A:00\.0', not the 4 values"),
        ("0, GPU-1, , NVIDIA A30\n", "not the 4 values"),
        ("what is this\n", "'what is this'"),
        ("0, GPU-1, 00000000:1A:00.0, NVIDIA A30\n2, GPU-2, 00000000:1B:00.0, NVIDIA A30\n", "GPUs 0, 2, with a gap"),
        ("1, GPU-1, 00000000:1A:00.0, NVIDIA A30\n", "GPUs 1, with a gap"),
        ("", "prints nothing"),
    ],
)
def test_rows_that_are_none_are_named(text: str, words: str) -> None:
    with pytest.raises(StepFailed, match=words):
        smi.query(saying(Answer(0, text)), FOUR)


# -- the one question of all units

ASKED = ("index", "uuid", "pci.bus_id", "name", "power.limit")  # as a unit asks
PLACE = ("index", "uuid", "fabric.state", "fabric.status")


def knowing(*fields: str, version: str = "") -> FakeHost:
    """A host with one GPU, whose nvidia-smi knows these fields, and the loaded driver's version file."""

    def says(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        asked = argv[1].partition("=")[2].split(",")
        unknown = [field for field in asked if field not in fields]
        if unknown:
            return Answer(2, f'Field "{unknown[0]}" is not a valid field to query.\n\n')
        values = {"index": "0", "count": "1", "power.limit": "500.00", "fabric.state": "Completed"}
        return Answer(0, ", ".join(values.get(field, f"a {field}") for field in asked) + "\n")

    return FakeHost({VERSION: version} if version else {}, {"nvidia-smi": says})


def asks(host: FakeHost) -> list[str]:
    """Which fields were asked for, a line each."""
    return [argv[1].partition("=")[2] for argv in host.asked]


def test_units_ask_one_line_and_have_their_own_fields_of_it() -> None:
    host = knowing(*WITH_FABRIC, version=LOADED)
    assert smi.told(host, ASKED) == smi.query(knowing(*ASKED), ASKED)
    assert [row["fabric.state"] for row in smi.told(host, PLACE)] == ["Completed"]
    assert smi.told(host, ("index", "compute_mode"), "0") == ({"index": "0", "compute_mode": "a compute_mode"},)
    assert asks(host) == [",".join(WITH_FABRIC)] * 3
    assert host.asked[-1][-2:] == ("-i", "0")


def test_nothing_that_changes_by_itself_is_asked_of_all_units() -> None:
    volatile = ("draw", "utilization", "temperature", "used", "free", "clocks", "pstate", "fan", "reserved", "average")
    assert [field for field in WITH_FABRIC if any(word in field for word in volatile)] == []


@pytest.mark.parametrize(("version", "together"), [(OLDER, TOGETHER), (LOADED, WITH_FABRIC), ("", TOGETHER)])
def test_a_driver_is_asked_for_its_fabric_where_its_branch_tells(version: str, together: tuple[str, ...]) -> None:
    host = knowing(*WITH_FABRIC, version=version)
    smi.told(host, ASKED)
    assert asks(host) == [",".join(together)]


@pytest.mark.parametrize("fields", [ASKED, ("index", "uuid", "memory.total")])
def test_a_field_that_the_driver_does_not_know_costs_no_unit_its_own(fields: tuple[str, ...]) -> None:
    known = knowing(*TOGETHER, version=LOADED)
    assert len(smi.told(known, fields)) == 1
    assert asks(known) == [",".join(WITH_FABRIC), ",".join(TOGETHER)]
    poor = knowing(*fields, version=LOADED)
    assert smi.told(poor, fields) == smi.query(knowing(*fields), fields)
    assert asks(poor) == [",".join(WITH_FABRIC), ",".join(TOGETHER), ",".join(fields)]
    with pytest.raises(StepFailed, match=r'Field "power\.limit" is not a valid field to query'):
        smi.told(knowing("index", version=LOADED), ("index", "power.limit"))


def test_what_a_step_decides_of_a_units_line_is_not_passed_over() -> None:
    host = knowing(*WITH_FABRIC, version=LOADED)
    seen = PredictedHost(host)
    others = ("index", "memory.total")
    after = Effect("program", query_line(ASKED), "the limit is set")
    seen.apply(run(("nvidia-smi", "-pl", "400"), "set it", effects=(after,)))
    with pytest.raises(NotKnownYet, match="the limit is set"):
        smi.told(seen, ASKED)
    assert len(smi.told(seen, others)) == 1
    said = Effect("answers", command_line(question(ASKED)), "0, GPU-1, 00000000:17:00.0, NVIDIA A30, 400.00\n")
    seen.apply(run(("nvidia-smi", "-pl", "400"), "set it", effects=(said,)))
    assert [row["power.limit"] for row in smi.told(seen, ASKED)] == ["400.00"]
    seen.apply(run(("apt-get", "install"), "bring it", effects=(Effect("program", "nvidia-smi", "it is installed"),)))
    with pytest.raises(NotKnownYet, match="it is installed"):
        smi.told(seen, others)


def test_a_message_names_a_long_question_by_its_first_fields() -> None:
    host = saying(Answer(255, "Unknown Error\n"))
    with pytest.raises(StepFailed) as fault:
        smi.told(host, ASKED)
    assert "nvidia-smi --query-gpu=index,uuid,pci.bus_id,name,count" in fault.value.message
    assert "mig.mode.pending" not in fault.value.message
    assert len(fault.value.message) < 250


def test_a_gpu_that_the_count_misses() -> None:
    with pytest.raises(StepFailed, match="counts 8 GPUs and shows 1"):
        smi.query(saying(Answer(0, "0, 8\n")), ("index", "count"))


def test_one_gpu_that_was_asked_for_and_does_not_answer() -> None:
    recorded = next(
        one for one in session("smi550_mig_disabled_states") if "GPU-deadbeef-0000-0000-0000-000000000000" in one.line
    )
    with pytest.raises(StepFailed, match="shows 0 GPUs for -i GPU-deadbeef"):
        smi.query(saying(recorded.answer), ("index",), "GPU-deadbeef-0000-0000-0000-000000000000")


def test_the_gpus() -> None:
    text = "0, GPU-1, 00000000:17:00.0, NVIDIA A30, 2\n1, GPU-2, 00000000:65:00.0, NVIDIA L40S, 2\n"
    assert gpus(showing(Answer(0, text))) == (
        Gpu(0, "GPU-1", "00000000:17:00.0", "NVIDIA A30"),
        Gpu(1, "GPU-2", "00000000:65:00.0", "NVIDIA L40S"),
    )


LOST = "Unable to determine the device handle for GPU1: 0000:65:00.0: Unknown Error\n"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(255, LOST),  # nothing but this
        Answer(0, "0, GPU-1, 00000000:17:00.0, NVIDIA A30, 3\n2, GPU-3, 00000000:CA:00.0, NVIDIA A30, 3\n", LOST),
        Answer(0, "0, GPU-1, 00000000:17:00.0, NVIDIA A30, 3\n2, GPU-3, 00000000:CA:00.0, NVIDIA A30, 3\n"),
    ],
)
def test_a_gpu_that_fell_off_its_bus_is_listed_among_the_others(answer: Answer) -> None:
    """Older drivers then print nothing else; today's go on, and may exit with 0."""
    rows = {
        "00000000:17:00.0": Answer(0, "0, GPU-1, 00000000:17:00.0, NVIDIA A30, 3\n"),
        "00000000:65:00.0": Answer(255, LOST),
        "00000000:CA:00.0": Answer(0, "2, GPU-3, 00000000:CA:00.0, NVIDIA A30, 3\n"),
    }
    host = FakeHost(programs={"nvidia-smi": lambda _host, argv: of_fields(rows.get(argv[-1], answer), argv)})
    for at, address in enumerate(("0000:17:00.0", "0000:65:00.0", "0000:ca:00.0"), 1):
        host.put(
            f"/proc/driver/nvidia/gpus/{address}/information",
            f"Model: \t\t NVIDIA A30\nIRQ:   \t\t 45\nGPU UUID: \t GPU-{at}\nDevice Minor: \t {at}\n",
        )
    assert gpus(host) == (
        Gpu(0, "GPU-1", "00000000:17:00.0", "NVIDIA A30"),
        Gpu(1, "GPU-2", "00000000:65:00.0", "NVIDIA A30"),
        Gpu(2, "GPU-3", "00000000:CA:00.0", "NVIDIA A30"),
    )


def test_gpus_that_the_driver_could_not_start_are_told_apart_by_their_addresses() -> None:
    rows = {"00000000:17:00.0": Answer(0, "0, GPU-1, 00000000:17:00.0, NVIDIA A30, 1\n")}
    lost = Answer(255, LOST)
    host = FakeHost(programs={"nvidia-smi": lambda _host, argv: of_fields(rows.get(argv[-1], lost), argv)})
    unknown = "GPU-????????-????-????-????-????????????"
    for address, uuid in (("0000:17:00.0", "GPU-1"), ("0000:65:00.0", unknown), ("0000:ca:00.0", unknown)):
        text = f"Model: \t\t NVIDIA A30\nGPU UUID: \t {uuid}\nDevice Minor: \t 0\n"
        host.put(f"/proc/driver/nvidia/gpus/{address}/information", text)
    assert [gpu.uuid for gpu in gpus(host)] == ["GPU-1", "00000000:65:00.0", "00000000:CA:00.0"]


def test_a_dead_gpu_beside_an_answer_of_none_is_no_host_without_gpus() -> None:
    for status in (0, 6):
        host = saying(Answer(status, "No devices were found\n", LOST))
        for look in (gpus, smi_lists.listing, smi_apps.compute_apps):
            with pytest.raises(StepFailed, match="Unable to determine the device handle"):
                look(host)


def test_a_gpu_that_does_not_say_which_it_is_is_known_by_its_address() -> None:
    """By its UUID and name in /proc, so that selectors take it; else by the address, so that two of them are two."""
    rows = (
        "0, GPU-1, 00000000:17:00.0, NVIDIA A30, 3\n"
        "1, [Unknown Error], 00000000:65:00.0, [Unknown Error], 3\n"
        "2, [Unknown Error], 00000000:CA:00.0, NVIDIA A30, 3\n"
    )
    host = showing(Answer(0, rows))
    told = "Model: \t\t NVIDIA L40S\nGPU UUID: \t GPU-2\nDevice Minor: \t 1\n"
    host.put("/proc/driver/nvidia/gpus/0000:65:00.0/information", told)
    found = each_gpu(host, NAMED)
    assert [gpu for gpu, _row in found] == [
        Gpu(0, "GPU-1", "00000000:17:00.0", "NVIDIA A30"),
        Gpu(1, "GPU-2", "00000000:65:00.0", "NVIDIA L40S"),
        Gpu(2, "00000000:CA:00.0", "00000000:CA:00.0", ""),
    ]
    assert found[0][1]["name"] == "NVIDIA A30"
    for _gpu, row in found[1:]:
        with pytest.raises(StepFailed, match=r"prints \[Unknown Error\] as the uuid of GPU"):
            row["name"]
    assert gpus(host) == tuple(gpu for gpu, _row in found)


def test_a_single_gpu_that_answers_without_its_name_fails_by_itself() -> None:
    """Asked of each, since one has an answer of its own for all."""
    rows = {
        "00000000:17:00.0": Answer(0, "0, GPU-1, 00000000:17:00.0, NVIDIA A30, 2\n"),
        "00000000:65:00.0": Answer(0, "[GPU is lost], [GPU is lost], 00000000:65:00.0, [GPU is lost], 2\n"),
    }
    lost = Answer(255, LOST)
    host = FakeHost(programs={"nvidia-smi": lambda _host, argv: of_fields(rows.get(argv[-1], lost), argv)})
    for at, address in enumerate(("0000:17:00.0", "0000:65:00.0"), 1):
        text = f"Model: \t\t NVIDIA A30\nGPU UUID: \t GPU-{at}\nDevice Minor: \t {at}\n"
        host.put(f"/proc/driver/nvidia/gpus/{address}/information", text)
    first, second = each_gpu(host, NAMED)
    assert (first[1]["uuid"], second[0].uuid) == ("GPU-1", "GPU-2")
    with pytest.raises(StepFailed, match="GPU is lost"):
        second[1]["uuid"]


class Hangs(FakeHost):
    """nvidia-smi does not end when it is asked for all GPUs; `waited`: how long each question might have taken."""

    waited: tuple[float, ...] = ()

    def ask(self, argv: tuple[str, ...], timeout: float = 60.0, stdin: str = "") -> Answer:
        self.waited = (*self.waited, timeout)
        if "-i" not in argv:
            raise Hung(f"{argv[0]} did not end within {timeout:g} seconds: see what it waits for")
        return super().ask(argv, timeout, stdin)


def test_where_nvidia_smi_hangs_each_gpu_is_asked_briefly() -> None:
    """The host's lock is held meanwhile: eight GPUs at a minute each would be nine minutes a look."""
    answer = Answer(0, "0, GPU-1, 00000000:17:00.0, NVIDIA A30, 1\n")
    host = Hangs(programs={"nvidia-smi": lambda _host, argv: of_fields(answer, argv)})
    for at in range(8):
        text = f"Model: \t\t NVIDIA A30\nGPU UUID: \t GPU-{at}\nDevice Minor: \t {at}\n"
        host.put(f"/proc/driver/nvidia/gpus/0000:{at:02x}:00.0/information", text)
    assert len(each_gpu(host, NAMED)) == 8
    assert host.waited == (60.0, *[10.0] * 8)


# -- --query-compute-apps


def test_compute_processes_name_the_parent_gpu() -> None:
    recorded = session("smi470_compute_apps_mig")[1]
    rows = smi.parse_csv(recorded.text, ("gpu_uuid", "pid", "used_memory"))
    first, second = (f"GPU-01000100-0000-0000-0000-00000000000{at}" for at in (0, 1))
    assert [(row["gpu_uuid"], row["pid"]) for row in rows] == [(first, "4242"), (first, "4243"), (second, "5151")]


def test_compute_processes() -> None:
    text = "GPU-1, 4242, /usr/bin/python3, with, commas\nGPU-1, 4243, [Insufficient Permissions]\n"
    host = saying(Answer(0, text))
    assert smi_apps.compute_apps(host) == (
        App("GPU-1", 4242, "/usr/bin/python3, with, commas"),
        App("GPU-1", 4243, "[Insufficient Permissions]"),
    )
    smi_apps.compute_apps(host, "GPU-1")
    query = ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name", "--format=csv,noheader")
    assert host.asked == [query, (*query, "-i", "GPU-1")]


def test_an_idle_machine_and_one_without_a_gpu_have_no_compute_process() -> None:
    for idle in (session("smi470_compute_apps_mig")[2], session("smi550_query_gpu")[17]):
        assert "--query-compute-apps" in idle.line
        assert (idle.text, smi_apps.compute_apps(saying(idle.answer))) == ("", ())
    assert smi_apps.compute_apps(saying(Answer(6, "No devices were found\n"))) == ()


@pytest.mark.parametrize("text", ["GPU-1, 4242\n", "GPU-1, x, python3\n", "python3\n"])
def test_a_process_that_is_none_is_named(text: str) -> None:
    with pytest.raises(StepFailed):
        smi_apps.compute_apps(saying(Answer(0, text)))


# -- the fabric


def test_the_fabric_as_each_gpu_says_it() -> None:
    text = (
        "0, GPU-1, Completed, Success\n1, GPU-2, In Progress, N/A\n2, GPU-3, [N/A], [N/A]\n"
        "3, GPU-4, [Insufficient Permissions], [GPU is lost]\n"
    )
    assert [tuple(one) for one in smi_fabric.fabric_states(saying(Answer(0, text)))] == [
        ("GPU-1", "Completed", "Success"),
        ("GPU-2", "In Progress", None),
        ("GPU-3", None, None),
        ("GPU-4", "[Insufficient Permissions]", "[GPU is lost]"),
    ]


def test_a_driver_that_has_no_such_field_is_asked_for_everything() -> None:
    document = captures.raw("real_smi_qx_a100_570.148.08.xml")
    unknown = Answer(2, 'Field "fabric.state" is not a valid field to query.\n\n')
    host = saying(unknown, Answer(0, document))
    uuid = "GPU-0a100000-0000-4000-8000-000000000001"
    assert [tuple(one) for one in smi_fabric.fabric_states(host)] == [(uuid, None, None)]
    assert host.asked[-1] == ("nvidia-smi", "-q", "-x")
    joined = document.replace(
        "<state>N/A</state>\n\t\t\t<status>N/A<", "<state>Completed</state>\n\t\t\t<status>Success<"
    )
    assert [tuple(one) for one in smi_fabric.parse_fabric(joined)] == [(uuid, "Completed", "Success")]
    assert smi_fabric.fabric_states(saying(unknown, Answer(6, "No devices were found\n"))) == ()


def test_a_document_that_is_cut_off_or_misses_a_gpu_is_a_fault() -> None:
    document = captures.raw("real_smi_qx_a100_570.148.08.xml")
    lines = document.splitlines(keepends=True)
    for cut in range(3, len(lines) - 1, 7):
        with pytest.raises(StepFailed, match="no whole document"):
            smi_fabric.parse_fabric("".join(lines[:cut]))
    with pytest.raises(StepFailed, match="counts 2 GPUs and describes 1"):
        smi_fabric.parse_fabric(document.replace("<attached_gpus>1<", "<attached_gpus>2<"))
    with pytest.raises(StepFailed, match="without its UUID"):
        smi_fabric.parse_fabric(document.replace("uuid>", "name>"))


# -- no answer


def fault_of(command: Command, host: FakeHost | None = None) -> Exception | None:
    return unanswered(host or FakeHost(), command.answer, command.argv[1:])


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        ("init=9", "the NVIDIA driver does not run"),
        ("init=12", "libnvidia-ml.so is not installed yet"),
    ],
)
def test_what_the_driver_still_has_to_bring_is_waited_for(fail: str, words: str) -> None:
    fault = fault_of(failing("smi550_query_gpu", fail))
    assert isinstance(fault, NotReady)
    assert words in fault.message


def test_nvidia_smi_that_is_not_installed_is_waited_for() -> None:
    for ask in (gpus, smi_lists.listing, smi_apps.compute_apps):
        with pytest.raises(NotReady, match="nvidia-smi is not installed yet"):
            ask(FakeHost())


@pytest.mark.parametrize("name", [*A100, "smi550_query_gpu"])
def test_a_library_of_another_version_than_the_loaded_driver(name: str) -> None:
    host = FakeHost({VERSION: LOADED})
    recorded = failing(name, "init=18")
    assert recorded.rc == (255 if name in A100[:3] else 18)
    fault = fault_of(recorded, host)
    assert isinstance(fault, NotReady)  # the driver on the disk waits for the reboot, and what stands on it with it
    assert "the loaded NVIDIA driver is 550.127.05" in fault.message
    assert ("libnvidia-ml is 550.163" in fault.message) == (name not in A100[:3])  # before R535 it does not say
    assert fault.message.endswith(": reboot the node")


def test_the_library_on_disk_tells_its_whole_version() -> None:
    folder = "/usr/lib/x86_64-linux-gnu"
    host = FakeHost(
        {VERSION: LOADED, f"{folder}/libnvidia-ml.so.550.163.01": ""},
        links={f"{folder}/libnvidia-ml.so.1": "libnvidia-ml.so.550.163.01"},
    )
    fault = fault_of(failing("smi450_a100_session", "init=18"), host)
    assert isinstance(fault, NotReady)
    assert "is 550.127.05 and libnvidia-ml is 550.163.01: reboot the node" in fault.message


def test_nvidia_smi_of_another_version_than_its_library() -> None:
    said = (
        "Mismatch in versions between nvidia-smi and NVML.\nAre you sure you are using nvidia-smi provided with it?\n"
    )
    fault = unanswered(FakeHost(), Answer(255, said), ("-L",))
    assert isinstance(fault, StepFailed)
    assert "install both from one driver" in fault.message


def test_permission() -> None:
    recorded = failing("smi550_query_gpu", "init=4")
    fault = fault_of(recorded)
    assert isinstance(fault, Unreadable)
    assert (fault.denied, "run it as root" in fault.message) == (False, True)
    host = saying(recorded.answer)
    host.user = 1000
    with pytest.raises(Unreadable) as denied:
        gpus(host)
    assert denied.value.denied
    with pytest.raises(NotKnownYet, match=SEEN_AS_ROOT):  # check mode by another account
        gpus(PredictedHost(host))


@pytest.mark.parametrize(
    ("fail", "words", "then"),
    [
        ("init=8", "exited with 8: 'Failed to initialize NVML: Insufficient External Power'", ""),
        ("init=10", "exited with 255: 'Failed to initialize NVML: Timeout'", ""),
        ("init=15", "exited with 15: 'Failed to initialize NVML: GPU is lost'", "reset or reboot the node"),
        ("init=17", "exited with 17: 'Failed to initialize NVML: GPU access blocked by the operating", "policy"),
        ("init=999", "exited with 255: 'Failed to initialize NVML: Unknown Error'", ""),
    ],
)
def test_other_faults_say_what_it_said(fail: str, words: str, then: str) -> None:
    fault = fault_of(failing("smi550_query_gpu", fail))
    assert isinstance(fault, StepFailed)
    assert not isinstance(fault, Unreadable)
    assert fault.message.startswith("nvidia-smi -L ")
    assert words in fault.message
    assert then in fault.message


def test_a_hang_ends_and_is_a_fault() -> None:
    def hang(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        raise StepFailed(f"{' '.join(argv)} did not end within 60 seconds: see what it waits for")

    with pytest.raises(StepFailed, match="did not end within 60 seconds"):
        gpus(FakeHost(programs={"nvidia-smi": hang}))


def test_every_question_is_bounded() -> None:
    seen = []

    class Clocked(FakeHost):
        def ask(self, argv: tuple[str, ...], timeout: float = 0.0, stdin: str = "") -> Answer:
            seen.append(timeout)
            return super().ask(argv, timeout, stdin)

    host = Clocked(programs={"nvidia-smi": lambda _host, _argv: Answer(6, "No devices were found\n")})
    gpus(host)
    smi_lists.listing(host)
    smi_apps.compute_apps(host)
    assert seen == [60.0, 60.0, 60.0]


CHANGES = ("-mig", "-pl", "-e", "-c", "-pm", "--gpu-reset", "-r", "-cgi", "-cci", "-dgi", "-dci")


@pytest.mark.parametrize("name", captures.names("smi") + captures.names("real"))
def test_every_recorded_answer_is_one_or_its_fault(name: str) -> None:
    """A failure is never taken for an answer; of a change, success proves nothing, and its effect is read back."""
    for recorded in session(name):
        fault = fault_of(recorded)
        assert (fault is not None) == (recorded.rc not in (0, None)), recorded.line
        if isinstance(fault, Fault) and not isinstance(fault, NotReady) and recorded.rc not in (18, 139):
            said = " ".join(recorded.text.split("\n")[0].split())
            assert said in fault.message.replace("\\", "") or recorded.fail == "init=18", recorded.line
            assert isinstance(fault, Unreadable) == ("Insufficient Permissions" in recorded.text), recorded.line
        if fault is None and not set(CHANGES) & set(recorded.argv):
            assert {"-L", "mig"} & set(recorded.argv) or "--query" in recorded.line, (
                f"{recorded.line} is read by no one"
            )


def test_rows_beside_a_fault_on_standard_error_are_no_plain_answer() -> None:
    rows = "0, GPU-5f1c2a90-0000-4000-8000-000000000001, 00000000:04:00.0, NVIDIA H100 80GB HBM3\n"
    assert len(smi.query(saying(Answer(0, rows)), FOUR)) == 1
    assert len(smi.query(saying(Answer(0, rows, "a warning of no fault\n")), FOUR)) == 1
    with pytest.raises(StepFailed, match="Unable to determine the device handle"):
        smi.query(saying(Answer(0, rows, LOST)), FOUR)


def test_no_gpu_counts_as_none_by_a_status_that_nvidia_smi_gives_it() -> None:
    said = "No devices were found\n"
    assert [smi.query(saying(Answer(rc, said)), FOUR) for rc in (0, 6)] == [(), ()]
    with pytest.raises(StepFailed):
        smi.query(saying(Answer(255, said)), FOUR)
