"""What a table does with columns that its source changes."""

from __future__ import annotations

from typing import Literal

Contract = Literal["evolve", "freeze", "discard_row", "discard_value"]
