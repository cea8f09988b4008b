"""Tests against a real memnode: python3 -m unittest discover -s tests -t . from this folder.

MNEME_TEST_PROGRAMS names the folder with memnode and memctl (go build -o FOLDER mneme/cmd/...).
"""
