# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks on what root applies, each with its outcome: refused in these words, by every module, and nothing written.

The host was converged by generation 5 of a signed spec, and knows its node. What is tested where it happens:

| attack | outcome | tested in |
|---|---|---|
| a link, or another's directory, where root writes | refused | `core/test_rootfs.py`, `front/test_helper_jail.py` |
| a directory swapped while root writes | the write lands in the checked one | `front/test_helper_jail.py` |
| chains of certificates that must not be believed | refused | `intent/test_certificates.py` |
| bodies and envelopes in any other form | refused | `intent/test_body.py`, `test_envelope.py` |
| mutations of anything that is signed | refused | `intent/test_fuzz.py` |
| whatever a signer signs rightly | applied where a unit takes it | `front/test_signed_fuzz.py` |
| rotations, nodes, generations in any order | refused when older | `intent/test_acceptance.py` |
| requests of the helper: fields, names, paths, JSON | refused | `front/test_request.py`, `test_helper.py` |
| what it is to put where runtimes read | refused | `front/test_helper_files.py` |
| any request at all, signed or not | nothing but what is signed | `front/test_helper_fuzz.py` |
| work and files without end, to fill disk and time | refused past a bound | `test_request.py`, `test_helper*.py` |
| many passes, so that bcd agent has no turn | it waits for one | `front/test_agent.py` |
| a look at what root alone may read, by a difference | not shown | `front/test_helper.py` |
| its clients: too much, too slow, too many, too rude | answered or ended | `core/test_local_server.py` |
| other accounts, and a configuration that is not root's | not served | `front/test_helper_jail.py` |
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as machine
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import holds, opening, section
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.single import Asked, unit_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import MEMORY, RECORD
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.sysctl import UNIT
from tests import pki
from tests.pki import ControlPlane, text
from tests.unit.fake_host import FakeHost, Killed

SWAP = "/proc/sys/vm/swappiness"
OPTIONS = "units wire_units known generation signed_spec secrets node_id site only label fail_on_secrets".split()
HOLDS = "assignments generation passthrough instances max_cdi_version slot_count acknowledge signing_key".split()
HOLDS += ["node_id", "signed_spec"]
NOW = 1_800_000_000
PLANE = ControlPlane()
NEXT = pki.root("bcd root 2")
WANTED: dict[str, Any] = {"sysctl": {"vm.swappiness": 10}}
EVIL: dict[str, Any] = {"sysctl": {"vm.swappiness": 99}}
BY_ROOT, BY_KEY = "the root is pinned", "the join key is pinned"
Outcome = dict[str, Any]


def spec(generation: int = 6, *host: Any, **said: Any) -> dict[str, Any]:
    """A spec that would change the host, and is all right but for what is said of it."""
    usual: dict[str, Any] = {"node_id": "node-1", "host": host[0] if host else EVIL, "devices": []}
    return PLANE.desired_state(**{**usual, **said}, generation=generation)


def of_body(change: Callable[[str], str], **said: Any) -> dict[str, Any]:
    """One whose body is another text, rightly signed all the same: by a control plane that is not ours."""
    body = text(pki.desired_state_body("node-1", 6, EVIL, []))
    return pki.envelope(change(body), pki.DESIRED_STATE, PLANE.worker, **said)


def bundle(version: int, *roots: Any, **said: Any) -> dict[str, Any]:
    return PLANE.trust_bundle(version, roots, **said)


@contextmanager
def unlocked(_host: Host, _what: str) -> Iterator[None]:
    """The lock, held."""
    yield


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """The machine that the modules open."""
    host = FakeHost({SWAP: "60\n"})
    assert issubclass(PredictedHost, Host)  # made from the class of the real one, before its name is another's
    monkeypatch.setattr(machine, "Host", lambda: host)
    monkeypatch.setattr(holds, "Host", lambda: host)
    monkeypatch.setattr(section, "Host", lambda: host)
    monkeypatch.setattr(opening, "only_pass", unlocked)
    return host


