"""What is removed of older windows, and when: never what a link, the served model or a job needs.

Everything here may be called at any time, beside runs and jobs, and again after a kill.
May not know processes or stages: they call it when something is trained or published.
"""
