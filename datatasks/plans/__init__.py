"""Plans of windows as they are stored: rows, manifests, history.

Used by whatever plans and by whatever reads a plan; light enough for what Airflow parses. May not
know sources.
"""
