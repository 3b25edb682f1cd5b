# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account without sudo: the same modules and playbooks, through the host's own helper, with the same results.

The account is a real one of this machine's kernel, and the helper the program's code behind a real socket.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests import pki
from tests.cluster.control_plane import Cluster
from tests.sim import controller, kube_site
from tests.sim import helper_socket as helper
from tests.sim.host import SimulatedHost
from tests.sim.kube_profiles import KUBERNETES
from tests.sim.machine import at
from tests.sim.marks import with_accounts
from tests.sim.test_role_converge import Ran, Site, states
from tests.sim.tree import PROFILES, build, copy

pytestmark = with_accounts
newest_core = pytest.mark.newest_core

CONVERGE, PLAN = "bettercompute.bcd.converge", "bettercompute.bcd.plan"
SECTION: dict[str, Any] = {"kernel-modules": {"load": ["tun"]}, "sysctl": {"vm.swappiness": 10}}
FILES = ("/etc/modules-load.d/bcd.conf", "/etc/sysctl.d/90-bcd.conf", "/var/lib/bcd-hostconfig/applied.json")
STATE = "/var/lib/bcd-hostconfig"
FAILED = (2, 8)  # the latter of core 2.16, where a play is ended after a host has failed
UNPRIVILEGED = (
    "node-unprivileged: this account is not root, and bcd helper, which would be root for it, does not run here: set "
    "become: true, or enroll the host with its helper (where it has one, have root start bcd-helper.socket)"
)


# -- each module, as root and through the helper

COLLECTION = "/usr/lib/bcd/collection"
MODULE = (
    f"import runpy, sys; sys.path.insert(0, {COLLECTION!r}); "
    "runpy.run_module('ansible_collections.bettercompute.bcd.plugins.modules.' + sys.argv.pop(), run_name='__main__')"
)


