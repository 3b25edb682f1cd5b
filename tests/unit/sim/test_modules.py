# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-ins of kmod against what modprobe(8), rmmod(8) and the kernel do."""

from __future__ import annotations

import pytest

from tests.sim import modules

from .conftest import Maker


def test_modprobe_loads_what_a_module_needs_and_brings_its_keys(make: Maker) -> None:
    host = make()
    assert host.read("/proc/sys/net/bridge/bridge-nf-call-iptables") is None
    done = host.run("modprobe", "--", "br_netfilter")
    assert (done.returncode, done.stderr) == (0, "")
    assert host.read("/proc/sys/net/bridge/bridge-nf-call-iptables") == "1\n"
    assert host.read("/sys/module/bridge/refcnt") == "1\n"
    assert host.read("/sys/module/br_netfilter/refcnt") == "0\n"
    assert "bridge 16384 1 br_netfilter, Live" in (host.read("/proc/modules") or "")
    assert host.run("modprobe", "br-netfilter").returncode == 0  # dashes are underscores; loading twice is no error


def test_an_unknown_module_is_not_found(make: Maker) -> None:
    host = make()
    done = host.run("modprobe", "no_such")
    assert done.returncode == 1
    assert done.stderr == "modprobe: FATAL: Module no_such not found in directory /lib/modules/6.1.0-18-amd64\n"
    assert host.run("modprobe", "-q", "no_such").stderr == ""


def test_options_come_from_modprobe_d_and_the_command_line(make: Maker) -> None:
    host = make()
    host.write("/etc/modprobe.d/a.conf", "options kvm_intel nested=0 no_such_parameter=1\noptions kvm ignore_msrs=1\n")
    host.run("modprobe", "kvm_intel", "ept=n")
    parameters = "/sys/module/kvm_intel/parameters"
    assert (host.read(f"{parameters}/nested"), host.read(f"{parameters}/ept")) == ("N\n", "N\n")
    assert host.read("/sys/module/kvm/parameters/ignore_msrs") == "Y\n"


def test_a_parameter_that_is_no_number_fails_the_load(make: Maker) -> None:
    host = make()
    done = host.run("modprobe", "loop", "max_loop=many")
    assert (done.returncode, done.stderr) == (1, "modprobe: ERROR: could not insert 'loop': Invalid argument\n")
    assert host.read("/sys/module/loop/refcnt") is None


def test_a_module_of_the_other_vendor_does_not_load(make: Maker) -> None:
    host = make("amd")
    done = host.run("modprobe", "kvm_intel")
    assert done.stderr == "modprobe: ERROR: could not insert 'kvm_intel': Operation not supported\n"
    assert host.run("modprobe", "kvm_amd").returncode == 0


def test_a_blacklisted_module_still_loads_by_name(make: Maker) -> None:
    host = make()
    host.write("/etc/modprobe.d/b.conf", "blacklist pcspkr\nblacklist nouveau\ninstall nouveau /bin/false\n")
    assert host.run("modprobe", "pcspkr").returncode == 0  # blacklist hides aliases only
    assert host.run("modprobe", "-b", "pcspkr").returncode == 0
    done = host.run("modprobe", "nouveau")
    assert done.returncode == 1
    assert "Error running install command '/bin/false' for module nouveau: retcode 1" in done.stderr
    assert host.read("/sys/module/nouveau/initstate") is None


def test_removal_refuses_what_is_used_and_takes_what_it_alone_needed(make: Maker) -> None:
    host = make()
    host.run("modprobe", "kvm_intel")
    assert host.run("modprobe", "-r", "kvm").stderr == "modprobe: FATAL: Module kvm is in use.\n"
    host.hold_module("kvm_intel", 2)
    assert host.read("/sys/module/kvm_intel/refcnt") == "2\n"
    assert host.run("modprobe", "-r", "kvm_intel").returncode == 1
    host.hold_module("kvm_intel", 0)
    assert host.run("modprobe", "-r", "kvm_intel").returncode == 0
    assert host.read("/sys/module/kvm/refcnt") is None
    assert host.run("modprobe", "-r", "kvm_intel").returncode == 0  # not loaded is no error
    assert host.run("modprobe", "-r", "ext4").stderr == "modprobe: FATAL: Module ext4 is builtin.\n"


def test_rmmod_names_the_holders(make: Maker) -> None:
    host = make()
    host.run("modprobe", "vhost_net")
    assert host.run("rmmod", "tun").stderr == "rmmod: ERROR: Module tun is in use by: vhost_net\n"
    assert host.run("rmmod", "vhost_net").returncode == 0
    assert host.run("rmmod", "vhost_net").stderr == "rmmod: ERROR: Module vhost_net is not currently loaded\n"
    assert "Module                  Size  Used by" in host.run("lsmod").stdout


def test_modinfo_tells_a_module_from_a_built_in_and_from_none(make: Maker) -> None:
    host = make()
    assert host.run("modinfo", "-F", "filename", "ext4").stdout == "(builtin)\n"
    assert host.run("modinfo", "-F", "depends", "br_netfilter").stdout == "bridge\n"
    assert host.run("modinfo", "no_such").stderr == "modinfo: ERROR: Module no_such not found.\n"


@pytest.mark.parametrize(
    ("text", "options", "blacklist"),
    [
        ("options a b=1 \\\n c=2\n", {"a": ["b=1", "c=2"]}, set()),
        ("# options a b=1\nblacklist x-y\n", {}, {"x_y"}),
        ("options a\nfoo bar baz\n", {}, set()),
    ],
)
def test_modprobe_d_lines(text: str, options: dict[str, list[str]], blacklist: set[str]) -> None:
    said = modules.parse_rules(text)
    assert (said.options, said.blacklist) == (options, blacklist)


def test_a_file_in_etc_hides_its_namesake_in_usr(make: Maker) -> None:
    host = make()
    host.write("/usr/lib/modprobe.d/x.conf", "options loop max_loop=8\n")
    host.write("/etc/modprobe.d/x.conf", "")
    host.run("modprobe", "loop")
    assert host.read("/sys/module/loop/parameters/max_loop") == "0\n"
