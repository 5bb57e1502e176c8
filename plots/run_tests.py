#!/usr/bin/env python3
"""Runs the tests of the scripts here and of common/pages, and ends with how many passed and failed.

plots/python.sh plots/run_tests.py [records ...]    all, or those of files whose names contain one of the words
"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
words = sys.argv[1:] or [""]
suite = unittest.TestSuite()
for file in sorted([*HERE.glob("*/test_*.py"), *HERE.parent.glob("common/pages/test_*.py")]):
    if any(word in file.name for word in words):
        suite.addTests(unittest.TestLoader().discover(str(file.parent), file.name))
result = unittest.TextTestRunner(verbosity=0).run(suite)
failed = len({test.id() for test, _ in result.failures + result.errors})
print(f"{result.testsRun - failed} passed, {failed} failed")
sys.exit(0 if result.wasSuccessful() else 1)
