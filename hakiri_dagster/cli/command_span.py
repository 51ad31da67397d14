"""One span for a whole command, around those of its runs: one trace for whoever wants to see an `apply` as it went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.tracing.contract import Attributes


@contextmanager
def command_span(runtime: Runtime, command: str, tally: Tally) -> Iterator[None]:
    span = runtime.begin_command(f"hakiri {command}")
    if span is None:
        yield
        return
    try:
        yield
    except HakiriError as error:
        span.failed(str(error))
        raise
    except KeyboardInterrupt:
        span.failed("interrupted")
        raise
    else:
        if (error_text := tally.first_error) is not None:
            span.failed(error_text)
    finally:
        span.tell(_sums(tally))
        span.ended()


def _sums(tally: Tally) -> Attributes:
    tables = tally.tables
    return {
        "hakiri.command.tables": len(tables),
        "hakiri.command.failed_tables": sum(table.broken for table in tables),
        "hakiri.command.published_chunks": sum(table.done for table in tables),
        "hakiri.command.failed_chunks": sum(table.failed for table in tables),
        "hakiri.command.rows": sum(table.rows for table in tables),
        "hakiri.command.quarantined": sum(table.quarantined for table in tables),
    }
