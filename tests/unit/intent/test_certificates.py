# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chains of certificates: what is believed of a signer, and every reason not to."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.body import WORKER
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.certificates import load, pin_of
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.envelope import envelope
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.verify import verify_chain, verify_pinned
from tests import pki
from tests.pki import Certified

NOW = 1_800_000_000  # 2027-01-15T08:00:00Z
DAY = 86_400
PURPOSE = "desired-state"
BODY = b'{"kind":"DesiredState"}'
ROOT = pki.root()
OTHER = pki.root("another root")


def signed(signer: Certified, purpose: str = PURPOSE, **changed: Any) -> Any:
    return envelope({**pki.envelope(BODY, purpose, signer), **changed})


def verify(signer: Certified, root: Certified = ROOT, now: int | None = NOW, **changed: Any) -> None:
    verify_chain(signed(signer, **changed), PURPOSE, frozenset({root.digest}), WORKER, now)


def refused(signer: Certified, root: Certified = ROOT, now: int | None = NOW, **changed: Any) -> str:
    with pytest.raises(Refused) as raised:
        verify(signer, root, now, **changed)
    assert raised.value.__cause__ is None
    assert "PRIVATE" not in raised.value.message
    return raised.value.message


# -- who is believed


@pytest.mark.parametrize("kind", ["ed25519", "p256", "rsa2048"])
def test_a_worker_whose_certificate_a_root_issued(kind: str) -> None:
    plane = pki.ControlPlane(kind)
    verify(plane.worker, plane.root)
    verify(plane.root.authority(key=pki.private_key(kind)).worker(key=pki.private_key(kind)), plane.root)


@pytest.mark.parametrize("issuer", ["ed25519", "p256", "p384", "p521", "rsa2048"])
def test_authorities_have_larger_curves_too(issuer: str) -> None:
    root = pki.root(key=pki.private_key(issuer))
    verify(root.worker(), root)


@pytest.mark.parametrize(("kind", "digest"), [("p384", hashes.SHA384()), ("rsa2048", hashes.SHA512())])
def test_certificates_are_signed_with_larger_hashes_too(kind: str, digest: Any) -> None:
    root = pki.root(key=pki.private_key(kind), digest=digest)
    verify(root.worker(digest=digest), root)


def test_a_certificate_is_signed_with_rsa_pss() -> None:
    """The salt is as long as the digest (RFC 4055, 3.1). The builder of older libraries makes none."""
    from cryptography.hazmat.primitives.asymmetric import padding

    root = pki.root(key=pki.private_key("rsa2048"))
    for digest in (hashes.SHA256(), hashes.SHA384()):
        try:
            worker = root.worker(digest=digest, rsa_padding=padding.PSS(padding.MGF1(digest), digest.digest_size))
        except TypeError:
            assert int(pki.library_version().partition(".")[0]) < 41
            return
        verify(worker, root)


@pytest.mark.parametrize("lengths", [(None,), (1, 0), (5, None, 0)])
def test_authorities_stand_between_as_many_as_those_above_allow(lengths: tuple[int | None, ...]) -> None:
    signer = ROOT
    for number, length in enumerate(lengths):
        signer = signer.authority(f"intermediate {number}", length)
    verify(signer.worker())


def test_a_role_among_several_names() -> None:
    names = x509.SubjectAlternativeName(
        [
            x509.DNSName("worker.example"),
            x509.UniformResourceIdentifier("bcd://role/other"),
            x509.UniformResourceIdentifier(WORKER),
        ]
    )
    verify(ROOT.issues("several", extensions=[(names, True)]))


def test_a_certificate_counts_from_its_first_second_to_its_last() -> None:
    worker = ROOT.worker(begin=NOW, end=NOW + 60)
    verify(worker)
    verify(worker, now=NOW + 60)
    assert "ended at 2027-01-15T08:01:00Z" in refused(worker, now=NOW + 61)
    assert "counts from 2027-01-15T08:00:00Z on" in refused(worker, now=NOW - 1)


def test_an_authority_without_a_key_usage_may_issue() -> None:
    """RFC 5280, 6.1.4 (n): keyCertSign has to be set where there is a key usage."""
    root = pki.root("plain", extensions=[(x509.BasicConstraints(ca=True, path_length=None), True)])
    verify(root.worker(), root)


# -- who is not


def test_a_root_that_is_not_pinned() -> None:
    message = refused(pki.ControlPlane().worker)
    assert message.startswith("signed_spec.certificates[1] ('CN=bcd root') is no root that this host trusts (SHA-256 ")


