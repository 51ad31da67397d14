"""What a chunk run reports, as Dagster's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import dagster as dg

from hakiri_dagster.audit.alerts import Alert, AlertRecord
from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.orchestration.profile_events import LOAD, profile_metadata
from hakiri_dagster.pipeline.hooks_run import HookRun
from hakiri_dagster.pipeline.set_aside import SetAside
from hakiri_dagster.pipeline.steps import PreparedChunk, PublishedChunk
from hakiri_dagster.pipeline.told_progress import ToldProgress
from hakiri_dagster.planning.plan import RereadStretch
from hakiri_dagster.planning.rewind import RewoundChunk
from hakiri_dagster.security.secrets import redact, redact_within

Metadata = Mapping[str, dg.MetadataValue]


def published_metadata(chunk: PreparedChunk, published: PublishedChunk) -> Metadata:
    """Numbers plot over time in the UI."""
    entry = published.entry
    return {
        "dagster/row_count": dg.MetadataValue.int(entry.rows),
        "dagster/column_schema": column_schema(chunk.target),
        "dagster/table_name": dg.MetadataValue.text(f"{chunk.target.schema}.{chunk.target.name}"),
        "chunk": dg.MetadataValue.text(entry.chunk_key),
        "bytes": dg.MetadataValue.int(entry.bytes),
        "rows_set_aside": dg.MetadataValue.int(published.aside.rows),
        "load_id": dg.MetadataValue.int(entry.load_id),
        "attempt": dg.MetadataValue.int(entry.attempt),
        "phase": dg.MetadataValue.text(chunk.phase),
        "seconds": dg.MetadataValue.float(round(chunk.seconds, 3)),
        **_reread_metadata(chunk.reread),
        **({} if chunk.rewound is None else _rewind_metadata(chunk.rewound, published)),
        **({} if published.wait_ms is None else {"wait_ms": dg.MetadataValue.int(published.wait_ms)}),
        **_unseen(published.aside),
        **_truncated(published.aside),
        **({} if chunk.profile is None else profile_metadata(chunk.profile, LOAD)),
    }


def _reread_metadata(reread: RereadStretch | None) -> Metadata:
    """From where on the next load reads again, because transactions were open at the source."""
    if reread is None or reread.oldest is None:
        return {}
    return {
        "reread_from": dg.MetadataValue.text("the beginning" if reread.begins is None else str(reread.begins)),
        "held_back_by": dg.MetadataValue.text(reread.oldest.description),
    }


def _unseen(aside: SetAside) -> Metadata:
    """How many values were not loaded, as their members have no column."""
    return {"members_without_column": dg.MetadataValue.json(dict(aside.unseen))} if aside.unseen else {}


def _truncated(aside: SetAside) -> Metadata:
    """How many timestamps were cut to microseconds, by column."""
    return {"timestamps_truncated": dg.MetadataValue.json(dict(aside.truncated))} if aside.truncated else {}


def _rewind_metadata(rewound: RewoundChunk, published: PublishedChunk) -> Metadata:
    """Why the chunk was loaded again, and which loads its rows had come with until then."""
    replaced = published.replaces or rewound.load_ids
    return {
        "rewind": dg.MetadataValue.int(rewound.rewind_id),
        "rewind_reason": dg.MetadataValue.text(redact(rewound.reason)),
        "rewound_by": dg.MetadataValue.text(redact(rewound.asked_by)),
        "rewound_at": dg.MetadataValue.timestamp(rewound.asked_at),
        "replaces_loads": dg.MetadataValue.text(", ".join(map(str, replaced))),
    }


def progress_metadata(told: ToldProgress | None) -> Metadata:
    """What `hakiri status` tells, of the table as this publish leaves it."""
    if told is None:
        return {}
    table = told.table
    numbers = {
        "chunks_done": table.done,
        "chunks_running": table.running,
        "chunks_pending": table.pending,
        "chunks_failed": table.failed,
        "rows_per_sec": table.recent.rows_per_sec,
        "bytes_per_sec": table.recent.bytes_per_sec,
        "eta_seconds": table.eta_seconds,
        "rate_budget_used_pct": told.rate_budget_used_pct,
    }
    texts = {} if told.rate_budget is None else {"rate_budget": str(told.rate_budget)}
    return {
        **{f"status/{name}": dg.MetadataValue.int(number) for name, number in numbers.items() if number is not None},
        **{f"status/{name}": dg.MetadataValue.text(text) for name, text in texts.items()},
    }


def trace_metadata(trace_id: str | None) -> Metadata:
    """Where spans show how the run went."""
    return {} if trace_id is None else {"trace_id": dg.MetadataValue.text(trace_id)}


def observation(table: Table, alert: Alert | AlertRecord) -> dg.AssetObservation:
    """Beside the table's other events, where whoever looks at the asset sees it."""
    return dg.AssetObservation(asset_key=asset_key(table), description=alert.message, metadata=_alert_metadata(alert))


def _alert_metadata(alert: Alert | AlertRecord) -> Metadata:
    return {
        "alert": dg.MetadataValue.text(alert.message),
        "kind": dg.MetadataValue.text(alert.kind),
        "severity": dg.MetadataValue.text(alert.severity),
        "details": dg.MetadataValue.json(redact_within(dict(alert.details))),
    }


def hook_metadata(ran: HookRun) -> Metadata:
    outcome = "ran" if ran.error is None else "warned" if ran.warns else "failed"
    metadata: dict[str, dg.MetadataValue] = {
        ran.phase: dg.MetadataValue.text(ran.name),
        "outcome": dg.MetadataValue.text(outcome),
        "seconds": dg.MetadataValue.float(round(ran.seconds, 3)),
    }
    if ran.error is not None:
        metadata["error"] = dg.MetadataValue.text(str(ran.error))
    return metadata


def hook_lines(ran: HookRun, table: Table) -> tuple[str, ...]:
    """For the run's log. EXPLAIN has something to say."""
    if ran.error is not None:
        return (str(ran.error),)
    return f"{table.label}: {ran.phase} `{ran.name}` ran in {ran.seconds:.1f} s", *ran.lines


def column_schema(target: Target) -> dg.TableSchemaMetadataValue:
    columns = [
        dg.TableColumn(
            name=column.name,
            type=column.type,
            constraints=dg.TableColumnConstraints(
                nullable=column.nullable, unique=target.primary_key == (column.name,)
            ),
        )
        for column in target.columns
    ]
    return dg.MetadataValue.table_schema(dg.TableSchema(columns=columns))


def definition_metadata(table: Table, root: Path) -> dict[str, object]:
    return {
        "load mode": table.mode,
        "target": f"{table.target_schema}.{table.target_name}",
        "dagster/code_references": dg.CodeReferencesMetadataValue(
            code_references=[
                dg.LocalFileCodeReference(
                    file_path=str(root.resolve() / table.origin.file),  # the UI opens absolute paths only
                    line_number=table.origin.line,
                    label=f"manifest of {table.label}",
                )
            ]
        ),
    }
