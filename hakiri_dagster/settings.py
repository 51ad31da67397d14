"""What the operator sets through the environment. The manifest never says where the engine runs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Settings:
    """`spark` is a master (`local[*]`, `spark://…`, `yarn`, `k8s://…`) or a Connect URL (`sc://…`)."""

    spark: str = "local[*]"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    spark_driver_memory: str | None = None
    candidates_dir: str | None = None
    dagster_url: str | None = None
    lease_ttl_seconds: int = 600
    retries: int = 3
    retry_base_seconds: float = 1.0

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        env = os.environ if env is None else env
        return cls(
            spark=env.get("HAKIRI_SPARK", "local[*]"),
            spark_conf=_pairs(env.get("HAKIRI_SPARK_CONF", "")),
            spark_driver_memory=env.get("HAKIRI_SPARK_MEMORY"),
            candidates_dir=env.get("HAKIRI_CANDIDATES"),
            dagster_url=env.get("HAKIRI_DAGSTER_URL"),
            lease_ttl_seconds=int(env.get("HAKIRI_LEASE_TTL", "600")),
            retries=int(env.get("HAKIRI_RETRIES", "3")),
            retry_base_seconds=float(env.get("HAKIRI_RETRY_BASE", "1")),
        )


def _pairs(text: str) -> dict[str, str]:
    """`HAKIRI_SPARK_CONF="spark.a=1 spark.b='x y'"`"""
    return dict(item.split("=", 1) for item in shlex.split(text) if "=" in item)