def enrolled(host: FakeHost, how: str) -> None:
    """Pinned, and converged by generation 5 once."""
    host.put(CONFIG, PLANE.config() if how == BY_ROOT else PLANE.config(roots=(), join=True))
    if how == BY_KEY:
        host.files[RECORD] = File(json.dumps(PLANE.join_response("node-1", 1, [PLANE.root])), 0o600)
    first = spec(5, WANTED, bundle=bundle(2, PLANE.root) if how == BY_KEY else None)
    done = by_section(signed_spec=first)
    assert (done["section"]["state"], host.text(SWAP)) == ("CONVERGED", "10\n"), done
    host.calls.clear()


def by_section(check: bool = False, plans: bool = False, **given: Any) -> Outcome:
    params = {**dict.fromkeys(OPTIONS), "max_disruption": "gpu", "fail_on": "failed", **given}
    return section.section_result(params, check, plans)


def by_unit(check: bool = False, **given: Any) -> Outcome:
    return unit_result(UNIT, Asked(**{"settings": {}, **given}), check)


def by_holds(check: bool = False, **given: Any) -> Outcome:
    return holds.holds_result({**dict.fromkeys(HOLDS), "max_disruption": "gpu", **given}, check)


# -- what is presented as a signed spec


class Attack(NamedTuple):
    """`told` begins the refusal, or stands in it."""

    name: str
    told: str
    presents: Callable[[], Any]
    how: str = BY_ROOT


