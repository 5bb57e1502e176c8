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
for one_share, _, one, other, *_ in detector.get_copied_code_list():
    names = [str(Path(path).relative_to(places)).removeprefix("submissions/") for path in (one, other)]
    if not names[0].startswith("reference/"):
        found.append([one_share, *names])
print(json.dumps(found))
