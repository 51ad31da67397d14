"""Hooks: what runs before and after the load of a table. What their texts may hold is judged by `hook_checks`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hakiri_dagster.manifest.field_types import Model, Number, Text

OnError = Literal["fail", "warn"]

_ON_ERROR = "`fail` fails the run; `warn` records a warning and goes on."
WEBHOOK_SECONDS = 60


class SqlHook(Model):
    """One maintenance statement; data-modifying ones are refused."""

    type: Literal["sql"] = Field(description="A maintenance statement like ANALYZE or VACUUM.")
    statement: Text = Field(description="`{table}` is the relation that is being loaded.")
    on_error: OnError = Field(default="fail", description=_ON_ERROR)


class RefreshMatViewHook(Model):
    """REFRESH MATERIALIZED VIEW."""

    type: Literal["refresh_mat_view"] = Field(description="Refreshes a materialized view.")
    view: Text = Field(description="`schema.view`")
    on_error: OnError = Field(default="fail", description=_ON_ERROR)


class WebhookHook(Model):
    """An https POST."""

    type: Literal["webhook"] = Field(description="Sends a POST.")
    url: Text = Field(repr=False, description="https only; no private addresses. May hold `${NAME}`.")
    secret: Text | None = Field(
        default=None, repr=False, description="`${NAME}`: signs the POST. Default: it is not signed."
    )
    timeout_seconds: Number = Field(
        default=10, gt=0, le=WEBHOOK_SECONDS, description="How long one POST may take, redirects included."
    )
    on_error: OnError = Field(default="fail", description=_ON_ERROR)


class CustomFunctionHook(Model):
    """A function that the operator has registered."""

    type: Literal["custom_function"] = Field(description="Calls a registered function.")
    function: Text = Field(description="Its name among the entry points of the group `hakiri_dagster.hooks`.")
    on_error: OnError = Field(default="fail", description=_ON_ERROR)


Hook = SqlHook | RefreshMatViewHook | WebhookHook | CustomFunctionHook
_TaggedHook = Annotated[Hook, Field(discriminator="type")]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


Hooks = Annotated[
    tuple[_TaggedHook, ...], BeforeValidator(_listed, json_schema_input_type=_TaggedHook | tuple[_TaggedHook, ...])
]
