from __future__ import annotations

import hmac
from email.message import Message
from typing import Any

import pytest

from hakiri_dagster.hooks.signature import sign
from hakiri_dagster.manifest.trigger_spec import WebhookTrigger
from hakiri_dagster.triggers.proving import Proven, Refused, prove, require_signature

NOW = 1_800_000_000.0
SECRET = "a-secret-of-some-length"
BODY = b'{"ref": "refs/heads/main"}'

TIMESTAMPED = WebhookTrigger(type="webhook", secret=SECRET)
GITHUB = WebhookTrigger(type="webhook", secret=SECRET, scheme="github")


def headers(**named: str) -> Message:
    made = Message()
    for name, value in named.items():
        made[name.replace("_", "-")] = value
    return made


def timestamped(body: bytes = BODY, at: float = NOW, secret: str = SECRET, **more: str) -> Message:
    timestamp = str(int(at))
    return headers(X_Hakiri_Timestamp=timestamp, X_Hakiri_Signature=sign(secret, timestamp, body), **more)


def github(body: bytes = BODY, secret: str = SECRET, **more: str) -> Message:
    signature = "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()
    return headers(X_Hub_Signature_256=signature, **more)


def proven(of: Message, *triggers: WebhookTrigger, body: bytes = BODY) -> Proven:
    return prove(triggers or (TIMESTAMPED,), of, body, NOW)


def refusal(of: Message, *triggers: WebhookTrigger, body: bytes = BODY) -> tuple[int, str]:
    with pytest.raises(Refused) as told:
        proven(of, *triggers, body=body)
    return told.value.status, told.value.message


def test_what_our_own_webhooks_sign_is_proven_and_known_by_its_idempotency_key() -> None:
    assert proven(timestamped(Idempotency_Key="shop/orders/1")).delivery_id == "shop/orders/1"


def test_without_an_id_the_proof_tells_deliveries_apart() -> None:
    first, again = proven(timestamped()), proven(timestamped())
    assert first == again
    assert first.delivery_id == first.proof
    assert proven(timestamped(at=NOW + 1)).delivery_id != first.delivery_id


def test_another_id_under_the_same_signature_has_the_same_proof() -> None:
    caught = timestamped(Idempotency_Key="1")
    del caught["Idempotency-Key"]
    caught["Idempotency-Key"] = "2"
    assert proven(caught).proof == proven(timestamped(Idempotency_Key="1")).proof


def test_a_github_delivery_is_known_by_its_id() -> None:
    assert proven(github(X_GitHub_Delivery="72d3162e"), GITHUB) == Proven("72d3162e", None)


@pytest.mark.parametrize("trigger", [TIMESTAMPED, GITHUB], ids=["timestamped", "github"])
def test_a_header_of_the_senders_own_can_hold_the_id(trigger: WebhookTrigger) -> None:
    own = trigger.model_copy(update={"id_header": "X-Event-Id"})
    made = timestamped if trigger is TIMESTAMPED else github
    assert proven(made(X_Event_Id="evt_1"), own).delivery_id == "evt_1"


@pytest.mark.parametrize("written", ["x" * 300, "caf\u00e9", "a\tb"], ids=["long", "not ascii", "control character"])
def test_an_odd_id_is_kept_as_its_hash(written: str) -> None:
    assert len(proven(timestamped(Idempotency_Key=written)).delivery_id) == 64


def test_two_secrets_are_good_while_one_takes_over_from_the_other() -> None:
    old = TIMESTAMPED.model_copy(update={"secret": "the-secret-before-this"})
    assert proven(timestamped(secret="the-secret-before-this"), TIMESTAMPED, old)
    assert proven(timestamped(), TIMESTAMPED, old)
    assert refusal(timestamped(secret="a-third-one-by-nobody"), TIMESTAMPED, old)[0] == 401


def test_an_old_timestamp_is_told_though_another_secret_does_not_fit_at_all() -> None:
    other = TIMESTAMPED.model_copy(update={"secret": "the-secret-before-this"})
    assert "timestamp" in refusal(timestamped(at=NOW - 301), TIMESTAMPED, other)[1]


WRONG: dict[str, tuple[int, Message, WebhookTrigger, bytes]] = {
    "not signed": (401, headers(), TIMESTAMPED, BODY),
    "not signed, github": (401, headers(X_GitHub_Delivery="1"), GITHUB, BODY),
    "another secret": (401, timestamped(secret="another-secret-than-that"), TIMESTAMPED, BODY),
    "another secret, github": (401, github(secret="another", X_GitHub_Delivery="1"), GITHUB, BODY),
    "another body": (401, timestamped(), TIMESTAMPED, BODY + b" "),
    "another body, github": (401, github(X_GitHub_Delivery="1"), GITHUB, BODY + b" "),
    "no timestamp": (400, headers(X_Hakiri_Signature="sha256=" + "0" * 64), TIMESTAMPED, BODY),
    "a timestamp that is no number": (
        400,
        headers(X_Hakiri_Timestamp="now", X_Hakiri_Signature=sign(SECRET, "now", BODY)),
        TIMESTAMPED,
        BODY,
    ),
    "a signature of another kind": (
        400,
        headers(X_Hakiri_Timestamp=str(int(NOW)), X_Hakiri_Signature="sha1=" + "0" * 40),
        TIMESTAMPED,
        BODY,
    ),
    "a signature that is not ASCII": (400, headers(X_Hub_Signature_256="sha256=\u00e9" + "0" * 63), GITHUB, BODY),
    "too old": (401, timestamped(at=NOW - 301), TIMESTAMPED, BODY),
    "from the future": (401, timestamped(at=NOW + 301), TIMESTAMPED, BODY),
    "github without an id": (400, github(), GITHUB, BODY),
    "the other scheme": (401, github(X_GitHub_Delivery="1"), TIMESTAMPED, BODY),
}


@pytest.mark.parametrize("of", WRONG)
def test_nothing_else_is_proven(of: str) -> None:
    status, given, trigger, body = WRONG[of]
    assert refusal(given, trigger, body=body)[0] == status


@pytest.mark.parametrize("of", WRONG)
def test_what_could_not_be_proven_with_any_body_is_refused_without_one(of: str) -> None:
    status, given, trigger, body = WRONG[of]
    message = refusal(given, trigger, body=body)[1]
    if "not signed" in message or "malformed" in message:
        with pytest.raises(Refused) as told:
            require_signature((trigger,), given)
        assert (told.value.status, told.value.message) == (status, message)
    else:
        require_signature((trigger,), given)


def test_a_signature_of_any_of_the_triggers_will_do_before_the_body_is_read() -> None:
    require_signature((GITHUB, TIMESTAMPED), timestamped())


@pytest.mark.parametrize("seconds", [-299, 299])
def test_clocks_may_differ_by_as_much_as_the_manifest_allows(seconds: int) -> None:
    assert proven(timestamped(at=NOW + seconds))


@pytest.mark.parametrize("name", ["X-Hakiri-Signature", "X-Hakiri-Timestamp", "Idempotency-Key"])
def test_a_header_that_is_there_twice_is_refused(name: str) -> None:
    given: Any = timestamped(Idempotency_Key="1")
    given[name] = given[name]
    assert refusal(given)[0] == 400