def test_a_root_of_the_same_name_with_another_key() -> None:
    forged = pki.root().worker()
    message = refused(forged._replace(above=(ROOT.certificate,)))
    assert "certificates[0] ('CN=bcd worker') is not issued by signed_spec.certificates[1] ('CN=bcd root')" in message


def test_a_certificate_that_another_name_issued() -> None:
    made = pki.certify("w", pki.private_key().public_key(), ROOT.key, issuer=OTHER.certificate.subject)
    assert "is not issued by" in refused(Certified(pki.private_key(), made, (ROOT.certificate,)))


def test_a_certificate_of_another_kind_of_signature_than_its_issuers_key() -> None:
    p256 = pki.root(key=pki.private_key("p256"))
    worker = ROOT.worker()
    assert "is not issued by" in refused(worker._replace(above=(p256.certificate,)), p256)


def test_dates_of_every_certificate_count() -> None:
    ended = pki.root(end=NOW - DAY)
    assert "certificates[1] ('CN=bcd root') ended at 2027-01-14T08:00:00Z, and this host's clock says 2027-01-15T" in (
        refused(ended.worker(), ended)
    )
    middle = ROOT.authority(begin=NOW + DAY)
    assert "certificates[1] ('CN=bcd intermediate') counts from 2027-01-16T08:00:00Z on" in refused(middle.worker())
    message = refused(ROOT.worker(end=NOW - 1))
    assert message.endswith(
        "ended at 2027-01-15T07:59:59Z, and this host's clock says 2027-01-15T08:00:00Z: have the spec signed with a "
        "certificate that counts now, or set the clock"
    )


def test_dates_alone_are_not_looked_at_without_a_time() -> None:
    verify(ROOT.worker(end=NOW - DAY), now=None)
    assert "is no root that this host trusts" in refused(OTHER.worker(), now=None)
    assert "does not have the role" in refused(ROOT.worker(roles=()), now=None)


@pytest.mark.parametrize(
    "roles",
    [
        (),
        ("bcd://role/worker2",),
        ("bcd://role/worke",),
        ("bcd://role/Worker",),
        ("BCD://role/worker",),
        ("bcd://role/worker/",),
        (" bcd://role/worker",),
        ("bcd://role/worker\0",),
        ("bcd://role/join",),
    ],
    ids=repr,
)
def test_the_role_is_that_uri_exactly(roles: tuple[str, ...]) -> None:
    message = refused(ROOT.worker(roles=roles))
    assert f"does not have the role {WORKER} (its URIs: {', '.join(map(repr, roles)) or 'none'})" in message


def test_the_role_as_another_kind_of_name_is_none() -> None:
    names = x509.SubjectAlternativeName([x509.DNSName(WORKER), x509.RFC822Name("worker@example.org")])
    assert "does not have the role" in refused(ROOT.issues(WORKER, extensions=[(names, False)]))


def test_an_authority_signs_no_specs_even_with_the_role() -> None:
    both = [*pki.authority_extensions(), pki.worker_extensions()[2]]
    assert "is an authority's, and signs certificates and no specs" in refused(ROOT.issues("both", extensions=both))


def test_a_pinned_root_alone_signs_no_specs() -> None:
    lone = pki.root("lone", extensions=pki.worker_extensions())
    assert "is a root alone, and a root signs certificates and no specs" in refused(lone, lone)
    assert "is a root alone" in refused(ROOT)


def test_a_worker_issues_no_certificates() -> None:
    assert "certificates[1] ('CN=bcd worker') is no authority's" in refused(ROOT.worker().worker("worker's worker"))


@pytest.mark.parametrize("basic", [[], [(x509.BasicConstraints(ca=False, path_length=None), True)]])
def test_one_who_may_sign_certificates_and_is_no_authority(basic: list[tuple[Any, bool]]) -> None:
    """RFC 5280, 6.1.4 (k): the basic constraints have to be there, and to say so."""
    middle = ROOT.issues("no authority", extensions=[*basic, (pki.usage(key_cert_sign=True), True)])
    assert "certificates[1] ('CN=no authority') is no authority's" in refused(middle.worker())
    root = pki.root("no root", extensions=[*basic, (pki.usage(key_cert_sign=True), True)])
    assert "certificates[1] ('CN=no root') is no authority's" in refused(root.worker(), root)


def test_an_authority_whose_key_usage_leaves_certificates_out() -> None:
    ca = (x509.BasicConstraints(ca=True, path_length=None), True)
    middle = ROOT.issues("no signer", extensions=[ca, (pki.usage(digital_signature=True), True)])
    assert "certificates[1] ('CN=no signer') is no authority's" in refused(middle.worker())


