"""Where the processes of a job run: one `Plane` per kind of machine."""
