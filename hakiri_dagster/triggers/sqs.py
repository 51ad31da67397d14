"""Queues of Amazon SQS. The one module that knows its SDK, which takes a while to import: so when a queue is opened."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import methodcaller
from typing import Any, Final

from hakiri_dagster.audit.deliveries import DeliverySource
from hakiri_dagster.errors import HakiriError, QueueRefused, QueueUnavailable
from hakiri_dagster.manifest.queue_urls import judged_queue_url, region_of
from hakiri_dagster.manifest.trigger_spec import SqsTrigger
from hakiri_dagster.security.pinned_connection import origin
from hakiri_dagster.triggers.queues import Message

_AT_ONCE: Final = 10
"""The most that SQS gives and takes in one request."""

_WAIT_SECONDS: Final = 1
"""For the first messages: without waiting, SQS asks only some of its servers, and may overlook what is there."""

_MAY_PASS: Final = ("Throttl", "RequestLimit", "OverLimit", "ServiceUnavailable", "InternalError", "KmsThrottled")
_HINTS: Final = {
    "NonExistentQueue": "check `queue_url` and `region`",
    "QueueDoesNotExist": "check `queue_url` and `region`",
    "AccessDenied": "these credentials need sqs:ReceiveMessage and sqs:DeleteMessage on the queue",
    "InvalidClientTokenId": "check `access_key_id`",
    "SignatureDoesNotMatch": "check `secret_access_key`",
    "ExpiredToken": "the credentials of this machine have expired",
}


class SqsQueue:
    """`lease_seconds`: for how long what is received is hidden from others; within that it has to be stored."""

    def __init__(self, trigger: SqsTrigger, *, allow_loopback: bool, lease_seconds: int = 60) -> None:
        self._trigger = trigger
        self._url = trigger.queue_url
        self._lease_seconds = lease_seconds
        self._waits = _WAIT_SECONDS
        self._clients: dict[str, Any] = {}
        self._allow_loopback = allow_loopback

    @property
    def name(self) -> str:
        return _name(self._url)

    @property
    def source(self) -> DeliverySource:
        return "sqs"

    @property
    def aside(self) -> str | None:
        url = self._trigger.aside_queue_url
        return None if url is None else _name(url)

    def receive(self) -> Sequence[Message]:
        asked = methodcaller(
            "receive_message",
            QueueUrl=self._url,
            MaxNumberOfMessages=_AT_ONCE,
            WaitTimeSeconds=self._waits,
            VisibilityTimeout=self._lease_seconds,
        )
        answer = self._asked(self._url, asked)
        self._waits = 0
        return [
            Message(found["MessageId"], found["Body"].encode(), found["ReceiptHandle"])
            for found in answer.get("Messages", ())
        ]

    def delete(self, messages: Sequence[Message]) -> None:
        for first in range(0, len(messages), _AT_ONCE):
            entries = [
                {"Id": str(number), "ReceiptHandle": message.receipt}
                for number, message in enumerate(messages[first : first + _AT_ONCE])
            ]
            self._asked(self._url, methodcaller("delete_message_batch", QueueUrl=self._url, Entries=entries))

    def put_aside(self, message: Message) -> bool:
        url = self._trigger.aside_queue_url
        if url is None or message.body is None:
            return False
        named = {"MessageGroupId": "aside", "MessageDeduplicationId": message.id} if url.endswith(".fifo") else {}
        text = message.body.decode()
        self._asked(url, methodcaller("send_message", QueueUrl=url, MessageBody=text, **named))
        return True

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _asked(self, url: str, ask: Callable[[Any], Any]) -> Mapping[str, Any]:
        with _telling(_name(url)):
            answer: Mapping[str, Any] = ask(self._client(url))
            return answer

    def _client(self, url: str) -> Any:
        """At the host of the queue's own URL: by itself the SDK goes by the region alone."""
        endpoint = origin(judged_queue_url(url, allow_loopback=self._allow_loopback))
        if endpoint not in self._clients:
            self._clients[endpoint] = _opened(self._trigger, endpoint)
        return self._clients[endpoint]


def _opened(trigger: SqsTrigger, endpoint: str) -> Any:
    import boto3
    from botocore.config import Config

    logging.getLogger("botocore").setLevel(logging.INFO)  # below that it writes headers, with tokens, into logs
    session = boto3.session.Session(
        aws_access_key_id=trigger.access_key_id, aws_secret_access_key=trigger.secret_access_key
    )
    return session.client(
        "sqs",
        region_name=trigger.region or region_of(trigger.queue_url),
        endpoint_url=endpoint,
        config=Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 2}),
    )


@contextmanager
def _telling(name: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

    try:
        yield
    except (NoCredentialsError, PartialCredentialsError):
        raise QueueRefused(
            f"there are no credentials for the queue {name}",
            hint="set `access_key_id` and `secret_access_key`, or give this machine a role",
        ) from None
    except ClientError as error:
        raise _translated(error.response, name) from None
    except BotoCoreError as error:
        raise QueueUnavailable(f"the queue {name} does not answer: {type(error).__name__}") from None


def _translated(response: Mapping[str, Any], name: str) -> HakiriError:
    code = str(response.get("Error", {}).get("Code", "")).rpartition(".")[2]
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    told = f"{status} {code}" if code.isalnum() and not code.isdigit() else str(status)
    if status >= 500 or status == 429 or code.startswith(_MAY_PASS):
        return QueueUnavailable(f"the queue {name} answered {told}")
    hint = next((hint for known, hint in _HINTS.items() if known in code), "check the trigger in the manifest")
    return QueueRefused(f"the queue {name} answered {told}", hint=hint)


def _name(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]
