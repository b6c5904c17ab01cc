"""When a component is started again."""

from __future__ import annotations

from forebay.system.restarts import RestartPolicy

# Ends of ten minutes ago are forgotten: one end a day is no reason to give up in a week.
COMPONENT_POLICY = RestartPolicy(
    restart="always",
    restarts_max=8,
    delay_first_seconds=0.5,
    delay_max_seconds=10.0,
    memory_seconds=600.0,
)
