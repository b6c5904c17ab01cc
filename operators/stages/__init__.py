"""The tasks of a pipeline's DAG: one operator for each stage of a window.

They start `forebay stage`, listen and answer for its end; they never plan, train or open data.
"""
