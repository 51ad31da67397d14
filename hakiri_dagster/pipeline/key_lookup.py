"""Whether a row's key is there more than once, asked where the row is staged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hakiri_dagster.errors import SourceUnavailable
from hakiri_dagster.pipeline.key_digests import Digests, Slices, added, checksums
from hakiri_dagster.pipeline.key_plan import KeyPlan
from hakiri_dagster.pipeline.key_runs import KeyFile, places_of


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """`files`: of each range of digests, what is there more than once, if anything. `seen`: a checksum of each slice's
    keys, where the plan sums them up."""

    plan: KeyPlan
    files: tuple[str | None, ...]
    seen: Mapping[int, int] = field(default_factory=dict)

    @property
    def all_unique(self) -> bool:
        return not any(self.files)

    def refuse_others(self, staged: Mapping[int, int]) -> None:
        """Rows that come or go between the two readings would make the answers wrong."""
        if any(self.seen.get(index, 0) != staged.get(index, 0) for index in {*self.seen, *staged}):
            raise SourceUnavailable(
                "the rows changed between the two readings that a rule unique_within_load needs; nothing was published",
                hint="it is tried again; a PostgreSQL without a pooler before it shows the same rows twice",
            )


class KeyLookup:
    """Of one task."""

    def __init__(self, repeated: RepeatedKeys) -> None:
        self._plan = repeated.plan
        self._all_unique = repeated.all_unique
        directory = Path(repeated.plan.directory)
        self._files = [None if name is None else KeyFile.open(directory / name) for name in repeated.files]

    def judged(self, batch: pa.RecordBatch, slices: Slices) -> tuple[pa.RecordBatch, dict[int, int]]:
        """With the verdict on each rule, and checksums of the slices' keys."""
        sums: dict[int, int] = {}
        if self._all_unique and self._plan.same_twice:
            passing = pa.repeat(pa.scalar(True), batch.num_rows)
            return self._with_verdicts(batch, [passing for _ in self._plan.keys]), sums
        verdicts = []
        for key in self._plan.keys:
            keyed, digests = key.of(batch, slices, self._plan.seed)
            passes = np.ones(batch.num_rows, dtype=bool)
            passes[keyed] = ~self._repeated(digests)
            verdicts.append(pa.array(passes))
            if not self._plan.same_twice:
                for index, checksum in checksums(digests, slices[keyed]).items():
                    sums[index] = added(sums.get(index, 0), checksum)
        return self._with_verdicts(batch, verdicts), sums

    def _with_verdicts(self, batch: pa.RecordBatch, verdicts: Sequence[pa.Array]) -> pa.RecordBatch:
        for key, verdict in zip(self._plan.keys, verdicts, strict=True):
            batch = batch.append_column(key.verdict, verdict)
        return batch

    def _repeated(self, digests: Digests) -> npt.NDArray[np.bool_]:
        """Asked in their order, so that neighbours lie on one page."""
        found = np.zeros(len(digests), dtype=bool)
        if self._all_unique:
            return found
        order = np.argsort(digests[:, 0])
        places = places_of(digests[order], len(self._files))
        starts = np.searchsorted(places, np.arange(len(self._files) + 1))
        for place, file in enumerate(self._files):
            mine = order[starts[place] : starts[place + 1]]
            if file is not None and len(mine):
                found[mine] = file.holds(digests[mine])
        return found
