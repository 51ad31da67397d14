from __future__ import annotations

from hakiri_dagster.manifest.spelling import or_rather


def test_a_name_in_another_letter_case_is_the_one_that_was_meant() -> None:
    assert or_rather("customerid", ["id", "CustomerId"]) == "; did you mean CustomerId?"
    assert or_rather("amount", ["id", "CustomerId"]) == ""
