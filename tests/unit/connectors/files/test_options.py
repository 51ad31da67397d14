from __future__ import annotations

import pytest

from hakiri_dagster.connectors.files.charsets import charset
from hakiri_dagster.connectors.files.connector import FILES


def problems(**config):
    return list(FILES.check_config({"path": "data", **config}, "orders", None))


def test_a_plain_config_has_no_problems():
    assert problems(format="csv", delimiter=";", null_values=["NA"], encoding="latin1") == []


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"delimeter": ";"}, "`delimeter` is no setting of `files`; did you mean `delimiter`?"),
        ({"delimiter": "||"}, "`delimiter`: must be exactly one character"),
        ({"encoding": "klingon"}, "`encoding`: no such encoding"),
        ({"encoding": "shift_jis"}, "`encoding`: cannot be read; UTF-8"),
        ({"compression": "lz4"}, "`compression`: Input should be"),
        ({"format": "xml"}, "`format`: "),
        ({"path": "s3://bucket/x"}, "`orders`: s3://… is not built yet"),
    ],
)
def test_each_mistake_is_told(config, told):
    assert [problem[: len(told)] for problem in problems(**config)] == [told]


def test_single_byte_charsets_are_built_on_latin_1():
    found = charset("windows-1252")
    assert found is not None
    assert found.spark == "ISO-8859-1"
    translated = str.maketrans(found.wrong, found.right)
    printable = bytes(b for b in range(256) if b not in (0x81, 0x8D, 0x8F, 0x90, 0x9D))
    assert printable.decode("iso-8859-1").translate(translated) == printable.decode("cp1252")


@pytest.mark.parametrize("name", ["gbk", "cp037", "hex", "nonsense"])
def test_what_is_no_single_byte_charset_is_none(name):
    assert charset(name) is None
