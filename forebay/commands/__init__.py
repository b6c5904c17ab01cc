"""The commands of `forebay`: one module for each, imported only when it is asked for."""
