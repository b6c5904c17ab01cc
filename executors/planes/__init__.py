"""Where the processes of a job run: one `Plane` per kind of machine.

Used by whatever starts a job, and by its supervisor. May not know what the processes do, when they
are restarted, or what their exit codes mean.
"""
