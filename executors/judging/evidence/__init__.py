"""What the gate knows about windows, passed from link to link: each window's scores are read once.

Runs in the trainer and in stages. May not decide what serves; knows nothing of parts by source or
slice, which only summaries show.
"""
