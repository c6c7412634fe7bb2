"""Where texts come from: one module a source, each handing drawers or sources to the write side.

An importer reads; it never writes SQL into a palace, embeds, or prints. What it could not read, it reports.
"""
