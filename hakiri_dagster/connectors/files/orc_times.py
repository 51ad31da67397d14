"""Timestamps of ORC files, which Spark reads as seconds with nine decimals: its own reader drops the last three.

Files that ORC's Java library has written (Spark, Hive) count days before 1582-10-15 in the Julian calendar, as the
library does when it reads. All others count in the Gregorian one, but the library takes them for its own: such dates
would be days off, and times before 1970 with a fraction of a second up to a second.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

SECONDS_TYPE: Final = "decimal(28,9)"
JAVA_WRITER: Final = "ORC_JAVA"
FIRST_GREGORIAN_DAY: Final = date(1582, 10, 15)
BEFORE_1970: Final = "is before 1970 with a fraction of a second, which Spark misreads in ORC that Java has not written"
BEFORE_1582: Final = "is before 1582-10-15, which Spark misreads in ORC that Java has not written"

_SECONDS_A_DAY: Final = 86_400
_DAYS_OF_CALENDARS: Final = (
    (-141_427, 0),
    (-171_595, -10),
    (-208_120, -9),
    (-244_645, -8),
    (-317_695, -7),
    (-354_220, -6),
    (-390_745, -5),
    (-463_795, -4),
    (-500_320, -3),
    (-536_845, -2),
    (-609_895, -1),
    (-646_420, 0),
    (-682_945, 1),
)
"""From which day since 1970 on, counted in the Julian calendar, so many days lead to the same date in the Gregorian
one (Spark's `RebaseDateTime.julianGregDiffs`)."""
_DAYS_BEFORE: Final = 2


def orc_timestamp(seconds: Column, *, by_java: bool) -> Column:
    """Return the instant, cut to microseconds. `by_java`: the file was written by ORC's Java library."""
    whole, nanos = F.floor(seconds).cast("bigint"), orc_nanoseconds(seconds)
    micros = whole * 1_000_000 + ((nanos - F.pmod(nanos, F.lit(1000))) / 1000).cast("bigint")
    if by_java:
        micros = micros + _days_between_calendars(whole) * (_SECONDS_A_DAY * 1_000_000)
    return F.timestamp_micros(micros)


def orc_nanoseconds(seconds: Column) -> Column:
    """Return the nanoseconds within the second."""
    fraction = (seconds - F.floor(seconds)).cast("decimal(10,9)")
    return (fraction * F.lit(1_000_000_000).cast("decimal(10,0)")).cast("bigint")


def _days_between_calendars(whole_seconds: Column) -> Column:
    (first, days), *earlier = _DAYS_OF_CALENDARS
    shift = F.when(whole_seconds >= first * _SECONDS_A_DAY, F.lit(days))
    for day, days in earlier:
        shift = shift.when(whole_seconds >= day * _SECONDS_A_DAY, F.lit(days))
    return F.when(whole_seconds.isNotNull(), shift.otherwise(F.lit(_DAYS_BEFORE))).cast("bigint")
