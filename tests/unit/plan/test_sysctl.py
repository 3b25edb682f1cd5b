# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sysctl's settings: which names and values are taken, which never, and how they are written."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kernel_parameters
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import sysctl as planner

REFUSED = [
    "kernel.core_pattern",
    "kernel.core_pipe_limit",
    "kernel.modprobe",
    "kernel.hotplug",
    "kernel.poweroff_cmd",
    "kernel.usermodehelper.bset",
    "kernel.usermodehelper.inheritable",
    "fs.binfmt_misc.register",
    "fs.binfmt_misc.status",
    "fs.binfmt_misc.qemu-arm",
    "kernel.modules_disabled",
    "kernel.kexec_load_limit_panic",
    "kernel.kexec_load_limit_reboot",
]
# The name, values that keep the defense up, and values that lower it.
ONE_WAY = [
    ("kernel.kptr_restrict", ["1", "2"], ["0", "-1"]),
    ("kernel.dmesg_restrict", ["1"], ["0"]),
    ("kernel.randomize_va_space", ["2"], ["0", "1", "3"]),
    ("kernel.yama.ptrace_scope", ["1", "2", "3"], ["0"]),
    ("kernel.unprivileged_bpf_disabled", ["1", "2"], ["0"]),
    ("kernel.perf_event_paranoid", ["2", "3", "4"], ["1", "0", "-1"]),
    ("kernel.kexec_load_disabled", ["1"], ["0"]),
    ("fs.protected_hardlinks", ["1"], ["0"]),
    ("fs.protected_symlinks", ["1"], ["0"]),
    ("fs.protected_fifos", ["1", "2"], ["0"]),
    ("fs.protected_regular", ["1", "2"], ["0"]),
    ("fs.suid_dumpable", ["0"], ["1", "2"]),
    ("net.core.bpf_jit_harden", ["1", "2"], ["0"]),
    ("vm.mmap_min_addr", ["65536", "131072"], ["65535", "4096", "0"]),
    ("net.ipv4.conf.all.accept_source_route", ["0"], ["1"]),
    ("net.ipv4.conf.eth0/100.accept_source_route", ["0"], ["1"]),
    ("net.ipv6.conf.default.accept_source_route", ["0"], ["1", "-1"]),
    ("net.ipv4.conf.br-lan.accept_redirects", ["0"], ["1"]),
    ("net.ipv6.conf.all.accept_redirects", ["0"], ["1"]),
]
# Not one of them is a plain decimal integer, whatever number another reader makes of it.
DISGUISED_NUMBERS = ["0x0", "0x1", "0x10000", "00", "01", "+0", "+1", "1 0", "0 1", "1.0", "", "on", "1,2", "\u0661"]
WRAPPING = ["4294967296", "4294967297", "18446744073709551616", "18446744073709551617", "18446744073709617152"]


def disguises(name: str) -> Iterator[str]:
    """The name with every mix of separators, with - for _, and in capitals."""
    if "/" in name:  # another mix would be another interface
        yield from (name, name.translate(str.maketrans("./", "/.")))
        return
    parts = name.split(".")
    for separators in itertools.product("./", repeat=len(parts) - 1):
        mixed = parts[0] + "".join(mark + part for mark, part in zip(separators, parts[1:]))
        yield from (mixed, mixed.replace("_", "-"), mixed.upper(), mixed.replace("_", "-").title())


def refusal(values: dict[str, object]) -> str:
    with pytest.raises(Refused) as caught:
        planner.check(values)
    return caught.value.message


def value_of(scalar: object) -> str:
    (key,) = planner.check({"vm.swappiness": scalar}).keys
    return key.value


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_key_is_refused_in_every_disguise_and_whatever_the_value(name: str) -> None:
    for spelling in disguises(name):
        for value in (0, 1, True, "", "|/usr/lib/systemd/systemd-coredump", "core"):
            assert refusal({spelling: value}).startswith(f"{spelling} is refused: ")


@pytest.mark.parametrize(("name", "raises", "lowers"), ONE_WAY)
def test_a_one_way_key_takes_only_its_hardened_values_in_every_disguise(
    name: str, raises: list[str], lowers: list[str]
) -> None:
    for spelling in (*disguises(name), name):
        for value in raises:
            for scalar in (value, int(value), f" {value}\t"):
                assert [key.value for key in planner.check({spelling: scalar}).keys] == [value]
        for value in lowers:
            for scalar in (value, int(value)):
                assert refusal({spelling: scalar}) == (
                    f"{spelling} = {value} is refused: it would lower the host's defenses"
                )
        for value in (*DISGUISED_NUMBERS, *WRAPPING):
            assert "is refused: it would lower the host's defenses" in refusal({spelling: value})


