"""How rules and validators are called: the names of their asset checks, which stay while their bounds change."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from hakiri_dagster.manifest.field_types import quoted, wrong

CHECK_ID = r"^[a-z][a-z0-9_]{0,62}$"
RESERVED_IDS = ("no_rows_set_aside", "matches_source")


def _check_id(value: Any) -> Any:
    if isinstance(value, str):
        if re.fullmatch(CHECK_ID.strip("^$"), value) is None:
            raise wrong(
                f"{quoted(value)} is not the id of a check",
                "begin with a lower-case letter, and use lower-case letters, digits and `_`, 63 at most",
            )
        if value in RESERVED_IDS:
            raise wrong(f"{quoted(value)} is the name of a check of our own", "choose another id")
    return value


CheckId = Annotated[str, Field(pattern=CHECK_ID), BeforeValidator(_check_id)]


def id_from(kind: str, *fields: str) -> str:
    """An id for one that has none: its kind and its fields. Where that does not fit, a digest tells them apart."""
    named = "_".join(fields)
    plain = re.sub("[^a-z0-9_]", "_", named.lower())
    told = f"{kind}_{plain}" if fields else kind
    if plain == named and len(told) <= 63:
        return told
    return f"{told[:54]}_{digest_of(named)}"


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
