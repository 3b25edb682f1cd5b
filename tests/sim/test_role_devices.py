# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds by the real playbook and role, and their events at an HTTPS endpoint, on simulated machines."""

from __future__ import annotations

import base64
import datetime
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

CONVERGE = "bettercompute.bcd.converge"
SECRET = "Bearer 5ecret-of-the-endpoint"
TOKEN = "TOKEN=5ecret-of-the-workload"


class Endpoint:
    """An HTTPS server that keeps what was posted; it answers with `answer`, and takes the first `accepts` events."""

    def __init__(self, folder: Path) -> None:
        self.posted: list[list[dict[str, Any]]] = []
        self.headers: list[str | None] = []
        self.answer = 200
        self.accepts: int | None = None
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
        now = datetime.datetime.now(datetime.timezone.utc)
        day = datetime.timedelta(days=1)
        made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = folder / "endpoint.pem"
        self.certificate.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
        own = folder / "endpoint.key"
        own.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.server = http.server.ThreadingHTTPServer(("localhost", 0), self.handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, own)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://localhost:{self.server.server_address[1]}/events"

    def handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                events = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.posted.append(events)
                endpoint.headers.append(self.headers.get("Authorization"))
                ids = [event["id"] for event in events][: endpoint.accepts]
                body = b"" if endpoint.accepts is None else json.dumps({"accepted": [*ids, "another"]}).encode()
                self.send_response(endpoint.answer)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_given: object) -> None:
                pass

        return Handler

    def ids(self) -> list[str]:
        """The events of the last post, by the beginning of their ids."""
        return ["-".join(event["id"].split("-")[:2]) for event in self.posted[-1]]


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    found = Endpoint(tmp_path)
    serving = threading.Thread(target=found.server.serve_forever)
    serving.start()
    yield found
    found.server.shutdown()
    serving.join()
    found.server.server_close()


class Fleet:
    """One host with two GPUs and one without, by their names, and what each is to be."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        kinds = [fleet.Hosts("gpu", PROFILES["h100"]), fleet.Hosts("plain", PROFILES["debian"])]
        self.inventory = Path(fleet.make(str(scratch), kinds))
        self.gpu = SimulatedHost(str(scratch / "trees" / "gpu-01"))
        listed = self.gpu.run("nvidia-smi", "-L").stdout.splitlines()
        self.uuids = [line.partition("UUID: ")[2].rstrip(")") for line in listed if line.startswith("GPU ")]
        for name in ("gpu", "plain"):
            self.set(name, bcd_converge_units={})

    def set(self, name: str, **variables: Any) -> None:
        """Set variables of a host in the inventory."""
        inventory = json.loads(self.inventory.read_text(encoding="utf-8"))
        inventory["all"]["children"][name]["hosts"][f"{name}-01"].update(variables)
        self.inventory.write_text(json.dumps(inventory), encoding="utf-8")

    def play(self, *arguments: str, what: str = CONVERGE, rc: int = 0, **variables: Any) -> dict[str, Any]:
        """A run of a playbook: the tasks of the GPU host by name, and the statistics by host."""
        more = ("-e", json.dumps(variables)) if variables else ()
        played = controller.playbook(
            str(self.scratch), str(self.inventory), what, *arguments, *more, "-vvv", as_json=True
        )
        assert played.rc == rc, played.out + played.err
        for secret in (SECRET, TOKEN, "PRIVATE " + "KEY"):
            assert secret not in played.out + played.err
        events = played.events()
        tasks = [task for task in events["tasks"] if task["host"] == "gpu-01"]
        return {"tasks": {task["task"]: task for task in tasks}, "stats": events["stats"], "all": events["tasks"]}

    def hold(self, number: int, gpu: int, **more: Any) -> dict[str, Any]:
        """An assignment of a whole GPU."""
        return {
            "allocation_id": f"alloc_{number}",
            "binding": "BINDING_HOLD",
            "devices": [{"id": self.uuids[gpu]}],
            **more,
        }


@pytest.fixture
def hosts(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "fleet")


def counts(played: dict[str, Any], host: str) -> tuple[int, int, int]:
    stats = played["stats"][host]
    return stats["ok"], stats["changed"], stats["skipped"]


def held(played: dict[str, Any]) -> dict[str, Any]:
    """The result of the holds' module."""
    found: dict[str, Any] = played["tasks"]["bettercompute.bcd.bcd_devices : Hold the host's devices"]["result"]
    return found


