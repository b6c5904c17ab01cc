"""Plan: windows become data tasks through timer, source, joiner and sink operations."""
