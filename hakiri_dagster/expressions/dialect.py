"""Spark's SQL as sqlglot reads it, with less in it: no functions that it would know better, no escapes in texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

Parsers = dict[str, Callable[..., Any]]


class RowParser(SparkParser):
    STRICT_CAST = True
    FUNCTIONS: ClassVar[Parsers] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    FUNCTION_PARSERS: ClassVar[Parsers] = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[Parsers] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}


class RowDialect(Spark):
    class Tokenizer(Spark.Tokenizer):
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]
        RAW_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = []

    Parser = RowParser