def test_hosts_that_hold_nothing_cost_nothing(hosts: Fleet) -> None:
    played = hosts.play()
    assert [counts(played, host) for host in ("gpu-01", "plain-01")] == [(1, 0, 0), (1, 0, 0)]


def test_a_hold_is_bound_kept_and_released_by_the_playbook(hosts: Fleet) -> None:
    hosts.set("gpu", bcd_devices_assignments=[hosts.hold(1, 0, env=[TOKEN])], bcd_devices_generation=4)
    checked = held(hosts.play("--check", "--diff"))
    assert (checked["bound"], hosts.gpu.read("/etc/cdi/bcd-alloc_1.json")) == (["alloc_1"], None)
    first = held(hosts.play("--diff"))  # beside a host that holds nothing
    assert (first["bound"], first["section"]["observed_generation"]) == (["alloc_1"], 4)
    assert [step["action"] for step in first["steps"]] == [step["action"] for step in checked["steps"]]
    spec = json.loads(hosts.gpu.read("/etc/cdi/bcd-alloc_1.json") or "")
    assert [device["name"] for device in spec["devices"]] == [hosts.uuids[0]]
    assert TOKEN + "\n" in (hosts.gpu.read("/run/bcd/allocations/alloc_1.env") or "")
    second = hosts.play("-l", "gpu")
    assert (held(second)["kept"], held(second)["changed"]) == (["alloc_1"], False)
    assert counts(second, "gpu-01") == (2, 0, 1)  # its configuration, its holds, and nothing to deliver
    hosts.set("gpu", bcd_devices_assignments=[])
    assert held(hosts.play())["released"] == ["alloc_1"]
    assert hosts.gpu.read("/etc/cdi/bcd-alloc_1.json") is None


def test_a_fault_of_the_host_s_configuration_does_not_keep_its_holds_back(hosts: Fleet) -> None:
    refused = {"sysctl": {"kernel.core_pattern": "|/bin/sh"}}
    hosts.set("gpu", bcd_converge_units=refused, bcd_devices_assignments=[hosts.hold(1, 0)])
    played = hosts.play(rc=2)
    assert (held(played)["bound"], played["stats"]["gpu-01"]["failures"]) == (["alloc_1"], 1)
    hosts.set("gpu", bcd_devices_assignments=[])
    hosts.set("plain", bcd_converge_units=refused)
    assert held(hosts.play(rc=2))["released"] == ["alloc_1"]


def test_an_assignment_that_fails_makes_the_role_fail_after_all_is_done(hosts: Fleet, endpoint: Endpoint) -> None:
    hosts.set(
        "gpu",
        bcd_devices_assignments=[hosts.hold(1, 0), hosts.hold(2, 0)],
        bcd_devices_events_url=endpoint.url,
        bcd_devices_events_ca_path=str(endpoint.certificate),
    )
    played = hosts.play("-l", "gpu", rc=2)
    assert held(played)["bound"] == ["alloc_1"]
    assert endpoint.ids() == ["bound-alloc_1", "failed-alloc_2"]
    report = played["tasks"]["bettercompute.bcd.bcd_devices : Report the host"]["result"]
    assert report["msg"] == f"alloc_2: {hosts.uuids[0]} is assigned to alloc_1"
    for fail_on, rc in (("terminal", 2), ("never", 0)):
        played = hosts.play("-l", "gpu", rc=rc, bcd_devices_fail_on=fail_on)
        assert [failure["allocation_id"] for failure in held(played)["failures"]] == ["alloc_2"]
    assert len(endpoint.posted) == 1


def test_events_are_delivered_until_they_are_accepted(hosts: Fleet, endpoint: Endpoint) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    hosts.gpu.write("/etc/bcd/node.key", pem, 0o600)
    hosts.set(
        "gpu",
        bcd_devices_assignments=[hosts.hold(1, 0), hosts.hold(2, 1)],
        bcd_devices_node_id="node_7",
        bcd_devices_events_url=endpoint.url,
        bcd_devices_events_ca_path=str(endpoint.certificate),
        bcd_devices_events_headers={"Authorization": SECRET},
    )
    hosts.play("--check", "-l", "gpu")
    assert endpoint.posted == []

    endpoint.answer = 503
    down = hosts.play("-l", "gpu")
    assert "2 of 2 events were not accepted" in json.dumps(down["all"])
    endpoint.answer, endpoint.accepts = 200, 1
    hosts.play("-l", "gpu")
    assert (endpoint.ids(), endpoint.headers[-1]) == (["bound-alloc_1", "bound-alloc_2"], SECRET)
    endpoint.answer, endpoint.accepts = 204, None
    hosts.play("-l", "gpu")
    assert endpoint.ids() == ["bound-alloc_2"]
    assert len(endpoint.posted) == 3
    quiet = hosts.play("-l", "gpu")
    assert (len(endpoint.posted), counts(quiet, "gpu-01")) == (3, (2, 0, 1))
    assert {event["id"]: event["body"] for event in endpoint.posted[0]} == {
        event["id"]: event["body"] for post in endpoint.posted for event in post
    }

    hosts.set("gpu", bcd_devices_assignments=[], bcd_devices_signing_key="/etc/bcd/node.key")
    hosts.play("-l", "gpu")
    for event in endpoint.posted[-1]:
        assert json.loads(event["body"])["node_id"] == "node_7"
        key.public_key().verify(base64.b64decode(event["signature"]), b"attested-report\n" + event["body"].encode())
    assert endpoint.ids() == ["released-alloc_1", "released-alloc_2"]