PRESENTED = (
    Attack("an older generation, replayed", "has generation 4, and this host has accepted 5", lambda: spec(4)),
    Attack(
        "an older generation where a join record names the node",
        "has generation 4, and this host has accepted 5",
        lambda: spec(4, bundle=bundle(2, PLANE.root)),
        BY_KEY,
    ),
    Attack("the same generation with another content", "accepted with another content", lambda: spec(5)),
    Attack("another node's spec", "is for the node node-2, and this host is node-1", lambda: spec(node_id="node-2")),
    Attack(
        "another node's spec where a join record names ours",
        "is for the node node-2, and this host is node-1",
        lambda: spec(node_id="node-2", bundle=bundle(2, PLANE.root)),
        BY_KEY,
    ),
    Attack("one for no node", "node_id is ''", lambda: spec(node_id="")),
    Attack(
        "a body that was edited",
        "the signature of signed_spec does not verify",
        lambda: {**spec(5, WANTED), "body": spec()["body"]},
    ),
    Attack(
        "a signature made for another purpose",
        "did not sign this body as a desired-state",
        lambda: pki.envelope(text(pki.desired_state_body("node-1", 6, EVIL)), "attested-report", PLANE.worker),
    ),
    Attack(
        "a root of the attacker's", "is no root that this host trusts", lambda: ControlPlane().desired_state(host=EVIL)
    ),
    Attack("a root that was added only elsewhere", "is no root that", lambda: spec(signer=NEXT.worker())),
    Attack("a wrong role", "does not have the role bcd://role/worker", lambda: spec(signer=wrong_role())),
    Attack("no role", "does not have the role bcd://role/worker", lambda: spec(signer=PLANE.root.worker(roles=()))),
    Attack("the root's own signature", "is a root alone", lambda: spec(signer=PLANE.root)),
    Attack("a worker who made another", "is no authority's", lambda: spec(signer=PLANE.worker.worker("w"))),
    Attack(
        "a new body under a certificate that has ended",
        "ended at 2027-01-15T07:59:59Z, and this host's clock says 2027-01-15T08:00:00Z",
        lambda: spec(signer=PLANE.root.worker(end=NOW - 1)),
    ),
    Attack("an unknown field of the envelope", "has 'site', which is no field of it", lambda: {**spec(), "site": "x"}),
    Attack(
        "an unknown field of the body", "has 'a', which is no field", lambda: of_body(lambda it: '{"a":1,' + it[1:])
    ),
    Attack("keys in another order", "is no canonical JSON", lambda: of_body(reordered)),
    Attack("a key twice", "node_id is there twice", lambda: of_body(lambda it: it[:-1] + ',"node_id":"node-1"}')),
    Attack("data behind the body", "is no canonical JSON", lambda: of_body(lambda it: it + " ")),
    Attack("a number that is none", "is no canonical JSON", lambda: of_body(lambda it: it.replace(":6,", ":NaN,"))),
    Attack("a unit outside", "'../etc' is no name of a unit", lambda: spec(host={"../etc": {}})),
    Attack("a unit in capitals", "'Sysctl' is no name of a unit", lambda: spec(host={"Sysctl": {}})),
    Attack("a unit without a name", "'' is no name of a unit", lambda: spec(host={"": {}})),
    Attack("a unit with 65 characters", f"'{'a' * 65}' is no name of a unit", lambda: spec(host={"a" * 65: {}})),
    Attack("text in the place of a spec", "signed_spec is no mapping of body", lambda: json.dumps(spec())),
    Attack("an empty spec", "signed_spec has no body", dict),
    Attack(
        "a body of two megabytes",
        "and more than 1048576 bytes are not taken",
        lambda: of_body(lambda it: it + " " * 2**21),
    ),
    Attack("no certificates", "is no list of 1 to 8 certificates", lambda: {**spec(), "certificates": []}),
    Attack(
        "a chain of a hundred", "is no list of 1 to 8", lambda: {**spec(), "certificates": spec()["certificates"] * 50}
    ),
    Attack(
        "an older bundle", "the trust bundle has version 1, and this host has accepted 2", lambda: bundled(1), BY_KEY
    ),
    Attack(
        "a bundle from another key", "and root's config.toml pins", lambda: bundled(3, signer=pki.root("join")), BY_KEY
    ),
    Attack(
        "a bundle that a worker signed", "and root's config.toml pins", lambda: bundled(3, signer=PLANE.worker), BY_KEY
    ),
    Attack(
        "a bundle without roots",
        "no root counts for signed_spec (its trust_bundle names none)",
        lambda: spec(bundle=bundle(3)),
        BY_KEY,
    ),
    Attack("no bundle, so that the record's roots count again", "signed_spec has no trust_bundle, and", spec, BY_KEY),
    Attack(
        "a bundle that was edited",
        "the pinned key did not sign this body as a trust-bundle",
        lambda: spec(bundle={**bundle(2, PLANE.root), "body": bundle(3, NEXT)["body"]}, signer=NEXT.worker()),
        BY_KEY,
    ),
    Attack(
        "the join response in the place of a bundle",
        "the pinned key did not sign this body as a trust-bundle",
        lambda: spec(bundle=PLANE.join_response("node-1", 9, [NEXT]), signer=NEXT.worker()),
        BY_KEY,
    ),
)


def wrong_role() -> Any:
    return PLANE.root.worker(roles=("bcd://role/worker2", "bcd://role/join"))


def reordered(body: str) -> str:
    return json.dumps(dict(reversed(list(json.loads(body).items()))), separators=(",", ":"))


def bundled(version: int, **said: Any) -> dict[str, Any]:
    return spec(bundle=bundle(version, PLANE.root, NEXT, **said), signer=NEXT.worker())


@pytest.mark.parametrize("attack", PRESENTED, ids=lambda attack: attack.name)
def test_what_is_presented_as_signed_changes_nothing(host: FakeHost, attack: Attack) -> None:
    enrolled(host, attack.how)
    presented = attack.presents()
    refused(host, attack.told, lambda check: by_section(check, signed_spec=presented))
    refused(host, attack.told, lambda check: by_section(check, plans=True, signed_spec=presented))
    refused(host, attack.told, lambda check: by_unit(check, signed_spec=presented))
    refused(host, attack.told, lambda check: by_holds(check, signed_spec=presented))


