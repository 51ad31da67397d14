"""The lines of rows that are kept in quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from hakiri_dagster.connectors.contract import LineOf, RecordPlace
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.row_places import Place


@dataclass
class RowLines:
    """That a line cannot be told is no reason to lose a row, or a load. Once it fails, nothing is asked any more."""

    _line_of: LineOf | None

    def line(self, place: Place) -> int | None:
        if self._line_of is None or place.file is None or place.split is None or place.after is None:
            return None
        try:
            with translate_spark_errors():
                return self._line_of(RecordPlace(place.file, place.split, place.after))
        except (HakiriError, OSError):
            self._line_of = None
            return None
