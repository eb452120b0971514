"""What load generators print, a file for each tool, and what browsers save (HAR).

The lab reads outputs strictly (`read_run`), the auditor leniently and in any text.
"""
