"""Run: supervisor, driver, data executors and trainer as separate processes."""
