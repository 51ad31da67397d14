"""`custom_function`: a function that the operator has installed. It is told of the load, and given nothing else."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from hakiri_dagster.errors import HookFailed, UsageError
from hakiri_dagster.hooks.surroundings import Surroundings
from hakiri_dagster.manifest.custom_functions import GROUP, registered
from hakiri_dagster.manifest.hook_spec import CustomFunctionHook


def run(hook: CustomFunctionHook, around: Surroundings) -> None:
    entry_point = _entry_point(hook.function)
    try:
        entry_point.load()(around.context)
    except (Exception, SystemExit) as error:  # it is not ours: it may raise anything, or try to leave
        text = str(error).strip()
        raise HookFailed(f"it raised {type(error).__name__}" + (f": {text}" if text else "")) from error


def _entry_point(name: str) -> EntryPoint:
    found = registered().get(name, ())
    if len(found) != 1:
        raise UsageError(
            f"the function {name} is registered {len(found)} times for hooks",
            hint=f"one installed package has to register it, as an entry point of the group `{GROUP}`",
        )
    return found[0]
