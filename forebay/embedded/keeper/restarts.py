"""When a component is restarted."""

from __future__ import annotations

from forebay.system.restarts import RestartPolicy

# Ends older than ten minutes are forgotten: one end a day is no reason to give up after a week.
COMPONENT_POLICY = RestartPolicy(
    restart="always",
    restarts_max=8,
    delay_first_seconds=0.5,
    delay_max_seconds=10.0,
    memory_seconds=600.0,
)
