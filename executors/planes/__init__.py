"""Where the processes of a job run: one `Plane` per kind of machine.

May not know what the processes do, when they are restarted, or what their exit codes mean.
"""