def test_a_boolean_raises_a_defense_as_one() -> None:
    assert [key.value for key in planner.check({"kernel.dmesg_restrict": True}).keys] == ["1"]
    assert refusal({"kernel.dmesg_restrict": False}) == (
        "kernel.dmesg_restrict = 0 is refused: it would lower the host's defenses"
    )


def test_all_refusals_are_told_at_once() -> None:
    message = refusal({"kernel.modprobe": "/tmp/x", "vm.swappiness": 10, "kernel.kptr_restrict": 0, "swappiness": 1})
    assert "kernel.modprobe is refused: " in message
    assert "kernel.kptr_restrict = 0 is refused: it would lower the host's defenses" in message
    assert "'swappiness' is no parameter's name" in message
    assert "vm.swappiness" not in message.replace("such as vm.swappiness", "")


@pytest.mark.parametrize(
    "name",
    [
        "core_pattern",
        "",
        ".",
        "kernel..core_pattern",
        "kernel/../kernel/core_pattern",
        "../etc/passwd",
        "/etc/passwd",
        "/proc/sys/kernel/core_pattern",
        "kernel.core_pattern\n",
        "kernel.core_pattern ",
        " kernel.core_pattern",
        "net.ipv4.conf.*.rp_filter",
        "vm.swappiness=1",
        "vm.swappiness.",
        "vm./swappiness",
        "v\u00e9.swappiness",
        "#vm.swappiness",
        ";vm.swappiness",
        # sysctl.d takes a leading - as a flag, and sets the key behind it.
        "-kernel.core_pattern",
        "-vm.swappiness",
        "--kernel.core_pattern",
    ],
)
def test_what_is_no_name_is_refused(name: str) -> None:
    assert "is no parameter's name" in refusal({name: 1})


def test_a_name_that_is_no_string_is_refused() -> None:
    assert "is no parameter's name" in refusal({1: 1})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vm.swappiness", "vm/swappiness"),
        ("vm/swappiness", "vm/swappiness"),
        ("net.ipv4.conf.eth0/100.forwarding", "net/ipv4/conf/eth0.100/forwarding"),
        ("net/ipv4/conf/eth0.100/forwarding", "net/ipv4/conf/eth0.100/forwarding"),
        ("net.ipv4.conf.a/b/c.forwarding", "net/ipv4/conf/a.b.c/forwarding"),
        ("net/ipv4/conf/a.b.c/forwarding", "net/ipv4/conf/a.b.c/forwarding"),
        ("net.bridge.bridge-nf-call-iptables", "net/bridge/bridge-nf-call-iptables"),
        ("kernel.sched_domain.CPU0.domain0.flags", "kernel/sched_domain/CPU0/domain0/flags"),
    ],
)
def test_names_reach_the_file_that_they_mean(name: str, path: str) -> None:
    assert [key.path for key in planner.check({name: 1}).keys] == [f"/proc/sys/{path}"]


def test_two_names_of_one_parameter_must_agree() -> None:
    both = {"net.ipv4.conf.eth0/1.forwarding": 1, "net/ipv4/conf/eth0.1/forwarding": "1"}
    assert planner.check(both) == planner.check({"net.ipv4.conf.eth0/1.forwarding": 1})
    message = refusal({**both, "net/ipv4/conf/eth0.1/forwarding": 0})
    assert "net.ipv4.conf.eth0/1.forwarding = 1" in message
    assert "net/ipv4/conf/eth0.1/forwarding = 0" in message


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (0, "0"),
        (10, "10"),
        (-1, "-1"),
        (2**64 - 1, "18446744073709551615"),
        (True, "1"),
        (False, "0"),
        (10.0, "10"),
        ("0", "0"),
        ("yes", "yes"),
        ("true", "true"),
        ("010", "010"),
        ("4096 65536 16777216", "4096 65536 16777216"),
        ("  4096\t65536   16777216 ", "4096 65536 16777216"),
        ("", ""),
        ("x" * 4096, "x" * 4096),
    ],
)
def test_values_are_written_as_they_are_meant(scalar: object, value: str) -> None:
    assert value_of(scalar) == value


