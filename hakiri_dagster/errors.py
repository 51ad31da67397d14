"""Errors that say what, where and what to do. Every error a user can meet is a HakiriError."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from hakiri_dagster.security.secrets import redact

ErrorKind = Literal["transient", "permanent"]


class HakiriError(Exception):
    """`where` is a pipeline/table, a file position or a URL without its password; `hint` is the cure.

    Wherever it ends (a terminal, a log, an event, the audit DB), it shows no secret.
    """

    kind: ClassVar[ErrorKind] = "permanent"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what = redact(what)
        self.where = None if where is None else redact(where)
        self.hint = None if hint is None else redact(hint)
        super().__init__(self.what)

    def __str__(self) -> str:
        return self.told_within(None)

    def told_within(self, place: str | None) -> str:
        """For whoever names the place before."""
        text = self.what if self.where in (None, "", place) else f"{self.where}: {self.what}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class UsageError(HakiriError):
    """A wrong call: an unknown pipeline id, a chunk that is not in the plan."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a manifest, at the place where it is written."""

    file: str
    line: int
    column: int
    pipeline_id: str | None
    message: str
    hint: str | None = None


class ManifestError(HakiriError):
    """Everything that is wrong with a project's manifests, at once."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(_one(p) for p in self.problems))


def _one(problem: Problem) -> str:
    text = f"{problem.file}:{problem.line}:{problem.column}: {problem.message}"
    return f"{text}\n  hint: {problem.hint}" if problem.hint else text


class PlanError(HakiriError):
    """The chunk plan cannot be cut as declared: a window that does not fit the cursor, or far too many chunks."""

    exit_code = 2


class PlanNotLoaded(PlanError):
    """Dagster shows a table as it was guessed before its first plan, until it has loaded the project anew."""

    kind = "transient"


class EngineError(HakiriError):
    """Java, Spark or the embedded PostgreSQL could not be started or was lost."""


class StateFolderDeleted(EngineError):
    """`.hakiri`, or a part of it, was deleted or replaced while this process was using it."""


class EngineLost(EngineError):
    """Spark went away in the middle of the work; the same work may succeed on the next try."""

    kind = "transient"


class EngineAway(EngineError):
    """Spark does not answer; it may be starting again, and takes the work then."""

    kind = "transient"


class SourceError(HakiriError):
    """The source cannot be read as declared."""


class SourceUnavailable(SourceError):
    """The source did not answer; it may on the next try."""

    kind = "transient"


class HeldBack(SourceUnavailable):
    """Nothing was asked of the source: it is not its turn, or whoever asks has no time to wait for it."""


class SourceThrottled(SourceUnavailable):
    """The source wants to be left alone for longer than anybody waits: no try of this run's is to follow."""


class NothingThere(SourceError):
    """No file is where the source's rows should be."""


class StreamRefused(SourceError):
    """A stream of changes cannot be opened here; the rest of the project is not concerned."""


class DestinationError(HakiriError):
    """The destination refused the load."""


class SchemaIncompatible(HakiriError):
    """The source's columns are no longer what they were, in a way that the table does not follow by itself."""


class DestinationUnavailable(DestinationError):
    """The destination did not answer, or broke off; it may work on the next try."""

    kind = "transient"


class AuditError(HakiriError):
    """The audit DB refused."""


class AuditUnavailable(AuditError):
    """The audit DB did not answer, or broke off; it may work on the next try."""

    kind = "transient"


class AuditBusy(AuditUnavailable):
    """Somebody else held a lock for too long."""


class AuditFull(AuditError):
    """No room left to write. Nothing was changed."""


class AuditTooNew(AuditError):
    """A newer version of the product has written this audit DB."""


class RowsRefused(HakiriError):
    """Rows could not be parsed or stored, and the manifest says that this stops the run."""


class RowCountMismatch(HakiriError):
    """Spark, the candidate's files and the destination disagree on the number of rows: nothing was published."""

    kind: ClassVar[ErrorKind] = "transient"


class RowsLeftOut(RowCountMismatch):
    """Something of the target's keeps rows of the load out, and would at each try: nothing was published."""

    kind = "permanent"


class OutOfOrder(HakiriError):
    """A chunk was asked for before its turn, and its table's load mode publishes in order."""


class ChunkBusy(HakiriError):
    """Somebody is at work on a chunk; it is free when they are done."""

    kind = "transient"


class LeaseLost(HakiriError):
    """Another worker took this chunk over, so this attempt publishes nothing."""


class UnsafeSql(HakiriError):
    """A hook's SQL is more than maintenance."""


class UnsafeExpression(HakiriError):
    """A rule's expression is more than an expression over the row's columns, or cannot be read."""


class UnsafeUrl(HakiriError):
    """A URL leads, or may lead, to where a manifest has no business."""


class WebhookUnavailable(HakiriError):
    """The receiver of a webhook may take it on the next try; it asked to be left alone for `retry_after` seconds."""

    kind = "transient"

    def __init__(
        self, what: str, *, where: str | None = None, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.retry_after = retry_after


class WebhookRefused(HakiriError):
    """The receiver of a webhook said no, or could not prove who it is; the next try would end alike."""


class QueueUnavailable(HakiriError):
    """A queue did not answer, or asked to be left alone for `retry_after` seconds; it may answer at the next look."""

    kind = "transient"

    def __init__(
        self, what: str, *, where: str | None = None, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.retry_after = retry_after


class QueueRefused(HakiriError):
    """A queue is not there, or is not for these credentials."""


class HooksBusy(HakiriError):
    """Another run is running the post-hooks of the table; what they are owed for stays remembered."""


class HookFailed(HakiriError):
    """A hook did not do what it is for, and its `on_error` is "fail"."""


class HookUnavailable(HookFailed):
    """What a hook needs did not answer; it may on the next try."""

    kind = "transient"


class NotYet(HakiriError):
    """A feature that the manifest language has and this version does not build yet."""

    exit_code = 2
