"""Runs as Dagster's daemon has put them into its queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import uuid4

import dagster as dg
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._daemon.run_coordinator import QueuedRunCoordinatorDaemon

_LOCATION = GrpcServerCodeLocationOrigin(host="127.0.0.1", port=1, location_name="hakiri")


def queued_run(
    instance: dg.DagsterInstance, tags: Mapping[str, str] | None = None, keys: Iterable[dg.AssetKey] | None = None
) -> str:
    job = "__ASSET_JOB"
    run = dg.DagsterRun(
        job,
        run_id=str(uuid4()),
        status=dg.DagsterRunStatus.QUEUED,
        tags=tags,
        asset_selection=None if keys is None else frozenset(keys),
        remote_job_origin=_origin(job),
    )
    return instance.add_run(run).run_id


def queued_run_of(instance: dg.DagsterInstance, job: dg.JobDefinition) -> str:
    """With the pools that its steps need."""
    run = instance.create_run_for_job(
        job, status=dg.DagsterRunStatus.QUEUED, remote_job_origin=_origin(job.name), asset_selection=None
    )
    return run.run_id


def _origin(job: str) -> RemoteJobOrigin:
    return RemoteJobOrigin(RemoteRepositoryOrigin(_LOCATION, "__repository__"), job)


def taken_from_the_queue(instance: dg.DagsterInstance) -> list[str]:
    """The runs that Dagster's daemon would start now."""
    daemon = QueuedRunCoordinatorDaemon(interval_seconds=1)
    runs = daemon._get_runs_to_dequeue(instance, instance.get_concurrency_config(), fixed_iteration_time=None)
    return [run.run_id for run in runs]
