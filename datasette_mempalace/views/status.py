"""A palace's state over HTTP: counts at once, and with `doctor=1` what the doctor may look at while others search.

It only reads. Whoever may see the palace sees counts and findings; where files lie, hosts, and what libraries have said
is for those who may debug the instance, as root may.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from .. import doctor
from ..compat import configuration, may_debug
from ..errors import BadParameter
from ..finding import Finding
from ..palace import Palace
from ..parameter_values import FLAGS
from ..registry import run
from ..sql_tables import why_off
from ..status import palace_status
from . import present
from .access import parameters_of
from .data import data_of_palace
from .frame import page_of_palace
from .links import palace_path
from .operation import Operation, described

VECTORS = 1_000  # of each kind, looked at in an examination
REMEMBERED = 10.0  # seconds for which an examination is not repeated
DOCTOR = "doctor"


class Examinations:
    """The last examination of each palace: many visitors cost one, and one goes on at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: weakref.WeakKeyDictionary[Palace, tuple[float, list[Finding]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, palace: Palace, config: Mapping[str, Any]) -> list[Finding]:
        """The findings, as of some seconds ago at most."""
        with self._lock:
            made, findings = self._last.get(palace, (float("-inf"), []))
            if time.monotonic() - made > REMEMBERED:
                findings = doctor.look_over(palace, config, VECTORS)
                self._last[palace] = (time.monotonic(), findings)
            return findings


_examinations = Examinations()


@page_of_palace
async def status_page(datasette: Any, request: Any, palace: Palace, context: dict[str, Any]) -> Any:
    """What a palace holds and whether it can be searched by meaning, as a page."""
    database = context["database"]
    report = await _report(datasette, request, database, palace)
    status_url = palace_path(datasette, database, "/status")
    return {
        "template": "mempalace_status.html",
        "palace": report,
        "first_day": present.day(report["first_filed"]),
        "last_day": present.day(report["last_filed"]),
        "status_url": status_url,
        "json_url": f"{status_url}.json" + ("?doctor=1" if report["findings"] is not None else ""),
        "problems": sum(not finding["ok"] for finding in report["findings"] or ()),
    }


@described(
    Operation("The state of a palace, and with doctor=1 what an examination finds.", "Status", (DOCTOR,))
)
@data_of_palace
async def status_json(datasette: Any, request: Any, database: str, palace: Palace) -> dict[str, Any]:
    """The state as JSON."""
    return await _report(datasette, request, database, palace)


async def _report(datasette: Any, request: Any, database: str, palace: Palace) -> dict[str, Any]:
    examine = _asked(parameters_of(request))
    sees_all = await may_debug(datasette, request.actor)
    found = await run(datasette, palace_status, palace)
    table = why_off(palace.settings)
    found["table_function"] = {"available": table is None, "reason": table}
    found |= {"well": None, "findings": None}
    if examine:
        findings = await run(datasette, _examinations.of, palace, configuration(datasette))
        found |= {"well": doctor.is_well(findings), "findings": _told(findings)}
    if not sees_all:
        _keep_back(found)
    return {"database": database, "url": palace_path(datasette, database), **found}


def _asked(given: Mapping[str, Sequence[str]]) -> bool:
    """Whether an examination is asked for.

    Raises:
        BadParameter: another parameter, or another value.
    """
    for name in given:
        if name != DOCTOR:
            raise BadParameter(name, given[name][0], f"there is only the parameter {DOCTOR} here")
    value = given.get(DOCTOR, ["0"])[-1].lower()
    if value not in FLAGS:
        raise BadParameter(DOCTOR, value, "it must be 1 or 0, true or false")
    return FLAGS[value]


def _told(findings: list[Finding]) -> list[dict[str, Any]]:
    return [asdict(finding) for finding in findings]


def _keep_back(found: dict[str, Any]) -> None:
    """Take out what names files and hosts, or repeats what a library has said."""
    for part, keys in (
        (found, ("path",)),
        (found["embedder"], ("reason",)),
        (found["mirror"], ("path", "server", "reason")),
        (found["table_function"], ("reason",)),
    ):
        for key in keys:
            if key in part:
                part[key] = None
    # The rules themselves are not for everybody either.
    found["findings"] = found["findings"] and [
        {**finding, "cause": None} for finding in found["findings"] if finding["check"] != "permissions"
    ]
    found["well"] = found["findings"] and all(finding["ok"] for finding in found["findings"])
