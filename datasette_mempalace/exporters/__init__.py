"""Writes a palace out: as NDJSON that `import` reads back, as a tree of Markdown, as CSV. It only reads the palace."""
