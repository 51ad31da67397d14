"""`hakiri pipeline rename`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import opened_project
from hakiri_dagster.pipeline.renaming import Renamed, parse_rename, rename_loads
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.planning.publishers import Move, Moved
from hakiri_dagster.security.secrets import redact
from hakiri_dagster.settings import Settings


def rename(root: Path, old: str, new: str, as_json: bool) -> int:
    parsed = parse_rename(old, new)
    with Runtime(opened_project(root), Settings.from_env()) as runtime:
        renamed = rename_everywhere(runtime, old, new)
    if as_json:
        print_json(document(old, new, renamed))
    elif renamed is None:
        print(f"`{parsed.old}` was renamed to `{parsed.new}` before; nothing is left under the old name")
    else:
        print(redact("\n".join(_lines(renamed))))
    return 0


def rename_everywhere(runtime: Runtime, old: str, new: str) -> Renamed | None:
    """In the destinations, in the audit DB and in Dagster."""

    def show_in_dagster(moves: Sequence[Move]) -> tuple[int, ...]:
        from hakiri_dagster.orchestration.renamed_assets import move_assets

        return move_assets(runtime, moves)

    return rename_loads(runtime, parse_rename(old, new), show_in_dagster)


def _lines(renamed: Renamed) -> list[str]:
    lines = [f"renamed {renamed.rename.old} to {renamed.rename.new}"]
    for moved, shown in zip(renamed.moved, renamed.shown, strict=True):
        table = moved.move.table
        quarantined = f", {moved.quarantined:,} quarantined row(s)" if moved.quarantined else ""
        lines.append(
            f"  {moved.move.old_label} → {table.label} in {table.target_schema}.{table.target_name}: "
            f"{moved.loads:,} load(s){quarantined}; {shown:,} chunk(s) shown in Dagster"
        )
        lines += [f"  warning: {warning}" for warning in _warnings(moved)]
    lines.append(f"  audit DB: {renamed.records:,} row(s)")
    return lines


def _warnings(moved: Moved) -> list[str]:
    warnings = []
    if moved.elsewhere:
        places = ", ".join(moved.elsewhere)
        warnings.append(f"{moved.move.old_label} has rows in {places} too; they were left as they are")
    return warnings


def document(old: str, new: str, renamed: Renamed | None) -> dict[str, Any]:
    if renamed is None:
        return {"old": old, "new": new, "renamed": False, "audit_rows": 0, "tables": []}
    return {
        "old": old,
        "new": new,
        "renamed": True,
        "audit_rows": renamed.records,
        "tables": [
            {
                "old": moved.move.old_label,
                "new": moved.move.table.label,
                "target": f"{moved.move.table.target_schema}.{moved.move.table.target_name}",
                "loads": moved.loads,
                "quarantined": moved.quarantined,
                "chunks_shown": shown,
                "warnings": _warnings(moved),
            }
            for moved, shown in zip(renamed.moved, renamed.shown, strict=True)
        ],
    }
