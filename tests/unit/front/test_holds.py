# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of the holds: what its run says, journals, signs and fails by."""

from __future__ import annotations

import base64
import errno
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import holds
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.result import failed
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent import signature
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Machine
from tests.unit.fake_host import Killed

OPTIONS = (
    "assignments", "generation", "passthrough", "instances", "max_cdi_version", "slot_count", "acknowledge",
    "signing_key", "node_id",
)  # fmt: skip
OF_A_UNIT = {"unit", "changed", "state", "pending", "reboot_required", "conditions", "steps", "notes", "diff"}
OF_A_SECTION = {"bound", "kept", "released", "releasing", "holds", "failures", "section"}
STATE = "/var/lib/bcd-hostconfig"
KEY = "/etc/bcd/node.key"
SIGNED: dict[str, Any] = {"signing_key": KEY, "node_id": "node_1"}
SECRET = ed25519.Ed25519PrivateKey.generate()
PEM = SECRET.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture
def host() -> GpuHost:
    return gpu_host(Machine.from_products(["H100-80GB", "L40S"]))


def run(host: Host, root: bool = True, **given: Any) -> dict[str, Any]:
    """The result of the module with these options, as Ansible fills them."""
    params = {**dict.fromkeys(OPTIONS), "max_disruption": "gpu", **given}
    return holds.report(holds.converge_holds(params, host, Records(host), root))


def gpu(host: GpuHost, number: int = 0) -> str:
    return host.machine.cards[number].uuid


def hold(name: str, *devices: str, binding: str = "BINDING_HOLD", **more: Any) -> dict[str, Any]:
    """An assignment with every key, as Ansible fills it."""
    empty = dict.fromkeys(("reservation_id", "limits", "env", "instance_id"))
    named = [{"id": device, "device_class": None} for device in devices]
    return {**empty, "allocation_id": name, "binding": binding, "devices": named, **more}


def slot(host: GpuHost, number: int) -> list[dict[str, str]]:
    return [{"id": f"{gpu(host)}/s{number}", "device_class": "gpu.slot"}]


