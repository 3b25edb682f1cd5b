# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sign_spec signs, and what it refuses to sign: what no host would take."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.sign_spec import sign_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.acceptance import accept
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.envelope import envelope
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import Memory
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.signing import desired_state
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pins import Pins
from tests import pki

PLANE = pki.ControlPlane()
SECTION = {"sysctl": {"vm.swappiness": 10}, "kernel-modules": {"load": ["tun"]}}
HOLD = {
    "allocation_id": "alloc_1",
    "binding": "BINDING_HOLD",
    "devices": [{"id": "GPU-5f1c2a90-0000-4000-8000-000000000001"}],
}


def asked(signer: pki.Certified = PLANE.worker, **changes: Any) -> dict[str, Any]:
    """The options, as Ansible gives them."""
    options = {
        "node_id": "node-1",
        "generation": 7,
        "host": SECTION,
        "devices": None,
        "private_key": signer.private_pem,
        "certificates": signer.chain,
        "trust_bundle": None,
    }
    return {**options, **changes}


def refusal(**changes: Any) -> str:
    result = sign_result(asked(**changes))
    assert (result["reason"], result["retryable"], result["changed"]) == ("Refused", False, False)
    assert "envelope" not in result
    message: str = result["msg"]
    return message


def test_the_body_is_canonical_and_names_its_units_in_their_order() -> None:
    made = sign_result(asked(devices=[HOLD]))["envelope"]
    # The form of the contract, written by hand: sorted keys, no white space, settings as text of their own.
    body = (
        '{"devices":[{"allocation_id":"alloc_1","binding":"BINDING_HOLD","devices":'
        '[{"id":"GPU-5f1c2a90-0000-4000-8000-000000000001"}]}],"generation":7,"host":['
        '{"settings":"{\\"load\\":[\\"tun\\"]}","unit":"kernel-modules"},'
        '{"settings":"{\\"vm.swappiness\\":10}","unit":"sysctl"}],"kind":"DesiredState","node_id":"node-1"}'
    )
    assert base64.b64decode(made["body"]).decode() == body
    assert made["certificates"] == PLANE.worker.chain
    assert set(made) == {"body", "signature", "certificates"}


@pytest.mark.parametrize("kind", ["ed25519", "p256", "rsa2048"])
def test_a_host_that_pins_the_root_takes_it(kind: str) -> None:
    plane = pki.ControlPlane(kind)
    result = sign_result(asked(plane.worker))
    assert result["root_sha256"] == plane.root.digest
    taken = accept(envelope(result["envelope"]), Pins(frozenset({plane.root.digest})), None, Memory(), int(time.time()))
    assert (taken.spec.node_id, taken.spec.generation, taken.spec.host) == ("node-1", 7, SECTION)
    assert taken.spec.devices is None


def test_the_signature_is_one_that_the_library_verifies_over_the_purpose_and_the_body() -> None:
    made = sign_result(asked())["envelope"]
    body = base64.b64decode(made["body"])
    PLANE.worker.key.public_key().verify(base64.b64decode(made["signature"]), b"desired-state\n" + body)


def test_suboptions_that_were_not_given_are_left_out_and_what_is_empty_stays() -> None:
    """Ansible fills them in with null."""
    made = sign_result(asked(host={}, devices=[{**HOLD, "env": None, "limits": {"cpus": "0-3", "mems": None}}]))
    body = json.loads(base64.b64decode(made["envelope"]["body"]))
    assert body["devices"] == [{**HOLD, "limits": {"cpus": "0-3"}}]
    assert body["host"] == []