@pytest.mark.parametrize(
    "scalar",
    [
        "x" * 4097,
        "1\n2",
        "1\r",
        "1\x0b2",
        "1\x00",
        "1\u20282",
        "\udc80",
        None,
        [1],
        {"a": 1},
        0.5,
        float("nan"),
        float("inf"),
        1e300,
        2**64,
        -(2**63) - 1,
        b"1",
    ],
)
def test_other_values_are_refused(scalar: object) -> None:
    assert "the value of vm.swappiness is " in refusal({"vm.swappiness": scalar})


def test_a_number_too_long_to_print_is_refused() -> None:
    assert "the value of vm.swappiness is " in refusal({"vm.swappiness": 10**5000})


@pytest.mark.parametrize(
    ("asked", "shown", "alike"),
    [
        ("10", "10\n", True),
        ("4096 65536 16777216", "4096\t65536\t16777216\n", True),
        ("0x10", "16\n", True),
        ("010", "8\n", True),
        ("010", "10\n", False),
        ("8080,8081,9000", "8080-8081,9000\n", True),
        ("8080,8082", "8080-8082\n", False),
        ("1-3,2-5", "1-5\n", True),
        ("", "\n", True),
        ("", "1\n", False),
        ("1", "1 1\n", False),
        ("bbr", "cubic\n", False),
        ("1", "1.0\n", False),
    ],
)
def test_a_value_is_compared_as_the_kernel_reads_it(asked: str, shown: str, alike: bool) -> None:
    assert kernel_parameters.same(asked, shown) is alike


def test_the_file_has_a_line_a_key_sorted_under_a_header() -> None:
    settings = planner.check(
        {"vm.swappiness": 10, "net/ipv4/conf/eth0.100/forwarding": True, "kernel.domainname": "", "fs.file-max": "9"}
    )
    assert kernel_parameters.render(settings.keys) == (
        "# Managed by bettercompute.bcd: local edits are replaced.\n"
        "fs.file-max = 9\n"
        "kernel.domainname =\n"
        "net.ipv4.conf.eth0/100.forwarding = 1\n"
        "vm.swappiness = 10\n"
    )


def test_a_file_of_sysctl_d_is_read_as_systemd_reads_it() -> None:
    text = (
        "# vm.swappiness = 1\n;vm.swappiness = 2\n\n"
        "net.ipv4.conf.all.accept_redirects = 1\n"
        "  net.ipv4.conf.all.accept_redirects=0  \n"  # the last one counts
        "-net/ipv4/conf/eth0.100/forwarding =  1\t2 \n"
        "net.ipv4.conf.*.rp_filter = 2\n"
        "-net.ipv4.conf.all.rp_filter\n"
        "no line\n"
    )
    assert kernel_parameters.parse_file(text) == {
        "/proc/sys/net/ipv4/conf/all/accept_redirects": "0",
        "/proc/sys/net/ipv4/conf/eth0.100/forwarding": "1 2",
    }


# -- properties


def procps(name: str) -> str:
    """The path that sysctl(8) makes of a name: the first separator says whether the two are swapped."""
    separators = [sign for sign in name if sign in "./"]
    if separators and separators[0] == ".":
        name = name.translate(str.maketrans("./", "/."))
    return "/proc/sys/" + name


WORD = st.text("abzAZ019_-", min_size=1, max_size=5)
NAMES = st.builds(
    lambda first, rest: first + "".join(mark + word for mark, word in rest),
    WORD,
    st.lists(st.tuples(st.sampled_from("./"), WORD), min_size=1, max_size=6),
)


@given(st.one_of(NAMES, st.text("./-_a", max_size=12), st.text(max_size=12)))
def test_no_name_leaves_proc_sys_and_the_file_says_the_same_name(name: str) -> None:
    try:
        (key,) = planner.check({name: 1}).keys
    except Refused:
        return
    assert key.path == procps(name) == procps(key.name)
    assert posixpath.normpath(key.path) == key.path
    assert key.path.startswith("/proc/sys/")
    assert kernel_parameters.parse_file(kernel_parameters.render([key])) == {key.path: "1"}


FORBIDDEN = [(name, "1") for name in REFUSED] + [(row[0], row[2][0]) for row in ONE_WAY if "/" not in row[0]]


@given(st.sampled_from(FORBIDDEN), st.data())
def test_no_spelling_reaches_a_refused_path(row: tuple[str, str], data: st.DataObject) -> None:
    name, value = row
    signs = {".": "./", "-": "-_", "_": "-_"}
    spelling = "".join(data.draw(st.sampled_from(signs.get(sign, sign + sign.upper()))) for sign in name)
    assert "is refused: " in refusal({spelling: value})
