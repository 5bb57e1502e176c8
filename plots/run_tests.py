#!/usr/bin/env python3
"""Runs all tests of the scripts here, and ends with how many passed and failed."""

import sys
import unittest
from pathlib import Path

result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.discover(Path(__file__).parent))
failed = len({test.id() for test, _ in result.failures + result.errors})
print(f"{result.testsRun - failed} passed, {failed} failed")
sys.exit(0 if result.wasSuccessful() else 1)
