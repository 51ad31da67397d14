"""Triggers: what starts a pipeline beside its schedule. What is wrong with them beyond their form: `trigger_checks`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hakiri_dagster.manifest.field_types import Duration, Model, Text, Whole, wrong
from hakiri_dagster.manifest.rest_spec import HeaderName

Scheme = Literal["timestamped", "github"]
Expects = Literal["pipeline_id", "anything"]

CLOUDFLARE = "https://api.cloudflare.com/client/v4"
_ID = r"^[0-9a-f]{32}$"

_EXPECTS = (
    '`pipeline_id`: messages are JSON like `{"pipeline_id": "…"}`, and those with this pipeline\'s id start it.'
    " `anything`: every message of the queue does."
)


def _hex_id(value: Any) -> Any:
    """Not quoted: it may come from the environment."""
    if isinstance(value, str) and (len(value) != 32 or not set(value) <= set("0123456789abcdef")):
        raise wrong("not an id of Cloudflare's", "it has 32 digits and letters from a to f, as the dashboard shows it")
    return value


CloudflareId = Annotated[str, Field(pattern=_ID), BeforeValidator(_hex_id)]


class WebhookTrigger(Model):
    """A signed POST to `/hooks/<pipeline id>` of the inbox."""

    type: Literal["webhook"] = Field(description="`hakiri serve` and `hakiri receive` take it.")
    secret: Text = Field(repr=False, description="`${NAME}`: what the POST is signed with.")
    scheme: Scheme = Field(
        default="timestamped",
        description="`timestamped`: `X-Hakiri-Timestamp` and `X-Hakiri-Signature`. `github`: `X-Hub-Signature-256`.",
    )
    id_header: HeaderName | None = Field(
        default=None,
        min_length=1,
        description="The header that tells deliveries apart. Default: `Idempotency-Key`, if there is one;"
        " `X-GitHub-Delivery`.",
    )
    tolerance_seconds: Whole = Field(
        default=300, ge=1, le=3600, description="`timestamped`: how far the sender's clock may be from this one's."
    )
    max_body_kib: Whole = Field(default=1024, ge=1, le=25_600, description="Longer bodies are refused.")


class SqsTrigger(Model):
    """Messages of a queue of Amazon SQS."""

    type: Literal["sqs"] = Field(description="Messages are taken off it once they are stored.")
    queue_url: Text = Field(repr=False, description="As Amazon shows it. May hold `${NAME}`.")
    region: Text | None = Field(default=None, description="Default: the one that `queue_url` names.")
    access_key_id: Text | None = Field(
        default=None, repr=False, description="`${NAME}`. Default: as Amazon's own tools find their credentials."
    )
    secret_access_key: Text | None = Field(default=None, repr=False, description="`${NAME}`")
    expects: Expects = Field(default="pipeline_id", description=_EXPECTS)
    aside_queue_url: Text | None = Field(
        default=None,
        repr=False,
        description="Where messages go that are for nobody here. Default: they are left where they are.",
    )


class CloudflareQueueTrigger(Model):
    """Messages of a Cloudflare Queue with an HTTP pull consumer."""

    type: Literal["cloudflare_queue"] = Field(description="Messages are acknowledged once they are stored.")
    account_id: CloudflareId = Field(description="The account's id.")
    queue_id: CloudflareId = Field(description="The queue's id.")
    token: Text = Field(repr=False, description="`${NAME}`: an API token that may edit Queues.")
    base_url: Text = Field(default=CLOUDFLARE, repr=False, description="Where the API is. May hold `${NAME}`.")
    expects: Expects = Field(default="pipeline_id", description=_EXPECTS)
    aside_queue_id: CloudflareId | None = Field(
        default=None,
        description="The queue that messages go to that are for nobody here. Default: they are left where they are.",
    )


class FilesTrigger(Model):
    """Files that are new, or were written anew."""

    type: Literal["files"] = Field(description="Starts the pipeline once for what has arrived.")
    settle: Duration = Field(
        default="10s", description="How long a file must have stayed as it is: until then it may still be written."
    )


class SourceTrigger(Model):
    """A source that has grown or changed."""

    type: Literal["source"] = Field(description="Starts the pipeline when a look at its source finds something due.")
    every: Duration = Field(default="1m", description="How often its source is looked at.")


QueueTrigger = SqsTrigger | CloudflareQueueTrigger
DeliveredTrigger = WebhookTrigger | QueueTrigger
Trigger = DeliveredTrigger | FilesTrigger | SourceTrigger
Triggers = tuple[Annotated[Trigger, Field(discriminator="type")], ...]


def told(trigger: Trigger, pipeline_id: str) -> str:
    """In a few words, without a secret."""
    match trigger:
        case WebhookTrigger():
            return f"webhook: POST /hooks/{pipeline_id}, signed ({trigger.scheme})"
        case SqsTrigger():
            return f"sqs: {trigger.queue_url.rstrip('/').rpartition('/')[2]}"
        case CloudflareQueueTrigger():
            return f"cloudflare_queue: {trigger.queue_id}"
        case FilesTrigger():
            return f"files, once they have stayed as they are for {trigger.settle}"
        case SourceTrigger():
            return f"source, looked at every {trigger.every}"
