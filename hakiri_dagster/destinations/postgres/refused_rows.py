"""The rows of one load that the server refused, until they are kept in quarantine."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile

from hakiri_dagster.destinations.contract import BadRow
from hakiri_dagster.destinations.refusals_contract import TooManyRowsRefused

REFUSED_RULE = "refused_by_destination"

MOST_REFUSED = 10_000
"""Each costs some statements to find. Of a load with more of them rather the table is wrong than the rows."""

MOST_SECONDS = 900.0
"""Of searching, besides what it takes to bring all rows once."""

_BYTES_IN_MEMORY = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """`text` is JSON in one line, of what the source gave; the others are what the load knows of it besides."""

    text: str
    file_hash: bytes | None = None
    kept_id: int | None = None


class Refused:
    """Rows lie in a file that has no name, so that a worker that is killed leaves none."""

    def __init__(self, where: str) -> None:
        self.rows = 0
        self.first: str | None = None
        self._where = where
        self._seconds = 0.0
        self._file = SpooledTemporaryFile(_BYTES_IN_MEMORY, mode="w+", encoding="utf-8")  # noqa: SIM115  # see below
        weakref.finalize(self, self._file.close)

    def add(self, message: str, row: RefusedRow) -> None:
        file_hash = None if row.file_hash is None else row.file_hash.hex()
        json.dump([message, file_hash, row.kept_id], self._file, ensure_ascii=False)
        self._file.write(f"\n{row.text}\n")
        self.rows += 1
        self.first = self.first or message
        if self.rows > MOST_REFUSED:
            raise self._given_up(f"PostgreSQL refuses more than {MOST_REFUSED} rows of the load")

    def spend(self, seconds: float) -> None:
        self._seconds += seconds
        if self._seconds > MOST_SECONDS:
            raise self._given_up(f"PostgreSQL refuses {self.rows} rows of the load, found in {MOST_SECONDS:.0f} s")

    def _given_up(self, found: str) -> TooManyRowsRefused:
        first = f"; the first: {self.first}" if self.first else ""
        what = f"{found}, and the search for others was given up{first}"
        return TooManyRowsRefused(what, self, where=self._where)

    def __iter__(self) -> Iterator[BadRow]:
        self._file.seek(0)
        for about in self._file:
            message, hexadecimal, kept_id = json.loads(about)
            row = self._file.readline().rstrip("\n")
            file_hash = None if hexadecimal is None else bytes.fromhex(hexadecimal)
            yield BadRow(REFUSED_RULE, message, row, None, file_hash=file_hash, kept_id=kept_id)
