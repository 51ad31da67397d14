"""Results of the check `matches_source`: what a comparison with the source found, by partition and of all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import dagster as dg

from hakiri_dagster.audit.rewinds import RewindAnswer
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.checks import MATCHES_SOURCE
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.pipeline.verification import Verification, summary
from hakiri_dagster.planning.verification import ChunkDifference


def verification_results(
    found: Verification, repair: RewindAnswer | None, partitions: Collection[str]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield one result of all chunks and one a partition.

    The UI sums a check up by its last result, and the one of no partition takes the place of what the run has planned,
    which comes first. So partitions that drifted come last, and the last one includes what drifted elsewhere (`null`,
    `outside`). The results name no materialization: Dagster then takes them for an answer about what is there now.
    """
    pending = [] if repair is None else [state.key for state in repair.reach.states]
    about: dict[str, dg.MetadataValue] = {
        "chunks_compared": dg.MetadataValue.int(len(found.chunks)),
        "compared_by": dg.MetadataValue.text(found.by),
        **({"drifted_chunks": dg.MetadataValue.text(", ".join(c.key for c in found.drifted))} if found.drifted else {}),
        **({"made_pending": dg.MetadataValue.text(", ".join(pending))} if pending else {}),
    }
    yield _result(found.table, found.chunks, about)
    own = sorted((chunk for chunk in found.chunks if chunk.key in partitions), key=lambda chunk: chunk.is_drift)
    elsewhere = [chunk for chunk in found.drifted if chunk.key not in partitions]
    for chunk in own[:-1]:
        yield _result(found.table, [chunk], {}, chunk.key)
    for chunk in own[-1:]:
        others = {f"{other.key}/observed": dg.MetadataValue.text(summary([other])) for other in elsewhere}
        yield _result(found.table, [chunk], others, chunk.key, fails=bool(elsewhere))


def _result(
    table: Table,
    chunks: Sequence[ChunkDifference],
    about: Mapping[str, dg.MetadataValue],
    partition: str | None = None,
    *,
    fails: bool = False,
) -> dg.AssetCheckEvaluation:
    numbers = {
        "rows_at_source": sum(chunk.source_rows for chunk in chunks),
        "rows_in_target": sum(chunk.target_rows for chunk in chunks),
        "rows_quarantined": sum(chunk.accounted for chunk in chunks),
        "missing": sum(chunk.missing for chunk in chunks),
        "extra": sum(chunk.extra for chunk in chunks),
        "changed": sum(chunk.changed for chunk in chunks),
        "deleted_at_source": sum(chunk.deleted_at_source for chunk in chunks),
        "moved": sum(chunk.moved for chunk in chunks),
        "not_loaded": sum(chunk.not_loaded for chunk in chunks),
    }
    is_error = table.verify is None or table.verify.on_drift == "error"
    return dg.AssetCheckEvaluation(
        asset_key=asset_key(table),
        check_name=MATCHES_SOURCE,
        passed=not fails and not any(chunk.is_drift for chunk in chunks),
        metadata={
            "expected": dg.MetadataValue.text("no row missing, extra or changed"),
            "observed": dg.MetadataValue.text(summary(chunks)),
            **{name: dg.MetadataValue.int(number) for name, number in numbers.items()},
            **about,
        },
        severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
        partition=partition,
    )