def test_keys_and_certificates_may_be_files_and_a_file_may_hold_a_chain(tmp_path: Path) -> None:
    signer = PLANE.root.authority().worker()
    (tmp_path / "key.pem").write_text(signer.private_pem, encoding="utf-8")
    leaf, middle, root = signer.chain
    # As openssl prints a certificate, and as another system ends its lines.
    (tmp_path / "chain.pem").write_text(f"Certificate:\n    Data: …\n{leaf}{middle}".replace("\n", "\r\n"), "utf-8")
    files = [str(tmp_path / "chain.pem"), root]
    result = sign_result(asked(private_key=str(tmp_path / "key.pem"), certificates=files))
    assert result["envelope"]["certificates"] == signer.chain
    texts = [text.replace("\n", "\r\n") for text in signer.chain]
    assert sign_result(asked(signer, certificates=texts))["envelope"]["certificates"] == signer.chain


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"host": {"sysctl": {"kernel.core_pattern": "|/bin/sh"}}}, "kernel.core_pattern"),
        ({"host": {"sysctls": {}}}, "there is no unit 'sysctls'"),
        ({"host": {"hugepages": {"pages2m": "4"}}}, "pages2m is a string ('4'), and takes an integer"),
        ({"host": {"hugepages": {"pages_2m": 4}}}, "'pages_2m' is no setting of this unit"),
        ({"host": {"mig-layout": {"from": "pool"}}}, "mig-layout: from: pool is not rendered"),
        ({"host": {"sysctl": None}}, "sysctl: its settings are null"),
        ({"host": {"sysctl": {"vm.swappiness": 1.5}}}, "1.5"),
        ({"devices": [HOLD, HOLD]}, "the allocation alloc_1 is there twice"),
        ({"devices": [{**HOLD, "env": ["A"]}]}, "assignments[0].env[0] is no KEY=VALUE"),
        ({"host": None}, "neither host nor devices is given"),
        ({"node_id": "../node"}, "node_id is '../node', and takes 1 to 128 letters, digits and _ . : -: correct it"),
        ({"node_id": ""}, "node_id is ''"),
        ({"generation": -1}, "generation is -1, and takes an integer from 0 that has 63 bits: correct it"),
        ({"generation": 2**63}, "generation is 9223372036854775808, and takes an integer from 0 that has 63 bits"),
        (
            {"host": {"kernel-modules": {"load": [f"m{n:060d}" for n in range(20000)]}}},
            "hosts take 1048576",
        ),
    ],
)
def test_what_no_host_would_apply_is_not_signed(changes: dict[str, Any], said: str) -> None:
    assert said in refusal(**changes)


def test_no_text_is_made_that_no_host_would_read() -> None:
    with pytest.raises(Refused, match=r"'\.\./etc' is no name of a unit"):
        desired_state("node-1", 7, {"../etc": {}}, None)


@pytest.mark.parametrize(
    ("signer", "said"),
    [
        (PLANE.root.worker(end=1_600_000_000), "ended at 2020-09-13T12:26:40Z"),
        (PLANE.root.worker(roles=["bcd://role/join"]), "does not have the role bcd://role/worker"),
        (PLANE.root.worker(roles=[]), "does not have the role bcd://role/worker (its URIs: none)"),
        (PLANE.root, "is a root alone"),
        (PLANE.root.authority(), "is an authority's"),
        (PLANE.root._replace(certificate=pki.root().certificate), "private_key is not the key of the first"),
    ],
)
def test_what_no_host_would_believe_is_not_signed(signer: pki.Certified, said: str) -> None:
    assert said in refusal(signer=signer)


def test_a_chain_that_is_broken_is_not_signed_with() -> None:
    other = pki.root("bcd root")  # of the same name, and another key
    chain = [PLANE.worker.chain[0], *other.chain]
    assert "is not issued by" in refusal(certificates=chain)
    assert "private_key is not the key of the first certificate" in refusal(certificates=PLANE.worker.chain[::-1])
    assert "certificates[1] has no certificate in PEM form" in refusal(
        certificates=[PLANE.worker.chain[0], "-----BEGIN SOMETHING-----"]
    )
    assert "there is no file /nowhere.pem" in refusal(certificates=["/nowhere.pem"])


@pytest.mark.parametrize(
    ("certificates", "said"),
    [
        ([], "certificates has 0, and hosts take up to 8: give the signer's own, then its issuers, and last the root"),
        (
            PLANE.worker.chain * 5,
            "certificates has 10, and hosts take up to 8: give the signer's own, then its issuers",
        ),
        (PLANE.worker.chain[:1], "certificates has the signer's own alone: give the signer's own, then its issuers"),
        ([""], "certificates[0]: there is no file "),
        (["/tmp"], "certificates[0]: there is no file /tmp that this account can read"),
        (["\0"], "certificates[0]: there is no file "),
    ],
)
def test_certificates_that_are_no_chain(certificates: list[str], said: str) -> None:
    assert said in refusal(certificates=certificates)


