from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from hakiri_dagster.engine.process_identity import ProcessIdentity

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


def test_nothing_survives_a_reboot() -> None:
    assert replace(ProcessIdentity.current(), boot_id="another/1").is_alive_here() is False


def test_of_other_hosts_and_other_containers_nothing_can_be_told() -> None:
    me = ProcessIdentity.current()
    assert replace(me, host="elsewhere").is_alive_here() is None
    boot = me.boot_id.partition("/")[0]
    assert replace(me, boot_id=f"{boot}/1").is_alive_here() is None
