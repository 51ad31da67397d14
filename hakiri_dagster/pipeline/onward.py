"""Where a segment has ended, as its walk tells. It is published with the rows, so it has to be right before."""

from __future__ import annotations

from hakiri_dagster.errors import SourceError
from hakiri_dagster.pipeline.passes import StagedSlice
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.chunks import Segment
from hakiri_dagster.planning.segments import leads_back, segment_key


def astray(survey: Survey, slice_: StagedSlice) -> SourceError | None:
    """Why the walk cannot go on from here, nor the segment be published."""
    segment = slice_.claimed.slice.bounds
    if not isinstance(segment, Segment):
        return None
    token, where = slice_.report.onward, survey.table.label
    if token is None:
        return SourceError("the walk did not tell where the segment ends", where=where, hint="try it again")
    begins = leads_back(token, segment, survey.chunks) if token else None
    if begins is None:
        return None
    return SourceError(
        f"the token after {segment_key(segment.number)} leads back to where {segment_key(begins)} begins: "
        "the pages go round in circles, and would for ever",
        where=where,
        hint="check `pagination`; nothing of this segment was published",
    )
