"""Which submissions are alike, or like the reference: similar.py PLACES REPORT SHARE

PLACES has submissions/STUDENT/FILE, reference/FILE and given/FILE, which all have in common. Writes REPORT, a page, and
prints as JSON [[share, STUDENT/FILE, what it is in], ...] for shares above SHARE.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

from copydetect import CopyDetector

places, report, share = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
found = []
with contextlib.redirect_stdout(io.StringIO()):  # it tells of its progress
    detector = CopyDetector(
        test_dirs=[str(places / "submissions")], ref_dirs=[str(places / "submissions"), str(places / "reference")],
        boilerplate_dirs=[str(places / "given")], extensions=["cpp"], display_t=share, same_name_only=True,
        silent=True, out_file=report, autoopen=False,
    )  # fmt: skip
    detector.run()
    detector.generate_html_report()
for one_share, other_share, *paths in detector.get_copied_code_list():
    one, other = [str(Path(path).relative_to(places)).removeprefix("submissions/") for path in paths[:2]]
    # Of each pair copydetect names one first, now this, now that: both are shown, each with its share.
    found += [row for row in ([one_share, one, other], [other_share, other, one]) if not row[1].startswith("reference/")]
print(json.dumps(sorted(found)))
