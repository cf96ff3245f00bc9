"""The contract of a JSON report, which scripts depend on: `docs/report.schema.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from repository import ROOT

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))

_VALIDATOR = Draft202012Validator(SCHEMA)


def violations(report: Mapping[str, Any]) -> list[str]:
    """Where a report breaks the contract, one sentence each; empty where it holds."""
    return [f"{error.json_path}: {error.message}." for error in _VALIDATOR.iter_errors(report)]