def test_a_signer_whose_key_usage_leaves_signatures_out() -> None:
    _basic, _usage, names = pki.worker_extensions()
    worker = ROOT.issues("encrypts", extensions=[names, (pki.usage(key_encipherment=True), True)])
    assert "is not for digital signatures (its key usage)" in refused(worker)


def test_more_authorities_than_one_above_allows() -> None:
    narrow = ROOT.authority("narrow", 0).authority("below")
    assert "certificates[2] ('CN=narrow') allows 0 authorities below it, and 1 are there" in refused(narrow.worker())


@pytest.mark.parametrize("critical", [True, False])
def test_constraints_on_names_are_not_judged_and_so_refused(critical: bool) -> None:
    constraints = x509.NameConstraints(permitted_subtrees=[x509.DNSName("example.org")], excluded_subtrees=None)
    middle = ROOT.issues("narrow", extensions=[*pki.authority_extensions(), (constraints, critical)])
    assert "has the extension 2.5.29.30, which is not understood here" in refused(middle.worker())


UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.99999.1"), b"\x05\x00")
SERVERS = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])


@pytest.mark.parametrize(("extension", "oid"), [(UNKNOWN, "1.3.6.1.4.1.99999.1"), (SERVERS, "2.5.29.37")])
def test_what_is_critical_and_not_acted_on_is_refused(extension: Any, oid: str) -> None:
    worker = ROOT.issues("odd", extensions=[*pki.worker_extensions(), (extension, True)])
    assert f"has the extension {oid}, which is not understood here and must be" in refused(worker)
    verify(ROOT.issues("even", extensions=[*pki.worker_extensions(), (extension, False)]))


def test_a_certificate_twice() -> None:
    worker = ROOT.worker()
    again = worker._replace(above=(worker.certificate, ROOT.certificate))
    assert "has a certificate twice" in refused(again)


def test_a_loop_of_two_who_issue_each_other() -> None:
    left = ROOT.authority("left")
    right = left.authority("right")
    back = pki.certify(
        "left", left.key.public_key(), right.key, issuer=right.certificate.subject,
        extensions=pki.authority_extensions(),
    )  # fmt: skip
    worker = right.worker()
    assert "is no root that this host trusts" in refused(worker._replace(above=(right.certificate, back)))


def test_certificates_behind_the_root() -> None:
    worker = ROOT.worker()
    behind = worker._replace(above=(ROOT.certificate, OTHER.certificate))
    assert "is no root that this host trusts" in refused(behind)
    with pytest.raises(Refused, match=r"certificates\[1\].* is a root, and others stand behind it"):
        verify_chain(signed(behind), PURPOSE, frozenset({ROOT.digest, OTHER.digest}), WORKER, NOW)


def test_a_chain_in_another_order() -> None:
    middle = ROOT.authority()
    worker = middle.worker()
    turned = worker._replace(certificate=middle.certificate, above=(worker.certificate, ROOT.certificate))
    assert "certificates[1] ('CN=bcd worker') is no authority's" in refused(turned)


@pytest.mark.parametrize("kind", ["p384", "p521", "rsa1024"])
def test_keys_that_sign_no_specs(kind: str) -> None:
    worker = ROOT.worker(key=pki.private_key(kind) if kind != "rsa1024" else pki.private_key("rsa1024"))
    envelope_of = {**pki.envelope(BODY, PURPOSE, ROOT.worker()), "certificates": worker.chain}
    with pytest.raises(Refused, match="has a key that nothing is signed with here: take an Ed25519 key, one on P-256"):
        verify_chain(envelope(envelope_of), PURPOSE, frozenset({ROOT.digest}), WORKER, NOW)


def test_a_short_rsa_key_issues_nothing() -> None:
    root = pki.root(key=pki.private_key("rsa1024"))
    assert "is not issued by" in refused(root.worker(), root)


def test_an_exponent_that_makes_forging_cheap_is_refused() -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=3, key_size=2048)
    assert "has a key that nothing is signed with here" in refused(ROOT.worker(key=key))


def test_a_certificate_signed_with_sha1_is_refused() -> None:
    root = pki.root(key=pki.private_key("rsa2048"))
    worker = root.worker()
    weak = pki.with_sha1(worker.certificate, root.key)
    message = refused(worker._replace(certificate=weak), root)
    assert "is signed by the algorithm 1.2.840.113549.1.1.5, which is too weak or not known" in message


# -- the signature


def test_a_signature_for_another_purpose() -> None:
    worker = ROOT.worker()
    for purpose in ("trust-bundle", "join-response", "attested-report", ""):
        other = pki.envelope(BODY, purpose, worker)
        with pytest.raises(Refused, match="did not sign this body as a desired-state"):
            verify_chain(envelope(other), PURPOSE, frozenset({ROOT.digest}), WORKER, NOW)


