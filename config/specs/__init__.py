"""What may be declared: a model of each thing that YAML names, with its own rules.

Read by every process. May not know files, other declarations or positions in YAML.
"""
