"""YAML with positions: which file and line says what, and a problem in words.

Runs in every process that reads declarations. May not know what is declared.
"""
