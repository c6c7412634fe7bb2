"""The commands that look after a palace: sync, status, doctor, purge."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..text import counted
from . import common, working
from .common import PalaceCommand, config_option, harmless, palace_argument

if TYPE_CHECKING:
    from ..finding import Finding


@click.command(cls=PalaceCommand, interrupted=common.EMBEDDED)
@palace_argument
@config_option
def sync(palace: Path, config: Path | None) -> None:
    """Embed what has no vector yet, and bring the Chroma mirror in step.

    Needed after others have written into the drawers with SQL, and after an embedding model was missing. A running
    server does it by itself; then it owns the mirror, and this command only embeds.
    """
    from ..change_log import prune
    from ..repair import mend_full_text
    from ..vectors import embed_pending, remove_orphans

    with common.open_palace(palace, config) as opened, working.steps() as bars:
        remove_orphans(opened)
        for table in mend_full_text(opened):
            common.note(f"The full-text index of {table} held entries of replaced rows and was rebuilt.")
        embedded = embed_pending(opened, bars.of("Embedding"))
        report = opened.mirror.sync(bars.of("Mirroring"))
        prune(opened)
        bars.close()
        click.echo(f"Embedded {counted(embedded, 'text')}.")
        if report.skipped_reason:
            click.echo(harmless(report.skipped_reason))
        else:
            click.echo(
                f"Mirror: {counted(report.upserted, 'vector')} written, {report.deleted:,} removed"
                f"{', filled anew' if report.rebuilt else ''}."
            )


@click.command(cls=PalaceCommand)
@palace_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_option
def status(palace: Path, as_json: bool, config: Path | None) -> None:
    """Tell what PALACE holds and whether it can be searched by meaning."""
    from ..sql_tables import why_off
    from ..status import palace_status

    with common.open_palace(palace, config) as opened:
        off = why_off(opened.settings)
        found = {**palace_status(opened), "table_function": {"available": off is None, "reason": off}}
    click.echo(json.dumps(found, indent=2) if as_json else harmless(_sentences(found)))


def _sentences(found: dict[str, Any]) -> str:
    embedder, mirror = found["embedder"], found["mirror"]
    lines = [
        f"Palace    {found['path']} (schema {found['schema_version']})",
        f"Drawers   {found['drawers']:,} in {counted(found['wings'], 'wing')} and {counted(found['rooms'], 'room')},"
        f" from {counted(found['sources'], 'source')}",
        f"Closets   {found['closets']:,}",
    ]
    if found["first_filed"]:
        lines.append(f"Filed     {found['first_filed']} to {found['last_filed']}")
    pending = found["pending_vectors"]
    waiting = f", {pending:,} pending: datasette mempalace sync {found['path']}" if pending else ""
    lines.append(f"Vectors   {found['vectors']:,}{waiting}")
    dimension = f", {embedder['dimension']} dimensions" if embedder.get("dimension") else ""
    usable = "" if embedder["available"] else f"; not usable: {embedder['reason']}"
    lines.append(f"Model     {embedder['model']}{dimension}{usable}")
    reason = f": {mirror['reason']}" if mirror.get("reason") else ""
    lines.append(f"Mirror    {mirror['state']}{reason} ({mirror['path'] or mirror['server']})")
    table = found["table_function"]
    lines.append(f"SQL table {'mempalace_search' if table['available'] else 'off: ' + table['reason']}")
    return "\n".join(lines)


@click.command(cls=PalaceCommand)
@palace_argument
@click.option("--fix", is_flag=True, help="Mend what can be mended.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_option
def doctor(palace: Path, fix: bool, as_json: bool, config: Path | None) -> None:
    """Examine PALACE: the file, full-text indexes, triggers, change log, vectors, model, mirror, permissions.

    With --config, the permissions of that file are examined, too. Exits with 1 when something is not well.
    """
    from .. import doctor as doctors

    with common.open_palace(palace, config, damaged=True) as opened:
        done, problem = doctors.attempt(opened) if fix else ([], None)
        findings = doctors.examine(opened, common.read_config(config) if config else None)
    if as_json:
        found = {"well": doctors.is_well(findings), "done": done, "problem": problem}
        click.echo(json.dumps({**found, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for line in done:
            click.echo(harmless(line))
        if problem:
            common.note(problem)
        for finding in findings:
            click.echo(harmless(_line(finding)))
    if problem or not doctors.is_well(findings):
        raise SystemExit(1)


def _line(finding: Finding) -> str:
    cause = f" ({finding.cause})" if finding.cause else ""
    helps = f"; {finding.help}" if finding.help and not finding.ok else ""
    return f"{'well  ' if finding.ok else 'NOT OK'}  {finding.check}: {finding.says}{cause}{helps}"


@click.command(cls=PalaceCommand)
@palace_argument
@config_option
def purge(palace: Path, config: Path | None) -> None:
    """Remove deleted texts for good: rewrite indexes, file and mirror without them.

    SQLite only marks what is deleted. Stop the server first: nobody else may have PALACE open.
    """
    from ..purge import purge as purge_palace

    with common.open_palace(palace, config) as opened:
        done = purge_palace(opened)
    if done.closets:
        click.echo(f"Lines about drawers that are gone were taken out of {counted(done.closets, 'closet')}.")
    saved = done.bytes_before - done.bytes_after
    click.echo(f"Indexes and file were rewritten{f', {saved:,} bytes smaller' if saved > 0 else ''}.")
    if done.mirror_left:
        common.note(f"The mirror was left as it is: {done.mirror_left}")


COMMANDS = (sync, status, doctor, purge)