def kinds(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The events by type and allocation, in their order."""
    return [(event["type"], json.loads(event["body"])["allocation_id"]) for event in result["events"]]


def moved(result: dict[str, Any]) -> dict[str, list[str]]:
    return {key: result[key] for key in ("bound", "kept", "released", "releasing") if result[key]}


# -- a section's life


def test_a_hold_from_its_bind_to_its_release(host: GpuHost) -> None:
    wanted = [hold("alloc_1", gpu(host))]
    first = run(host, assignments=wanted, generation=7, node_id="node_1")
    assert set(first) == OF_A_UNIT | OF_A_SECTION | {"events"}
    assert (first["changed"], moved(first)) == (True, {"bound": ["alloc_1"]})
    assert first["section"] == {"state": "CONVERGED", "message": "", "observed_generation": 7, "conditions": []}
    assert first["holds"] == [
        {"allocation_id": "alloc_1", "binding": "BINDING_HOLD", "devices": [gpu(host)], "generation": 7}
    ]
    (event,) = first["events"]
    assert set(event) == {"id", "type", "body"}
    body = json.loads(event["body"])
    assert (body["type"], body["node_id"], body["boot_id"]) == ("AllocationBound", "node_1", "first-boot")

    host.calls.clear()
    second = run(host, assignments=wanted, generation=7, node_id="node_1")
    assert (second["changed"], moved(second), second["events"]) == (False, {"kept": ["alloc_1"]}, [event])
    assert host.calls == []

    third = run(host, assignments=[], generation=8, acknowledge=[event["id"]])
    assert (third["changed"], moved(third)) == (True, {"released": ["alloc_1"]})
    assert kinds(third) == [("AllocationReleased", "alloc_1")]
    assert third["section"]["observed_generation"] == 8
    assert host.text("/etc/cdi/bcd-alloc_1.json") is None


def test_a_bind_without_admission_is_noted_once(host: GpuHost) -> None:
    """/proc/meminfo is not there to be read."""
    limits = {"memory_bytes": 1 << 30}
    wanted = [hold(name, gpu(host, at), binding="BINDING_KUBERNETES", limits=limits) for at, name in enumerate("ab")]
    result = run(host, assignments=wanted, generation=1)
    assert (result["bound"], result["notes"]) == (
        ["a", "b"],
        ["host memory unreadable; binding without host-side admission", "/proc/meminfo shows no MemTotal: mount /proc"],
    )
    assert run(host, assignments=wanted, generation=1)["notes"] == []


def test_a_hold_whose_files_are_lost_is_bound_anew_and_said(host: GpuHost) -> None:
    wanted = [hold("alloc_1", gpu(host))]
    run(host, assignments=wanted, generation=1)
    for path in (f"{STATE}/holds/alloc_1.json", "/etc/cdi/bcd-alloc_1.json"):
        host.put(path, "{")
    said = "alloc_1: neither its record nor its CDI specification could be made out, and it is bound anew"
    for times in (1, 0):
        notes = run(host, assignments=wanted, generation=1)["notes"]
        assert [note.startswith(said) for note in notes].count(True) == times


def test_acknowledging_alone_touches_no_hold_and_looks_at_no_gpu(host: GpuHost) -> None:
    first = run(host, assignments=[hold("alloc_1", gpu(host)), hold("alloc_2", gpu(host))], generation=7)
    assert kinds(first) == [("AllocationBound", "alloc_1"), ("AllocationFailed", "alloc_2")]
    host.asked.clear()
    host.calls.clear()
    result = run(host, acknowledge=[event["id"] for event in first["events"]])
    assert set(result) == OF_A_UNIT | {"events"}
    assert (result["changed"], result["state"], result["events"]) == (True, "converged", [])
    assert host.asked == []
    assert all(f" {STATE}/events/" in call for call in host.calls)

    host.calls.clear()
    again = run(host, assignments=[hold("alloc_1", gpu(host)), hold("alloc_2", gpu(host))], generation=7)
    assert (again["changed"], again["events"], host.calls) == (False, [], [])
    assert [failure["allocation_id"] for failure in again["failures"]] == ["alloc_2"]

    later = run(host, assignments=[hold("alloc_1", gpu(host)), hold("alloc_2", gpu(host))], generation=8)
    assert kinds(later) == [("AllocationFailed", "alloc_2")]  # a later generation reports it again


def test_check_mode_says_what_a_run_then_does(host: GpuHost) -> None:
    run(host, assignments=[hold("alloc_1", gpu(host))], generation=1)
    wanted = [hold("alloc_2", gpu(host)), hold("alloc_3", gpu(host))]
    host.calls.clear()
    checked = run(PredictedHost(host), assignments=wanted, generation=2)
    assert host.calls == []
    assert kinds(checked) == [("AllocationBound", "alloc_1")]  # what the journal has
    assert checked["section"]["observed_generation"] == 1
    done = run(host, assignments=wanted, generation=2)
    assert moved(checked) == moved(done) == {"bound": ["alloc_2"], "released": ["alloc_1"]}
    assert checked["failures"] == done["failures"]
    assert [step["action"] for step in checked["steps"]] == [step["action"] for step in done["steps"]]
    assert (checked["changed"], checked["diff"]) == (True, done["diff"])
    assert [held["allocation_id"] for held in (*checked["holds"], *done["holds"])] == ["alloc_1", "alloc_2"]
    assert sorted(kinds(done)[1:]) == [
        ("AllocationBound", "alloc_2"),
        ("AllocationFailed", "alloc_3"),
        ("AllocationReleased", "alloc_1"),
    ]
    assert kinds(done).index(("AllocationReleased", "alloc_1")) < kinds(done).index(("AllocationBound", "alloc_2"))


def test_what_cannot_be_honoured_fails_the_section_and_not_the_task(host: GpuHost) -> None:
    wanted = [
        hold("alloc_1", gpu(host)),
        hold("alloc_2", gpu(host), binding="BINDING_INSTANCE"),
        hold("alloc_3", "GPU-none"),
    ]
    result = run(host, assignments=wanted, generation=5)
    assert moved(result) == {"bound": ["alloc_1"]}
    assert result["failures"] == [
        {
            "allocation_id": "alloc_2",
            "reason": "unsupported-binding",
            "message": "binding BINDING_INSTANCE is not supported",
        },
        {"allocation_id": "alloc_3", "reason": "device-missing", "message": "GPU-none not present"},
    ]
    assert result["section"] == {
        "state": "FAILED",
        "message": "alloc_2: binding BINDING_INSTANCE is not supported; alloc_3: GPU-none not present",
        "observed_generation": 5,
        "conditions": [],
    }
    assert result["state"] == "failed"
    assert not {"msg", "reason", "retryable"} & set(result)


@pytest.mark.parametrize("check", [False, True])
def test_a_failure_is_told_as_its_event_tells_it(host: GpuHost, check: bool) -> None:
    """The next assignment gets the GPU, which would be a reason too: of the checks, the first that failed decided."""
    host.put("/proc/meminfo", "MemTotal: 2097152 kB\nHugetlb: 0 kB\n")
    wanted = [hold("alloc_1", gpu(host), limits={"memory_bytes": 4 << 30}), hold("alloc_2", gpu(host))]
    result = run(PredictedHost(host) if check else host, assignments=wanted, generation=3)
    said = "ResourcesExhausted: 4096 MiB of memory needed, 1024 MiB left on this host"
    assert moved(result) == {"bound": ["alloc_2"]}
    assert result["failures"] == [{"allocation_id": "alloc_1", "reason": "resources-exhausted", "message": said}]
    assert result["section"]["message"] == f"alloc_1: {said}"
    told = [json.loads(event["body"]) for event in result["events"] if event["type"] == "AllocationFailed"]
    assert [(body["reason"], body["message"]) for body in told] == ([] if check else [("resources-exhausted", said)])


def test_while_something_may_come_the_generation_waits(host: GpuHost) -> None:
    run(host, assignments=[], generation=1)
    host.machine.loaded = host.machine.library = ""
    host.sync()
    del host.programs["nvidia-smi"]
    result = run(host, assignments=[hold("alloc_1", gpu(host))], generation=2)
    assert (result["section"]["state"], result["section"]["observed_generation"]) == ("PROGRESSING", 1)
    assert result["section"]["message"]
    assert (result["failures"], result["events"]) == ([], [])
    assert "msg" not in result


def test_a_step_that_fails_leaves_the_task_and_says_whether_a_retry_helps(
    host: GpuHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = host.write

    def full(path: str, text: str, mode: int) -> None:
        if path.startswith("/etc/cdi/"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        write(path, text, mode)

    monkeypatch.setattr(host, "write", full)
    result = run(host, assignments=[hold("alloc_1", gpu(host))], generation=2)
    assert (result["reason"], result["retryable"], result["state"]) == ("StepFailed", True, "progressing")
    assert "No space left on device" in result["section"]["message"]
    assert "msg" not in result
    assert result["events"] == []
    monkeypatch.setattr(host, "write", write)
    again = run(host, assignments=[hold("alloc_1", gpu(host))], generation=2)
    assert (again["section"]["state"], kinds(again)) == ("CONVERGED", [("AllocationBound", "alloc_1")])


def test_bad_options_fail_the_task_and_nothing_is_written(host: GpuHost) -> None:
    result = run(host, assignments=[hold("alloc 1", gpu(host)), hold("alloc_2", gpu(host))], generation=3)
    assert (result["reason"], result["retryable"]) == ("Refused", False)
    assert "'alloc 1'" in result["msg"]
    assert (host.calls, result["section"]["observed_generation"]) == ([], None)


def test_a_host_that_cannot_be_worked_on_fails_the_task() -> None:
    result = holds.report(holds.Ended(failed("devices", StepFailed("another pass holds the lock")), broken=True))
    assert (result["msg"], result["section"]["state"]) == ("another pass holds the lock", "PROGRESSING")


@pytest.mark.parametrize("point", range(1, 7))  # what is asked is remembered, and a bind without a slice is five steps
def test_the_pass_after_a_kill_says_what_became_of_it(host: GpuHost, point: int) -> None:
    wanted = [hold("alloc_1", gpu(host))]
    host.kill_at = point
    with pytest.raises(Killed):
        run(host, assignments=wanted, generation=1)
    host.kill_at = 0
    result = run(host, assignments=wanted, generation=1)
    assert moved(result) == {"bound": ["alloc_1"]}
    assert kinds(result) == [("AllocationBound", "alloc_1")]
    assert run(host, assignments=wanted, generation=1)["events"] == result["events"]


@pytest.mark.parametrize("point", range(1, 6))  # and its release is four
def test_so_it_does_of_a_release(host: GpuHost, point: int) -> None:
    run(host, assignments=[hold("alloc_1", gpu(host))], generation=1)
    host.kill_at = len(host.calls) + point
    with pytest.raises(Killed):
        run(host, assignments=[], generation=2)
    host.kill_at = 0
    result = run(host, assignments=[], generation=2)
    assert moved(result) == {"released": ["alloc_1"]}
    assert kinds(result) == [("AllocationBound", "alloc_1"), ("AllocationReleased", "alloc_1")]


def test_an_event_that_is_acknowledged_before_its_bind_ends_is_not_sent_again(host: GpuHost) -> None:
    wanted = [hold("alloc_1", gpu(host))]
    host.kill_at = 6  # the event is journaled, the record does not say yet that it is bound
    with pytest.raises(Killed):
        run(host, assignments=wanted, generation=1)
    host.kill_at = 0
    (name,) = host.names(f"{STATE}/events")
    assert name.startswith("bound-alloc_1-1-")
    assert run(host, acknowledge=[name[: -len(".json")]])["events"] == []
    result = run(host, assignments=wanted, generation=1)
    assert (moved(result), result["events"]) == ({"bound": ["alloc_1"]}, [])


def test_an_event_that_is_acknowledged_before_its_release_ends_is_not_sent_again(host: GpuHost) -> None:
    run(host, assignments=[hold("alloc_1", gpu(host))], generation=1)
    host.kill_at = len(host.calls) + 5  # all is done but that the record goes
    with pytest.raises(Killed):
        run(host, assignments=[], generation=2)
    host.kill_at = 0
    names = [name[: -len(".json")] for name in host.names(f"{STATE}/events")]
    assert [name.partition("-")[0] for name in names] == ["bound", "released"]
    assert run(host, acknowledge=names)["events"] == []
    result = run(host, assignments=[], generation=2)
    assert (moved(result), result["events"]) == ({"released": ["alloc_1"]}, [])


def test_a_kubernetes_hold_is_released_where_no_kubelet_was_ever_installed(host: GpuHost) -> None:
    wanted = [hold("alloc_1", gpu(host), binding="BINDING_KUBERNETES")]
    assert moved(run(host, assignments=wanted, generation=1)) == {"bound": ["alloc_1"]}
    result = run(host, assignments=[], generation=2)
    assert moved(result) == {"released": ["alloc_1"]}
    assert kinds(result) == [("AllocationBound", "alloc_1"), ("AllocationReleased", "alloc_1")]


# -- another account


def test_a_release_that_waits_for_pods_is_not_said_to_be_through(host: GpuHost) -> None:
    """A kubelet that was here and does not answer may have pods still."""
    run(host, assignments=[hold("alloc_1", gpu(host), binding="BINDING_KUBERNETES")], generation=1)
    host.put("/var/lib/kubelet/config.yaml", "")
    result = run(host, assignments=[], generation=2)
    assert moved(result) == {"releasing": ["alloc_1"]}
    assert kinds(result) == [("AllocationBound", "alloc_1")]
    assert (result["section"]["state"], result["holds"]) == ("CONVERGED", [])


def test_without_root_every_new_hold_fails_and_nothing_is_written(host: GpuHost) -> None:
    run(host, assignments=[hold("alloc_1", gpu(host))], generation=1)
    host.user = 1000
    host.unreadable |= {path for path in host.files if path.startswith(STATE)}
    host.calls.clear()
    wanted = [hold("alloc_1", gpu(host)), hold("alloc_2", gpu(host, 1)), hold("alloc_3", "GPU-x", binding="NONE")]
    for _turn in range(2):
        result = run(PredictedHost(host), root=False, assignments=wanted, generation=2)
        assert (host.calls, result["changed"], result["diff"]) == ([], False, [])
        assert [(failure["allocation_id"], failure["reason"]) for failure in result["failures"]] == [
            ("alloc_2", "node-unprivileged"),
            ("alloc_3", "unsupported-binding"),
        ]
        assert result["failures"][0]["message"] == (
            "bcd node runs without root and without [helper]: it cannot write /etc/cdi or create hold slices "
            "(run bcd node as root, or under bcd helper)"
        )
        assert [event["id"] for event in result["events"]] == ["failed-alloc_2-2", "failed-alloc_3-2"]
        assert moved(result) == {"kept": ["alloc_1"]}
        assert result["section"]["state"] == "FAILED"
        assert any("set become: true" in note for note in result["notes"])
        assert "msg" not in result


# -- what is nobody's business


def test_what_an_assignment_puts_in_the_environment_is_shown_to_nobody(host: GpuHost) -> None:
    wanted = [hold("alloc_1", gpu(host), env=["TOKEN=s3cr3t-value", "EMPTY="])]
    results = [run(machine, assignments=wanted) for machine in (PredictedHost(host), host, host)]
    assert "TOKEN=s3cr3t-value\nEMPTY=\n" in (host.text("/run/bcd/allocations/alloc_1.env") or "")
    results.append(run(host, assignments=[]))
    for result in results:
        assert "s3cr3t" not in json.dumps(result)
    shown = [entry for entry in results[1]["diff"] if entry["after_header"].endswith("alloc_1.env")]
    assert "TOKEN=(not shown)\nEMPTY=(not shown)\n" in shown[0]["after"]
    assert f"NVIDIA_VISIBLE_DEVICES={gpu(host)}\n" in shown[0]["after"]


def test_root_s_own_records_are_no_difference_to_look_at(host: GpuHost) -> None:
    result = run(host, assignments=[hold("alloc_1", gpu(host))], generation=1)
    assert [entry["after_header"] for entry in result["diff"]] == [
        "/etc/cdi/bcd-alloc_1.json",
        "/run/bcd/allocations/alloc_1.env",
    ]


# -- signatures


def signing(host: GpuHost, pem: str = PEM, mode: int = 0o600) -> None:
    host.files[KEY] = File(pem, mode)


def test_binds_and_releases_are_signed_once(host: GpuHost) -> None:
    signing(host)
    wanted = [hold("alloc_1", gpu(host)), hold("alloc_2", gpu(host))]
    first = run(host, assignments=wanted, generation=1, **SIGNED)
    bound, failure = first["events"]
    made = base64.b64decode(bound["signature"], validate=True)
    SECRET.public_key().verify(made, b"attested-report\n" + bound["body"].encode())
    assert bound["key_id"].startswith("sha256/")
    assert set(failure) == {"id", "type", "body"}
    host.calls.clear()
    second = run(host, assignments=wanted, generation=1, **SIGNED)
    assert (second["events"], second["changed"], host.calls) == (first["events"], False, [])
    released = run(host, assignments=[], generation=2, **SIGNED)["events"][-1]
    made = base64.b64decode(released["signature"], validate=True)
    SECRET.public_key().verify(made, b"attested-report\n" + released["body"].encode())


def test_what_was_journaled_without_a_key_is_signed_when_there_is_one(host: GpuHost) -> None:
    wanted = [hold("alloc_1", gpu(host))]
    (before,) = run(host, assignments=wanted)["events"]
    signing(host)
    result = run(host, assignments=wanted, **SIGNED)
    (after,) = result["events"]
    assert {key: after[key] for key in before} == before
    assert "signature" in after
    assert result["changed"] is True


def test_a_pass_with_nothing_to_sign_does_not_load_the_key(host: GpuHost, monkeypatch: pytest.MonkeyPatch) -> None:
    signing(host)
    wanted = [hold("alloc_1", gpu(host))]
    run(host, assignments=wanted, **SIGNED)

    def loaded(*_given: str) -> None:
        raise AssertionError("the key was loaded")

    monkeypatch.setattr(signature, "Signer", loaded)
    assert run(host, assignments=wanted, **SIGNED)["changed"] is False


@pytest.mark.parametrize(
    ("pem", "mode"),
    [(PEM, 0o644), (PEM, 0o620), ("no key", 0o600), (PEM.swapcase(), 0o600)],
    ids=["others read it", "others write it", "no PEM", "spoilt"],
)
def test_a_key_that_is_none_is_refused_before_anything_is_written(host: GpuHost, pem: str, mode: int) -> None:
    signing(host, pem, mode)
    for machine in (host, PredictedHost(host)):
        with pytest.raises(Refused, match=f"^{KEY} ") as raised:
            run(machine, assignments=[hold("alloc_1", gpu(host))], **SIGNED)
        assert PEM.splitlines()[1] not in raised.value.message
    assert host.calls == []


def test_a_key_without_the_node_that_signs_is_refused_before_anything_is_written(host: GpuHost) -> None:
    host.put(KEY, PEM)
    with pytest.raises(Refused, match="signing_key is given without node_id"):
        run(host, assignments=[hold("alloc_1", gpu(host))], signing_key=KEY)
    assert host.calls == []


def test_without_the_library_nothing_is_written_either(host: GpuHost, monkeypatch: pytest.MonkeyPatch) -> None:
    signing(host)

    def missing(*_given: str) -> None:
        raise Refused(signature.MISSING)

    monkeypatch.setattr(signature, "Signer", missing)
    with pytest.raises(Refused, match="cryptography"):
        run(host, assignments=[hold("alloc_1", gpu(host))], **SIGNED)
    assert host.calls == []


def test_a_report_that_could_not_be_signed_waits(host: GpuHost, monkeypatch: pytest.MonkeyPatch) -> None:
    signing(host)
    write = host.write

    def full(path: str, text: str, mode: int) -> None:
        if '"signature"' in text:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        write(path, text, mode)

    monkeypatch.setattr(host, "write", full)
    wanted = [hold("alloc_1", gpu(host)), hold("alloc_2", gpu(host))]
    result = run(host, assignments=wanted, generation=1, **SIGNED)
    assert kinds(result) == [("AllocationFailed", "alloc_2")]
    assert (result["section"]["state"], result["section"]["observed_generation"]) == ("PROGRESSING", None)
    assert "cannot keep the signature of an event: No space left on device" in result["section"]["message"]
    assert (result["reason"], result["retryable"]) == ("StepFailed", True)
    monkeypatch.setattr(host, "write", write)
    again = run(host, assignments=wanted, generation=1, **SIGNED)
    assert kinds(again) == [("AllocationBound", "alloc_1"), ("AllocationFailed", "alloc_2")]
    assert again["section"]["observed_generation"] == 1


def test_the_key_is_in_no_result(host: GpuHost) -> None:
    signing(host)
    result = run(host, assignments=[hold("alloc_1", gpu(host))], **SIGNED)
    assert PEM.splitlines()[1] not in json.dumps(result) + json.dumps(
        {path: f.text for path, f in host.files.items() if path != KEY}
    )
