"""The tasks of a pipeline's DAG: one operator for each stage of a window.

They start `forebay stage`, listen and answer for its end; they may not plan, train or open data.
"""
