"""YAML with positions: which file and line says what, and a problem in words.

Read where declarations are loaded. May not know what is declared.
"""
