"""The whole suite, in parts that run beside each other: each of them mostly waits, for processes that start or for a
database that is made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
ENGINES = [f"tests/integration/engine/test_{name}.py" for name in ("connect_server", "embedded_postgres")]
ORCHESTRATION = sorted(
    str(path.relative_to(ROOT)) for path in ROOT.glob("tests/integration/orchestration/test_[a-q]*.py")
)
WITHOUT_SPARK = [
    f"tests/integration/{name}"
    for name in ("audit", "cli", "destinations", "hooks", "packaging", "tracing", "triggers")
]
OTHERS = [["tests/acceptance", *ENGINES], WITHOUT_SPARK, ORCHESTRATION]
"""Each takes about as long as all the rest. Only the last needs a session of Spark's."""
REST = ["tests/unit", "tests/integration", *(f"--ignore={path}" for part in OTHERS for path in part)]

# No JVM of the tests lives long enough to earn back what the second compiler costs it: a third of a cold load.
JVM: Final = "-XX:TieredStopAtLevel=1"
A_SESSION: Final = """
import sys
from pathlib import Path
from hakiri_dagster.engine.spark import open_session
from hakiri_dagster.settings import Settings
session = open_session(Settings(), Path(sys.argv[1]))
session.range(10).selectExpr("sum(id)").collect()
session.stop()
"""


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the parts are ended, too
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hakiri-suite-")))
        os.environ["SPARK_SUBMIT_OPTS"] = f"{JVM} {_shared_classes(folder)}".strip()
        beside = []
        for part in OTHERS:
            said = stack.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen([*PYTEST, *part], cwd=ROOT, stdout=said, stderr=said)
            stack.callback(process.terminate)
            beside.append((process, said))
        codes = [subprocess.call([*PYTEST, *REST], cwd=ROOT)]
        for process, said in beside:
            codes.append(process.wait())
            said.seek(0)
            sys.stdout.write(said.read().decode(errors="replace"))
    return max(codes, key=abs)


def _shared_classes(folder: Path) -> str:
    """Dozens of JVMs load the same classes: the first one writes them down for the others, which saves each of them
    a third of its start. A Java that cannot do that goes without, and another Java says nothing of it."""
    archive = folder / "classes.jsa"
    options = {"SPARK_SUBMIT_OPTS": f"{JVM} -XX:ArchiveClassesAtExit={archive} -Xlog:disable -Xlog:all=off"}
    asked = [sys.executable, "-c", A_SESSION, folder / "state"]
    # it outlives its Python, and has written all when nobody holds the pipe any more
    subprocess.run(asked, env={**os.environ, **options}, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    return f"-XX:SharedArchiveFile={archive} -Xlog:disable" if archive.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
