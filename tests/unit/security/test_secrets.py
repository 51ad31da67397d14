from __future__ import annotations

import io
import logging

import pytest

from hakiri_dagster.security import secrets
from hakiri_dagster.security.secrets import RedactingFilter, redact, register, register_url, safe_url


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_secrets", frozenset())
    monkeypatch.setattr(secrets, "_pattern", None)


def test_a_registered_value_is_masked_wherever_it_turns_up() -> None:
    register(["tok-12345"])
    assert redact("a tok-12345 b=tok-12345;") == "a *** b=***;"


def test_a_secret_inside_another_one_does_not_leave_the_rest_of_it_behind() -> None:
    register(["abcd"])
    register(["abcdefgh"])
    assert redact("x abcdefgh y") == "x *** y"


def test_the_password_of_a_url_is_masked_as_written_and_decoded() -> None:
    register_url("postgresql://app:p%40ss%2Fw0rd@db.example.com/shop")
    assert redact("failed with p@ss/w0rd") == "failed with ***"
    assert redact("failed with p%40ss%2Fw0rd") == "failed with ***"
    assert "db.example.com" in redact("cannot reach db.example.com")


def test_a_secret_with_odd_characters_is_masked_in_its_url_form_too() -> None:
    register(["a b/c?d"])
    assert redact("https://x/?key=a%20b%2Fc%3Fd") == "https://x/?key=***"


def test_passwords_nobody_registered_are_masked_in_urls_and_connection_strings() -> None:
    assert redact("postgresql://app:x@h/db refused") == "postgresql://app:***@h/db refused"
    assert redact("host=h password='a b\\'c' user=u") == "host=h password=*** user=u"
    assert (
        redact("postgresql://h/db?user=u&password=x&sslmode=on") == "postgresql://h/db?user=u&password=***&sslmode=on"
    )


def test_a_short_secret_does_not_mask_half_of_every_text() -> None:
    register(["a", "", "   "])
    assert redact("a banana") == "a banana"


def test_a_secret_that_is_a_word_is_not_told_by_what_is_left_of_longer_ones() -> None:
    register(["short"])
    assert redact("the secret is shorter than 16 characters") == "the secret is shorter than 16 characters"
    assert redact("short, a_short_one, key=short&x") == "***, a_***_one, key=***&x"


def test_a_url_without_password_can_be_shown() -> None:
    assert safe_url("postgresql://app:s3cret@h:5432/db?sslmode=on") == "postgresql://app@h:5432/db?sslmode=on"
    assert safe_url("postgresql://app@h/db") == "postgresql://app@h/db"
    assert safe_url("postgresql://h/db?password=s3cret") == "postgresql://h/db?password=***"
    assert safe_url("https://h:8080/x") == "https://h:8080/x"


def test_log_records_pass_the_filter_without_secrets() -> None:
    register(["tok-12345"])
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter())
    logger = logging.getLogger("hakiri.test.secrets")
    logger.propagate = False
    logger.addHandler(handler)
    try:
        try:
            raise RuntimeError("refused tok-12345")
        except RuntimeError:
            logger.exception("with %s", "tok-12345")
    finally:
        logger.removeHandler(handler)
    assert "tok-12345" not in stream.getvalue()
    assert "RuntimeError: refused ***" in stream.getvalue()
    assert "with ***" in stream.getvalue()
