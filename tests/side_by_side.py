"""The whole suite. Acceptance tests mostly wait for processes to start, so they run beside all others."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTEST = [sys.executable, "-m", "pytest"]


def main() -> int:
    with tempfile.TemporaryFile() as said:
        acceptance = subprocess.Popen([*PYTEST, "tests/acceptance"], cwd=ROOT, stdout=said, stderr=said)
        try:
            others = subprocess.call([*PYTEST, "tests/unit", "tests/integration"], cwd=ROOT)
            acceptance.wait()
        finally:
            acceptance.terminate()
            said.seek(0)
            sys.stdout.write(said.read().decode(errors="replace"))
    return others or acceptance.returncode


if __name__ == "__main__":
    sys.exit(main())
