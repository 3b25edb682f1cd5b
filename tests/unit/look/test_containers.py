# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files a runtime reads, and in which order; which specifications a runtime finds."""

from __future__ import annotations

import json

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.cdi import broken, gone, vendor_specs
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.cdi_files import (
    device_nodes,
    majors,
    runtime_folder,
    vendor_texts,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.container_files import crio_files, docker_files
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.containerd import containerd_files
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.containers import installed, versions
from tests import captures
from tests.unit.fake_host import FakeHost

CONFIG = "/etc/containerd/config.toml"
OURS = "/etc/containerd/conf.d/99-zz-bcd.toml"


def containerd(config: str, *drop_ins: str) -> FakeHost:
    return FakeHost({CONFIG: config, **dict.fromkeys(drop_ins, "version = 2\n")})


def test_drop_ins_are_read_by_name_and_ours_has_its_place() -> None:
    folder = "/etc/containerd/conf.d"
    host = containerd(
        f'imports = ["{folder}/*.toml", "/etc/containerd/last.toml"]',
        f"{folder}/zz.toml",
        f"{folder}/10-a.toml",
        f"{folder}/99-nvidia.toml",
        f"{folder}/notes.txt",
        "/etc/containerd/last.toml",
    )
    seen = containerd_files(host)
    assert seen.imports == (
        f"{folder}/10-a.toml",
        f"{folder}/99-nvidia.toml",
        OURS,
        f"{folder}/zz.toml",
        "/etc/containerd/last.toml",
    )
    assert [one.path for one in seen.read] == [path for path in seen.imports if path != OURS]
    assert (seen.path, seen.imported, seen.newly, seen.ours, seen.stale) == (OURS, True, (), None, {})


@pytest.mark.parametrize(
    ("imports", "path", "imported"),
    [
        ("", OURS, False),
        ('imports = ["/etc/containerd/config.d/*.toml"]', "/etc/containerd/config.d/99-zz-bcd.toml", True),
        ('imports = ["/a/*.toml", "/etc/containerd/conf.d/*.toml"]', OURS, True),
        ('imports = ["/a/*.conf"]', OURS, False),
        ('imports = ["/a/*/b.toml"]', OURS, False),
        ('imports = ["/a/nvidia*.toml"]', OURS, False),
        ('imports = ["/etc/containerd/conf.d/90-bcd-k8s.toml"]', OURS, False),
    ],
)
def test_where_our_drop_in_lies(imports: str, path: str, imported: bool) -> None:
    seen = containerd_files(containerd(imports))
    assert (seen.path, seen.imported) == (path, imported)
    assert path in seen.imports


def test_what_an_import_of_ours_brings_along_is_known() -> None:
    seen = containerd_files(containerd("version = 2", "/etc/containerd/conf.d/old.toml"))
    assert seen.newly == ("/etc/containerd/conf.d/old.toml",)
    listed = containerd('imports = ["/etc/containerd/conf.d/old.toml"]', "/etc/containerd/conf.d/old.toml")
    assert containerd_files(listed).newly == ()


def test_imports_of_imports_and_folders_by_pattern() -> None:
    host = FakeHost(
        {
            CONFIG: 'imports = ["/etc/containerd/*/*.toml", "b.toml"]',
            "/etc/containerd/one/a.toml": 'imports = ["/srv/deep.toml"]',
            "/etc/containerd/two/a.toml": "",
            "/etc/containerd/b.toml": "",
            "/srv/deep.toml": 'imports = ["/etc/containerd/config.toml"]',
        }
    )
    assert [one.path for one in containerd_files(host).read] == [
        "/etc/containerd/one/a.toml",
        "/etc/containerd/two/a.toml",
        "/etc/containerd/b.toml",
        "/srv/deep.toml",
    ]


def test_toml_that_cannot_be_read_names_its_file() -> None:
    with pytest.raises(Refused, match=r"^/etc/containerd/config.toml line 1: "):
        containerd_files(containerd("imports"))


def test_crio_and_docker() -> None:
    host = FakeHost({"/etc/crio/crio.conf": "a", "/etc/crio/crio.conf.d/10": "b", "/etc/crio/crio.conf.d/05": "c"})
    assert [text for _path, text in crio_files(host).files] == ["a", "c", "b"]
    assert docker_files(host).file is None
    assert docker_files(host).text == ""


def test_versions_of_what_is_installed() -> None:
    said = {
        "containerd": "containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da\n",
        "dockerd": "Docker version 28.5.2+dfsg4, build 3ef3c07c883be49a2e8097bcf6d2952fce1d70eb\n",
        "podman": "podman version 5.4.2\n",
    }
    host = FakeHost(programs={name: lambda _host, argv: Answer(0, said[argv[0]]) for name in said})
    assert installed(host) == ("containerd", "docker", "podman")
    assert versions(host) == {"containerd": "1.7.27", "docker": "28.5.2+dfsg4", "podman": "5.4.2"}


# -- specifications


def test_specifications_of_both_folders_and_both_formats() -> None:
    spec = json.loads(captures.session("ctk_cdi_full_gpu_json_uuid")[0].text)
    host = FakeHost(
        {
            "/etc/cdi/nvidia.json": json.dumps(spec),
            "/etc/cdi/bcd-a1.json": json.dumps(spec),
            "/etc/cdi/other.json": json.dumps({**spec, "kind": "nvidia.com/mofed"}),
            "/etc/cdi/half.json": json.dumps(spec)[:-9],
            "/etc/cdi/note.txt": "nvidia.com/gpu",
            "/run/cdi/nvidia.yaml": captures.session("ctk_cdi_full_gpu_yaml_default")[0].text,
            "/run/cdi/unsound.yaml": "kind: nvidia.com/gpu\n",
        },
        links={"/var/run": "/run"},
    )
    found = {path: (spec and len(spec["devices"]), bool(fault)) for path, spec, fault in vendor_specs(host)}
    assert found == {
        "/etc/cdi/half.json": (None, True),
        "/etc/cdi/nvidia.json": (9, False),
        "/run/cdi/nvidia.yaml": (17, False),
        "/run/cdi/unsound.yaml": (None, True),
    }
    assert "/usr/bin/nvidia-smi" in gone(host, spec)


def test_the_folder_of_this_boot_is_named_without_links() -> None:
    assert runtime_folder(FakeHost(links={"/var/run": "/run"})) == "/run/cdi"
    assert runtime_folder(FakeHost(links={"/var/run": "../run"})) == "/run/cdi"
    assert runtime_folder(FakeHost()) == "/var/run/cdi"


def test_device_nodes_are_those_of_mig_too() -> None:
    paths = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1", "/dev/null", "/dev/dri/card0")
    assert device_nodes(FakeHost(dict.fromkeys(paths, ""))) == [
        "/dev/nvidia-caps",
        "/dev/nvidia-caps/nvidia-cap1",
        "/dev/nvidia0",
        "/dev/nvidiactl",
    ]


def test_what_holds_pods_and_other_devices_bring_and_take_away_is_no_difference() -> None:
    spec = captures.session("ctk_cdi_full_gpu_json_uuid")[0].text
    claim = '{"cdiVersion": "0.5.0", "kind": "k8s.gpu.nvidia.com/claim", "devices": []}'
    majors_then = "Character devices:\n  1 mem\n195 nvidia\n235 nvidia-caps\n\nBlock devices:\n  8 sd\n"
    host = FakeHost(
        {"/etc/cdi/nvidia.json": spec, "/dev/nvidia0": "", "/proc/devices": majors_then}, links={"/var/run": "/run"}
    )
    before = (vendor_texts(host), broken(host, ()), device_nodes(host), majors(host))
    assert before == ([("/etc/cdi/nvidia.json", spec)], (), ["/dev/nvidia0"], "195 nvidia\n235 nvidia-caps\n")
    host.put("/etc/cdi/bcd-alloc_1.json", spec)
    host.put("/run/cdi/k8s.gpu.nvidia.com-claim_7.json", claim)
    host.put("/dev/loop0", "")
    host.put("/proc/devices", majors_then.replace("  8 sd", "  7 loop\n  8 sd").replace("195", " 10 misc\n195"))
    assert (vendor_texts(host), broken(host, ()), device_nodes(host), majors(host)) == before
