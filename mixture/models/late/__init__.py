"""What corrects labels that come late, and what guards against streams whose labels stop.

A paradigm asks it for a loss, and whether to learn now. May not know learners, seeds and export.
"""