def test_what_openssl_prints_above_a_key_or_a_certificate_is_no_matter() -> None:
    signer = PLANE.worker
    above = ["Certificate:\n    Data:\n" + one for one in signer.chain]
    made = sign_result(
        asked(private_key=f"Bag Attributes\n    localKeyID: 01\n{signer.private_pem}", certificates=above)
    )
    assert made["envelope"]["certificates"] == signer.chain


def test_a_bundle_goes_along_where_it_has_the_root() -> None:
    bundle = PLANE.trust_bundle(3, [PLANE.root])
    result = sign_result(asked(trust_bundle=bundle))
    assert result["envelope"]["trust_bundle"] == bundle
    taken = accept(envelope(result["envelope"]), Pins(join_key=PLANE.join.pin), None, Memory(), int(time.time()))
    assert (taken.spec.generation, taken.memory.bundle_version) == (7, 3)


@pytest.mark.parametrize(
    ("bundle", "said"),
    [
        (PLANE.trust_bundle(3, [pki.root("another")]), f"version 3 has not the root {PLANE.root.digest}"),
        (PLANE.trust_bundle(3, []), f"version 3 has not the root {PLANE.root.digest}"),
        ({**PLANE.trust_bundle(3, [PLANE.root]), "signature": "AAAA"}, "the signature of the trust bundle"),
        ({**PLANE.trust_bundle(3, [PLANE.root]), "more": 1}, "signed_spec.trust_bundle has 'more'"),
        (PLANE.join_response(roots=[PLANE.root]), "the signature of the trust bundle"),
    ],
    ids=["another root", "no root", "no signature", "a field too many", "another purpose"],
)
def test_a_bundle_by_which_no_host_would_take_the_spec_is_refused(bundle: dict[str, Any], said: str) -> None:
    assert said in refusal(trust_bundle=bundle)


@pytest.mark.parametrize("cut", [0, 40, -40])
def test_no_message_has_a_word_of_the_key(cut: int, tmp_path: Path) -> None:
    """Neither of one that is damaged, in a file or as text, nor of one that lost its first line."""
    pem = PLANE.worker.private_pem
    broken = pem.replace(pem[60:70], "!!!!!") if not cut else pem[cut:] if cut > 0 else pem[:cut]
    (tmp_path / "key.pem").write_text(broken, encoding="utf-8")
    for given in (broken, str(tmp_path / "key.pem")):
        message = refusal(private_key=given)
        assert message.startswith("private_key is no ")
        assert [line for line in pem.splitlines()[1:-1] if line[:12] in message] == []


def test_a_key_that_others_protect_with_a_password_is_refused_without_asking() -> None:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    locked = PLANE.worker.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    assert "private_key is no private key in PEM form without a password" in refusal(private_key=locked.decode())


@pytest.mark.needs_ansible
@pytest.mark.parametrize("form", ["{}", "Bag Attributes\n{}", "x{}", "\ufeff{}", "bare"])
def test_a_key_in_whatever_form_is_not_in_what_the_module_was_given(form: str) -> None:
    """As -vvv, and Ansible before 2.19, show it: as Ansible gave it, masked."""
    pem = PLANE.worker.private_pem
    secret = pem.splitlines()[1]
    given = asked(private_key=secret if form == "bare" else form.format(pem))
    done = ran(given)
    assert (secret in done, '"invocation"' in done) == (False, True)


@pytest.mark.needs_ansible
def test_a_key_among_the_certificates_is_masked_and_the_name_of_a_file_is_not(tmp_path: Path) -> None:
    pem = PLANE.worker.private_pem
    (tmp_path / "key.pem").write_text(pem, encoding="utf-8")
    path = str(tmp_path / "key.pem")
    done = ran(asked(private_key=path, certificates=[pem + PLANE.worker.chain[0], *PLANE.worker.chain[1:]]))
    assert (pem.splitlines()[1] in done, path in done, '"envelope"' in done) == (False, True, True)


def ran(options: dict[str, Any]) -> str:
    """All that the module printed, with what it was given."""
    given = {name: value for name, value in options.items() if value is not None}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.bettercompute.bcd.plugins.modules.sign_spec"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {**given, "_ansible_inject_invocation": True}}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3] / ".build")},
    )
    return done.stdout + done.stderr
