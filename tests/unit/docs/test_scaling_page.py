from __future__ import annotations

import re
import subprocess
import sys

from hakiri_dagster.pipeline.passes import SLICES_A_PASS
from tests.unit.docs.pages import ROOT

MODEL = ROOT / "bench" / "cost_model.py"


def test_the_page_shows_what_the_model_tells() -> None:
    told = subprocess.run([sys.executable, MODEL], capture_output=True, text=True, check=True).stdout
    assert told in (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


def test_the_model_cuts_passes_as_the_product_does() -> None:
    assumed = dict(re.findall(r"^([A-Z_]+) = (\d+)$", MODEL.read_text(encoding="utf-8"), re.MULTILINE))
    assert assumed == {"CHUNKS_PER_PASS": str(SLICES_A_PASS)}
