"""Which roles a job has: data about processes, for whoever starts, watches or names them.

Read in submitters, supervisors and the roles themselves. May not import what a role does.
"""