def refused(host: FakeHost, told: str, asks: Callable[[bool], Outcome]) -> None:
    """What is asked is refused in these words, in check mode too, and leaves every file as it was."""
    before = (dict(host.files), dict(host.links))
    for check in (True, False):
        result = asks(check)
        assert told in result["msg"], result["msg"]
        assert (result["changed"], result.get("reason", "Refused")) == (False, "Refused")
        assert (host.calls, (host.files, host.links)) == ([], before)


# -- what is asked without a signature, or beside one


@pytest.mark.parametrize("how", [BY_ROOT, BY_KEY])
def test_what_is_not_signed_changes_nothing(host: FakeHost, how: str) -> None:
    enrolled(host, how)
    told = "a signed spec, and none is given: nothing unsigned is applied: give signed_spec"
    sections: list[dict[str, Any]] = [EVIL, WANTED, {}, {"../etc": {}}]
    for units in sections:
        refused(host, told, partial(by_section, units=units, generation=99))
    refused(host, told, lambda check: by_section(check, wire_units=[], known=["sysctl"], generation=99))
    asked: list[dict[str, Any] | None] = [EVIL["sysctl"], {}, None]
    for settings in asked:
        refused(host, told, partial(by_unit, settings=settings))
    refused(host, told, lambda check: by_holds(check, assignments=[], generation=99))


def test_what_is_asked_beside_a_spec_changes_nothing(host: FakeHost) -> None:
    """A new spec that is all right in itself: even it is not remembered before what is asked beside it agrees."""
    enrolled(host, BY_ROOT)
    new = spec(6, {"sysctl": {"vm.swappiness": 20}})
    differs = "sysctl: vm.swappiness is 99 in the options and 20 in the signed spec"
    refused(host, differs, lambda check: by_section(check, signed_spec=new, units=EVIL))
    refused(host, differs, lambda check: by_unit(check, signed_spec=new, settings=EVIL["sysctl"]))
    wire = [{"unit": "sysctl", "settings": '{"vm.swappiness":99}'}]
    refused(host, differs, lambda check: by_section(check, signed_spec=new, wire_units=wire))
    refused(host, "the options do not name sysctl", lambda check: by_section(check, signed_spec=new, units={}))
    refused(
        host, "generation is 7 in the options and 6", lambda check: by_section(check, signed_spec=new, generation=7)
    )
    refused(
        host,
        "sysctl is to be removed, and the signed spec names it",
        lambda check: by_unit(check, signed_spec=new, settings=None),
    )
    other = spec(6, {"cpu": {}})
    refused(host, "the signed spec does not name sysctl", lambda check: by_unit(check, signed_spec=other))
    held = [{"allocation_id": "a", "binding": "cdi", "devices": ["GPU-1"]}]
    refused(host, "assignments differ", lambda check: by_holds(check, signed_spec=new, assignments=held))
    another = "node_id is 'node-2', and the signed spec is for node-1: leave it out"
    refused(host, another, lambda check: by_holds(check, signed_spec=new, node_id="node-2"))
    told = "generation is 7 in the options and 6"
    refused(host, told, lambda check: by_holds(check, signed_spec=new, generation=7))
    refused(host, another, lambda check: by_section(check, signed_spec=new, node_id="node-2"))
    refused(host, another, lambda check: by_unit(check, signed_spec=new, given=Given(node_id="node-2")))
    host.put(SWAP, "60\n")
    assert by_section(signed_spec=spec(5, WANTED))["changed"]  # the one before is still the newest


