from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hakiri_dagster.engine import process_identity
from hakiri_dagster.engine.process_identity import ProcessIdentity

OnMachine = Callable[[str, str], None]

PRINT_IDENTITY = (
    "from hakiri_dagster.engine.process_identity import ProcessIdentity as P; print(P.current(), flush=True); input()"
)


def test_it_survives_being_written_and_read() -> None:
    me = ProcessIdentity.current()
    assert ProcessIdentity.parse(str(me)) == me


def test_a_running_process_is_alive_until_it_is_killed_even_while_its_zombie_remains() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PRINT_IDENTITY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    identity = ProcessIdentity.parse(process.stdout.readline().strip())
    assert identity.is_alive_here() is True
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert identity.is_alive_here() is False
    process.communicate()
    assert identity.is_alive_here() is False


def test_whoever_got_a_dead_process_s_pid_is_not_taken_for_it() -> None:
    assert replace(ProcessIdentity.current(), started="1").is_alive_here() is False


@pytest.fixture
def on_machine(monkeypatch: pytest.MonkeyPatch) -> OnMachine:
    """This process is on another machine, or on the same after a reboot."""

    def on(boot: str, machine: str) -> None:
        monkeypatch.setattr(process_identity, "current_boot_id", lambda: f"{boot}/4026531836/{machine}")

    return on


def test_nothing_survives_a_reboot(on_machine: OnMachine) -> None:
    on_machine("first boot", "machine")
    before = ProcessIdentity.current()
    on_machine("second boot", "machine")
    assert before.is_alive_here() is False


@pytest.mark.parametrize("machine", ["another machine", ""])
def test_a_machine_of_the_same_name_is_not_taken_for_this_one_after_a_reboot(
    on_machine: OnMachine, machine: str
) -> None:
    on_machine("its boot", machine)
    there = ProcessIdentity.current()
    on_machine("this boot", "machine" if machine else "")
    assert there.is_alive_here() is None


def test_what_was_written_before_machines_were_told_apart_can_be_read() -> None:
    old = replace(ProcessIdentity.current(), boot_id="another boot/4026531836")
    assert ProcessIdentity.parse(str(old)).is_alive_here() is None


def test_a_process_of_this_machine_is_told_by_the_machine_s_own_id_alone_outside_of_containers() -> None:
    *_, namespace, machine = ProcessIdentity.current().boot_id.split("/")
    outside = namespace == "4026531836"
    assert machine == (Path("/etc/machine-id").read_text().strip() if outside else "")


def test_of_other_hosts_and_other_containers_nothing_can_be_told() -> None:
    me = ProcessIdentity.current()
    assert replace(me, host="elsewhere").is_alive_here() is None
    boot = me.boot_id.partition("/")[0]
    assert replace(me, boot_id=f"{boot}/1").is_alive_here() is None
