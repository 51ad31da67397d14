"""Runs as Dagster's daemon has put them into its queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import uuid4

import dagster as dg
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

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
        remote_job_origin=RemoteJobOrigin(RemoteRepositoryOrigin(_LOCATION, "__repository__"), job),
    )
    return instance.add_run(run).run_id