class Twins:
    """Two hosts that are alike: one for root, one for an account with a helper."""

    def __init__(self, scratch: Path, profile: str) -> None:
        first, second = str(scratch / "root"), str(scratch / "account")
        build(first, PROFILES[profile])
        helper.install(first)
        plugins = at(first, f"{COLLECTION}/ansible_collections/bettercompute/bcd/plugins")
        for folder in ("modules", "module_utils"):
            source = Path(controller.CHECKOUT) / "plugins" / folder
            shutil.copytree(source, f"{plugins}/{folder}", ignore=shutil.ignore_patterns("__pycache__"))
        copy(first, second)
        helper.accounts(second)
        for tree in (first, second):
            helper.configure(tree, 'signing_key = "/etc/bcd/node.pem"\n')
        self.root, self.account = SimulatedHost(first), SimulatedHost(second)

    def both(self, module: str, check: bool, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a module returns as root, and through the helper."""
        return run(self.root, "root", module, check, options), run(self.account, helper.MEMBER, module, check, options)


def run(host: SimulatedHost, account: str, module: str, check: bool, options: dict[str, Any]) -> dict[str, Any]:
    given = {"ANSIBLE_MODULE_ARGS": {**options, "_ansible_check_mode": check, "_ansible_diff": True}}
    done = host.run(host.python, "-c", MODULE, module, account=account, stdin=json.dumps(given))
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise AssertionError(done.stdout + done.stderr) from None
    return found


# Each is run in check mode, and then for good. What fails does so for the reason behind it.
HOST_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("host_info", {}),
    ("sysctl", {"values": {"vm.swappiness": 10}}),
    ("sysctl", {"values": {"vm.swappiness": 10}}),  # again: nothing to do
    ("sysctl", {"values": {"kernel.core_pattern": "|/bin/sh"}}),  # refused
    ("sysctl", {"state": "absent"}),
    ("sysctl", {"values": {"vm.swappiness": 10}, "signed_spec": pki.ControlPlane().desired_state(host={})}),  # no pin
    ("kernel_modules", {"load": ["tun"]}),
    ("kernel_modules", {"load": ["no_such_module"]}),  # a step that fails
    ("hugepages", {"pages_2m": 16}),
    ("cpu", {"isolate": "2-3"}),  # waits for a reboot
    ("iommu", {}),
    ("host_plan", {"units": SECTION}),
    ("host_section", {"units": SECTION, "generation": 4, "label": "one"}),
    ("host_section", {"units": {**SECTION, "cpu": {"isolate": "x"}}, "fail_on": "terminal"}),
    ("host_section", {"units": {"no-such-unit": {}}, "fail_on": "never"}),
    ("host_section", {"wire_units": [{"unit": "sysctl", "settings": "{"}]}),
    ("host_section", {"units": SECTION, "only": ["sysctl"], "node_id": "node_01", "site": "fra"}),
    ("host_intent", {"signed_spec": pki.ControlPlane().desired_state(host=SECTION)}),  # no pin
    ("cdi_holds", {"assignments": []}),
    ("cdi_holds", {"acknowledge": ["no-such-event"]}),
    ("cdi_holds", {"assignments": [], "signing_key": "/etc/bcd/node.pem", "node_id": "node_01"}),  # it is not there
    ("host_status", {}),
    ("host_doctor", {"fail_on": "never"}),
    ("host_info", {}),
]
GPU = {"index": 0}
GPU_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("nvidia_driver", {"branch": "580"}),
    ("gpu_settings", {"gpus": [{"select": GPU, "power_limit_watts": 500}]}),
    ("gpu_settings", {"gpus": [{"select": {"index": 7}, "power_limit_watts": 500}]}),  # no such GPU
    ("cdi_holds", {"assignments": [{"allocation_id": "a1", "binding": "BINDING_HOLD", "devices": [{"id": "GPU-0"}]}]}),
    ("mig_layout", {"gpus": [{"select": GPU, "layout": "3g.40gb"}]}),
    ("mig_layout", {"state": "gathered"}),
    ("gpu_sharing", {"mode": "timeslice"}),
    ("fabric_manager", {}),
    ("container_toolkit", {}),
    ("host_status", {}),
    ("host_info", {}),
]
PIN = "8a1f0c3e5b7d9f2a4c6e8b0d1f3a5c7e9b2d4f6a8c0e1b3d5f7a9c2e4b6d8f0a"
WORKER_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("k8s_join", {"api_server": "https://10.0.0.1:6443", "ca_cert_sha256": PIN}),  # root allows no cluster
    ("k8s_join", {"state": "absent"}),
    ("host_section", {"units": {"k8s-join": {"apiServer": "x"}}}),  # no address
]
CALLS = {"debian": HOST_CALLS, "h100": GPU_CALLS, "worker": WORKER_CALLS}
READS = {"host_info", "host_status", "host_doctor"}  # which know no check mode
OF_ROOT = {"host_config", "kube_node"}  # move pins, and take a Node out of service: not for an account without root
OF_THE_CONTROLLER = {"save_report", "sign_spec"}


@newest_core
@pytest.mark.parametrize("profile", CALLS)
def test_every_module_says_and_does_the_same_through_the_helper(tmp_path: Path, profile: str) -> None:
    twins = Twins(tmp_path, profile)
    seen = set()
    with twins.root.helper(), twins.account.helper() as service:
        for module, options in CALLS[profile]:
            for check in (False,) if module in READS else (True, False):
                as_root, helped = twins.both(module, check, **options)
                assert list(as_root) == list(helped), (module, options, service.log())
                for key in as_root:
                    assert (key, helped[key]) == (key, as_root[key]), (module, options, check)
                assert twins.account.changes() == twins.root.changes(), (module, options, check)
                assert "Unsupported parameters" not in as_root.get("msg", "")
                seen.add((as_root["changed"], "msg" in as_root))
    assert twins.root.changes() != []
    assert "a fault of the collection's own" not in service.log()
    assert seen >= {(False, False), (True, False), (False, True)} or profile == "worker"


@newest_core
def test_no_module_was_forgotten() -> None:
    shipped = {path.stem for path in (Path(controller.CHECKOUT) / "plugins" / "modules").glob("*.py")}
    called = {module for calls in CALLS.values() for module, _options in calls}
    assert called == shipped - OF_ROOT - OF_THE_CONTROLLER


# -- the playbooks, without become


def as_account(scratch: Path, profile: str = "debian", **variables: Any) -> Site:
    """A host that an account without sudo logs in to; whether it has a helper is for the test."""
    site = Site(scratch, profile, sim_account=helper.MEMBER, **variables)
    helper.install(site.host.tree)
    return site


def play(site: Site, what: str, *arguments: str, **variables: Any) -> Ran:
    """A shipped playbook; nothing in it becomes root."""
    words = (*arguments, "--extra-vars", json.dumps(variables))
    return Ran(controller.playbook(str(site.scratch), site.inventory, what, *words, as_json=True))


def left(site: Site) -> dict[str, str]:
    """What is on the host, but for the lock that a real pass holds."""
    return {path: seen for path, seen in site.digest().items() if path not in (STATE, f"{STATE}/lock")}


def test_a_host_is_checked_converged_and_left_alone_without_sudo(tmp_path: Path) -> None:
    site = as_account(tmp_path)
    with site.host.helper():
        before = site.digest()
        checked = play(site, CONVERGE, "--check", "--diff", bcd_converge_units=SECTION)
        assert (checked.rc, checked.recap) == (0, {"ok": 1, "changed": 1}), checked.text
        assert site.digest() == before
        first = play(site, CONVERGE, bcd_converge_units=SECTION, bcd_converge_generation=7)
        assert (first.rc, first.recap) == (0, {"ok": 1, "changed": 1}), first.text
        assert states(first.status) == {"kernel-modules": "converged", "sysctl": "converged"}
        assert first.status["section"]["observed_generation"] == 7
        assert [unit["diff"] for unit in first.status["units"]] == [unit["diff"] for unit in checked.status["units"]]
        after = left(site)
        second = play(site, CONVERGE, bcd_converge_units=SECTION, bcd_converge_generation=7)
        assert (second.rc, second.recap) == (0, {"ok": 1}), second.text
        planned = play(site, PLAN, bcd_converge_units={"sysctl": {"vm.swappiness": 20}})
        assert planned.rc == 0, planned.text
        assert set(planned.status["todo"]) == {"sysctl", "kernel-modules"}, planned.text
        assert left(site) == after
    assert site.host.read("/proc/sys/vm/swappiness") == "10\n"
    owners = {path: os.stat(at(site.host.tree, path)).st_uid for path in FILES}
    assert owners == dict.fromkeys(FILES, 0)


@newest_core
def test_the_account_itself_can_do_nothing_of_that(tmp_path: Path) -> None:
    """What the tests above show is the helper's work: the account has no right of its own."""
    site = as_account(tmp_path)
    for path in ("/etc/sysctl.d/90-bcd.conf", "/var/lib/bcd-hostconfig/applied.json", "/run/bcd/helper.sock", "/etc/x"):
        done = site.host.run("sh", "-c", f"mkdir -p $(dirname {path}); : > {path}", account=helper.MEMBER)
        assert done.returncode != 0, path
        assert site.host.read(path) is None


@newest_core
def test_without_a_helper_a_run_fails_and_a_check_plans_what_the_account_sees(tmp_path: Path) -> None:
    site = as_account(tmp_path)
    before = site.digest()
    played = play(site, CONVERGE, bcd_converge_units=SECTION)
    assert played.rc == 2
    assert played.results("fail")[0]["msg"] == UNPRIVILEGED
    checked = play(site, CONVERGE, "--check", bcd_converge_units=SECTION)
    assert (checked.rc, checked.recap) == (0, {"ok": 1, "changed": 1}), checked.text
    assert checked.status["todo"] == ["kernel-modules", "sysctl"]
    assert site.digest() == before


@newest_core
def test_an_account_outside_the_group_is_told_so(tmp_path: Path) -> None:
    site = as_account(tmp_path)
    with site.host.helper() as service:
        before = site.digest()
        for check in ((), ("--check",)):
            played = play(site, CONVERGE, *check, bcd_converge_units=SECTION, sim_account=helper.STRANGER)
            assert played.rc == 2
            assert played.results("fail")[0]["msg"] == (
                "bcd helper does not take this account, which is not in the group of /run/bcd/helper.sock: have root "
                "add it to the group bcd, and log in anew"
            )
        assert (site.digest(), service.log()) == (before, "")


@newest_core
def test_a_helper_of_another_version_is_not_talked_into_anything(tmp_path: Path) -> None:
    """It does not know a field, or an op, and says which version it has."""
    site = as_account(tmp_path)
    for old, new in (('        "only": (LIST, NULL),\n', ""), ('"host.section": {', '"host.former": {')):

        def older(folder: str, old: str = old, new: str = new) -> None:
            path = Path(folder) / "front" / "request.py"
            text = path.read_text("utf-8")
            assert old in text
            path.write_text(text.replace(old, new), encoding="utf-8")

        with site.host.helper(edit=older):
            before = site.digest()
            played = play(site, CONVERGE, bcd_converge_units=SECTION)
            message = played.results("fail")[0]["msg"]
            assert played.rc == 2
            assert ("only" if not new else "host.section") in message
            assert "bring helper and collection to one version (role bcd_helper)" in message
            assert "bcd helper 0." in message or "bcd helper 1." in message
            assert site.digest() == before


@newest_core
def test_a_helper_that_cannot_start_is_waited_for_by_nobody(tmp_path: Path) -> None:
    """As systemd has it: the socket is given up after some starts that failed, and who waits there is told."""
    site = as_account(tmp_path)

    def broken(folder: str) -> None:
        Path(folder, "front", "helper_service.py").write_text("raise SystemExit(1)\n", encoding="utf-8")

    with site.host.helper(edit=broken):
        played = play(site, CONVERGE, bcd_converge_units=SECTION)
    message = played.results("fail")[0]["msg"]
    assert (played.rc, "journalctl -u bcd-helper" in message) == (2, True), message


@newest_core
def test_a_socket_that_nobody_listens_on_says_what_to_start(tmp_path: Path) -> None:
    site = as_account(tmp_path)
    done = site.host.run(
        "/.sim/python",
        "-c",
        "import os, socket; os.makedirs('/run/bcd'); socket.socket(socket.AF_UNIX).bind('/run/bcd/helper.sock'); "
        "os.chmod('/run/bcd/helper.sock', 0o666)",
    )
    assert done.returncode == 0, done.stderr
    played = play(site, CONVERGE, bcd_converge_units=SECTION)
    assert played.rc == 2
    assert "nothing listens on /run/bcd/helper.sock: " in played.results("fail")[0]["msg"]


HOSTILE = """
import contextlib, os, socket
os.umask(0)
listener = socket.socket(socket.AF_UNIX)
listener.bind("/run/bcd/helper.sock")
listener.listen(8)
print("listens", flush=True)
while True:
    peer, _address = listener.accept()
    with peer, contextlib.suppress(OSError):
        asked = b"".join(iter(lambda: peer.recv(65536), b""))
        with open("/tmp/asked", "ab") as log:
            log.write(asked)
        peer.sendall(b"{}")
"""


@newest_core
def test_no_token_goes_to_a_socket_that_another_account_laid(tmp_path: Path) -> None:
    """With the directory its own, with the socket alone, and behind a socket whose file is root's."""
    site = as_account(tmp_path)
    place = Path(at(site.host.tree, "/run/bcd"))
    place.mkdir()
    os.chown(place, 1001, 1001)
    words = site.host.entry("/.sim/python", "-c", HOSTILE, account=helper.STRANGER)
    with subprocess.Popen(words, stdout=subprocess.PIPE) as hostile:
        try:
            assert hostile.stdout is not None
            assert hostile.stdout.readline() == b"listens\n"
            for path, said in (
                (None, "/run/bcd is not a directory only root can write"),
                (place, "/run/bcd/helper.sock belongs to uid 1001"),
                (place / "helper.sock", "uid 1001 answers on /run/bcd/helper.sock"),
            ):
                if path is not None:
                    os.chown(path, 0, 0)
                join = {"k8s-join": {"joinTokenRef": "vault:token"}}
                ran = site.section(units=join, secrets={"vault:token": "abcdef.0123456789abcdef"})
                assert ran.rc == 2
                assert said in ran.status["msg"]
        finally:
            hostile.kill()
    assert not site.host.read("/tmp/asked")


# -- what is signed

PLANE = pki.ControlPlane()
MEMORY = f"{STATE}/helper-intent.json"


@newest_core
def test_a_signed_host_takes_what_is_signed_and_nothing_else(tmp_path: Path) -> None:
    site = as_account(tmp_path)
    helper.configure(site.host.tree, PLANE.config())
    signed = PLANE.desired_state(generation=7, host=SECTION)
    body = base64.b64decode(signed["body"])
    tampered = {**signed, "body": base64.b64encode(body.replace(b":10}", b":99}")).decode()}
    assert body != base64.b64decode(tampered["body"])
    other = {**SECTION, "sysctl": {"vm.swappiness": 99}}
    foreign = pki.ControlPlane().desired_state(generation=7, host=SECTION)
    with site.host.helper() as service:
        before = left(site)
        for given, why in (
            ({"bcd_converge_units": SECTION}, "demands a signed spec, and none is given"),
            ({"bcd_converge_signed_spec": tampered}, "signature"),
            ({"bcd_converge_signed_spec": foreign}, "root"),
            ({"bcd_converge_signed_spec": signed, "bcd_converge_units": other}, "in the options"),
        ):
            played = play(site, CONVERGE, **given)
            assert (played.rc in FAILED, left(site)) == (True, before), played.text
            assert why in played.status["msg"]
            assert "cryptography" not in played.status["msg"]
            assert played.status["section"]["state"] == "FAILED"
        assert play(site, CONVERGE, "--check", bcd_converge_signed_spec=tampered).rc in FAILED
        first = play(site, CONVERGE, bcd_converge_signed_spec=signed)
        assert (first.rc, first.recap) == (0, {"ok": 1, "changed": 1}), first.text + service.log()
        assert site.host.read("/proc/sys/vm/swappiness") == "10\n"
        assert os.stat(at(site.host.tree, MEMORY)).st_mode & 0o777 == 0o600
        after = left(site)
        second = play(site, CONVERGE, bcd_converge_signed_spec=signed)
        assert (second.rc, second.recap, left(site)) == (0, {"ok": 1}, after), second.text
        older = PLANE.desired_state(generation=6, host=SECTION)
        assert play(site, CONVERGE, bcd_converge_signed_spec=older).rc in FAILED
        assert left(site) == after


# -- holds


@newest_core
def test_devices_are_held_and_released_through_the_helper(tmp_path: Path) -> None:
    site = as_account(tmp_path, "h100")
    with site.host.gpus() as gpus:
        devices = [{"id": gpus.cards[0].uuid}]
    held = [{"allocation_id": "a1", "binding": "BINDING_HOLD", "devices": devices, "env": ["TOKEN=5ecret"]}]
    with site.host.helper():
        given = {"bcd_converge_units": {}, "bcd_devices_generation": 4}
        first = play(site, CONVERGE, "--diff", **given, bcd_devices_assignments=held)
        assert first.rc == 0, first.text
        assert first.results(".cdi_holds")[0]["bound"] == ["a1"]
        assert "5ecret" not in first.text
        assert "TOKEN=5ecret\n" in (site.host.read("/run/bcd/allocations/a1.env") or "")
        second = play(site, CONVERGE, **given, bcd_devices_assignments=held).results(".cdi_holds")[0]
        assert (second["kept"], second["changed"]) == (["a1"], False)
        released = play(site, CONVERGE, **given, bcd_devices_assignments=[])
        assert released.results(".cdi_holds")[0]["released"] == ["a1"]
    assert site.host.read("/etc/cdi/bcd-a1.json") is None


# -- the token of a join

STAGED = "/var/lib/bcd-hostconfig/k8s/bootstrap-token"


class Staged:
    """Looks at the staged token as often as it can: its mode and owner, whenever it is there."""

    def __init__(self, tree: str) -> None:
        self.seen: set[tuple[int, int]] = set()
        self._path = at(tree, STAGED)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Staged:
        self._thread.start()
        return self

    def __exit__(self, *_unused: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.001):
            with contextlib.suppress(FileNotFoundError):
                seen = os.stat(self._path)
                self.seen.add((seen.st_mode & 0o777, seen.st_uid))


@newest_core
def test_a_worker_joins_without_sudo_and_nothing_shows_its_token(tmp_path: Path) -> None:
    with Cluster(version="1.32.3") as cluster:
        packages = ("containerd", *(f"{name}=1.32.3-1.1" for name in KUBERNETES))
        one = kube_site.Site(tmp_path, cluster, "worker", packages=packages)
        config = one.host.read(helper.CONFIG) or ""
        helper.install(one.host.tree)
        helper.configure(one.host.tree, config)
        parts = (one.token, one.token.rpartition(".")[2])
        units = {"k8s-join": one.settings()}
        with one.host.helper() as service, kube_site.Watch(one) as watch, Staged(one.host.tree) as staged:
            checked = one.converge(units, "--check", "-vvvv", "--diff", sim_account=helper.MEMBER)
            assert (checked.rc, one.lookups(), staged.seen) == (0, 0, set()), checked.text
            right = one.token
            wrong = f"{right[:-4]}zzzz"
            one.keep(wrong)
            failed = one.converge(units, "-vvvv", "--diff", sim_account=helper.MEMBER)
            assert (failed.rc, one.lookups()) == (2, 1), failed.text
            one.keep(right)
            joined = one.converge(units, "-vvvv", "--diff", sim_account=helper.MEMBER)
            assert (joined.rc, joined.unit["state"], one.lookups()) == (0, "converged", 2), joined.unit
            again = one.converge(units, sim_account=helper.MEMBER)
            assert (again.rc, again.recap, one.lookups()) == (0, {"ok": 1}, 2), again.text
        assert list(cluster.nodes) == [kube_site.HOST]
        assert (watch.told, staged.seen) == (set(), {(0o600, 0)})
        assert watch.joins > 0
        shown = checked.text + failed.text + joined.text + again.text + service.log()
        assert [part for part in (*parts, wrong, wrong.rpartition(".")[2]) if part in shown] == []
        assert one.traces() == []
        assert one.host.read(STAGED) is None
