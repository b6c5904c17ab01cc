"""The files of a home: a folder, or objects in S3, written once and named by their content.

Used by every process. Knows nothing of what is in a file.
"""
