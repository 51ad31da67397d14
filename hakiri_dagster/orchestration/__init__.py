"""Dagster: assets, partitions, checks, IO managers, schedules, sensors; and `apply`, which runs them from here."""

import warnings

import dagster as dg

# Deliberate: checks by partition (preview), code references and backfill policies (beta). The versions are locked, and
# a test pins the behaviour that is leaned on.
warnings.filterwarnings("ignore", category=dg.PreviewWarning)
warnings.filterwarnings("ignore", category=dg.BetaWarning)
