"""What of older windows is removed, and when: never what a link, the served model or a job needs.

Runs in the trainer, in stages and in the command line. Everything here may be called at any time,
alongside runs and jobs, and again after a kill. May not know processes or stages: they call it when
something is trained or published.
"""