def test_a_section_that_the_spec_does_not_have_changes_nothing(host: FakeHost) -> None:
    enrolled(host, BY_ROOT)
    bare = PLANE.desired_state("node-1", 6, devices=[])
    refused(host, "has no host section, and manages no unit", lambda check: by_section(check, signed_spec=bare))
    refused(host, "has no host section", lambda check: by_unit(check, signed_spec=bare, settings=None))
    bare = PLANE.desired_state("node-1", 6, host=WANTED)
    refused(host, "has no devices, and manages no hold", lambda check: by_holds(check, signed_spec=bare))


HOLD: dict[str, Any] = {"allocation_id": "a", "binding": "BINDING_HOLD", "devices": [{"id": "GPU-1"}]}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"more": 1}, "'assignments[0].more' is no key of assignments"),
        ({"devices": [{"id": "GPU-1", "more": 1}]}, "'assignments[0].devices[0].more' is no key of devices"),
        ({"devices": [None]}, "assignments[0].devices[0] is null, and takes a mapping"),
        ({"devices": ["GPU-1"]}, "assignments[0].devices[0] is a string ('GPU-1'), and takes a mapping"),
        ({"limits": {"cpu": 1}}, "'assignments[0].limits.cpu' is no key of limits"),
        ({"limits": 1}, "assignments[0].limits is an integer (1), and takes a mapping"),
    ],
)
def test_an_assignment_that_is_none_holds_nothing_whoever_signed_it(
    host: FakeHost, change: dict[str, Any], told: str
) -> None:
    enrolled(host, BY_ROOT)
    result = by_holds(signed_spec=spec(6, devices=[{**HOLD, **change}]))
    assert told in result["msg"]
    assert (result["reason"], result["changed"], host.calls) == ("Refused", False, [f"write {MEMORY}"])


# -- what decides, put there by another account

OWN = (File("", 0o664), File("", 0o646), File("", 0o600, uid=1000))


@pytest.mark.parametrize("path", [CONFIG, RECORD, MEMORY])
@pytest.mark.parametrize("seen", OWN, ids=["group-writable", "writable by all", "another account's"])
def test_a_file_that_another_account_could_have_written_changes_nothing(host: FakeHost, path: str, seen: File) -> None:
    enrolled(host, BY_KEY)
    host.files[path] = seen._replace(text=host.text(path) or "")
    everything_refused(host, f"{path} must be a regular file root owns that no one else can write")


@pytest.mark.parametrize("path", [CONFIG, RECORD, MEMORY])
def test_a_symbolic_link_in_its_place_changes_nothing(host: FakeHost, path: str) -> None:
    enrolled(host, BY_KEY)
    host.files["/home/mallory/file"] = host.files.pop(path)
    host.links[path] = "/home/mallory/file"
    everything_refused(host, f"{path} must be a regular file root owns that no one else can write")


@pytest.mark.parametrize("directory", ["/etc/bcd", "/etc", "/var/lib/bcd-hostconfig", "/var/lib", "/"])
@pytest.mark.parametrize("there", [True, False])
def test_a_directory_of_another_account_changes_nothing(host: FakeHost, directory: str, there: bool) -> None:
    enrolled(host, BY_KEY)
    if not there:  # swapped for one without the files
        for path in [path for path in host.files if path.startswith(f"{directory.rstrip('/')}/") and path != SWAP]:
            del host.files[path]
        host.put(CONFIG, PLANE.config(roots=(), join=True))
    host.files[directory] = File("", 0o755, uid=1000, regular=False)
    everything_refused(host, f"{directory} is not a directory only root can write")


def everything_refused(host: FakeHost, told: str) -> None:
    """Signed or not: what decides whether a spec counts cannot be believed."""
    good = spec(6, EVIL, bundle=bundle(2, PLANE.root))
    refused(host, told, lambda check: by_section(check, signed_spec=good))
    refused(host, told, lambda check: by_unit(check, signed_spec=good))
    refused(host, told, lambda check: by_holds(check, signed_spec=good))
    refused(host, told, lambda check: by_section(check, units=EVIL))
    refused(host, told, lambda check: by_unit(check, settings=EVIL["sysctl"]))


