# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spoilt answers of the programs that a pass over the GPU units asks beside nvidia-smi: systemd, containerd, apt.

None of them is taken for an answer of less: no unit fails by a fault of its own, none is converged that is not, check
mode changes nothing, and the next pass, without the fault, comes to the same end without a reboot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.turns import take_turns
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import section
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.gpu.model import Machine
from tests.unit.container_host import ContainerHost

pytestmark = pytest.mark.exhaustive

LAYOUT = {"layout": "off", "gpus": [{"select": {"index": 0}, "layout": "2g.10gb:2,3g.20gb"}]}
UNITS: dict[str, Any] = {
    "gpu-settings": {"powerLimitWatts": 300},
    "mig-layout": LAYOUT,
    "gpu-sharing": {"mode": "mps", "replicas": 4},
    "container-toolkit": {},
}
CONVERGED = dict.fromkeys(UNITS, "converged")
SPOILT: dict[str, Callable[[Answer], Answer]] = {
    "nothing": lambda _answer: Answer(0, ""),
    "failed": lambda _answer: Answer(1, "", "Failed to connect to bus: Connection refused\n"),
    "not installed": lambda _answer: Answer(127, "", "no such program"),
    "another text": lambda _answer: Answer(0, "<html>\udcff\n"),
    "cut off": lambda answer: answer._replace(out=answer.out[: len(answer.out) // 2]),
    "twice": lambda answer: answer._replace(out=answer.out * 2),
}


class SpoiltHost(ContainerHost):
    """A host on which one question, by its number, gets a spoilt answer."""

    def __init__(self) -> None:
        machine = Machine.from_products(["A100-40GB"] * 2, "535.261.03", clients=["nvidia-persistenced"])
        super().__init__(machine, {"containerd": "1.7.27", "docker": "28.0.0"})
        self.questions: list[str] = []
        self.struck = -1
        self.spoil: Callable[[Answer], Answer] = lambda answer: answer

    def ask(self, argv: tuple[str, ...], timeout: float = 60.0, stdin: str = "") -> Answer:
        self.questions.append(" ".join(argv))
        answer = super().ask(argv, timeout, stdin)
        return self.spoil(answer) if len(self.questions) - 1 == self.struck else answer

    def shown(self) -> object:
        """What counts in the end."""
        cards = self.machine.cards
        return (
            [self.machine.instances(index) for index in range(len(cards))],
            [(card.mig, card.power, card.compute_mode) for card in cards],
            sorted(daemon["percentage"] for daemon in self.machine.mps.values()),
            self.machine.clients,
            [device["name"] for device in self.spec()["devices"]],
            self.cri(),
            self.text("/etc/docker/daemon.json"),
        )


def passed(host: SpoiltHost, check: bool = False) -> dict[str, Outcome]:
    seen = PredictedHost(host) if check else host
    records = Records(seen)
    return take_turns(section.turns(UNITS, {*records.applied()}), catalog.unit, seen, records, "gpu")


def places() -> list[tuple[int, str]]:
    """Where a pass asks a program other than NVIDIA's, whose answer is another one each time as the host changes."""
    host = SpoiltHost()
    assert {name: outcome.state for name, outcome in passed(host).items()} == CONVERGED
    return [(number, words) for number, words in enumerate(host.questions) if not words.startswith("nvidia-smi")]


WHOLE = SpoiltHost()
passed(WHOLE)


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize(("number", "question"), places())
def test_no_spoilt_answer_is_taken_for_one(number: int, question: str, kind: str) -> None:
    host = SpoiltHost()
    host.struck, host.spoil = number, SPOILT[kind]
    outcomes = passed(host)
    for name, outcome in outcomes.items():
        assert "the collection's own" not in (outcome.failure.message if outcome.failure else ""), (question, name)
    if {name: outcome.state for name, outcome in outcomes.items()} == CONVERGED:
        assert host.shown() == WHOLE.shown(), question
    host.struck = -1
    clean = passed(host)
    assert {name: outcome.state for name, outcome in clean.items()} == CONVERGED, (
        question,
        [(outcome.failure, outcome.pending) for outcome in clean.values()],
    )
    assert host.shown() == WHOLE.shown(), question
    assert [name for name, outcome in passed(host).items() if outcome.changed] == [], question


@pytest.mark.parametrize("kind", SPOILT)
def test_check_mode_changes_nothing_whatever_it_is_told(kind: str) -> None:
    for number, question in places():
        host = SpoiltHost()
        host.struck, host.spoil = number, SPOILT[kind]
        files = dict(host.files)
        for name, outcome in passed(host, check=True).items():
            assert "the collection's own" not in (outcome.failure.message if outcome.failure else ""), (question, name)
        assert (host.files, host.calls) == (files, []), question