def test_the_plan_says_who_holds_what_and_what_would_be_held(hosts: Fleet) -> None:
    hosts.set("gpu", bcd_devices_assignments=[hosts.hold(1, 0)])
    hosts.play("-l", "gpu")
    hosts.set("gpu", bcd_devices_assignments=[hosts.hold(2, 1)])
    hosts.set("plain", bcd_devices_assignments=[hosts.hold(3, 0)])
    hosts.gpu.forget_calls()
    played = hosts.play(what="bettercompute.bcd.plan", rc=2)
    assert hosts.gpu.changes() == []
    report = json.loads((hosts.scratch / "bcd-report" / "fleet.json").read_text("utf-8"))
    gpu, plain = report["hosts"]["gpu-01"], report["hosts"]["plain-01"]
    assert (gpu["state"], gpu["drift"], gpu["failing"]) == ("progressing", ["devices"], [])
    assert {key: gpu["devices"][key] for key in ("bound", "kept", "released")} == {
        "bound": ["alloc_2"],
        "kept": [],
        "released": ["alloc_1"],
    }
    assert [(hold["allocation_id"], hold["devices"]) for hold in gpu["devices"]["holds"]] == [
        ("alloc_1", [hosts.uuids[0]])
    ]
    said = f"devices: alloc_3: {hosts.uuids[0]} not present"
    assert (plain["state"], plain["failing"], plain["message"]) == ("failed", ["devices"], said)
    page = (hosts.scratch / "bcd-report" / "fleet.html").read_text("utf-8")
    assert "would be released" in page
    assert [task["result"]["msg"] for task in played["all"] if task["status"] == "failed"] == [said]
    hosts.play(what="bettercompute.bcd.plan", bcd_devices_fail_on="never")


def test_an_account_that_is_not_root_holds_nothing_and_says_so(hosts: Fleet) -> None:
    hosts.set("gpu", bcd_devices_assignments=[hosts.hold(1, 0)], sim_user="admin")
    hosts.gpu.forget_calls()
    result = held(hosts.play("-l", "gpu", rc=2))
    assert [(failure["allocation_id"], failure["reason"]) for failure in result["failures"]] == [
        ("alloc_1", "node-unprivileged")
    ]
    assert "set become: true" in result["notes"][-1]
    assert (hosts.gpu.changes(), result["changed"]) == ([], False)


def test_an_endpoint_that_is_not_there_fails_nothing(hosts: Fleet, endpoint: Endpoint) -> None:
    hosts.set("gpu", bcd_devices_assignments=[hosts.hold(1, 0)], bcd_devices_events_url=endpoint.url)
    played = hosts.play("-l", "gpu")  # its certificate is not one that is trusted
    assert held(played)["bound"] == ["alloc_1"]
    assert endpoint.posted == []
    assert "1 of 1 events were not accepted" in json.dumps(played["all"])


def test_a_variable_that_is_wrong_is_said_before_anything_is_held(hosts: Fleet) -> None:
    hosts.set("gpu", bcd_devices_assignments=[hosts.hold(1, 0)])
    for variables, said in (
        ({"bcd_devices_events_url": "http://localhost/events"}, "bcd_devices_events_url is no https:// URL"),
        ({"bcd_devices_fail_on": "yes"}, "bcd_devices_fail_on is yes: it is terminal, failed, progressing or never"),
    ):
        played = hosts.play("-l", "gpu", rc=2, **variables)
        assert said in json.dumps(played["all"])
    assert hosts.gpu.read("/etc/cdi/bcd-alloc_1.json") is None
