"""Whether every slide fits on its page: slides_fit.py FILES. It needs chromium; without one it says so and checks nothing."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "watch"))
import browser

WIDTH, HEIGHT = 800, 600  # slides.css
SIZES = """<script>window.addEventListener('load', () => {
  const sizes = [...document.querySelectorAll('body > section')].map((slide) => {
    slide.style.display = 'block'
    return [slide.scrollWidth, slide.scrollHeight, slide.querySelector('h1, h2').textContent.replace(/\\n/g, ' ')].join(' ')
  })
  document.body.innerHTML = '<pre id="sizes">' + sizes.join('\\n') + '</pre>'
})</script></body>"""


def too_large(page, chromium):
    """Lines on the slides of a page that are larger than theirs."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / page.name
        copy.write_text(page.read_text(encoding="utf-8").replace("</body>", SIZES), encoding="utf-8")
        shown = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom",
                                f"--user-data-dir={scratch}/profile", f"file://{copy}"], capture_output=True, text=True, timeout=120).stdout  # fmt: skip
    sizes = re.search(r'<pre id="sizes">(.*?)</pre>', shown, re.DOTALL)
    if not sizes:
        return [f"{page}: chromium shows no slides"]
    slides = [line.split(" ", 2) for line in sizes[1].splitlines()]
    return [f"{page}: '{title}' takes {width} x {height} points, a slide has {WIDTH} x {HEIGHT}"
            for width, height, title in slides if int(width) > WIDTH or int(height) > HEIGHT]  # fmt: skip


chromium = browser.find()
if not chromium:
    print("slides: no chromium here, so that it is not checked whether they fit")
    sys.exit()
found = [line for page in sys.argv[1:] for line in too_large(Path(page), chromium)]
print("\n".join(found) or "every slide fits", file=sys.stderr if found else sys.stdout)
sys.exit(bool(found))
