"""The type of a column, inferred from the JSON values that it holds.

JSON has numbers of its own: a column is `bigint` if all its values are integers of 64 bits, and `numeric`, which holds
any number exactly, if they are numbers at all. Objects and lists are `jsonb`. Dates and times hide in texts. Values of
several kinds are text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.files.text_inference import is_plain_text, signature, type_of
from hakiri_dagster.connectors.files.types import declared_text_column
from hakiri_dagster.connectors.json.typed_values import first_bytes
from hakiri_dagster.planning.columns import Column

JSONB: Final = "jsonb"
NUMERIC: Final = "numeric"
_ARRAY: Final = "[]"
_ESCAPED: Final = "?"
"""Instead of a text with escapes: dates and times need none."""

Kind = Literal["nested", "boolean", "integer", "number", "text", "several"]

_KINDS: Final[dict[int, Kind]] = {
    ord("{"): "nested",
    ord("["): "nested",
    ord("t"): "boolean",
    ord("f"): "boolean",
    ord('"'): "text",
}


@dataclass(frozen=True, slots=True)
class ObservedValues:
    """What the values of a column have in common: their kind (None: there is no value yet) and, of texts, the bits that
    tell which types they spell (`files/text_inference.py`). The union for two sets of values is what one look at all of
    them would give."""

    kind: Kind | None = None
    signature: int = 0

    def __or__(self, other: ObservedValues) -> ObservedValues:
        if self.kind is None or other.kind is None:
            return other if self.kind is None else self
        if {self.kind, other.kind} == {"integer", "number"}:
            return ObservedValues("number")
        if self.kind != other.kind:
            return ObservedValues("several")
        return ObservedValues(self.kind, self.signature | other.signature)

    @property
    def is_settled(self) -> bool:
        """No further value changes the type."""
        return self.kind == "several" or (self.kind == "text" and is_plain_text(self.signature))


NO_VALUES: Final = ObservedValues()


def observe(raw: pa.LargeStringArray, before: ObservedValues = NO_VALUES) -> ObservedValues:
    """Return what these values and those `before` have in common. `raw`: the JSON text of each; NULL for none."""
    kinds = {_KINDS.get(byte, "number") for byte in first_bytes(raw)}
    if not kinds or (kinds == {before.kind} and before.kind != "text"):
        return before  # more of the same kind; texts have types by what they spell
    return before | (ObservedValues("several") if len(kinds) > 1 else _observed(raw.drop_null(), kinds.pop()))


def _observed(texts: pa.LargeStringArray, kind: Kind) -> ObservedValues:
    match kind:
        case "number":
            return ObservedValues("integer" if _are_integers(texts) else "number")
        case "text":
            content = pc.binary_slice(texts.cast(pa.large_binary()), 1, -1).cast(pa.large_string())
            content = pc.if_else(pc.match_substring(texts, "\\"), _ESCAPED, content)
            return ObservedValues("text", signature(content))
        case _:
            return ObservedValues(kind)


def _are_integers(texts: pa.LargeStringArray) -> bool:
    try:
        texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    return True


def inferred_column(name: str, observed: ObservedValues) -> Column:
    match observed.kind:
        case "nested":
            return Column(name, "string", native_type=JSONB)
        case "number":
            return Column(name, "string", native_type=NUMERIC)
        case "integer":
            return Column(name, "bigint")
        case "boolean":
            return Column(name, "boolean")
        case "text":
            return Column(name, type_of(observed.signature) or "string")
        case _:
            return Column(name, "string")


def declared_json_column(name: str, postgres_type: str) -> Column:
    """A column whose type the manifest declares: JSON has lists, so arrays are read as what they are."""
    if not postgres_type.endswith(_ARRAY):
        return declared_text_column(name, postgres_type)
    element = declared_json_column(name, postgres_type.removesuffix(_ARRAY).strip())
    return Column(name, f"array<{element.spark_type}>", native_type=postgres_type)