@pytest.mark.parametrize("kind", ["ed25519", "p256", "rsa2048"])
def test_another_body_or_signature(kind: str) -> None:
    worker = ROOT.worker(key=pki.private_key(kind))
    start = "the signature of signed_spec does not verify: signed_spec.certificates[0] ('CN=bcd worker') did not sign "
    assert refused(worker, body=base64.b64encode(BODY + b" ").decode()).startswith(start)
    for signature in (b"\0", b"\0" * 64, b"\xff" * 256, b"0" * 1024):
        assert refused(worker, signature=base64.b64encode(signature).decode()).startswith(start)


def test_the_signature_of_another_worker() -> None:
    assert "did not sign this body" in refused(ROOT.worker(), certificates=ROOT.worker("another").chain)


# -- the pinned key


def bundle(signer: Certified, pin: str, purpose: str = "trust-bundle") -> None:
    verify_pinned(
        envelope(pki.envelope(BODY, purpose, signer), "it"), "trust-bundle", pin, "the trust bundle"
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["ed25519", "p256", "rsa2048"])
def test_the_pinned_key_signs_whatever_its_certificate_says(kind: str) -> None:
    for join in (
        pki.root("join", key=pki.private_key(kind)),
        pki.root("ended", key=pki.private_key(kind), end=NOW - DAY),
        OTHER.issues("issued", key=pki.private_key(kind)),
    ):
        bundle(join, join.pin)


def test_another_key_than_the_pinned_one() -> None:
    join, other = pki.root("join"), pki.root("join")
    with pytest.raises(Refused) as raised:
        bundle(other, join.pin)
    assert raised.value.message == (
        f"the trust bundle is signed with the key {other.pin}, and root's config.toml pins {join.pin}: give one that "
        "the pinned key signed, or have root pin this key"
    )


def test_the_certificate_of_the_pinned_key_over_another_ones_signature() -> None:
    join, other = pki.root("join"), pki.root("join")
    with pytest.raises(Refused, match="the pinned key did not sign this body as a trust-bundle"):
        bundle(other._replace(certificate=join.certificate), join.pin)


def test_what_the_pinned_key_signed_for_another_purpose() -> None:
    join = pki.root("join")
    for purpose in ("join-response", "desired-state"):
        with pytest.raises(Refused, match="the pinned key did not sign this body as a trust-bundle"):
            bundle(join, join.pin, purpose)


def test_a_pinned_key_of_a_kind_that_nothing_is_signed_with() -> None:
    join = pki.root("join", key=pki.private_key("p384"))
    with pytest.raises(Refused, match="has a key that nothing is signed with here"):
        bundle(join, join.pin)


# -- certificates as texts


def test_the_pin_is_that_of_the_public_key_whatever_the_certificate() -> None:
    key = pki.private_key()
    first, second = pki.root("one", key=key), pki.root("two", key=key)
    found = [load(each.chain[0], "it") for each in (first, second)]
    assert [pin_of(each) for each in found] == [first.pin, first.pin]
    assert [each.digest for each in found] == [first.digest, second.digest]


GOOD = ROOT.chain[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: "certificate",
        lambda text: text + text,
        lambda text: "x" + text,
        lambda text: text + "x",
        lambda text: text.replace("CERTIFICATE", "X509 CRL"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("-----BEGIN CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nA"),
        lambda text: text[:200] + "=" + text[200:],
        lambda text: "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
        lambda text: "-----BEGIN CERTIFICATE-----\né\n-----END CERTIFICATE-----\n",
        lambda text: "-----BEGIN CERTIFICATE-----\n\udc80\n-----END CERTIFICATE-----\n",
        lambda text: behind(text, b"\0"),
        lambda text: behind(text, b"", cut=1),
    ],
)
def test_what_is_no_certificate(change: Callable[[str], str]) -> None:
    with pytest.raises(Refused, match=r"^it is no (whole X\.509 )?certificate") as raised:
        load(change(GOOD), "it")
    assert raised.value.__cause__ is None


def behind(text: str, more: bytes, cut: int = 0) -> str:
    """The certificate with something behind its DER, or with its end missing."""
    der = base64.b64decode("".join(text.splitlines()[1:-1]))
    body = base64.encodebytes(der[: len(der) - cut] + more).decode()
    return f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"


def test_a_long_name_is_cut_in_messages() -> None:
    name = "n" * 64
    found = load(pki.root(name).chain[0], "it")
    assert found.at == f"it ('CN={name}')"
