"""Airflow operators, each one stage of one window: they call stages and follow jobs.

Imported by every task of every run and by Airflow's own components, so nothing in here may import
Arrow, NumPy, gRPC or TensorFlow, directly or through another module.
"""
