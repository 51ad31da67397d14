"""Asks the rules of `rules.py` of one Parquet file with Great Expectations on Spark; run by its own Python. Prints the
seconds from a running Spark on, the reading of the file included."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import great_expectations as gx
import great_expectations.expectations as gxe
from pyspark.sql import SparkSession

TYPES = {"integer": ["IntegerType", "LongType", "ShortType"]}


def expectation(rule: dict[str, Any]) -> Any:
    column = rule["field"]
    match rule["type"]:
        case "not_null":
            return gxe.ExpectColumnValuesToNotBeNull(column=column)
        case "range":
            return gxe.ExpectColumnValuesToBeBetween(
                column=column, min_value=rule.get("min"), max_value=rule.get("max")
            )
        case "min_length":
            return gxe.ExpectColumnValueLengthsToBeBetween(column=column, min_value=rule["min"])
        case "max_length":
            return gxe.ExpectColumnValueLengthsToBeBetween(column=column, max_value=rule["max"])
        case "one_of":
            return gxe.ExpectColumnValuesToBeInSet(column=column, value_set=rule["values"])
        case "regex":
            return gxe.ExpectColumnValuesToMatchRegex(column=column, regex=rule["pattern"])
        case "compare":
            return gxe.ExpectColumnPairValuesAToBeGreaterThanB(column_A=rule["other"], column_B=column, or_equal=True)
        case "field_type":
            return gxe.ExpectColumnValuesToBeInTypeList(column=column, type_list=TYPES[rule["expected"]])
        case other:
            raise SystemExit(f"no expectation stands for {other}")


def main(path: str, rules: str) -> None:
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "6g")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    spark.range(1000).selectExpr("sum(id)").collect()
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_spark("bench").add_dataframe_asset("lineitem")
    batches = asset.add_batch_definition_whole_dataframe("all")
    suite = gx.ExpectationSuite(name="rules", expectations=[expectation(rule) for rule in json.loads(rules)])
    started = time.perf_counter()
    frame = spark.read.parquet(path).cache()
    batch = batches.get_batch(batch_parameters={"dataframe": frame})
    result = batch.validate(suite, result_format="SUMMARY")
    seconds = time.perf_counter() - started
    told = {"seconds": seconds, "success": bool(result.success), "asked": len(result.results)}
    print(json.dumps(told))
    spark.stop()


main(*sys.argv[1:])
