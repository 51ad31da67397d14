"""The whole suite, in parts that run beside each other: each of them mostly waits, for processes that start or for a
database that is made."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
ENGINES = [f"tests/integration/engine/test_{name}.py" for name in ("connect_server", "embedded_postgres")]
OTHERS = [["tests/acceptance", *ENGINES], ["tests/integration/destinations"]]
"""None of these needs the session that the tests of Spark share."""
SPARK = ["tests/unit", "tests/integration", *(f"--ignore={path}" for part in OTHERS for path in part)]


def main() -> int:
    with ExitStack() as stack:
        beside = []
        for part in OTHERS:
            said = stack.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen([*PYTEST, *part], cwd=ROOT, stdout=said, stderr=said)
            stack.callback(process.terminate)
            beside.append((process, said))
        codes = [subprocess.call([*PYTEST, *SPARK], cwd=ROOT)]
        for process, said in beside:
            codes.append(process.wait())
            said.seek(0)
            sys.stdout.write(said.read().decode(errors="replace"))
    return max(codes, key=abs)


if __name__ == "__main__":
    sys.exit(main())
