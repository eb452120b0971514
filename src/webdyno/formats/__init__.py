"""What load generators print, and what browsers save (HAR).

A run reads outputs strictly (`read_run`), the auditor leniently and in any text.
"""