def test_a_join_record_of_another_control_plane_changes_nothing(host: FakeHost) -> None:
    enrolled(host, BY_KEY)
    forged = ControlPlane().join_response("node-2", 9, [])
    host.files[RECORD] = File(json.dumps(forged), 0o600)
    everything_refused(host, "the join record is signed with the key")


def test_a_pin_that_is_misspelt_or_malformed_changes_nothing(host: FakeHost) -> None:
    enrolled(host, BY_ROOT)
    for line in ('command_roots_sha256 = "x"', 'command_root_sha256 = "sha256:00"', "command_root_sha256 = 1"):
        host.put(CONFIG, line + "\n")
        everything_refused(host, ": have root correct it")


# -- what is all right


@pytest.mark.parametrize("how", [BY_ROOT, BY_KEY])
def test_what_the_control_plane_signed_is_applied_and_remembered(host: FakeHost, how: str) -> None:
    enrolled(host, how)
    new = spec(6, {"sysctl": {"vm.swappiness": 20}}, bundle=bundle(2, PLANE.root) if how == BY_KEY else None)
    checked = by_section(True, signed_spec=new)
    assert (checked["changed"], host.calls) == (True, [])
    done = by_unit(signed_spec=new, settings={"vm.swappiness": 20})
    assert (done["state"], done["changed"], host.text(SWAP)) == ("converged", True, "20\n")
    kept = json.loads(host.text(MEMORY) or "")
    assert (kept["envelope"], kept["generation"], host.files[MEMORY].mode) == (new, 6, 0o600)
    result = by_section(signed_spec=new)
    assert (result["changed"], result["section"]["observed_generation"]) == (False, 6)
    host.calls.clear()
    assert not by_section(signed_spec=new)["changed"]
    assert host.calls == []
    alone = spec(7, {"sysctl": {"vm.swappiness": 30}}, bundle=new.get("trust_bundle"))
    assert by_unit(signed_spec=alone)["state"] == "converged"
    assert host.text(SWAP) == "30\n"
    assert by_unit(signed_spec=spec(8, {}, bundle=new.get("trust_bundle")), settings=None)["changed"]


def test_reports_of_holds_are_in_the_name_that_is_signed(host: FakeHost) -> None:
    """A key to sign them with takes a node, and the spec has one."""
    enrolled(host, BY_ROOT)
    host.files["/etc/bcd/node.key"] = File(PLANE.worker.private_pem, 0o600)
    key: dict[str, Any] = {"signing_key": "/etc/bcd/node.key", "assignments": []}
    host.files.pop(CONFIG)
    assert "is given without node_id" in by_holds(**key)["msg"]
    host.put(CONFIG, PLANE.config())
    assert "msg" not in by_holds(signed_spec=spec(6, WANTED), **key)


def test_a_killed_pass_leaves_what_counts(host: FakeHost) -> None:
    enrolled(host, BY_ROOT)
    new = spec(6, {"sysctl": {"vm.swappiness": 20}})
    for change in (1, 2):  # the memory, and what follows it
        host.kill_at = change
        host.calls.clear()
        with pytest.raises(Killed):
            by_section(signed_spec=new)
        host.kill_at = 0
    assert "has generation 5, and this host has accepted 6" in by_section(signed_spec=spec(5, WANTED))["msg"]
    assert by_section(signed_spec=new)["section"]["state"] == "CONVERGED"


def test_no_key_and_no_signature_is_told(host: FakeHost) -> None:
    enrolled(host, BY_ROOT)
    for signed in (spec(6), spec(4), spec(6, signer=NEXT.worker())):
        told = json.dumps([by_section(signed_spec=signed), by_unit(signed_spec=signed), by_holds(signed_spec=signed)])
        assert signed["signature"] not in told
        assert base64.b64decode(signed["signature"]).hex() not in told
        assert "PRIVATE KEY" not in told
