"""The values for a hub: keys that the chart has, and room for what the labs take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from repository import ROOT

from helpers.labs.lab import all_labs
from helpers.labs.sharing import SHARE

FILE = ROOT / "docs" / "jupyterhub-values.yaml"
WORKSHOP = ROOT / "docs" / "workshop.md"

KEYS = [
    "singleuser.image.name",
    "singleuser.image.tag",
    "singleuser.cmd",
    "singleuser.defaultUrl",
    "singleuser.uid",
    "singleuser.fsGid",
    "singleuser.startTimeout",
    "singleuser.memory.guarantee",
    "singleuser.memory.limit",
    "singleuser.cpu.guarantee",
    "singleuser.cpu.limit",
    "singleuser.storage.type",
    "singleuser.storage.extraVolumes",
    "singleuser.storage.extraVolumeMounts",
    "singleuser.networkPolicy.enabled",
    "singleuser.networkPolicy.egressAllowRules.cloudMetadataServer",
    "singleuser.cloudMetadata.blockWithIptables",
    "prePuller.hook.enabled",
    "prePuller.continuous.enabled",
    "scheduling.userPlaceholder.enabled",
    "scheduling.userPlaceholder.replicas",
    "scheduling.podPriority.enabled",
    "cull.enabled",
    "cull.timeout",
    "cull.every",
]
"""Those that are set, as the chart's `values.schema.yaml` (appVersion 5.5) spells them."""

UNITS = {"K": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
SERVER_MB = 500


def values() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return read


def keys(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict) and name != "extraEnv":
            yield from keys(value, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def megabytes(text: str) -> float:
    unit = text.lstrip("0123456789")
    return int(text.removesuffix(unit)) * UNITS[unit] / 1e6


def test_the_keys_are_those_of_the_chart() -> None:
    assert sorted(keys(values())) == sorted([*KEYS, "singleuser.extraEnv"])


def test_each_lab_fits_into_a_seat() -> None:
    seat = values()["singleuser"]
    shm = next(one for one in seat["storage"]["extraVolumes"] if one["name"] == "shm")["emptyDir"]
    largest = max(lab.file.memory_mb for lab in all_labs())
    assert megabytes(seat["memory"]["limit"]) >= largest + SERVER_MB + megabytes(shm["sizeLimit"])
    assert megabytes(seat["memory"]["guarantee"]) >= largest + SERVER_MB
    assert seat["cpu"]["guarantee"] >= 1 and shm["medium"] == "Memory"


def test_what_is_mounted_is_there_and_the_shared_folder_is_the_one_that_is_named() -> None:
    seat = values()["singleuser"]
    volumes = {one["name"] for one in seat["storage"]["extraVolumes"]}
    mounts = {one["name"]: one["mountPath"] for one in seat["storage"]["extraVolumeMounts"]}
    assert set(mounts) == volumes
    assert mounts["share"] == seat["extraEnv"][SHARE] and mounts["shm"] == "/dev/shm"


def test_the_image_is_the_one_that_is_built() -> None:
    seat = values()["singleuser"]
    steps = (ROOT / ".devcontainer" / "Dockerfile").read_text(encoding="utf-8")
    [folder] = [line.split()[1] for line in steps.splitlines() if line.startswith("WORKDIR")]
    assert seat["cmd"][0] == f"{folder}/.venv/bin/jupyterhub-singleuser"
    assert seat["cmd"][1:] == [f"--ServerApp.root_dir={folder}"]
    assert (ROOT / seat["defaultUrl"].removeprefix("/lab/tree/")).is_file()
    assert FILE.name in WORKSHOP.read_text(encoding="utf-8")
    seats = FILE.with_name("jupyterhub.Dockerfile")
    assert "jupyterhub==5.5.*" in seats.read_text(encoding="utf-8")
    assert seats.name in WORKSHOP.read_text(encoding="utf-8")
    for tool in ("procps", "iproute2"):  # pgrep and ss, for what is found by hand
        assert tool in steps
